"""Methods that a random feature latent variable model is compared with, all with the same interface.

>>> from rflvm import baselines
>>> from rflvm.datasets import make_s_curve
>>> Y = make_s_curve(60, 20, emissions="poisson").data
>>> baselines.make("pca", n_components=2).fit_transform(Y).shape
(60, 2)
"""

from typing import Any

from ..data.checks import check_choice
from .base import Baseline
from .dla_gplvm import DLAGPLVM
from .gplvm import GPLVM
from .linear import NMF, PCA
from .map_gplvm import MAPGPLVM
from .neighbours import TSNE, UMAP, Isomap
from .vae import VAE

BASELINES: dict[str, type[Baseline]] = {
    "pca": PCA,
    "nmf": NMF,
    "isomap": Isomap,
    "tsne": TSNE,
    "umap": UMAP,
    "vae": VAE,
    "gplvm": GPLVM,
    "map-gplvm": MAPGPLVM,
    "dla-gplvm": DLAGPLVM,
}


def make(name: str, n_components: int = 2, random_state: Any = None, **settings: Any) -> Any:
    """A baseline by its name, one of ``BASELINES``; ``settings`` are its other parameters."""
    check_choice("name", name, tuple(BASELINES))
    return BASELINES[name](n_components, random_state=random_state, **settings)


__all__ = [
    "BASELINES",
    "DLAGPLVM",
    "GPLVM",
    "MAPGPLVM",
    "NMF",
    "PCA",
    "TSNE",
    "UMAP",
    "VAE",
    "Baseline",
    "Isomap",
    "make",
]

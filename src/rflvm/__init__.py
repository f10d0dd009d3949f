"""Random feature latent variable models (Gundersen, Zhang & Engelhardt 2020).

Nonlinear dimension reduction for real numbers, counts and yes/no answers, with missing cells, a
learned kernel and a full posterior.
"""

from importlib.metadata import version

from . import likelihoods
from .estimator import RFLVM, load
from .gibbs import Progress, continue_sampling, sample
from .io import FileError
from .linalg import NumericalError
from .map import Fit, maximise
from .model import Prior
from .posterior import Draws

__version__ = version("rflvm")

__all__ = [
    "RFLVM",
    "Draws",
    "FileError",
    "Fit",
    "NumericalError",
    "Prior",
    "Progress",
    "__version__",
    "continue_sampling",
    "likelihoods",
    "load",
    "maximise",
    "sample",
]

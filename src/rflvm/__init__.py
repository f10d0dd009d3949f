"""Random feature latent variable models (Gundersen, Zhang & Engelhardt 2020).

Nonlinear dimension reduction for real numbers, counts and yes/no answers, with missing cells, a
learned kernel and a full posterior.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .numerics import forks as _forks  # noqa: F401  (notices forks from now on)

if TYPE_CHECKING:
    from . import likelihoods
    from .estimator import RFLVM, load
    from .files.npz import FileError
    from .fitted.effects import Effects
    from .maximum.maximise import maximise
    from .maximum.result import Fit
    from .model import dynamics
    from .model.draws import Draws
    from .model.joint import Prior
    from .numerics.linalg import NumericalError
    from .numerics.programs import keep_programs
    from .sampling.progress import Progress
    from .sampling.run import continue_sampling, sample
    from .streaming.result import StreamFit
    from .streaming.stream import stream

    __version__: str

__all__ = [
    "RFLVM",
    "Draws",
    "Effects",
    "FileError",
    "Fit",
    "NumericalError",
    "Prior",
    "Progress",
    "StreamFit",
    "__version__",
    "continue_sampling",
    "dynamics",
    "keep_programs",
    "likelihoods",
    "load",
    "maximise",
    "sample",
    "stream",
]

# Names are imported when they are asked for: the command line prints its help without waiting for JAX.
_HOMES = {
    "RFLVM": "estimator",
    "Draws": "model.draws",
    "Effects": "fitted.effects",
    "FileError": "files.npz",
    "Fit": "maximum.result",
    "NumericalError": "numerics.linalg",
    "Prior": "model.joint",
    "Progress": "sampling.progress",
    "continue_sampling": "sampling.run",
    "keep_programs": "numerics.programs",
    "load": "estimator",
    "maximise": "maximum.maximise",
    "StreamFit": "streaming.result",
    "sample": "sampling.run",
    "stream": "streaming.stream",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("rflvm")
    elif name == "likelihoods":
        value = import_module(".likelihoods", __name__)
    elif name == "dynamics":
        value = import_module(".model.dynamics", __name__)
    elif name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

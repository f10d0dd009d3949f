"""Random feature latent variable models (Gundersen, Zhang & Engelhardt 2020).

Nonlinear dimension reduction for real numbers, counts and yes/no answers, with missing cells, a
learned kernel and a full posterior.
"""

from importlib.metadata import version

from . import likelihoods
from .gibbs import Progress, sample
from .linalg import NumericalError
from .map import Fit, maximise
from .model import Prior
from .posterior import Draws

__version__ = version("rflvm")

__all__ = ["Draws", "Fit", "NumericalError", "Prior", "Progress", "__version__", "likelihoods", "maximise", "sample"]

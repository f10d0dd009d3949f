"""Figures of a fitted ``RFLVM``: each function draws on one matplotlib axes and returns it.

matplotlib is imported when a figure is drawn. Nothing is shown and no
setting of matplotlib is changed.
"""

from .cells import predictions, tuning
from .chains import ranks, trace
from .kernels import kernel, spectrum
from .latent import density, images, latent

__all__ = ["density", "images", "kernel", "latent", "predictions", "ranks", "spectrum", "trace", "tuning"]

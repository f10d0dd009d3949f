"""Simulated data."""

from .s_curve import make_s_curve

__all__ = ["make_s_curve"]

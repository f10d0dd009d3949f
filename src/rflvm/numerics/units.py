"""Units of the columns of a table: the standard scale, and the way back.

A column in units (location, scale) is y = location + scale * y~ with y~ on the standard scale. What is given in the
units of the table is brought to the standard scale in double precision, before anything is rounded to single.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

# A column whose cells differ from their mean by this many units in the last place is taken to vary by rounding only.
ROUNDING_ULPS = 8

# The standard deviation of a normal variable over its median absolute deviation.
NORMAL_MAD = 1.482602218505602


class Units(NamedTuple):
    """Location and scale of each column; scales are positive."""

    location: Float[np.ndarray, " J"]
    scale: Float[np.ndarray, " J"]


def mean_and_deviation(
    Y: Float[np.ndarray, "N J"], observed: Bool[np.ndarray, "N J"], offset: Float[np.ndarray, " N"]
) -> Units:
    """Mean and standard deviation of the observed cells of each column, less the offset; 1 for a constant column."""
    Y, taken_off = np.where(observed, Y, 0), np.where(observed, offset[:, None], 0)
    # Powers of two, by which a product is exact, so that squares neither overflow nor underflow.
    exponent = np.frexp(np.maximum(np.abs(Y), np.abs(taken_off)).max(axis=0))[1]
    cells = np.ldexp(Y, -exponent) - np.ldexp(taken_off, -exponent)
    n = np.maximum(observed.sum(axis=0), 1)
    # The mean of deviations from one of the cells is exact where all of them are equal.
    first = np.take_along_axis(cells, observed.argmax(axis=0)[None], axis=0)[0]
    mean = first + np.where(observed, cells - first, 0).sum(axis=0) / n
    away = np.where(observed, cells - mean, 0)
    deviation = np.ldexp(np.sqrt((away**2).sum(axis=0) / n), exponent)
    varies = (np.abs(away).max(axis=0) > ROUNDING_ULPS * np.finfo(float).eps) & (deviation > 0)
    return Units(np.ldexp(mean, exponent), np.where(varies, deviation, 1.0))


def median_and_deviation(
    Y: Float[np.ndarray, "N J"], observed: Bool[np.ndarray, "N J"], offset: Float[np.ndarray, " N"]
) -> Units:
    """Median and median absolute deviation of the observed cells of each column, less the offset.

    The deviation is multiplied by 1.4826, with which that of normal cells is their standard deviation. Columns in which
    it is 0, half of their cells being equal, have mean and standard deviation in their place.
    """
    plain = mean_and_deviation(Y, observed, offset)
    cells = np.where(observed, standardised(Y, observed, offset, plain), np.nan)
    median = np.nanmedian(cells, axis=0)
    deviation = NORMAL_MAD * np.nanmedian(np.abs(cells - median), axis=0)
    varies = deviation > ROUNDING_ULPS * np.finfo(float).eps
    location = plain.location + plain.scale * median
    return Units(np.where(varies, location, plain.location), plain.scale * np.where(varies, deviation, 1.0))


def standardised(
    Y: Float[np.ndarray, "n J"], observed: Bool[np.ndarray, "n J"], offset: Float[np.ndarray, " n"], units: Units | None
) -> Float[np.ndarray, "n J"]:
    """Cells on the standard scale, the offset of their row taken out and 0 where not observed; as given without units.

    The offset is in the units of the table, so there is none left on the standard scale.
    """
    if units is None:
        return Y
    with np.errstate(over="ignore"):  # what is infinite then is refused as too large
        return np.where(observed, (Y - offset[:, None] - units.location) / units.scale, 0)


def restored(
    cells: Float[np.ndarray, "*S n J"], offset: Float[np.ndarray, " n"], units: Units | None
) -> Float[np.ndarray, "*S n J"]:
    """Cells, or means or quantiles of them, from the standard scale in units, the offset of their row put back."""
    return cells if units is None else units.location + units.scale * np.asarray(cells, float) + offset[:, None]


def coefficients(beta: Float[np.ndarray, "*S M J"], units: Units | None) -> Float[np.ndarray, "*S M J"]:
    """Coefficients whose linear predictor is in units; the last row has the intercepts."""
    if units is None:
        return beta
    scaled = np.asarray(beta, float) * units.scale
    scaled[..., -1, :] += units.location
    return scaled


def log_scales(observed: Bool[np.ndarray, "n J"], units: Units | None) -> Float[np.ndarray, "n J"]:
    """What the log density of each observed cell loses on the way from the standard scale to units."""
    return np.zeros(observed.shape) if units is None else np.where(observed, np.log(units.scale), 0)

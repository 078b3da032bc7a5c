"""Detection threshold for a given rate of false alarms."""

from __future__ import annotations

import math

import numpy as np

from dynid.arrays import Array

_MAXIMUM_WINDOWS = 5.0  # windows, of which one maximum is taken: those of two blocks are nearly independent
_TAIL_SHARE = 0.1  # share of the maxima, the largest, that tell how the tail falls
MIN_EXCEEDANCES = 8  # of them


def gaussian_level(dof: int, bandwidth: float, rate: float) -> float:
    """Return the level that the sum of `dof` squared normal signals of unit variance crosses upwards `rate` times per
    second.

    bandwidth: rad/s, standard deviation of the signals' derivatives. Rice's formula in the radius r: f(r) bandwidth /
    sqrt(2 pi) crossings per second, with f the density of the chi distribution.
    """
    from scipy.optimize import brentq

    def excess(r: float) -> float:
        density = (dof - 1) * math.log(r) - 0.5 * r * r - (0.5 * dof - 1) * math.log(2.0) - math.lgamma(0.5 * dof)
        return density + math.log(bandwidth / math.sqrt(2.0 * math.pi) / rate)

    low = math.sqrt(max(dof - 1, 1))
    return float(brentq(excess, low, 100.0)) ** 2 if excess(low) > 0 else low ** 2


def observed_level(statistic: Array, rate: float, window: float, wanted: float) -> float:
    """Return the level that a statistic (m,) at `rate` Hz crosses `wanted` times per second, extrapolated from its
    largest values.

    Maxima of blocks much longer than the filter window are independent; their excess over a high level is
    exponentially distributed. The mean excess is increased by one standard deviation to be conservative for short
    logs. Zero if there are too few.
    """
    length = max(1, round(_MAXIMUM_WINDOWS * window * rate))
    count = len(statistic) // length
    kept = max(int(_TAIL_SHARE * count), MIN_EXCEEDANCES)
    if count < 2 * MIN_EXCEEDANCES:
        return 0.0
    largest = np.sort(statistic[:count * length].reshape(count, length).max(axis=1))[::-1]
    start = float(largest[kept])
    excess = float(np.mean(largest[:kept] - start)) * (1.0 + 1.0 / math.sqrt(kept))
    often = kept / (count * length / rate)  # blocks a second beyond the start
    return start + excess * math.log(max(often / wanted, 1.0))

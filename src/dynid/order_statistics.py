"""Medians, quantiles and distinct values of arrays.

The functions of numpy with the same purpose are slower for few values, and load numpy's masked arrays, which takes
longer than computing all medians of a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def median(values: ArrayLike, axis: int | None = None) -> Any:
    """Return the median of values, or medians along an axis; nan if a value is nan or if there are none."""
    x = np.asarray(values)
    x = x.ravel() if axis is None else np.moveaxis(x, axis, 0)
    count = len(x)
    if not count:
        return np.full(x.shape[1:], np.nan)[()]
    ordered = np.partition(x, sorted({(count - 1) // 2, count // 2, count - 1}), axis=0)
    middle = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
    return middle if not np.isnan(ordered[-1]).any() else np.where(np.isnan(ordered[-1]), np.nan, middle)[()]


def quantile(values: ArrayLike, share: float) -> float:
    """Return the quantile of values (n,) at a share from 0 to 1, interpolated linearly; nan if a value is nan."""
    x = np.asarray(values, dtype=float).ravel()
    place = share * (len(x) - 1)
    low = min(int(place), len(x) - 1)
    high = min(low + 1, len(x) - 1)
    ordered = np.partition(x, sorted({low, high, len(x) - 1}))
    if np.isnan(ordered[-1]):
        return np.nan
    first, last, part = float(ordered[low]), float(ordered[high]), place - low
    return first + part * (last - first) if part < 0.5 else last - (1.0 - part) * (last - first)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array without nan, in ascending order."""
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate([np.ones(min(len(ordered), 1), dtype=bool), ordered[1:] != ordered[:-1]])]

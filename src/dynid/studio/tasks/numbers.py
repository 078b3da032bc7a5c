"""Conversion of numbers to JSON: None for values that are not finite, with limited digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def plain(values: ArrayLike | None, digits: int | None = None) -> Any:
    """Return an array or number as nested lists. digits: significant digits; default: all."""
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    kept = array if digits is None else _rounded(array, digits)
    if np.isfinite(kept).all():
        return kept.tolist()
    mixed = kept.astype(object)
    mixed[~np.isfinite(kept)] = None
    return mixed.tolist()


def _rounded(array: np.ndarray, digits: int) -> np.ndarray:
    size = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    if size == 0.0:
        return array
    return np.round(array, int(np.clip(digits - 1 - np.floor(np.log10(size)), -300, 300)))

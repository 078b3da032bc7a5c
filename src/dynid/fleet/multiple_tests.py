"""Control of the false discovery rate in multiple tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Bools


def discoveries(probabilities: ArrayLike, rate: float) -> Bools:
    """Return which of many tests (any shape) are significant at a false discovery rate `rate` (Benjamini and Hochberg
    1995). Non-finite entries were not tested."""
    p = np.asarray(probabilities, dtype=float)
    tested = np.isfinite(p)
    found = np.zeros(p.shape, dtype=np.bool_)
    ordered = np.sort(p[tested])
    if not len(ordered):
        return found
    below = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    if len(below):
        found[tested] = p[tested] <= ordered[below[-1]]
    return found

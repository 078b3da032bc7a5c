"""Many tests at once: the share of false ones among those that are called is kept small."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Bools


def discoveries(probabilities: ArrayLike, rate: float) -> Bools:
    """Which of many tests (any shape) are called different, so that of those called at most a share `rate` is false on
    average (Benjamini and Hochberg 1995). Entries that are not finite were not tested."""
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

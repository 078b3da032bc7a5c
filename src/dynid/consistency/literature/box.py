"""Limits on each parameter separately (Lomakin and Deutscher, s. VI), which do not ensure physical consistency."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.consistency.consistency import Consistency
from dynid.consistency.fit import Fit
from dynid.consistency.literature.shared import as_fit
from dynid.errors import ModelError
from dynid.regression import BaseParameters, Stacked


def fit_box(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, low: Array | None = None,
            high: Array | None = None) -> Fit:
    """Return the minimum of |R K theta - rho|^2 with low <= theta <= high.

    By default mass, diagonal inertias and friction are not negative.
    """
    from scipy.optimize import lsq_linear

    width = len(consistency.parameters)
    least = np.full(width, -np.inf)
    least[consistency.places[:, [0, 3, 5, 9]].ravel()] = 0.0
    least[consistency.parameters.positive] = 0.0
    lower = least if low is None else np.asarray(low, dtype=float)
    upper = np.full(width, np.inf) if high is None else np.asarray(high, dtype=float)
    if lower.shape != (width,) or upper.shape != (width,) or np.any(lower > upper):
        raise ModelError(f"box limits must be {width} lower values and as many upper ones that are not below them")
    matrix = stacked.r @ base.matrix
    size = 1.0 / np.maximum(np.linalg.norm(matrix, axis=0), 1e-9)
    found = lsq_linear(matrix * size, stacked.rho, (lower / size, upper / size), method="bvls" if width < 60 else "trf")
    return as_fit(consistency, base, stacked, found.x * size, int(found.nit))

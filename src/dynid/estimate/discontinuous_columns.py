"""Regressor columns that are (nearly) discontinuous where a velocity changes its sign, such as dry friction."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Bools
from dynid.model import LinearModel
from dynid.regression import BaseParameters
from dynid.regression.base import closed_postures


def dry_columns(model: LinearModel, base: BaseParameters) -> Bools:
    """Return a mask (base,) of regressor columns with dry friction. These are the columns that are not polynomials of
    the velocity up to degree 2."""
    rng = np.random.default_rng(0)
    _, dq, ddq = rng.normal(size=(3, 20, model.dof))
    q = closed_postures(model, 20, rng)
    # The third difference over equal steps of any quadratic is zero; that of a sign or a Stribeck curve is not.
    y = [model.regressor(q, s * dq, ddq)[:, :, base.independent] for s in (-3.0, -1.0, 1.0, 3.0)]
    third = np.abs(y[3] - 3.0 * y[2] + 3.0 * y[1] - y[0]).max(axis=(0, 1))
    size = np.max([np.abs(x).max(axis=(0, 1)) for x in y], axis=0)
    return third > 1e-9 * np.maximum(size, 1e-300)

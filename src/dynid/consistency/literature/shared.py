"""Conversion of a full vector to a `Fit`, and the start of nonlinear searches."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.consistency.consistency import Consistency
from dynid.consistency.fit import Fit
from dynid.regression import BaseParameters, Stacked
from dynid.robot import inertia as ten


def as_fit(consistency: Consistency, base: BaseParameters, stacked: Stacked, theta: Array, iterations: int) -> Fit:
    """Return a full parameter vector as a `Fit`, without active conditions, which the methods of the literature do not
    report."""
    beta = base.matrix @ theta
    return Fit(theta, beta, stacked.misfit(beta), stacked.rest, (), (), consistency.smallest_eigenvalue(theta), 0.0,
               iterations)


def start_values(consistency: Consistency, start: Array | None = None) -> Array:
    """Return the start (parameters,) of a nonlinear search: the given values, or spheres of 1 kg and 0.1 m and friction
    of 0.1."""
    if start is not None:
        return consistency.parameters.vector(start)
    theta = np.where(consistency.parameters.positive, 0.1, 0.0)
    for columns in consistency.bodies.values():
        theta[columns] = ten.from_central(1.0, np.zeros(3), 0.004 * np.eye(3))
    return theta

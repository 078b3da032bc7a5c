"""Least squares with every joint weighted by the size of its torque."""

from __future__ import annotations

import numpy as np

from dynid.estimate import Estimate, Problem, method
from dynid.estimate.least_squares import linear_estimate


@method("equal-power", "joints weighted by the size of their torque")
def equal_power(problem: Problem, *, least: float = 1e-3) -> Estimate:
    """least: smallest mean square of a joint's torque that is used for its weight, (N m)^2."""
    power = np.array([factor.power / max(factor.rows, 1) for factor in problem.regression.factors])
    return linear_estimate(problem, "equal-power", 1.0 / np.sqrt(np.maximum(power, least)))

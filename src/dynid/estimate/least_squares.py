"""Methods ols and wls: ordinary and weighted least squares."""

from __future__ import annotations

from typing import Any

from dynid.arrays import Array
from dynid.estimate.covariance import LinearFit
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights
from dynid.estimate.problem import Problem, method


def linear_estimate(problem: Problem, name: str, weights: Array | None, **more: Any) -> Estimate:
    """Return the least-squares estimate with given joint weights, with its diagnostics."""
    return LinearFit.from_problem(problem, weights, **more).estimate(name)


@method("ols", "ordinary least squares")
def ordinary_least_squares(problem: Problem) -> Estimate:
    """Return the ordinary least-squares estimate, with equal weights (Janot, Vandanjon, Gautier, eq. 15)."""
    return linear_estimate(problem, "ols", None)


@method("wls", "least squares weighted by each joint's own noise")
def weighted_least_squares(problem: Problem) -> Estimate:
    """Return the weighted least-squares estimate.

    Each joint's equations are divided by the standard deviation of its residual (Janot, Vandanjon, Gautier, eq. 20).
    """
    return linear_estimate(problem, "wls", joint_weights(problem.regression))

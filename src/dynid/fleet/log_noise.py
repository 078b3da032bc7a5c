"""Noise in the equations of one log, from the autocorrelation of its residuals, in a form that is
additive over logs."""

from __future__ import annotations

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.linear import joint_weights, solve
from dynid.regression import Equations, Regression
from dynid.regression.correlation import correlation


def log_noise(equations: Equations, regression: Regression) -> tuple[Array, ...] | None:
    """Return X_j' C_j X_j (k, k) of each joint's own columns; None for a log without excitation."""
    weights = joint_weights(regression)
    try:
        solution = solve(regression, regression.stack(weights))
    except NotPossibleError:
        return None
    found = correlation(equations, solution.beta, inverse=solution.inverse, weights=weights, threads=1)
    # Of very long logs only some stretches are looked at.
    return tuple(noise * (factor.rows / max(float(rows), 1.0))
                 for noise, factor, rows in zip(found.noise, regression.factors, found.rows, strict=True))

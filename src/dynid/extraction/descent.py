"""Levenberg-Marquardt descent from any full vector to one with the smallest violations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.extraction.conditions import Conditions

MAX_DESCENT_STEPS = 100  # of one descent
_CONVERGED_GAIN = 1e-6  # relative gain of a step below which the descent has arrived
_DAMPING_RANGE = (1e-12, 1e12)


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of base values, bounds and physics in the sum of squares."""

    base: float
    bounds: float
    physics: float


@dataclass(frozen=True, eq=False)
class Slope:
    """Variables of a descent: theta = start + spread y, each y in units of `unit`.

    The rows |matrix theta - values|^2 are added to the conditions.
    """

    spread: Array
    unit: Array
    matrix: Array
    values: Array


def descend(conditions: Conditions, theta: Array, slope: Slope, weights: Weights,
            goal: Conditions | None = None) -> tuple[Array, float]:
    """Return a full vector (parameters,) with the smallest sum of squares near the start, and that sum.

    goal: conditions at which the descent stops: zero is reached if none of them is violated.
    """
    spread = slope.spread * slope.unit
    damping = 1e-3
    residual, jacobian = _rows(conditions, theta, slope, spread, weights)
    now = float(residual @ residual)
    for _ in range(MAX_DESCENT_STEPS):
        if goal is not None and not goal.residuals(theta)[0].any():
            return theta, 0.0
        if now == 0.0 or not jacobian.shape[1]:
            break
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ residual
        before = now
        while damping < _DAMPING_RANGE[1]:
            # The unit matrix holds still what the broken conditions do not see.
            held = np.diag(np.diag(normal) + 1e-9)
            step = np.linalg.solve(normal + damping * held, -gradient)
            trial = theta + spread @ step
            new, slopes = _rows(conditions, trial, slope, spread, weights)
            value = float(new @ new)
            if value < now:
                theta, residual, jacobian, now = trial, new, slopes, value
                damping = max(0.2 * damping, _DAMPING_RANGE[0])
                break
            damping *= 5.0
        if damping >= _DAMPING_RANGE[1] or before - now <= _CONVERGED_GAIN * before:
            break
    return theta, now


def _rows(conditions: Conditions, theta: Array, slope: Slope, spread: Array, weights: Weights) -> tuple[Array, Array]:
    broken, rows, count = conditions.residuals(theta)
    weight = np.sqrt(np.where(np.arange(len(broken)) < count, weights.bounds, weights.physics))
    residual, jacobian = weight * broken, (weight[:, None] * rows) @ spread
    if len(slope.values):
        root = float(np.sqrt(weights.base))
        residual = np.concatenate([root * (slope.matrix @ theta - slope.values), residual])
        jacobian = np.vstack([root * (slope.matrix @ spread), jacobian])
    return residual, jacobian

"""Noise of each robot's joints, shrunk toward the fleet for robots with little data.

Parameters fitted to a short log absorb much of its noise, so its size and autocorrelation are poorly determined;
robots of one type with the same preparation have similar noise. With n independent residual rows (rows over the
correlation time, minus the joint's parameters) a robot's own level has weight n, that of the fleet _FLEET_LEVEL_ROWS.
The autocorrelation needs more rows: its matrix has weight n, and _FLAT_SPECTRUM_ROWS for white noise of the same level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.linear import joint_weights, solve
from dynid.fleet.robot_fold import RobotFold
from dynid.regression import Equations, Regression
from dynid.regression.autocorrelation import correlation

_FLEET_LEVEL_ROWS = 30.0  # independent rows that the fleet's level counts for
_FLAT_SPECTRUM_ROWS = 300.0  # those that a flat spectrum counts for
MIN_SINGULAR_RATIO = 1e-8  # share of the largest singular value below which a joint's data do not show a direction


def level_noise(robots: Sequence[RobotFold]) -> tuple[RobotFold, ...]:
    """Return the robots with the noise of their joints and weights, from their own residuals and the fleet."""
    variance, level, rows, width = (np.array(x) for x in zip(*(_levels(robot) for robot in robots), strict=True))
    spare = _spare(rows, variance, level, width)
    common = [np.array([_median(x[:, j], spare[:, j]) for j in range(x.shape[1])]) for x in (variance, level)]
    # With the fleet's own time of correlation, since that of a short log is cut off.
    time = common[1] / np.where(common[0] > 0, common[0], 1.0)
    spare = np.maximum(rows / np.maximum(time, 1.0) - width, 0.0)
    own = [(spare * x + _FLEET_LEVEL_ROWS * mean) / (spare + _FLEET_LEVEL_ROWS)
           for x, mean in zip((variance, level), common, strict=True)]
    return tuple(_with_noise(robot, *found) for robot, *found in zip(robots, *own, level, spare, strict=True))


def _levels(robot: RobotFold) -> tuple[Array, Array, Array, Array]:
    """Return for each joint (dof,): variance of a row, that variance times the correlation length in rows, rows, and
    parameters.

    The parameters are those that the rows determine.
    """
    found = []
    for j, factor in enumerate(robot.regression.factors):
        columns = factor.r[:, :-1]
        size = np.linalg.norm(columns, axis=0)
        left, singular, right = np.linalg.svd(columns / np.where(size > 0, size, 1.0), full_matrices=False)
        kept = singular > MIN_SINGULAR_RATIO * singular.max(initial=0.0)
        rest = factor.r[:, -1] - left[:, kept] @ (left[:, kept].T @ factor.r[:, -1])
        rank = int(kept.sum())
        variance = float(rest @ rest) / max(factor.rows - rank, 1)
        level = variance
        if robot.noise is not None and rank:
            half = (right[kept] / np.where(size > 0, size, 1.0)) / singular[kept, None]
            level = float(np.trace(half @ robot.noise[j] @ half.T)) / rank
        found.append((variance, level, factor.rows, rank))
    variance, level, rows, rank = np.array(found).T
    return variance, level, rows, rank


def _spare(rows: Array, variance: Array, level: Array, width: Array) -> Array:
    """Return the number of remaining independent rows (robots, dof)."""
    time = np.maximum(level / np.where(variance > 0, variance, 1.0), 1.0)
    return np.maximum(rows / time - width, 0.0)


def _median(values: Array, weights: Array) -> float:
    """Return the weighted median, or the plain median if all weights are zero."""
    if not np.any(weights > 0):
        return float(np.median(values))
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(share, 0.5 * share[-1])])


def _with_noise(robot: RobotFold, variance: Array, level: Array, measured: Array, spare: Array) -> RobotFold:
    """Return the robot with other variances (dof,) of its rows and another level (dof,) of its noise.

    measured (dof,): the present level of its noise, spare (dof,): independent rows from which it was estimated.
    """
    deviation = np.sqrt(np.maximum(variance, 1e-18 * variance.max(initial=0.0)))
    weights = 1.0 / deviation if np.all(deviation > 0) else robot.weights
    noise = []
    for j, factor in enumerate(robot.regression.factors):
        flat = level[j] * factor.r[:, :-1].T @ factor.r[:, :-1]
        share = spare[j] / (spare[j] + _FLAT_SPECTRUM_ROWS) if robot.noise is not None and measured[j] > 0 else 0.0
        own = flat if robot.noise is None else robot.noise[j] * (level[j] / measured[j] if measured[j] > 0 else 1.0)
        noise.append(share * own + (1.0 - share) * flat)
    return replace(robot, weights=weights, noise=tuple(noise))


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

"""Sum of the compressed logs of one robot: weighted equations, and noise that is regularised toward that of the fleet.

Parameters fitted to a short log absorb much of its noise, so its noise level and autocorrelation are poorly determined.
Robots of one type with the same preparation have similar noise. Let n be the number of independent residual rows (rows
over the correlation time, minus the joint's parameters). The noise level of a robot's own data has weight n, that of
the fleet _FLEET_LEVEL_ROWS. The autocorrelation needs more rows: its matrix has weight n, and white noise of the same
level has weight _FLAT_SPECTRUM_ROWS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.linear import Solution, joint_weights, solve
from dynid.regression import Equations, Regression, Stacked
from dynid.regression.autocorrelation import correlation
from dynid.regression.regression import Block
from dynid.workers import tree_sum

_FLEET_LEVEL_ROWS = 30.0  # weight of the fleet's noise level, in independent rows
_FLAT_SPECTRUM_ROWS = 300.0  # weight of a white spectrum, in independent rows
MIN_SINGULAR_RATIO = 1e-8  # share of the largest singular value: smaller directions are not determined by the data
_MIN_VARIANCE = 1e-10  # smallest variance of a direction, as a share of the largest


def level_noise(robots: Sequence[RobotFold]) -> tuple[RobotFold, ...]:
    """Return the robots with noise levels and weights of their joints, from their own and the fleet's residuals."""
    variance, level, rows, width = (np.array(x) for x in zip(*(_levels(robot) for robot in robots), strict=True))
    spare = _spare(rows, variance, level, width)
    common = [np.array([_median(x[:, j], spare[:, j]) for j in range(x.shape[1])]) for x in (variance, level)]
    spare = _spare(rows, common[0], common[1], width)  # with the fleet's correlation time: short logs underestimate it
    own = [(spare * x + _FLEET_LEVEL_ROWS * mean) / (spare + _FLEET_LEVEL_ROWS)
           for x, mean in zip((variance, level), common, strict=True)]
    return tuple(_with_noise(robot, *found) for robot, *found in zip(robots, *own, level, spare, strict=True))


def _levels(robot: RobotFold) -> tuple[Array, Array, Array, Array]:
    """Return for each joint (dof,): noise variance of a row, this variance times the correlation length in rows, the
    number of rows, and the number of parameters that the rows determine."""
    levels = []
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
        levels.append((variance, level, factor.rows, rank))
    variances, noise_levels, rows, ranks = np.array(levels).T
    return variances, noise_levels, rows, ranks


def _spare(rows: Array, variance: Array, level: Array, width: Array) -> Array:
    """Return the number of independent rows less that of parameters (robots, dof), which determines the noise."""
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
    """Return the robot with given variances (dof,) of its rows and given noise levels (dof,). measured: noise levels
    (dof,) of its own data. spare: independent rows (dof,) from which `measured` was estimated."""
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
    """Return X_j' C_j X_j (k, k) of each joint j, with its columns X_j and the covariance C_j of its autocorrelated
    residuals; None for a log without excitation."""
    weights = joint_weights(regression)
    try:
        solution = solve(regression, regression.stack(weights))
    except NotPossibleError:
        return None
    found = correlation(equations, solution.beta, inverse=solution.inverse, weights=weights, threads=1)
    # The autocorrelation is estimated from a part of a very long log, so the result is scaled to all rows.
    return tuple(noise * (factor.rows / max(float(rows), 1.0))
                 for noise, factor, rows in zip(found.noise, regression.factors, found.rows, strict=True))


@dataclass(frozen=True, eq=False)
class RobotFold:
    """Compressed data of one robot.

    Attributes:
        name: name of the robot.
        regression: compressed regression, one block per log.
        noise: X_j' C_j X_j of each joint's own columns, from autocorrelated residuals; None if not computed.
        weights: weights of the joints' equations (dof,): 1 / standard deviation of their noise.
    """

    name: str
    regression: Regression
    noise: tuple[Array, ...] | None
    weights: Array

    @staticmethod
    def from_folds(name: str, folds: Sequence[LogFold], weights: Array | None = None) -> RobotFold:
        """Return the sum of compressed logs, in the given order; weights (dof,): by default estimated from the data."""
        if not folds:
            raise ModelError(f"robot '{name}' has no usable log; correct its logs, or remove it")
        first = folds[0].regression
        blocks = [_as_block(fold.regression, k) for k, fold in enumerate(folds)]
        factors = tree_sum([block.factors for block in blocks], _added)
        sources = tuple(dict.fromkeys(source for fold in folds for source in fold.regression.sources))
        regression = Regression(first.base, factors, tuple(blocks), first.joints, sources)
        noise = None
        if all(fold.noise is not None for fold in folds):
            noise = tree_sum([fold.noise for fold in folds if fold.noise is not None], _added)
        return RobotFold(name, regression, noise, joint_weights(regression) if weights is None else weights)

    @property
    def summed(self) -> RobotFold:
        """Sum of all logs of the robot, whose size does not depend on their number."""
        return replace(self, regression=self.regression.joined(1))

    @cached_property
    def stacked(self) -> Stacked:
        """Weighted equations of all joints as one least-squares problem."""
        return self.regression.stack(self.weights)

    @cached_property
    def solution(self) -> Solution:
        """Least-squares solution from the data of this robot alone."""
        return solve(self.regression, self.stacked)

    @cached_property
    def score_covariance(self) -> Array:
        """Covariance (base, base) of the score sum_j w_j^2 X_j' e_j; for white noise if `noise` was not computed."""
        covariance = np.zeros((len(self.regression.base),) * 2)
        for j, factor in enumerate(self.regression.factors):
            own = np.ix_(factor.columns, factor.columns)
            if self.noise is None:
                variance = factor.misfit(self.solution.beta) / max(factor.rows - len(factor.columns), 1)
                noise = variance * factor.r[:, :-1].T @ factor.r[:, :-1]
            else:
                noise = self.noise[j]
            covariance[own] += self.weights[j] ** 4 * noise
        return covariance

    @cached_property
    def covariance(self) -> Array:
        """Covariance (base, base) of the least-squares solution; zero for parameters that are not excited."""
        inverse = self.solution.inverse
        return np.asarray(inverse @ self.score_covariance @ inverse)

    def information(self) -> tuple[Array, Array]:
        """Return a square root (base, k) of the information matrix, and root' theta_hat (k,), whose covariance is the
        identity.

        The information is root root' = C^-1 in the directions that the data excite, with C = H^-1 M H^-1, the normal
        matrix H and the covariance M of the score. These directions are determined by the singular values of the
        equations with columns scaled to unit length.
        """
        r = self.stacked.r
        size = np.linalg.norm(r, axis=0)
        scale = np.where(size > 0, size, 1.0)
        left, singular, right = np.linalg.svd(r / scale, full_matrices=False)
        kept = singular > MIN_SINGULAR_RATIO * singular.max(initial=0.0)
        left, singular, turn = left[:, kept], singular[kept], right[kept]
        # Errors along the kept directions: z = S^-1 U' e with covariance S^-1 (V' M V / S) S^-1, M in scaled columns.
        half = (turn / scale) / singular[:, None]
        covariance = half @ self.score_covariance @ half.T / np.outer(singular, singular)
        values = left.T @ self.stacked.rho / singular
        # z = V' (scale theta): whiten z.
        deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        sizes, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
        sizes = np.maximum(sizes, _MIN_VARIANCE * sizes.max(initial=0.0))
        whiten = (vectors / np.sqrt(sizes)).T / deviations
        return (whiten @ (turn * scale)).T, whiten @ values


def _as_block(regression: Regression, log: int) -> Block:
    whole = regression.joined(1).blocks[0]
    return replace(whole, spans=tuple(replace(span, log=log) for span in whole.spans))


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))

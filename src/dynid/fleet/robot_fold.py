"""Compressed logs of one robot as a sum: weighted equations, and the noise in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold
from dynid.errors import ModelError
from dynid.estimate.linear import Solution, joint_weights, solve
from dynid.regression import Regression, Stacked
from dynid.regression.regression import Block
from dynid.workers import tree_sum

MIN_SINGULAR_RATIO = 1e-8  # share of the largest singular value below which the data do not show a direction
_MIN_VARIANCE = 1e-10  # smallest variance of a direction, relative


@dataclass(frozen=True, eq=False)
class RobotFold:
    """Compressed data of one robot.

    Attributes:
        regression: their compressed regression, one block per log.
        noise: X_j' C_j X_j of each joint's own columns, from autocorrelated residuals; None if not computed.
        weights: (dof,), of the joints' equations, 1 / standard deviation of their noise.
    """

    name: str
    regression: Regression
    noise: tuple[Array, ...] | None
    weights: Array

    @staticmethod
    def of(name: str, folds: Sequence[LogFold], weights: Array | None = None) -> RobotFold:
        """Return the sum of some compressed logs, in the given order; weights: by default from the data themselves."""
        if not folds:
            raise ModelError(f"robot '{name}' has no log that could be used")
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
        """Return the sum of all logs of the robot, which is as small as one log."""
        return replace(self, regression=self.regression.joined(1))

    @cached_property
    def stacked(self) -> Stacked:
        """Weighted equations of all joints as one least-squares problem."""
        return self.regression.stack(self.weights)

    @cached_property
    def solution(self) -> Solution:
        """Least-squares solution of this robot alone."""
        return solve(self.regression, self.stacked)

    @cached_property
    def middle(self) -> Array:
        """Covariance (base, base) of the score sum_j w_j^2 X_j' e_j; for independent rows if the noise was not
        computed."""
        size = len(self.regression.base)
        found = np.zeros((size, size))
        for j, factor in enumerate(self.regression.factors):
            own = np.ix_(factor.columns, factor.columns)
            if self.noise is None:
                variance = factor.misfit(self.solution.beta) / max(factor.rows - len(factor.columns), 1)
                noise = variance * factor.r[:, :-1].T @ factor.r[:, :-1]
            else:
                noise = self.noise[j]
            found[own] += self.weights[j] ** 4 * noise
        return found

    @cached_property
    def covariance(self) -> Array:
        """Covariance (base, base) of `solution` under its noise; zeros for parameters that are not excited."""
        inverse = self.solution.inverse
        return np.asarray(inverse @ self.middle @ inverse)

    def information(self) -> tuple[Array, Array]:
        """Return a root (base, k) of the information of the robot's data, and root' theta_hat (k,), whose covariance is
        one.

        root root' = C^-1 in the directions that the data excite. With columns scaled to unit length, the singular
        values of the equations give these directions; C = H^-1 M H^-1 there.
        """
        r = self.stacked.r
        size = np.linalg.norm(r, axis=0)
        scale = np.where(size > 0, size, 1.0)
        left, singular, right = np.linalg.svd(r / scale, full_matrices=False)
        kept = singular > MIN_SINGULAR_RATIO * singular.max(initial=0.0)
        left, singular, turn = left[:, kept], singular[kept], right[kept]
        # Errors along the kept directions: z = S^-1 U' e with covariance S^-1 (V' M V / S) S^-1, M in scaled columns.
        half = (turn / scale) / singular[:, None]
        covariance = half @ self.middle @ half.T / np.outer(singular, singular)
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

"""Trials: a model fitted to some logs, and its cross-validation over blocks of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.lapack import least_squares
from dynid.model import LinearModel
from dynid.order_statistics import median
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression, TorqueEquations, fold
from dynid.regression.derived import CachedEquations
from dynid.validate.thresholds import NOISE_FLOOR

BLOCKS = 8
_MIN_DIRECTION = 1e-4  # directions with a smaller singular value, relative to the largest, are not used for predictions


@dataclass(frozen=True, eq=False)
class Trial:
    """Fit of a model to all data, and sums of squared residuals of each joint.

    Attributes:
        regression: the compressed data.
        beta: (base,), base parameters.
        noise: (dof,), standard deviations of the residuals, by which joints are weighted.
        inside, alone: (dof,), squared residuals in the fit, and of each joint fitted alone (nan for a given noise).
        by_block: (blocks, dof), squared residuals in cross-validation on each block.
        rows, power: (dof,), number of rows and squared torques.
    """

    regression: Regression
    beta: Array
    noise: Array
    inside: Array
    by_block: Array
    alone: Array
    rows: Array
    power: Array

    @property
    def left_out(self) -> Array:
        """Squared residuals in cross-validation (dof,)."""
        return np.asarray(self.by_block.sum(axis=0))

    @property
    def typical(self) -> Array:
        """Squared residuals in cross-validation (dof,) if every block had the error of the median block.

        So a block with a unique motion, which no fit to the other blocks predicts, has no effect.
        """
        return np.asarray(median(self.by_block, axis=0) * len(self.by_block))

    @property
    def score(self) -> float:
        """Mean squared residual in cross-validation on typical blocks, in units of the noise.

        Unpredictable blocks are excluded: a wrong hypothesis may extrapolate to such a block less badly than the right
        one.
        """
        return self._per_row(self.typical)

    @property
    def mean_score(self) -> float:
        """Mean squared residual in cross-validation over all blocks of time, in units of the noise. Unlike `score`, it
        includes blocks that no fit to the others predicts."""
        return self._per_row(self.left_out)

    @property
    def fit_score(self) -> float:
        """Mean squared residual of the fit, in units of the noise."""
        return self._per_row(self.inside)

    @property
    def own_score(self) -> float:
        """Mean squared residual of joints fitted alone, in units of the noise. Wrong torque scales of other joints have
        no effect on it."""
        return self._per_row(self.alone)

    def _per_row(self, squares: Array) -> float:
        return float(np.sum(squares / self.noise ** 2) / max(float(self.rows.sum()), 1.0))

    @property
    def block_scores(self) -> Array:
        """Sum of squared residuals on each block of time (blocks,), in units of the noise."""
        return np.asarray(np.sum(self.by_block / self.noise ** 2, axis=1))

    @property
    def mean_log_share(self) -> float:
        """Mean logarithm of the joints' relative squared residuals in cross-validation, which does not depend on the
        scales of the torques."""
        share = self.typical / np.where(self.power > 0, self.power, 1.0)
        return float(np.mean(np.log(share + NOISE_FLOOR ** 2)))


def solve_directions(matrix: Array, target: Array, share: float = _MIN_DIRECTION) -> Array:
    """Return the least-squares solution (k,) of matrix x = target, with columns (rows, k) scaled to unit norm; zero
    along directions with a singular value below a share of the largest."""
    size = np.linalg.norm(matrix, axis=0)
    scale = np.where(size > 0, size, 1.0)
    return least_squares(matrix / scale, target, share) / scale


def try_out(regression: Regression, noise: Array | None = None) -> Trial:
    """Fit a compressed regression with joints weighted by their noise (dof,); default: from fits of single joints."""
    factors = regression.factors
    # Residuals of single joints are only needed for the fit without a hypothesis, which defines the noise.
    alone = np.array([factor.least_misfit for factor in factors]) if noise is None else np.full(len(factors), np.nan)
    rows = np.array([factor.rows for factor in factors], dtype=float)
    power = np.array([factor.power for factor in factors])
    noise = _own_noise(alone, rows, power) if noise is None else noise
    weights = 1.0 / noise
    stacked = regression.stack(weights)
    beta = solve_directions(stacked.r, stacked.rho)
    by_block = regression.misfits(beta)[None]
    if len(regression.blocks) > 2:
        by_block = np.array([regression.only(b).misfits(solve_directions(fewer.r, fewer.rho))
                             for b, fewer in enumerate(regression.stack_without_each(weights))])
    return Trial(regression, beta, noise, regression.misfits(beta), by_block, alone, rows, power)


def _own_noise(alone: Array, rows: Array, power: Array) -> Array:
    """Return the standard deviation of the residual of each joint fitted alone (dof,), at least NOISE_FLOOR of its
    torque."""
    rows = np.maximum(rows, 1.0)
    size = np.sqrt(power / rows)
    noise = np.sqrt(alone / rows + (NOISE_FLOOR * size) ** 2)
    return np.where(noise > 0, noise, 1.0)


def fold_logs(model: LinearModel, logs: Sequence[Samples], base: BaseParameters | None = None,
              threads: int | None = None, blocks: int = BLOCKS) -> Regression:
    """Compress logs into triangular factors, one per joint and block of time."""
    equations = TorqueEquations.from_model(model, tuple(logs), base)
    return fold(CachedEquations(equations) if blocks > 1 else equations, blocks=blocks, threads=threads)


def posterior_weights(scores: Sequence[Array]) -> list[float]:
    """Return the posterior weights of hypotheses from their squared residuals on the same blocks (blocks,).

    The odds of a hypothesis against the best are the odds of predicting a further block better. They follow from the
    mean and standard error of the logarithmic residual ratio. Blocks are the observations, because rows of a block
    share model errors.
    """
    logs = [np.log(np.maximum(one, 1e-300)) for one in scores]
    best = min(logs, key=lambda one: float(one.mean()))
    odds = []
    for one in logs:
        excess = one - best
        count = len(excess)
        spread = float(excess.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
        if one is best:
            odds.append(1.0)
            continue
        t = float(excess.mean()) / max(spread, 1e-9)
        # Normal quantile of Student's t with count - 1 degrees of freedom (Wallace).
        z = math.sqrt(max(count - 1, 1) * math.log1p(t * t / max(count - 1, 1)))
        chance = 0.5 * math.erfc(z / math.sqrt(2.0))
        odds.append(chance / (1.0 - chance))
    return [one / sum(odds) for one in odds]


def contradiction(trial: Trial) -> tuple[float, float]:
    """Return how much worse one set of parameters for all joints predicts blocks of time than a separate fit of each
    joint.

    Returns:
        The ratio of their squared residuals in cross-validation (geometric mean over the blocks), and the posterior
        weight of one set for all joints. Both are 1 with fewer than three blocks.
    """
    regression = trial.regression
    if len(regression.blocks) < 3:
        return 1.0, 1.0
    alone = np.empty_like(trial.by_block)
    for b, fewer in enumerate(regression.without_each()):
        for j, (factor, own) in enumerate(zip(fewer.factors, regression.only(b).factors, strict=True)):
            beta = np.zeros(len(regression.base))
            beta[factor.columns] = solve_directions(factor.r[:, :-1], factor.r[:, -1])
            alone[b, j] = own.misfit(beta)
    together, separate = trial.block_scores, np.sum(alone / trial.noise ** 2, axis=1)
    ratio = np.log(np.maximum(together, 1e-300)) - np.log(np.maximum(separate, 1e-300))
    return float(np.exp(ratio.mean())), posterior_weights([together, separate])[0]

"""Covariance of estimates under autocorrelated noise, by a given method or the best one that the data allow.

- "correlated": from the autocorrelation of the residuals, which needs the data (`dynid.regression.autocorrelation`).
- "blocks": from the variation between blocks of time of a compressed regression. With H^-1 = L L', H = sum w^2 X'X, and
  G_b = L' H_b L and s_b the contributions of block b to H and to the score, delta_b = L (I - G_b)^-1/2 L' s_b, and C =
  sum_b delta_b delta_b'. The fit absorbs a part G_b of a block's noise; the root restores it, so that C is unbiased for
  independent rows. Intervals use Student's t, with the degrees of freedom of this sum (Bell and McCaffrey 2002, "bias
  reduced linearization").
- "independent": with too few blocks, as if rows were independent. This covariance is too small by an unknown factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.linear import Solution, solve, stack_enough
from dynid.estimate.motion_errors import MotionShift, motion_shift
from dynid.estimate.nominal_errors import penalty_noise_matrix
from dynid.estimate.problem import Problem
from dynid.estimate.uncertainty import CovType, OnDemand, Uncertainty
from dynid.findings import Note
from dynid.order_statistics import median
from dynid.recording import Recording
from dynid.regression import BaseParameters, Equations, Factor, Regression, fold
from dynid.regression.autocorrelation import Correlation, correlation
from dynid.regression.base import dry_columns
from dynid.regression.derived import Selected

FEWEST_BLOCKS = 5  # smallest number of blocks for a covariance
_MATERIAL_SHARE = 0.7  # share of the total standard error: as much as all other noise
_MAX_NAMED_PARAMETERS = 6  # largest number of parameters that a note lists
REVERSAL_SHARE = 0.05  # of a joint's top speed: below it, the sign of a velocity from positions may be wrong
STEP_ROWS = 20_000  # rows of a log that are searched for encoder steps
REPEATED_SHARE = 0.01  # share of repeated positions near a reversal, more than noise without encoder steps causes
REVERSAL_LEFT = 0.3  # share of the information on a direction that rows away from reversals must contain
_MIN_REMAINING_SHARE = 1e-9  # share of the information on a direction that must remain without a block


@dataclass(frozen=True, eq=False)
class ScoreNoise:
    """Noise of the weighted equations, from which the covariance H^-1 C H^-1 of the estimate follows.

    Attributes:
        score_covariance: covariance C of the score (base, base).
        cov_type: type of the covariance.
        degrees_of_freedom: degrees of freedom of Student's t, infinite for a normal distribution.
        parameter_freedoms: those of each parameter's variance (base,), if `degrees_of_freedom` is their median.
        correlation: autocorrelation of the residuals, if it was computed.
        motion: bias by errors of the measured motion, whose square is included in `score_covariance`, or None.
    """

    score_covariance: Array
    cov_type: CovType
    degrees_of_freedom: float = np.inf
    correlation: Correlation | None = None
    motion: MotionShift | None = None
    parameter_freedoms: Array | None = None

    def covariance(self, solution: Solution) -> Array:
        """Return the covariance (base, base) of a least-squares solution under this noise.

        It is computed as a product of a root with its transpose. H^-1 C H^-1 itself loses its small eigenvalues to
        rounding if H is badly conditioned, and is then no covariance.
        """
        known, half = solution.excited, solution.half
        values, vectors = np.linalg.eigh(half.T @ self.score_covariance[np.ix_(known, known)] @ half)
        root = half @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        covariance = np.zeros_like(solution.inverse)
        covariance[np.ix_(known, known)] = root @ root.T
        return covariance

    def plus(self, matrix: Array) -> ScoreNoise:
        """Return the noise with a matrix (base, base) added to the covariance of the score."""
        return replace(self, score_covariance=self.score_covariance + matrix)

    def shifted(self, motion: MotionShift | None) -> ScoreNoise:
        """Return the noise, increased by the squared bias that errors of the measured motion cause."""
        if motion is None:
            return self
        both = motion if self.motion is None else replace(motion, shift=np.hypot(self.motion.shift, motion.shift))
        score_covariance = self.score_covariance + np.outer(motion.score, motion.score)
        if motion.slow is not None:
            score_covariance += np.outer(motion.slow, motion.slow)
        return replace(self, score_covariance=score_covariance, motion=both)

    def notes(self, base: BaseParameters, covariance: Array) -> tuple[Note, ...]:
        """Return notes on an estimate with this noise and the given covariance (base, base)."""
        if self.motion is None:
            return ()
        shift, std = np.abs(self.motion.shift[:len(base)]), np.sqrt(np.maximum(np.diag(covariance), 0.0))
        far = np.flatnonzero(shift > _MATERIAL_SHARE * std)
        far = far[np.argsort(-shift[far] / np.maximum(std[far], 1e-300))]  # a standard error may be zero
        if not len(far):
            return ()
        more = ", ..." if len(far) > _MAX_NAMED_PARAMETERS else ""
        names = ", ".join(base.names[k] for k in far[:_MAX_NAMED_PARAMETERS]) + more
        text = (f"noise of the positions biases {names} more than the noise of the torques does, toward less Coulomb "
                "friction and inertia; the standard errors include this bias, the values are not corrected; method "
                "'iv' is less affected")
        return (Note("noise-in-motion", text, {"shift": tuple(float(x) for x in self.motion.shift[far])}),)


def noise(problem: Problem, solution: Solution, weights: Array | None, *, equations: Equations | None = None,
          regression: Regression | None = None, influence: Callable[[Array], Array] | None = None,
          cov_type: CovType | None = None) -> ScoreNoise:
    """Return the noise of the equations of a weighted estimate by `cov_type`, by default the best possible type.

    Prior rows have their stated noise. The bias by errors of the motion counts as a standard deviation: its sign is
    uncertain.

    Args:
        problem: the identification problem.
        solution: solution of its weighted equations.
        weights: weights of the joints (dof,), or None.
        equations, regression: the solved equations and their compressed form; by default those of the problem.
        influence: function for the residuals of a robust estimate, see `correlation`.
        cov_type: type of the covariance, or None.
    """
    regression = problem.regression if regression is None else regression
    scale = np.ones(regression.dof) if weights is None else weights
    chosen = _possible(problem, regression, cov_type)
    if chosen == "correlated":
        rows = problem.equations if equations is None else equations
        seen = correlation(rows, solution.beta, inverse=solution.inverse, weights=scale, influence=influence,
                           threads=problem.threads)
        noise_matrix = correlated_noise_matrix(regression, seen, scale)
        found = ScoreNoise(noise_matrix, "correlated", seen.degrees_of_freedom, seen)
        if equations is None:
            found = found.shifted(motion_shift(problem, solution, scale))
            if found.notes(problem.base, found.covariance(solution)):  # the noise of the positions matters
                found = found.shifted(reversal_shift(problem, solution, scale))
    elif chosen == "blocks":
        found = block_noise(regression, solution, scale)
    else:
        found = ScoreNoise(naive_noise_matrix(regression, solution, scale), "independent")
    if np.any(regression.base.ridge > 0):
        found = found.plus(penalty_noise_matrix(regression, solution, weights, found.score_covariance))
    if regression.prior is None:
        return found
    prior = regression.prior_weight(weights) ** 2 * regression.prior.matrix
    return found.plus(prior.T @ prior)


def residual_noise(problem: Problem, beta: Array) -> tuple[Array, Array]:
    """Return the standard deviation (dof,) of the torque residuals of base values beta (base,), and the share (dof,) of
    equations that count as independent, since residuals are autocorrelated."""
    deviation = problem.regression.residual_std(beta)
    deviation = np.maximum(deviation, max(1e-9 * float(deviation.max()), 1e-12))  # zero without noise
    found = correlation(problem.equations, beta, matrices=False, threads=problem.threads)
    return deviation, found.effective / np.maximum(found.rows, 1.0)


def _possible(problem: Problem, regression: Regression, cov_type: CovType | None) -> CovType:
    """Return the requested covariance type, or the best available one; raise an error if the data do not allow it."""
    blocks = sum(block.rows > 0 for block in regression.blocks)
    if cov_type is None:
        return "correlated" if problem.data else "blocks" if blocks >= FEWEST_BLOCKS else "independent"
    if cov_type == "correlated" and not problem.data:
        raise NotPossibleError("cov_type 'correlated' needs the samples, but only the compressed regression is "
                               "available", "use cov_type 'blocks' or 'independent'", code="cov-type-needs-data")
    if cov_type == "blocks" and blocks < FEWEST_BLOCKS:
        raise NotPossibleError(f"cov_type 'blocks' needs {FEWEST_BLOCKS} blocks of time or more, but the equations of "
                               f"this method have {blocks}", "use cov_type 'correlated' or 'independent'",
                               code="too-few-blocks")
    if cov_type not in ("correlated", "blocks", "independent"):
        raise NotPossibleError(f"cov_type '{cov_type}' is not possible for this method",
                               "use 'correlated', 'blocks' or 'independent'")
    return cov_type


def correlated_noise_matrix(regression: Regression, found: Correlation, weights: Array) -> Array:
    """Return sum_j w_j^4 X_j' C_j X_j (base, base), C_j the covariance of joint j's residuals, plus common noise."""
    score_covariance = np.zeros((len(regression.base), len(regression.base)))
    for j, factor in enumerate(regression.factors):
        columns = found.columns[j]
        more = factor.rows / max(found.rows[j], 1.0)  # only parts of very long data are used
        score_covariance[np.ix_(columns, columns)] += weights[j] ** 4 * more * found.noise[j]
    for (i, j), noise in found.shared.items():
        more = regression.factors[i].rows / max(found.rows[i], 1.0)
        both = (weights[i] * weights[j]) ** 2 * more * noise
        score_covariance[np.ix_(found.columns[i], found.columns[j])] += both
        score_covariance[np.ix_(found.columns[j], found.columns[i])] += both.T
    if found.common is not None:
        more = sum(factor.rows for factor in regression.factors) / max(float(found.rows.sum()), 1.0)
        score_covariance += more * found.common
    return score_covariance


def block_noise(regression: Regression, solution: Solution, weights: Array) -> ScoreNoise:
    """Return the noise of the equations, estimated from the variation between blocks of time."""
    kept, known, half = [block for block in regression.blocks if block.rows], solution.excited, solution.half
    size = int(known.sum())
    moves, own = np.zeros((2, len(kept), size))
    spread = np.zeros((len(kept), size, size))
    for k, block in enumerate(kept):
        normal, score = _share(block.factors, solution, weights)
        # The eigenvalues of L' H_b L are the shares that the fit absorbs of the block's noise.
        absorbed, turn = np.linalg.eigh(half.T @ normal[np.ix_(known, known)] @ half)
        absorbed = np.maximum(absorbed, 0.0)
        left = np.sqrt(np.maximum(1.0 - absorbed, _MIN_REMAINING_SHARE))
        moves[k] = half @ (turn @ ((turn.T @ (half.T @ score[known])) / left))
        seen = turn.T @ half.T
        own[k], spread[k] = absorbed @ seen ** 2, turn @ ((absorbed / left)[:, None] * seen)
    covariance, parameter_freedoms = np.zeros_like(solution.inverse), np.ones(len(known))
    covariance[np.ix_(known, known)] = moves.T @ moves
    parameter_freedoms[known] = _block_freedoms(own, spread)
    h = np.linalg.pinv(solution.inverse, hermitian=True, rcond=1e-15)
    return ScoreNoise(h @ covariance @ h, "blocks", float(median(parameter_freedoms[known])),
                      parameter_freedoms=parameter_freedoms)


def _block_freedoms(own: Array, spread: Array) -> Array:
    """Return the degrees of freedom (excited,) of the variances from blocks. A chi-square distribution with these
    degrees has the same mean and variance for independent rows (Satterthwaite).

    own (blocks, excited): variance of each block's contribution. spread (blocks, excited, excited): terms by which the
    contributions of two blocks are correlated, because both use residuals of one fit.
    """
    by = spread.transpose(2, 0, 1)
    between = -(by @ by.transpose(0, 2, 1))
    each = np.arange(len(own))
    between[:, each, each] = own.T
    variance = np.sum(between ** 2, axis=(1, 2))  # zero for a column of a joint that does not move
    return np.asarray(np.maximum(own.sum(axis=0) ** 2 / np.where(variance > 0.0, variance, np.inf), 1.0))


def has_encoder_steps(recordings: Sequence[Recording]) -> bool:
    """Return whether positions repeat from row to row, because the encoder is coarse relative to the motion."""
    return any(float(np.mean(np.diff(np.asarray(log.q[:STEP_ROWS]), axis=0) == 0.0)) > REPEATED_SHARE
               for log in recordings if len(log) > 1)


def reversal_shift(problem: Problem, solution: Solution, weights: Array) -> MotionShift | None:
    """Return the bias of the estimate by samples near velocity reversals; None for a model without dry friction.

    Near a reversal the sign of a velocity is uncertain, mostly with coarse encoders in a closed loop. Dry friction is
    then too small and viscous friction too large. The bias is the difference to the estimate without these rows; it
    counts as a standard deviation, since a part of it is noise.
    """
    if problem.filtered is not None or not has_encoder_steps(problem.recordings) \
            or not dry_columns(problem.model, problem.base).any():
        return None
    known, half = solution.excited, solution.half
    top = np.max([np.abs(samples.dq).max(axis=0, initial=0.0) for samples in problem.data], axis=0)
    fast = Selected(problem.equations, tuple(np.abs(samples.dq) >= REVERSAL_SHARE * top for samples in problem.data))
    normal, score = _share(fold(fast, threads=problem.threads).factors, solution, weights)
    # Relative to H: a direction that only slow rows determine has no bias estimate.
    left, turn = np.linalg.eigh(half.T @ normal[np.ix_(known, known)] @ half)
    seen = left > REVERSAL_LEFT
    moved = turn[:, seen] @ ((turn[:, seen].T @ (half.T @ score[known])) / left[seen])
    shift = np.zeros(len(score))
    shift[known] = half @ moved
    return MotionShift(shift, np.linalg.pinv(solution.inverse, hermitian=True, rcond=1e-15) @ shift)


def _share(factors: Sequence[Factor], solution: Solution, weights: Array) -> tuple[Array, Array]:
    """Return the contributions of some equations to the normal matrix (base, base) and to the score (base,)."""
    size = len(solution.beta)
    normal, score = np.zeros((size, size)), np.zeros(size)
    for weight, factor in zip(weights, factors, strict=True):
        own = weight * factor.r[:, :-1]
        normal[np.ix_(factor.columns, factor.columns)] += own.T @ own
        score[factor.columns] += own.T @ (weight * factor.r[:, -1] - own @ solution.beta[factor.columns])
    return normal, score


def naive_noise_matrix(regression: Regression, solution: Solution, weights: Array,
                       variances: Sequence[float] | None = None) -> Array:
    """Return sum_j w_j^4 c_j X_j' X_j (base, base), the covariance of the score for independent rows.

    c_j is the residual variance of joint j, or the given one.
    """
    if variances is None:
        variances = [factor.misfit(solution.beta) / max(factor.rows - len(factor.columns), 1)
                     for factor in regression.factors]
    return regression.normal(weights ** 2 * np.sqrt(variances))


def naive_covariance(regression: Regression, solution: Solution, weights: Array,
                     variances: Sequence[float] | None = None) -> Array:
    """Return the covariance (base, base) for independent rows (Janot, Vandanjon, Gautier, eq. 16-18)."""
    return solution.inverse @ naive_noise_matrix(regression, solution, weights, variances) @ solution.inverse


def textbook_covariance(regression: Regression, solution: Solution, weights: Array) -> Array:
    """Return the textbook covariance s^2 (W'W)^-1 (base, base) with the weighted rows W of all joints (Ardiani, eq.
    1.52-1.53). s^2 is the squared residual divided by the number of rows minus that of identified parameters."""
    squared = weights ** 2 @ regression.misfits(solution.beta)
    variance = squared / max(sum(regression.rows) - int(np.sum(solution.identified)), 1)
    return np.asarray(variance * solution.inverse)


def inflation(covariance: Array, naive: Array, identified: Bools) -> float:
    """Return the factor by which standard errors exceed those for independent rows, as a median over the parameters."""
    honest, simple = (np.sqrt(np.maximum(np.diag(matrix), 0.0)) for matrix in (covariance, naive))
    known = identified & (simple > 0)
    return float(median(honest[known] / simple[known])) if known.any() else 1.0


def diagnostics(regression: Regression, solution: Solution, weights: Array | None, **more: Any) -> Diagnostics:
    """Return the diagnostics of a linear fit with joint weights (dof,), and `more` facts of the method by name."""
    weights = np.ones(regression.dof) if weights is None else weights
    return Diagnostics.from_fit(regression, solution.beta, rank=solution.rank, condition=solution.condition,
                                weights=weights.tolist(),
                                confounded={k: list(v) for k, v in solution.confounded.items()}, **more)


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A solution of weighted equations, with a function that computes its noise on demand.

    Attributes:
        problem: the identification problem.
        solution: solution of its equations.
        weights: weights of the joints (dof,), or None.
        noise: computes the noise by a named type, None for the best available.
        naive: returns the covariance (base, base) for independent rows; by default that of weighted least squares.
        facts: facts of the method, for the diagnostics.
    """

    problem: Problem
    solution: Solution
    weights: Array | None
    noise: Callable[[CovType | None], ScoreNoise]
    naive: Callable[[ScoreNoise], Array] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_problem(problem: Problem, weights: Array | None, **facts: Any) -> LinearFit:
        """Return least squares on the problem's own equations, with joint weights (dof,) or None for equal ones."""
        solution = solve(problem.regression, stack_enough(problem.regression, weights))
        return LinearFit.from_solution(problem, solution, weights, **facts)

    @staticmethod
    def from_solution(problem: Problem, solution: Solution, weights: Array | None, **facts: Any) -> LinearFit:
        """Return the fit that belongs to a least-squares solution of the problem's own equations."""
        return LinearFit(problem, solution, weights, cache(
            lambda cov_type: noise(problem, solution, weights, cov_type=cov_type)), facts=facts)

    def estimate(self, name: str) -> Estimate:
        """Return the fit as an `Estimate` with the given method name."""
        return Estimate(name, self.problem.model, self.problem.base, self.solution.beta, self.solution.identified,
                        OnDemand(self.uncertainty),
                        diagnostics=diagnostics(self.problem.regression, self.solution, self.weights, **self.facts))

    def uncertainty(self, cov_type: CovType | None, *, covariance: Array | None = None,
                    notes: Sequence[Note] = (), **facts: Any) -> Uncertainty:
        """Return the uncertainty of the fit with a covariance of the given type, None for the best type. covariance
        (base, base): by default that of the solution under its noise. notes, facts: further notes and facts."""
        found, regression = self.noise(cov_type), self.problem.regression
        if covariance is None:
            covariance = found.covariance(self.solution)
        if found.cov_type != "independent":
            weights = np.ones(regression.dof) if self.weights is None else self.weights
            naive = naive_covariance(regression, self.solution, weights) if self.naive is None else self.naive(found)
            plain = textbook_covariance(regression, self.solution, weights) if self.naive is None else naive
            facts["textbook_std"] = np.sqrt(np.maximum(np.diag(plain), 0.0)).tolist()
            facts["std_inflation"] = inflation(covariance, naive,
                                                     self.solution.identified & (regression.base.ridge == 0))
        seen = found.correlation
        if seen is not None:
            rows = np.array(regression.rows, dtype=float)
            facts |= {"effective_rows_per_joint": (seen.effective / np.maximum(seen.rows, 1.0) * rows).tolist(),
                      "autocovariance": [c[:200].tolist() for c in seen.autocovariance],
                      "autocovariance_rate": seen.rate}
        return Uncertainty(covariance, found.cov_type, found.degrees_of_freedom,
                           (*found.notes(self.problem.base, covariance), *notes), facts)

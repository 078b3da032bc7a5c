"""Essential parameters: the base parameters that matter for the torques of this motion (Ardiani, s. 1.3.2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from dynid.arrays import Array, Ints
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.covariance import noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.least_squares import linear_estimate
from dynid.estimate.linear import joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem
from dynid.regression import Stacked

CRITERIA = ("deviation", "f-test")
ROWS = ("effective", "all")


@dataclass(frozen=True)
class Removal:
    """One base parameter left out: its relative deviation in percent when it was, infinite if the data did not excite
    it, and the F-statistic of the model without it and all before it against the full one."""

    name: str
    relative_std: float
    statistic: float


@dataclass(frozen=True, eq=False)
class Essential:
    """The base parameters that matter. kept, removed (in order), the estimate of the kept ones alone, and the relative
    error in percent with all base parameters and with the kept ones."""

    kept: tuple[str, ...]
    removed: tuple[Removal, ...]
    estimate: Estimate
    error_before: float
    error_after: float


def essential(problem: Problem, *, criterion: str = "deviation", threshold: float = 30.0, alpha: float = 0.05,
              rows: str = "effective", weights: Array | None = None) -> Essential:
    """Leave out base parameters one at a time, the one of largest relative deviation first, and estimate the rest anew.

    criterion "deviation": until none has a relative deviation above `threshold` percent. "f-test": as long as the model
    without them is not worse at significance alpha, F = (|e_r|^2 - |e|^2) / |e|^2 (r - b) / (b - b_r) (Ardiani, eq.
    1.35), with r the effective number of rows, or all of them as the document has it when rows = "all".
    weights (dof,): of the joints, default as in `wls`. All but the last estimate is algebra on the folded factor, with
    the noise that the full model leaves; the last states deviations by its own residuals.
    """
    from scipy.special import fdtri

    if criterion not in CRITERIA:
        raise ModelError(f"essential parameters are found by {' or '.join(CRITERIA)}, not by '{criterion}'")
    if rows not in ROWS:
        raise ModelError(f"the F-test counts {' or '.join(ROWS)} rows, not '{rows}'")
    if not (threshold > 0 and 0 < alpha < 1):
        raise ModelError(f"a threshold is above zero and alpha between 0 and 1, got {threshold} and {alpha}")
    regression, names = problem.regression, problem.base.names
    weights = joint_weights(regression) if weights is None else np.asarray(weights, dtype=float)
    stacked = stack_enough(regression, weights)
    full = solve(regression, stacked)
    noisy = noise(problem, full, weights)
    found = noisy.correlation
    count = float(sum(regression.rows))
    if found is not None and rows == "effective":
        share = found.effective / np.maximum(found.rows, 1.0)
        count = float(np.sum(share * np.array(regression.rows)))
    first = np.flatnonzero(full.excited).astype(np.int64)
    free = count - len(first)
    if criterion == "f-test" and free < 1:
        raise NotPossibleError(f"{count:.0f} {rows} rows are too few for an F-test of {len(first)} base parameters; "
                               "record a longer motion")
    removed = [Removal(names[c], np.inf, 0.0) for c in np.flatnonzero(~full.excited)]
    kept, rest = first, stacked.select(first).rest
    for fewer, c, deviation, misfit in _one_at_a_time(stacked, noisy.middle, first):
        gone = len(first) - len(fewer)
        statistic = float((misfit - rest) / rest * free / gone) if rest > 0 else np.inf
        if criterion == "deviation" and deviation <= threshold:
            break
        if criterion == "f-test" and statistic >= fdtri(gone, free, 1.0 - alpha):
            break
        kept = fewer
        removed.append(Removal(names[c], deviation, statistic))
    reduced = replace(problem, regression=regression.select(kept))
    before = regression.relative_error(full.beta)
    facts = {"criterion": criterion, "removed": [removal.name for removal in removed], "relative_error_before": before}
    estimate = linear_estimate(reduced, "wls", weights, essential=facts)
    return Essential(estimate.names, tuple(removed), estimate, before, estimate.diagnostics.relative_error)


def _one_at_a_time(stacked: Stacked, middle: Array, kept: Ints) -> Iterator[tuple[Ints, int, float, float]]:
    """Removals until one parameter is left: those left, the one removed, its relative deviation before, the misfit
    after."""
    while len(kept) > 1:
        part = stacked.select(kept)
        scale = np.linalg.norm(part.r, axis=0)
        half = solve_triangular(part.r / scale, np.eye(len(kept))) / scale[:, None]
        inverse, beta = half @ half.T, half @ part.rho
        deviation = np.sqrt(np.diag(inverse @ middle[np.ix_(kept, kept)] @ inverse))
        size = np.abs(beta)
        relative = np.where(size > 0, 100.0 * deviation / np.where(size > 0, size, 1.0), np.inf)
        worst = int(np.argmax(relative))
        gone, kept = int(kept[worst]), np.delete(kept, worst)
        yield kept, gone, float(relative[worst]), stacked.select(kept).rest

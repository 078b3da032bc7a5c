"""Cross-validation over the fold's blocks of time: fit without one, test on it, for each in turn.

The estimates without one block also say how far parameters move when the data change: the jackknife over blocks gives
a deviation of every parameter that knows nothing of noise models, to hold the stated ones against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.recording import Samples
from dynid.regression import Regression
from dynid.threads import side_by_side
from dynid.validate.reconstruct import reconstruct
from dynid.validate.words import plain


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """How an estimate fares on the blocks it has not seen.

    blocks: which of the fold's blocks (from 0) were tested; errors (blocks,): relative error on each, percent, and
    errors_per_joint (blocks, dof), nan where a joint has no torque there. fit_errors (blocks,): on the data it was
    fitted to. mean, spread: of errors, spread the deviation between blocks. values (blocks, base): estimates without
    each block, nan where not identified. jackknife (base,): deviation from their spread; stated (base,): of the
    estimate from all data; ratio: jackknife over stated, in the median over the parameters, None where undefined.
    """

    method: str
    names: tuple[str, ...]
    joints: tuple[str, ...]
    blocks: tuple[int, ...]
    errors: Array
    errors_per_joint: Array
    fit_errors: Array
    mean: float
    spread: float
    values: Array
    jackknife: Array
    stated: Array | None
    ratio: float | None

    def to_dict(self) -> dict[str, Any]:
        return plain({key: value for key, value in vars(self).items() if key != "values"} | {"worst": self.worst})

    @property
    def worst(self) -> int:
        """The block (from 0) with the largest error."""
        return self.blocks[int(np.nanargmax(self.errors))]


def cross_validate(problem: Problem, name: str = "wls", options: Mapping[str, Any] | None = None, *,
                   estimate: Estimate | None = None) -> CrossValidation:
    """Fit without each block and test on it.

    A method that works on the factors alone is given no samples and is fast. One that looks at the samples again
    gets them with the block's rows left out, where the samples at hand are those that were folded.
    estimate: from all data, whose deviations are compared with the spread; it is computed when not given.
    """
    regression = problem.regression
    tested = [k for k, block in enumerate(regression.blocks) if any(factor.rows for factor in block)]
    if len(tested) < 2:
        raise NotPossibleError("cross-validation needs two blocks of time or more; fold the data with blocks=10")
    fits = side_by_side(lambda k: _without(problem, k, name, options), tested, threads=1)
    found = [_errors(problem, fit, k) for k, fit in zip(tested, fits, strict=True)]
    errors, joints = np.array([total for total, _ in found]), np.array([each for _, each in found])
    own = np.array([float(fit.diagnostics.get("relative_error", np.nan)) for fit in fits])
    if estimate is None:
        estimate = identify(problem, name, options)
    values = np.array([np.where(fit.identified, fit.values, np.nan) for fit in fits])
    jackknife, stated, ratio = _spread(values, estimate)
    known = errors[np.isfinite(errors)]
    if not len(known):
        raise NotPossibleError("no block of time has a torque to test on: all are zero")
    return CrossValidation(name, fits[0].names, regression.joints, tuple(tested), errors, joints, own,
                           float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else 0.0, values, jackknife,
                           stated, ratio)


def _spread(values: Array, estimate: Estimate) -> tuple[Array, Array | None, float | None]:
    """Jackknife deviations over the blocks (base,), the stated ones, and the median of their ratio."""
    count = len(values)
    with np.errstate(invalid="ignore"):
        jackknife = np.sqrt((count - 1) / count * np.sum((values - values.mean(axis=0)) ** 2, axis=0))
    stated = estimate.std
    if stated.shape != jackknife.shape:
        return jackknife, None, None
    both = np.isfinite(stated) & (stated > 0) & np.isfinite(jackknife)
    return jackknife, stated, float(np.median(jackknife[both] / stated[both])) if both.any() else None


def _without(problem: Problem, k: int, name: str, options: Mapping[str, Any] | None) -> Estimate:
    fewer = problem.regression.without(k)
    try:
        return identify(replace(problem, regression=fewer, samples=(), progress=None), name, options)
    except ModelError:
        rest = _masked(problem, k, inside=False)
        if rest is None:
            raise
        return identify(replace(problem, regression=fewer, samples=rest, progress=None), name, options)


def _errors(problem: Problem, fit: Estimate, k: int) -> tuple[float, list[float]]:
    """Relative error on block k, in all and per joint."""
    block = problem.regression.only(k)
    if fit.model is problem.model and fit.base is problem.base:
        power = [factor.power > 0 for factor in block.factors]
        each = np.where(power, block.relative_errors(fit.values), np.nan)
        return block.relative_error(fit.values) if any(power) else np.nan, each.tolist()
    # A method may change the model's shape (separable least squares): then only the samples can tell.
    own = _masked(problem, k, inside=True)
    if own is None:
        raise NotPossibleError(f"method '{fit.method}' changes the model, so cross-validation needs the samples of "
                               "the fold, and only a part of them is at hand")
    found = reconstruct(fit, own)
    return found.relative_error, list(found.relative_error_per_joint)


def _masked(problem: Problem, k: int, inside: bool) -> tuple[Samples, ...] | None:
    """The samples with only block k's rows kept, or all but those; None where they are not what was folded."""
    count = len(problem.regression.blocks)
    parts = tuple(replace(part, keep=part.keep & (_block(part, k, count) == inside)[:, None])
                  for part in problem.samples)
    wanted = problem.regression.only(k) if inside else problem.regression.without(k)
    return parts if parts and _rows(parts) == sum(wanted.rows) else None


def _block(samples: Samples, k: int, count: int) -> Bools:
    """Which rows (samples,) lie in block k, as `dynid.regression.fold.pieces` cuts them."""
    n = len(samples)
    row = np.arange(n)
    return (row >= n * k // count) & (row < n * (k + 1) // count)


def _rows(parts: Sequence[Samples]) -> int:
    """Equations that a fold of these samples would count."""
    total = 0
    for part in parts:
        step = 1 if part.decimation is None else part.decimation.total
        total += sum(int(part.keep[start:stop:step].sum()) for start, stop in part.segments)
    return total


def block_times(samples: Sequence[Samples], regression: Regression, k: int) -> tuple[float, float] | None:
    """From when to when (s) block k reaches, where one log was folded."""
    if len(samples) != 1:
        return None
    rows = np.flatnonzero(_block(samples[0], k, len(regression.blocks)))
    return (float(samples[0].t[rows[0]]), float(samples[0].t[rows[-1]])) if len(rows) else None

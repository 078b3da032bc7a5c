"""Cross-validation over blocks of time: fit without one block and test on it, for each block in turn.

The estimates without one block also show how parameters vary with the data: the jackknife over blocks gives standard
errors without a noise model, for comparison with the stated ones. With several logs, each is also predicted from the
others, which shows whether the robot changed between logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.block_cross_validation import block_errors, cross_validate_blocks, fit_without
from dynid.estimate.choice import AUTO
from dynid.estimate.torque_errors import with_torque_errors
from dynid.order_statistics import median
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.regression import Regression


@dataclass(frozen=True)
class LogError:
    """Relative errors of one of several logs, percent: predicted from the other logs (`from_others`), and each of its
    blocks predicted from its other blocks (`from_itself`)."""

    source: str
    from_others: float
    from_itself: float

    @output_fields(own_fields=True)
    def to_dict(self) -> dict[str, Any]:
        return plain(vars(self))


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Errors of an estimate in cross-validation over blocks of time.

    Attributes:
        method: name of the method.
        names, joints: names of the base parameters and of the joints.
        blocks: indices of the tested blocks, from 0.
        where: time interval of each block and its log.
        errors: (blocks,), relative torque error on each block, percent.
        errors_per_joint: (blocks, dof), percent, nan for a joint without torque.
        fit_errors: (blocks,), relative error on the fitted data, percent.
        mean, spread: mean and standard deviation of `errors`.
        values: (blocks, base), estimates without each block, nan if not identified.
        jackknife, stated: (base,), standard errors from the variation between blocks, and those of the estimate from
            all data.
        ratio: median of jackknife over stated, None if undefined.
        logs: each log predicted from the others, if there are several.
    """

    method: str
    names: tuple[str, ...]
    joints: tuple[str, ...]
    blocks: tuple[int, ...]
    where: tuple[str, ...]
    errors: Array
    errors_per_joint: Array
    fit_errors: Array
    mean: float
    spread: float
    values: Array
    jackknife: Array
    stated: Array | None
    ratio: float | None
    logs: tuple[LogError, ...] = ()

    @output_fields(own_fields=True, without=("values",), worst=int, logs=list[LogError])
    def to_dict(self) -> dict[str, Any]:
        facts = {key: value for key, value in vars(self).items() if key not in ("values", "logs")}
        return plain(facts | {"worst": self.worst}) | {"logs": [one.to_dict() for one in self.logs]}

    @property
    def worst(self) -> int:
        """Index of the block of time with the largest error, from 0."""
        return self.blocks[int(np.nanargmax(self.errors))]


def cross_validate(problem: Problem, method: str = "wls", *, estimate: Estimate | None = None,
                   options: Mapping[str, Any] | None = None) -> CrossValidation:
    """Cross-validate a method over blocks of time: fit without each block and test on it.

    `estimate` is the estimate from all data, whose standard errors are compared with the variation between blocks; it
    is computed if not given. Method "auto" is replaced by the method that it chooses from all data.
    """
    if estimate is None:
        estimate = identify(problem, method=method, **dict(options or {}))
    found = estimate.left_out
    if method == AUTO:
        method, options = estimate.method, estimate.provenance.get("options", {})
    if found is None or found.method != method:
        found = cross_validate_blocks(problem, method, options, estimate)
    own = np.array([with_torque_errors(fit, problem).diagnostics.relative_error for fit in found.fits])
    values = np.array([np.where(fit.identified, fit.values, np.nan) for fit in found.fits])
    jackknife, stated, ratio = _spread(values, estimate)
    regression = problem.regression
    joints = problem.torques.regression.joints
    return CrossValidation(method, found.fits[0].names, joints, found.blocks,
                           tuple(str(regression.blocks[k]) for k in found.blocks), found.errors, found.errors_per_joint,
                           own, found.mean, found.spread, values, jackknife, stated, ratio,
                           _logs(problem, method, found.options))


def _logs(problem: Problem, method: str, options: Mapping[str, Any]) -> tuple[LogError, ...]:
    """Return the errors of each log predicted from the others and itself; empty if a log alone has too few data."""
    whole = replace(problem, regression=problem.regression.by_log())
    if len(whole.regression.blocks) < 2 or any(len(block.spans) > 1 for block in problem.regression.blocks):
        return ()
    found = []
    try:
        for k, block in enumerate(whole.regression.blocks):
            span = block.spans[0]
            others = block_errors(whole, fit_without(whole, whole.regression.without(k), k, method, options), k)[0]
            own = _alone(problem, span.log)
            blocks = [block_errors(own, fit_without(own, fewer, b, method, options), b)[0]
                      for b, fewer in enumerate(own.regression.without_each())]
            found.append(LogError(span.source, others, float(np.nanmean(blocks))))
    except (NotPossibleError, ModelError):
        return ()  # a log alone, or without one of its blocks, does not determine the parameters
    return tuple(found)


def _alone(problem: Problem, log: int) -> Problem:
    """Return the problem with one of several logs alone; log: its index."""
    blocks = [block for block in problem.regression.blocks if block.spans[0].log == log]
    regression = replace(Regression.from_blocks(problem.base, blocks, problem.regression.joints),
                         prior=problem.regression.prior)
    data = tuple(part if k == log else replace(part, keep=np.zeros_like(part.keep))
                 for k, part in zip(problem.places, problem.data, strict=True))
    return replace(problem, regression=regression, data=data)


def _spread(values: Array, estimate: Estimate) -> tuple[Array, Array | None, float | None]:
    """Return jackknife standard errors over the blocks (base,), the stated ones, and the median of their ratio."""
    count = len(values)
    with np.errstate(invalid="ignore"):
        jackknife = np.sqrt((count - 1) / count * np.sum((values - values.mean(axis=0)) ** 2, axis=0))
    stated = estimate.std
    if stated.shape != jackknife.shape:
        return jackknife, None, None
    both = np.isfinite(stated) & (stated > 0) & np.isfinite(jackknife)
    return jackknife, stated, float(median(jackknife[both] / stated[both])) if both.any() else None

"""Cross-validation over blocks of time: fit without one block and test on it, for each block in turn.

The estimates without one block also show how parameters vary with the data: the jackknife over blocks gives standard
errors without a noise model, for comparison with the stated ones. With several logs, each is also predicted from the
others, which shows whether the robot changed between logs.

A walking robot may lift a foot once in a short log. Without that block, the other blocks leave some combination of
parameters nearly undetermined, and their prediction of the block is arbitrary, although all data together determine it.
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
from dynid.estimate.problem import Data
from dynid.estimate.torque_errors import with_torque_errors
from dynid.findings import Finding
from dynid.model import LinearModel
from dynid.order_statistics import median
from dynid.plain import PlainFields
from dynid.quantities import percent_text
from dynid.regression import Regression
from dynid.threads import one_blas_thread
from dynid.validate.words import listed, sentence

# Expected prediction error of a block due to the uncertainty of parameters from the other blocks, in standard
# deviations of the noise: below one for blocks that repeat each other, tens for a block with a unique motion.
UNREPEATED_ERROR = 3.0
UNUSUAL_ERROR = 3.0  # a block whose error exceeds this multiple of the median error is examined


@dataclass(frozen=True)
class LogError(PlainFields):
    """Relative errors of one of several logs, percent: predicted from the other logs (`from_others`), and each of its
    blocks predicted from its other blocks (`from_itself`)."""

    source: str
    from_others: float
    from_itself: float


@dataclass(frozen=True, eq=False)
class CrossValidation(PlainFields, also=("worst",), without=("values",)):
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

    @property
    def worst(self) -> int:
        """Index of the block of time with the largest error, from 0."""
        return self.blocks[int(np.nanargmax(self.errors))]


@one_blas_thread()
def cross_validate(problem: Problem | LinearModel, data: Data | str | None = None, method: str = "wls", *,
                   estimate: Estimate | None = None, options: Mapping[str, Any] | None = None) -> CrossValidation:
    """Cross-validate a method over blocks of time: fit without each block and test on it.

    Args:
        problem: a model, or a `Problem` with model and data.
        data: one log or several, if the problem is a model, see `identify`. After a `Problem`, the method.
        method: the method; "auto" is replaced by the method that it chooses from all data.
        estimate: estimate from all data, whose standard errors are compared with the variation between blocks; by
            default it is computed.
        options: options of the method.
    """
    logs, method = (None, data) if isinstance(data, str) else (data, method)
    if not isinstance(problem, Problem):
        if logs is None or not hasattr(problem, "regressor"):
            raise ModelError("cross_validate needs a model and its data, or a Problem",
                             "write cross_validate(model, samples) or cross_validate(Problem.from_model(model, "
                             "samples))", "no-data")
        problem = Problem.from_model(problem, logs)
    elif logs is not None:
        raise ModelError("a Problem already contains its data", "write cross_validate(problem)", "data-given-twice")
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
    """Return the problem with the data of one of several logs alone; log: index of that log."""
    blocks = [block for block in problem.regression.blocks if block.spans[0].log == log]
    regression = replace(Regression.from_blocks(problem.base, blocks, problem.regression.joints),
                         prior=problem.regression.prior)
    data = tuple(part if k == log else replace(part, keep=np.zeros_like(part.keep))
                 for k, part in zip(problem.places, problem.data, strict=True))
    return replace(problem, regression=regression, data=data)


def _spread(values: Array, estimate: Estimate) -> tuple[Array, Array | None, float | None]:
    """Return jackknife standard errors over the blocks (base,), the standard errors of the estimate from all data
    (base,), and the median of their ratio; None for the last two if they are not defined."""
    count = len(values)
    with np.errstate(invalid="ignore"):
        jackknife = np.sqrt((count - 1) / count * np.sum((values - values.mean(axis=0)) ** 2, axis=0))
    stated = estimate.std
    if stated.shape != jackknife.shape:
        return jackknife, None, None
    both = np.isfinite(stated) & (stated > 0) & np.isfinite(jackknife)
    return jackknife, stated, float(median(jackknife[both] / stated[both])) if both.any() else None


@dataclass(frozen=True, eq=False)
class UnrepeatedBlocks:
    """Blocks of time with a motion that no other block has, so that the other blocks do not determine the parameters.

    Attributes:
        numbers: indices in `CrossValidation.blocks`, from 0.
        expected: (blocks,), expected error of each prediction by the uncertainty of the parameters alone, in standard
            deviations of the noise.
        error: mean error of the other blocks, percent.
    """

    numbers: tuple[int, ...]
    expected: tuple[float, ...]
    error: float


def unrepeated_blocks(problem: Problem, estimate: Estimate, cross: CrossValidation) -> UnrepeatedBlocks | None:
    """Return the blocks of time with unusual errors whose motion no other block has; None if there are none."""
    errors = np.where(np.isfinite(cross.errors), cross.errors, 0.0)
    unusual = np.flatnonzero(errors > UNUSUAL_ERROR * np.median(errors))
    regression = problem.regression
    if not len(unusual) or estimate.values.shape != (len(regression.base),):
        return None
    rows = np.maximum(np.array(regression.rows, dtype=float), 1.0)
    noise = np.sqrt(regression.misfits(estimate.values) / rows)
    weights = np.divide(1.0, noise, out=np.zeros_like(noise), where=noise > 0.0)
    found = {}
    for number in map(int, unusual):
        block = cross.blocks[number]
        rest = regression.without(block).stack(weights).r
        own = regression.only(block).stack(weights, prior=False).r
        found[number] = _expected_error(rest, own) / np.sqrt(regression.blocks[block].rows)
    numbers = tuple(number for number, expected in found.items() if expected > UNREPEATED_ERROR)
    others = np.delete(cross.errors, numbers)
    if not numbers or len(others) < len(errors) / 2:
        return None
    return UnrepeatedBlocks(numbers, tuple(float(found[number]) for number in numbers), float(np.nanmean(others)))


def _expected_error(rest: Array, own: Array) -> float:
    """Return the expected prediction error |own rest^-1| for the triangular factors of a block (own) and of the other
    blocks (rest); infinite if rest is singular."""
    diagonal = np.abs(np.diag(rest))
    if diagonal.min() <= 1e-13 * diagonal.max():
        return float("inf")
    return float(np.linalg.norm(np.linalg.solve(rest.T, own.T)))


def unrepeated_finding(problem: Problem, cross: CrossValidation, found: UnrepeatedBlocks) -> Finding:
    """Return the finding on blocks of time with a motion that no other block has."""
    where = [cross.where[number] for number in found.numbers]
    spans = [span for number in found.numbers for span in problem.regression.blocks[cross.blocks[number]].spans]
    times = listed([f"{span.start:.3g} to {span.stop:.3g} s" for span in spans], 4)
    worst = float(np.nanmax(cross.errors[list(found.numbers)]))
    return Finding(
        "unrepeated-block", "not-excited", "warning", sentence(
            f"{listed(where, 4)} has motion or contacts that the rest of the log does not repeat: without it, the "
            f"parameters are so uncertain that its torques are predicted with an error of {worst:.0f} %. The model "
            f"from all data is not affected, and the error over the other blocks is {percent_text(found.error)}. "
            "Record a longer log in which each foot is lifted several times, or validate with another log: "
            "--validate LOG"),
        f"motion without repetition ({times})", logs=tuple(dict.fromkeys(span.source for span in spans)),
        evidence={"blocks": tuple(float(cross.blocks[number] + 1) for number in found.numbers),
                  "expected": found.expected, "error": found.error, "mean": cross.mean})

"""Cross-validation over blocks of time: fits without each block in turn, and their errors on the excluded block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.problem import Problem, find_method, identify
from dynid.recording import Samples
from dynid.regression import Block, Regression
from dynid.regression.residual_series import torque_sums
from dynid.threads import side_by_side


@dataclass(frozen=True, eq=False)
class BlockCrossValidation:
    """Fits of one method without each block of time in turn, and their prediction errors on the excluded block.

    Attributes:
        method, options: name and options of the method.
        blocks: indices of the excluded blocks of the regression, from 0.
        errors, errors_per_joint: relative errors (blocks,) and (blocks, dof), percent; nan if there is no torque.
        fits: the estimates without each block.
    """

    method: str
    options: Mapping[str, Any]
    blocks: tuple[int, ...]
    errors: Array
    errors_per_joint: Array
    fits: tuple[Estimate, ...]

    @property
    def known(self) -> Array:
        """Cross-validation errors, percent, of the blocks in which torques are not all zero."""
        return self.errors[np.isfinite(self.errors)]

    @property
    def mean(self) -> float:
        """Mean cross-validation error over the blocks, percent."""
        return float(self.known.mean())

    @property
    def spread(self) -> float:
        """Standard deviation of the errors over the blocks, percent; zero if there is only one block."""
        return float(self.known.std(ddof=1)) if len(self.known) > 1 else 0.0


def cross_validate_blocks(problem: Problem, method: str, options: Mapping[str, Any] | None = None,
                   estimate: Estimate | None = None) -> BlockCrossValidation:
    """Fit a method without each block of time in turn, and predict the torques of the excluded block.

    A method that works on compressed regressions receives those of the other blocks; one that needs the samples
    receives those outside the block. `estimate`: estimate from all data, which may have a faster `Estimate.refit`.
    """
    problem = problem.whole() if "data" in find_method(method).needs else problem
    regression = problem.regression
    chosen = {name: value for name, value in (options or {}).items() if name != "cov_type"}  # for prediction only
    blocks = tuple(k for k, block in enumerate(regression.blocks) if block.rows)
    if len(blocks) < 2:
        raise NotPossibleError("cross-validation needs at least two blocks of time; use blocks=10",
                               code="too-few-blocks")
    others = regression.without_each()
    fits = side_by_side(lambda k: (_refitted(estimate, others[k]) if estimate is not None else None)
                        or fit_without(problem, others[k], k, method, chosen), blocks, threads=1)
    found = [block_errors(problem, fit, k) for k, fit in zip(blocks, fits, strict=True)]
    errors, each = np.array([total for total, _ in found]), np.array([joints for _, joints in found])
    if not np.isfinite(errors).any():
        raise NotPossibleError("no block of time has a torque to test on, because all torques are zero; check the "
                               "torque columns")
    return BlockCrossValidation(method, chosen, blocks, errors, each, tuple(fits))


def _refitted(estimate: Estimate, fewer: Regression) -> Estimate | None:
    """Return the estimate without a block of time by the faster `refit` of its method; None if this is not possible."""
    if estimate.refit is None or estimate.base is not fewer.base:
        return None
    try:
        theta = estimate.refit(fewer)
    except NotPossibleError:
        return None
    values = estimate.base.matrix @ theta
    return replace(estimate, values=values, theta=theta, refit=None, iterations=(),
                   diagnostics=Diagnostics.from_fit(fewer, values, rank=estimate.diagnostics.rank))


def fit_without(problem: Problem, fewer: Regression, k: int, method: str, options: Mapping[str, Any]) -> Estimate:
    """Return the estimate from all data except block k of time."""
    needs = find_method(method).needs
    if needs & {"data", "excerpt"}:
        less = replace(problem, regression=fewer, data=masked(problem, problem.regression.blocks[k], inside=False))
    else:  # one block: standard errors are not needed
        less = replace(problem, regression=fewer if "blocks" in needs else fewer.joined(1), data=(), recordings=())
    return identify(replace(less, dataset=None), method=method, **options)


def block_errors(problem: Problem, fit: Estimate, k: int) -> tuple[float, list[float]]:
    """Return the relative torque error of a fit on block k, percent, in total and per joint; nan for zero torques."""
    block = problem.regression.only(k)
    if fit.model is problem.model and fit.base is problem.base and problem.filtered is None:
        power, misfit = np.array([factor.power for factor in block.factors]), block.misfits(fit.values)
    else:  # torque errors of filtered rows, or of a model whose shape was estimated, need the data
        data = masked(problem, problem.regression.blocks[k], inside=True)
        sums = np.sum([torque_sums(one) for one in fit.residuals(data)], axis=0)
        power, misfit = sums[:, 0], sums[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(power > 0, 100.0 * np.sqrt(misfit / power), np.nan)
        total = 100.0 * np.sqrt(misfit.sum() / power.sum()) if power.sum() > 0 else np.nan
    return float(total), each.tolist()


def masked(problem: Problem, block: Block, inside: bool) -> tuple[Samples, ...]:
    """Return samples in which only the rows of one block of time are valid (inside=True), or only all other rows."""
    parts = []
    for log, part in zip(problem.places, problem.data, strict=True):
        rows = np.zeros(len(part), dtype=bool)
        for span in block.spans:
            if span.log == log:
                rows |= (part.t >= span.start) & (part.t <= span.stop)
        parts.append(replace(part, keep=part.keep & (rows == inside)[:, None]))
    return tuple(parts)

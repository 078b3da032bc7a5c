"""Influence of the cut-off frequency: changes of parameters and predicted torques at half and twice its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import DynidError, NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.estimate.cutoff_folds import CutoffFolds
from dynid.estimate.problem import find_method
from dynid.output_fields import map_of, output_fields, record
from dynid.plain import plain
from dynid.regression import Regression

_CUTOFF_FACTORS = (0.5, 2.0)
_FALLBACK = "wls"  # replaces methods that read the data again, which would take too long


_CHANGES = record("CutoffChanges", values=list[float | None], standard_errors=list[float | None],
                  percent=list[float | None])


@dataclass(frozen=True, eq=False)
class CutoffDependence:
    """An estimate at its cut-off and at other cut-offs, for the same model and rows.

    Attributes:
        method: name of the method of all estimates.
        cutoff: cut-off frequency of the estimate, Hz.
        others: (k,), half and twice that frequency if the log allows it, Hz.
        names: (base,), names of the base parameters.
        values: (base,), values of the base parameters at `cutoff`.
        std: (base,), standard errors at the cut-off; infinite if a parameter is not identified.
        at: (k, base), values at the other cut-offs: `values` plus the change. If the rate allows it, changes are
            computed from means of neighbouring rows.
        torques: (k,), change of predicted torques in percent of the measured ones.
        error: relative torque error of the fit, percent.
        refused: (k,), mask of cut-offs that cross-validation found worse, or that are too close to the motion's band;
            these are not used as evidence.
        is_chosen: whether the cut-off was chosen from the data, not given.
        std_at: returns standard errors (base,) at one of the other cut-offs (Hz), including the noise there. They are
            computed on demand, because this takes as long as the estimate.
    """

    method: str
    cutoff: float
    others: Array
    names: tuple[str, ...]
    values: Array
    std: Array
    at: Array
    torques: Array
    error: float
    refused: Bools
    std_at: Callable[[float], Array] = field(repr=False)
    is_chosen: bool = False

    @property
    def standard_errors(self) -> Array:
        """Changes (k, base) of the parameters in standard errors; zero for parameters that are not identified."""
        return np.where(self.std > 0, (self.at - self.values) / np.where(self.std > 0, self.std, 1.0), 0.0)

    @property
    def percent(self) -> Array:
        """Changes (k, base) of the parameters at other cut-offs, percent of the value."""
        size = np.abs(self.values)
        return np.where(size > 0, 100.0 * (self.at - self.values) / np.where(size > 0, size, 1.0), 0.0)

    @output_fields(method=str, cutoff=float | None, others=list[float | None], torque_change=list[float | None],
                   relative_error=float | None, refused=list[bool], parameters=map_of(_CHANGES))
    def to_dict(self) -> dict[str, Any]:
        moves = {name: plain({"values": self.at[:, i], "standard_errors": self.standard_errors[:, i],
                              "percent": self.percent[:, i]})
                 for i, name in enumerate(self.names) if np.isfinite(self.std[i])}
        return plain({"method": self.method, "cutoff": self.cutoff, "others": self.others,
                      "torque_change": self.torques, "relative_error": self.error,
                      "refused": self.refused}) | {"parameters": moves}


def cutoff_dependence(problem: Problem, estimate: Estimate, *, options: Mapping[str, Any] | None = None,
                      choice: CutoffChoice | None = None) -> CutoffDependence | None:
    """Return the estimates of the same model at half and twice the cut-off of its data.

    Args:
        problem: problem of the estimate.
        estimate: estimate at the cut-off of the problem's data.
        options: options of the estimate's method.
        choice: choice of the cut-off, whose compressed data are reused if its model was the same.

    Returns:
        None if the data have no cut-off or the recordings are not available.
    """
    cutoff = problem.data[0].settings.get("cutoff") if problem.data else None
    if not isinstance(cutoff, float | int) or not problem.recordings or estimate.base is not problem.base:
        return None
    known = find_method(estimate.method)
    method, chosen = (_FALLBACK, {}) if known.needs & {"data", "excerpt"} or known.gives & {"shape"} else (
        estimate.method, {name: value for name, value in (options or {}).items() if name in known.options})
    folds = CutoffFolds.like(problem) if choice is None else choice.folds.of_problem(problem)
    finest = _CUTOFF_FACTORS[-1] * cutoff
    whole = folds.whole and folds.averaged_by(finest) == 1
    here = problem.regression if whole else folds.at(float(cutoff), finest)
    own = method == estimate.method
    solve = partial(_values, problem, method, chosen, estimate.refit if own else None)
    start = estimate.values if whole and own else None if here is None else solve(here)
    found = [(share * cutoff, moved) for share in _CUTOFF_FACTORS
             if (fold := folds.at(share * cutoff, finest)) is not None
             and (moved := solve(fold)) is not None]
    if here is None or start is None or not found:
        return None
    values = estimate.values if own else start
    others, at = np.array([f for f, _ in found]), np.array([values + (moved - start) for _, moved in found])
    power = sum(factor.power for factor in here.factors)
    torques = [100.0 * np.sqrt(_change(here, moved - values) / power) if power > 0 else 0.0 for moved in at]
    refused = np.array([choice is not None and _refused(choice, other) for other in others])
    return CutoffDependence(method, float(cutoff), others, estimate.names, values, estimate.std, at, np.array(torques),
                            here.relative_error(start), refused, partial(_std, problem, folds, method, chosen),
                            choice is not None)


def _refused(choice: CutoffChoice, cutoff: float) -> bool:
    """Whether cross-validation found a cut-off (Hz) worse than the best, or excluded it because it removes motion."""
    tried = choice.tried
    return bool(len(tried)) and (cutoff < 0.99 * float(tried.min()) or bool(np.any(np.isclose(tried, cutoff)
                                                                                   & ~choice.alike)))


def _values(problem: Problem, method: str, options: Mapping[str, Any], refit: Callable[[Regression], Array] | None,
            fold: Regression) -> Array | None:
    """Return base parameters (base,) by a method from a compressed regression; None if the method needs more data.

    refit: fast solver of the estimate, see `Estimate`.
    """
    if refit is not None:
        with suppress(NotPossibleError):
            return problem.base.matrix @ refit(replace(fold, base=problem.base))
    needs = find_method(method).needs
    # Standard errors are not needed here, so one block is enough unless the method itself cross-validates.
    regression = fold if "blocks" in needs else fold.joined(1)
    part = replace(problem, regression=replace(regression, base=problem.base), data=(), recordings=(), dataset=None)
    try:
        return identify(part, method=method, **options).values
    except DynidError:
        return None


def _std(problem: Problem, folds: CutoffFolds, method: str, options: Mapping[str, Any], cutoff: float) -> Array:
    """Return standard errors (base,) of a method at a cut-off (Hz), infinite for parameters that are not identified;
    zero if the method fails."""
    fold = folds.at(cutoff, np.inf)  # all rows, because their autocorrelation affects the standard errors
    assert fold is not None  # the values at this cut-off were computed before
    part = replace(problem, regression=replace(fold, base=problem.base), data=folds.samples(cutoff),
                   recordings=tuple(log.recording for log in folds.logs), dataset=None)
    try:
        return identify(part, method=method, **options).std
    except DynidError:
        return np.zeros(len(problem.base))


def _change(fold: Regression, move: Array) -> float:
    """Return the sum of squares of the torque change along the motion for a change of base parameters (base,)."""
    return sum(float(np.sum((factor.r[:, :-1] @ move[factor.columns]) ** 2)) for factor in fold.factors)

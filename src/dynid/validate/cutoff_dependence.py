"""CutoffDependence: how far parameters and predicted torques move at half and at twice the cut-off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import DynidError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.estimate.cutoff_folds import CutoffFolds
from dynid.estimate.problem import find_method
from dynid.output_fields import map_of, output_fields, record
from dynid.plain import plain
from dynid.regression import Regression

_SIDES = (0.5, 2.0)
_FALLBACK = "wls"  # where the method itself looks at the data again, which would take too long


_CHANGES = record("CutoffChanges", values=list[float | None], deviations=list[float | None],
                  percent=list[float | None])


@dataclass(frozen=True, eq=False)
class CutoffDependence:
    """An estimate at its cut-off and at others beside it, all of the same model and the same rows.

    Attributes:
        method: that was solved at each.
        cutoff: Hz, of the estimate.
        others: (k,) Hz, half and twice that, as far as the log allows.
        names: (base,) of the base parameters.
        values: (base,) at the cut-off.
        std: (base,) standard errors at the cut-off; infinite where a parameter is not identified.
        at: (k, base) values at the others: those at the cut-off plus the change. Where the rate allows it, changes are
            found from means of neighbouring rows.
        torques: (k,) percent, how much predicted torques change, of the measured ones.
        error: percent, of the fit.
        refused: (k,) others that cross-validation found worse when the cut-off was chosen, or that are so near to the
            motion's band that they were not tried; they are no reason for doubt.
        std_at: standard errors (base,) that the method states at one of the others (Hz). They include the noise there,
            take as long as the estimate, and are computed when asked for.
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

    @property
    def deviations(self) -> Array:
        """Moves (k, base) in units of the stated deviation; zero for what is not identified."""
        return np.where(self.std > 0, (self.at - self.values) / np.where(self.std > 0, self.std, 1.0), 0.0)

    @property
    def percent(self) -> Array:
        """Moves (k, base) in percent of the value."""
        size = np.abs(self.values)
        return np.where(size > 0, 100.0 * (self.at - self.values) / np.where(size > 0, size, 1.0), 0.0)

    @output_fields(method=str, cutoff=float | None, others=list[float | None], torque_change=list[float | None],
                   relative_error=float | None, refused=list[bool], parameters=map_of(_CHANGES))
    def to_dict(self) -> dict[str, Any]:
        moves = {name: plain({"values": self.at[:, i], "deviations": self.deviations[:, i],
                              "percent": self.percent[:, i]})
                 for i, name in enumerate(self.names) if np.isfinite(self.std[i])}
        return plain({"method": self.method, "cutoff": self.cutoff, "others": self.others,
                      "torque_change": self.torques, "relative_error": self.error,
                      "refused": self.refused}) | {"parameters": moves}


def cutoff_dependence(problem: Problem, estimate: Estimate, *, options: Mapping[str, Any] | None = None,
                      choice: CutoffChoice | None = None) -> CutoffDependence | None:
    """Return the estimate of the same model at half and at twice the cut-off of its data.

    Args:
        problem: that the estimate solves.
        estimate: at the cut-off of the problem's data.
        options: of the estimate's method.
        choice: of the cut-off, whose compressed data serve again where its model was the same.

    Returns:
        None where the data have no cut-off or the recordings are not at hand.
    """
    cutoff = problem.data[0].settings.get("cutoff") if problem.data else None
    if not isinstance(cutoff, float | int) or not problem.recordings or estimate.base is not problem.base:
        return None
    known = find_method(estimate.method)
    method, chosen = (_FALLBACK, {}) if known.needs & {"data", "excerpt"} or known.gives & {"shape"} else (
        estimate.method, {name: value for name, value in (options or {}).items() if name in known.options})
    folds = CutoffFolds.like(problem) if choice is None else choice.folds.of_problem(problem)
    finest = _SIDES[-1] * cutoff
    whole = folds.whole and folds.averaged_by(finest) == 1
    here = problem.regression if whole else folds.at(float(cutoff), finest)
    own = method == estimate.method
    start = estimate.values if whole and own else None if here is None else _values(problem, here, method, chosen)
    found = [(share * cutoff, moved) for share in _SIDES if (fold := folds.at(share * cutoff, finest)) is not None
             and (moved := _values(problem, fold, method, chosen)) is not None]
    if here is None or start is None or not found:
        return None
    values = estimate.values if own else start
    others, at = np.array([f for f, _ in found]), np.array([values + (moved - start) for _, moved in found])
    power = sum(factor.power for factor in here.factors)
    torques = [100.0 * np.sqrt(_change(here, moved - values) / power) if power > 0 else 0.0 for moved in at]
    refused = np.array([choice is not None and _refused(choice, other) for other in others])
    return CutoffDependence(method, float(cutoff), others, estimate.names, values, estimate.std, at, np.array(torques),
                            here.relative_error(start), refused, partial(_std, problem, folds, method, chosen))


def _refused(choice: CutoffChoice, cutoff: float) -> bool:
    """Whether a choice found a cut-off worse than the best, or did not try it since it takes motion away."""
    tried = choice.tried
    return bool(len(tried)) and (cutoff < 0.99 * float(tried.min()) or bool(np.any(np.isclose(tried, cutoff)
                                                                                   & ~choice.alike)))


def _values(problem: Problem, fold: Regression, method: str, options: Mapping[str, Any]) -> Array | None:
    """Base parameters (base,) by a method from a fold; None where it does not allow that."""
    needs = find_method(method).needs
    # One block is enough where the method does not leave some out: how sure the values are is not asked.
    regression = fold if "blocks" in needs else fold.joined(1)
    part = replace(problem, regression=replace(regression, base=problem.base), data=(), recordings=(), dataset=None)
    try:
        return identify(part, method=method, **options).values
    except DynidError:
        return None


def _std(problem: Problem, folds: CutoffFolds, method: str, options: Mapping[str, Any], cutoff: float) -> Array:
    """Deviations (base,) that a method states at a cut-off, infinite for what it does not identify; none where it
    gives up."""
    fold = folds.at(cutoff, np.inf)  # every row: their correlation decides
    assert fold is not None  # the method was solved there
    part = replace(problem, regression=replace(fold, base=problem.base), data=folds.samples(cutoff),
                   recordings=tuple(log.recording for log in folds.logs), dataset=None)
    try:
        return identify(part, method=method, **options).std
    except DynidError:
        return np.zeros(len(problem.base))


def _change(fold: Regression, move: Array) -> float:
    """Sum of squared torques that a change of base parameters (base,) makes along the motion."""
    return sum(float(np.sum((factor.r[:, :-1] @ move[factor.columns]) ** 2)) for factor in fold.factors)

"""Method `auto`: the best method in cross-validation, or a consistent one that is not significantly worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, ModelError, NotPossibleError
from dynid.estimate.block_cross_validation import BlockCrossValidation, cross_validate_blocks
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, find_method, identify, method
from dynid.output_fields import output_fields
from dynid.plain import plain

AUTO = "auto"
# Among methods that are not significantly different, the first of these is used: a physically consistent robot
# extrapolates better, and of two such the one that does not depend on the nominal model unless it is clearly worse.
PREFERENCE = ("pc-wls", "pc-ridge", "wls", "iv")
CHOICE_CONFIDENCE = 0.95  # of the paired test between two methods
_MATERIAL_DIFFERENCE = 0.01  # of the smaller error: smaller differences do not matter, even if they are significant
_EXACT_ERROR = 0.01  # percent of the torque: smaller errors are those of rounding in simulated data
# Share of the error by which pc-ridge must be better than pc-wls to be used instead, however unsure: it depends on the
# nominal model, which is worth it only where the data leave much open.
_CLEAR_DIFFERENCE = 0.1
_MAX_NOISE_SHARE = 0.01  # of the accelerations' mean square; noise biases inertias of least squares by this share
MIN_BLOCKS_FOR_CHOICE = 3  # blocks: the standard error of a difference needs three


@dataclass(frozen=True, eq=False)
class MethodCandidate:
    """One candidate of the choice of a method, with its cross-validation errors.

    Attributes:
        method: name of the method.
        left_out: fits without each block of time, or None.
        compared_errors: (blocks,), percent: errors on the blocks, or along the references if positions are noisy.
        excess_error: excess error relative to the best method, as a geometric mean over the blocks, percent.
        excess_std: standard error of that excess, percent.
        significant: whether the excess is significant.
        failure: the reason if the method gave no estimate.
    """

    method: str
    left_out: BlockCrossValidation | None = None
    compared_errors: Array | None = None
    excess_error: float = 0.0
    excess_std: float = 0.0
    significant: bool = False
    failure: str | None = None

    @output_fields(method=str, error=float | None, spread=float | None, errors=list[float | None] | None,
                   compared_errors=list[float | None] | None, excess_error=float | None, excess_std=float | None,
                   significant=bool | None, failure=str | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data for JSON; None for unknown values."""
        seen = self.left_out
        return {"method": self.method, "error": None if seen is None else seen.mean,
                "spread": None if seen is None else seen.spread, "errors": None if seen is None else plain(seen.errors),
                "compared_errors": plain(self.compared_errors),
                "excess_error": None if seen is None else self.excess_error,
                "excess_std": None if seen is None else self.excess_std,
                "significant": None if seen is None else self.significant, "failure": self.failure}


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen method, the reason for the choice as a clause, and all candidates."""

    method: str
    reason: str
    candidates: tuple[MethodCandidate, ...]

    def estimate_among(self, fits: Mapping[str, Estimate]) -> Estimate:
        """Return the estimate of the chosen method, with this choice in its diagnostics."""
        best = fits[self.method]
        seen = next(candidate.left_out for candidate in self.candidates if candidate.method == self.method)
        return replace(best, diagnostics=best.diagnostics.with_facts({"choice": self.to_dict()}), left_out=seen)

    @output_fields(method=str, reason=str, candidates=list[MethodCandidate])
    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data for JSON."""
        return {"method": self.method, "reason": self.reason, "candidates": plain(self.candidates)}


@method(AUTO, "the method with the best cross-validation error", needs={"blocks"}, gives={"theta"})
def automatic(problem: Problem, *, candidates: Sequence[str] | None = None,
              options: Mapping[str, Mapping[str, Any]] | None = None) -> Estimate:
    """Return the estimate of the method with the smallest cross-validation error; its name is in `method`.

    Each candidate is fitted without each block of the regression in turn and tested on it. Relative errors are compared
    in a paired test over the blocks by their logarithms, so that one block that no method predicts does not dominate. A
    difference is significant if the mean logarithm of the ratio is above a hundredth and above its standard error times
    Student's t of 95 %. Its variance is s^2 (1/n + 1/(n-1)), since the fits share most of their data (Nadeau and
    Bengio, 2003).

    Among methods that do not differ significantly from the best, a physically consistent one is preferred, because it
    extrapolates better to other motions. This is pc-wls, or pc-ridge if the geometric mean of its errors is smaller by
    more than a tenth. If pc-wls is significantly worse than the best, the data contradict its constraints, and no other
    method with these constraints is chosen either. A candidate that fails is listed with its reason. The choice is in
    diagnostics["choice"].

    Args:
        problem: the identification problem.
        candidates: names of methods. Default: wls; pc-wls for models with bodies; pc-ridge if the robot file has
            inertias; iv with a known control law and noisy positions. With iv, errors are compared along the references
            (`dynid.estimate.reference_validation`).
        options: options of candidates, by name of the method.
    """
    names = default_candidates(problem) if candidates is None else tuple(candidates)
    given = {name: dict(table) for name, table in (options or {}).items()}
    for name in (*names, *given):
        find_method(name)
    if not names or AUTO in names:
        raise ModelError("method 'auto' needs the names of one or more other methods to choose from",
                         code="no-candidates")
    fits, failures = fit_candidates(problem, names, given)
    return choose(problem, fits, given, failures, names).estimate_among(fits)


def fit_candidates(problem: Problem, names: Sequence[str], options: Mapping[str, Mapping[str, Any]],
                   others: Mapping[str, Estimate] | None = None) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Return the estimate of each method by name, and the error message of each method that fails.

    If all fail and there are no `others`, estimates of more methods, the last error is raised.
    """
    fits, failures = dict[str, Estimate](), dict[str, str]()
    for name in names:
        try:
            fits[name] = identify(problem, method=name, **options.get(name, {}))
        except (DynidError, np.linalg.LinAlgError) as error:
            if not (fits or others) and len(failures) == len(names) - 1:
                raise
            failures[name] = str(error)
    return fits, failures


def default_candidates(problem: Problem) -> tuple[str, ...]:
    """Return the names of the methods that are compared by default for a problem, depending on its model."""
    parameters = problem.model.parameters
    if not parameters.bodies:
        return ("wls", *_closed_loop(problem))
    has_inertias = problem.nominal is not None or all(
        parameters.items[c].nominal is not None for places in parameters.bodies.values() for c in places)
    ridge = ("pc-ridge",) if has_inertias and problem.data else ()
    return ("wls", "pc-wls", *ridge, *_closed_loop(problem))


def _closed_loop(problem: Problem) -> tuple[str, ...]:
    """Return method `iv` if control law and reference are known and position noise would bias inertias."""
    known = problem.controller is not None and problem.recordings and problem.regression.prior is None
    if not known or problem.filtered is not None or any(log.reference is None for log in problem.recordings):
        return ()
    from dynid.estimate.reference_validation import acceleration_noise

    return ("iv",) if acceleration_noise(problem).max() > _MAX_NOISE_SHARE else ()


def choose(problem: Problem, fits: Mapping[str, Estimate], options: Mapping[str, Mapping[str, Any]],
           failures: Mapping[str, str], names: Sequence[str]) -> Choice:
    """Return the choice among the methods that gave an estimate, with the failed methods in its list of candidates."""
    failed, seen = dict(failures), {}
    blocks = sum(block.rows > 0 for block in problem.regression.blocks)
    if blocks >= MIN_BLOCKS_FOR_CHOICE and len(fits) > 1:
        for name, estimate in fits.items():
            try:
                seen[name] = cross_validate_blocks(problem, name, options.get(name), estimate)
            except (NotPossibleError, ModelError) as error:
                failed[name] = f"without one of the blocks of time {error}"
    if not seen:
        first = preferred(fits)
        if len(fits) == 1:
            reason = "no other method gave an estimate" if failed else "there is no other method for this model"
        else:
            reason = "there are too few blocks of time for cross-validation" + (
                ", and this one is physically consistent" if first.startswith("pc-") else "")
        return Choice(first, reason, tuple(MethodCandidate(name, failure=failed.get(name)) for name in names))
    compared_errors = {name: one.errors for name, one in seen.items()}
    if "iv" in seen:
        from dynid.estimate.reference_validation import reference_errors

        try:
            compared_errors = reference_errors(problem, seen)
        except NotPossibleError as error:  # it has no cross-validation then
            failed["iv"] = str(error)
            del seen["iv"], compared_errors["iv"]
    compared = compare_left_out(seen, compared_errors)
    best = min(compared, key=lambda name: compared[name].excess_error)
    close = [name for name, one in compared.items() if not one.significant]
    if "pc-wls" in compared and "pc-wls" not in close:  # the data contradict physical consistency
        close = [name for name in close if not name.startswith("pc-")] or close
    chosen = preferred(close)
    if chosen == "pc-wls" and "pc-ridge" in close:
        gain = float(np.nanmean(_logarithms(compared_errors["pc-wls"]) - _logarithms(compared_errors["pc-ridge"])))
        chosen = "pc-ridge" if gain > -np.log1p(-_CLEAR_DIFFERENCE) else chosen
    listed = tuple(compared.get(name, MethodCandidate(name, failure=failed.get(name))) for name in names)
    return Choice(chosen, _reason(chosen, best, compared), listed)


def preferred(names: Sequence[str] | Mapping[str, Any]) -> str:
    """Return the method that is first in `PREFERENCE`; methods not listed there come last, in the given order."""
    return min(names, key=lambda name: PREFERENCE.index(name) if name in PREFERENCE else len(PREFERENCE))


def compare_left_out(seen: Mapping[str, BlockCrossValidation], compared_errors: Mapping[str, Array]
                     ) -> dict[str, MethodCandidate]:
    """Return each method with its excess error over the best method. Cross-validation errors (blocks,) are compared
    block by block with those of the method with the smallest geometric mean."""
    losses = {name: _logarithms(errors) for name, errors in compared_errors.items()}
    best = min(losses.values(), key=np.nanmean)
    return {name: MethodCandidate(name, validation, compared_errors[name], *_excess_error(losses[name] - best))
            for name, validation in seen.items()}


def _logarithms(errors: Array) -> Array:
    return np.asarray(np.log(np.hypot(errors, _EXACT_ERROR)))


def _excess_error(losses: Array) -> tuple[float, float, bool]:
    """Return the mean excess error of a method over the best one, percent, its standard error (Nadeau and Bengio), and
    whether it is significant; losses: (blocks,), paired differences of logarithmic errors."""
    excess = losses[np.isfinite(losses)]
    n, excess_error = len(excess), float(excess.mean())
    if n < 2:
        return 100.0 * float(np.expm1(excess_error)), 0.0, False
    error = float(excess.std(ddof=1) * np.sqrt(1.0 / n + 1.0 / (n - 1)))
    is_significant = excess_error > max(_MATERIAL_DIFFERENCE, student_quantile(n - 1, CHOICE_CONFIDENCE) * error)
    return 100.0 * float(np.expm1(excess_error)), 100.0 * float(np.exp(excess_error)) * error, is_significant


def student_quantile(df: int, share: float) -> float:
    """Return the quantile of Student's distribution with df degrees of freedom, an integer, for a share from 0.5.

    The distribution function is a finite sum in the angle atan(t / sqrt(df)) (Abramowitz and Stegun, 26.7.3 and
    26.7.4), which is found by bisection. This avoids the slow import of scipy.special.
    """
    low, high = 0.0, 0.5 * np.pi
    for _ in range(60):  # to full accuracy of the angle
        angle = 0.5 * (low + high)
        is_odd = df % 2
        power = np.cos(angle) if is_odd else 1.0
        terms = np.sin(angle) * power * np.cumprod([1.0, *(np.cos(angle) ** 2 * k / (k + 1)
                                                           for k in range(1 + is_odd, df - 2, 2))])
        between = 2.0 / np.pi * (angle + (terms.sum() if df > 1 else 0.0)) if is_odd else terms.sum()
        low, high = (angle, high) if between < 2.0 * share - 1.0 else (low, angle)
    return float(np.sqrt(df) * np.tan(low))


def _reason(chosen: str, best: str, compared: Mapping[str, MethodCandidate]) -> str:
    if len(compared) == 1:
        return "no other method could be cross-validated"
    blocks = "cross-validation" + (" with the motion of the references" if "iv" in compared else "")
    if chosen == best:
        return f"it has the best error in {blocks}"
    why = "does not depend on the nominal model" if best.startswith("pc-") or not chosen.startswith("pc-") else \
        "is physically consistent"
    return f"it {why} and is not significantly worse than the best method, {best}, in {blocks}"

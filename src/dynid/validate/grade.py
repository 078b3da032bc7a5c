"""The grade of a model from stated rules, and the order in which findings are shown.

The rules are documented in docs/results.md, section "Grade". They use one error: the relative torque error on unseen
data. Unseen data are the worst validation log, or without one the blocks of time in cross-validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dynid.estimate.estimate import WELL_DETERMINED, Estimate
from dynid.findings import Finding
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.quantities import percent_text
from dynid.validate.cross_validation import CrossValidation, UnrepeatedBlocks
from dynid.validate.excited_parameters import DataExcitation
from dynid.validate.reconstruction import Reconstruction
from dynid.validate.words import joints_listed, listed

Grade = Literal["good", "usable", "not usable"]
Unseen = Literal["validation", "cross-validation", "none"]

# Percent of the torque, 100 |tau - tau_hat| / |tau|. At 10 % the model explains 99 % of the torques' power. At 30 % it
# explains 91 %, and feed-forward still removes two thirds of the feedback torque.
GOOD_ERROR, USABLE_ERROR = 10.0, 30.0
EXACT_ERROR = 1e-6  # percent: a smaller error is rounding
CAUSE_EXPLAINS = 0.5  # share of the error that the correction of a cause has to remove to be the main cause
FRICTION_JOINTS = 0.5  # share of joints with friction that adds energy, above which the torque signs are wrong
MAX_TITLES = 2  # number of reasons in a headline

# Findings by their effect. Wrong data: the result is meaningless until they are corrected.
WRONG_DATA = frozenset({"torque-sign", "position-sign", "torques-swapped", "positions-swapped", "torque-unit",
                        "degrees-for-radians", "velocities-for-positions", "gravity-removed", "torque-zero",
                        "torque-constant", "torque-unsigned", "torques-unrelated", "torques-exchanged",
                        "cutoff-too-high"})
# A scale, a mounting, or runs joined into one log: the result is biased, and worthless only where that explains most
# of the misfit.
WRONG_SCALE = frozenset({"positions-jump", "time-scale", "gear-ratio", "position-offset", "gravity-direction",
                         "drive-gain", "payload"})
CAUSES = WRONG_DATA | WRONG_SCALE
DELAY = "residual-follows-delay"  # torques later than the motion: harmless, unless it explains most of the error
BY_EXCLUSION = "torques-unrelated"  # found by exclusion of other causes, so any other cause has priority
# Physically impossible values. They are consequences if a cause was found.
UNPHYSICAL = frozenset({"negative-friction", "negative-rotor-inertia", "unphysical-inertia", "indefinite-inertia",
                        "driving-friction", "impossible-links", "energy-grows", "consistency-price"})
# Other data, or a part of the robot, for which the result is not valid, or data that hardly test it.
LIMITED = frozenset({"joint-at-rest", "does-not-carry-over", "overfit", "another-machine", "gain-or-load-changed",
                     "load-changed", "friction-changed", "logs-differ", "worse-than-zero", "worse-than-mean",
                     "unrepeated-block", "unexplained-misfit", "few-independent-samples"})
# Consequences of a cause in residuals, limits and comparisons.
CONSEQUENCES = UNPHYSICAL | {"position-beyond-limits", "velocity-beyond-limits", "large-offset", "cutoff-dependent",
                             "low-r2", "residuals-autocorrelated", "residual-outliers", "odd-block",
                             "parameters-not-constant", "does-not-carry-over", "overfit"}
MISSING_TERM = "residual-follows-"
BAD_ROWS = frozenset({"encoder-stuck", "torque-saturated"})  # rows with wrong positions or torques


@dataclass(frozen=True)
class Summary:
    """Summary of the verdict on an estimate, with three lines of text.

    Attributes:
        grade: grade of the model by the rules of `summarize`.
        reasons: titles of the findings that prevent a better grade, the most important first.
        error: relative torque error on unseen data, percent; on the fitted data if there are no unseen data; None
            without torques.
        unseen: kind of the unseen data.
        well_determined: number of base parameters with a standard error of at most `WELL_DETERMINED` percent.
        parameters: number of base parameters.
        missing: number of other parameters that affect the torques enough to require a better motion.
        resting: joints that never moved.
        method: method of the estimate.
        chosen: properties that cross-validation chose, such as the method and the friction.
    """

    grade: Grade
    reasons: tuple[str, ...]
    error: float | None
    unseen: Unseen
    well_determined: int
    parameters: int
    missing: int = 0
    resting: tuple[str, ...] = ()
    method: str = ""
    chosen: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, str, str]:
        """Three texts of one or two sentences: grade with the error, parameters, and method."""
        name = {"good": "Good model", "usable": "Usable model", "not usable": "Not usable"}[self.grade]
        where = {"validation": "on other logs", "cross-validation": "on unseen data (cross-validation)",
                 "none": "on the fitted data; there are no unseen data to test it on"}[self.unseen]
        first = f"{name}: no torque error is defined." if self.error is None else (
            f"{name}: the torque error is {percent(self.error)} {where}.")
        if self.reasons:
            shown = listed(self.reasons, MAX_TITLES)
            first += f" {'Cause' if self.grade == 'not usable' else 'Limited by'}: {shown}."
        second = (f"{self.well_determined} of {self.parameters} base parameters are well determined (standard error "
                  f"at most {WELL_DETERMINED:g} %)")
        verb = "needs" if self.missing == 1 else "need"
        rest = [f"{self.missing} {verb} more excitation"] if self.missing else []
        if small := self.parameters - self.well_determined - self.missing:
            rest += [f"{small} {'is small or has' if small == 1 else 'are small or have'} little effect"]
        second += f"; of the others {listed(rest)}." if rest else "."
        if self.resting:
            second += f" {joints_listed(self.resting)} never moved."
        if self.grade == "not usable" and self.reasons:
            second = "The parameters are not meaningful until the cause is corrected."
        by = f" ({listed(self.chosen)} chosen by cross-validation)" if self.chosen else ""
        return first, second, f"Method: {self.method}{by}."

    @property
    def text(self) -> str:
        return " ".join(self.lines)

    @output_fields(grade=str, reasons=list[str], unseen_error=float | None, unseen=str, well_determined=int,
                   parameters=int, missing=int, lines=list[str])
    def to_dict(self) -> dict[str, Any]:
        return plain({"grade": self.grade, "reasons": self.reasons, "unseen_error": self.error, "unseen": self.unseen,
                      "well_determined": self.well_determined, "parameters": self.parameters, "missing": self.missing,
                      "lines": self.lines})


def percent(error: float) -> str:
    """Format a relative error in percent with two digits."""
    if error < EXACT_ERROR:
        return "zero but for rounding"
    return percent_text(error)


def unseen_error(own: Reconstruction, validations: Sequence[Reconstruction],
                 cross: CrossValidation | None, alone: UnrepeatedBlocks | None = None) -> tuple[float | None, Unseen]:
    """Return the relative torque error on unseen data, percent, and the kind of these data.

    Headline, report, studio and grade all use this definition: the error on the worst validation log; without one the
    mean over blocks of time in cross-validation, except blocks with a motion that no other block has (`alone`);
    without cross-validation the error on the fitted data.
    """
    others = [one.relative_error for one in validations if one.total.relative_error is not None]
    if others:
        return max(others), "validation"
    if cross is not None and np.isfinite(cross.mean):
        return float(cross.mean) if alone is None else alone.error, "cross-validation"
    return (None if own.total.relative_error is None else own.relative_error), "none"


def summarize(estimate: Estimate, own: Reconstruction, validations: Sequence[Reconstruction],
              cross: CrossValidation | None, findings: Sequence[Finding], corrected_error: float | None,
              excitation: DataExcitation, alone: UnrepeatedBlocks | None = None) -> Summary:
    """Return the summary of an estimate.

    Args:
        estimate: the result.
        own: reconstruction of the data of the identification.
        validations: reconstructions of other logs.
        cross: cross-validation over blocks of time.
        findings: problems, in any order.
        corrected_error: relative error of a second fit with the causes corrected, percent; None without one.
        excitation: excitation of the parameters by the data.
        alone: blocks of time with a motion that no other block has; None if there are none.
    """
    error, unseen = unseen_error(own, validations, cross, alone)
    fit = own.total.relative_error
    explains = corrected_error is not None and fit is not None and corrected_error < CAUSE_EXPLAINS * fit
    late = [one for one in findings if one.code == DELAY and one.severity != "info" and explains]
    reversed_joints = {joint for one in findings if one.code == "negative-friction" for joint in one.joints}
    reversed_torques = len(reversed_joints) > max(1.0, FRICTION_JOINTS * len(own.joints))
    worthless = [one for one in findings if one.severity == "fatal" or one.code in WRONG_DATA
                 or (one.code in WRONG_SCALE and explains) or (one.code == "negative-friction" and reversed_torques)
                 or (one in late and error is not None and error > GOOD_ERROR)]
    limits = [one for one in findings
              if (one.code in WRONG_SCALE | UNPHYSICAL | LIMITED and one.severity != "info") or one in late]
    grade: Grade = "good"
    if worthless or error is None or error > USABLE_ERROR:
        grade = "not usable"
        limits = [one for one in findings if one in worthless or one.code in WRONG_SCALE]
    elif limits or error > GOOD_ERROR or (unseen == "none" and error >= EXACT_ERROR):
        grade = "usable"
    if any(one.code in CAUSES - {BY_EXCLUSION} for one in limits):
        limits = [one for one in limits if one.code != BY_EXCLUSION]
    chosen = ("method",) if "choice" in estimate.diagnostics else ()
    return Summary(grade, tuple(dict.fromkeys(one.title for one in ranked(limits))), error, unseen,
                   int(estimate.well_determined.sum()), len(estimate.values),
                   sum(not is_known and one.lacking for is_known, one in
                       zip(estimate.well_determined, excitation.parameters, strict=True)),
                   tuple(motion.joint for motion in excitation.motions if not motion.moves), estimate.method, chosen)


def explains_misfit(finding: Finding) -> Literal["cause", "term"] | None:
    """Return how a finding explains that joints contradict each other: as a fault of the data ("cause"), as a missing
    term ("term"), or not at all (None)."""
    if finding.severity == "fatal" or finding.code in CAUSES | BAD_ROWS:
        return "cause"
    return "term" if finding.code.startswith(MISSING_TERM) and finding.kind == "problem" else None


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings sorted by their effect on the result, the largest first."""
    return sorted(findings, key=_rank)


def _rank(finding: Finding) -> tuple[int, float]:
    last_cause = finding.code == BY_EXCLUSION
    order = (finding.severity == "fatal" and not last_cause, finding.code in WRONG_DATA and not last_cause,
             finding.code in WRONG_SCALE, last_cause,
             finding.code in UNPHYSICAL and not finding.second_fit, finding.code in LIMITED,
             finding.code.startswith(MISSING_TERM), finding.severity == "warning", True)
    torque = finding.evidence.get("torque", 0.0)
    return order.index(True), -float(np.max(torque if np.size(torque) else 0.0))


def grouped(findings: Sequence[Finding]) -> list[tuple[Finding, tuple[Finding, ...]]]:
    """Return each finding with its consequences; all consequences are listed under the first cause.

    A delay is a cause too, but biases the result little: only findings on the fit without the delay are under it.
    """
    order = ranked(findings)
    cause = next((one for one in order if one.severity == "fatal" or one.code in CAUSES), None)
    delay = next((one for one in order if one.code == DELAY and one.severity != "info"), None)
    first = delay if cause is None else cause
    folded = tuple(one for one in order if one is not first and (
        one.second_fit and delay is not None and one.code in CONSEQUENCES if cause is None else
        one.code == BY_EXCLUSION or (one.severity != "fatal" and one.code in CONSEQUENCES)
        or (one.code == "worse-than-zero" and not one.logs)))  # blocks of the fitted logs themselves
    return [(one, folded if one is first else ()) for one in order if one not in folded]

"""The verdict: what was identified, what was not excited, what looks wrong, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.estimate import Estimate, Problem, identify
from dynid.validate import suspicion
from dynid.validate.cross_validation import CrossValidation
from dynid.validate.excitation import Excitation, Excited, excitation
from dynid.validate.gains import Gain, corrected, drive_gains
from dynid.validate.reconstruct import Reconstruction, reconstruct
from dynid.validate.residual_tests import ResidualTests, residual_tests
from dynid.validate.suspicion import Finding
from dynid.validate.words import joint_label, joints_listed, listed, number, plain, sentence

_ROUNDING = 1e-6  # percent: below that a fit is exact


@dataclass(frozen=True, eq=False)
class Verdict:
    """A headline, and findings in the order they should be read: suspicious ones first.

    tests, excitation, gains: what the findings stand on, for tables and plots.
    """

    headline: str
    findings: tuple[Finding, ...]
    tests: ResidualTests
    excitation: Excitation
    gains: tuple[Gain, ...]

    def of(self, kind: str) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    @property
    def good(self) -> bool:
        """Nothing is suspicious and everything is identified."""
        return not self.of("suspicious") and not self.of("not-excited")

    def text(self) -> str:
        """Headline and sentences, one a line."""
        return "\n".join([self.headline, *(f"- {finding.sentence}" for finding in self.findings)])

    def to_dict(self) -> dict[str, Any]:
        return plain({"headline": self.headline, "good": self.good, "findings": self.findings, "tests": self.tests,
                      "excitation": self.excitation, "gains": self.gains})


def verdict(problem: Problem, estimate: Estimate, reconstruction: Reconstruction,
            validations: Sequence[Reconstruction] = (), cross: CrossValidation | None = None) -> Verdict:
    """What an estimate is worth.

    reconstruction: of the data it was identified from; validations: of other logs; cross: over blocks of time.
    """
    tests = residual_tests(reconstruction)
    excited = excitation(problem, estimate)
    gains = drive_gains(problem, estimate)
    suspicious = _suspicions(problem, estimate, reconstruction, tests, excited, gains)
    if not any(finding.cause in suspicion.FATAL for finding in suspicious):
        suspicious += [*suspicion.does_not_carry_over(reconstruction, validations),
                       *suspicion.changes_in_time(problem, cross)]
    findings = (*suspicious, *_missing(excited), *_identified(estimate, excited),
                *_errors(reconstruction, validations, cross))
    return Verdict(_headline(excited, reconstruction, validations, suspicious), findings, tests, excited, gains)


def _suspicions(problem: Problem, estimate: Estimate, reconstruction: Reconstruction, tests: ResidualTests,
                excited: Excitation, gains: tuple[Gain, ...]) -> list[Finding]:
    found = [*suspicion.still_or_silent(problem, excited.motions), *suspicion.beyond_limits(excited.motions),
             *suspicion.too_few(problem, estimate)]
    if any(finding.cause in suspicion.FATAL for finding in found):
        return found
    still = [j for j, motion in enumerate(excited.motions) if not motion.moves]
    wrong = suspicion.wrong_gain(gains, tests)
    if wrong is not None:
        # A wrong gain makes other things look wrong too. Only what stays with the gain set right is said of them.
        j, gain = wrong
        found.append(suspicion.gain_finding(gains, j))
        problem, estimate, reconstruction = _set_right(problem, reconstruction, j, gain)
        tests, gains = residual_tests(reconstruction), drive_gains(problem, estimate)
        more = suspicion.wrong_gain(gains, tests)
        found += [suspicion.gain_finding(gains, more[0])] if more is not None and more[0] != j else []
    found += suspicion.nominal_gains(gains)
    found += suspicion.residuals_speak(tests)
    found += suspicion.badly_explained(reconstruction, tests, still)
    below = [*suspicion.below_zero(problem, estimate)]
    found += below
    if not any(finding.cause == "unphysical inertia" for finding in below):
        found += suspicion.not_positive_definite(problem, estimate)
    return [*found, *suspicion.large_offsets(estimate, reconstruction, still), *suspicion.badly_conditioned(estimate)]


def _set_right(problem: Problem, reconstruction: Reconstruction, j: int, gain: float
               ) -> tuple[Problem, Estimate, Reconstruction]:
    """The same with joint j's torque divided by its gain, fitted again by weighted least squares."""
    scale = np.ones(problem.model.dof)
    scale[j] = 1.0 / gain
    samples = tuple(replace(part, tau=part.tau * scale) for part in reconstruction.samples)
    changed = corrected(problem, j, gain)
    estimate = identify(changed, method="wls")
    return replace(changed, data=samples), estimate, reconstruct(estimate, samples)


def _missing(excited: Excitation) -> Iterator[Finding]:
    """Parameters that share a remedy share a sentence."""
    groups: dict[tuple[str, str], list[Excited]] = {}
    for parameter in excited.missing:
        words = parameter.remedy.words if parameter.remedy else ""
        groups.setdefault((parameter.status, words), []).append(parameter)
    for (status, words), members in groups.items():
        names = [member.name for member in members]
        if len(members) == 1:
            yield Finding("not-excited", names[0], members[0].sentence, status)
            continue
        what = "are hardly known" if status == "weak" else "are not excited"
        words = words or ("a longer log would help more than a larger motion" if status == "weak" else "")
        yield Finding("not-excited", ", ".join(names), sentence(f"{listed(names, 8)} {what}: {words}" if words else
                                                                f"{listed(names, 8)} {what}"), status)


def _identified(estimate: Estimate, excited: Excitation) -> Iterator[Finding]:
    total = len(excited.parameters)
    good = total - len(excited.missing)
    sharp = sum(p.status == "identified" and p.std is not None and p.value is not None and p.std < 0.1 * abs(p.value)
                for p in excited.parameters)
    count = f"All {total}" if good == total else f"{good} of the {total}" if good else f"None of the {total}"
    more = f", {sharp} of them to better than 10 %" if good else ""
    yield Finding("identified", "base parameters", sentence(f"{count} base parameters are identified{more}"),
                  "identified")
    factor = float(estimate.diagnostics.get("deviation_inflation", 1.0))
    if factor > 1.2 and estimate.diagnostics.get("relative_error", 1.0) > _ROUNDING:
        yield Finding("identified", "deviations", sentence(
            f"Residuals are correlated in time: deviations that ignore this would be {factor:.1f} times too small"),
            "deviations")


def _errors(own: Reconstruction, validations: Sequence[Reconstruction], cross: CrossValidation | None
            ) -> Iterator[Finding]:
    known = [fit for fit in own.joints if fit.relative_error is not None]
    if own.total.relative_error is not None:
        worst = max(known, key=lambda fit: fit.relative_error or 0.0)
        more = f"; the worst is {joint_label(worst.name)} with {worst.relative_error:.1f} %" if len(known) > 1 else ""
        yield Finding("validation", own.source, sentence(
            f"On the fitted data the relative error is {own.relative_error:.2f} %, RMS {number(own.total.rms)}{more}"),
            "fit")
    for other in validations:
        if other.total.relative_error is not None:
            yield Finding("validation", other.source, sentence(
                f"On {other.source}, which it has not seen, the relative error is {other.relative_error:.2f} %"),
                "validation")
    if cross is not None:
        yield Finding("validation", "blocks of time", sentence(
            f"Each of {len(cross.blocks)} blocks of time is predicted from the others to {cross.mean:.2f} +- "
            f"{cross.spread:.2f} %"), "cross-validation")


def _to(error: float) -> str:
    return "to rounding" if error < _ROUNDING else f"to {error:.2g} %"


def _headline(excited: Excitation, own: Reconstruction, validations: Sequence[Reconstruction],
              suspicious: Sequence[Finding]) -> str:
    total = len(excited.parameters)
    good = total - len(excited.missing)
    text = f"{'All' if good == total else f'{good} of'} {total} base parameters are identified"
    if own.total.relative_error is not None:
        text += f" and torques are met {_to(own.relative_error)}"
        errors = [other.relative_error for other in validations if other.total.relative_error is not None]
        if errors:
            text += f" ({', '.join(f'{error:.2g}' for error in errors)} % on other data)"
    still = [motion.joint for motion in excited.motions if not motion.moves]
    if still:
        text += f"; {joints_listed(still)} never moved"
    others = [finding for finding in suspicious if finding.cause != "no motion"]
    if others:
        text += "; suspicious: " + listed([f"{f.cause} ({f.subject})" for f in others], 3)
    elif not suspicious:
        text += "; nothing looks suspicious"
    return sentence(text)

"""The verdict: identified parameters, missing excitation, and problems, each as a finding with a code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid import html_tables
from dynid.errors import optional_package, require_type
from dynid.estimate import Estimate, Problem
from dynid.estimate.estimate import WELL_DETERMINED
from dynid.findings import Finding
from dynid.model import complete
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.recording import Samples
from dynid.threads import one_blas_thread
from dynid.validate import thresholds
from dynid.validate.cross_validation import CrossValidation, unrepeated_blocks, unrepeated_finding
from dynid.validate.cutoff_influence import CutoffDependence
from dynid.validate.deflection import resonances
from dynid.validate.excited_parameters import LONGER_LOG, DataExcitation, ExcitedParameter, Status, data_excitation
from dynid.validate.gains import Gain, drive_gains
from dynid.validate.grade import Grade, Summary, explains_misfit, summarize
from dynid.validate.hypotheses.hypothesis import Weighed
from dynid.validate.hypotheses.trial import contradiction
from dynid.validate.physical import Physics
from dynid.validate.reconstruction import Reconstruction, reconstruct
from dynid.validate.residual_statistics import ResidualTests, residual_tests
from dynid.validate.unresolved_friction import friction_worths
from dynid.validate.verdict_checks import Case, Refit, run_checks
from dynid.validate.verdict_checks.cause_findings import NAMES
from dynid.validate.words import joint_label, joints_listed, listed, sentence

_EXACT_FIT_PERCENT = 1e-6  # percent: a fit with a smaller error is exact
_SHARP_RELATIVE_ERROR = 0.1  # relative standard error of a precisely determined parameter
# Code of each finding on poorly determined parameters, and its words; the worst first.
LACKS: dict[Status, tuple[str, str]] = {"not-excited": ("not-excited", "not excited"),
                                        "poorly-determined": ("poorly-determined", "poorly determined"),
                                        "weak": ("weakly-excited", "weakly excited")}
ONE_WAY = ("one-way-joint", "friction and offset not distinguished")
_MIN_INFLATION_REPORTED = 1.2  # smallest inflation of standard errors by autocorrelation that is reported


@dataclass(frozen=True, eq=False)
class Verdict:
    """Headline and findings on an estimate, warnings first.

    Attributes:
        summary: grade, torque error on unseen data, number of well-determined parameters.
        findings: problems and remarks, the most important first.
        tests, excitation, gains: evidence of the findings, for tables and plots.
        refit: corrections of a second fit, which is computed to find further problems; None without one.
        hypotheses: all hypotheses that were compared, the most probable first.
    """

    summary: Summary
    findings: tuple[Finding, ...]
    tests: ResidualTests
    excitation: DataExcitation
    gains: tuple[Gain, ...]
    refit: Refit | None = None
    hypotheses: tuple[Weighed, ...] = ()

    def of_kind(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of one kind, such as "validation"."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    @property
    def headline(self) -> str:
        """The grade with the torque error on unseen data, the number of well-determined parameters, and the method."""
        return self.summary.text

    @property
    def grade(self) -> Grade:
        """Grade of the model: good, usable or not usable, by the rules of `dynid.validate.grade`."""
        return self.summary.grade

    @property
    def good(self) -> bool:
        """Whether there are no warnings and all parameters are identified."""
        return not self.of_kind("problem") and not self.of_kind("not-excited")

    def text(self) -> str:
        """Return headline and findings, one per line."""
        return "\n".join([self.headline, *(f"- {finding.text}" for finding in self.findings)])

    def plot(self) -> Any:
        """Return a plotly figure of each parameter's standard error, grouped by excitation: the torque change of one
        standard error, in percent of the torque of the joint that the parameter affects most."""
        objects = optional_package("plotly.graph_objects", "dynid[plot]")
        made = objects.Figure()
        for status in ("identified", "weak", "poorly-determined", "not-excited"):
            own = [one for one in self.excitation.parameters if one.status == status]
            made.add_trace(objects.Bar(x=[one.name for one in own], y=[one.doubt for one in own], name=status))
        made.update_layout(title=self.summary.lines[0], yaxis_title="one standard error, % of the joint's torque")
        return made

    def __repr__(self) -> str:
        return f"<Verdict: {self.headline}>"

    def _repr_html_(self) -> str:
        urgent = [(one.title, one.text) for one in self.findings if one.kind in ("problem", "not-excited")]
        others = [(one.title, one.text) for one in self.findings if one.kind in ("identified", "validation")]
        return html_tables.card(self.headline, html_tables.listed(urgent),
                                html_tables.listed(others, folded=f"{len(others)} more"))

    @output_fields(headline=str, summary=Summary, good=bool, findings=list[Finding], tests=ResidualTests | None,
                   excitation=DataExcitation | None, gains=list[Gain], refit=Refit | None, hypotheses=list[Weighed])
    def to_dict(self) -> dict[str, Any]:
        return plain({"headline": self.headline, "summary": self.summary.to_dict(),
                      "good": self.good, "findings": self.findings, "tests": self.tests,
                      "excitation": self.excitation, "gains": self.gains, "refit": self.refit,
                      "hypotheses": self.hypotheses})


@one_blas_thread()
def verdict(estimate: Estimate, samples: Samples | Sequence[Samples] | Problem, *,
            validation: Samples | Reconstruction | Sequence[Samples | Reconstruction] = (),
            reconstruction: Reconstruction | None = None, cross: CrossValidation | None = None,
            physics: Physics | None = None, cutoff: CutoffDependence | None = None,
            found: Sequence[Finding] = ()) -> Verdict:
    """Return the verdict on an estimate.

    If the data contain a fault, the fit is repeated with the fault corrected: see `Verdict.refit`.

    Args:
        estimate: the subject of the verdict.
        samples: the data of the identification, or the problem made of them.
        validation: other logs of the same machine, or their reconstructions.
        reconstruction: of the data of the identification; computed if not given.
        cross: cross-validation over blocks of time.
        physics: physical properties of the estimate.
        cutoff: influence of the cut-off on the parameters.
        found: earlier findings on the logs.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).uniform(-1.0, 1.0, size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau * [1, -1, 1], rate=100.0)
    >>> said = dynid.verdict(dynid.identify(model, samples, method="wls"), samples)
    >>> [(one.code, one.joints) for one in said.of_kind("problem")]
    [('torque-sign', ('joint2',))]
    """
    require_type(estimate, Estimate, "verdict", "verdict(estimate, samples)")
    require_type(samples, (Samples, Problem), "verdict", "verdict(estimate, dynid.prepare(recording))")
    problem = samples if isinstance(samples, Problem) else Problem.from_model(estimate.model, samples)
    own = reconstruct(estimate, problem.data, for_tests=True) if reconstruction is None else reconstruction
    others = [validation] if isinstance(validation, Samples | Reconstruction) else validation
    tried = tuple(one if isinstance(one, Reconstruction) else reconstruct(estimate, one) for one in others)
    robot = complete(problem.model).robot
    free = robot is not None and robot.has_free_base
    case = Case(problem, estimate, own, residual_tests(own), data_excitation(problem, estimate),
                () if free else drive_gains(problem, estimate), tried, cross, physics, cutoff)
    suspected, cause = run_checks(case)
    known = [explains_misfit(one) for one in (*found, *suspected)]
    is_explained = free or cause.findings or "cause" in known
    wrong = [*found, *suspected, *(() if is_explained else _unexplained(case, cause.weighed, "term" in known))]
    more = () if free else (*_needless_friction(case), *_oscillations(case), *_unknown_scales(case))
    # In a log of a walking robot, one block may contain a contact that occurs in no other block.
    alone = unrepeated_blocks(problem, estimate, cross) if free and cross is not None and not tried else None
    seldom = () if alone is None or cross is None else (unrepeated_finding(problem, cross, alone),)
    findings = (*wrong, *seldom, *_missing(case.excitation), *_identified(case), *_errors(case), *more)
    corrected = None if cause.refit is None else cause.case.reconstruction.total.relative_error
    summary = summarize(estimate, own, case.validations, cross, [*wrong, *seldom], corrected, case.excitation, alone)
    return Verdict(summary, findings, case.tests, case.excitation, case.gains, cause.refit, cause.weighed)


def _missing(excited: DataExcitation) -> Iterator[Finding]:
    """Return findings on parameters that are not identified; those with the same remedy share one finding."""
    groups: dict[tuple[Any, ...], list[ExcitedParameter]] = {}
    for parameter in excited.missing:
        remedy = parameter.remedy
        key = None if remedy is None else (remedy.joints, remedy.advice.code)
        groups.setdefault((parameter.status, key, bool(parameter.confounded)), []).append(parameter)
    for members in groups.values():
        first, names = members[0], [member.name for member in members]
        remedy, weak = first.remedy, first.status != "not-excited"
        code, title = ONE_WAY if weak and first.confounded else LACKS[first.status]
        text = first.sentence
        if len(members) > 1:
            help_ = remedy.advice.text if remedy is not None else LONGER_LOG if weak else ""
            apart = "are not distinguished by the data" if all(member.confounded for member in members) else (
                f"are {title}")
            text = sentence(f"{listed(names, 8)} {apart}: {help_}" if help_ else f"{listed(names, 8)} {apart}")
        joints = () if remedy is None or not excited.motions else tuple(excited.motions[k].joint for k in remedy.joints)
        evidence = {"std": _numbers(member.std for member in members),
                    "remedy_share": _numbers(member.remedy.share if member.remedy else None for member in members)}
        yield Finding(code, "not-excited", "warning", text, title, joints, tuple(names),
                      evidence={name: values for name, values in evidence.items() if values})


def _numbers(values: Iterator[float | None]) -> tuple[float, ...]:
    """Return the given numbers, or an empty tuple if one of them is None."""
    found = tuple(values)
    return () if any(value is None for value in found) else tuple(float(value or 0.0) for value in found)


def _identified(case: Case) -> Iterator[Finding]:
    """Return findings on the determined parameters: their number, parameters that torques determine only together, and
    the effect of autocorrelation on standard errors."""
    estimate = case.estimate
    total, good = len(estimate.values), int(estimate.well_determined.sum())
    poor = int(estimate.poorly_determined.sum())
    sharp = int(np.sum(estimate.well_determined & (estimate.relative_std < 100.0 * _SHARP_RELATIVE_ERROR)))
    more = f", {sharp} of them to better than {100.0 * _SHARP_RELATIVE_ERROR:g} %" if good else ""
    more += f"; {poor} are poorly determined, with a standard error above {WELL_DETERMINED:g} %" if poor else ""
    yield Finding("identified", "identified", "info", sentence(
        f"{good} of {total} base parameters are well determined{more}"), "base parameters",
        parameters=tuple(np.array(estimate.names)[estimate.well_determined].tolist()),
        evidence={"identified": float(good), "sharp": float(sharp), "poorly_determined": float(poor),
                  "base_parameters": float(total)})
    diagnostics = case.estimate.diagnostics
    hidden = tuple(diagnostics.get("not_filled", ()))
    if hidden:
        yield Finding("not-filled", "identified", "warning", sentence(
            f"Torques do not determine {listed(list(hidden), 8)} individually, and no values near the nominal model or "
            "the analytic centre could be computed: base parameters and torques are those of the best physically "
            "consistent robot, but the values of these parameters are only one choice of many; give masses or limits "
            "of links to restrict them"),
            "not filled", parameters=hidden)
    factor = float(case.estimate.uncertainty.facts.get("std_inflation", 1.0))
    if factor > _MIN_INFLATION_REPORTED and diagnostics.get("relative_error", 1.0) > _EXACT_FIT_PERCENT:
        yield Finding("residuals-correlated", "identified", "info", sentence(
            f"Residuals are correlated in time: standard errors that ignore the correlation would be {factor:.1f} "
            "times too small"),
            "deviations", evidence={"std_inflation": factor})


def _errors(case: Case) -> Iterator[Finding]:
    """Return findings on the errors of predicted torques: on the fitted data, on other logs and in cross-validation."""
    own, cross = case.reconstruction, case.cross
    known = [fit for fit in own.joints if fit.relative_error is not None]
    if own.total.relative_error is not None:
        worst = max(known, key=lambda fit: fit.relative_error or 0.0)
        more = f"; the worst is {joint_label(worst.name)} with {worst.relative_error:.1f} %" if len(known) > 1 else ""
        yield Finding("fit-error", "validation", "info", sentence(
            f"On the fitted data the relative torque error is {own.relative_error:.2f} % (RMS "
            f"{own.total.rms or 0.0:.3g}){more}"),
            "fit", joints=(worst.name,), logs=own.sources, evidence={
                "relative_error": own.relative_error, "worst": worst.relative_error or 0.0})
    for other in case.validations:
        if other.total.relative_error is not None:
            yield Finding("validation-error", "validation", "info", sentence(
                f"On {other.source}, which was not used for the fit, the relative torque error is "
                f"{other.relative_error:.2f} %"),
                "validation", logs=other.sources, evidence={"relative_error": other.relative_error})
    yield from _choice(case)
    if cross is not None:
        yield Finding("cross-validation-error", "validation", "info", sentence(
            f"In cross-validation over {len(cross.blocks)} blocks of time the relative torque error "
            f"is {cross.mean:.2f} +- {cross.spread:.2f} %"), "cross-validation", evidence={
                "blocks": float(len(cross.blocks)), "mean": cross.mean, "spread": cross.spread})


def _choice(case: Case) -> Iterator[Finding]:
    """Return a finding on how the method was chosen and which methods failed; none if the method was given."""
    choice = case.estimate.diagnostics.get("choice")
    if choice is None:
        return
    tried = {one["method"]: one["error"] for one in choice["candidates"] if one["error"] is not None}
    listed_errors = ", ".join(f"{name} {error:.3g} %" for name, error in tried.items())
    errors = f"; cross-validation errors: {listed_errors}" if tried else ""
    failed = "".join(f"; {one['method']} could not be compared: {one['failure']}"
                     for one in choice["candidates"] if one["failure"])
    yield Finding("method-chosen", "validation", "info", sentence(
        f"The method is {choice['method']}: {choice['reason']}{errors}{failed}"), "method",
        evidence={name.replace("-", "_"): error for name, error in tried.items()})


def _needless_friction(case: Case) -> Iterator[Finding]:
    """Return findings on friction terms that cross-validation does not distinguish from simpler ones, one per kind."""
    found = [one for one in friction_worths(case.problem, case.estimate) if not one.is_resolved]
    for kind in dict.fromkeys(one.worth.term for one in found):
        own = [one for one in found if one.worth.term == kind]
        yield Finding("friction-unresolved", "validation", "info", sentence(
            f"The data do not distinguish the friction '{kind}' of {joints_listed([one.joint for one in own])} from "
            "simpler friction: this term does not reduce the cross-validation error significantly; to leave the term "
            "out, name the other terms with --friction"), f"{kind} not distinguished",
            tuple(one.joint for one in own),
            tuple(name for one in own for name in one.parameters), evidence={
                "gain_percent": tuple(one.worth.gain for one in own),
                "standard_error": tuple(one.worth.error for one in own)})


def _unexplained(case: Case, weighed: Sequence[Weighed], is_patterned: bool) -> Iterator[Finding]:
    """Return a finding on joints that contradict each other, if no tested fault explains the contradiction.

    The finding is a warning if the contradiction causes most of the misfit in cross-validation. It is a warning too if
    the misfit of the fit is far above that of real machines, or if gravity acts against the nominal model. Separate
    fits of the joints also absorb some unmodelled friction, so they predict a healthy robot slightly better too.
    is_patterned: whether a residual follows a missing term, which can cause small contradictions between joints.
    """
    trial = case.trial
    inside, own = trial.fit_score, trial.own_score
    if case.is_short or inside < thresholds.CONTRADICTION_ASKED * own:
        return  # joints that agree in the fit do not contradict each other in cross-validation either
    opposed = [gain.joint for gain in case.gains if gain.by_nominal is not None and gain.by_nominal < 0]
    in_fit = inside > (thresholds.UNEXPLAINED_MISFIT if opposed else thresholds.REMAINING_MISFIT) * own
    if is_patterned and not in_fit:
        return
    ratio, weight = contradiction(trial)
    if not in_fit and (ratio * thresholds.MATERIAL < 1.0 or weight > thresholds.CONTRADICTION_WEIGHT):
        return
    best = weighed[0] if weighed else None
    likeliest = "" if best is None else (f" (the likeliest, {NAMES.get(best.cause, best.cause)}, explains "
                                         f"{100 * best.explained:.0f} %)")
    # Separate fits may predict other blocks badly, where their motion is poor: then the fit itself is the evidence.
    less, where = (own / inside, "explain the fitted") if in_fit else (1.0 / ratio, "predict unseen")
    better = (f"separate fits of each joint {where} torques with {100 * (1.0 - less ** 0.5):.0f} % less error "
              f"than one set of parameters for the whole robot, and no tested fault explains the difference{likeliest}")
    if opposed:
        better += f"; gravity acts on {joints_listed(opposed)} against the direction that the robot file predicts"
    is_most = in_fit or ratio * thresholds.SECOND_MATERIAL >= 1.0
    yield Finding("unexplained-misfit", "problem" if is_most else "validation", "warning" if is_most else "info",
                  sentence(f"the joints contradict each other: {better}; check that link lengths, axes and zero "
                           "positions of the robot file are those of this machine, and the torque scale of each joint"
                           if is_most else better), "joints contradict each other" if is_most else "unexplained misfit",
        () if best is None else best.joints, evidence={
            "ratio": ratio, "weight": weight, "inside": inside / own if own > 0 else 1.0,
            **({} if best is None else {"explained": best.explained})})


def _unknown_scales(case: Case) -> Iterator[Finding]:
    """Return a finding on joints whose torque scale neither other joints nor nominal gravity torques determine."""
    joints = [gain.joint for j, gain in enumerate(case.gains)
              if gain.gain is None and gain.by_nominal is None and not case.at_rest(j)]
    if joints and len(case.gains) > 1:
        yield Finding("scales-undecidable", "validation", "info", sentence(
            f"The data do not determine the torque scale of {joints_listed(joints)}: a wrong drive gain there would "
            "not be found, because neither the torques of other joints nor a nominal model can show it; check these "
            "drive gains with a known load"), "torque scales", tuple(joints))


def _oscillations(case: Case) -> Iterator[Finding]:
    """Return a finding on joints whose torque oscillates together with the motor, as in a flexible joint."""
    found = resonances(case.estimate, case.problem.data, case.problem.recordings)
    if not found:
        return
    who, several = joints_listed([one.joint for one in found]), len(found) > 1
    at = listed([f"{one.frequency:.3g} Hz" for one in found], 8)
    yield Finding("resonance", "validation", "info", sentence(
        f"The torque{'s' * several} of {who} oscillate{'s' * (not several)} at {at} together with the motor, "
        "consistent with a flexible joint (gear ripple, mains interference or a marginally stable control loop look "
        "similar); stiffness cannot be identified from motor positions alone, because the controller also changes "
        "the oscillation: also log link positions (motor_position and position), or torque "
        "sensors"), "resonance", tuple(one.joint for one in found),
        evidence={name: tuple(getattr(one, name) for one in found) for name in ("frequency", "above", "coherence",
                                                                               "torque")})

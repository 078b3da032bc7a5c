"""What looks wrong: one small check a function, each giving findings in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dynid.estimate import Estimate, Problem
from dynid.model import complete, least_inertia, split_regressor
from dynid.validate.cross_validation import CrossValidation, block_times
from dynid.validate.gains import Gain
from dynid.validate.motion import JointMotion
from dynid.validate.reconstruct import Reconstruction
from dynid.validate.residual_tests import JointTests, ResidualTests
from dynid.validate.words import joint_label, joints_listed, listed, plain, sentence, span

# Where one of these stands, the fit itself means nothing and is not judged further.
FATAL = ("degrees for radians", "no torque", "constant torque", "too few samples")

FindingKind = Literal["identified", "not-excited", "suspicious", "validation"]

_BELOW = 2.0  # deviations below zero that count as below zero
_LOW_R2 = 0.8
_GAIN_OFF = 0.1  # from one, against the other joints
_GAIN_DEVIATIONS = 5.0
_GAIN_EXPLAINS = 0.6  # share of the misfit between joints that a wrong gain has to remove
_GAIN_AGREED, _GAIN_SURE = 0.3, 0.8  # the same, where the nominal model agrees, and where something speaks against it
_NOMINAL_OFF = 1.5  # times, against the nominal model: those are often wrong by tens of percent themselves
_CONDITION = 200.0  # of the scaled columns; good trajectories give 20 to 50
_FEW = 5.0  # equations for each base parameter
_FEW_EFFECTIVE = 2.0
_OFFSET = 0.6  # of the joint's RMS torque
_WORSE = 2.0  # times the error on the fitted data
_NOT_CONSTANT = 3.0  # spread over blocks against stated deviations
# Cause of a value below zero by the group of its kind, and what to say of it.
_NEGATIVE = {
    "rotor": ("negative rotor inertia", "no rotor can be so; it takes up an error of the inertias"),
    "body": ("unphysical inertia", "no body can be so; a pc- method keeps to what can be"),
    "friction": ("negative friction", "friction would push; check the signs of {joints} and the friction model"),
    "stiffness": ("negative stiffness", "no spring can be so; check the signs of {joints}"),
}
_NEGATIVE_OTHER = ("negative parameter", "its term does not allow it; check the signs of {joints}")


@dataclass(frozen=True)
class Finding:
    """One thing to say. cause: two or three words for it. subject: the parameters, joint or log it is about."""

    kind: FindingKind
    subject: str
    sentence: str
    cause: str = ""

    def to_dict(self) -> dict[str, Any]:
        return plain(vars(self))


def suspect(subject: str, text: str, cause: str) -> Finding:
    return Finding("suspicious", subject, sentence(text), cause)


def still_or_silent(problem: Problem, motions: Sequence[JointMotion]) -> Iterator[Finding]:
    """Joints that never moved, torques that say nothing."""
    for j, motion in enumerate(motions):
        who = joint_label(motion.joint)
        if not motion.moves:
            width = f"{motion.range:.1g} {motion.unit}".strip()
            yield suspect(who, f"{who} never moved (range {width}), so the data say nothing of its own inertia and "
                               "friction", "no motion")
        torques = [part.tau[:, j] for part in problem.samples]
        if not any(np.any(tau) for tau in torques):
            yield suspect(who, f"the torque of {who} is zero throughout: check its column", "no torque")
        elif max(float(np.ptp(tau)) for tau in torques) == 0.0:
            yield suspect(who, f"the torque of {who} never changes: check its column", "constant torque")


def beyond_limits(motions: Sequence[JointMotion]) -> Iterator[Finding]:
    """Positions or velocities that the robot cannot reach, as degrees taken for radians give."""
    far = []
    for motion in motions:
        if motion.unit != "rad" or not motion.moves:
            continue
        limit = max(abs(x) for x in (motion.lower, motion.upper) if x is not None) if (
            motion.lower is not None or motion.upper is not None) else 4.0 * np.pi
        if max(abs(motion.low), abs(motion.high)) > 3.0 * limit:
            far.append(motion)
    if far:
        worst = max(far, key=lambda m: max(abs(m.low), abs(m.high)))
        reach = max(abs(worst.low), abs(worst.high))
        yield suspect(joints_listed([m.joint for m in far]),
                      f"{joint_label(worst.joint)} reaches {reach:.3g} rad, far beyond its limits: positions look like "
                      "degrees taken for radians", "degrees for radians")
        return
    for motion in motions:
        who, slack = joint_label(motion.joint), 0.05
        low, high = motion.lower, motion.upper
        if (low is not None and motion.low < low - slack) or (high is not None and motion.high > high + slack):
            yield suspect(who, f"{who} goes from {motion.low:.3g} to {motion.high:.3g} {motion.unit}, beyond its "
                               "limits: check sign, offset and unit of its position", "beyond limits")
        elif motion.velocity_limit is not None and motion.speed > 1.5 * motion.velocity_limit:
            yield suspect(who, f"{who} reaches {motion.speed:.3g} {motion.unit}/s, its limit is "
                               f"{motion.velocity_limit:.3g}: check the unit of position and the time stamps",
                          "beyond limits")


def too_few(problem: Problem, estimate: Estimate) -> Iterator[Finding]:
    rows, base = sum(problem.regression.rows), len(problem.base)
    effective = sum(estimate.diagnostics.get("effective_rows_per_joint", problem.regression.rows))
    if rows < _FEW * base:
        yield suspect("data", f"{rows} equations are few for {base} base parameters: record a longer motion",
                      "too few samples")
    elif effective < _FEW_EFFECTIVE * base:
        yield suspect("data", f"{rows} equations are worth only {effective:.0f} independent ones, few for {base} base "
                              "parameters: record a longer motion", "few independent samples")


def badly_conditioned(estimate: Estimate) -> Iterator[Finding]:
    condition = float(estimate.diagnostics.get("condition", 0.0))
    if condition > _CONDITION:
        yield suspect("data", f"the condition number is {condition:.3g} (columns scaled; below {_CONDITION:g} is "
                              "good): noise makes some parameters hard to tell apart; use an exciting trajectory",
                      "condition number")


def below_zero(problem: Problem, estimate: Estimate) -> Iterator[Finding]:
    """Friction, rotor inertia and diagonal inertias below zero by more than their deviations allow."""
    items = estimate.base.parameters.items
    found: dict[tuple[str, str], list[int]] = {}
    for i, row in enumerate(estimate.base.matrix):
        parts = np.flatnonzero(row)
        value, std = float(estimate.values[i]), float(estimate.std[i])
        if (not estimate.identified[i] or not all(items[c].never_negative for c in parts) or np.any(row[parts] < 0)
                or value > -_BELOW * std or value > -1e-9 * max(1.0, float(np.abs(estimate.values).max()))):
            continue
        kind = items[estimate.base.independent[i]].kind
        found.setdefault(_NEGATIVE.get(kind.group, _NEGATIVE_OTHER), []).append(i)
    for (cause, why), places in found.items():
        leading = [items[estimate.base.independent[i]] for i in places]
        said = listed([f"{estimate.names[i]} ({one.kind.words}, {estimate.values[i]:.3g} +- {estimate.std[i]:.1g} "
                       f"{estimate.base.units[i]})" for i, one in zip(places, leading, strict=True)])
        joints = joints_listed(list(dict.fromkeys(problem.regression.joints[one.owner] for one in leading)))
        yield suspect(", ".join(estimate.names[i] for i in places),
                      f"{said} {'is' if len(places) == 1 else 'are'} below zero: {why.format(joints=joints)}", cause)


def not_positive_definite(problem: Problem, estimate: Estimate) -> Iterator[Finding]:
    """The inertia matrix at recorded postures: with a negative eigenvalue no simulation is possible."""
    model = complete(estimate.model)
    if not problem.samples or not estimate.identified.all():
        return
    q = np.concatenate([part.q[np.linspace(0, len(part) - 1, min(200, len(part))).astype(int)]
                        for part in problem.samples])
    matrices = model.inertia_matrix(estimate.full, q)
    if not np.allclose(matrices, np.swapaxes(matrices, 1, 2), rtol=0.0, atol=1e-6 * np.abs(matrices).max()):
        return  # the torques of such a model do not drive its coordinates one by one
    shares, directions = least_inertia(matrices)
    negative = shares < -1e-9
    if not negative.any():
        return
    worst = int(np.argmin(shares))
    v = directions[worst]
    # v' M v is linear in the parameters: its deviation follows from theirs.
    _, units = split_regressor(model, q[worst:worst + 1], np.zeros((1, len(v))))
    gradient = np.einsum("k,kjp,j->p", v, units[0], v)[estimate.base.independent]
    variance = float(gradient @ estimate.covariance @ gradient)
    if float(gradient @ estimate.values) < -_BELOW * np.sqrt(max(variance, 0.0)):
        yield suspect("inertia matrix", f"the inertia matrix is not positive definite in {100 * negative.mean():.0f} % "
                                        "of the recorded postures: the estimate cannot be simulated; a pc- method "
                                        "keeps to what can be", "unphysical inertia")


def large_offsets(estimate: Estimate, reconstruction: Reconstruction, still: Sequence[int]) -> Iterator[Finding]:
    """Offsets that make up most of a moving joint's torque."""
    items, found = estimate.base.parameters.items, []
    for i, c in enumerate(estimate.base.independent):
        if items[c].owner in still or items[c].kind.group != "offset" or not estimate.identified[i]:
            continue
        torque = reconstruction.joints[items[c].owner].torque_rms or 0.0
        value = abs(float(estimate.values[i]))
        if torque > 0 and value > max(_OFFSET * torque, 3.0 * float(estimate.std[i])):
            found.append((estimate.names[i], 100.0 * value / torque, reconstruction.joints[items[c].owner].name))
    if found:
        names = [name for name, _, _ in found]
        which, their = ("offsets", "are") if len(found) > 1 else ("offset", "is")
        shares, joints = span([share for _, share, _ in found]), joints_listed([joint for _, _, joint in found])
        yield suspect(", ".join(names), f"the {which} {listed(names)} {their} {shares} of the torque of {joints}: "
                                        "check the zero of the sensor or current", "large offset")


def wrong_gain(gains: Sequence[Gain], tests: ResidualTests) -> tuple[int, float] | None:
    """The joint (from 0) whose torque most likely has the wrong scale against the others, and that scale.

    A wrong scale leaves the joint's own equations intact and the nominal model's gravity sees it too. Where they speak
    against it, it takes more to blame the gain, where the nominal model agrees, less.
    """
    found: list[tuple[float, int, float]] = []
    for j, (gain, test) in enumerate(zip(gains, tests.joints, strict=True)):
        if gain.gain is None or gain.std is None:
            continue
        off, nominal, needed = gain.gain - 1.0, gain.by_nominal, _GAIN_EXPLAINS
        if nominal is not None and 0.5 < (nominal - 1.0) / off < 2.0:
            needed = _GAIN_AGREED
        elif test.finding is not None or (nominal is not None and abs(nominal - 1.0) < 0.5 * abs(off)):
            needed = _GAIN_SURE
        if gain.improvement > needed and abs(off) > max(_GAIN_OFF, _GAIN_DEVIATIONS * gain.std):
            found.append((gain.improvement, j, gain.gain))
    return max(found)[1:] if found else None


def gain_finding(gains: Sequence[Gain], j: int) -> Finding:
    """The sentence for a joint whose torque has the wrong scale."""
    gain = gains[j]
    who, value = joint_label(gain.joint), gain.gain or 1.0
    # With two joints sharing everything, one too large is the other too small.
    rivals = [joint_label(g.joint) for g in gains if g is not gain and g.gain is not None
              and g.improvement > 0.95 * gain.improvement]
    if value < 0:
        return suspect(who, f"the torque of {who} has the wrong sign: the other joints' torques say the opposite",
                       "torque sign")
    doubt = f" (or that of {listed(rivals)} by the inverse)" if rivals else ""
    nominal = f"; the nominal model says {gain.nominal:.2f}" if gain.by_nominal is not None else ""
    return suspect(who, f"the drive gain of {who} looks wrong: its torque is {value:.2f} +- {gain.std or 0.0:.1g} "
                        f"times what the other joints' torques imply{doubt}{nominal}", "drive gain")


def nominal_gains(gains: Sequence[Gain]) -> Iterator[Finding]:
    """Torques far from what the nominal model's gravity asks for, by one factor that explains them."""
    told = [(gain.joint, gain.by_nominal) for gain in gains if gain.by_nominal is not None]
    off = [(joint, value) for joint, value in told if not 1.0 / _NOMINAL_OFF < value < _NOMINAL_OFF]
    sizes = np.array([value for _, value in off])
    if len(off) > 1 and len(off) == len(told) and np.ptp(sizes) < 0.3 * abs(float(sizes.mean())):
        yield suspect("torques", f"all torques are about {sizes.mean():.3g} times those of the nominal model: check "
                                 f"their unit and {'sign' if sizes[0] < 0 else 'gear ratios'}", "drive gain")
        return
    for joint, value in off:
        who = joint_label(joint)
        if value < 0:
            yield suspect(who, f"the torque of {who} has the opposite sign of the nominal model's", "torque sign")
        else:
            yield suspect(who, f"the drive gain of {who} looks wrong: its torque is {value:.3g} times that of the "
                               "nominal model", "drive gain")


def residuals_speak(tests: ResidualTests) -> Iterator[Finding]:
    """What residuals follow; which are coloured without a cause; which have outliers."""
    causes: dict[str, list[JointTests]] = {}
    for joint in tests.joints:
        if joint.finding is not None:
            causes.setdefault(joint.finding.candidate, []).append(joint)
    for candidate, joints in causes.items():
        who = joints_listed([joint.joint for joint in joints])
        text = joints[0].sentences[0]
        first = joints[0].finding
        if len(joints) > 1 and first is not None:
            verb, rest = first.seen.split(" ", 1)
            hint = first.hint
            if candidate == "delay":
                late = [1e3 * (joint.finding.coefficient or 0.0) for joint in joints if joint.finding is not None]
                hint = (f"their torques come {span([abs(ms) for ms in late], 'ms')} later than the motion says"
                        if max(late) < 0 else "torque and motion are out of step in time")
            shares = span([100 * joint.finding.share for joint in joints if joint.finding is not None])
            verb = "are" if verb == "is" else verb.removesuffix("s")
            text = f"the residuals of {who} {verb} {rest}: {hint} ({shares} of them)"
        yield suspect(who, text, f"residual follows {candidate}")
    coloured = [joint for joint in tests.joints if joint.finding is None and joint.whiteness is not None
                and joint.whiteness.coloured]
    if coloured:
        shares = span([100 * joint.whiteness.predictable for joint in coloured if joint.whiteness is not None])
        who = joints_listed([joint.joint for joint in coloured])
        which, them = ("residuals", "them") if len(coloured) > 1 else ("residual", "it")
        yield suspect(who, f"the {which} of {who} {'are' if len(coloured) > 1 else 'is'} coloured: {shares} of {them} "
                           "can be predicted from the past, so something is not modelled", "coloured residual")
    wild = [joint for joint in tests.joints if joint.normality is not None
            and joint.normality.hint.startswith("outliers")]
    if wild:
        shares = span([100 * joint.normality.beyond for joint in wild if joint.normality is not None])
        who = joints_listed([joint.joint for joint in wild])
        which, have = ("residuals", "have") if len(wild) > 1 else ("residual", "has")
        yield suspect(who, f"the {which} of {who} {have} outliers ({shares} of the rows): a robust method (irls) is "
                           "safer", "outliers")


def badly_explained(reconstruction: Reconstruction, tests: ResidualTests, still: Sequence[int]) -> Iterator[Finding]:
    """Joints whose torque varies otherwise than the model says, unless they stand still or a missing term is known."""
    low = [fit for j, (fit, test) in enumerate(zip(reconstruction.joints, tests.joints, strict=True))
           if fit.r2 is not None and fit.r2 < _LOW_R2 and j not in still and test.finding is None]
    if low:
        who = joints_listed([fit.name for fit in low])
        shares = span([100 * max(fit.r2 or 0.0, 0.0) for fit in low])
        yield suspect(who, f"the model explains only {shares} of the variation of the torque of {who}", "low R2")


def does_not_carry_over(own: Reconstruction, validations: Sequence[Reconstruction]) -> Iterator[Finding]:
    """Other logs whose torques have another scale, or that are met far worse than the fitted one."""
    for other in validations:
        scaled = []
        for j, (mine, fit) in enumerate(zip(own.joints, other.joints, strict=True)):
            if (fit.slope is None or mine.slope is None or fit.relative_error is None
                    or abs(fit.slope - mine.slope) < _GAIN_OFF):
                continue
            before, after = _scaled_misfit(other, j, fit.slope)
            if after < 0.5 * before and fit.relative_error > _WORSE * (mine.relative_error or 0.0):
                scaled.append((fit.name, fit.slope))
        if scaled:
            who, many = joints_listed([name for name, _ in scaled]), len(scaled) > 1
            what, times = "the load" if many else "its drive gain or its load", listed([f"{x:.2f}" for _, x in scaled])
            yield suspect(who, f"on {other.source} the torque of {who} is {times} times the predicted one: {what} has "
                               "changed", "load" if many else "drive gain or load")
        elif other.relative_error > max(_WORSE * own.relative_error, own.relative_error + 1.0):
            yield suspect(other.source, f"the error on {other.source} is {other.relative_error:.1f} %, on the fitted "
                                        f"data {own.relative_error:.1f} %: the estimate does not carry over",
                          "validation error")


def changes_in_time(problem: Problem, cross: CrossValidation | None) -> Iterator[Finding]:
    """Blocks of time that the others do not predict, parameters that move more than they should."""
    if cross is None or cross.mean < 1e-6:
        return  # nothing to say of rounding
    known = cross.errors[np.isfinite(cross.errors)]
    typical = float(np.median(known))
    if len(known) > 3 and float(known.max()) > 3.0 * typical and float(known.max()) > typical + 2.0:
        times = block_times(problem.samples, problem.regression, cross.worst)
        when = f" ({times[0]:.3g} to {times[1]:.3g} s)" if times else ""
        which = f"block {cross.worst + 1}"
        yield suspect(which, f"{which} of {len(problem.regression.blocks)}{when} is predicted to {known.max():.1f} % "
                             f"by the others, {known.max() / typical:.1f} times the usual: its motion is found nowhere "
                             "else, or there was a contact or disturbance", "odd block of time")
    if cross.ratio is not None and cross.ratio > _NOT_CONSTANT:
        yield suspect("parameters", f"between blocks of time parameters move {cross.ratio:.1f} times as far as their "
                                    "stated deviations: the model is too simple or the robot changes (temperature, "
                                    "load)", "parameters not constant")


def _scaled_misfit(other: Reconstruction, j: int, slope: float) -> tuple[float, float]:
    before = after = 0.0
    for part in other.series:
        keep = part.keep[:, j]
        before += float(np.sum((part.measured[keep, j] - part.predicted[keep, j]) ** 2))
        after += float(np.sum((part.measured[keep, j] - slope * part.predicted[keep, j]) ** 2))
    return before, after


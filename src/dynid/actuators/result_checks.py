"""Findings on identified actuators: given values that the data contradict, drive limits, and unequal legs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dynid.actuators.drive_limits import MIN_DECREASE, POOR_FIT, SHORT_SEARCH, error_shares, saturation, speed_limit
from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue
from dynid.actuators.linear_stage import first_stage, with_friction
from dynid.actuators.problem import ChainProblem, Unknown
from dynid.actuators.refinement import Refinement, joint_weights, refine
from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.findings import Finding, Note

_SIGNIFICANT_RELEASE = 4.0  # standard errors by which an estimated value must differ from the given value
_MIN_CHANGE = 0.05  # smallest relative error of a gain or mass that is reported; smaller errors do not matter
# Squared error with a cause, relative to that with the best cause: below this ratio both explain the motion equally
# well. The searches end at a relative change of 0.1 %, which is far smaller.
_EQUAL_ERROR = 1.25
# Share of the squared error of a fit that stays poor: a cause that explains less is not reported, because another
# fault is probable.
_MIN_EXPLAINED = 0.9
_MAX_FACTOR = 20.0  # ratio of a given gain and the value that fits better, beyond which both are doubtful
_EARLY_ROWS = (2, 3, 4, 6, 8, 12)  # tested numbers of rows by which the motion may precede the logged commands
_TESTED_GAINS = ("kp", "ki", "kd", "kv", "gain", "kt", "resistance")
_TESTED_ERROR = 0.2  # relative error of a given value; data that do not show such an error do not test the value
_MIN_SHARED_CHANGE = 0.05  # smallest reported relative change of an estimate per relative change of a given value
_SMALL_ERROR = 1e-4  # rad: a smaller difference of mean errors is below the resolution of encoders
_MAX_LISTED = 4  # estimates that a note names
_TESTED_UNITS = {"delay": " s", "bias": " rad"}  # units of tested values; gains have the units of their law


@dataclass(frozen=True, eq=False)
class Released:
    """A given parameter, estimated from the data as a test of the given value.

    Attributes:
        name: name of the parameter.
        given, value: given and estimated value.
        std: standard error of the estimated value, NaN if the data do not determine the value.
        decrease: relative decrease of the squared position error by the estimated value.
    """

    name: str
    given: float
    value: float
    std: float
    decrease: float


def released(problem: ChainProblem, fit: Refinement, name: str) -> Released | Note | None:
    """Return the value of a parameter that fits the data better than the given value, or a note if the data cannot test
    the given value; None if the data agree with the given value.

    The parameter has one value for all joints. All other parameters are fitted again with a value below and a value
    above the given one. If neither value increases the errors, the data do not test the parameter. If one value
    decreases the errors, the parameter is estimated.
    """
    items = problem.items
    given = [problem.known[j].get(name, items[name].value) for j in range(problem.dof)]
    if len(set(given)) > 1 or not np.isfinite(given[0]) or any(name in log.gains for log in problem.logs):
        return None
    if given[0] == 0.0 and name not in ("delay", "bias"):
        return None  # a gain that is switched off has no relative error
    weights = joint_weights(fit.residual)
    cost = float(np.sum((fit.residual * weights) ** 2))
    step = {"delay": _interval(problem), "bias": items["bias"].typical}.get(name, _TESTED_ERROR * given[0])
    trials = []
    starts = [(given[0] - step, fit.solution), (given[0] + step, fit.solution)]
    if name == "delay" and np.any(error_shares(problem, fit.residual) > POOR_FIT):
        starts.append(_free_delay(problem, fit))
    for value, start in starts:
        changed = replace(problem, known=tuple({**own, name: value} for own in problem.known))
        try:
            again = refine(changed, start, max_iterations=SHORT_SEARCH, finish=False)
        except NotPossibleError:
            continue
        trials.append((float(np.sum((again.residual * weights) ** 2)), value, again))
    best = min(trials, key=lambda one: one[0], default=None)
    if best is None:
        return None
    is_lower = best[0] < (1.0 - MIN_DECREASE) * cost
    if not is_lower and best[0] < (1.0 + MIN_DECREASE) * cost:
        change = best[1] / given[0] - 1.0 if given[0] else 0.0
        return None if name in ("delay", "bias") else _untested_note(problem, fit, best[2], name, change)
    if not is_lower and _curved_minimum(cost, trials[:2], given[0], step):
        return None
    wider = replace(problem, unknowns=(*problem.unknowns, Unknown(name, -1, items[name])))
    near = best[2] if best[0] < cost else fit
    free = refine(wider, np.concatenate([near.x, [best[1] if best[0] < cost else given[0]], near.starts]),
                  max_iterations=15, finish=False)
    after = float(np.sum((free.residual * weights) ** 2))
    found = Released(name, given[0], float(free.x[-1]), float(free.std[-1]), 1.0 - after / cost)
    change = abs(found.value - found.given)
    is_wide = found.std > _TESTED_ERROR * abs(given[0]) or (
        _MIN_CHANGE * abs(given[0]) < change <= _SIGNIFICANT_RELEASE * found.std and found.decrease > 2 * MIN_DECREASE)
    if is_lower and name not in ("delay", "bias") and is_wide:
        least, value = min((best[0], best[1]), (after, found.value))
        return Released(name, given[0], value, float("nan"), 1.0 - least / cost)  # a better fit, but undetermined
    if name not in ("delay", "bias") and not given[0] / _MAX_FACTOR < found.value < given[0] * _MAX_FACTOR:
        return None
    far = change > max(_SIGNIFICANT_RELEASE * found.std, _MIN_CHANGE * abs(found.given),
                       0.5 * items[name].typical if name in ("delay", "bias") else 0.0)
    return found if far and found.decrease > MIN_DECREASE and not free.at_bound[-1] else None


def _free_delay(problem: ChainProblem, fit: Refinement) -> tuple[float, Array]:
    """Return the delay that the first stage would estimate, s, and initial values (unknowns,) for this delay. A wrong
    delay may make a stiff loop unstable. All other values of the fit are then far from the solution with the right
    delay, and iterations from the values of the fit do not reach this solution."""
    free = replace(problem, known=tuple({key: value for key, value in own.items() if key != "delay"}
                                        for own in problem.known))
    first = first_stage(with_friction(free, "m1", (), None)).values
    values = [{**own, **start} for own, start in zip(problem.values(fit.x), first, strict=True)]
    return float(first[problem.moving[0]]["delay"]), problem.start(values)


def _interval(problem: ChainProblem) -> float:
    """Return the median sampling interval of the first log, s."""
    return float(np.median(np.diff(problem.logs[0].signals.t)))


def _curved_minimum(cost: float, trials: Sequence[tuple[float, float, Refinement]], given: float, step: float) -> bool:
    """Return whether a parabola through the trial costs has its minimum near the given value (`_MIN_CHANGE`)."""
    if len(trials) < 2:
        return True
    (low, _, _), (high, _, _) = trials
    curvature = low - 2.0 * cost + high
    return curvature <= 0.0 or abs(0.5 * (low - high) / curvature * step) < _MIN_CHANGE * max(abs(given), step)


def _untested_note(problem: ChainProblem, fit: Refinement, other: Refinement, name: str, given: float) -> Note:
    """Return a note on a given parameter that the data cannot test, with the estimates that change most with it.

    Args:
        problem, fit: the estimation problem, and its solution with the given value.
        other: solution with another value of the parameter.
        name: name of the parameter.
        given: relative change of the parameter from `fit` to `other`.
    """
    known = np.abs(fit.x) > _SIGNIFICANT_RELEASE * fit.std
    relative = np.where(known & ~fit.at_bound, (other.x - fit.x) / np.where(fit.x == 0.0, np.inf, fit.x), 0.0)
    found = {problem.label(k): float(change / given) for k, change in enumerate(relative)
             if abs(change) > abs(given) * _MIN_SHARED_CHANGE}
    changes = sorted(found.items(), key=lambda one: -abs(one[1]))[:_MAX_LISTED]
    listed = ", ".join(f"{label} {10.0 * change:+.0f} %" for label, change in changes)
    effect = f" If the true value is 10 % higher, these estimates change: {listed}." if listed else ""
    value = problem.known[0].get(name, 1.0)
    what = "the scale of all torques" if name == "torque_scale" else f"the given {name} = {value:.4g}"
    return Note("given-untested", f"These data cannot test {what}.{effect}", dict(changes))


def causes(problem: ChainProblem, fit: Refinement) -> tuple[list[Finding], list[Note]]:
    """Return findings on the cause that explains most of a chain's position errors, and notes on given gains that the
    data do not test."""
    if early := late_commands(problem, fit):
        return early, []
    wrong, notes = given_values(problem, fit)
    groups = [group for group in (saturation(problem, fit), speed_limit(problem, fit), wrong) if group]
    shares = error_shares(problem, fit.residual)
    worst = int(np.argmax(shares))
    partly = ""
    if groups:
        explained, best = max(((max(float(np.max(one.evidence["decrease"])) for one in group), group)
                               for group in groups), key=lambda one: one[0])
        if explained > _MIN_EXPLAINED or shares[worst] * np.sqrt(1.0 - explained) < POOR_FIT:
            return best, []
        partly = f" The best single cause ({best[0].title}) explains {100 * explained:.0f} % of the squared error."
    if shares[worst] < POOR_FIT:
        return [], notes
    text = (f"The simulated motion of {problem.names[worst]} differs from the measured motion by "
            f"{100 * shares[worst]:.0f} %, and neither a wrong gain, mass, delay or zero position nor a limit of the "
            "drive explains the difference. Check the unit of the positions, the drive law, the robot file, stops and "
            f"contacts, and whether the commands are those that the drive received.{partly}")
    return [Finding("motion-not-explained", "problem", "warning", text, "simulated motion", (problem.names[worst],),
                    evidence={"share": float(shares[worst])}, second_fit=True)], []


def late_commands(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """Return a finding if the motion precedes the logged commands, which no delay of the drive explains."""
    delay = next((k for k, one in enumerate(problem.unknowns) if one.name == "delay"), None)
    is_poor = bool(np.any(error_shares(problem, fit.residual) > POOR_FIT))
    if delay is None or not is_poor or not fit.at_bound[delay] or fit.x[delay] > 0.0:
        return []
    before, trials = float(np.sum(fit.residual ** 2)), []
    for rows in _EARLY_ROWS:
        fixed = replace(problem, known=tuple({**own, "delay": -rows * _interval(problem)} for own in problem.known))
        plain = with_friction(fixed, "m1", (), -rows * _interval(problem))
        with suppress(NotPossibleError):
            again = refine(plain, plain.start(first_stage(plain).values), max_iterations=SHORT_SEARCH, finish=False)
            trials.append((float(np.sum(again.residual ** 2)), rows))
    after, rows = min(trials, default=(before, 0))
    if after > (1.0 - _MIN_EXPLAINED) * before:
        return []
    seconds, decrease = rows * _interval(problem), 1.0 - after / before
    text = (f"The motion of {_names(problem)} precedes the logged commands by about {rows} rows ({seconds:.3g} s): "
            f"with commands shifted by this time, the motion is explained {100 * decrease:.0f} % better. Record each "
            f"command when it is sent, or shift the column of the commands by {rows} rows.")
    return [Finding("commands-late", "problem", "warning", text, "late commands", problem.names, ("delay",),
                    evidence={"rows": float(rows), "seconds": seconds, "decrease": decrease}, second_fit=True)]


def given_values(problem: ChainProblem, fit: Refinement) -> tuple[list[Finding], list[Note]]:
    """Return a finding on the given gain, mass, delay or encoder zero that the data contradict most, and notes on given
    gains that the data cannot test."""
    estimated = {one.name for one in problem.unknowns}
    drive = [item.name for item in problem.law.parameters if item.name in _TESTED_GAINS
             and item.name in problem.known[0] and item.name not in estimated]
    scale_is_known = bool(drive) and not estimated & set(problem.law.estimated)
    names = [*(["torque_scale"] if scale_is_known else []), *(drive if len(drive) > 1 or not scale_is_known else []),
             *(name for name in ("delay", "bias") if name not in estimated)]
    results = [one for name in names if (one := released(problem, fit, name)) is not None]
    notes = [one for one in results if isinstance(one, Note)]
    found = [one for one in results if isinstance(one, Released)]
    if not found:
        return [], notes
    least = 1.0 - max(one.decrease for one in found)
    # Among causes that explain the motion equally well, the scale of all torques is first: it covers gains and masses.
    equal = [one for one in found if 1.0 - one.decrease <= _EQUAL_ERROR * least]
    return [_contradiction(problem, equal[0]) if len(equal) == 1 or equal[0].name == "torque_scale"
            else _one_wrong_value(problem, equal)], notes


def _contradiction(problem: ChainProblem, found: Released) -> Finding:
    joints = problem.names
    numbers = {"given": found.given, "estimate": found.value, "decrease": found.decrease}
    if np.isfinite(found.std):
        numbers["std"] = found.std
    share = 100.0 * found.decrease
    moved = _names(problem)
    if found.name == "torque_scale":
        text = (f"The motion of {moved} is explained {share:.0f} % better if the drive gives {_text(found)} times the "
                f"torque that the given gains state, or if the links weigh {1 / found.value:.3g} times what the robot "
                "file states. These data cannot distinguish gains from masses: check the gains and weigh a link.")
        return Finding("scale-contradicted", "problem", "warning", text, "gains or masses", joints,
                       ("torque_scale", "link_scale"), evidence=numbers, second_fit=True)
    unit = _TESTED_UNITS.get(found.name, "")
    if found.name == "bias":
        text = (f"The motion of {moved} is explained {share:.0f} % better if the encoder shows {_text(found)} "
                "rad too much: the zero of the positions is not that of the robot file. Add --also bias to estimate "
                "the bias of the encoder.")
        return Finding("bias-suspected", "problem", "warning", text, "encoder bias", joints, ("bias",),
                       evidence=numbers, second_fit=True)
    text = (f"The motion of {moved} is explained {share:.0f} % better with {found.name} = {_text(found)}{unit} than "
            f"with the given {found.given:.4g}{unit}. Check the value, or omit it so that it is estimated.")
    code = "delay-contradicted" if found.name == "delay" else "gain-contradicted"
    return Finding(code, "problem", "warning", text, f"given {found.name}", joints, (found.name,), evidence=numbers,
                   second_fit=True)


def _one_wrong_value(problem: ChainProblem, equal: Sequence[Released]) -> Finding:
    """Return a finding that one of several given values is probably wrong."""
    listed = ", or ".join(f"{one.name} = {_text(one)}{_TESTED_UNITS.get(one.name, '')} in place of the given "
                          f"{one.given:.4g}{_TESTED_UNITS.get(one.name, '')}" for one in equal)
    decrease = max(one.decrease for one in equal)
    names = tuple(one.name for one in equal)
    text = (f"The motion of {_names(problem)} is explained {100.0 * decrease:.0f} % better with {listed}. These data "
            "cannot distinguish which value is wrong: check each value, or omit one so that it is estimated.")
    return Finding("gain-contradicted" if set(names) & set(_TESTED_GAINS) else f"{names[0]}-contradicted",
                   "problem", "warning", text, f"given {' or '.join(names)}", problem.names, names,
                   evidence={"given": tuple(one.given for one in equal), "estimate": tuple(one.value for one in equal),
                             "decrease": tuple(one.decrease for one in equal)}, second_fit=True)


def _names(problem: ChainProblem) -> str:
    """Return the names of a chain's joints as text."""
    return problem.names[0] if len(problem.names) == 1 else f"{problem.names[0]} to {problem.names[-1]}"


def _text(found: Released) -> str:
    """Return an estimated value as text, with its standard error if the error is finite."""
    return f"{found.value:.4g}" + (f" +- {found.std:.2g}" if np.isfinite(found.std) else "")


_LEG_SIGMAS = 3.0  # standard errors of a difference between corresponding joints, above which it is significant
_LEG_CHANGE = 0.2  # smallest relative difference between corresponding joints that is reported
_SIDE_WORDS = {"fl", "fr", "rl", "rr", "hl", "hr", "bl", "br", "lf", "rf", "lh", "rh", "left", "right", "l", "r",
               "front", "rear", "back", "hind", "middle"}


def role(name: str) -> str:
    """Return the name of a joint without words for left, right, front and rear, so that equal joints of all legs
    match."""
    words = re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
    return "_".join(word for word in words if word not in _SIDE_WORDS)


def worse_than_command(estimate: ActuatorEstimate) -> list[Finding]:
    """Return a finding if simulated positions of joints are worse than those of the trivial model `DelayedCommand`, and
    no other finding on these joints names a cause."""
    explained = {joint for one in estimate.findings if one.severity != "info" for joint in one.joints}
    own = np.average([log.mean_error for log in estimate.logs], axis=0, weights=[len(log.t) for log in estimate.logs])
    trivial = estimate.delayed_command
    worse = [j for j in np.argsort(trivial.error - own)
             if own[j] > trivial.error[j] + _SMALL_ERROR and estimate.joints[j] not in explained]
    if not worse:
        return []
    listed = ", ".join(f"{estimate.joints[j]} {1e3 * own[j]:.3g} instead of {1e3 * trivial.error[j]:.3g} mrad"
                       for j in worse)
    text = (f"The simulation of these joints has a larger mean error than {trivial.text}: {listed}. Their values are "
            "not those of the drives. Give a known gain (--gain kp=VALUE), choose another drive law (--law), or check "
            "the robot file and the units.")
    return [Finding("worse-than-command", "problem", "fatal" if estimate.unusable else "warning", text,
                    "worse than the command", tuple(estimate.joints[j] for j in worse),
                    evidence={"mean_error": tuple(float(own[j]) for j in worse),
                              "delayed_command": tuple(float(trivial.error[j]) for j in worse)})]


def unequal_joints(parameters: Sequence[ActuatorValue]) -> list[Finding]:
    """Return findings on corresponding joints of several legs whose armature or friction differs significantly."""
    groups: dict[tuple[str, str], list[ActuatorValue]] = defaultdict(list)
    for one in parameters:
        if one.identified and not one.is_given and one.name in ("armature", "coulomb", "viscous"):
            groups[role(one.joint), one.name].append(one)
    found = []
    for (name, parameter), group in groups.items():
        pairs = [(abs(a.value - b.value) / max(np.hypot(a.std, b.std), 1e-300), a, b) for a, b in combinations(group, 2)
                 if abs(a.value - b.value) > _LEG_CHANGE * max(abs(a.value), abs(b.value))]
        if not pairs or max(pairs, key=lambda one: one[0])[0] < _LEG_SIGMAS:
            continue
        low, high = min(group, key=lambda one: one.value), max(group, key=lambda one: one.value)
        listed = ", ".join(f"{one.joint} {one.value:.3g}" for one in group)
        text = (f"{parameter} of the {name} joints differs beyond the intervals: {listed} {group[0].unit}. The largest "
                f"is {high.joint}, the smallest {low.joint}.")
        found.append(Finding("unequal-joints", "problem", "info", text, "unequal joints",
                             tuple(one.joint for one in group), (parameter,),
                             evidence={"values": tuple(one.value for one in group),
                                       "std": tuple(one.std for one in group)}))
    return found

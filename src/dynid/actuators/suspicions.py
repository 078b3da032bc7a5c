"""Findings on identified actuators: gains, masses, delays and limits that the data contradict, and unequal legs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.estimate import ActuatorValue
from dynid.actuators.parameters import MECHANICS
from dynid.actuators.problem import ChainProblem, Unknown
from dynid.actuators.refinement import Refinement, covariance_of, jacobian, refine, scales
from dynid.findings import Finding

_SUSPICIOUS = 4.0  # standard errors by which a released value must differ from the given one
_MIN_CHANGE = 0.05  # relative, of a gain or mass; below it a difference has no practical weight
_MIN_DECREASE = 0.03  # relative decrease of the squared position error by a cause
_EQUAL_DECREASE = 0.01  # of the squared error: causes that differ by less explain the motion equally well
_LIMIT_SHARES = (0.9, 0.75, 0.6, 0.45)  # of the largest torque of the law, tried as limits
_LEG_SIGMAS = 3.0  # standard errors of a difference between equal joints
_LEG_CHANGE = 0.2  # relative difference between equal joints
_SIDE_WORDS = {"fl", "fr", "rl", "rr", "hl", "hr", "bl", "br", "lf", "rf", "lh", "rh", "left", "right", "l", "r",
               "front", "rear", "back", "hind", "middle"}


@dataclass(frozen=True, eq=False)
class Released:
    """A fit in which one more parameter is free: its value, standard error, and the decrease of the squared error."""

    name: str
    given: float
    value: float
    std: float
    decrease: float


def released(problem: ChainProblem, fit: Refinement, name: str) -> Released | None:
    """Return the estimate of a given parameter as one value for all joints; None if the data agree with the given
    value.

    One Gauss-Newton step from the solution decides whether a new fit is made.
    """
    items = {**MECHANICS, **{item.name: item for item in problem.law.parameters}}
    given = [problem.known[j].get(name, items[name].value) for j in range(problem.dof)]
    if len(set(given)) > 1 or not np.isfinite(given[0]) or any(name in log.gains for log in problem.logs):
        return None
    wider = replace(problem, unknowns=(*problem.unknowns, Unknown(name, -1, items[name])))
    x = np.append(fit.x, given[0])
    scale = scales(wider, x)
    column = jacobian(wider, x, scale, which=np.array([len(x) - 1]))
    free = np.flatnonzero(~fit.at_bound)
    slopes = np.concatenate([fit.jacobian[:, :, free], column], axis=2)
    rows = [len(log.signals.t) for log in problem.logs]
    covariance = covariance_of(slopes, fit.residual, rows)
    weights = 1.0 / np.maximum(np.sqrt(np.mean(fit.residual ** 2, axis=0)), 1e-9)
    sizes = np.append(scale[free], scale[-1])
    matrix = (slopes * weights[None, :, None] * sizes).reshape(-1, len(free) + 1)
    step = np.linalg.lstsq(matrix, (fit.residual * weights).ravel(), rcond=1e-8)[0] * sizes
    if abs(step[-1]) < _SUSPICIOUS * np.sqrt(max(covariance[-1, -1], 0.0)):
        return None
    x[-1] += np.clip(step[-1], -0.3 * scale[-1], 0.3 * scale[-1])
    again = refine(wider, x, max_iterations=15, finish=False)
    before, after = (float(np.sum((one * weights) ** 2)) for one in (fit.residual, again.residual))
    found = Released(name, given[0], float(again.x[-1]), float(again.std[-1]), 1.0 - after / before)
    far = abs(found.value - found.given) > max(_SUSPICIOUS * found.std, _MIN_CHANGE * abs(found.given),
                                               0.5 * items[name].typical if name == "delay" else 0.0)
    return found if far and found.decrease > _MIN_DECREASE and not again.at_bound[-1] else None


def given_values(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """Return findings on given gains, masses and delays that the data contradict: the cause that explains most."""
    estimated = {one.name for one in problem.unknowns}
    drive = [item.name for item in problem.law.parameters if item.name in problem.law.estimated
             and item.name in problem.known[0] and item.name not in estimated]
    scale_is_known = bool(drive) and not estimated & set(problem.law.estimated)
    names = [*(["torque_scale"] if scale_is_known else []), *(drive if len(drive) > 1 else []),
             *(["delay"] if "delay" not in estimated else [])]
    found = [one for name in names if (one := released(problem, fit, name)) is not None]
    if not found:
        return []
    most = max(one.decrease for one in found)
    # Causes that explain the motion equally well: the scale of all torques comes first, as it names gains and masses.
    return [_contradiction(problem, next(one for one in found if one.decrease > most - _EQUAL_DECREASE))]


def _contradiction(problem: ChainProblem, found: Released) -> Finding:
    joints = problem.names
    numbers = {"given": found.given, "estimate": found.value, "std": found.std, "decrease": found.decrease}
    share = 100.0 * found.decrease
    moved = joints[0] if len(joints) == 1 else f"{joints[0]} to {joints[-1]}"
    if found.name == "torque_scale":
        text = (f"The motion of {moved} is explained {share:.0f} % better if the drive gives {found.value:.3g} +- "
                f"{found.std:.2g} times the torque that the given gains state, or if the links weigh "
                f"{1 / found.value:.3g} times what the robot file states. These data cannot distinguish the two: check "
                "the gains and weigh a link.")
        return Finding("scale-contradicted", "suspicious", "warning", text, "gains or masses", joints,
                       ("torque_scale", "link_scale"), evidence=numbers, second_fit=True)
    unit = " s" if found.name == "delay" else ""
    text = (f"The motion of {moved} is explained {share:.0f} % better with {found.name} = {found.value:.4g} +- "
            f"{found.std:.2g}{unit} than with the given {found.given:.4g}{unit}. Check it, or leave it out so "
            "that it is estimated.")
    code = "delay-contradicted" if found.name == "delay" else "gain-contradicted"
    return Finding(code, "suspicious", "warning", text, f"given {found.name}", joints, (found.name,), evidence=numbers,
                   second_fit=True)


def saturation(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """Return a finding for each joint whose motion is explained much better by a torque limit that was not given."""
    name = next((item.name for item in problem.law.parameters if item.name in ("torque_limit", "current_limit")), None)
    if name is None or any(name in one for one in problem.known) or any(one.name == name for one in problem.unknowns):
        return []
    weights = 1.0 / np.maximum(np.sqrt(np.mean(fit.residual ** 2, axis=0)), 1e-9)
    before = float(np.sum((fit.residual * weights) ** 2))
    item = next(one for one in problem.law.parameters if one.name == name)
    found = []
    for j in problem.moving:
        joint, largest = problem.names[j], 0.0
        for log in problem.logs:
            gain = problem.numbers(fit.x, log)[j, c.KP]
            largest = max(largest, gain * float(np.max(np.abs(log.signals.command[:, j] - log.signals.q[:, j]))))
        wider = replace(problem, unknowns=(*problem.unknowns, Unknown(name, j, item)))
        trials = []
        for share in _LIMIT_SHARES:
            x = np.append(fit.x, share * largest)
            own = wider.residuals(x)
            trials.append((np.inf if own is None else float(np.sum((own * weights) ** 2)), x))
        cost, x = min(trials, key=lambda one: one[0])
        if cost > before * (1.0 - _MIN_DECREASE):
            continue
        again = refine(wider, x, max_iterations=15, finish=False)
        decrease = 1.0 - float(np.sum((again.residual * weights) ** 2)) / before
        limit, std = float(again.x[-1]), float(again.std[-1])
        if decrease > 2 * _MIN_DECREASE and limit < 0.97 * largest and std < 0.2 * limit:
            text = (f"{joint} is explained {100 * decrease:.0f} % better if its drive saturates at {limit:.4g} +- "
                    f"{std:.2g} {item.unit}, below the {largest:.3g} that is demanded. Add --gain {name}={limit:.3g}, "
                    f"or --also {name} to estimate it.")
            found.append(Finding("saturation", "suspicious", "warning", text, "saturation", (joint,), (name,),
                                 evidence={"limit": limit, "std": std, "demanded": largest, "decrease": decrease},
                                 second_fit=True))
    return found


def role(name: str) -> str:
    """Return the name of a joint without the words for its side and corner, which corresponding joints share."""
    words = [word for word in re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())]
    return "_".join(word for word in words if word not in _SIDE_WORDS)


def unequal_joints(parameters: Sequence[ActuatorValue]) -> list[Finding]:
    """Return findings on joints with the same role on several legs whose armature or friction differs."""
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
        found.append(Finding("unequal-joints", "suspicious", "info", text, "unequal joints",
                             tuple(one.joint for one in group), (parameter,),
                             evidence={"values": tuple(one.value for one in group),
                                       "std": tuple(one.std for one in group)}))
    return found

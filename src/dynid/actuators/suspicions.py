"""Findings on identified actuators: gains, masses, delays and limits that the data contradict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.first_stage import first_stage, largest_speed, with_friction
from dynid.actuators.parameters import MECHANICS
from dynid.actuators.problem import ChainProblem, Unknown
from dynid.actuators.refinement import Refinement, refine
from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.findings import Finding, Note

_SUSPICIOUS = 4.0  # standard errors by which a released value must differ from the given one
_MIN_CHANGE = 0.05  # relative, of a gain or mass; below it a difference has no practical weight
_MIN_DECREASE = 0.03  # relative decrease of the squared position error by a cause
# Squared error that a cause leaves, over that of the best cause: below it both explain the motion equally well. The
# searches end at a relative change of 0.1 %, far below it.
_EQUAL_ERROR = 1.25
_MIN_EXPLAINED = 0.5  # of the squared error of a poor fit: a cause that explains less is not named as the cause
_LIMIT_SHARES = (0.9, 0.75, 0.6, 0.45)  # of the largest torque of the law, tried as limits
_TESTED_GAINS = ("kp", "ki", "kd", "kv", "gain", "kt", "resistance")
_TESTED_ERROR = 0.2  # relative error of a given value that must be visible, else the data do not test it
_MIN_SHARED_CHANGE = 0.05  # relative change of an estimate by the relative change of a given value that is stated
_MAX_LISTED = 4  # estimates that a note names
_FASTER_COMMAND = 1.2  # times the largest speed of the motion: commands that are not faster reach no speed limit
_POOR_FIT = 0.03  # rms residual over rms motion of a joint, beyond which a cause is searched from several starts
_POOR_LIMIT_SHARES = (0.9, 0.6, 0.4, 0.25, 0.15, 0.08)  # as _LIMIT_SHARES, where the fit is poor
_SHORT_SEARCH = 6  # iterations from each
_UNITS = {"delay": " s", "bias": " rad"}  # of tested values; gains have those of their law


@dataclass(frozen=True, eq=False)
class Released:
    """A fit in which one more parameter is free: its value, standard error, and the decrease of the squared error."""

    name: str
    given: float
    value: float
    std: float
    decrease: float


@dataclass(frozen=True, eq=False)
class Untested:
    """A given parameter that the data cannot test, and the relative change of estimates with it by their labels."""

    name: str
    changes: dict[str, float]


def released(problem: ChainProblem, fit: Refinement, name: str) -> Released | Untested | None:
    """What the data say of a parameter that was given, one value for all joints; None where they agree with it.

    The other parameters are fitted again with a value below and one above the given one. If neither makes the errors
    larger, the data do not test it. If one makes them smaller, the parameter is estimated.
    """
    items = {**MECHANICS, **{item.name: item for item in problem.law.parameters}}
    given = [problem.known[j].get(name, items[name].value) for j in range(problem.dof)]
    if len(set(given)) > 1 or not np.isfinite(given[0]) or any(name in log.gains for log in problem.logs):
        return None
    if given[0] == 0.0 and name not in ("delay", "bias"):
        return None  # a gain that is switched off has no relative error
    weights = _joint_weights(fit)
    cost = float(np.sum((fit.residual * weights) ** 2))
    step = {"delay": _interval(problem), "bias": items["bias"].typical}.get(name, _TESTED_ERROR * given[0])
    trials = []
    starts = [(given[0] - step, fit.solution), (given[0] + step, fit.solution)]
    if name == "delay" and np.any(_error_shares(problem, fit) > _POOR_FIT):
        starts.append(_free_delay(problem, fit))
    for value, start in starts:
        changed = replace(problem, known=tuple({**own, name: value} for own in problem.known))
        try:
            again = refine(changed, start, max_iterations=_SHORT_SEARCH, finish=False)
        except NotPossibleError:
            continue
        trials.append((float(np.sum((again.residual * weights) ** 2)), value, again))
    best = min(trials, key=lambda one: one[0], default=None)
    if best is None:
        return None
    is_lower = best[0] < (1.0 - _MIN_DECREASE) * cost
    if not is_lower and best[0] < (1.0 + _MIN_DECREASE) * cost:
        change = best[1] / given[0] - 1.0 if given[0] else 0.0
        return None if name in ("delay", "bias") else Untested(name, _shared_changes(problem, fit, best[2], change))
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
        _MIN_CHANGE * abs(given[0]) < change <= _SUSPICIOUS * found.std and found.decrease > 2 * _MIN_DECREASE)
    if is_lower and name not in ("delay", "bias") and is_wide:
        least, value = min((best[0], best[1]), (after, found.value))
        return Released(name, given[0], value, float("nan"), 1.0 - least / cost)  # better, but not determined
    far = change > max(_SUSPICIOUS * found.std, _MIN_CHANGE * abs(found.given),
                       0.5 * items[name].typical if name in ("delay", "bias") else 0.0)
    return found if far and found.decrease > _MIN_DECREASE and not free.at_bound[-1] else None


def _free_delay(problem: ChainProblem, fit: Refinement) -> tuple[float, Array]:
    """The delay of the first stage as if none were given, and values (unknowns,) to start from.

    A wrong delay may make a stiff loop unstable. The other values of the fit are then far from those with the right
    delay, and no step from them leads there.
    """
    free = replace(problem, known=tuple({key: value for key, value in own.items() if key != "delay"}
                                        for own in problem.known))
    first = first_stage(with_friction(free, "m1", (), None)).values
    values = [{**own, **start} for own, start in zip(problem.values(fit.x), first, strict=True)]
    return float(first[problem.moving[0]]["delay"]), problem.start(values)


def _interval(problem: ChainProblem) -> float:
    """Median interval between two rows, s."""
    return float(np.median(np.diff(problem.logs[0].signals.t)))


def _curved_minimum(cost: float, trials: Sequence[tuple[float, float, Refinement]], given: float, step: float) -> bool:
    """Whether a parabola through the costs has its minimum near the given value, within _MIN_CHANGE of it."""
    if len(trials) < 2:
        return True
    (low, _, _), (high, _, _) = trials
    curvature = low - 2.0 * cost + high
    return curvature <= 0.0 or abs(0.5 * (low - high) / curvature * step) < _MIN_CHANGE * max(abs(given), step)


def _shared_changes(problem: ChainProblem, fit: Refinement, other: Refinement, given: float) -> dict[str, float]:
    """Relative changes of determined estimates over that of a given value, by their labels. given: relative change of
    the given value."""
    known = np.abs(fit.x) > _SUSPICIOUS * fit.std
    changes = np.where(known & ~fit.at_bound, (other.x - fit.x) / np.where(fit.x == 0.0, np.inf, fit.x), 0.0)
    return {problem.label(k): float(change / given) for k, change in enumerate(changes)
            if abs(change) > abs(given) * _MIN_SHARED_CHANGE}


def causes(problem: ChainProblem, fit: Refinement) -> tuple[list[Finding], list[Note]]:
    """Findings on the cause that explains most of a chain's errors, and notes on given gains that are not tested."""
    wrong, notes = given_values(problem, fit)
    groups = [group for group in (saturation(problem, fit), speed_limit(problem, fit), wrong) if group]
    shares = _error_shares(problem, fit)
    worst = int(np.argmax(shares))
    if groups:
        explained, best = max(((max(float(np.max(one.evidence["decrease"])) for one in group), group)
                               for group in groups), key=lambda one: one[0])
        if explained > _MIN_EXPLAINED or shares[worst] * np.sqrt(1.0 - explained) < _POOR_FIT:
            return best, []
    if shares[worst] < _POOR_FIT:
        return [], notes
    text = (f"The simulated motion of {problem.names[worst]} differs from the measured one by "
            f"{100 * shares[worst]:.0f} % of the motion, and neither a wrong gain, mass, delay or zero nor a limit of "
            "the drive explains it. Check the unit of the positions, the drive law, the robot file, stops and "
            "contacts, and whether the commands are those that the drive received.")
    return [Finding("motion-not-explained", "suspicious", "warning", text, "simulated motion", (problem.names[worst],),
                    evidence={"share": float(shares[worst])}, second_fit=True)], []


def _error_shares(problem: ChainProblem, fit: Refinement) -> Array:
    """Residuals over motion, root mean squares of each joint (dof,); zero for joints that do not move."""
    moved = np.concatenate([log.signals.q - np.mean(log.signals.q, axis=0) for log in problem.logs])
    found = np.std(fit.residual, axis=0) / np.maximum(np.std(moved, axis=0), 1e-12)
    found[list(problem.still)] = 0.0
    return np.asarray(found)


def given_values(problem: ChainProblem, fit: Refinement) -> tuple[list[Finding], list[Note]]:
    """Findings on given gains, masses, delays and zeros that the data contradict: the cause that explains most; and
    notes on given gains that these data cannot test."""
    estimated = {one.name for one in problem.unknowns}
    drive = [item.name for item in problem.law.parameters if item.name in _TESTED_GAINS
             and item.name in problem.known[0] and item.name not in estimated]
    scale_is_known = bool(drive) and not estimated & set(problem.law.estimated)
    names = [*(["torque_scale"] if scale_is_known else []), *(drive if len(drive) > 1 or not scale_is_known else []),
             *(name for name in ("delay", "bias") if name not in estimated)]
    results = [one for name in names if (one := released(problem, fit, name)) is not None]
    notes = [_untested_note(problem, one) for one in results if isinstance(one, Untested)]
    found = [one for one in results if isinstance(one, Released)]
    if not found:
        return [], notes
    least = 1.0 - max(one.decrease for one in found)
    # Causes that explain the motion equally well: the scale of all torques comes first, as it names gains and masses.
    equal = [one for one in found if 1.0 - one.decrease <= _EQUAL_ERROR * least]
    return [_contradiction(problem, equal[0]) if len(equal) == 1 or equal[0].name == "torque_scale"
            else _one_of(problem, equal)], notes


def _untested_note(problem: ChainProblem, found: Untested) -> Note:
    value = problem.known[0].get(found.name, 1.0)
    changes = sorted(found.changes.items(), key=lambda one: -abs(one[1]))[:_MAX_LISTED]
    listed = ", ".join(f"{label} {10.0 * change:+.0f} %" for label, change in changes)
    effect = f" If it is 10 % higher in fact, these change with it: {listed}." if listed else ""
    what = "the scale of all torques" if found.name == "torque_scale" else f"the given {found.name} = {value:.4g}"
    return Note("given-untested", f"These data cannot test {what}.{effect}", dict(changes))


def _contradiction(problem: ChainProblem, found: Released) -> Finding:
    joints = problem.names
    numbers = {"given": found.given, "estimate": found.value, "decrease": found.decrease}
    if np.isfinite(found.std):
        numbers["std"] = found.std
    share = 100.0 * found.decrease
    moved = _moved(problem)
    if found.name == "torque_scale":
        text = (f"The motion of {moved} is explained {share:.0f} % better if the drive gives "
                f"{_about(found)} times the torque that the given gains state, or if the links weigh "
                f"{1 / found.value:.3g} times what the robot file states. These data cannot distinguish the two: check "
                "the gains and weigh a link.")
        return Finding("scale-contradicted", "suspicious", "warning", text, "gains or masses", joints,
                       ("torque_scale", "link_scale"), evidence=numbers, second_fit=True)
    unit = _UNITS.get(found.name, "")
    if found.name == "bias":
        text = (f"The motion of {moved} is explained {share:.0f} % better if the encoder shows {_about(found)} "
                f"rad too much: the zero of the positions is not that of the robot file. Add --also "
                "bias to estimate it.")
        return Finding("bias-suspected", "suspicious", "warning", text, "encoder bias", joints, ("bias",),
                       evidence=numbers, second_fit=True)
    text = (f"The motion of {moved} is explained {share:.0f} % better with {found.name} = {_about(found)}{unit} than "
            f"with the given {found.given:.4g}{unit}. Check it, or leave it out so that it is estimated.")
    code = "delay-contradicted" if found.name == "delay" else "gain-contradicted"
    return Finding(code, "suspicious", "warning", text, f"given {found.name}", joints, (found.name,), evidence=numbers,
                   second_fit=True)


def _one_of(problem: ChainProblem, equal: Sequence[Released]) -> Finding:
    """The finding on several given values of which one must be wrong."""
    listed = ", or ".join(f"{one.name} = {_about(one)}{_UNITS.get(one.name, '')} in place of the given {one.given:.4g}"
                          f"{_UNITS.get(one.name, '')}" for one in equal)
    decrease = max(one.decrease for one in equal)
    names = tuple(one.name for one in equal)
    text = (f"The motion of {_moved(problem)} is explained {100.0 * decrease:.0f} % better with {listed}. These data "
            "cannot distinguish which of them is wrong: check each, or leave one out so that it is estimated.")
    return Finding("gain-contradicted" if set(names) & set(_TESTED_GAINS) else f"{names[0]}-contradicted",
                   "suspicious", "warning", text, f"given {' or '.join(names)}", problem.names, names,
                   evidence={"given": tuple(one.given for one in equal), "estimate": tuple(one.value for one in equal),
                             "decrease": tuple(one.decrease for one in equal)}, second_fit=True)


def _moved(problem: ChainProblem) -> str:
    """Return the joints of a chain in words."""
    return problem.names[0] if len(problem.names) == 1 else f"{problem.names[0]} to {problem.names[-1]}"


def _about(found: Released) -> str:
    """Return a value with its standard error, where it has one."""
    return f"{found.value:.4g}" + (f" +- {found.std:.2g}" if np.isfinite(found.std) else "")


def saturation(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """A finding for each joint whose motion is explained much better by a limit of its drive that was not given."""
    item = next((one for one in problem.law.parameters if one.name in ("torque_limit", "current_limit", "limit")), None)
    if item is None or _is_settled(problem, item.name):
        return []
    name, weights = item.name, _joint_weights(fit)
    before = float(np.sum((fit.residual * weights) ** 2))
    found = []
    for j in problem.moving:
        joint, largest = problem.names[j], 0.0
        for log in problem.logs:
            numbers = problem.numbers(fit.x, log)[j]
            error = float(np.max(np.abs(log.signals.command[:, j] - log.signals.q[:, j])))
            largest = max(largest, float(min(numbers[c.KP] * error, numbers[c.U_LIMIT])))
        wider = replace(problem, unknowns=(*problem.unknowns, Unknown(name, j, item)))
        trials = [(float(np.sum((again.residual * weights) ** 2)), grows, again) for grows, own in _windups(wider)
                  if (again := _limited(own, fit, largest, weights)) is not None]
        if not trials:
            continue
        after, grows, again = min(trials, key=lambda one: one[0])
        decrease = 1.0 - after / before
        limit, std = float(again.x[-1]), float(again.std[-1])
        if decrease > 2 * _MIN_DECREASE and limit < 0.97 * largest and std < 0.2 * limit:
            estimated = f", or --also {name} to estimate it" if name != "limit" else ""
            advice = f"Add --gain {name}={limit:.3g}{estimated}."
            if grows:
                advice += " The integral of its drive grows on while it saturates: add --gain windup=1 too."
            text = (f"{joint} is explained {100 * decrease:.0f} % better if its drive saturates at {limit:.4g} +- "
                    f"{std:.2g} {item.unit}".rstrip() + f", below the {largest:.3g} that is demanded. {advice}")
            found.append(Finding("saturation", "suspicious", "warning", text, "saturation", (joint,), (name,),
                                 evidence={"limit": limit, "std": std, "demanded": largest, "decrease": decrease,
                                           "windup": float(grows)},
                                 second_fit=True))
    return found


def _windups(problem: ChainProblem) -> list[tuple[bool, ChainProblem]]:
    """Return the problem with an integral that waits while the drive saturates, and with one that grows on.

    The first element states whether it grows on. Without an integral, or with a given `windup`, there is one problem.
    """
    is_open = any(one.name == "windup" for one in problem.law.parameters) and not _is_settled(problem, "windup")
    if not is_open or all(own.get("ki", 0.0) == 0.0 for own in problem.known):
        return [(False, problem)]
    return [(grows, replace(problem, known=tuple({**own, "windup": float(grows)} for own in problem.known)))
            for grows in (False, True)]


def _limited(wider: ChainProblem, fit: Refinement, largest: float, weights: Array) -> Refinement | None:
    """The fit with a limit as the last unknown, below the largest demand; None where no limit explains the motion.

    Where the fit without a limit is poor, its other values are far from those with one, so each limit gets a search.
    """
    before = float(np.sum((fit.residual * weights) ** 2))
    is_poor = bool(np.any(_error_shares(wider, fit) > _POOR_FIT))
    trials = []
    for share in _POOR_LIMIT_SHARES if is_poor else _LIMIT_SHARES:
        x = np.concatenate([fit.x, [share * largest], fit.starts])
        if is_poor:
            try:
                short = refine(wider, x, max_iterations=_SHORT_SEARCH, finish=False)
            except NotPossibleError:
                continue
            trials.append((float(np.sum((short.residual * weights) ** 2)), short.solution))
        else:
            own = wider.with_starts().residuals(x)
            trials.append((np.inf if own is None else float(np.sum((own * weights) ** 2)), x))
    best = min(trials, key=lambda one: one[0], default=None)
    if best is None or best[0] > before * (1.0 - _MIN_DECREASE):
        return None
    return refine(wider, best[1], max_iterations=15, finish=False)


def _is_settled(problem: ChainProblem, name: str) -> bool:
    """Whether a parameter is given, for all logs or one of them, or estimated."""
    return any(name in one for one in problem.known) or any(name in log.gains for log in problem.logs) \
        or any(one.name == name for one in problem.unknowns)


def _joint_weights(fit: Refinement) -> Array:
    """1 / rms residual of each joint (dof,)."""
    return np.asarray(1.0 / np.maximum(np.sqrt(np.mean(fit.residual ** 2, axis=0)), 1e-9))


def speed_limit(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """A finding where the motion is explained much better by targets that follow the commands at a limited speed."""
    item = next((one for one in problem.law.parameters if one.name == "speed_limit"), None)
    commanded, measured = largest_speed(problem)
    if item is None or _is_settled(problem, item.name) or commanded < _FASTER_COMMAND * measured:
        return []
    more = tuple(Unknown(item.name, j, item) for j in problem.moving)
    is_delayed = any(one.name == "delay" for one in problem.unknowns)
    plain = with_friction(problem, "m1", (item.name,), None if is_delayed else problem.known[0].get("delay"))
    first = first_stage(plain).values
    wider = replace(problem, unknowns=(*problem.unknowns, *more))
    values = [{**own, **start} for own, start in zip(problem.values(fit.x), first, strict=True)]
    weights, start = _joint_weights(fit), wider.start(values)
    before = float(np.sum((fit.residual * weights) ** 2))
    again = refine(wider, start, finish=False)
    decrease = 1.0 - float(np.sum((again.residual * weights) ** 2)) / before
    limits, stds = again.x[-len(more):], again.std[-len(more):]
    if decrease < 2 * _MIN_DECREASE or np.all(limits > commanded) or np.any(stds > 0.2 * limits):
        return []
    listed = ", ".join(f"{problem.names[one.joint]} {value:.3g} +- {std:.2g}" for one, value, std in
                       zip(more, limits, stds, strict=True))
    text = (f"The motion is explained {100 * decrease:.0f} % better if the targets inside the drives follow the "
            f"commands at a limited speed: {listed} rad/s, below the {commanded:.3g} rad/s of the commands. Add "
            f"--also speed_limit to estimate it, or --gain speed_limit=... with the register's value.")
    return [Finding("speed-limited", "suspicious", "warning", text, "speed limit", tuple(problem.names), (item.name,),
                    evidence={"limits": tuple(limits.tolist()), "std": tuple(stds.tolist()), "decrease": decrease},
                    second_fit=True)]

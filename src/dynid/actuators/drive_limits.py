"""Findings on limits of torque, current, duty cycle or speed that the drives have and the user did not give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.linear_stage import filtered_logs, first_stage, largest_speed, with_friction
from dynid.actuators.problem import ChainProblem, Unknown
from dynid.actuators.refinement import Refinement, joint_weights, refine
from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.findings import Finding

MIN_DECREASE = 0.03  # smallest relative decrease of the squared position error by a cause that is reported
_LIMIT_SHARES = (0.9, 0.75, 0.6, 0.45)  # limits that are tried, relative to the largest torque of the drive law
# Largest speed of the commands over that of the motion: slower commands reach no speed limit.
_FASTER_COMMAND = 1.2
POOR_FIT = 0.03  # rms residual over rms motion of a joint, beyond which a cause is searched from several starts
_POOR_LIMIT_SHARES = (0.9, 0.6, 0.4, 0.25, 0.15, 0.08)  # limits that are tried if the fit is poor, see _LIMIT_SHARES
SHORT_SEARCH = 6  # iterations of a search from each start


def saturation(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """Return a finding for each joint whose motion fits much better with a drive limit that the user did not give."""
    item = next((one for one in problem.law.parameters if one.name in ("torque_limit", "current_limit", "limit")), None)
    if item is None or _has_value(problem, item.name):
        return []
    name, weights = item.name, joint_weights(fit.residual)
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
                  if (again := _fit_with_limit(own, fit, largest, weights)) is not None]
        if not trials:
            continue
        after, grows, again = min(trials, key=lambda one: one[0])
        decrease = 1.0 - after / before
        limit, std = float(again.x[-1]), float(again.std[-1])
        if decrease > 2 * MIN_DECREASE and limit < 0.97 * largest and std < 0.2 * limit:
            estimated = f", or --also {name} to estimate the limit" if name != "limit" else ""
            advice = f"Add --gain {name}={limit:.3g}{estimated}."
            if grows:
                advice += " The integral of its drive continues to grow during saturation: add --gain windup=1 too."
            torque = limit * float(wider.numbers(again.x, problem.logs[0])[j, c.TORQUE_GAIN])
            # Torque constant and current limit are correlated; the torque at the limit is well determined.
            as_torque = f", a torque of {torque:.3g} N m" if _is_estimated(problem, "kt") else ""
            text = (f"The motion of {joint} fits {100 * decrease:.0f} % better if its drive saturates at {limit:.4g} "
                    f"+- {std:.2g} {item.unit}".rstrip() + f"{as_torque}, below the largest demand of {largest:.3g}. "
                    f"{advice}")
            found.append(Finding("saturation", "problem", "warning", text, "saturation", (joint,), (name,),
                                 evidence={"limit": limit, "std": std, "demanded": largest, "decrease": decrease,
                                           "windup": float(grows), "torque": torque},
                                 second_fit=True))
    return found


def _windups(problem: ChainProblem) -> list[tuple[bool, ChainProblem]]:
    """Return pairs (has windup, problem): the estimation problem without and with integral windup. There is only one
    pair if the drive law has no integral or if `windup` is given."""
    is_open = any(one.name == "windup" for one in problem.law.parameters) and not _has_value(problem, "windup")
    if not is_open or all(own.get("ki", 0.0) == 0.0 for own in problem.known):
        return [(False, problem)]
    return [(grows, replace(problem, known=tuple({**own, "windup": float(grows)} for own in problem.known)))
            for grows in (False, True)]


def _fit_with_limit(wider: ChainProblem, fit: Refinement, largest: float, weights: Array) -> Refinement | None:
    """Return the fit with a drive limit as the last unknown, below `largest`; None if no limit fits the motion. If the
    fit without a limit is poor, its values are a bad start, so a search is run for each trial limit."""
    before = float(np.sum((fit.residual * weights) ** 2))
    is_poor = bool(np.any(error_shares(wider, fit.residual) > POOR_FIT))
    # A torque constant that was estimated without a limit is too low if the drive saturated:
    # the largest torque of the links is about the torque limit.
    is_scale = np.array([one.name == "kt" and one.joint == wider.unknowns[-1].joint for one in
                         wider.unknowns[:len(fit.x)]], dtype=bool)
    needed = _largest_link_torque(wider, wider.unknowns[-1].joint) if is_poor and is_scale.any() else 0.0
    trials = []
    for share in _POOR_LIMIT_SHARES if is_poor else _LIMIT_SHARES:
        x = np.concatenate([fit.x, [share * largest], fit.starts])
        if is_poor:
            x[:len(fit.x)][is_scale] = needed / (share * largest)
            try:
                short = refine(wider, x, max_iterations=SHORT_SEARCH, finish=False)
            except NotPossibleError:
                continue
            trials.append((float(np.sum((short.residual * weights) ** 2)), short.solution))
        else:
            own = wider.with_starts().residuals(x)
            trials.append((np.inf if own is None else float(np.sum((own * weights) ** 2)), x))
    best = min(trials, key=lambda one: one[0], default=None)
    if best is None or best[0] > before * (1.0 - MIN_DECREASE):
        return None
    return refine(wider, best[1], finish=is_poor)


def _largest_link_torque(problem: ChainProblem, joint: int) -> float:
    """Return the largest torque, N m, that the motion of the known links requires at a joint."""
    return max(float(np.max(np.abs(log.link_torque()[log.keep, joint]))) for log in filtered_logs(problem))


def _is_estimated(problem: ChainProblem, name: str) -> bool:
    return any(one.name == name for one in problem.unknowns)


def _has_value(problem: ChainProblem, name: str) -> bool:
    """Return whether a parameter is estimated, or given for at least one log."""
    return any(name in one for one in problem.known) or any(name in log.gains for log in problem.logs) \
        or _is_estimated(problem, name)


def speed_limit(problem: ChainProblem, fit: Refinement) -> list[Finding]:
    """Return a finding if the motion fits much better when the drives limit the speed of their position targets."""
    item = next((one for one in problem.law.parameters if one.name == "speed_limit"), None)
    commanded, measured = largest_speed(problem)
    if item is None or _has_value(problem, item.name) or commanded < _FASTER_COMMAND * measured:
        return []
    more = tuple(Unknown(item.name, j, item) for j in problem.moving)
    is_delayed = any(one.name == "delay" for one in problem.unknowns)
    plain = with_friction(problem, "m1", (item.name,), None if is_delayed else problem.known[0].get("delay"))
    first = first_stage(plain).values
    wider = replace(problem, unknowns=(*problem.unknowns, *more))
    values = [{**own, **start} for own, start in zip(problem.values(fit.x), first, strict=True)]
    weights, start = joint_weights(fit.residual), wider.start(values)
    before = float(np.sum((fit.residual * weights) ** 2))
    again = refine(wider, start, finish=False)
    decrease = 1.0 - float(np.sum((again.residual * weights) ** 2)) / before
    limits, stds = again.x[-len(more):], again.std[-len(more):]
    if decrease < 2 * MIN_DECREASE or np.all(limits > commanded) or np.any(stds > 0.2 * limits):
        return []
    listed = ", ".join(f"{problem.names[one.joint]} {value:.3g} +- {std:.2g}" for one, value, std in
                       zip(more, limits, stds, strict=True))
    text = (f"The motion is explained {100 * decrease:.0f} % better if the targets inside the drives follow the "
            f"commands at a limited speed: {listed} rad/s, below the {commanded:.3g} rad/s of the commands. Add --also "
            "speed_limit to estimate the limit, or --gain speed_limit=... with the value of the drive's register.")
    return [Finding("speed-limited", "problem", "warning", text, "speed limit", tuple(problem.names), (item.name,),
                    evidence={"limits": tuple(limits.tolist()), "std": tuple(stds.tolist()), "decrease": decrease},
                    second_fit=True)]


def error_shares(problem: ChainProblem, residual: Array) -> Array:
    """Return the RMS residual divided by the RMS motion of each joint (dof,); zero for joints that do not move."""
    moved = np.concatenate([log.signals.q - np.mean(log.signals.q, axis=0) for log in problem.logs])
    shares = np.std(residual, axis=0) / np.maximum(np.std(moved, axis=0), 1e-12)
    shares[list(problem.still)] = 0.0
    return np.asarray(shares)

"""Findings that name a cause: the text of each hypothesis with its numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.findings import Evidence, Finding
from dynid.validate.hypotheses.hypothesis import Hypothesis
from dynid.validate.residual_statistics import ResidualTests
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.words import joint_label, joints_listed, listed


def _gain(case: Case, found: Hypothesis) -> Finding:
    names = case.problem.regression.joints
    joints = [names[j] for j in found.joints]
    standard_errors, improvement = each(found.details["std"]), found.details["improvement"]
    others = [names[int(j)] for j in each(found.details["rivals"])]
    alternative = f" (or that of {joints_listed(others)} by the inverse)" if others else ""
    nominal = [case.gains[j].by_nominal for j in found.joints]
    evidence: dict[str, float | tuple[float, ...]] = {"improvement": float(np.mean(improvement)),
                                                      "rivals": float(len(others))}
    if len(joints) == 1:
        evidence |= {"gain": found.values[0], "std": standard_errors[0]}
        evidence |= {} if nominal[0] is None else {"nominal": nominal[0]}
        known = "" if nominal[0] is None else f"; the nominal model gives {nominal[0]:.2f}"
        text = (f"the drive gain of {joint_label(joints[0])} is probably wrong: its torque is {found.values[0]:.2f} "
                f"+- {standard_errors[0]:.1g} times what the other joints' torques imply{alternative}{known}")
    else:
        evidence |= {"gain": each(found.values), "std": standard_errors}
        text = (f"the drive gains of {joints_listed(joints)} are probably wrong: their torques are "
                f"{listed([f'{value:.2f}' for value in found.values])} times what the other joints' torques "
                f"imply{alternative}")
    return suspect("drive-gain", "drive gain", joints_listed(joints), text, joints=joints, evidence=evidence)


def _on_joints(case: Case, found: Hypothesis, title: str, text: str, evidence: Evidence | None = None) -> Finding:
    """Return the finding on a hypothesis about some joints. text: message with {} in place of their names."""
    names = [case.problem.regression.joints[j] for j in found.joints]
    return suspect(found.cause, title, joints_listed(names), text.format(joints_listed(names)), joints=names,
                   evidence=evidence)


def _sign(case: Case, found: Hypothesis) -> Finding:
    many = len(found.joints) > 1
    return _on_joints(case, found, "torque sign", f"the torque{'s' * many} of {{}} {'have' if many else 'has'} the "
                      "wrong sign: only the opposite sign agrees with the torques of the other joints",
                      {"gain": each(found.values) if many else found.values[0]})


def _time(case: Case, found: Hypothesis) -> Finding:
    factor = found.values[0]
    return suspect("time-scale", "time stamps", "all logs",
                   "the time stamps are probably wrong by a factor: gravity and accelerations agree if the log lasts "
                   f"{factor:.3g} times as long as its time stamps state; check their unit (--set log.time_unit=ms) "
                   "and the rate of the recorder",
                   evidence={"factor": factor})


def _gear(case: Case, found: Hypothesis) -> Finding:
    factor = found.values[0]
    also = f", its torque is as much too {'large' if factor > 1 else 'small'}" if found.details["torque"] else ""
    return _on_joints(case, found, "gear ratio", "the gear ratio of {} is probably wrong: its true motion is "
                      f"{factor:.3g} times the logged one{also}", {"factor": factor})


def positions_swapped(case: Case, found: Hypothesis) -> Finding:
    return _on_joints(case, found, "positions swapped",
                      "the positions of {} are exchanged: each is in the column of another joint",
                      {"column_of": tuple(j + 1.0 for j in reversed(found.joints))})


def _position_sign(case: Case, found: Hypothesis) -> Finding:
    of_axis = bool(found.details["torque"])
    text = ("positions and torques of {} have the opposite sign: their positive direction in the log is opposite "
            "to the axis in the robot file" if of_axis else "the position of {} has the opposite sign")
    return _on_joints(case, found, "position sign", text, {"torque": float(of_axis)})


def _position_offset(case: Case, found: Hypothesis) -> Finding:
    return _on_joints(case, found, "zero position", "the zero position of {} probably differs from that of the robot "
                      f"file: the torques are consistent with positions that are {found.values[0]:.3g} rad (or m) more "
                      "than logged; check the calibration, or add --set log.offset=DIFFERENCE",
                      {"offset": found.values[0]})


def _mounting(case: Case, found: Hypothesis) -> Finding:
    x, y, z = found.values
    [angle] = each(found.details["angle"])
    how = "the opposite direction" if angle > 175.0 else f"{angle:.0f} degrees from that of the model"
    return suspect("gravity-direction", "gravity", "mounting",
                   "the robot is probably mounted differently: the torques are consistent with gravity along "
                   f"({x:.2f}, {y:.2f}, {z:.2f}) m/s^2 in the base frame, {how}; use --gravity estimate, or give the "
                   "vector with --gravity",
                   evidence={"gravity": found.values, **found.details})


def _no_gravity(case: Case, found: Hypothesis) -> Finding:
    return suspect("gravity-removed", "gravity removed", "all joints",
                   "the torques contain no gravity: the model without gravity explains them at least as well as with "
                   "gravity in any direction, so the recorder or driver probably removes it: record measured torques")


def _late(case: Case, found: Hypothesis) -> Finding:
    late, names = found.values[0], case.problem.regression.joints
    std = delay_std(case.tests)
    return suspect("residual-follows-delay", "delay", "all joints",
                   f"the torques are {1000.0 * abs(late):.3g} ms{delay_interval(abs(late), std)} "
                   f"{'later' if late > 0 else 'earlier'} than the motion; correct the time stamps of the torques",
                   joints=names, evidence={"coefficient": (-late,) * len(names), "std": (std,) * len(names)})


def delay_std(tests: ResidualTests) -> float:
    """Return the standard error (s) of a delay common to all joints, from the residual of each joint."""
    stds = [fit.std for joint in tests.joints for fit in joint.follows if fit.candidate == "delay" and fit.std]
    return float(np.sum(np.square(np.reciprocal(stds)))) ** -0.5 if stds else float("nan")


def delay_interval(late: float, std: float) -> str:
    """Return the 95 % interval of a delay (s) in words, in milliseconds; empty if it is unknown."""
    low, high = 1e3 * (late - 1.96 * std), 1e3 * (late + 1.96 * std)
    return f" (95 % interval {low:.3g} to {high:.3g} ms)" if np.isfinite(std) else ""


def _gap(case: Case, found: Hypothesis) -> Finding:
    return _on_joints(case, found, "backlash", "the residual of {} is consistent with backlash: at every reversal its "
                      f"encoder moves through a gap of {1000.0 * abs(found.values[0]):.3g} mrad (or mm) before the "
                      "link follows", {"gap": found.values[0]})


FINDINGS: dict[str, Callable[[Case, Hypothesis], Finding]] = {
    "drive-gain": _gain, "torque-sign": _sign, "time-scale": _time, "gear-ratio": _gear,
    "positions-swapped": positions_swapped, "position-sign": _position_sign, "position-offset": _position_offset,
    "gravity-direction": _mounting, "gravity-removed": _no_gravity,
    "residual-follows-delay": _late, "residual-follows-backlash": _gap}
NAMES = {"drive-gain": "wrong drive gains", "torque-sign": "a torque with the wrong sign",
         "time-scale": "wrong time stamps", "gear-ratio": "a wrong gear ratio",
         "positions-swapped": "swapped positions", "position-sign": "a position with the wrong sign",
         "position-offset": "another zero position",
         "gravity-direction": "another direction of gravity", "gravity-removed": "torques without gravity",
         "residual-follows-delay": "a delay",
         "residual-follows-backlash": "backlash"}

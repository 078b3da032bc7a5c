"""Suspicions of the signals: joints at rest, torques that say nothing, positions in the wrong unit or out of range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.findings import Finding
from dynid.validate.joint_motion import JointMotion
from dynid.validate.suspicions.case import Case, Suspicion, each, suspect
from dynid.validate.words import joint_label, joints_listed

_FAR = 3.0  # times its limit that a joint has to reach for its positions to look like degrees
_TURNS = 4.0 * np.pi  # rad: taken as the limit of a joint that has none
_SLACK = 0.05  # rad or m beyond a limit that nobody minds
_TOO_FAST = 1.5  # times the speed limit


def joints_at_rest(case: Case) -> Iterator[Finding]:
    """Joints that never moved."""
    for motion in case.motions:
        if not motion.moves:
            who, width = joint_label(motion.joint), f"{motion.range:.1g} {motion.unit}".strip()
            yield suspect("joint-at-rest", "no motion", who,
                          f"{who} never moved (range {width}), so the data say nothing of its own inertia and friction",
                          joints=[motion.joint], evidence={"range": motion.range})


def silent_torques(case: Case) -> Iterator[Finding]:
    """Torques that are zero or constant throughout."""
    for j, motion in enumerate(case.motions):
        who, torques = joint_label(motion.joint), case.torques(j)
        if all(motion.joint in log.unmeasured for log in case.problem.data):
            continue
        if not any(np.any(tau) for tau in torques):
            yield suspect("torque-zero", "no torque", who, f"the torque of {who} is zero throughout: check its column",
                          severity="fatal", joints=[motion.joint])
        elif max(float(np.ptp(tau)) for tau in torques) == 0.0:
            yield suspect("torque-constant", "constant torque", who,
                          f"the torque of {who} never changes: check its column", severity="fatal",
                          joints=[motion.joint], evidence={"torque": float(torques[0][0])})


def degrees_for_radians(case: Case) -> Iterator[Finding]:
    """Positions far beyond what the robot can reach, as degrees taken for radians give."""
    far = _far(case)
    if far:
        worst = max(far, key=_reach)
        yield suspect("degrees-for-radians", "degrees for radians", joints_listed([m.joint for m in far]),
                      f"{joint_label(worst.joint)} reaches {_reach(worst):.3g} rad, far beyond its limits: positions "
                      "look like degrees taken for radians", severity="fatal", joints=[m.joint for m in far],
                      evidence={"reach": each([_reach(m) for m in far])})


def beyond_limits(case: Case) -> Iterator[Finding]:
    """Positions or velocities beyond the limits, where the unit is not what is wrong."""
    if _far(case):
        return
    for motion in case.motions:
        who, low, high = joint_label(motion.joint), motion.lower, motion.upper
        if (low is not None and motion.low < low - _SLACK) or (high is not None and motion.high > high + _SLACK):
            yield suspect("position-beyond-limits", "beyond limits", who,
                          f"{who} goes from {motion.low:.3g} to {motion.high:.3g} {motion.unit}, beyond its limits: "
                          "check sign, offset and unit of its position", joints=[motion.joint],
                          evidence={"low": motion.low, "high": motion.high})
        elif motion.velocity_limit is not None and motion.speed > _TOO_FAST * motion.velocity_limit:
            yield suspect("velocity-beyond-limits", "beyond limits", who,
                          f"{who} reaches {motion.speed:.3g} {motion.unit}/s, its limit is {motion.velocity_limit:.3g}"
                          ": check the unit of position and the time stamps", joints=[motion.joint],
                          evidence={"speed": motion.speed, "limit": motion.velocity_limit})


def _reach(motion: JointMotion) -> float:
    return max(abs(motion.low), abs(motion.high))


def _far(case: Case) -> list[JointMotion]:
    """Turning joints that went several times as far as their limits allow."""
    found = []
    for motion in case.motions:
        limits = [abs(x) for x in (motion.lower, motion.upper) if x is not None]
        if motion.unit == "rad" and motion.moves and _reach(motion) > _FAR * max(limits, default=_TURNS):
            found.append(motion)
    return found


SUSPICIONS = (Suspicion("data", joints_at_rest), Suspicion("data", silent_torques),
              Suspicion("data", degrees_for_radians), Suspicion("data", beyond_limits))

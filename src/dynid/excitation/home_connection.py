"""Connection of a motion with a home posture at its start and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.limit_check import check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.trajectories.trajectory import Joined, Piecewise, Trajectory, quintic_between

State = Sequence[Array]  # position, velocity and acceleration of every joint
_APPROACH_TRIES = 40
_APPROACH_GROWTH = 1.25


def approach(trajectory: Trajectory, home: ArrayLike, limits: Limits, torque: TorqueLimit | None = None) -> Joined:
    """Return home -> motion -> home, connected by quintics with continuous position, velocity and acceleration.

    Each quintic has the shortest duration, in steps of a quarter, for which it respects every limit. Where a motion
    begins or ends too close to a limit for one quintic, two of them stop in between, straight ahead.
    """
    posture = np.array(home, dtype=float)
    if posture.shape != (limits.dof,) or not np.isfinite(posture).all():
        raise DynidError(f"the home posture must be {limits.dof} finite numbers, got shape {posture.shape}")
    free = replace(limits, start=None, end=None).reaching(posture)
    at_rest = (posture, np.zeros(limits.dof), np.zeros(limits.dof))
    ends = trajectory.at(np.array([0.0, trajectory.duration]))
    first, last = ([x[row] for x in ends[:3]] for row in (0, 1))
    return Joined((*_connected(at_rest, first, free, torque, "from home to its beginning"), trajectory,
                   *_connected(last, at_rest, free, torque, "from its end back home")))


def _connected(first: State, last: State, limits: Limits, torque: TorqueLimit | None, what: str) -> list[Piecewise]:
    """Return the parts that lead from one state to another, of which one is at rest."""
    direct, worst = _shortest(lambda duration: (first, last), limits, torque)
    if direct is not None:
        return [direct]
    is_braking, zero = bool(first[1].any()), np.zeros(limits.dof)

    def ends(duration: float) -> tuple[State, State]:
        """Return the states at both ends of a stop, or of a start, with constant deceleration over `duration`, s."""
        if is_braking:
            return first, (first[0] + 0.5 * duration * first[1], zero, zero)
        return (last[0] - 0.5 * duration * last[1], zero, zero), last

    near, _ = _shortest(ends, limits, torque)
    if near is not None:
        stop = (near.at(near.duration if is_braking else 0.0).q[0], zero, zero)
        far, _ = _shortest(lambda duration: (stop, last) if is_braking else (first, stop), limits, torque)
        if far is not None:
            return [near, far] if is_braking else [far, near]
    raise NotPossibleError(f"the motion cannot be reached along a straight line {what} within all limits ({worst}); "
                           "choose another home posture")


def _shortest(ends: Callable[[float], tuple[State, State]], limits: Limits,
              torque: TorqueLimit | None) -> tuple[Piecewise | None, str]:
    """Return the quintic of shortest duration between two states that respects all limits, or the limit that the
    longest one exceeds.
    """
    duration, worst = 0.2, ""
    for _ in range(_APPROACH_TRIES):
        part = quintic_between(*ends(duration), duration)
        report = check_limits(part, limits, torque, points=1000)
        if report.ok:
            return part, ""
        worst = str(report.violated[0])
        duration *= _APPROACH_GROWTH
    return None, worst

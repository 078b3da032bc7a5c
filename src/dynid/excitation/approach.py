"""Connection of a motion with a home posture at its start and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.limit_check import check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.trajectories.composite import Joined
from dynid.excitation.trajectories.polynomial import Piecewise, quintic_between
from dynid.excitation.trajectories.trajectory import Trajectory

_APPROACH_TRIES = 40
_APPROACH_GROWTH = 1.25


def approach(trajectory: Trajectory, home: ArrayLike, limits: Limits, torque: TorqueLimit | None = None) -> Joined:
    """Return home -> motion -> home, connected by quintics with continuous position, velocity and acceleration.

    Each quintic has the shortest duration, in steps of a quarter, for which it respects every limit.
    """
    posture = np.array(home, dtype=float)
    if posture.shape != (limits.dof,) or not np.isfinite(posture).all():
        raise DynidError(f"the home posture must be {limits.dof} finite numbers, got shape {posture.shape}")
    free = replace(limits, start=None, end=None).reaching(posture)
    at_rest = (posture, np.zeros(limits.dof), np.zeros(limits.dof))
    ends = trajectory.at(np.array([0.0, trajectory.duration]))
    first, last = ([x[row] for x in ends[:3]] for row in (0, 1))
    return Joined((_connect(at_rest, first, free, torque, "from home to its beginning"), trajectory,
                   _connect(last, at_rest, free, torque, "from its end back home")))


def _connect(first: Sequence[Array], last: Sequence[Array], limits: Limits, torque: TorqueLimit | None,
             what: str) -> Piecewise:
    duration, worst = 0.2, ""
    for _ in range(_APPROACH_TRIES):
        part = quintic_between(first, last, duration)
        report = check_limits(part, limits, torque, points=1000)
        if report.ok:
            return part
        worst = str(report.violated[0])
        duration *= _APPROACH_GROWTH
    raise NotPossibleError(f"the motion cannot be reached along a straight line {what} within all limits ({worst}); "
                           "choose another home posture")

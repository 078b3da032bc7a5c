"""Limits of a motion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.limits.loop_limit import LoopLimit
from dynid.excitation.limits.workspace import Workspace
from dynid.robot import Robot

MARGIN = 0.05  # of a robot's own limits, kept free by default: no controller follows a motion exactly


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of every joint (dof,): rad, rad/s, rad/s^2, rad/s^3, N m (or m and N); infinite for no limit.

    Attributes:
        start, end: first and last posture (dof,), or None.
        bandwidth: highest frequency of a Fourier motion, Hz.
        space: collision and workspace limits, or None.
        loops: smallest distance of closed loops from singular postures, or None.
        margin: share of the robot's own limits that was kept free.
        outermost: lowest and highest positions (dof,) without this margin. First, last and home postures may use it.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    torque: Array
    names: tuple[str, ...]
    start: Array | None = None
    end: Array | None = None
    bandwidth: float = np.inf
    space: Workspace | None = None
    loops: LoopLimit | None = None
    margin: float = 0.0
    outermost: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        n = len(self.names)
        for name in ("lower", "upper", "velocity", "acceleration", "jerk", "torque"):
            values = np.array(np.broadcast_to(np.asarray(getattr(self, name), dtype=float), (n,)))
            if np.isnan(values).any():
                j = int(np.argmax(np.isnan(values)))
                raise DynidError(f"the {name} limit of joint '{self.names[j]}' is not a number")
            if name not in ("lower", "upper") and (values <= 0).any():
                j = int(np.argmax(values <= 0))
                raise DynidError(f"the {name} limit of joint '{self.names[j]}' must be above zero, got {values[j]:g}",
                                 code="wrong-limit")
            object.__setattr__(self, name, values)
        if (self.lower >= self.upper).any():
            j = int(np.argmax(self.lower >= self.upper))
            raise DynidError(f"joint '{self.names[j]}' cannot move between {self.lower[j]:g} and {self.upper[j]:g}; "
                             "its lower limit must be below its upper limit", code="wrong-limit")
        if not self.bandwidth > 0:
            raise DynidError(f"the bandwidth must be above zero, got {self.bandwidth:g} Hz")
        for name in ("start", "end"):
            posture = getattr(self, name)
            if posture is None:
                continue
            posture = np.array(posture, dtype=float)
            if posture.shape != (n,) or not np.isfinite(posture).all():
                raise DynidError(f"the {name} posture must be {n} finite numbers, got shape {posture.shape}")
            outside = (posture < self.lower) | (posture > self.upper)
            if outside.any():
                j = int(np.argmax(outside))
                raise DynidError(f"the {name} posture puts joint '{self.names[j]}' at {posture[j]:g}, outside its "
                                 f"limits {self.lower[j]:g} to {self.upper[j]:g}", code="wrong-home")
            object.__setattr__(self, name, posture)

    @staticmethod
    def of(robot: Robot, *, margin: float = 0.0, **given: Any) -> Limits:
        """Return the robot's own limits, or others by name.

        margin: share of the range kept free at each end, and of the robot's own velocities and torques.
        """
        if not 0.0 <= margin < 0.5:
            raise DynidError(f"the margin must be a share of the limits, from 0 to below 0.5, got {margin:g}",
                             code="wrong-margin")
        lower, upper = robot.limit("lower"), robot.limit("upper")
        kept = np.where(np.isfinite(upper - lower), upper - lower, 0.0) * margin
        own: dict[str, Any] = {
            "lower": lower + kept, "upper": upper - kept, "velocity": (1.0 - margin) * robot.limit("velocity"),
            "acceleration": robot.limit("acceleration"), "jerk": np.full(robot.dof, np.inf),
            "torque": (1.0 - margin) * robot.limit("effort"), "names": robot.joint_names, "margin": margin,
            "loops": LoopLimit.of(robot)}
        if margin > 0.0 and "lower" not in given and "upper" not in given:
            own["outermost"] = (lower, upper)
            for posture in (given.get("start"), given.get("end")):
                if posture is not None and np.shape(posture) == (robot.dof,):
                    own["lower"], own["upper"] = _reaching(own["lower"], own["upper"], (lower, upper), posture)
        unknown = [name for name in given if name not in Limits.__dataclass_fields__]
        if unknown:
            raise DynidError(f"there is no limit '{unknown[0]}'; there are {', '.join(Limits.__dataclass_fields__)}")
        return Limits(**(own | given))

    @property
    def dof(self) -> int:
        return len(self.names)

    def reaching(self, posture: ArrayLike) -> Limits:
        """Return the limits with ranges extended into the margin to include a posture (dof,)."""
        if self.outermost is None or np.shape(posture) != (self.dof,):
            return self
        lower, upper = _reaching(self.lower, self.upper, self.outermost, posture)
        return replace(self, lower=lower, upper=upper)


def _reaching(lower: Array, upper: Array, outermost: tuple[Array, Array], posture: ArrayLike) -> tuple[Array, Array]:
    inside = np.clip(np.asarray(posture, dtype=float), *outermost)
    return np.fmin(lower, inside), np.fmax(upper, inside)

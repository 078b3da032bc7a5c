"""Limits of a motion: joints, workspace, and distance of closed loops from singular postures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.following import closed_chain, closure_conditions
from dynid.errors import DynidError
from dynid.excitation.limits.workspace import Workspace
from dynid.robot import Robot

MARGIN = 0.05  # share of a robot's own limits that is kept free by default, for tracking errors of the controller


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a motion; infinite for no limit.

    Attributes:
        lower, upper: lowest and highest positions (dof,), rad or m.
        velocity, acceleration, jerk: largest magnitudes (dof,), rad/s, rad/s^2 and rad/s^3, or with m.
        torque: largest torques (dof,), N m or N.
        names: names of the joints.
        start, end: first and last posture (dof,), or None.
        bandwidth: highest frequency of a Fourier motion, Hz.
        space: collision and workspace limits, or None.
        loops: smallest distance of closed loops from singular postures, or None.
        margin: share of the robot's own limits that was kept free.
        outermost: lowest and highest positions (dof,) with no margin kept free, for first, last and home postures.
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
            self.refuse_outside(posture, name)
            object.__setattr__(self, name, posture)

    @staticmethod
    def from_robot(robot: Robot, *, margin: float = 0.0, **given: Any) -> Limits:
        """Return the limits of a robot file. margin: share of the range that is kept free at each end, and share of the
        robot's own velocities and torques. given: fields of `Limits` that replace those of the robot file."""
        if not 0.0 <= margin < 0.5:
            raise DynidError(f"the margin must be a share of the limits, from 0 to below 0.5, got {margin:g}",
                             code="wrong-margin")
        lower, upper = robot.limit("lower"), robot.limit("upper")
        kept = np.where(np.isfinite(upper - lower), upper - lower, 0.0) * margin
        own: dict[str, Any] = {
            "lower": lower + kept, "upper": upper - kept, "velocity": (1.0 - margin) * robot.limit("velocity"),
            "acceleration": robot.limit("acceleration"), "jerk": np.full(robot.dof, np.inf),
            "torque": (1.0 - margin) * robot.limit("effort"), "names": robot.joint_names, "margin": margin,
            "loops": LoopLimit.from_robot(robot)}
        if margin > 0.0 and "lower" not in given and "upper" not in given:
            own["outermost"] = (lower, upper)
            for posture in (given.get("start"), given.get("end")):
                if posture is not None and np.shape(posture) == (robot.dof,):
                    own["lower"], own["upper"] = _reaching(own["lower"], own["upper"], (lower, upper), posture)
        unknown = [name for name in given if name not in Limits.__dataclass_fields__]
        if unknown:
            raise DynidError(f"'{unknown[0]}' is not a limit of a motion; limits are "
                             f"{', '.join(Limits.__dataclass_fields__)}")
        return Limits(**(own | given))

    @property
    def dof(self) -> int:
        return len(self.names)

    def refuse_outside(self, posture: Array, name: str) -> None:
        """Raise an error for a posture (dof,) outside the joint ranges; name: name of the posture, such as "home"."""
        outside = (posture < self.lower) | (posture > self.upper)
        if outside.any():
            j = int(np.argmax(outside))
            raise DynidError(f"the {name} posture puts joint '{self.names[j]}' at {posture[j]:g}, outside its limits "
                             f"{self.lower[j]:g} to {self.upper[j]:g}", code="wrong-home")

    def refuse_unbounded(self, code: str | None = None) -> None:
        """Raise an error, with a given code, for a joint that has neither a range nor a limit of velocity or
        acceleration."""
        is_bounded = np.isfinite([self.upper - self.lower, self.velocity, self.acceleration]).any(axis=0)
        if not is_bounded.all():
            raise DynidError(f"joint '{self.names[int(np.argmin(is_bounded))]}' has neither a range nor a limit of "
                             "velocity or acceleration, so its motion is unbounded", "give such a limit with --limits",
                             code)

    def require_top_speeds(self, motion: str) -> None:
        """Raise an error for a joint without a velocity limit; motion: name of the motion that needs this limit."""
        if not np.isfinite(self.velocity).all():
            raise DynidError(f"{motion} needs the top speed of joint "
                             f"'{self.names[int(np.argmin(np.isfinite(self.velocity)))]}'",
                             "give its velocity limit with --limits")

    def reaching(self, posture: ArrayLike) -> Limits:
        """Return the limits with ranges extended into the margin that was kept free, to include a posture (dof,)."""
        if self.outermost is None or np.shape(posture) != (self.dof,):
            return self
        lower, upper = _reaching(self.lower, self.upper, self.outermost, posture)
        return replace(self, lower=lower, upper=upper)


def _reaching(lower: Array, upper: Array, outermost: tuple[Array, Array], posture: ArrayLike) -> tuple[Array, Array]:
    inside = np.clip(np.asarray(posture, dtype=float), *outermost)
    return np.fmin(lower, inside), np.fmax(upper, inside)


FACTOR = 10.0  # limit of the condition number, relative to that in the initial posture
LOOP_LIMIT_STEP = 1e-5  # rad or m: step of numerical derivatives
_NOT_CLOSED = 1e6  # condition number of loops that do not close, relative to the largest allowed condition number


@dataclass(frozen=True, eq=False)
class LoopLimit:
    """Limit on the condition number of loop closures, which grows near singular postures.

    The value is log10 of the condition number divided by the largest allowed one, `condition`: an excess of 1 is a
    factor of ten. margin: distance of the value from the limit that is kept free.
    """

    robot: Robot
    condition: float
    margin: float = 0.0
    refinement = 1

    @staticmethod
    def from_robot(robot: Robot) -> LoopLimit | None:
        """Return the limit for a robot: FACTOR times the condition number in its initial posture; None without
        loops."""
        followers = robot.followers
        if followers is None or followers.loops is None:
            return None
        at_start = closure_conditions(robot, closed_chain(robot).begin[None, :robot.dof])
        return LoopLimit(robot, FACTOR * float(at_start[0]))

    def tightened(self, excess: float) -> LoopLimit:
        return replace(self, margin=min(self.margin + excess, 0.5))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        conditions = np.minimum(closure_conditions(self.robot, q), _NOT_CLOSED * self.condition)
        return np.asarray(np.log10(conditions / self.condition) + self.margin)[:, None]

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array:
        out = np.zeros((len(q), 3, q.shape[1]))
        for j in range(q.shape[1]):
            step = np.zeros(q.shape[1])
            step[j] = LOOP_LIMIT_STEP
            change = self.values(q + step, dq, ddq) - self.values(q - step, dq, ddq)
            out[:, 0, j] = change[:, 0] / (2.0 * LOOP_LIMIT_STEP)
        return out

    @property
    def names(self) -> str:
        """Names of the closed loops, as text for messages."""
        followers = self.robot.followers
        assert followers is not None and followers.loops is not None
        return followers.loops.names

    def describe(self, column: int) -> str:
        return f"the loops {self.names}, whose closures may have a condition number of at most {self.condition:.3g}"

"""Friction that depends on a logged temperature, or changes slowly with time (`Drift`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.elements import Dry, Element, Linear, axis, on_joints
from dynid.model.parameters import FRICTION, Parameter
from dynid.model.sign import Sign
from dynid.model.term import Entries, MotionSegment, TorqueModel
from dynid.model.terms import RATE, TORQUE, chosen, joint_parameters
from dynid.robot import Robot

_SLOPE_UNITS = {"Fct": ("N m/K", "N/K"), "Fvt": ("N m s/(rad K)", "N s/(m K)")}


@dataclass(frozen=True, eq=False)
class TemperatureFriction:
    """Change of friction with temperature: (T - T0) (Fct sign(dq) + Fvt dq).

    T is the logged temperature of the joint, in the unit of the log. `reference` is T0 (dof,), by default the mean over
    the data; the other terms describe the friction at T0. Fvt is negative if warm oil reduces friction. `parts` selects
    Fct, Fvt or both. `at` is the temperature of a simulation and of a motion without times, one number or one per
    joint; default T0.
    """

    kind = "temperature"
    learned: ClassVar[Mapping[str, str]] = {"reference": "temperatures"}
    parts: tuple[str, ...] = ("Fct", "Fvt")
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    reference: ArrayLike | None = None
    at: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not self.parts or any(part not in _SLOPE_UNITS for part in self.parts):
            raise ModelError(f"the temperature-dependent parts of friction are {', '.join(_SLOPE_UNITS)}, got "
                             f"{', '.join(self.parts) or 'none'}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, *((part, _SLOPE_UNITS[part], FRICTION) for part in self.parts))

    def _per_joint(self, robot: Robot, name: str) -> Array:
        given = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
        if given.shape not in ((1,), (robot.dof,)) or not np.all(np.isfinite(given)):
            raise ModelError(f"'{name}' of temperature-dependent friction must be one number or {robot.dof}, one per "
                             f"joint, got {given}")
        return np.broadcast_to(given, (robot.dof,))

    def _now(self, robot: Robot) -> Array:
        """Return the temperature of each joint minus the reference (dof,), K, for a motion without time stamps."""
        if self.at is None or self.reference is None:
            return np.zeros(robot.dof)
        return self._per_joint(robot, "at") - self._per_joint(robot, "reference")

    def channels(self, robot: Robot) -> int:
        return robot.dof

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        """Return the temperature difference T - T0 (samples, dof) along a log."""
        if motion.temperature is None:
            raise ModelError("the model has temperature-dependent friction, but the log has no temperature; map its "
                             "columns with --set 'log.temperature=T_{joint}', or give one column for all joints",
                             code="no-temperature")
        reference = np.zeros(model.robot.dof) if self.reference is None else self._per_joint(model.robot, "reference")
        return np.asarray(motion.temperature - reference)

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for n, j in enumerate(chosen(robot, self.joints)):
            for k, part in enumerate(self.parts):
                column = self.sign(dq[:, j]) if part == "Fct" else dq[:, j]
                yield j, n * len(self.parts) + k, memory[:, j] * column

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return self.remembered(robot, q, dq, ddq, self._now(robot)[None])

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        joints, warmer = chosen(robot, self.joints), self._now(robot)
        own = dict(zip(self.parts, values.reshape(len(joints), -1).T, strict=True))
        if "Fvt" in own:
            yield Linear(viscous=np.diag(on_joints(robot.dof, joints, own["Fvt"] * warmer[joints])))
        for j, value in zip(joints, own.get("Fct", np.zeros(len(joints))), strict=True):
            yield Dry(axis(robot.dof, j), value * warmer[j], value * warmer[j], self.sign)


@dataclass(frozen=True, eq=False)
class Drift:
    """Dry friction that drifts with time, sum_k Fwk r_k(t) sign(dq): it changes by Fwk from one time knot to the next.

    The ramp r_k rises from 0 to 1 between two of knots + 1 evenly spaced times over the data. Its mean is subtracted,
    so that the other terms describe the mean friction. One knot gives a straight line. `ridge` regularises every Fwk
    toward zero, which makes several knots a random walk. With `viscous`, viscous friction changes instead, Fyk r_k(t)
    dq. `span` is the first and the last time, s; by default both are taken from the data. A simulation and a motion
    without times use the last time.
    """

    kind = "drift"
    learned: ClassVar[Mapping[str, str]] = {"span": "times"}
    knots: int = 1
    viscous: bool = False
    ridge: float = 1e-3
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    span: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.knots <= 99:
            raise ModelError(f"drift needs 1 to 99 time knots, got {self.knots}")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ModelError(f"the ridge of drift must not be negative, got {self.ridge}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        symbol, units = ("Fy", RATE) if self.viscous else ("Fw", TORQUE)
        parts = ((f"{symbol}{k + 1}_", units, FRICTION) for k in range(self.knots))
        return joint_parameters(robot, self.joints, *parts, ridge=self.ridge)

    def ramps(self, t: Array) -> Array:
        """Return the ramps r_k at times (samples,), as an array (samples, knots)."""
        first, last = (0.0, 1.0) if self.span is None else np.asarray(self.span, dtype=float)
        place = self.knots * (t - first) / max(float(last - first), 1e-9)
        knot = np.arange(self.knots)
        return np.asarray(np.clip(place[:, None] - knot, 0.0, 1.0) - (1.0 - (knot + 0.5) / self.knots))

    @property
    def _last(self) -> Array:
        """Ramps r_k (knots,) of the drift at the last time of the data."""
        return (np.arange(self.knots) + 0.5) / self.knots

    def channels(self, robot: Robot) -> int:
        return self.knots

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        return self.ramps(motion.t)

    def _carrier(self, velocity: Array) -> Array:
        return velocity if self.viscous else self.sign(velocity)

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for n, j in enumerate(chosen(robot, self.joints)):
            for k in range(self.knots):
                yield j, n * self.knots + k, memory[:, k] * self._carrier(dq[:, j])

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return self.remembered(robot, q, dq, ddq, self._last[None])

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        joints, now = chosen(robot, self.joints), values.reshape(-1, self.knots) @ self._last
        if self.viscous:
            yield Linear(viscous=np.diag(on_joints(robot.dof, joints, now)))
            return
        for j, value in zip(joints, now.tolist(), strict=True):
            yield Dry(axis(robot.dof, j), value, value, self.sign)

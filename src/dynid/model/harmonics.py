"""Torques that are periodic in the angle of a joint: ripple of motors and gears, and cables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.elements import Curve, axis, curve
from dynid.model.kinds import Kind
from dynid.model.parameters import Parameter
from dynid.model.term import Entries, Q, Slopes
from dynid.model.terms import chosen, joint_parameter, joint_unit
from dynid.robot import Robot


@curve
def waves(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the torque sum of a cos(w q) + b sin(w q); `values`: number of waves, then w, a, b of each."""
    total = 0.0
    for k in range(int(values[0])):
        angle = values[1 + 3 * k] * q
        total += values[2 + 3 * k] * math.cos(angle) + values[3 + 3 * k] * math.sin(angle)
    return total


@dataclass(frozen=True)
class RippleTorque:
    """Periodic torque sum_k Rck cos(k q) + Rsk sin(k q) of chosen orders k of the joint's angle.

    orders: periods per turn of the joint (per metre for a prismatic one); those of the motor are the gear ratio and its
    multiples. ridge: see `Parameter`; orders that a small range of angles cannot distinguish share the explained
    torque.
    """

    kind = "ripple"
    symbol = "R"
    words = "ripple"
    orders: tuple[float, ...] = (1.0,)
    joints: tuple[str | int, ...] | None = None
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        orders = np.array(self.orders, dtype=float)
        if orders.ndim != 1 or not len(orders) or not np.all(np.isfinite(orders) & (orders > 0)) \
                or len(np.unique(orders)) < len(orders):
            raise ModelError(f"the orders of {self.words} must be different numbers above zero, got {self.orders}")

    def _rates(self, robot: Robot, joint: int) -> Array:
        """Return the angular frequencies of the orders, per rad or m."""
        return np.array(self.orders, dtype=float) * (2.0 * np.pi if robot.joints[joint].prismatic else 1.0)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(replace(joint_parameter(robot, f"{self.symbol}{part}{order:g}_", j,
                                             joint_unit(robot, j, "N m", "N"), kind=Kind(self.words)), ridge=self.ridge)
                     for j in chosen(robot, self.joints) for order in self.orders for part in "cs")

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            for c, rate in enumerate(self._rates(robot, j)):
                at = 2 * (k * len(self.orders) + c)
                yield j, at, np.cos(rate * q[:, j])
                yield j, at + 1, np.sin(rate * q[:, j])

    def slopes(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Slopes:
        for k, j in enumerate(chosen(robot, self.joints)):
            for c, rate in enumerate(self._rates(robot, j)):
                at = 2 * (k * len(self.orders) + c)
                yield j, at, Q, j, -rate * np.sin(rate * q[:, j])
                yield j, at + 1, Q, j, rate * np.cos(rate * q[:, j])

    def elements(self, robot: Robot, values: Array) -> Iterator[Curve]:
        for j, own in zip(chosen(robot, self.joints), values.reshape(-1, len(self.orders), 2), strict=True):
            numbers = np.column_stack([self._rates(robot, j), own]).ravel()
            yield Curve(axis(robot.dof, j), waves, [len(self.orders), *numbers])


@dataclass(frozen=True)
class Cable(RippleTorque):
    """Torque sum_k Cck cos(k q) + Csk sin(k q) of low orders, from cables and hoses that a joint bends and twists."""

    kind = "cable"
    symbol = "C"
    words = "cable torque"
    orders: tuple[float, ...] = (1.0, 2.0)

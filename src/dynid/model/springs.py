"""Position-dependent torques: springs, struts, torque ripple of motors and gears, and cables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.elements import Curve, axis, curve
from dynid.model.parameters import SPRING, Kind, Parameter
from dynid.model.term import Entries
from dynid.model.terms import NOT_NEGATIVE, TORQUE, chosen, joint_parameter
from dynid.robot import Robot

FORCE = Kind("force of a strut", "stiffness")


@curve
def powers(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the spring torque sum_k K_k (q - rest)^k, k from 1; `values`: number of terms, rest, K_1, K_2, .."""
    x, total, power = q - values[1], 0.0, 1.0
    for k in range(int(values[0])):
        power *= x
        total += values[2 + k] * power
    return total


@dataclass(frozen=True)
class PolynomialSpring:
    """Polynomial spring sum_k Kk (q - rest)^k, k from 1 to degree, on one joint: progressive or asymmetric."""

    kind = "polynomial-spring"
    joint: str | int
    degree: int = 3
    rest: float = 0.0  # position of zero torque, rad or m

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= 9:
            raise ModelError(f"the degree of a polynomial spring is from 1 to 9, got {self.degree}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        j = robot.joint_index(self.joint)
        return tuple(joint_parameter(robot, f"K{k}_", j, (f"N m/rad^{k}", f"N/m^{k}"), kind=SPRING)
                     for k in range(1, self.degree + 1))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        j = robot.joint_index(self.joint)
        for k in range(1, self.degree + 1):
            yield j, k - 1, (q[:, j] - self.rest) ** k

    def elements(self, robot: Robot, values: Array) -> Iterator[Curve]:
        yield Curve(axis(robot.dof, robot.joint_index(self.joint)), powers, [len(values), self.rest, *values])


@curve
def strut_torque(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the torque (F + K (L - L0)) dL/dq of a strut of length L; values: base, link, zero, F, K, L0."""
    a, b, angle = values[0], values[1], q - values[2]
    length = math.sqrt(a * a + b * b - 2.0 * a * b * math.cos(angle))
    return (values[3] + values[4] * (length - values[5])) * a * b * math.sin(angle) / length


@dataclass(frozen=True)
class Strut:
    """Base class of terms for a strut between the link before a revolute joint and the link after this joint.

    Attributes:
        joint: the joint, by name or by number from 1.
        base, link: distances of the two ends of the strut from the axis, m.
        zero: joint position at which both ends are in the same direction from the axis, rad.
    """

    joint: str | int
    base: float
    link: float
    zero: float = 0.0

    def checked_joint(self, robot: Robot) -> int:
        """Return the index of the joint; raise an error for a prismatic joint, ends on the axis or equal distances."""
        joint, a, b = robot.joint_index(self.joint), self.base, self.link
        if robot.joints[joint].prismatic or not (a > 0 and b > 0 and abs(a - b) > 1e-9) \
                or not math.isfinite(self.zero + a + b):
            raise ModelError(f"a strut on joint '{self.joint}' needs a revolute joint and two different distances from "
                             f"its axis above zero, got {a:g} and {b:g} m")
        return joint

    def length(self, q: Array) -> Array:
        """Return the length L = sqrt(base^2 + link^2 - 2 base link cos(q - zero)) at joint positions q, m."""
        return np.sqrt(self.base ** 2 + self.link ** 2 - 2.0 * self.base * self.link * np.cos(q - self.zero))

    def lever(self, q: Array) -> Array:
        """Return dL/dq at joint positions q, m/rad: the joint torque of a unit force along the strut."""
        return self.base * self.link * np.sin(q - self.zero) / self.length(q)

    def torque_curve(self, robot: Robot, force: float, stiffness: float, rest: float) -> Curve:
        """Return the element with the force along the strut `force` + stiffness (L - rest), N."""
        return Curve(axis(robot.dof, self.checked_joint(robot)), strut_torque,
                     [self.base, self.link, self.zero, force, stiffness, rest])


@dataclass(frozen=True)
class GasSpring(Strut):
    """A gas spring on one revolute joint with the force Fg + Kg (longest - L), both non-negative.

    base, link, zero, L: see `Strut`. longest: extended length of the gas spring, m; by default the largest possible L.
    """

    kind = "gas-spring"
    longest: float | None = None

    @property
    def _extended(self) -> float:
        return self.base + self.link if self.longest is None else self.longest

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        j = self.checked_joint(robot)
        return tuple(joint_parameter(robot, symbol, j, unit, kind=FORCE, positive=True, bounds=NOT_NEGATIVE)
                     for symbol, unit in (("Fg", "N"), ("Kg", "N/m")))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        j = robot.joint_index(self.joint)
        lever = self.lever(q[:, j])
        yield j, 0, -lever
        yield j, 1, -(self._extended - self.length(q[:, j])) * lever

    def elements(self, robot: Robot, values: Array) -> Iterator[Curve]:
        yield self.torque_curve(robot, -values[0], values[1], self._extended)


@dataclass(frozen=True)
class Counterbalance(Strut):
    """A tension spring along a strut on one revolute joint: Kc (L - slack), Kc non-negative.

    base, link, zero, L: see `Strut`. slack: unloaded length of the spring, m.
    """

    kind = "counterbalance"
    slack: float = 0.0

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return (joint_parameter(robot, "Kc", self.checked_joint(robot), "N/m", kind=FORCE, positive=True,
                                bounds=NOT_NEGATIVE),)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        j = robot.joint_index(self.joint)
        yield j, 0, (self.length(q[:, j]) - self.slack) * self.lever(q[:, j])

    def elements(self, robot: Robot, values: Array) -> Iterator[Curve]:
        yield self.torque_curve(robot, 0.0, values[0], self.slack)


@curve
def waves(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the torque sum_k a_k cos(w_k q) + b_k sin(w_k q); `values`: number of waves, then w_k, a_k, b_k."""
    total = 0.0
    for k in range(int(values[0])):
        angle = values[1 + 3 * k] * q
        total += values[2 + 3 * k] * math.cos(angle) + values[3 + 3 * k] * math.sin(angle)
    return total


@dataclass(frozen=True)
class RippleTorque:
    """Periodic torque sum_k Rck cos(k q) + Rsk sin(k q) with given orders k of the joint angle.

    orders: periods per turn of a revolute joint, or per metre of a prismatic joint. The orders of the motor are the
    gear ratio and its multiples. ridge: see `Parameter`; it distributes the torque over orders that a small range of
    angles cannot distinguish.
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
        """Return the angular frequencies of the ripple orders, rad per rad or m of joint motion."""
        return np.array(self.orders, dtype=float) * (2.0 * np.pi if robot.joints[joint].prismatic else 1.0)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, f"{self.symbol}{part}{order:g}_", j, TORQUE, kind=Kind(self.words),
                                     ridge=self.ridge)
                     for j in chosen(robot, self.joints) for order in self.orders for part in "cs")

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            for c, rate in enumerate(self._rates(robot, j)):
                at = 2 * (k * len(self.orders) + c)
                yield j, at, np.cos(rate * q[:, j])
                yield j, at + 1, np.sin(rate * q[:, j])

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

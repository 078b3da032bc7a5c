"""Friction models in closed form: a polynomial of the velocity, the Stribeck effect, and breakaway friction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.elements import Curve, Dry, Element, Linear, axis, curve, on_joints
from dynid.model.parameters import DRY, FRICTION, VISCOUS, Parameter
from dynid.model.shape_values import ShapedFriction
from dynid.model.sign import Sign
from dynid.model.term import DQ, Entries, Slopes
from dynid.model.terms import NOT_NEGATIVE, RATE, TORQUE, chosen, joint_parameters, sign_entries
from dynid.robot import Robot


@curve
def speed_powers(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the friction torque sum_k F_k |dq|^k sign(dq), k from 1; `values`: number of terms, then F_1, F_2, .."""
    total, power = 0.0, 1.0
    for k in range(int(values[0])):
        power *= abs(dq)
        total += values[1 + k] * power
    return total if dq > 0.0 else -total


@dataclass(frozen=True)
class PolynomialFriction:
    """Polynomial friction sum_k Fpk |dq|^k sign(dq), k from 0 to degree (Ardiani, fig. 1.4f), all non-negative."""

    kind = "polynomial"
    degree: int = 3
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= 9:
            raise ModelError(f"the degree of polynomial friction is from 1 to 9, got {self.degree}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        units = [TORQUE, *((f"N m s^{k}/rad^{k}", f"N s^{k}/m^{k}") for k in range(1, self.degree + 1))]
        parts = ((f"Fp{k}_", unit, FRICTION) for k, unit in enumerate(units))
        return joint_parameters(robot, self.joints, *parts, positive=True, bounds=NOT_NEGATIVE)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for n, j in enumerate(chosen(robot, self.joints)):
            yield j, n * (self.degree + 1), self.sign(dq[:, j])
            for k in range(1, self.degree + 1):
                yield j, n * (self.degree + 1) + k, np.abs(dq[:, j]) ** (k - 1) * dq[:, j]

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        for j, (dry, *rest) in zip(chosen(robot, self.joints), values.reshape(-1, self.degree + 1), strict=True):
            yield Dry(axis(robot.dof, j), dry, dry, self.sign)
            yield Curve(axis(robot.dof, j), speed_powers, [self.degree, *rest])


@curve
def fall(q: float, dq: float, values: Sequence[float]) -> float:
    """Return (Fc - Fs) (1 - exp(-(|dq| / vs)^power)) sign(dq), the decrease of friction; values: Fc - Fs, vs, power."""
    lost = values[0] * (1.0 - math.exp(-(abs(dq) / values[1]) ** values[2]))
    return lost if dq > 0.0 else -lost


@dataclass(frozen=True, eq=False)
class ExponentialStribeck(ShapedFriction):
    """Stribeck friction (Fc + (Fs - Fc) exp(-(|dq| / vs)^power)) sign(dq) + Fv dq, which decreases from Fs at rest to
    Fc.

    See Olsson and others 1998, and Ardiani, s. 1.2.2. The term is linear in Fc, Fs and Fv, all non-negative. The shape
    parameters vs (rad/s or m/s) and power are one number or one per joint. Shape parameters named in `free` are
    estimated by separable least squares, the others are fixed. With `shared`, all joints have the same shape.
    """

    kind = "exponential-stribeck"
    vs: ArrayLike = 0.05
    power: ArrayLike = 2.0
    free: tuple[str, ...] = ()
    joints: tuple[str | int, ...] | None = None
    shared: bool = False
    sign: Sign = field(default_factory=Sign)
    SHAPES = ("vs", "power")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        parts = (("Fc", TORQUE, DRY.unwritten()), ("Fs", TORQUE, DRY.unwritten()), ("Fv", RATE, VISCOUS.unwritten()))
        return joint_parameters(robot, self.joints, *parts, positive=True, bounds=NOT_NEGATIVE)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        joints = chosen(robot, self.joints)
        vs, power = self.shapes(robot)
        for k, j in enumerate(joints):
            # The decreasing part is smooth at rest; only the remaining part uses the smooth sign.
            fallen = (1.0 - np.exp(-(np.abs(dq[:, j]) / vs[k]) ** power[k])) * np.sign(dq[:, j])
            yield j, 3 * k, fallen
            yield j, 3 * k + 1, self.sign(dq[:, j]) - fallen
            yield j, 3 * k + 2, dq[:, j]

    def slopes(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Slopes:
        joints = chosen(robot, self.joints)
        vs, power = self.shapes(robot)
        for k, j in enumerate(joints):
            v = dq[:, j]
            share = np.maximum(np.abs(v), 1e-12) / vs[k]
            falls = np.exp(-share ** power[k]) * power[k] * share ** (power[k] - 1.0) / vs[k]
            yield j, 3 * k, DQ, j, falls
            yield j, 3 * k + 1, DQ, j, self.sign.slope(v) - falls
            yield j, 3 * k + 2, DQ, j, 1.0

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        n, joints = robot.dof, chosen(robot, self.joints)
        vs, power = self.shapes(robot)
        dry, static, viscous = values.reshape(-1, 3).T
        yield Linear(viscous=np.diag(on_joints(n, joints, viscous)))
        for k, j in enumerate(joints):
            yield Dry(axis(n, j), static[k], static[k], self.sign)
            yield Curve(axis(n, j), fall, (dry[k] - static[k], vs[k], power[k]))


@dataclass(frozen=True)
class BreakawayFriction:
    """Dry friction Fc sign(dq) in motion, and up to Fc + Fb at rest, until the joint starts to move (Ardiani, fig.
    1.4d).

    Rows in motion determine Fc but not Fb, which acts only until a joint starts to move (see `dynid.terms.breakaway`).
    Fb is non-negative.
    """

    kind = "breakaway"
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        parts = (("Fc", TORQUE, DRY), ("Fb", TORQUE, DRY.unwritten()))
        return joint_parameters(robot, self.joints, *parts, positive=True, bounds=NOT_NEGATIVE)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return sign_entries(robot, self.joints, self.sign, dq, 2)

    def elements(self, robot: Robot, values: Array) -> Iterator[Dry]:
        for j, (dry, more) in zip(chosen(robot, self.joints), values.reshape(-1, 2).tolist(), strict=True):
            yield Dry(axis(robot.dof, j), dry, dry, self.sign, static=more)

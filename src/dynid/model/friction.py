"""Friction terms of joints and of motors that are coupled to several joints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model.elements import Curve, Dry, Element, Linear, axis, curve, on_joints
from dynid.model.parameters import DRY, FRICTION, OFFSET, ROTOR, VISCOUS, Kind, Parameter
from dynid.model.shape_values import ShapedFriction
from dynid.model.sign import Sign
from dynid.model.term import DQ, Entries, Slopes
from dynid.model.terms import (
    NOT_NEGATIVE,
    RATE,
    TORQUE,
    chosen,
    coupling_matrix,
    joint_parameter,
    joint_parameters,
    of_chosen,
    one_each,
    sign_entries,
)
from dynid.robot import Robot


@dataclass(frozen=True)
class Viscous:
    """Viscous friction torque Fv dq per joint."""

    kind = "viscous"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, ("Fv", RATE, VISCOUS), positive=True)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, dq[:, j]

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
        return of_chosen(robot, self.joints, dq)

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]:
        return one_each(robot, self.joints)

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        yield Linear(viscous=np.diag(on_joints(robot.dof, chosen(robot, self.joints), values)))


@dataclass(frozen=True)
class Coulomb:
    """Coulomb friction torque Fc sign(dq) per joint."""

    kind = "coulomb"
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, ("Fc", TORQUE, DRY), positive=True)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return sign_entries(robot, self.joints, self.sign, dq)

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
        if isinstance(self.sign.width, tuple):
            return np.array([self.sign.of_joint(j)(dq[j]) for j in chosen(robot, self.joints)])
        return self.sign(of_chosen(robot, self.joints, dq))

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]:
        return one_each(robot, self.joints)

    def slopes(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Slopes:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, DQ, j, self.sign.of_joint(j).slope(dq[:, j])

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        for j, value in zip(chosen(robot, self.joints), values, strict=True):
            yield Dry(axis(robot.dof, j), value, value, self.sign.of_joint(j))


@dataclass(frozen=True)
class Offset:
    """Constant offset torque Fo per joint, caused by the current amplifier or by direction-dependent friction.

    ridge: share of a column's squared norm by which Fo is regularised toward zero.
    """

    kind = "offset"
    joints: tuple[str | int, ...] | None = None
    ridge: float = 0.0

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, ("Fo", TORQUE, OFFSET), ridge=self.ridge)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, np.ones(len(q))

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> float:
        return 1.0

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]:
        return one_each(robot, self.joints)

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        yield Linear(constant=on_joints(robot.dof, chosen(robot, self.joints), values))


@dataclass(frozen=True)
class AsymmetricCoulomb:
    """Coulomb friction Fcp for forward and Fcn for backward motion, both positive (instead of Coulomb and offset)."""

    kind = "asymmetric-coulomb"
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        kind = DRY.unwritten()
        return joint_parameters(robot, self.joints, ("Fcp", TORQUE, kind), ("Fcn", TORQUE, kind), positive=True)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            sign = self.sign(dq[:, j])
            yield j, 2 * k, np.maximum(sign, 0.0)
            yield j, 2 * k + 1, np.minimum(sign, 0.0)

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        for j, (forward, backward) in zip(chosen(robot, self.joints), values.reshape(-1, 2), strict=True):
            yield Dry(axis(robot.dof, j), forward, backward, self.sign)


@curve
def two_slopes(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the viscous friction torque: Fvp dq for forward and Fvn dq for backward motion."""
    return values[0] * dq if dq > 0.0 else values[1] * dq


@dataclass(frozen=True)
class AsymmetricViscous:
    """Viscous friction Fvp dq for forward and Fvn dq for backward motion, both non-negative."""

    kind = "asymmetric-viscous"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        kind = VISCOUS.unwritten()
        return joint_parameters(robot, self.joints, ("Fvp", RATE, kind), ("Fvn", RATE, kind), positive=True,
                                bounds=NOT_NEGATIVE)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, 2 * k, np.maximum(dq[:, j], 0.0)
            yield j, 2 * k + 1, np.minimum(dq[:, j], 0.0)

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        for j, both in zip(chosen(robot, self.joints), values.reshape(-1, 2), strict=True):
            yield Curve(axis(robot.dof, j), two_slopes, both)


@curve
def fall_and_rise(q: float, dq: float, values: Sequence[float]) -> float:
    """Return Fsc arctan(delta dq) + Fnl |dq|^alpha S, the part of Stribeck friction that is neither dry nor viscous."""
    fsc, delta, fnl, alpha, steep = values[0], values[1], values[2], values[3], values[4]
    sign = 2.0 / math.pi * math.atan(steep * dq)
    return fsc * math.atan(delta * dq) + fnl * abs(dq) ** alpha * sign


@dataclass(frozen=True, eq=False)
class Stribeck(ShapedFriction):
    """Stribeck friction, which first decreases and then increases with speed (Ardiani, eq. 1.15-1.16).

    Fc S + Fsc arctan(delta dq) + Fv dq + Fo + Fnl |dq|^alpha S,   S = 2/pi arctan(Kv dq).

    The term is linear in Fc, Fsc, Fv, Fo and Fnl. The shape parameters delta (s/rad), alpha and Kv (s/rad) are one
    number or one per joint. Shape parameters named in `free` are estimated by separable least squares, the others are
    fixed. With `shared`, all joints have the same shape (model A of s. 2.4).
    """

    kind = "stribeck"
    delta: ArrayLike = 10.0
    alpha: ArrayLike = 0.5
    Kv: ArrayLike = 1000.0
    free: tuple[str, ...] = ()
    joints: tuple[str | int, ...] | None = None
    shared: bool = False

    _PARTS = (("Fc", TORQUE, DRY.unwritten(), True), ("Fsc", TORQUE, FRICTION, False),
              ("Fv", RATE, VISCOUS.unwritten(), True), ("Fo", TORQUE, OFFSET, False), ("Fnl", TORQUE, FRICTION, False))
    SHAPES = ("delta", "alpha", "Kv")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, symbol, j, units, kind=kind, positive=positive)
                     for j in chosen(robot, self.joints) for symbol, units, kind, positive in self._PARTS)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        joints = chosen(robot, self.joints)
        delta, alpha, steep = self.shapes(robot)
        for k, j in enumerate(joints):
            velocity = dq[:, j]
            sign = (2.0 / np.pi) * np.arctan(steep[k] * velocity)
            for part, values in enumerate((sign, np.arctan(delta[k] * velocity), velocity, np.ones(len(q)),
                                           np.abs(velocity) ** alpha[k] * sign)):
                yield j, 5 * k + part, values

    def slopes(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Slopes:
        joints = chosen(robot, self.joints)
        delta, alpha, steep = self.shapes(robot)
        for k, j in enumerate(joints):
            v = dq[:, j]
            sign, slope = (2.0 / np.pi) * np.arctan(steep[k] * v), (2.0 / np.pi) * steep[k] / (1 + (steep[k] * v) ** 2)
            size = np.maximum(np.abs(v), 1e-12)
            power = alpha[k] * size ** (alpha[k] - 1.0) * np.abs(sign) + size ** alpha[k] * slope
            for part, values in ((0, slope), (1, delta[k] / (1.0 + (delta[k] * v) ** 2)), (2, 1.0), (4, power)):
                yield j, 5 * k + part, DQ, j, values

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        n, joints = robot.dof, chosen(robot, self.joints)
        delta, alpha, steep = self.shapes(robot)
        dry, fsc, viscous, offset, fnl = values.reshape(-1, 5).T
        yield Linear(viscous=np.diag(on_joints(n, joints, viscous)), constant=on_joints(n, joints, offset))
        for k, j in enumerate(joints):
            yield Dry(axis(n, j), dry[k], dry[k], Sign("arctan", 1.0 / steep[k]))
            if fsc[k] or fnl[k]:
                yield Curve(axis(n, j), fall_and_rise, (fsc[k], delta[k], fnl[k], alpha[k], steep[k]))

    def dissipating(self, robot: Robot, speeds: Array) -> Array:
        """Return conditions rows @ parameters >= 0 for dissipation, three for every joint: Fc must exceed the largest
        reduction by the arctan term, by the power term, and by both, up to the largest speed of the joint."""
        joints = chosen(robot, self.joints)
        delta, alpha, steep = self.shapes(robot)
        rows = np.zeros((len(joints), 3, 5 * len(joints)))
        for k, j in enumerate(joints):
            fall = 0.5 * np.pi * max(1.0, delta[k] / steep[k])  # arctan(delta v) <= fall S, as arctan is concave
            rise = speeds[j] ** alpha[k]
            rows[k, :, 5 * k:5 * k + 5] = [[1, fall, 0, 0, 0], [1, 0, 0, 0, rise], [1, fall, 0, 0, rise]]
        return rows.reshape(-1, 5 * len(joints))

    def slow_joints(self, robot: Robot) -> tuple[int, ...]:
        """Return all joints of the term, because Stribeck friction decreases at low speed."""
        return tuple(chosen(robot, self.joints))


@dataclass(frozen=True, eq=False)
class MotorSide:
    """Friction and inertia of motors that are coupled to the joints by T (Sousa, eq. 4.9): T (f_m(T' dq) + Iam T' ddq).

    Each motor has the parameters Fvm, Fcm, Fom and Iam; `parts` selects some of these four.
    """

    kind = "motor-side"
    coupling: Sequence[Sequence[float]]
    parts: tuple[str, ...] = ("Fvm", "Fcm", "Fom", "Iam")
    sign: Sign = field(default_factory=Sign)

    _PARTS: ClassVar[dict[str, tuple[str, Kind]]] = {
        "Fvm": ("N m s/rad", VISCOUS.unwritten()), "Fcm": ("N m", DRY.unwritten()), "Fom": ("N m", OFFSET),
        "Iam": ("kg m^2", ROTOR.unwritten())}

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        for part in self.parts:
            if part not in self._PARTS:
                raise ModelError(f"motor-side parameters are {', '.join(self._PARTS)}; there is no '{part}'")
        coupling_matrix(robot, self.coupling)
        return tuple(joint_parameter(robot, part, m, self._PARTS[part][0], kind=self._PARTS[part][1],
                                     positive=part != "Fom")
                     for m in range(robot.dof) for part in self.parts)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        coupling = coupling_matrix(robot, self.coupling)
        for m in range(robot.dof):
            velocity, acceleration = dq @ coupling[:, m], ddq @ coupling[:, m]
            columns = {"Fvm": velocity, "Fcm": self.sign(velocity), "Fom": np.ones(len(q)), "Iam": acceleration}
            for j in np.flatnonzero(coupling[:, m]):
                for k, part in enumerate(self.parts):
                    yield int(j), m * len(self.parts) + k, coupling[j, m] * columns[part]

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        coupling = coupling_matrix(robot, self.coupling)
        for m, own in enumerate(values.reshape(-1, len(self.parts))):
            w = coupling[:, m]
            for part, value in zip(self.parts, own, strict=True):
                if part == "Fvm":
                    yield Linear(viscous=value * np.outer(w, w))
                elif part == "Iam":
                    yield Linear(inertia=value * np.outer(w, w))
                elif part == "Fom":
                    yield Linear(constant=value * w)
                else:
                    yield Dry(w, value, value, self.sign)


@dataclass(frozen=True)
class CoupledWrist:
    """Motor of joint b that is mechanically coupled to joint a, as in the wrist of the Staubli TX40: its speed is
    dq_b + r dq_a.

    The torques of its rotor inertia Iam are r ddq_b on joint a and r ddq_a on joint b; those of viscous friction Fvm
    are the same with velocities. Those of Coulomb friction Fcm are sign(dq_b + r dq_a) on joint b, and r times that on
    joint a. `joints` are a and b; `ratio` is r, negative if the positive directions of the two joints are opposite.
    """

    kind = "coupled-wrist"
    joints: tuple[str | int, str | int] = (5, 6)
    sign: Sign = field(default_factory=Sign)
    ratio: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and self.ratio != 0.0):
            raise ModelError(f"the ratio of a coupled wrist must be a finite number other than zero, got {self.ratio}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        _, b = chosen(robot, self.joints)
        return (joint_parameter(robot, "Iam", b, "kg m^2", kind=ROTOR.unwritten()),
                joint_parameter(robot, "Fvm", b, "N m s/rad", kind=VISCOUS.unwritten()),
                joint_parameter(robot, "Fcm", b, "N m", kind=DRY.unwritten(), positive=True))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        a, b = chosen(robot, self.joints)
        sign = self.sign(dq[:, b] + self.ratio * dq[:, a])
        for joint, other, share in ((a, b, self.ratio), (b, a, 1.0)):
            yield from ((joint, 0, self.ratio * ddq[:, other]), (joint, 1, self.ratio * dq[:, other]),
                        (joint, 2, share * sign))

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        a, b = chosen(robot, self.joints)
        both = np.zeros((robot.dof, robot.dof))
        both[a, b] = both[b, a] = self.ratio
        yield Linear(inertia=values[0] * both, viscous=values[1] * both)
        yield Dry(self.ratio * axis(robot.dof, a) + axis(robot.dof, b), values[2], values[2], self.sign)

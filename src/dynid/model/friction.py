"""Friction at the joints and at the motors behind a coupling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.parameters import Parameter
from dynid.model.terms import Entries, chosen, coupling_matrix, joint_parameter, joint_unit
from dynid.robot import Robot

SignKind = Literal["hard", "tanh", "arctan"]


@dataclass(frozen=True)
class Sign:
    """The sign of a velocity: hard, or smooth over about `width` (rad/s or m/s) where a simulation needs it.

    tanh: tanh(dq / width). arctan: 2/pi arctan(dq / width) (Ardiani, eq. 1.16 with K_v = 1/width).
    """

    kind: SignKind = "hard"
    width: float = 0.01

    def __post_init__(self) -> None:
        if self.kind not in ("hard", "tanh", "arctan"):
            raise ModelError(f"a sign is 'hard', 'tanh' or 'arctan', got '{self.kind}'")
        if not self.width > 0:
            raise ModelError(f"the width of a smooth sign must be above zero, got {self.width}")

    def __call__(self, velocity: Array) -> Array:
        if self.kind == "hard":
            return np.sign(velocity)
        if self.kind == "tanh":
            return np.tanh(velocity / self.width)
        return (2.0 / np.pi) * np.arctan(velocity / self.width)


@dataclass(frozen=True)
class Viscous:
    """Fv dq."""

    kind = "viscous"
    accelerates = False
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, "Fv", j, joint_unit(robot, j, "N m s/rad", "N s/m"), positive=True)
                     for j in chosen(robot, self.joints))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, dq[:, j]


@dataclass(frozen=True)
class Coulomb:
    """Fc sign(dq)."""

    kind = "coulomb"
    accelerates = False
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, "Fc", j, joint_unit(robot, j, "N m", "N"), positive=True)
                     for j in chosen(robot, self.joints))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, self.sign(dq[:, j])


@dataclass(frozen=True)
class Offset:
    """Fo: a constant, from the current amplifier or from friction that differs between directions."""

    kind = "offset"
    accelerates = False
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, "Fo", j, joint_unit(robot, j, "N m", "N"))
                     for j in chosen(robot, self.joints))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, np.ones(len(q))


@dataclass(frozen=True)
class AsymmetricCoulomb:
    """Fcp for motion forward and Fcn for motion backward, both positive (instead of Coulomb and offset)."""

    kind = "asymmetric-coulomb"
    accelerates = False
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, kind, j, joint_unit(robot, j, "N m", "N"), positive=True)
                     for j in chosen(robot, self.joints) for kind in ("Fcp", "Fcn"))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            sign = self.sign(dq[:, j])
            yield j, 2 * k, np.maximum(sign, 0.0)
            yield j, 2 * k + 1, np.minimum(sign, 0.0)


@dataclass(frozen=True)
class AsymmetricViscous:
    """Fvp dq forward and Fvn dq backward."""

    kind = "asymmetric-viscous"
    accelerates = False
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, kind, j, joint_unit(robot, j, "N m s/rad", "N s/m"), positive=True)
                     for j in chosen(robot, self.joints) for kind in ("Fvp", "Fvn"))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, 2 * k, np.maximum(dq[:, j], 0.0)
            yield j, 2 * k + 1, np.minimum(dq[:, j], 0.0)


@dataclass(frozen=True, eq=False)
class Stribeck:
    """Friction that first falls and then rises with speed (Ardiani, eq. 1.15-1.16):

        Fc S + Fsc arctan(delta dq) + Fv dq + Fo + Fnl |dq|^alpha S,   S = 2/pi arctan(Kv dq).

    It is linear in Fc, Fsc, Fv, Fo and Fnl. delta (s/rad), alpha and Kv (s/rad) shape it: held at the given
    values (one number, or one a joint), or found by separable least squares when named in `free`.
    """

    kind = "stribeck"
    accelerates = False
    delta: ArrayLike = 10.0
    alpha: ArrayLike = 0.5
    Kv: ArrayLike = 1000.0
    free: tuple[str, ...] = ()
    joints: tuple[str | int, ...] | None = None

    _KINDS = (("Fc", "N m", "N", True), ("Fsc", "N m", "N", False), ("Fv", "N m s/rad", "N s/m", True),
              ("Fo", "N m", "N", False), ("Fnl", "N m", "N", False))
    SHAPES = ("delta", "alpha", "Kv")

    def __post_init__(self) -> None:
        for name in self.free:
            if name not in self.SHAPES:
                raise ModelError(f"the shape of Stribeck friction is {', '.join(self.SHAPES)}; there is no '{name}'")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, kind, j, joint_unit(robot, j, turning, sliding), positive=positive)
                     for j in chosen(robot, self.joints) for kind, turning, sliding, positive in self._KINDS)

    def _shape(self, name: str, count: int) -> Array:
        values = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
        if values.shape not in ((1,), (count,)) or not np.all(values > 0):
            raise ModelError(f"{name} of Stribeck friction must be one positive number or {count}, got {values}")
        return np.broadcast_to(values, (count,))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        joints = chosen(robot, self.joints)
        delta, alpha, steep = (self._shape(name, len(joints)) for name in self.SHAPES)
        for k, j in enumerate(joints):
            velocity = dq[:, j]
            sign = (2.0 / np.pi) * np.arctan(steep[k] * velocity)
            for part, values in enumerate((sign, np.arctan(delta[k] * velocity), velocity, np.ones(len(q)),
                                           np.abs(velocity) ** alpha[k] * sign)):
                yield j, 5 * k + part, values

    def shape_names(self, robot: Robot) -> tuple[str, ...]:
        """Names of the free shape parameters: delta1, delta2, .., alpha1, .."""
        return tuple(f"{name}{j + 1}" for name in self.free for j in chosen(robot, self.joints))

    def shape(self, robot: Robot) -> Array:
        """Present values of the free shape parameters."""
        count = len(chosen(robot, self.joints))
        return np.concatenate([self._shape(name, count) for name in self.free]) if self.free else np.empty(0)

    def with_shape(self, robot: Robot, values: Array) -> Stribeck:
        """The same term with other values of its free shape parameters."""
        count = len(chosen(robot, self.joints))
        parts = np.asarray(values, dtype=float).reshape(len(self.free), count)
        shapes: dict[str, Any] = {name: part.copy() for name, part in zip(self.free, parts, strict=True)}
        return replace(self, **shapes)


@dataclass(frozen=True, eq=False)
class MotorSide:
    """Friction and inertia of motors behind a coupling T (Sousa, eq. 4.9): T (f_m(T' dq) + Iam T' ddq).

    Names Fvm Fcm Fom Iam, one each a motor. parts: which of the four.
    """

    kind = "motor-side"
    coupling: Sequence[Sequence[float]]
    parts: tuple[str, ...] = ("Fvm", "Fcm", "Fom", "Iam")
    sign: Sign = field(default_factory=Sign)

    _UNITS: ClassVar[dict[str, str]] = {"Fvm": "N m s/rad", "Fcm": "N m", "Fom": "N m", "Iam": "kg m^2"}

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        for part in self.parts:
            if part not in self._UNITS:
                raise ModelError(f"motor-side parameters are {', '.join(self._UNITS)}; there is no '{part}'")
        coupling_matrix(robot, self.coupling)
        return tuple(joint_parameter(robot, part, m, self._UNITS[part], positive=part != "Fom")
                     for m in range(robot.dof) for part in self.parts)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        coupling = coupling_matrix(robot, self.coupling)
        velocity, acceleration = dq @ coupling, ddq @ coupling
        for m in range(robot.dof):
            columns = {"Fvm": velocity[:, m], "Fcm": self.sign(velocity[:, m]), "Fom": np.ones(len(q)),
                       "Iam": acceleration[:, m]}
            for j in np.flatnonzero(coupling[:, m]):
                for k, part in enumerate(self.parts):
                    yield int(j), m * len(self.parts) + k, coupling[j, m] * columns[part]


@dataclass(frozen=True)
class CoupledWrist:
    """Motor of the second joint that also turns against the first, as on the Staubli TX40.

    Iam: ddq_b on joint a and ddq_a on joint b; Fvm: the same with dq; Fcm: sign(dq_a + dq_b) on both.
    """

    kind = "coupled-wrist"
    joints: tuple[str | int, str | int] = (5, 6)
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        _, b = chosen(robot, self.joints)
        return (joint_parameter(robot, "Iam", b, "kg m^2"), joint_parameter(robot, "Fvm", b, "N m s/rad"),
                joint_parameter(robot, "Fcm", b, "N m", positive=True))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        a, b = chosen(robot, self.joints)
        sign = self.sign(dq[:, a] + dq[:, b])
        for here, other in ((a, b), (b, a)):
            yield here, 0, ddq[:, other]
            yield here, 1, dq[:, other]
            yield here, 2, sign

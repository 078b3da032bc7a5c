"""Dry friction with memory, elastic before it slides: the LuGre model, and the Dahl model without damping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.compiled import INLINED, OPTIONS
from dynid.kernel_store import njit
from dynid.model.elements import Bristles
from dynid.model.parameters import DRY, FRICTION, Parameter
from dynid.model.shape_values import ShapedFriction
from dynid.model.sign import Sign
from dynid.model.term import Entries, MotionSegment, TorqueModel
from dynid.model.terms import NOT_NEGATIVE, TORQUE, chosen, joint_parameters, sign_entries
from dynid.robot import Robot


@njit(**INLINED)
def level(v: float, ratio: float, vs: float) -> float:
    """Return the friction level g at velocity v relative to sliding friction: `ratio` at rest, one at high speed."""
    return 1.0 + (ratio - 1.0) * np.exp(-(v / vs) ** 2)


@njit(**INLINED)
def bend(z: float, travel: float, g: float, reach: float) -> float:
    """Return the bristle deflection z after a displacement `travel` (rad or m) in one direction, for constant friction
    level g."""
    end = np.sign(travel) * g
    return end + (z - end) * np.exp(-np.abs(travel) / (reach * g))


@njit(**INLINED)
def bending(z: float, v: float, g: float, reach: float) -> float:
    """Return the rate dz/dt of the bristle deflection z."""
    return (v - np.abs(v) * z / g) / reach


@njit(**OPTIONS)
def bristles(q: Array, dq: Array, reach: float, ratio: float, vs: float, z: Array, dz: Array) -> None:
    """Compute z and dz/dt (samples,) along q, dq (samples,) from z = 0: dz/dt = (dq - |dq| z / g) / reach, g = 1 +
    (ratio - 1) exp(-(dq / vs)^2), exact for constant g between samples."""
    z[0], state = 0.0, 0.0
    for k in range(len(q)):
        if k > 0:
            state = bend(state, q[k] - q[k - 1], level(0.5 * (dq[k] + dq[k - 1]), ratio, vs), reach)
        z[k], dz[k] = state, bending(state, dq[k], level(dq[k], ratio, vs), reach)


@dataclass(frozen=True, eq=False)
class LuGreFriction(ShapedFriction):
    """LuGre friction Fz z + Fz1 dz/dt (Canudas de Wit and others 1995).

    The bristles have the presliding distance `reach` and damping. The sliding force decreases from ratio times Fz at
    rest to Fz. The term is linear in Fz (N m or N) and Fz1 (N m s or N s), both non-negative. The shape parameters
    reach (rad or m), ratio (at least one) and vs (rad/s or m/s) are one number or one per joint. Shape parameters named
    in `free` are estimated by separable least squares. Viscous friction is a separate term. For samples without an
    order in time the torque is Fz sign(dq).
    """

    kind = "lugre"
    reach: ArrayLike = 1e-3
    ratio: ArrayLike = 1.0
    vs: ArrayLike = 0.05
    free: tuple[str, ...] = ()
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    SHAPES = ("reach", "ratio", "vs")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        self.shapes(robot)
        parts = (("Fz", TORQUE, DRY.unwritten()), ("Fz1_", ("N m s", "N s"), FRICTION))
        return joint_parameters(robot, self.joints, *parts, positive=True, bounds=NOT_NEGATIVE)

    def shapes(self, robot: Robot) -> Array:
        """Return reach, ratio and vs (3, joints); a ratio below one is set to one."""
        found = super().shapes(robot)
        found[1] = np.maximum(found[1], 1.0)
        return found

    def channels(self, robot: Robot) -> int:
        return 2 * len(chosen(robot, self.joints))

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        """Return the bristle deflection z and its rate of each joint along a motion (samples, 2 joints)."""
        own = chosen(model.robot, self.joints)
        found = np.zeros((2 * len(own), len(motion.t)))
        for k, (j, (reach, ratio, vs)) in enumerate(zip(own, self.shapes(model.robot).T, strict=True)):
            bristles(np.ascontiguousarray(motion.q[:, j]), np.ascontiguousarray(motion.dq[:, j]), float(reach),
                     float(ratio), float(vs), found[2 * k], found[2 * k + 1])
        return found.T

    def step(self, robot: Robot, before: tuple[Array, Array, Array], q: Array, dq: Array) -> Iterator[Array]:
        """Yield the bristle deflection z and its rate for each joint, computed from z at the previous sample."""
        q_before, dq_before, memory = before
        for k, (j, (reach, ratio, vs)) in enumerate(zip(chosen(robot, self.joints), self.shapes(robot).T.tolist(),
                                                        strict=True)):
            g = level.py_func(0.5 * (dq[:, j] + dq_before[:, j]), ratio, vs)
            z = bend.py_func(memory[:, 2 * k], q[:, j] - q_before[:, j], g, reach)
            yield z
            yield bending.py_func(z, dq[:, j], level.py_func(dq[:, j], ratio, vs), reach)

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, 2 * k, memory[:, 2 * k]
            yield j, 2 * k + 1, memory[:, 2 * k + 1]

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return sign_entries(robot, self.joints, self.sign, dq, 2)

    def elements(self, robot: Robot, values: Array) -> Iterator[Bristles]:
        for j, (force, damping), (reach, ratio, vs) in zip(chosen(robot, self.joints), values.reshape(-1, 2),
                                                           self.shapes(robot).T, strict=True):
            yield Bristles(j, float(force), float(reach), float(damping), float(ratio), float(vs))


@dataclass(frozen=True, eq=False)
class Dahl(ShapedFriction):
    """Dahl friction Fd z, dz/dq = (1 - z sign(dq)) / reach: after a reversal the force changes over a distance (Dahl
    1968).

    Dahl friction is LuGre friction without damping and without the Stribeck effect. `reach` is the presliding distance,
    rad or m, one number or one per joint. It is estimated by separable least squares if it is named in `free`. Fd is
    non-negative, so that the term dissipates energy over every closed path. For samples without an order in time the
    torque is Fd sign(dq).
    """

    kind = "dahl"
    reach: ArrayLike = 1e-3
    free: tuple[str, ...] = ()
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    SHAPES = ("reach",)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        self.shapes(robot)
        return joint_parameters(robot, self.joints, ("Fd", TORQUE, DRY.unwritten()), positive=True, bounds=NOT_NEGATIVE)

    def channels(self, robot: Robot) -> int:
        return len(chosen(robot, self.joints))

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        """Return the friction state z (samples, joints), between -1 and 1, along a motion."""
        own = chosen(model.robot, self.joints)
        found, rate = np.zeros((len(own), len(motion.t))), np.zeros(len(motion.t))
        for z, j, reach in zip(found, own, self.shapes(model.robot)[0], strict=True):
            bristles(np.ascontiguousarray(motion.q[:, j]), np.ascontiguousarray(motion.dq[:, j]), float(reach), 1.0,
                     1.0, z, rate)
        return found.T

    def step(self, robot: Robot, before: tuple[Array, Array, Array], q: Array, dq: Array) -> Iterator[Array]:
        """Yield the friction state z of each joint from the state at the previous sample."""
        q_before, _, z = before
        for k, (j, reach) in enumerate(zip(chosen(robot, self.joints), self.shapes(robot)[0], strict=True)):
            yield bend.py_func(z[:, k], q[:, j] - q_before[:, j], 1.0, float(reach))

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, memory[:, k]

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return sign_entries(robot, self.joints, self.sign, dq)

    def elements(self, robot: Robot, values: Array) -> Iterator[Bristles]:
        for j, reach, value in zip(chosen(robot, self.joints), self.shapes(robot)[0], values, strict=True):
            yield Bristles(j, float(value), float(reach))

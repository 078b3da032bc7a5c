"""Dahl friction: dry friction with memory, elastic before it slides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.compiled import INLINED, OPTIONS
from dynid.kernel_store import njit
from dynid.model.elements import Bristles
from dynid.model.parameters import DRY, Parameter
from dynid.model.shape_values import ShapedFriction
from dynid.model.sign import Sign
from dynid.model.term import Entries, MotionSegment, TorqueModel
from dynid.model.terms import NOT_NEGATIVE, TORQUE, chosen, joint_parameter, sign_entries
from dynid.robot import Robot


@njit(**INLINED)
def bend(z: float, travel: float, reach: float) -> float:
    """Return the Dahl state z after a displacement `travel` (rad or m): z approaches sign(travel) by the factor
    exp(-|travel| / reach)."""
    s = np.sign(travel)
    return s + (z - s) * np.exp(-np.abs(travel) / reach)


@njit(**OPTIONS)
def bent(q: Array, reach: float, z: Array) -> None:
    """Compute the Dahl state z (samples,) in [-1, 1] along positions q (samples,) from z = 0.

    The equation dz/dq = (1 - z sign(dq)) / reach is solved exactly from sample to sample.
    """
    z[0] = 0.0
    for k in range(1, len(q)):
        z[k] = bend(z[k - 1], q[k] - q[k - 1], reach)


@dataclass(frozen=True, eq=False)
class Dahl(ShapedFriction):
    """Dahl friction Fd z, dz/dq = (1 - z sign(dq)) / reach: after a reversal the force changes over a distance (Dahl
    1968).

    It is the LuGre model without damping and without the Stribeck effect. `reach` is the presliding distance, rad or m,
    one number or one per joint; it is estimated by separable least squares if it is named in `free`. Fd is
    non-negative, so that the term dissipates over every closed path. For samples without an order in time the torque is
    Fd sign(dq).
    """

    kind = "dahl"
    reach: ArrayLike = 1e-3
    free: tuple[str, ...] = ()
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    SHAPES = ("reach",)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        self.shapes(robot)
        return tuple(joint_parameter(robot, "Fd", j, TORQUE, kind=DRY.unwritten(), positive=True, bounds=NOT_NEGATIVE)
                     for j in chosen(robot, self.joints))

    def channels(self, robot: Robot) -> int:
        return len(chosen(robot, self.joints))

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        """Return the friction state z (samples, joints), between -1 and 1, along a motion."""
        own = chosen(model.robot, self.joints)
        found = np.zeros((len(motion.t), len(own)))
        for k, (j, reach) in enumerate(zip(own, self.shapes(model.robot)[0], strict=True)):
            z = np.zeros(len(motion.t))
            bent(np.ascontiguousarray(motion.q[:, j]), float(reach), z)
            found[:, k] = z
        return found

    def step(self, robot: Robot, before: tuple[Array, Array, Array], q: Array, dq: Array) -> Iterator[Array]:
        """Yield the friction state z of each joint from the state at the previous sample."""
        q_before, _, z = before
        for k, (j, reach) in enumerate(zip(chosen(robot, self.joints), self.shapes(robot)[0], strict=True)):
            yield bend.py_func(z[:, k], q[:, j] - q_before[:, j], float(reach))

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, memory[:, k]

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return sign_entries(robot, self.joints, self.sign, dq)

    def elements(self, robot: Robot, values: Array) -> Iterator[Bristles]:
        for j, reach, value in zip(chosen(robot, self.joints), self.shapes(robot)[0], values, strict=True):
            yield Bristles(j, float(value), float(reach))

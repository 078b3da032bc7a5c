"""Dry friction with memory, elastic before it slides: LuGre model, Dahl model, and hysteresis of play operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.compiled import INLINED, OPTIONS
from dynid.errors import ModelError
from dynid.kernel_store import njit
from dynid.model.elements import Bristles, MaxwellSlip
from dynid.model.parameters import DRY, FRICTION, HYSTERESIS, Parameter
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


# Default radii relative to the range of motion: half-decade distances, from the resolution of positions to a tenth.
_DEFAULT_RADII = (0.003, 0.01, 0.03, 0.1)


@njit(**OPTIONS)
def slip(q: Array, radii: Array, states: Array) -> None:
    """Compute the two states of each play operator (2 operators, samples) along q (samples,), see `Hysteresis`."""
    for i in range(len(radii)):
        above, below = 0.0, 0.0
        for k in range(1, len(q)):
            moved = (q[k] - q[k - 1]) / radii[i]
            above, below = min(max(above + moved, 0.0), 2.0), min(max(below + moved, -2.0), 0.0)
            states[2 * i, k], states[2 * i + 1, k] = above, below


@dataclass(frozen=True, eq=False)
class Hysteresis:
    """Hysteresis sum_k Fhk s_k / r_k of play operators in parallel (Maxwell slip; Iwan 1966, Lampaert and others 2002).

    The state s_k follows the change of the position and is limited to -r_k .. r_k. After a reversal, the torque of an
    operator therefore changes from -Fhk to Fhk in proportion to the distance, over 2 r_k. The torque depends on the
    path and not on the speed. It is linear in Fhk, all non-negative, so that the term dissipates energy over every
    closed path.

    At the start of a motion, and after a gap, s_k is unknown. The column is the mean of s_k / r_k for the starts -r_k
    and r_k, which has the smallest worst error. It is exact once the joint has moved by 2 r_k in one direction. For
    samples without an order in time the torque is Fhk sign(dq), that of a joint that has moved far enough.

    Attributes:
        radii: radii r_k of the operators of a joint, in ascending order, in `unit`.
        unit: "range" for radii relative to the range of motion of the joint, "rad" for radii in rad (m if prismatic).
        ranges: range of motion of each joint, rad or m, one number or one per joint. Default: from the data, or from
            the joint limits without data.
        ridge: penalty relative to a column's squared norm, by which each parameter is regularised toward zero. It
            distributes friction evenly over operators that the data do not distinguish.
        joints: joints with this friction.
        sign: sign function for samples without an order in time.
    """

    kind = "hysteresis"
    learned: ClassVar[Mapping[str, str]] = {"ranges": "ranges"}
    radii: tuple[float, ...] = _DEFAULT_RADII
    unit: Literal["range", "rad"] = "range"
    ranges: ArrayLike | None = None
    ridge: float = 1e-3
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def __post_init__(self) -> None:
        if self.unit not in ("range", "rad"):
            raise ModelError(f"the unit of the radii of hysteresis is 'range' or 'rad', not '{self.unit}'",
                             code="unknown-unit")
        try:
            radii = np.array(self.radii, dtype=float)
        except (TypeError, ValueError):
            radii = np.zeros(1)
        if radii.ndim != 1 or not len(radii) or not np.all(np.isfinite(radii) & (radii > 0)) \
                or np.any(np.diff(radii) <= 0):
            raise ModelError("the radii of hysteresis must be a list of positive numbers in ascending order, got "
                             f"{self.radii}", "write for example radii = [0.003, 0.01, 0.03, 0.1]", "bad-radii")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ModelError(f"the ridge of hysteresis must not be negative, got {self.ridge}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        self.reaches(robot)
        parts = ((f"Fh{k + 1}_", TORQUE, HYSTERESIS) for k in range(len(self.radii)))
        return joint_parameters(robot, self.joints, *parts, positive=True, bounds=NOT_NEGATIVE, ridge=self.ridge)

    def reaches(self, robot: Robot) -> Array:
        """Return the radii (joints, operators) of the joints that the term acts on, rad or m."""
        own = chosen(robot, self.joints)
        if self.unit == "rad":
            return np.tile(np.array(self.radii, dtype=float), (len(own), 1))
        if self.ranges is None:
            limited = robot.limit("upper") - robot.limit("lower")
            ranges = np.where(np.isfinite(limited) & (limited > 0), limited, 1.0)
        else:
            ranges = np.atleast_1d(np.asarray(self.ranges, dtype=float))
        if ranges.shape not in ((1,), (robot.dof,)) or not np.all(np.isfinite(ranges) & (ranges > 0)):
            raise ModelError(f"the ranges of hysteresis must be one number above zero or {robot.dof}, one per joint, "
                             f"got {ranges}", code="wrong-count")
        return np.outer(np.broadcast_to(ranges, (robot.dof,))[own], self.radii)

    def dissipating(self, robot: Robot, speeds: Array) -> Array:
        """Return no further conditions (0, parameters): the torque dissipates if no parameter is negative."""
        return np.zeros((0, len(self.radii) * len(chosen(robot, self.joints))))

    def channels(self, robot: Robot) -> int:
        return 2 * len(self.radii) * len(chosen(robot, self.joints))

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        """Return two states of each operator along a motion (samples, joints x operators x 2): s / r + 1 for the start
        -r, and s / r - 1 for the start r. Both are zero at the start."""
        found, count = np.zeros((self.channels(model.robot), len(motion.t))), 2 * len(self.radii)
        for k, (j, radii) in enumerate(zip(chosen(model.robot, self.joints), self.reaches(model.robot), strict=True)):
            slip(np.ascontiguousarray(motion.q[:, j]), radii, found[count * k:count * (k + 1)])
        return found.T

    def step(self, robot: Robot, before: tuple[Array, Array, Array], q: Array, dq: Array) -> Iterator[Array]:
        """Yield the states of each joint's operators from those at the previous sample."""
        q_before, _, states = before
        own = np.repeat(chosen(robot, self.joints), 2 * len(self.radii))
        low = np.tile([0.0, -2.0], len(own) // 2)
        moved = states + (q[:, own] - q_before[:, own]) / np.repeat(self.reaches(robot).ravel(), 2)
        limited = np.minimum(np.maximum(moved, low), low + 2.0)
        for channel in range(len(own)):
            yield limited[:, channel]

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        count = len(self.radii)
        for k, j in enumerate(chosen(robot, self.joints)):
            for i in range(count * k, count * (k + 1)):
                yield j, i, 0.5 * (memory[:, 2 * i] + memory[:, 2 * i + 1])

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        count = len(self.radii)
        for k, j in enumerate(chosen(robot, self.joints)):
            for i in range(count):
                yield j, count * k + i, self.sign.of_joint(j)(dq[:, j])

    def elements(self, robot: Robot, values: Array) -> Iterator[MaxwellSlip]:
        for j, radii, forces in zip(chosen(robot, self.joints), self.reaches(robot).tolist(),
                                    values.reshape(-1, len(self.radii)).tolist(), strict=True):
            for radius, force in zip(radii, forces, strict=True):
                yield MaxwellSlip(j, 0.5 * force / radius, 0.0, 2.0 * radius)
                yield MaxwellSlip(j, 0.5 * force / radius, -2.0 * radius, 0.0)

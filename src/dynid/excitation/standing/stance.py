"""Stance of a robot with a free base: standing feet, home posture of the robot, and the coordinates that move.

The driving coordinates are displacement of the base from home (m), its rotation vector (rad), and all joints that the
feet do not constrain. The other leg joints follow from the feet by inverse kinematics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Ints
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.motion_limits import Limits
from dynid.floating import Contact
from dynid.floating.contacts import standing_jacobian
from dynid.floating.virtual_walker import FOOT_TOLERANCE, leg_joints, leg_rates, reach_places, solve_rows
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot
from dynid.robot.pose import body_rates, quaternions_of_vectors, right_jacobians

LEG_GAIN = 4.0  # largest gain of the legs relative to the home posture: straight knees are singular
_KEPT_POSTURES = 6  # cached solutions of the inverse kinematics, which criterion and limits share
_SINGULAR_LEGS = 1e-3  # share of the largest pivot of the legs' Jacobian below which a posture is singular


class Postures(NamedTuple):
    """Whole-body postures with standing feet.

    Attributes:
        q: configurations (samples, 7 + n).
        off: largest error of the feet (samples,), m or rad.
        tangent: derivative of the velocities by those of the driving coordinates (samples, 6 + n, m).
        gain: Frobenius norm of the derivative of leg velocities by foot velocities (samples,); large near
            singularities.
    """

    q: Array
    off: Array
    tangent: Array
    gain: Array


class WholeBodyStates(NamedTuple):
    """States of a robot with a free base.

    Attributes:
        q: configurations (samples, 7 + n).
        v, a: velocities and accelerations (samples, 6 + n).
        postures: the configurations as `Postures`, with errors of the feet and derivatives.
    """

    q: Array
    v: Array
    a: Array
    postures: Postures


@dataclass(frozen=True, eq=False)
class Stance:
    """Standing feet of a robot.

    Attributes:
        robot: a robot with a free base, its gravity along -z of the world.
        contacts: the feet, points or soles.
        home: configuration (7 + n,) with a horizontal base, the ground at height zero.
        places: pose of each foot in the world (4, 4).
        driving: indices of the driving coordinates (m,), which are free to choose, those of the base first.
        legs: indices of the dependent leg joints, one per constraint of the feet.
    """

    robot: Robot
    contacts: tuple[Contact, ...]
    home: Array
    places: tuple[Array, ...]
    driving: Ints
    legs: Ints
    _kept: dict[bytes, Postures] = field(default_factory=dict, repr=False)

    @staticmethod
    def from_robot(robot: Robot, contacts: tuple[Contact, ...], home: Array) -> Stance:
        """Return the stance of a home configuration (7 + n,) whose feet are on the ground.

        Raises:
            NotPossibleError: If the legs cannot hold the feet while the base moves.
        """
        places = tuple(dynamics.frame_pose(robot, contact.frame, home) for contact in contacts)
        legs = dependent_legs(robot, contacts, home)
        driving = np.setdiff1d(np.arange(robot.dof), legs)
        return Stance(robot, contacts, home, places, driving, legs)

    @property
    def size(self) -> int:
        """Number m of driving coordinates: those of the base, and of joints that the standing feet do not constrain."""
        return len(self.driving)

    @property
    def home_coordinates(self) -> Array:
        """Driving coordinates (m,) of the home posture."""
        return np.concatenate([np.zeros(SIX), self.home[7:]])[self.driving]

    def postures(self, x: Array) -> Postures:
        """Return the whole-body postures for driving coordinates x (samples, m)."""
        key = x.tobytes()
        if key in self._kept:
            return self._kept[key]
        q = np.repeat(self.home[None], len(x), axis=0)
        q[:, :3] += x[:, :3]
        q[:, 3:7] = quaternions_of_vectors(x[:, 3:SIX])
        q[:, self.driving[SIX:] + 1] = x[:, SIX:]
        q, off = reach_places(self.robot, self.contacts, self.places, q, self.legs)
        reduced = np.hstack([np.zeros((len(q), SIX)), q[:, 7:]])
        jacobian, _ = standing_jacobian(self.robot, self.contacts, reduced)
        tangent = np.zeros((len(x), self.robot.dof, self.size))
        tangent[:, :3, :3] = dynamics.rotations(q[:, 3:7]).transpose(0, 2, 1)
        tangent[:, 3:SIX, 3:SIX] = right_jacobians(x[:, 3:SIX])
        tangent[:, self.driving[SIX:], np.arange(SIX, self.size)] = 1.0
        rows = np.eye(jacobian.shape[1])
        inverse = solve_rows(jacobian[:, :, self.legs], np.broadcast_to(rows, (len(x), *rows.shape)))
        tangent[:, self.legs] = -inverse @ (jacobian @ tangent)
        postures = Postures(q, off, tangent, np.sqrt(np.sum(inverse ** 2, axis=(1, 2))))
        while len(self._kept) >= _KEPT_POSTURES:
            self._kept.pop(next(iter(self._kept), b""), None)
        self._kept[key] = postures
        return postures

    def drawn(self, reach: Array, count: int, rng: np.random.Generator) -> Array:
        """Return at most `count` random driving coordinates (samples, m) within `reach` (m,) of home, with standing
        feet and legs far from singular postures."""
        x = self.home_coordinates + rng.uniform(-1.0, 1.0, (count, self.size)) * reach
        x[0] = self.home_coordinates
        postures = self.postures(x)
        return x[(postures.off < FOOT_TOLERANCE) & (postures.gain < LEG_GAIN * postures.gain[0])]

    def states(self, x: Array, dx: Array, ddx: Array) -> WholeBodyStates:
        """Return the whole-body states for driving coordinates and their two derivatives (samples, m)."""
        postures = self._distinct_postures(x)
        v, a = np.zeros((2, len(x), self.robot.dof))
        turns = dynamics.rotations(postures.q[:, 3:7])
        v[:, :3] = np.einsum("sji,sj->si", turns, dx[:, :3])
        v[:, 3:SIX], a[:, 3:SIX] = body_rates(x[:, 3:SIX], dx[:, 3:SIX], ddx[:, 3:SIX])
        a[:, :3] = np.einsum("sji,sj->si", turns, ddx[:, :3]) - np.cross(v[:, 3:SIX], v[:, :3])
        v[:, self.driving[SIX:]], a[:, self.driving[SIX:]] = dx[:, SIX:], ddx[:, SIX:]
        v, a = leg_rates(self.robot, self.contacts, postures.q, v, a, self.legs)
        return WholeBodyStates(postures.q, v, a, postures)

    def _distinct_postures(self, x: Array) -> Postures:
        """Return the postures for driving coordinates x (samples, m); repeated rows of x are computed only once."""
        distinct, back = np.unique(x, axis=0, return_inverse=True)
        if 2 * len(distinct) > len(x):
            return self.postures(x)
        return Postures(*(part[back.ravel()] for part in self.postures(distinct)))

    def coordinates(self, states: WholeBodyStates, x: Array, dx: Array, ddx: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (samples, 6 + n), first of the base as displacement and
        rotation vector, then of all joints; x, dx, ddx: driving coordinates and their two derivatives (samples, m)."""
        return (np.hstack([x[:, :SIX], states.q[:, 7:]]), np.hstack([dx[:, :SIX], states.v[:, SIX:]]),
                np.hstack([ddx[:, :SIX], states.a[:, SIX:]]))


def check_leg_count(robot: Robot, contacts: tuple[Contact, ...]) -> None:
    """Raise an error if the legs have fewer joints than the standing feet have constraints."""
    legs, rows = leg_joints(robot, contacts), sum(3 if contact.kind == "point" else SIX for contact in contacts)
    if len(legs) < rows:
        named = ", ".join(f"'{contact.frame}'" for contact in contacts)
        raise NotPossibleError(f"the legs of robot '{robot.name}' have {len(legs)} joints, but standing feet {named} "
                               f"constrain {rows} directions while the base moves",
                               "name fewer standing feet, or omit --sole if the ankles cannot keep soles horizontal",
                               code="legs-cannot-hold")


def dependent_legs(robot: Robot, contacts: tuple[Contact, ...], home: Array) -> Ints:
    """Return the indices of the dependent leg joints, one per constraint of the feet: the joints with the most effect
    in the home configuration (7 + n,)."""
    from scipy.linalg import qr

    legs = leg_joints(robot, contacts)
    reduced = np.concatenate([np.zeros(SIX), home[7:]])[None]
    jacobian, _ = standing_jacobian(robot, contacts, reduced)
    _, triangle, order = qr(jacobian[0][:, legs], mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    if size[-1] < _SINGULAR_LEGS * size[0]:
        named = ", ".join(f"'{contact.frame}'" for contact in contacts)
        raise NotPossibleError(f"the legs of robot '{robot.name}' are singular in the home posture: feet {named} "
                               "cannot stand still while the base moves in all directions",
                               "give a posture with flexed knees with --home", code="legs-cannot-hold")
    return np.sort(legs[order[:jacobian.shape[1]]])


_ADJUSTED = 1e-3  # rad or m: largest change of the joints of a given home posture without a remark
# Shares of the height of the base above the feet by which legs are shortened. Flexed legs leave room to move upward.
_BENDS = (0.15, 0.1, 0.06, 0.2, 0.3)
_LEG_DRAWS = 12  # random leg postures to start from, for each bend
_DRAWN_ANGLE = 1.2  # rad of the random bends


def home_configuration(robot: Robot, contacts: tuple[Contact, ...], limits: Limits, given: ArrayLike | None,
                       excess: Callable[[Array], float], seed: int = 0) -> tuple[Array, tuple[str, ...]]:
    """Return a configuration (7 + n,) with a level base and all feet on the ground at height zero, and remarks.

    Args:
        robot: a robot with a free base.
        contacts: contacts of its feet.
        limits: limits of all 6 + n coordinates.
        given: joint positions (n,); None to choose them.
        excess: function that returns the largest violation of a limit in a configuration, for the choice.
        seed: seed of the choice.

    Raises:
        NotPossibleError: If a foot cannot reach the ground.
    """
    n = robot.dof - SIX
    lower, upper = limits.lower[SIX:], limits.upper[SIX:]
    if given is not None:
        joints = np.asarray(given, dtype=float)
        if joints.shape != (n,) or not np.isfinite(joints).all():
            raise DynidError(f"the home posture of robot '{robot.name}' must be {n} finite numbers, one per joint "
                             f"without the base, got {joints.size}", code="wrong-home")
        home, off = _on_ground(robot, contacts, joints, 0.0, joints)
        if off.max() >= FOOT_TOLERANCE:
            raise _out_of_reach(robot, contacts, off)
        moved = np.abs(home[7:] - joints)
        note = ("leg joints of the home posture were changed by up to "
                f"{moved.max():.2g} rad, so that all feet stand on level ground",) if moved.max() > _ADJUSTED else ()
        return home, note
    middle = np.where(np.isfinite(lower + upper), 0.5 * (lower + upper), 0.0)
    joints = np.where((lower <= 0.0) & (upper >= 0.0), 0.0, middle)
    rng, legs = np.random.default_rng(seed), leg_joints(robot, contacts)
    depth = _depths(robot, legs)
    best: tuple[float, Array] | None = None
    worst = np.zeros(len(contacts))
    for bend in _BENDS:
        for _ in range(_LEG_DRAWS):
            start = joints.copy()
            # Corresponding joints of all legs have the same angle: the knees point in the same direction.
            start[legs - SIX] = rng.uniform(-_DRAWN_ANGLE, _DRAWN_ANGLE, depth.max() + 1)[depth]
            home, worst = _on_ground(robot, contacts, np.clip(start, lower, upper), bend, joints)
            if worst.max() < FOOT_TOLERANCE and np.all((home[7:] >= lower) & (home[7:] <= upper)):
                value = excess(home)
                if best is None or value < best[0]:
                    best = value, home
        if best is not None and best[0] < 0.0:
            break
    if best is None:
        raise _out_of_reach(robot, contacts, worst)
    shown = ",".join(f"{x:.3g}" for x in best[1][7:])
    return best[1], (f"the home posture was chosen, --home {shown}; give another posture with --home",)


def _out_of_reach(robot: Robot, contacts: tuple[Contact, ...], off: Array) -> NotPossibleError:
    worst = contacts[int(np.argmax(off))].frame
    return NotPossibleError(f"foot '{worst}' of robot '{robot.name}' cannot reach level ground together with the "
                            "other feet", "give a posture with flexed knees with --home Q1,Q2,..., or name other feet",
                            code="feet-out-of-reach")


def _depths(robot: Robot, legs: Ints) -> Ints:
    """Return the position of each leg joint in its chain, from 0 at the base."""
    parents = robot.parents
    depths = np.zeros(robot.dof, dtype=np.int64)
    for i in range(SIX, robot.dof):
        depths[i] = depths[parents[i]] + 1 if parents[i] >= SIX else 0
    return depths[legs]


def _on_ground(robot: Robot, contacts: tuple[Contact, ...], joints: Array, bend: float, places: Array
               ) -> tuple[Array, Array]:
    """Return a configuration (7 + n,) with all feet on level ground, and the error of each foot (feet,), m or rad.

    joints: initial joint positions (n,). bend: share of the height of the base above the feet by which legs are
    shortened. places: posture (n,) in which the feet are vertically above their positions on the ground.
    """
    start = np.concatenate([np.zeros(3), [0.0, 0.0, 0.0, 1.0], places])
    poses = [dynamics.frame_pose(robot, contact.frame, start) for contact in contacts]
    ground = float(np.mean([pose[2, 3] for pose in poses])) * (1.0 - bend)
    targets = [pose.copy() if contact.kind == "point" else _level(pose)
               for pose, contact in zip(poses, contacts, strict=True)]
    for target in targets:
        target[2, 3] = ground
    begin = np.concatenate([np.zeros(3), [0.0, 0.0, 0.0, 1.0], joints])
    found, _ = reach_places(robot, contacts, targets, begin[None], leg_joints(robot, contacts))
    here = [dynamics.frame_pose(robot, contact.frame, found[0]) for contact in contacts]
    off = np.array([max(float(np.abs(one[:3, 3] - target[:3, 3]).max()), 0.0 if contact.kind == "point" else
                        float(np.abs(one[:3, :3] - target[:3, :3]).max()))
                    for one, target, contact in zip(here, targets, contacts, strict=True)])
    # Joints of a leg may have turned more than once.
    found[0, 7:] = np.where(np.array([not joint.prismatic for joint in robot.joints[SIX:]]),
                            np.mod(found[0, 7:] + np.pi, 2 * np.pi) - np.pi, found[0, 7:])
    found[0, 2] = -ground
    return found[0], off


def _level(pose: Array) -> Array:
    """Return a pose (4, 4) turned by the smallest rotation that makes its most vertical axis vertical."""
    up = int(np.argmax(np.abs(pose[2, :3])))
    axis = pose[:3, up] * np.sign(pose[2, up])
    turn = np.cross(axis, np.array([0.0, 0.0, 1.0]))
    size = float(np.linalg.norm(turn))
    angle = float(np.arctan2(size, axis[2]))
    vector = turn / size * angle if size > 1e-12 else np.zeros(3)
    out = pose.copy()
    out[:3, :3] = dynamics.rotations(quaternions_of_vectors(vector[None]))[0] @ pose[:3, :3]
    return out

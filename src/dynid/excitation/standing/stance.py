"""Stance of a robot with a free base: standing feet, and the coordinates that move while they stand.

The driving coordinates are displacement of the base from home (m), its rotation vector (rad), and all joints that the
feet leave free. The other leg joints follow from the feet by inverse kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Ints
from dynid.errors import NotPossibleError
from dynid.floating import Contact
from dynid.floating.contacts import standing_jacobian
from dynid.floating.rotation_vectors import body_rates, quaternions_of_vectors, right_jacobians
from dynid.floating.standing_legs import FOOT_TOLERANCE, leg_joints, leg_rates, reach_places, solve_rows
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

LEG_GAIN = 4.0  # times the gain of the legs in the home posture that is allowed: straight knees are singular
_KEPT_POSTURES = 6  # last solutions of the inverse kinematics; criterion and limits ask for the same ones
_SINGULAR_LEGS = 1e-3  # share of the largest pivot of the legs' Jacobian below which a posture is singular


class Postures(NamedTuple):
    """Postures of standing feet.

    Attributes:
        q: configurations (samples, 7 + n).
        off: largest error of the feet (samples,), m or rad.
        tangent: derivative of the velocities by those of the driving coordinates (samples, 6 + n, m).
        gain: Frobenius norm of the leg velocities by those of the feet (samples,); large near singular legs.
    """

    q: Array
    off: Array
    tangent: Array
    gain: Array


class WholeBodyStates(NamedTuple):
    """States of a robot with a free base: q (samples, 7 + n), v and a (samples, 6 + n), and their postures."""

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
        home: configuration (7 + n,) with a level base, the ground at height zero.
        places: pose of each foot in the world (4, 4).
        driving: coordinates that are free to choose (m,), the six of the base first.
        legs: dependent leg joints (rows of the contacts,).
    """

    robot: Robot
    contacts: tuple[Contact, ...]
    home: Array
    places: tuple[Array, ...]
    driving: Ints
    legs: Ints
    _kept: dict[bytes, Postures] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(robot: Robot, contacts: tuple[Contact, ...], home: Array) -> Stance:
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
        """Number m of driving coordinates: those of the base, and joints that standing feet leave free."""
        return len(self.driving)

    @property
    def home_coordinates(self) -> Array:
        """Driving coordinates (m,) of the home posture."""
        return np.concatenate([np.zeros(SIX), self.home[7:]])[self.driving]

    def postures(self, x: Array) -> Postures:
        """Return the postures for given driving coordinates (samples, m)."""
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
        found = Postures(q, off, tangent, np.sqrt(np.sum(inverse ** 2, axis=(1, 2))))
        while len(self._kept) >= _KEPT_POSTURES:
            self._kept.pop(next(iter(self._kept), b""), None)
        self._kept[key] = found
        return found

    def drawn(self, reach: Array, count: int, rng: np.random.Generator) -> Array:
        """Return random driving coordinates (samples, m) within `reach` (m,) of home, at most `count`, whose feet stand
        and whose legs are far from singular postures."""
        x = self.home_coordinates + rng.uniform(-1.0, 1.0, (count, self.size)) * reach
        x[0] = self.home_coordinates
        found = self.postures(x)
        return x[(found.off < FOOT_TOLERANCE) & (found.gain < LEG_GAIN * found.gain[0])]

    def states(self, x: Array, dx: Array, ddx: Array) -> WholeBodyStates:
        """Return the states of driving coordinates and their two derivatives (samples, m)."""
        found = self._distinct_postures(x)
        v, a = np.zeros((2, len(x), self.robot.dof))
        turns = dynamics.rotations(found.q[:, 3:7])
        v[:, :3] = np.einsum("sji,sj->si", turns, dx[:, :3])
        v[:, 3:SIX], a[:, 3:SIX] = body_rates(x[:, 3:SIX], dx[:, 3:SIX], ddx[:, 3:SIX])
        a[:, :3] = np.einsum("sji,sj->si", turns, ddx[:, :3]) - np.cross(v[:, 3:SIX], v[:, :3])
        v[:, self.driving[SIX:]], a[:, self.driving[SIX:]] = dx[:, SIX:], ddx[:, SIX:]
        v, a = leg_rates(self.robot, self.contacts, found.q, v, a, self.legs)
        return WholeBodyStates(found.q, v, a, found)

    def _distinct_postures(self, x: Array) -> Postures:
        """Return the postures for driving coordinates x (samples, m); repeated rows of x are computed only once."""
        distinct, back = np.unique(x, axis=0, return_inverse=True)
        if 2 * len(distinct) > len(x):
            return self.postures(x)
        found = self.postures(distinct)
        return Postures(*(part[back.ravel()] for part in found))

    def coordinates(self, states: WholeBodyStates, x: Array, dx: Array, ddx: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (samples, 6 + n): those of the base as displacement and
        rotation vector, then those of all joints."""
        return (np.hstack([x[:, :SIX], states.q[:, 7:]]), np.hstack([dx[:, :SIX], states.v[:, SIX:]]),
                np.hstack([ddx[:, :SIX], states.a[:, SIX:]]))


def check_leg_count(robot: Robot, contacts: tuple[Contact, ...]) -> None:
    """Raise an error if the legs have fewer joints than the feet have constraints, so that no posture would do."""
    legs, rows = leg_joints(robot, contacts), sum(3 if contact.kind == "point" else SIX for contact in contacts)
    if len(legs) < rows:
        named = ", ".join(f"'{contact.frame}'" for contact in contacts)
        raise NotPossibleError(f"the legs of robot '{robot.name}' have {len(legs)} joints, but standing feet {named} "
                               f"constrain {rows} directions while the base moves", "let fewer feet stand, or leave "
                               "--sole out if the ankles cannot keep soles level", code="legs-cannot-hold")


def dependent_legs(robot: Robot, contacts: tuple[Contact, ...], home: Array) -> Ints:
    """Return as many leg joints as the feet have constraints, those that move them best in the home posture."""
    from scipy.linalg import qr

    legs = leg_joints(robot, contacts)
    reduced = np.concatenate([np.zeros(SIX), home[7:]])[None]
    jacobian, _ = standing_jacobian(robot, contacts, reduced)
    own = jacobian[0][:, legs]
    rows = len(own)
    named = ", ".join(f"'{contact.frame}'" for contact in contacts)
    _, triangle, order = qr(own, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    if size[-1] < _SINGULAR_LEGS * size[0]:
        raise NotPossibleError(f"the legs of robot '{robot.name}' are singular in the home posture: feet {named} "
                               "cannot be held while the base moves in all directions", "give a posture with flexed "
                               "knees with --home", code="legs-cannot-hold")
    return np.sort(legs[order[:rows]])

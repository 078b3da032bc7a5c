"""Support of standing feet on level ground: support polygon, centre of pressure and the forces of the contact points.

Contact points are the point feet or the corners of the soles. The contact points do not move and are all at height
zero. Vertical forces therefore carry the vertical load and its two moments; tangential forces carry the other
components. The vertical forces with the largest product are chosen; they are positive if the centre of pressure is
inside the polygon. The tangential forces with the smallest sum of squares relative to the vertical forces are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Ints
from dynid.errors import NotPossibleError
from dynid.excitation.standing.options import Standing
from dynid.excitation.standing.stance import Stance
from dynid.robot import FREE_COORDINATES as SIX

_NEWTON_STEPS = 40  # largest number of Newton steps for the vertical forces; near an edge, many damped steps are needed
_NEWTON_TOLERANCE = 1e-12  # squared Newton decrement at which the vertical forces have converged
_INNER_SHARE = 0.98  # share of the distance from the middle to an edge, to which centres of pressure are limited
_SMALLEST_LOAD = 0.05  # smallest load for which forces are computed, as a share of the weight
_MIN_RADIUS = 1e-3  # m: smallest radius of the inscribed circle of a support polygon


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Contact forces of standing feet.

    Attributes:
        forces: force at every contact point in world axes (samples, points, 3), N.
        load: total vertical force (samples,), N.
        distances: distance of the centre of pressure from each edge of the support polygon (samples, edges), m,
            positive inside.
        torques: joint torques (samples, n), N m or N.
    """

    forces: Array
    load: Array
    distances: Array
    torques: Array


@dataclass(frozen=True, eq=False)
class Support:
    """Contact points of standing feet and their support polygon.

    Attributes:
        stance: the standing feet.
        points: contact points in the world (points, 2), m.
        owners: index of the foot of each point (points,).
        normals: inward unit normals of the polygon's edges (edges, 2).
        offsets: offsets of the edges (edges,), m: a point p is inside if normals @ p >= offsets.
        middle: centre of the inscribed circle (2,), m.
        radius: radius of the inscribed circle, m.
        weight: weight of the robot, N.
    """

    stance: Stance
    points: Array
    owners: Ints
    normals: Array
    offsets: Array
    middle: Array
    radius: float
    weight: float

    @staticmethod
    def from_stance(stance: Stance, standing: Standing, weight: float) -> Support:
        """Return the contact points and the support polygon of standing feet.

        Raises:
            NotPossibleError: If the support polygon is empty, or smaller than the margin.
        """
        points, owners = [], []
        for k, place in enumerate(stance.places):
            offsets = [np.zeros(2)] if standing.sole is None else _corners(place, standing.sole)
            points += [place[:2, 3] + offset for offset in offsets]
            owners += [k] * len(offsets)
        corners = np.array(points)
        hull = convex_hull(corners)
        edges = np.roll(hull, -1, axis=0) - hull
        length = np.linalg.norm(edges, axis=1, keepdims=True)
        normals = np.column_stack([-edges[:, 1], edges[:, 0]]) / np.maximum(length, 1e-12)
        offsets = np.einsum("ei,ei->e", normals, hull)
        middle, radius = _inscribed_circle(normals, offsets) if len(hull) > 2 else (hull.mean(axis=0), 0.0)
        if radius < _MIN_RADIUS:
            raise NotPossibleError(f"the support polygon of feet {', '.join(standing.feet)} has no area", "name at "
                                   "least three point feet, or give the size of the soles with --sole LENGTH,WIDTH",
                                   code="no-support-polygon")
        if standing.margin >= radius:
            raise NotPossibleError(f"a support margin of {standing.margin:g} m exceeds the support polygon, whose "
                                   f"inscribed circle has the radius {radius:.3g} m", "give a smaller "
                                   "--support-margin", code="no-support-polygon")
        return Support(stance, corners, np.array(owners), normals, offsets, middle, radius, weight)

    def forces(self, q: Array, generalised: Array) -> ContactForces:
        """Return the contact forces of configurations (samples, 7 + n), from the generalised forces of inverse dynamics
        (samples, 6 + n)."""
        turns = dynamics.rotations(q[:, 3:7])
        force = np.einsum("sij,sj->si", turns, generalised[:, :3])
        # The moment is about the centre of the polygon on the ground.
        arm = q[:, :3] - np.append(self.middle, 0.0)
        moment = np.einsum("sij,sj->si", turns, generalised[:, 3:SIX]) + np.cross(arm, force)
        load = np.maximum(force[:, 2], _SMALLEST_LOAD * self.weight)
        pressure = np.column_stack([-moment[:, 1], moment[:, 0]]) / load[:, None]
        distances = (pressure + self.middle) @ self.normals.T - self.offsets
        points = self.points - self.middle
        vertical = load[:, None] * _shares(points, self._inside(pressure))
        tangential = _tangential(points, vertical, force[:, :2], moment[:, 2])
        forces = np.concatenate([tangential, vertical[:, :, None]], axis=2)
        return ContactForces(forces, force[:, 2], distances, self._torques(q, turns, generalised, forces))

    def _inside(self, pressure: Array) -> Array:
        """Return centres of pressure (samples, 2) relative to the middle of the polygon, m; centres outside the polygon
        are moved inside."""
        room = self.normals @ self.middle - self.offsets  # distance from the middle to every edge
        share = np.max(-(pressure @ self.normals.T) / room, axis=1, keepdims=True)
        return pressure * np.minimum(1.0, _INNER_SHARE / np.maximum(share, 1e-12))

    def _torques(self, q: Array, turns: Array, generalised: Array, forces: Array) -> Array:
        """Return the joint torques (samples, n) that balance given contact forces (samples, points, 3). q:
        configurations (samples, 7 + n). turns: rotations of the base (samples, 3, 3). generalised: generalised forces
        of inverse dynamics (samples, 6 + n)."""
        robot = self.stance.robot
        reduced = np.hstack([np.zeros((len(q), SIX)), q[:, 7:]])
        torques = generalised[:, SIX:].copy()
        for k, (contact, place) in enumerate(zip(self.stance.contacts, self.stance.places, strict=True)):
            own = self.owners == k
            arms = np.column_stack([self.points[own], np.zeros(int(own.sum()))]) - place[:3, 3]
            wrench = [forces[:, own].sum(axis=1), np.cross(arms, forces[:, own]).sum(axis=1)]
            local = np.hstack([np.einsum("sji,sj->si", turns, part) for part in wrench])
            torques -= np.einsum("sij,si->sj", dynamics.jacobian(robot, contact.frame, reduced), local)[:, SIX:]
        return torques


def _corners(place: Array, sole: tuple[float, float]) -> list[Array]:
    """Return the corners of a sole relative to its frame, in world axes (2,), m."""
    up = int(np.argmax(np.abs(place[2, :3])))
    along, across = (place[:2, axis] for axis in range(3) if axis != up)
    return [0.5 * (a * sole[0] * along + b * sole[1] * across) for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))]


def convex_hull(points: Array) -> Array:
    """Return the corners of the convex hull of points (points, 2), counter-clockwise, by Andrew's monotone chain."""
    ordered = sorted({(float(x), float(y)) for x, y in np.round(points, 9)})

    def half(chain: list[tuple[float, float]]) -> list[tuple[float, float]]:
        kept: list[tuple[float, float]] = []
        for p in chain:
            while len(kept) > 1 and ((kept[-1][0] - kept[-2][0]) * (p[1] - kept[-2][1])
                                     - (kept[-1][1] - kept[-2][1]) * (p[0] - kept[-2][0])) <= 1e-12:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.array(half(ordered) + half(ordered[::-1])) if len(ordered) > 1 else np.array(ordered)


def _inscribed_circle(normals: Array, offsets: Array) -> tuple[Array, float]:
    """Return centre (2,) and radius of the largest circle inside a polygon."""
    from scipy.optimize import linprog

    rows = np.column_stack([-normals, np.ones(len(normals))])
    found = linprog([0.0, 0.0, -1.0], A_ub=rows, b_ub=-offsets, bounds=[(None, None)] * 2 + [(0.0, None)])
    return (np.asarray(found.x[:2]), float(found.x[2])) if found.success else (np.zeros(2), 0.0)


def _shares(points: Array, pressure: Array) -> Array:
    """Return the shares of the load at the contact points (samples, points) that have the largest product and a given
    centre of pressure (samples, 2).

    With a_i = (1, x_i, y_i) and the centre of pressure p, the shares are 1 / (a_i l). The dual vector l minimises the
    self-concordant function l (1, p) - sum log(a_i l), by damped Newton steps.
    """
    scale = float(np.abs(points).max())
    rows = np.column_stack([np.ones(len(points)), points / scale])
    right = np.column_stack([np.ones(len(pressure)), pressure / scale])
    dual = np.zeros_like(right)
    dual[:, 0] = len(points)
    for _ in range(_NEWTON_STEPS):
        share = 1.0 / (dual @ rows.T)
        gradient = right - share @ rows
        step = np.linalg.solve(np.einsum("sp,pi,pj->sij", share ** 2, rows, rows), gradient[:, :, None])[:, :, 0]
        decrement = np.maximum(np.einsum("si,si->s", gradient, step), 0.0)
        if decrement.max() < _NEWTON_TOLERANCE:
            break
        damping = np.where(decrement < 0.1, 1.0, 1.0 / (1.0 + np.sqrt(decrement)))
        dual -= damping[:, None] * step
    return 1.0 / (dual @ rows.T)


def _tangential(points: Array, vertical: Array, force: Array, moment: Array) -> Array:
    """Return tangential forces (samples, points, 2) that add up to a force (samples, 2) and a moment (samples,). The
    sum of their squares, each divided by the vertical force of its point (samples, points), is the smallest
    possible."""
    x, y = points.T
    zero, one = np.zeros(len(points)), np.ones(len(points))
    rows = np.stack([np.stack([one, zero]), np.stack([zero, one]), np.stack([-y, x])])  # (3, 2, points)
    right = np.column_stack([force, moment])
    dual = np.linalg.solve(np.einsum("ikp,sp,jkp->sij", rows, vertical, rows), right[:, :, None])[:, :, 0]
    return np.asarray(np.einsum("si,ikp,sp->spk", dual, rows, vertical))

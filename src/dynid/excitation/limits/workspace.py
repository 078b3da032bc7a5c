"""Workspace limits: collision avoidance and half-spaces for the bodies of a robot, which are modelled as capsules.

A capsule contains all points within `radius` of a segment; a sphere is a capsule whose segment is a point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.compiled import OPTIONS
from dynid.dynamics.kinematics import body_places
from dynid.errors import DynidError
from dynid.kernel_store import njit
from dynid.robot import BASE, Robot, Shape
from dynid.robot.pose import inverse

_PROBED_POSTURES = 200  # random postures for the detection of permanent contacts


@dataclass(frozen=True, eq=False)
class Workspace:
    """Capsules of a robot, pairs that must not collide, and half-spaces.

    Attributes:
        robot, capsules, planes: the robot, the capsules of its links and of obstacles, and half-spaces.
        pairs: indices of capsules that must not touch (P, 2).
        sides: indices of half-spaces and the capsules that must be inside (S, 2).
        margin: distance kept free, m.
        skipped: permanent contacts that are ignored, as text.
    """

    robot: Robot
    capsules: tuple[Capsule, ...]
    planes: tuple[HalfSpace, ...]
    pairs: Ints
    sides: Ints
    margin: float = 0.0
    skipped: tuple[str, ...] = ()

    @staticmethod
    def from_robot(robot: Robot, *, planes: Iterable[HalfSpace] = (), obstacles: Sequence[Capsule] = (),
                   spheres: Sequence[Capsule] = (), radius: float = 0.0, self_collision: bool = True,
                   margin: float = 0.0) -> Workspace:
        """Return the workspace limits of a robot.

        The bodies are those of the robot's collision geometry or `spheres`; without either, capsules of `radius` along
        the links. Contacts between neighbours are ignored. Contacts that exist in all of 200 random postures are
        ignored and listed in `skipped`.

        Args:
            robot: the robot.
            planes: half-spaces in which all links must stay.
            obstacles: capsules fixed to the base.
            spheres: capsules on links, in place of the collision geometry.
            radius: radius of the links of a robot without collision geometry, m.
            self_collision: whether the robot's own links must not collide.
            margin: distance kept free, m.
        """
        shapes = ((i, shape) for i, body in enumerate(robot.bodies) for shape in body.shapes)
        own = tuple(spheres) or tuple(capsule_around(shape, i) for i, shape in shapes) or skeleton(robot, radius)
        for capsule in (*own, *obstacles):
            if not BASE <= capsule.body < robot.dof:
                raise DynidError(f"capsule '{capsule.name}' is on body {capsule.body}, robot '{robot.name}' has bodies "
                                 f"0 to {robot.dof - 1} and the base, {BASE}")
        capsules, walls = (*own, *obstacles), tuple(planes)
        pairs = []
        for p, q in combinations(range(len(capsules)), 2):
            a, b = capsules[p].body, capsules[q].body
            obstacle = q >= len(own)  # which has no neighbours
            adjacent = (a != BASE and robot.parents[a] == b) or (b != BASE and robot.parents[b] == a)
            if a != b and (obstacle or (self_collision and not adjacent)):
                pairs.append((p, q))
        sides = [(w, p) for w in range(len(walls)) for p, capsule in enumerate(own) if capsule.body != BASE]
        every = Workspace(robot, capsules, walls, np.array(pairs, dtype=np.int64).reshape(-1, 2),
                          np.array(sides, dtype=np.int64).reshape(-1, 2), margin)
        return every._without_permanent_contacts()

    def _without_permanent_contacts(self) -> Workspace:
        """Return the workspace without contacts that exist in every random posture."""
        rng = np.random.default_rng(0)
        low = np.where(np.isfinite(self.robot.limit("lower")), self.robot.limit("lower"), -np.pi)
        high = np.where(np.isfinite(self.robot.limit("upper")), self.robot.limit("upper"), np.pi)
        touch = np.asarray((self.slack(rng.uniform(low, high, (_PROBED_POSTURES, self.robot.dof))) < 0).all(axis=0))
        count = len(self.pairs)
        names = self.names
        return replace(self, pairs=self.pairs[~touch[:count]], sides=self.sides[~touch[count:]],
                       skipped=tuple(name for name, always in zip(names, touch, strict=True) if always))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Description of each pair of bodies or half-space, in the order of the columns of `slack`."""
        return (*(f"{self.capsules[p].name} against {self.capsules[q].name}" for p, q in self.pairs),
                *(f"{self.capsules[p].name} in half-space '{self.planes[w].name}'" for w, p in self.sides))

    @cached_property
    def _arrays(self) -> tuple[Array, Ints, Array]:
        ends = np.array([[c.a, c.b] for c in self.capsules]).reshape(-1, 2, 3)
        return (ends, np.array([c.body for c in self.capsules], dtype=np.int64),
                np.array([c.radius for c in self.capsules], dtype=float))

    def ends(self, q: Array) -> tuple[Array, Array]:
        """Return ends of all capsules (m, C, 2, 3) and joint axes (m, dof, 6) in the base frame at q (m, dof)."""
        q = np.ascontiguousarray(q)
        local, body, _ = self._arrays
        poses, axes = body_places(self.robot, q, threads=1)
        out = np.empty((len(q), len(local), 2, 3))
        moving = body != BASE
        frames = poses[:, body[moving]]
        out[:, moving] = np.einsum("mcij,ckj->mcki", frames[..., :3], local[moving]) + frames[:, :, None, :, 3]
        out[:, ~moving] = local[~moving]
        return out, np.ascontiguousarray(axes)

    def slack(self, q: Array) -> Array:
        """Return clearances (m, pairs + sides), in metres, at postures q (m, dof); negative values are violations."""
        return self.slack_of_ends(self.ends(q)[0])[0]

    def slack_of_ends(self, ends: Array) -> tuple[Array, Array]:
        """Return clearances (m, pairs + sides), in metres, for ends of capsules (m, C, 2, 3), and the positions of the
        closest points on the segments of both capsules (m, pairs, 2), from 0 to 1."""
        radii = self._arrays[2]
        gap, where = np.empty((len(ends), len(self.pairs))), np.empty((len(ends), len(self.pairs), 2))
        distances_kernel(ends, self.pairs, radii, gap, where)
        if not len(self.sides):
            return gap - self.margin, where
        normals = np.array([self.planes[w].normal for w, _ in self.sides])
        offsets = np.array([self.planes[w].offset for w, _ in self.sides])
        chosen = self.sides[:, 1]
        height = np.einsum("mckx,cx->mck", ends[:, chosen], normals).min(axis=2) - offsets - radii[chosen]
        return np.hstack([gap, height]) - self.margin, where

    def gradient(self, q: Array, columns: Ints) -> Array:
        """Return the derivative (m, dof) by q (m, dof) of one column of `slack` in each row."""
        ends, axes = self.ends(q)
        _, where = self.slack_of_ends(ends)
        _, body, _ = self._arrays
        rows, count = np.arange(len(q)), len(self.pairs)
        touching = columns < count
        p, r = np.zeros(len(q), dtype=np.int64), np.zeros(len(q), dtype=np.int64)
        x, y, normal = np.zeros((3, len(q), 3))
        if touching.any():
            k, pair = rows[touching], self.pairs[columns[touching]]
            p[k], r[k] = pair[:, 0], pair[:, 1]
            share = where[k, columns[touching]]
            one, two = ends[k, p[k]], ends[k, r[k]]
            x[k] = one[:, 0] + share[:, :1] * (one[:, 1] - one[:, 0])
            y[k] = two[:, 0] + share[:, 1:] * (two[:, 1] - two[:, 0])
            difference = x[k] - y[k]
            size = np.linalg.norm(difference, axis=1, keepdims=True)
            # For crossing segments the direction is the line between their midpoints.
            difference = np.where(size < 1e-9, one.mean(axis=1) - two.mean(axis=1), difference)
            normal[k] = difference / np.maximum(np.linalg.norm(difference, axis=1, keepdims=True), 1e-9)
        if not touching.all():
            k, side = rows[~touching], self.sides[columns[~touching] - count]
            normal[k] = np.array([self.planes[w].normal for w in side[:, 0]])
            p[k] = side[:, 1]
            ends_p = ends[k, p[k]]
            lower = np.argmin(np.einsum("mkx,mx->mk", ends_p, normal[k]), axis=1)
            x[k] = ends_p[np.arange(len(k)), lower]
        out = self._speeds(axes, x, normal, body[p])
        out[touching] -= self._speeds(axes[touching], y[touching], normal[touching], body[r[touching]])
        return out

    def _speeds(self, axes: Array, points: Array, normals: Array, bodies: Ints) -> Array:
        """Return the velocity (m, dof) of one point per row along a normal, for unit velocity of each joint."""
        speed = axes[:, :, 3:] + np.cross(axes[:, :, :3], points[:, None])
        carried = self.robot.supports[:, bodies].T & (bodies != BASE)[:, None]
        return np.where(carried, np.einsum("mjx,mx->mj", speed, normals), 0.0)


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Allowed points p with normal . p >= offset in the base frame: above a table, in front of a wall, inside a box."""

    normal: Array
    offset: float
    name: str

    def __post_init__(self) -> None:
        normal = np.array(self.normal, dtype=float)
        size = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not 0 < size < np.inf or not np.isfinite(self.offset):
            raise DynidError(f"half-space '{self.name}' needs a normal of three numbers, not all zero, and an offset")
        object.__setattr__(self, "normal", normal / size)
        object.__setattr__(self, "offset", float(self.offset) / size)


def inside_box(lower: ArrayLike, upper: ArrayLike, name: str = "workspace") -> tuple[HalfSpace, ...]:
    """Return the sides of a box that bodies must stay in, without infinite sides."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if low.shape != (3,) or high.shape != (3,) or not (low < high).all():
        raise DynidError(f"box '{name}' needs three lower bounds below its three upper bounds, got {low} and {high}")
    sides = []
    for k, axis in enumerate("xyz"):
        unit = np.eye(3)[k]
        sides += [HalfSpace(unit, low[k], f"{name} {axis} >= {low[k]:g}")] if np.isfinite(low[k]) else []
        sides += [HalfSpace(-unit, -high[k], f"{name} {axis} <= {high[k]:g}")] if np.isfinite(high[k]) else []
    return tuple(sides)


@dataclass(frozen=True, eq=False)
class Capsule:
    """A capsule on a body of the robot: all points within a radius of a segment.

    Attributes:
        body: index of the body; BASE for a capsule fixed to the base.
        a, b: ends of the segment in the body's frame (3,), m.
        radius: radius, m.
        name: name in messages.
    """

    body: int
    a: Array
    b: Array
    radius: float
    name: str

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            end = np.array(getattr(self, name), dtype=float)
            if end.shape != (3,) or not np.isfinite(end).all():
                raise DynidError(f"capsule '{self.name}' needs ends of three finite numbers, got {end}")
            object.__setattr__(self, name, end)
        if not 0 <= self.radius < np.inf:
            raise DynidError(f"capsule '{self.name}' needs a radius of zero or more, got {self.radius}")


def sphere(body: int, centre: ArrayLike, radius: float, name: str) -> Capsule:
    """Return a capsule that is a sphere, on a body of the robot or fixed to the base (BASE)."""
    return Capsule(body, np.asarray(centre, dtype=float), np.asarray(centre, dtype=float), radius, name)


def box(lower: ArrayLike, upper: ArrayLike, name: str) -> Capsule:
    """Return the capsule around a box obstacle that is fixed to the base; a table or a wall is a `HalfSpace`."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    pose = np.eye(4)
    pose[:3, 3] = 0.5 * (low + high)
    return capsule_around(Shape("box", tuple(map(float, high - low)), pose, name), BASE)


def capsule_around(shape: Shape, body: int) -> Capsule:
    """Return the capsule around a primitive shape: along a cylinder's axis or a box's longest edge."""
    half, radius, axis = 0.0, float(shape.size[0]), 2
    if shape.kind in ("cylinder", "capsule"):
        half = 0.5 * float(shape.size[1])
    elif shape.kind == "box":
        axis = int(np.argmax(shape.size))
        half = 0.5 * float(shape.size[axis])
        radius = 0.5 * float(np.linalg.norm([edge for k, edge in enumerate(shape.size) if k != axis]))
    along = shape.pose[:3, axis] * half
    return Capsule(body, shape.pose[:3, 3] - along, shape.pose[:3, 3] + along, radius, shape.link or f"body {body + 1}")


def skeleton(robot: Robot, radius: float) -> tuple[Capsule, ...]:
    """Return capsules from joint to joint (and to every frame of the last bodies) of a robot without collision
    shapes."""
    capsules = []
    for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        here = inverse(np.asarray(joint.after))[:3, 3]  # the joint's own origin, in the body frame
        ends = [child.before[:3, 3] for child in robot.joints if child.parent == i]
        ends = ends or [np.zeros(3), *(frame.pose[:3, 3] for frame in robot.frames if frame.body == i)]
        lengths = [float(np.linalg.norm(end - here)) for end in ends]
        for end, length in zip(ends, lengths, strict=True):
            if length > 1e-9 or max(lengths) <= 1e-9:
                capsules.append(Capsule(i, here, end, radius, body.name))
    return tuple(capsules)


@njit(**OPTIONS)
def distances_kernel(ends: Array, pairs: Ints, radii: Array, gap: Array, where: Array) -> None:
    """Compute distances between pairs (P, 2) of capsules with segments `ends` (m, C, 2, 3) and `radii` (C,). Outputs
    are the distances `gap` (m, P), m, and in `where` (m, P, 2) the closest points of both segments, 0 at end a to 1 at
    end b (Ericson, Real-Time Collision Detection, s. 5.1.9)."""
    for i in range(len(ends)):
        for p in range(len(pairs)):
            one, two = ends[i, pairs[p, 0]], ends[i, pairs[p, 1]]
            a = e = f = c = b = 0.0
            for k in range(3):
                d1, d2, r = one[1, k] - one[0, k], two[1, k] - two[0, k], one[0, k] - two[0, k]
                a += d1 * d1
                e += d2 * d2
                f += d2 * r
                c += d1 * r
                b += d1 * d2
            s = t = 0.0
            if a > 1e-18 and e > 1e-18:
                determinant = a * e - b * b
                if determinant > 1e-12 * a * e:
                    s = min(max((b * f - c * e) / determinant, 0.0), 1.0)
                t = (b * s + f) / e
                if t < 0.0:
                    t, s = 0.0, min(max(-c / a, 0.0), 1.0)
                elif t > 1.0:
                    t, s = 1.0, min(max((b - c) / a, 0.0), 1.0)
            elif a > 1e-18:
                s = min(max(-c / a, 0.0), 1.0)
            elif e > 1e-18:
                t = min(max(f / e, 0.0), 1.0)
            square = 0.0
            for k in range(3):
                x = one[0, k] + s * (one[1, k] - one[0, k]) - two[0, k] - t * (two[1, k] - two[0, k])
                square += x * x
            gap[i, p] = np.sqrt(square) - radii[pairs[p, 0]] - radii[pairs[p, 1]]
            where[i, p, 0], where[i, p, 1] = s, t

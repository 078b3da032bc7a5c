"""Capsules around the bodies of a robot and around obstacles, and the distances between them.

A capsule contains all points within `radius` of a segment; a sphere is a capsule whose segment is a point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.compiled import OPTIONS
from dynid.errors import DynidError
from dynid.kernel_store import njit
from dynid.robot import BASE, Robot, Shape
from dynid.robot.pose import inverse


@dataclass(frozen=True, eq=False)
class Capsule:
    """A capsule on body `body` (BASE: fixed to the base), from a to b in the body's frame (3,), m."""

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
    """Return a sphere on a body (BASE: fixed to the base)."""
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
    """Return capsules from joint to joint (and to every frame of the last bodies) for a robot without collision
    geometry."""
    found = []
    for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        here = inverse(np.asarray(joint.after))[:3, 3]  # the joint's own origin, in the body frame
        ends = [child.before[:3, 3] for child in robot.joints if child.parent == i]
        ends = ends or [np.zeros(3), *(frame.pose[:3, 3] for frame in robot.frames if frame.body == i)]
        lengths = [float(np.linalg.norm(end - here)) for end in ends]
        for end, length in zip(ends, lengths, strict=True):
            if length > 1e-9 or max(lengths) <= 1e-9:
                found.append(Capsule(i, here, end, radius, body.name))
    return tuple(found)


@njit(**OPTIONS)
def distances_kernel(ends: Array, pairs: Ints, radii: Array, gap: Array, where: Array) -> None:
    """Compute the distance between the capsules of each pair, gap (m, P), and the closest points.

    where (m, P, 2): position on either segment, 0 at a, 1 at b. ends (m, C, 2, 3). Closest points of two segments are
    computed as in Ericson, Real-Time Collision Detection, s. 5.1.9.
    """
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

"""Physical consistency of a robot's own inertias, link by link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.robot import inertia as ten
from dynid.robot.inertia import InertiaProblem
from dynid.robot.pose import inverse
from dynid.robot.robot import Body, Part, Robot, Shape

# Share of the inertia below which an excess is a rounding error of the printed digits: for a flat plate both sides of
# the triangle inequality are equal.
ROUNDING = 1e-6
# Largest distance, m, of a centre of mass outside its collision box that is not reported.
MARGIN = 1e-3


def inertia_problems(robot: Robot) -> tuple[InertiaProblem, ...]:
    """Return all faults of the inertias of a robot, in the order of its links, dependent ones last.

    A link merged into another by a fixed joint is tested separately. A link without inertia is a fault only if its
    whole body has none.
    """
    followers = robot.followers
    following = () if followers is None else (followers.tree.bodies[i] for i in followers.bodies)
    return tuple(problem for body in (*robot.bodies, *following) for problem in _of_body(body))


def possible_inertias(robot: Robot, inertias: ArrayLike, *, unchecked: bool = False) -> Array:
    """Return the ten parameters of every body (dof, 10). Refuses bodies that are not physically consistent.

    unchecked: only check the shape and that all numbers are finite.
    """
    numbers = np.asarray(inertias, dtype=float)
    if numbers.size != 10 * robot.dof or not np.isfinite(numbers).all():
        raise ModelError(f"robot '{robot.name}' needs {robot.dof} x 10 finite inertial numbers, got shape "
                         f"{numbers.shape}{'' if np.isfinite(numbers).all() else ' with numbers that are not finite'}",
                         code="bad-inertias")
    numbers = numbers.reshape(robot.dof, 10)
    if not unchecked:
        wrong = [p for p in inertia_problems(robot.with_inertias(numbers)) if p.kind != "centre-of-mass"]
        if wrong:
            raise NotPossibleError("these inertias are not physically consistent, so a simulator may become unstable: "
                                   f"{wrong[0].message}; use a physically consistent method, such as --method pc-wls",
                                   code="not-consistent")
    return numbers


def _of_body(body: Body) -> Iterator[InertiaProblem]:
    if body.virtual:
        return
    if body.inertia is None:
        yield InertiaProblem(body.name, "missing", f"link '{body.name}' has no inertia", 0.0)
        return
    for part in body.parts or (Part(body.name, np.eye(4), body.inertia),):
        if part.inertia is not None and (np.any(part.inertia != 0) or not np.any(body.inertia != 0)):
            shapes = [shape for shape in body.shapes if shape.link in ("", part.link)]
            yield from _of_link(part.link, part.inertia, [(inverse(part.pose) @ s.pose, s) for s in shapes])


def _of_link(link: str, numbers: Array, shapes: Sequence[tuple[Array, Shape]]) -> Iterator[InertiaProblem]:
    """Yield the problems of one link from its ten parameters and its collision shapes, both in its own frame."""
    yield from ten.body_faults(link, numbers, ROUNDING)
    if numbers[9] == 0:
        return
    com = ten.to_central(numbers)[1]
    if shapes:
        low, high = _box(shapes)
        outside = np.maximum(np.maximum(low - com, com - high), 0.0)
        distance = float(np.linalg.norm(outside))
        if distance > MARGIN:
            yield InertiaProblem(link, "centre-of-mass",
                                 f"the centre of mass of link '{link}' at {_point(com)} m is {distance:.4g} m "
                                 f"outside the box {_point(low)} to {_point(high)} m around its collision shapes",
                                 distance)


def _box(shapes: Sequence[tuple[Array, Shape]]) -> tuple[Array, Array]:
    """Return two corners (3,), (3,) of the smallest box along the link's axes around all its shapes."""
    lows, highs = [], []
    for pose, shape in shapes:
        half = _half_extent(pose[:3, :3], shape)
        lows.append(pose[:3, 3] - half)
        highs.append(pose[:3, 3] + half)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def _half_extent(turn: Array, shape: Shape) -> Array:
    """Return the half extent of a shape along each axis of the link (3,), with its own axes rotated by `turn`."""
    if shape.kind == "box":
        return np.asarray(np.abs(turn) @ (np.array(shape.size) / 2))
    if shape.kind == "sphere":
        return np.full(3, shape.size[0])
    radius, length = shape.size
    along = np.abs(turn[:, 2])
    if shape.kind == "capsule":
        return np.asarray(along * length / 2 + radius)
    return np.asarray(along * length / 2 + radius * np.sqrt(np.maximum(1.0 - along**2, 0.0)))


def _point(p: Array) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in p) + ")"

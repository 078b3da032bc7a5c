"""Tests of the physical consistency of the inertias in a robot description, link by link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
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
    """Return all faults of the inertias of a robot in the order of its links; links on dependent joints are last.

    A link that a fixed joint merges into another link is tested separately. A link without inertia is a fault only if
    no other link of its body has an inertia.
    """
    followers = robot.followers
    dependent = () if followers is None else (followers.tree.bodies[i] for i in followers.bodies)
    return tuple(problem for body in (*robot.bodies, *dependent) for problem in _body_problems(body))


def possible_inertias(robot: Robot, inertias: ArrayLike, *, unchecked: bool = False) -> Array:
    """Return the ten inertial parameters of every body (dof, 10), checked before they are written to a robot file.

    Args:
        robot: robot with these bodies.
        inertias: ten inertial parameters of every body (dof, 10), or flat.
        unchecked: also accept bodies that are not physically consistent.

    Raises:
        ModelError: if the number of values is wrong, or a value is not finite.
        NotPossibleError: if a body is not physically consistent.
        RobotError: if a body has first moments but no mass, so that it has no centre of mass to write.
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
            raise NotPossibleError("the inertias are not physically consistent, so a simulator may become unstable: "
                                   f"{wrong[0].message}; use a physically consistent method, such as --method pc-wls",
                                   code="not-consistent")
    for name, row in zip(robot.body_names, numbers, strict=True):
        if row[9] == 0 and np.any(row[6:9] != 0):
            raise RobotError(f"link '{name}' has first moments but no mass, which a robot file cannot express",
                             code="no-mass")
    return numbers


def _body_problems(body: Body) -> Iterator[InertiaProblem]:
    """Yield the faults of the inertia of one body, link by link."""
    if body.virtual:
        return
    if body.inertia is None:
        yield InertiaProblem(body.name, "missing", f"link '{body.name}' has no inertia", 0.0)
        return
    for part in body.parts or (Part(body.name, np.eye(4), body.inertia),):
        if part.inertia is not None and (np.any(part.inertia != 0) or not np.any(body.inertia != 0)):
            shapes = [shape for shape in body.shapes if shape.link in ("", part.link)]
            yield from _link_problems(part.link, part.inertia, [(inverse(part.pose) @ s.pose, s) for s in shapes])


def _link_problems(link: str, numbers: Array, shapes: Sequence[tuple[Array, Shape]]) -> Iterator[InertiaProblem]:
    """Yield the faults of the inertia of one link.

    numbers (10,): inertial parameters of the link in its own frame. shapes: its collision shapes with their poses
    (4, 4) in that frame.
    """
    yield from ten.body_faults(link, numbers, ROUNDING)
    if numbers[9] == 0 or not shapes:
        return
    com, (low, high) = ten.to_central(numbers)[1], _box(shapes)
    distance = float(np.linalg.norm(np.maximum(np.maximum(low - com, com - high), 0.0)))
    if distance > MARGIN:
        yield InertiaProblem(link, "centre-of-mass",
                             f"the centre of mass of link '{link}' at {_point(com)} m is {distance:.4g} m outside the "
                             f"box {_point(low)} to {_point(high)} m around its collision shapes", distance)


def _box(shapes: Sequence[tuple[Array, Shape]]) -> tuple[Array, Array]:
    """Return the lowest and the highest corner (3,) of the smallest box along the link's axes around all shapes."""
    centres = np.array([pose[:3, 3] for pose, _ in shapes])
    halves = np.array([_half_extent(pose[:3, :3], shape) for pose, shape in shapes])
    return np.min(centres - halves, axis=0), np.max(centres + halves, axis=0)


def _half_extent(turn: Array, shape: Shape) -> Array:
    """Return the half extent (3,) of a shape along each axis of the link; turn (3, 3): rotation of the shape's axes."""
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

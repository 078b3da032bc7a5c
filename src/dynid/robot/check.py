"""Tests of the physical consistency of the inertias in a robot description, link by link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
STEEL_DENSITY = 7850.0  # kg/m^3
# Multiples of the robot's reach above which a radius of gyration or the distance of a centre of mass is absurd. Links
# are smaller than the robot; the largest of 30 robot files reach 0.5, and wrong units are factors of at least 30.
_ABSURD_REACHES = 3.0
_PLACEHOLDER_SHARE = 1e-3  # share of the robot's mass below which a link is a placeholder, such as that of a frame
# Share of the cube of the reach that a link of steel may fill: a cylinder as long and as thick as the reach.
_STEEL_SHARE = np.pi / 4.0
# Ratio of length to thickness of a steel bar as long as the reach, which is heavier than any usual link: the heaviest
# of 30 robot files has a quarter of its mass.
LINK_SLENDERNESS = 6.0
_UNKNOWN_REACH = 10.0  # m: largest usual reach, for robots whose file shows no size, such as a single joint
_LONGEST_REACH = 100.0  # m: longer robots have lengths in mm
_SOLID = (10.0, 3e4)  # kg/m^3: densities of the ellipsoid with the inertia of a link, from hollow to solid metal
_FLAT = 0.01  # share of the reach: smallest usual radius of gyration of a link
_INERTIA_UNITS = {"kg mm^2": 1e-6, "g mm^2": 1e-9, "kg cm^2": 1e-4, "g cm^2": 1e-7, "g m^2": 1e-3}
_LENGTH_UNITS = {"mm": 1e-3, "cm": 1e-2}


def inertia_problems(robot: Robot) -> tuple[InertiaProblem, ...]:
    """Return all faults of the inertias of a robot in the order of its links; links on dependent joints are last.

    A link that a fixed joint merges into another link is tested separately. A link without inertia is a fault only if
    no other link of its body has an inertia.
    """
    followers = robot.followers
    dependent = () if followers is None else (followers.tree.bodies[i] for i in followers.bodies)
    bodies = (*robot.bodies, *dependent)
    return (*(problem for body in bodies for problem in _body_problems(body)), *_absurd_sizes(robot, bodies))


def possible_inertias(robot: Robot, inertias: ArrayLike, *, unchecked: bool = False,
                      add_note: Callable[[str], object] = lambda note: None) -> Array:
    """Return the ten inertial parameters of every body (dof, 10), checked before they are written to a robot file.

    Args:
        robot: robot with these bodies.
        inertias: ten inertial parameters of every body (dof, 10), or flat.
        unchecked: also accept bodies that are not physically consistent.
        add_note: receives a note on each link that is far heavier than usual links of a robot of this size.

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
        absurd = next((p for p in wrong if p.kind == "size"), None)
        if absurd is not None:
            raise NotPossibleError(f"the inertias do not fit the size of the robot: {absurd.message}",
                                   "correct the robot file and identify again", "absurd-inertias")
        if wrong:
            raise NotPossibleError("the inertias are not physically consistent, so a simulator may become unstable: "
                                   f"{wrong[0].message}; use a physically consistent method, such as --method pc-wls",
                                   code="not-consistent")
    for name, row in zip(robot.body_names, numbers, strict=True):
        if row[9] == 0 and np.any(row[6:9] != 0):
            raise RobotError(f"link '{name}' has first moments but no mass, which a robot file cannot express",
                             code="no-mass")
    reach = robot_reach(robot)
    bar = STEEL_DENSITY * np.pi / 4.0 * (reach / LINK_SLENDERNESS) ** 2 * reach
    for name, mass in zip(robot.body_names, numbers[:, 9], strict=True):
        if 0.0 < bar < mass:
            add_note(f"link '{name}' weighs {mass:.4g} kg, more than a solid steel bar as long as the robot's reach "
                     f"({reach:.3g} m) and a sixth as thick ({bar:.3g} kg): the data probably do not determine it, so "
                     "only the torques of the complete robot are meaningful")
    return numbers


def _body_problems(body: Body) -> Iterator[InertiaProblem]:
    """Yield the faults of the inertia of one body, link by link."""
    if body.virtual:
        return
    if body.inertia is None:
        yield InertiaProblem(body.name, "missing", f"link '{body.name}' has no inertia", 0.0)
        return
    for part in _parts(body):
        if part.inertia is not None and (np.any(part.inertia != 0) or not np.any(body.inertia != 0)):
            shapes = [shape for shape in body.shapes if shape.link in ("", part.link)]
            yield from _link_problems(part.link, part.inertia, [(inverse(part.pose) @ s.pose, s) for s in shapes])


def _parts(body: Body) -> tuple[Part, ...]:
    """Return the links of a body."""
    return body.parts or (Part(body.name, np.eye(4), body.inertia),)


def robot_reach(robot: Robot) -> float:
    """Return the distance from the first joint to the end of the longest chain, m, with the last body as long as the
    longest of the others; prismatic joints count with their range, dependent joints like all others."""
    robot = robot if robot.followers is None else robot.followers.tree
    far = np.zeros(robot.dof)
    length = np.zeros(robot.dof)
    for i, joint in enumerate(robot.joints):
        own = float(np.linalg.norm(joint.before[:3, 3]) if joint.parent >= 0 else 0.0)
        own += float(np.linalg.norm(joint.after[:3, 3]))
        width = joint.upper - joint.lower
        length[i] = own + (width if joint.prismatic and np.isfinite(width) else 0.0)
        far[i] = length[i] + (far[joint.parent] if joint.parent >= 0 else 0.0)
    return float(far.max() + length.max())


def absurd_inertias(robot: Robot) -> tuple[InertiaProblem, ...]:
    """Return the faults for which no inertia of a robot file is used: negative masses, and sizes that do not fit the
    robot, which are mostly wrong units."""
    return tuple(one for one in inertia_problems(robot)
                 if one.kind == "size" or (one.kind == "mass" and one.violation > 0))


def _absurd_sizes(robot: Robot, bodies: Sequence[Body]) -> Iterator[InertiaProblem]:
    """Yield links whose mass, radius of gyration or centre of mass is impossible for the reach of the robot, with the
    unit that explains it. A robot whose file shows no size, such as a single joint, is assumed to have a large one."""
    reach = robot_reach(robot)
    if not np.isfinite(reach):
        return
    size = f"robot reaches {reach:.3g} m"
    if reach <= 0:
        reach = _UNKNOWN_REACH
        size = f"file shows no size and robots rarely reach {reach:.3g} m"
    if reach > _LONGEST_REACH:
        far = max(robot.joints, key=lambda joint: float(np.linalg.norm(joint.before[:3, 3])))
        yield InertiaProblem(far.name, "size", f"the robot reaches {reach:.4g} m, of which joint '{far.name}' is "
                             f"{float(np.linalg.norm(far.before[:3, 3])):.4g} m from the joint before it: the lengths "
                             "of the file are probably in mm", reach)
    links = {part.link: ten.to_central(part.inertia) for body in bodies if not body.virtual and body.inertia is not None
             for part in _parts(body) if part.inertia is not None and part.inertia[9] > 0}
    whole = sum(float(mass) for mass, _, _ in links.values())
    heaviest = STEEL_DENSITY * _STEEL_SHARE * reach ** 3
    for link, (mass, com, central) in links.items():
        if mass > heaviest:
            unit = ": it is probably in g" if 1e-3 * mass < heaviest else ""
            yield InertiaProblem(link, "size", f"the mass of link '{link}', {mass:.4g} kg, is more than that of a "
                                 f"solid steel cylinder as long and as thick as the reach, while the {size}{unit}",
                                 float(mass))
        own = mass if mass > _PLACEHOLDER_SHARE * whole else whole
        moments = np.linalg.eigvalsh(central)
        if (radius := float(np.sqrt(max(moments[-1], 0.0) / own))) > _ABSURD_REACHES * reach:
            yield InertiaProblem(link, "size", f"the inertia of link '{link}', {moments[-1]:.4g} kg m^2 for "
                                 f"{mass:.4g} kg, is that of a body with a radius of gyration of {radius:.4g} m, while "
                                 f"the {size}{_inertia_unit(float(mass), central, reach)}", radius)
        distance = float(np.linalg.norm(com))
        if own == mass and distance > _ABSURD_REACHES * reach:
            unit = next((f": it is probably in {name}" for name, factor in _LENGTH_UNITS.items()
                         if factor * distance < reach), "")
            yield InertiaProblem(link, "size", f"the centre of mass of link '{link}' is {distance:.4g} m from its "
                                 f"frame, while the {size}{unit}", distance)


def _inertia_unit(mass: float, central: Array, reach: float) -> str:
    """Return a remark with the units in which an inertia (3, 3) is plausible, the usual ones first; empty if there are
    none. The ellipsoid of the same inertia then has the density of a link, or without a volume its size."""
    spread = np.linalg.eigvalsh(0.5 * np.trace(central) * np.eye(3) - central) / mass
    volume = 4.0 / 3.0 * np.pi * 5.0 ** 1.5 * float(np.sqrt(np.prod(np.maximum(spread, 0.0))))
    radius = float(np.sqrt(np.linalg.eigvalsh(central)[-1] / mass))
    low, high = _SOLID
    units = [name for name, factor in _INERTIA_UNITS.items() if _FLAT * reach < radius * factor ** 0.5 < reach
             and (volume == 0.0 or low < mass / (volume * factor ** 1.5) < high)]
    return f": it is probably in {' or '.join(units)}" if units else ""


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

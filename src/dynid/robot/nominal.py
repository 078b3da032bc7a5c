"""Nominal mass distribution of every link: that of the robot file where it is believable, otherwise from geometry.

A regularised estimate is near a nominal robot where the data leave a choice. The inertias of a file serve if they are
physically consistent and fit the size of the robot. All other links get a cloud of mass from their geometry: from their
collision shapes, or else along the lines from their own joint to the joints and frames that they carry. The masses of
such clouds are proportional to their lengths. The sum of all masses is then unknown and estimated from the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.robot import inertia as ten
from dynid.robot.check import robot_reach
from dynid.robot.robot import Body, Robot, Shape

Source = Literal["file", "shapes", "joints"]
RADIUS_SHARE = 0.05  # radius of a link without shapes, as a share of the reach: slender, like most arms
# Largest half-axis of the homogeneous ellipsoid with the inertia of a believable link, and largest distance of its
# centre of mass from the cloud of its geometry, as shares of the reach: links are shorter than the robot.
MAX_ELLIPSOID_SHARE, MAX_CENTRE_SHARE = 0.5, 0.35
# kg/m^2.5: total mass over reach^2.5 of usual arms, from desktop arms (5) to industrial robots (100). It is only the
# start of the search for the total mass.
TYPICAL_MASS = 15.0
_UNKNOWN_REACH = 1.0  # m: of a robot whose file shows no dimension, such as a single slide
_CONSISTENT = -1e-6  # smallest eigenvalue relative to the largest: the numbers of a file are rounded


@dataclass(frozen=True, eq=False)
class NominalBodies:
    """Nominal mass distributions of the bodies of a robot.

    Attributes:
        matrices: pseudo-inertia (4, 4) of each body by name, in the body's frame.
        sources: origin of each of them: "file", "shapes" or "joints".
        reasons: why the inertia of the file is not used, by name of the body.
        has_mass: whether the total mass is that of the file. Otherwise it is typical of the reach, and unknown.
        reach: length of the robot, m.
    """

    matrices: Mapping[str, Array]
    sources: Mapping[str, Source]
    reasons: Mapping[str, str]
    has_mass: bool
    reach: float


def nominal_bodies(robot: Robot, inertias: Mapping[str, Array] | None = None) -> NominalBodies:
    """Return the nominal mass distributions of all bodies of a robot, dependent bodies included.

    Args:
        robot: the robot.
        inertias: inertial parameters (10,) by name of the body, instead of those of the robot's file.
    """
    bodies, lines = _bodies(robot), _lines(robot)
    reach = robot_reach(robot) or _UNKNOWN_REACH
    radius = RADIUS_SHARE * reach
    lengths = [float(np.linalg.norm(end - start)) for some in lines.values() for start, end in some]
    usual = float(np.mean(lengths)) if lengths else reach
    clouds, sources = dict[str, Array](), dict[str, Source]()
    for name, body in bodies.items():
        sources[name] = "shapes" if body.shapes else "joints"
        clouds[name] = _cloud_of_shapes(body.shapes, radius) if body.shapes else _cloud_of_lines(
            lines[name], usual, radius)
    given = {name: body.inertia for name, body in bodies.items()} if inertias is None else inertias
    matrices, reasons = dict[str, Array](), dict[str, str]()
    for name, cloud in clouds.items():
        reason = _unbelievable(given.get(name), cloud, reach)
        if reason:
            reasons[name] = reason
        else:
            matrices[name], sources[name] = ten.pseudo_inertia(np.asarray(given[name])), "file"
    # Mass per length: of the links whose inertia is believable, or typical of the reach.
    density = (sum(matrix[3, 3] for matrix in matrices.values()) / sum(clouds[name][3, 3] for name in matrices)
               if matrices else TYPICAL_MASS * reach ** 2.5 / max(sum(c[3, 3] for c in clouds.values()), 1e-12))
    return NominalBodies({name: matrices.get(name, density * cloud) for name, cloud in clouds.items()}, sources,
                         reasons, bool(matrices), reach)


def _bodies(robot: Robot) -> dict[str, Body]:
    """Return the bodies of a robot with mass by name, dependent ones last."""
    followers = robot.followers
    dependent = () if followers is None else tuple(followers.tree.bodies[i] for i in followers.bodies)
    return {body.name: body for body in (*robot.bodies, *dependent) if not body.virtual}


def _lines(robot: Robot) -> dict[str, list[tuple[Array, Array]]]:
    """Return the lines of each body by name: pairs of points (3,) in its frame, from its own joint to each joint that
    it carries, or without such joints to its farthest frame; none if nothing shows its extent."""
    tree = robot if robot.followers is None else robot.followers.tree
    found: dict[str, list[tuple[Array, Array]]] = {}
    for j, (body, joint) in enumerate(zip(tree.bodies, tree.joints, strict=True)):
        own = -joint.after[:3, :3].T @ joint.after[:3, 3]
        ends = [other.before[:3, 3] for other in tree.joints if other.parent == j]
        if not ends:
            frames = [frame.pose[:3, 3] for frame in tree.frames if frame.body == j]
            ends = [max(frames, key=lambda end: float(np.linalg.norm(end - own)))] if frames else []
        found[body.name] = [(own, end) for end in ends if np.linalg.norm(end - own) > 1e-9]
        if not found[body.name] and np.linalg.norm(own) > 1e-9:  # standard DH: the frame is at the end of the link
            found[body.name] = [(own, np.zeros(3))]
    return found


def _cloud_of_lines(lines: Sequence[tuple[Array, Array]], usual: float, radius: float) -> Array:
    """Return the pseudo-inertia (4, 4) of rods along lines, with a mass of one per metre, thickened by a radius (m).

    Without a line the cloud is a ball about the joint, whose radius is half of the usual length of a link, m.
    """
    if not lines:
        return _pseudo(np.zeros(3), np.eye(3) * max(0.5 * usual, radius) ** 2 / 5.0, usual + 2.0 * radius)
    total = np.zeros((4, 4))
    for start, end in lines:
        along = end - start
        spread = np.outer(along, along) / 12.0 + 0.5 * radius ** 2 * np.eye(3)
        total += _pseudo(0.5 * (start + end), spread, float(np.linalg.norm(along)) + 2.0 * radius)
    return total


def _cloud_of_shapes(shapes: Sequence[Shape], radius: float) -> Array:
    """Return the pseudo-inertia (4, 4) of solid shapes; their mass is the length of the whole, m."""
    parts = list(_solids(shapes))
    total = sum((_pseudo(centre, spread, volume) for centre, spread, volume in parts), np.zeros((4, 4)))
    total /= total[3, 3]
    centre = total[:3, 3]
    spread = total[:3, :3] - np.outer(centre, centre)
    spread += 1e-2 * radius ** 2 * np.eye(3)  # a flat shape is a thin one
    length = float(np.sqrt(12.0 * np.linalg.eigvalsh(spread)[-1]))
    return _pseudo(centre, spread, length + 2.0 * radius)


def _solids(shapes: Sequence[Shape]) -> Iterator[tuple[Array, Array, float]]:
    """Yield the centre (3,), the covariance (3, 3) and the volume of each shape, in the body's frame."""
    for shape in shapes:
        if shape.kind == "box":
            x, y, z = shape.size
            squares, volume = np.array([x, y, z]) ** 2 / 12.0, x * y * z
        elif shape.kind == "sphere":
            squares, volume = np.full(3, shape.size[0] ** 2 / 5.0), 4.0 / 3.0 * np.pi * shape.size[0] ** 3
        else:
            r, length = shape.size[0], shape.size[1] + (4.0 / 3.0 * shape.size[0] if shape.kind == "capsule" else 0.0)
            squares, volume = np.array([r * r / 4.0, r * r / 4.0, length ** 2 / 12.0]), np.pi * r * r * length
        turn = shape.pose[:3, :3]
        yield shape.pose[:3, 3], (turn * squares) @ turn.T, max(volume, 1e-12)


def _pseudo(centre: Array, spread: Array, mass: float) -> Array:
    """Return the pseudo-inertia (4, 4) of a mass with a centre (3,) and a covariance (3, 3)."""
    found = np.empty((4, 4))
    found[:3, :3] = mass * (spread + np.outer(centre, centre))
    found[:3, 3] = found[3, :3] = mass * centre
    found[3, 3] = mass
    return found


def _unbelievable(numbers: Array | None, cloud: Array, reach: float) -> str:
    """Return why the inertial parameters (10,) of a link are not believable; empty if they are.

    Args:
        numbers: the parameters; None if there are none.
        cloud: pseudo-inertia (4, 4) of the link's geometry.
        reach: length of the robot, m.
    """
    if numbers is None or not np.isfinite(numbers).all():
        return "the file gives no inertia"
    mass = float(numbers[9])
    if mass <= 0.0:
        return f"its mass is {mass:.4g} kg"
    centre = numbers[6:9] / mass
    spread = ten.pseudo_inertia(numbers)[:3, :3] / mass - np.outer(centre, centre)
    low, *_, high = np.linalg.eigvalsh(spread)
    if high <= 0.0 or low < _CONSISTENT * high:
        return "its inertia is not physically consistent"
    half_axis = float(np.sqrt(5.0 * high))
    if half_axis > MAX_ELLIPSOID_SHARE * reach:
        return f"the ellipsoid of its inertia has a half-axis of {half_axis:.3g} m"
    away = centre - cloud[:3, 3] / cloud[3, 3]
    own = cloud[:3, :3] / cloud[3, 3] - np.outer(cloud[:3, 3], cloud[:3, 3]) / cloud[3, 3] ** 2
    if np.linalg.norm(away) > MAX_CENTRE_SHARE * reach + np.sqrt(3.0 * np.trace(own)):
        return f"its centre of mass is {np.linalg.norm(away):.3g} m from its geometry"
    return ""

"""Geometry of a robot as plain arrays: joint frames, links as lines, inertias as ellipsoids.

All coordinates are in the base frame, in metres. This module does not depend on how these shapes are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics import forward_kinematics
from dynid.order_statistics import median
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten

_POINTS_AROUND_ELLIPSOID, _POINTS_ALONG_ELLIPSOID = 16, 9  # points of an ellipsoid
# largest distance of a body's centre and largest half axis, in sizes of the robot
_MAX_CENTRE_DISTANCE, _MAX_HALF_AXIS, _MIN_HALF_AXIS = 1.5, 0.8, 1e-3


def bent_posture(q: Array) -> Array:
    """Return the posture of q (samples, dof) that is farthest from the median (dof,), relative to the joint ranges.

    An arm with flexed joints shows its links better than one that hangs straight.
    """
    wide = np.ptp(q, axis=0)
    away = (q - median(q, axis=0)) / np.where(wide > 0, wide, 1.0)
    return q[int(np.argmax(np.sum(away ** 2, axis=1)))]


def configurations(robot: Robot, q: Array, base_pose: Array | None) -> Array:
    """Return configurations to draw for positions q (samples, dof).

    Configurations of a robot with a free base are (samples, 7 + n), with the logged pose of the base (samples, 7).
    Where the position is not known, the base is above the origin, as high as the lowest point of the robot is below it
    in the first sample.
    """
    if not robot.has_free_base:
        return q
    joints = q[:, robot.free_coordinates:]
    level = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(q), 1))
    pose = level if base_pose is None else base_pose.copy()
    if base_pose is None or not np.isfinite(pose[:, :3]).all():
        pose[:, :3] = 0.0
        lines = link_lines(robot, forward_kinematics(robot, np.hstack([pose[:1], joints[:1]]))[0])
        pose[:, 2] = -np.nanmin(lines[:, 2])
    return np.hstack([pose, joints])


def whole_tree(robot: Robot, poses: Array) -> tuple[Robot, Array, Ints]:
    """Return the robot with dependent joints in its tree, the poses (bodies, 4, 4) in the order of this tree, and the
    tree's index of each body of `poses`, where dependent bodies are last."""
    followers = robot.followers
    if followers is None or len(poses) != followers.tree.dof:
        return robot, poses, np.arange(robot.dof)
    places, ordered = np.array([*followers.free, *followers.bodies]), np.empty_like(poses)
    ordered[places] = poses
    return followers.tree, ordered, places


def joint_frames(robot: Robot, poses: Array) -> Array:
    """Return the joint frames (dof, 4, 4) for poses of the bodies (bodies, 4, 4).

    The frame of a prismatic joint is at its zero position; the frame of its body has moved along the axis.
    """
    tree, poses, places = whole_tree(robot, poses)
    frames = np.array([(np.eye(4) if joint.parent == BASE else poses[joint.parent]) @ joint.before
                       for joint in tree.joints])
    return frames[places[:robot.dof]]


def link_lines(robot: Robot, poses: Array) -> Array:
    """Return points (points, 3) of lines along the links for poses of the bodies (bodies, 4, 4), with a row of nan
    after each line.

    Lines connect each body's frame with the joints it carries, each joint with its own body's frame, and in closed
    loops the points of the closure. The last body of a chain has a line to its farthest named frame, which represents
    the tool.
    """
    tree, poses, places = whole_tree(robot, poses)
    gap = np.full(3, np.nan)
    path: list[Array] = []
    for i, joint in enumerate(tree.joints):
        if i < tree.free_coordinates:  # a free base has no link to the origin of the world
            continue
        parent = np.eye(4) if joint.parent == BASE else poses[joint.parent]
        path += [parent[:3, 3], (parent @ joint.before)[:3, 3], poses[i][:3, 3], gap]
    loops = None if robot.followers is None or tree is robot else robot.followers.loops
    for closure in () if loops is None else loops.closures:
        for end in (closure.first, closure.second):
            parent = np.eye(4) if end.body == BASE else poses[end.body]
            path += [parent[:3, 3], (parent @ end.pose)[:3, 3], gap]
    for i in range(len(places)):
        ends = [frame.pose[:3, 3] for frame in robot.frames if frame.body == i]
        if ends and not np.any(tree.parents == places[i]):
            far = max(ends, key=lambda p: float(np.linalg.norm(p)))
            path += [poses[places[i]][:3, 3], (poses[places[i]] @ np.append(far, 1.0))[:3], gap]
    return np.array(path)


def last_point(lines: Array) -> Array:
    """Return the last point (3,) of lines (points, 3)."""
    return np.asarray(lines[np.isfinite(lines[:, 0])][-1])


def axis_lines(frames: Array, half: float) -> Array:
    """Return points (3 dof, 3) of a line along every joint axis, `half` to each side, separated by rows of nan."""
    centre, along = frames[:, :3, 3], half * frames[:, :3, 2]
    return np.stack([centre - along, centre + along, np.full_like(centre, np.nan)], axis=1).reshape(-1, 3)


def arrow(at: Array, along: Array) -> Array:
    """Return points (points, 3) of an arrow from a point (3,) along a vector (3,), with a head of two lines."""
    tip, length = at + along, float(np.linalg.norm(along))
    if length == 0.0:
        return np.stack([at, at])
    side = np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))])
    side *= 0.1 * length / np.linalg.norm(side)
    back = tip - 0.2 * along
    return np.stack([at, tip, back + side, tip, back - side])


def robot_size(frames: Array, poses: Array) -> float:
    """Return the longest side of the box around base, joints and bodies, m, at least 0.2."""
    points = np.concatenate([np.zeros((1, 3)), frames[:, :3, 3], poses[:, :3, 3]])
    return max(float(np.ptp(points, axis=0).max()), 0.2)


def bounds(parts: Sequence[Array]) -> tuple[Array, Array]:
    """Return the lowest and highest corner (3,), (3,) of all points in arrays (points, 3); rows of nan are ignored."""
    points = np.concatenate(parts)
    return np.nanmin(points, axis=0), np.nanmax(points, axis=0)


def plane_square(normal: Array, offset: float, middle: Array, half: float) -> Array:
    """Return the corners (4, 3) of a square in the plane normal @ x = offset, near a point `middle` (3,)."""
    centre = middle - (normal @ middle - offset) * normal
    first = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    return np.array([centre + half * (a * first + b * second) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


# -- bodies -----------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class EllipsoidMesh:
    """Centre (3,) and surface of an ellipsoid: points (points, 3) and triangles (faces, 3) of point indices."""

    centre: Array
    points: Array
    triangles: Ints


def ellipsoid(body: Array, pose: Array, size: float) -> EllipsoidMesh | None:
    """Return the homogeneous solid ellipsoid of a body's ten inertial parameters at its pose (4, 4), or None without
    mass.

    Its size is limited relative to the robot, so that one outlier does not shrink the rest of the picture.
    """
    centre = mass_centre(body)
    if centre is None:
        return None
    centre = centre * min(1.0, _MAX_CENTRE_DISTANCE * size / max(float(np.linalg.norm(centre)), 1e-300))
    at = (pose @ np.append(centre, 1.0))[:3]
    axes, turn = half_axes(body)
    axes = np.clip(axes, _MIN_HALF_AXIS * size, _MAX_HALF_AXIS * size)
    sphere, triangles = unit_sphere()
    return EllipsoidMesh(at, sphere @ (pose[:3, :3] @ turn * axes).T + at, triangles)


def mass_centre(body: Array) -> Array | None:
    """Return the centre of mass (3,), m, of ten inertial parameters in the body's frame; None without mass."""
    return body[6:9] / body[9] if abs(body[9]) > 1e-12 else None


def central_inertia(body: Array, centre: Array) -> Array:
    """Return the inertia about the centre of mass (3, 3), kg m^2."""
    c = ten.skew(centre)
    return ten.symmetric(body[:6]) - body[9] * (c @ c.T)


def half_axes(body: Array) -> tuple[Array, Array]:
    """Return the half axes (3,), m, of the homogeneous ellipsoid with a body's mass and inertia, and their directions
    (3, 3) in columns.

    The second moment along a half axis a of a homogeneous ellipsoid of mass m is m a^2 / 5. For a negative moment,
    which is unphysical, the absolute value is drawn.
    """
    centre = mass_centre(body)
    if centre is None:
        return np.zeros(3), np.eye(3)
    central = central_inertia(body, centre)
    second, turn = np.linalg.eigh(0.5 * np.trace(central) * np.eye(3) - central)
    return np.sqrt(5.0 * np.abs(second / body[9])), turn


@lru_cache(maxsize=1)
def unit_sphere() -> tuple[Array, Ints]:
    """Return points (points, 3) of a unit sphere and its triangles (faces, 3)."""
    around = np.linspace(0.0, 2.0 * np.pi, _POINTS_AROUND_ELLIPSOID, endpoint=False)
    a, b = np.meshgrid(around, np.linspace(0.0, np.pi, _POINTS_ALONG_ELLIPSOID))
    points = np.stack([np.sin(b) * np.cos(a), np.sin(b) * np.sin(a), np.cos(b)], axis=-1).reshape(-1, 3)
    here = np.arange((_POINTS_ALONG_ELLIPSOID - 1) * _POINTS_AROUND_ELLIPSOID).reshape(-1, _POINTS_AROUND_ELLIPSOID)
    right = np.roll(here, -1, axis=1)
    below, right_below = here + _POINTS_AROUND_ELLIPSOID, right + _POINTS_AROUND_ELLIPSOID
    faces = np.stack([here, below, right, right, below, right_below], axis=-1)
    return points, faces.reshape(-1, 3)

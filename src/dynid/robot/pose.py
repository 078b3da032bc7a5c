"""Poses: 4 x 4 matrices [[R, p], [0, 1]] that place one frame in another. Angles in rad, lengths in m."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError


def rotation_x(angle: float) -> Array:
    """Return the pose (4, 4) of a rotation about x by an angle, rad."""
    c, s = _cos_sin(angle)
    return np.array([[1.0, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def rotation_y(angle: float) -> Array:
    """Return the pose (4, 4) of a rotation about y by an angle, rad."""
    c, s = _cos_sin(angle)
    return np.array([[c, 0, s, 0], [0, 1.0, 0, 0], [-s, 0, c, 0], [0, 0, 0, 1]])


def rotation_z(angle: float) -> Array:
    """Return the pose (4, 4) of a rotation about z by an angle, rad."""
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1]])


def translation(x: float, y: float, z: float) -> Array:
    """Return the pose (4, 4) of a pure translation."""
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def from_xyz_rpy(xyz: Sequence[float] | Array, rpy: Sequence[float] | Array) -> Array:
    """Return the pose of a URDF origin: translated by xyz, then rotated by Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = rpy
    pose = rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll)
    pose[:3, 3] = xyz
    return pose


def to_rpy(pose: Array) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of a pose, as in `from_xyz_rpy`; yaw is zero if pitch is a right angle."""
    r = pose[:3, :3]
    level = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], level)
    if level < 1e-12:
        return math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])


def turn_z_to(axis: Array) -> Array:
    """Return the pose whose z axis is the unit vector `axis`, by the smallest rotation from z; identity for z
    itself."""
    if axis[2] < 0:  # over the half turn about x, to stay away from the singular point at -z
        half = rotation_x(math.pi)
        return half @ turn_z_to(half[:3, :3].T @ axis)
    x, y, c = axis
    pose = np.eye(4)
    cross = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])  # of z x axis
    pose[:3, :3] += cross + cross @ cross / (1.0 + c)
    return pose


def quaternion(rotation: Array) -> Array:
    """Return the unit quaternion (4,), w x y z with w >= 0, of a rotation (3, 3)."""
    r = rotation
    squares = np.array([1 + r[0, 0] + r[1, 1] + r[2, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2],
                        1 - r[0, 0] + r[1, 1] - r[2, 2], 1 - r[0, 0] - r[1, 1] + r[2, 2]])
    k = int(np.argmax(squares))
    rows = np.array([[squares[0], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
                     [r[2, 1] - r[1, 2], squares[1], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
                     [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], squares[2], r[1, 2] + r[2, 1]],
                     [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], squares[3]]])
    found = rows[k] / np.linalg.norm(rows[k])
    return np.asarray(found if found[0] >= 0 else -found)


def inverse(pose: Array) -> Array:
    """Return the inverse (4, 4) of a rigid pose."""
    back = np.eye(4)
    back[:3, :3] = pose[:3, :3].T
    back[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return back


def checked(pose: ArrayLike, what: str) -> Array:
    """Return a rigid pose as an array; raise a RobotError that begins with `what` for anything else."""
    try:
        matrix = np.array(pose, dtype=float)
    except (TypeError, ValueError):
        raise RobotError(f"{what} must be a 4 x 4 matrix of numbers", code="bad-pose") from None
    if matrix.shape != (4, 4):
        raise RobotError(f"{what} must be a 4 x 4 matrix, got shape {matrix.shape}", code="bad-pose")
    rotation = matrix[:3, :3]
    rigid = (np.all(np.isfinite(matrix)) and np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)
             and np.linalg.det(rotation) > 0 and np.allclose(matrix[3], [0, 0, 0, 1], atol=1e-12))
    if not rigid:
        raise RobotError(f"{what} is not a rigid pose: it needs a rotation matrix, a position and the last row 0 0 0 1",
                         code="bad-pose")
    return matrix


def _cos_sin(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact at multiples of 90 degrees, so that right angles are preserved."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s

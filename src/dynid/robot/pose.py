"""Poses as 4 x 4 matrices, rotation vectors, and exact values of printed angles. Angles in rad, lengths in m.

A right angle printed as 1.5708 has an error of 3.7e-6 rad. The error is irrelevant for the robot, but parameters that
torques cannot distinguish then seem distinguishable: the condition number is 1e8, and base parameters have coefficients
of 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError

ANGLE_GRID_STEP = math.pi / 12  # rad: grid that contains all multiples of 30 and 45 degrees
_BELOW_MACHINES = 1e-5  # rad: 0.01 mm per metre, below the accuracy of manufacturing
MAX_ANGLE_ROUNDING = 2e-3  # rad: pi printed as 3.14 is off by 1.6e-3
_FEWEST_DIGITS = 3  # printed digits from which an angle may be recognised
NOISE = 1e-12  # rad: a smaller difference is a rounding error of a double


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
    """Return roll, pitch and yaw of a pose, rad, as in `from_xyz_rpy`; yaw is zero if pitch is a right angle."""
    r = pose[:3, :3]
    level = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], level)
    if level < 1e-12:
        return math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])


def turn_z_to(axis: Array) -> Array:
    """Return the pose (4, 4) whose z axis is the unit vector `axis` (3,): the smallest rotation from z, or, for an axis
    below the xy plane, from -z after a half turn about x."""
    if axis[2] < 0:  # away from the singular point of the smallest rotation at -z
        half = rotation_x(math.pi)
        return half @ turn_z_to(half[:3, :3].T @ axis)
    x, y, c = axis
    pose = np.eye(4)
    cross = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])  # of z x axis
    pose[:3, :3] += cross + cross @ cross / (1.0 + c)
    return pose


def quaternion(rotation: Array) -> Array:
    """Return the unit quaternion (4,) of a rotation matrix (3, 3), in the order w, x, y, z with w >= 0."""
    wxyz = quaternions(rotation[None])[0, [3, 0, 1, 2]]
    return np.asarray(wxyz if wxyz[0] >= 0 else -wxyz)


def quaternions(rotation: ArrayLike) -> Array:
    """Return continuous unit quaternions x, y, z, w (samples, 4) of rotation matrices (samples, 3, 3)."""
    R = np.asarray(rotation, dtype=float)
    xx, yy, zz = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    squares = np.stack([1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz, 1 + xx + yy + zz], axis=1)
    # Rows of 4 q q'; the row with the largest diagonal entry is normalised, which avoids division by a small number.
    outer = np.empty((len(R), 4, 4))
    outer[:, range(4), range(4)] = squares
    for i, j, value in ((0, 1, R[:, 0, 1] + R[:, 1, 0]), (0, 2, R[:, 0, 2] + R[:, 2, 0]),
                        (1, 2, R[:, 1, 2] + R[:, 2, 1]), (0, 3, R[:, 2, 1] - R[:, 1, 2]),
                        (1, 3, R[:, 0, 2] - R[:, 2, 0]), (2, 3, R[:, 1, 0] - R[:, 0, 1])):
        outer[:, i, j] = outer[:, j, i] = value
    found = outer[np.arange(len(R)), squares.argmax(axis=1)]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    if len(found) > 1:
        flips = np.cumprod(np.where(np.einsum("si,si->s", found[1:], found[:-1]) < 0.0, -1.0, 1.0))
        found[1:] *= flips[:, None]
    return found


def rotation_matrices(quaternions: Array) -> Array:
    """Return the rotation matrices (samples, 3, 3) of unit quaternions (samples, 4) in the order x, y, z, w."""
    x, y, z, w = quaternions.T
    return np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
                     2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                     2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=1).reshape(-1, 3, 3)


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
    """Return cosine and sine of an angle, rad, exact at multiples of 90 degrees, so that right angles are preserved."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s


def exact_angle(angle: float) -> float:
    """Return the multiple of pi/4 or pi/6, rad, that a printed angle represents, or the angle itself.

    The angle must have at least three digits, which are those of the multiple, rounded or truncated, or it must differ
    from the multiple by less than 1e-5 rad.
    """
    if not math.isfinite(angle):
        return angle  # the robot is refused later, with the name of the row
    count = round(angle / ANGLE_GRID_STEP)
    if count % 2 and count % 3:
        return angle
    exact = count * math.pi / 12
    return exact if _prints(angle, exact) else angle


def exact_axis(axis: Sequence[float]) -> Array:
    """Return the unit vector (3,) that a printed joint axis represents. It is along an axis of its frame, or at a
    multiple of pi/4 or pi/6 between two axes if the digits match. Otherwise it is the normalised printed axis."""
    unit = np.asarray(axis, dtype=float) / np.abs(axis).max()  # so that no square overflows
    unit /= np.linalg.norm(unit)
    unit = np.where(np.abs(unit) < _BELOW_MACHINES, 0.0, unit)
    unit /= np.linalg.norm(unit)
    used = np.flatnonzero(unit)
    if len(used) == 2:
        turn = ANGLE_GRID_STEP * round(math.atan2(unit[used[1]], unit[used[0]]) / ANGLE_GRID_STEP)
        exact = np.array([math.cos(turn), math.sin(turn)])
        if exact_angle(turn) == turn and all(_prints(axis[int(i)], x) for i, x in zip(used, exact, strict=True)):
            unit[used] = exact
    return unit


def rounded_warnings(rounded: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Return one warning about all corrected angles, or an empty tuple. rounded: corrections by joint, rad."""
    off = [correction for corrections in rounded.values() for correction in corrections if correction > NOISE]
    names = [name for name, angles in rounded.items() if max(angles, default=0.0) > NOISE]
    if not off:
        return ()
    verb, multiples = ("are", "exact multiples") if len(off) > 1 else ("is", "an exact multiple")
    return (f"{len(off)} rounded angle{'s' if len(off) > 1 else ''} of joint{'s' if len(names) > 1 else ''} "
            f"{', '.join(names)}, off by up to {max(off):.2g} rad, {verb} taken as {multiples} of pi/4 or pi/6",)


def _prints(printed: float, exact: float) -> bool:
    """Return whether a printed number has the digits of an exact number, with the last digit rounded or truncated."""
    off = abs(printed - exact)
    if off <= _BELOW_MACHINES:
        return True
    _, digits, exponent = Decimal(repr(float(printed))).normalize().as_tuple()
    return len(digits) >= _FEWEST_DIGITS and off <= min(10.0 ** int(exponent), MAX_ANGLE_ROUNDING)


def quaternions_of_vectors(vector: Array) -> Array:
    """Return unit quaternions x y z w (samples, 4) of rotation vectors (samples, 3), rad."""
    angle = np.linalg.norm(vector, axis=1, keepdims=True)
    return np.hstack([0.5 * np.sinc(angle / (2 * np.pi)) * vector, np.cos(0.5 * angle)])


def body_rates(vector: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return angular velocity and acceleration in body axes (samples, 3), rad/s and rad/s^2, from a rotation vector
    (samples, 3), rad, and its first and second derivative by time.

    With r the vector and p = |r|, w = r' - a r x r' + b r x (r x r'), a = (1 - cos p) / p^2, b = (p - sin p) / p^3.
    """
    square = np.einsum("si,si->s", vector, vector)[:, None]
    size = np.sqrt(np.maximum(square, 1e-12))
    a, b = (1 - np.cos(size)) / size ** 2, (size - np.sin(size)) / size ** 3
    # Derivatives of a and b by the square of the angle, times its rate.
    slope_a = (size * np.sin(size) - 2 * (1 - np.cos(size))) / (2 * size ** 4)
    slope_b = ((1 - np.cos(size)) * size - 3 * (size - np.sin(size))) / (2 * size ** 5)
    small = square < 1e-3  # series where the differences above lose digits
    slope_a = np.where(small, -1 / 24 + square / 360, slope_a)
    slope_b = np.where(small, -1 / 120 + square / 2520, slope_b)
    rate = 2 * np.einsum("si,si->s", vector, first)[:, None]
    turn = np.cross(vector, first)
    twice = np.cross(vector, turn)
    velocity = first - a * turn + b * twice
    turn_rate = np.cross(vector, second)
    twice_rate = np.cross(first, turn) + np.cross(vector, turn_rate)
    return velocity, second - a * turn_rate - slope_a * rate * turn + b * twice_rate + slope_b * rate * twice


def rotation_errors(target: Array, here: Array) -> Array:
    """Return rotation vectors (samples, 3), to first order, that rotate `here` to `target`, both (samples, 3, 3)."""
    off = target @ here.transpose(0, 2, 1)
    return 0.5 * np.stack([off[:, i, j] - off[:, j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=1)


def right_jacobians(vector: Array) -> Array:
    """Return the matrices (samples, 3, 3) that convert the time derivative of a rotation vector (samples, 3) to the
    angular velocity in body axes."""
    zero = np.zeros_like(vector)
    columns = [body_rates(vector, np.broadcast_to(unit, vector.shape), zero)[0] for unit in np.eye(3)]
    return np.stack(columns, axis=2)

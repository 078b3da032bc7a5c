"""Conversion of the motion of a free base from the world to the axes of the root link.

A configuration of a robot with a free base and n joints has 7 + n numbers: position of the root link in the world, m,
its orientation as a unit quaternion (x, y, z, w), and the joint positions. Its velocity v has 6 + n numbers: linear and
angular velocity of the root in the root's own axes, then the joint velocities; its acceleration a is the derivative of
v. These are the conventions of Pinocchio.

Forces depend on the configuration only through the joint positions and the direction of gravity. The kernels therefore
use the motion in the axes of the root, (samples, 6 + n) each. q has zeros for the base, and dq is v. ddq has the proper
acceleration of the root's origin, dv/dt + w x v - R'g, as an accelerometer there measures it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot
from dynid.robot.pose import quaternions as quaternions
from dynid.robot.pose import rotation_matrices

_NORM_TOLERANCE = 1e-3  # largest difference of a quaternion's norm from one; rounded logs reach 1e-4


class RootPose(NamedTuple):
    """Pose of the root link in the world: position (samples, 3), m, and rotation (samples, 3, 3)."""

    position: Array
    rotation: Array


def is_configuration(robot: Robot, q: Array) -> bool:
    """Return whether q (samples, k) are configurations of a free base, and not positions in the axes of the root."""
    return robot.has_free_base and q.ndim == 2 and q.shape[1] == robot.dof + 1


def quaternion_norms(given: Array, named: str = "the quaternion of the base") -> Array:
    """Return the norms (samples,) of quaternions (samples, 4); raise an error if a norm differs from 1."""
    norms = np.sqrt(np.einsum("si,si->s", given, given))
    if not np.all(np.abs(norms - 1.0) <= _NORM_TOLERANCE):
        row = int(np.argmax(np.abs(norms - 1.0)))
        raise ModelError(f"{named} has the norm {norms[row]:.4g} in sample {row}; a unit quaternion has the norm 1",
                         "give x, y, z, w", code="not-unit-quaternion")
    return norms


def rotations(quaternions: ArrayLike, named: str = "the quaternion of the base") -> Array:
    """Return rotation matrices (samples, 3, 3) of unit quaternions (samples, 4) in the order x, y, z, w."""
    given = np.asarray(quaternions, dtype=float)
    return rotation_matrices(given / quaternion_norms(given, named)[:, None])


def root_pose(robot: Robot, q: Array) -> RootPose:
    """Return the pose of the root link for configurations (samples, 7 + n)."""
    return RootPose(q[:, :3], rotations(q[:, 3:7], _quaternion_name(robot)))


def _quaternion_name(robot: Robot) -> str:
    return f"the quaternion of the base of robot '{robot.name}'"


def check_quaternions(robot: Robot, q: Array) -> None:
    """Raise an error if configurations (samples, 7 + n) contain a quaternion whose norm is not 1."""
    quaternion_norms(q[:, 3:7], _quaternion_name(robot))


def root_motion(robot: Robot, q: Array, v: Array | None = None, a: Array | None = None, *,
                weightless: bool = False) -> tuple[Array, Array, Array]:
    """Return q, dq, ddq (samples, 6 + n) in the axes of the root, the form that kernels, models and samples use.

    Args:
        robot: a robot with a free base.
        q: configurations (samples, 7 + n).
        v: velocities (samples, 6 + n). Default: zero.
        a: accelerations (samples, 6 + n). Default: zero.
        weightless: whether to omit gravity.
    """
    pose, shape = root_pose(robot, q), (len(q), robot.dof)
    positions = np.concatenate([np.zeros((len(q), SIX)), q[:, 7:]], axis=1)
    dq = np.zeros(shape) if v is None else np.array(v, dtype=float)
    ddq = np.zeros(shape) if a is None else np.array(a, dtype=float)
    ddq[:, :3] += np.cross(dq[:, 3:SIX], dq[:, :3])
    if not weightless:
        ddq[:, :3] -= weight(robot, pose)
    return positions, dq, ddq


def in_root_axes(robot: Robot, q: ArrayLike, *rates: ArrayLike) -> list[Array]:
    """Return q and the given velocities and accelerations as contiguous arrays, for one sample or several. If q are
    configurations of a free base, all signals are converted to the axes of the root."""
    given = [np.ascontiguousarray(signal, dtype=float) for signal in (q, *rates)]
    if not robot.has_free_base or given[0].shape[-1:] != (robot.dof + 1,):
        return given
    moved = root_motion(robot, *(np.atleast_2d(signal) for signal in given))[:len(given)]
    return [signal[0] if given[0].ndim == 1 else signal for signal in moved]


def weight(robot: Robot, pose: RootPose) -> Array:
    """Return the gravitational acceleration in the axes of the root (samples, 3), m/s^2."""
    return np.asarray(np.einsum("sji,j->si", pose.rotation, robot.gravity))


def world_acceleration(robot: Robot, pose: RootPose, dq: Array, ddq: Array) -> Array:
    """Return the acceleration (samples, 6 + n) as the derivative of dq, from proper accelerations ddq in root axes."""
    found = ddq.copy()
    found[:, :3] += weight(robot, pose) - np.cross(dq[:, 3:SIX], dq[:, :3])
    return found


def mass_moments(inertia: Array) -> tuple[Array, Array]:
    """Return the mass (samples,), kg, and the first moment (samples, 3), kg m, of a robot with a free base, in the axes
    of its root link.

    inertia: joint-space inertia matrices (samples, 6 + n, 6 + n). The block of the base contains mass and first moment.
    """
    return inertia[:, 0, 0], np.stack([inertia[:, 1, 5], inertia[:, 2, 3], inertia[:, 0, 4]], axis=1)

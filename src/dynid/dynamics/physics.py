"""The physics of a robot over batches of samples.

q, dq, ddq, tau are (samples, joints) arrays, or (joints,) for one sample, and results then lose the sample
axis too. `inertias` are the ten numbers of every body (joints, 10) or flat; None takes the robot's own.
What parameterises stands before the motion: robot, then inertias or frame, then q, dq, ddq or tau.
Units are SI; torques stand for forces on sliding joints. All take `threads` (default: all cores).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics import kernels
from dynid.dynamics.tiles import TILE
from dynid.dynamics.tree import Tree, tree_of
from dynid.errors import ModelError, NotPossibleError
from dynid.robot import BASE, Robot
from dynid.threads import over_samples


def check_motion(robot: Robot, **signals: ArrayLike) -> tuple[bool, list[Array]]:
    """The door: is it a single sample, and every signal as a contiguous (samples, joints) array of finite numbers."""
    arrays: list[Array] = []
    single = False
    for name, signal in signals.items():
        try:
            array = np.ascontiguousarray(signal, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{name} must be an array of numbers") from None
        single = array.ndim <= 1
        array = array.reshape(1, -1) if single else array
        if array.ndim != 2 or array.shape[1] != robot.dof:
            raise ModelError(f"{name} must be (samples, {robot.dof}) for robot '{robot.name}' with {robot.dof} joints, "
                             f"got shape {np.shape(signal)}")
        # The sum of finite numbers is finite but for overflow, and costs a quarter of looking at each.
        if not math.isfinite(array.sum()) and not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise ModelError(f"{name} of joint '{robot.joint_names[column]}' is not finite in sample {row}")
        if arrays and array.shape != arrays[0].shape:
            first = next(iter(signals))
            raise ModelError(f"{name} has {len(array)} samples but {first} has {len(arrays[0])}")
        arrays.append(array)
    return single, arrays


def _inertias(robot: Robot, inertias: ArrayLike | None) -> Array:
    """Ten numbers a body (joints, 10), given or the robot's own."""
    given = np.ascontiguousarray(robot.inertias if inertias is None else inertias, dtype=float)
    if given.size != 10 * robot.dof:
        raise ModelError(f"robot '{robot.name}' has {robot.dof} bodies of ten numbers, got {given.size} numbers")
    if not np.isfinite(given).all():
        raise ModelError(f"the inertial numbers of robot '{robot.name}' are not all finite")
    return given.reshape(robot.dof, 10)


def regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, out: Array | None = None,
              threads: int | None = None) -> Array:
    """Y with tau = Y theta, theta the ten numbers of every body in turn: (samples, joints, 10 joints).

    out: where to write it, to spare the allocation in a loop.
    """
    if out is None and threads is None:  # controllers call it so, and would wait longer for the checks than for it
        one = _regressor_of_one(robot, q, dq, ddq)
        if one is not None:
            return one
    single, (q, dq, ddq) = check_motion(robot, q=q, dq=dq, ddq=ddq)
    shape = (len(q), robot.dof, 10 * robot.dof)
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or not out.flags.c_contiguous or out.dtype != float:
        raise ModelError(f"out must be a contiguous float array of shape {shape}, got {out.shape}")
    tree, y = tree_of(robot), out
    over_samples(lambda a, b: kernels.regressor_kernel(*tree, q, dq, ddq, y, a, b), len(q), threads)
    return out[0] if single else out


def _regressor_of_one(robot: Robot, *motion: ArrayLike) -> Array | None:
    """The regressor of a single sample; None for a batch, and where `check_motion` has something to say."""
    n = len(robot.joints)
    try:
        q, dq, ddq = [np.ascontiguousarray(signal, dtype=float) for signal in motion]
    except (TypeError, ValueError):
        return None
    if not q.shape == dq.shape == ddq.shape == (n,) or n >= TILE:
        return None
    return regressor_of_checked(robot, q, dq, ddq)


def regressor_of_checked(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array | None:
    """The regressor of a single sample of contiguous numbers (joints,); None where one is not finite, and where the
    robot has more joints than a tile has lanes."""
    n = len(robot.joints)
    y = np.empty((n, 10 * n))
    return y if n < TILE and kernels.regressor_of_one(*tree_of(robot), q, dq, ddq, y) else None


def regressor_columns(robot: Robot, q: Array, dq: Array, ddq: Array, place: Ints,
                      out: Array) -> None:
    """Chosen entries of the regressor, each contiguous over the samples, for one thread of a fold.

    place (joints, 10 joints) int64: the row of out (rows, samples) each entry goes to, -1 for nowhere.
    """
    kernels.regressor_columns_kernel(*tree_of(robot), q, dq, ddq, place, out, 0, len(q))


def inverse_dynamics(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                     threads: int | None = None) -> Array:
    """Torques (samples, joints) that give the accelerations ddq."""
    single, (q, dq, ddq) = check_motion(robot, q=q, dq=dq, ddq=ddq)
    return _torques(tree_of(robot), _inertias(robot, inertias), q, dq, ddq, single, threads)


def gravity(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Torques (samples, joints) that hold the robot still."""
    single, (q,) = check_motion(robot, q=q)
    still = np.zeros_like(q)
    return _torques(tree_of(robot), _inertias(robot, inertias), q, still, still, single, threads)


def coriolis(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, *,
             threads: int | None = None) -> Array:
    """Torques (samples, joints) of centrifugal and Coriolis effects, C(q, dq) dq."""
    single, (q, dq) = check_motion(robot, q=q, dq=dq)
    weightless = tree_of(robot)._replace(gravity=np.zeros(3))
    return _torques(weightless, _inertias(robot, inertias), q, dq, np.zeros_like(q), single, threads)


def _torques(tree: Tree, ten: Array, q: Array, dq: Array, ddq: Array, single: bool, threads: int | None) -> Array:
    out = np.empty(q.shape)
    over_samples(lambda a, b: kernels.inverse_dynamics_kernel(*tree, ten, q, dq, ddq, out, a, b), len(q), threads)
    return out[0] if single else out


def link_wrenches(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                  threads: int | None = None) -> Array:
    """Force and moment that pass through each joint (samples, joints, 6), N and N m (Simionato, eq. 2.32).

    About the joint's origin, in the joint's frame after its motion: the third moment of a turning joint, or the
    third force of a sliding one, is its torque.
    """
    single, (q, dq, ddq) = check_motion(robot, q=q, dq=dq, ddq=ddq)
    tree, ten, out = tree_of(robot), _inertias(robot, inertias), np.empty((len(q), robot.dof, 6))
    after = np.array([joint.after[:3].ravel() for joint in robot.joints])
    over_samples(lambda a, b: kernels.link_wrenches_kernel(*tree, ten, after, q, dq, ddq, out, a, b), len(q), threads)
    return out[0] if single else out


def inertia_matrix(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *,
                   threads: int | None = None) -> Array:
    """Joint-space inertia matrix (samples, joints, joints)."""
    single, (q,) = check_motion(robot, q=q)
    tree, ten, out = tree_of(robot), _inertias(robot, inertias), np.zeros((len(q), robot.dof, robot.dof))
    over_samples(lambda a, b: kernels.inertia_matrix_kernel(*tree, ten, q, out, a, b), len(q), threads)
    return out[0] if single else out


def forward_dynamics(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, *,
                     rotor: ArrayLike | None = None, threads: int | None = None) -> Array:
    """Accelerations (samples, joints) under the torques tau.

    rotor: inertia to add to the inertia matrix, one a joint or a matrix (joints, joints).
    """
    single, (q, dq, tau) = check_motion(robot, q=q, dq=dq, tau=tau)
    n = robot.dof
    extra = np.zeros((n, n)) if rotor is None else np.asarray(rotor, dtype=float)
    extra = np.ascontiguousarray(np.diag(extra) if extra.ndim == 1 else extra)
    if extra.shape != (n, n) or not np.isfinite(extra).all():
        raise ModelError(f"rotor inertia must be {n} finite numbers or a {n} x {n} matrix, got shape {extra.shape}")
    tree, ten, out = tree_of(robot), _inertias(robot, inertias), np.empty(q.shape)
    bad = over_samples(lambda a, b: kernels.forward_dynamics_kernel(*tree, ten, extra, q, dq, tau, out, a, b),
                       len(q), threads)
    for sample in bad:
        if isinstance(sample, int) and sample >= 0:
            raise NotPossibleError(f"the inertia matrix of robot '{robot.name}' is singular in sample {sample}, "
                                   "so its motion cannot be computed; give its rotors' inertia, or other inertias")
    return out[0] if single else out


def _energies(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, which: int,
              threads: int | None) -> Array:
    single, (q, dq) = check_motion(robot, q=q, dq=dq)
    tree, ten, out = tree_of(robot), _inertias(robot, inertias), np.empty((len(q), 2))
    over_samples(lambda a, b: kernels.energy_kernel(*tree, ten, q, dq, out, a, b), len(q), threads)
    return out[0, which] if single else out[:, which]


def kinetic_energy(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, *,
                   threads: int | None = None) -> Array:
    """Kinetic energy (samples,), J."""
    return _energies(robot, inertias, q, dq, 0, threads)


def potential_energy(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *,
                     threads: int | None = None) -> Array:
    """Potential energy (samples,), J; zero where the whole mass is at the base origin."""
    return _energies(robot, inertias, q, np.zeros(np.shape(q)), 1, threads)


def _kinematics(robot: Robot, q: Array, threads: int | None) -> tuple[Array, Array]:
    poses, axes = np.empty((len(q), robot.dof, 3, 4)), np.empty((len(q), robot.dof, 6))
    tree = tree_of(robot)
    over_samples(lambda a, b: kernels.kinematics_kernel(*tree, q, poses, axes, a, b), len(q), threads)
    return poses, axes


def forward_kinematics(robot: Robot, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Pose of every body in the base (samples, joints, 4, 4)."""
    single, (q,) = check_motion(robot, q=q)
    rows, _ = _kinematics(robot, q, threads)
    poses = np.zeros((*rows.shape[:2], 4, 4))
    poses[:, :, :3], poses[:, :, 3, 3] = rows, 1.0
    return poses[0] if single else poses


def frame_pose(robot: Robot, frame: str, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Pose of a named frame in the base (samples, 4, 4)."""
    poses, place = forward_kinematics(robot, q, threads=threads), robot.frame(frame)
    if place.body == BASE:
        return np.broadcast_to(place.pose, (*poses.shape[:-3], 4, 4)).copy()
    return np.asarray(poses[..., place.body, :, :] @ place.pose)


def jacobian(robot: Robot, frame: str, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Velocity of a frame's origin (3 rows) and its turn (3 rows) for joint velocities: (samples, 6, joints).

    In axes of the base.
    """
    single, (q,) = check_motion(robot, q=q)
    place = robot.frame(frame)
    poses, axes = _kinematics(robot, q, threads)
    out = np.zeros((len(q), 6, robot.dof))
    if place.body != BASE:
        rows = poses[:, place.body]
        origin = rows[:, :, :3] @ place.pose[:3, 3] + rows[:, :, 3]
        carried = np.flatnonzero(robot.supports[:, place.body])
        turn, velocity = axes[:, carried, :3], axes[:, carried, 3:]
        out[:, :3, carried] = np.swapaxes(velocity + np.cross(turn, origin[:, None]), 1, 2)
        out[:, 3:, carried] = np.swapaxes(turn, 1, 2)
    return out[0] if single else out

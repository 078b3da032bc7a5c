"""Dynamics of a robot over batches of samples.

q, dq, ddq, tau are (samples, joints) arrays, or (joints,) for one sample, and results then have no sample axis either.
`inertias` are the ten inertial parameters of every body (joints, 10) or flat; None means those of the robot file.
Parameters of dependent bodies, on mimic joints and in closed loops, are at the end; without them, dependent bodies have
no mass. Order of arguments: robot, then inertias or frame, then q, dq, ddq or tau. Units are SI; torques of prismatic
joints are forces. `threads` is the number of threads (default: all cores).

For a robot with a free base and n joints, q is a configuration (samples, 7 + n). dq, ddq and tau have 6 + n columns,
the base first (`dynid.dynamics.root_frame`). The six torques of the base are the wrench on the root, force first, in
its axes. Quantities in the base frame are then in the world frame. A motion that is already in the axes of the root
(samples, 6 + n) is used unchanged, and results are in these axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics import kernels
from dynid.dynamics.following import closed_columns, closure_wrenches, tree_motion
from dynid.dynamics.kinematics import Wrench, wrench_torques
from dynid.dynamics.motion_case import (
    MotionCase,
    body_inertias,
    check_motion,
    need_configuration,
    regressor_motion,
    rooted,
)
from dynid.dynamics.root_frame import in_root_axes, is_configuration, mass_moments, root_motion, world_acceleration
from dynid.dynamics.tiles import AXIS, BODY, COLUMNS, TEN, TILE
from dynid.dynamics.tree import robot_tree
from dynid.errors import ModelError, NotPossibleError
from dynid.robot import Joint, Robot
from dynid.threads import over_samples


def regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, out: Array | None = None,
              threads: int | None = None) -> Array:
    """Return the regressor Y (samples, joints, 10 joints) with tau = Y theta, for the ten inertial parameters of each
    body. out: output array, to avoid an allocation."""
    if out is None and threads is None:  # fast path for controllers: the checks take longer than the regressor
        one = _regressor_of_one(robot, q, dq, ddq)
        if one is not None:
            return one
    single, tree, motion = regressor_motion(robot, q, dq, ddq)
    samples = len(motion[0])
    shape = (samples, robot.dof, 10 * robot.dof)
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or not out.flags.c_contiguous or out.dtype != float:
        raise ModelError(f"out must be a contiguous float array of shape {shape}, got {out.shape}",
                         code="wrong-output-array")
    if robot.followers is not None and robot.followers.carrying:
        columns = np.zeros((robot.dof * 10 * robot.dof, samples))
        at, speed, acceleration = in_root_axes(robot, *motion)
        regressor_columns(robot, at, speed, acceleration, np.arange(len(columns)).reshape(shape[1:]), columns)
        out[:] = columns.reshape(*shape[1:], samples).transpose(2, 0, 1)
        return out[0] if single else out
    y = out.reshape(-1)
    over_samples(lambda a, b: kernels.regressor_kernel(*tree, *motion, *_working_memory(robot), False, y, 0, a, b),
                 samples, threads)
    return out[0] if single else out


def regressor_blocks(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                     samples: int = TILE) -> Iterator[Array]:
    """Yield the regressor of a long motion in blocks of samples, in memory that stays in the processor's cache.

    The whole regressor of a walking robot takes up to 100 kB per sample. Each block is overwritten by the next block,
    so the caller must copy a block to keep it. Only entries that are not zero in every posture are computed.

    Args:
        robot: the robot, with a fixed or a free base.
        q: positions or configurations (samples, joints), as for `regressor`.
        dq: velocities (samples, joints).
        ddq: accelerations (samples, joints).
        samples: samples per block; the last block may have fewer.

    Yields:
        Read-only arrays (samples of the block, joints, 10 joints).
    """
    if samples < 1:
        raise ModelError(f"the number of samples per block must be at least 1, got {samples}", code="block-samples")
    _, tree, motion = regressor_motion(robot, q, dq, ddq)
    count, carrying = len(motion[0]), robot.followers is not None and robot.followers.carrying
    room = np.zeros((min(samples, count), robot.dof, 10 * robot.dof))
    shown = room.view()
    shown.flags.writeable = False
    fill = kernels.regressor_kernel.bound(*tree, *motion, *_working_memory(robot), True, room.reshape(-1))
    for start in range(0, count, samples):
        stop = min(start + samples, count)
        if carrying:
            regressor(robot, *(signal[start:stop] for signal in motion), out=room[:stop - start], threads=1)
        else:
            fill(start, start, stop)
        yield shown[:stop - start]


def _working_memory(robot: Robot) -> tuple[Array, Array, Array]:
    """Return the work arrays of `regressor_kernel` for body motion, joint axes, and the columns of a body."""
    return _aligned(robot.dof, BODY * TILE), _aligned(robot.dof, AXIS * TILE), _aligned(1, (COLUMNS + TEN) * TILE)[0]


def _aligned(rows: int, columns: int) -> Array:
    """Return an array (rows, columns) that is aligned to cache lines, for fast SIMD access."""
    line = 64 // 8  # numbers per cache line
    room = np.empty(rows * columns + line)
    first = -(room.ctypes.data // 8) % line
    return room[first:first + rows * columns].reshape(rows, columns)


def _regressor_of_one(robot: Robot, *motion: ArrayLike) -> Array | None:
    """Return the regressor of a single sample; None for a batch, or for inputs that `check_motion` does not accept."""
    n = len(robot.joints)
    try:
        q, dq, ddq = [np.ascontiguousarray(signal, dtype=float) for signal in motion]
    except (TypeError, ValueError):
        return None
    if not q.shape == dq.shape == ddq.shape == (n,) or n >= TILE:
        return None
    return regressor_of_checked(robot, q, dq, ddq)


def regressor_of_checked(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array | None:
    """Return the regressor of a single sample, contiguous arrays (joints,). None is returned if a number is not finite,
    if the robot has a free base or too many joints, or if dependent joints carry independent joints."""
    n = len(robot.joints)
    if robot.has_free_base or (robot.followers is not None and robot.followers.carrying):
        return None
    y = np.empty((n, 10 * n))
    return y if n < TILE and kernels.regressor_of_one(*robot_tree(robot), q, dq, ddq, y) else None


def regressor_columns(robot: Robot, q: Array, dq: Array, ddq: Array, place: Ints,
                      out: Array) -> None:
    """Compute selected entries of the regressor in one thread; each entry is contiguous over the samples. place
    (joints, 10 joints) int64: row of each entry in out (rows, samples), -1 for an entry that is not computed."""
    followers = robot.followers
    if followers is None or not followers.carrying:
        kernels.regressor_columns_kernel(*robot_tree(robot), q, dq, ddq, place, out, 0, len(q))
        return
    whole = np.full((robot.dof, 10 * followers.tree.dof), -1, dtype=np.int64)
    for i, body in enumerate(followers.free):
        whole[:, 10 * body:10 * body + 10] = place[:, 10 * i:10 * i + 10]
    closed_columns(robot, tree_motion(robot, q, dq, ddq, threads=1), whole, out)


def inverse_dynamics(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                     wrenches: Sequence[Wrench] = (), t: ArrayLike | None = None,
                     threads: int | None = None) -> Array:
    """Return the torques (samples, joints) for accelerations ddq under external wrenches (Ardiani, eq. 1.11). t
    (samples,): times, s, for wrenches that depend on time."""
    at = np.atleast_2d(np.asarray(q, dtype=float)) if wrenches else None
    single, (q, dq, ddq), _ = rooted(robot, q=q, dq=dq, ddq=ddq)
    found = _torques(robot, body_inertias(robot, inertias), (q, dq, ddq), False, threads)
    if at is not None:
        found = found - wrench_torques(robot, wrenches, at, t, threads=threads)
    return found[0] if single else found


def gravity(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the gravity torques (samples, joints)."""
    single, (q,) = check_motion(robot, q=q)
    need_configuration(robot, q)
    still = np.zeros((len(q), robot.dof))
    motion = root_motion(robot, q) if robot.has_free_base else (q, still, still)
    return _torques(robot, body_inertias(robot, inertias), motion, single, threads)


def coriolis(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, *,
             threads: int | None = None) -> Array:
    """Return the torques (samples, joints) of centrifugal and Coriolis effects, C(q, dq) dq."""
    single, (q, dq) = check_motion(robot, q=q, dq=dq)
    motion = (root_motion(robot, q, dq, weightless=True) if is_configuration(robot, q)
              else (q, dq, np.zeros_like(dq)))
    return _torques(robot, body_inertias(robot, inertias), motion, single, threads, weightless=True)


def _torques(robot: Robot, ten: Array, motion: tuple[Array, Array, Array], single: bool, threads: int | None,
             weightless: bool = False) -> Array:
    case = MotionCase(robot, ten, motion, threads)
    q, dq, ddq = case.motion
    tree = case.tree._replace(gravity=np.zeros(3)) if weightless else case.tree
    out = np.empty(q.shape)
    flat = out.reshape(-1)
    over_samples(lambda a, b: kernels.dynamics_kernel(*tree, case.ten, q, dq, ddq, kernels.TORQUES, flat, a, b),
                 len(q), threads)
    out = case.torques(out)
    return out[0] if single else out


def link_wrenches(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                  threads: int | None = None) -> Array:
    """Return the force and moment through each joint (samples, joints, 6), N and N m (Simionato, eq. 2.32).

    Moments are about the joint's origin, in the joint's frame after its motion. The z moment of a revolute joint, or
    the z force of a prismatic joint, is its torque. Dependent bodies are last. Redundant closures carry no force.
    """
    single, (q, dq, ddq), _ = rooted(robot, q=q, dq=dq, ddq=ddq)
    case = MotionCase(robot, body_inertias(robot, inertias), (q, dq, ddq), threads)
    tree, (q, dq, ddq) = case.tree, case.motion
    out, joints = np.empty((*q.shape, 6)), case.robot.joints
    after = np.array([joint.after[:3].ravel() for joint in joints])
    over_samples(lambda a, b: kernels.link_wrenches_kernel(*tree, case.ten, after, q, dq, ddq, out, a, b), len(q),
                 threads)
    if case.places is not None:
        out = (out - closure_wrenches(robot, q, _turning(joints, out)))[:, case.places]
    return out[0] if single else out


def _turning(joints: Sequence[Joint], wrenches: Array) -> Array:
    """Return the joint torques (samples, joints) from the wrenches (samples, joints, 6) through the joints."""
    return np.stack([wrenches[:, j, 2 if joint.prismatic else 5] for j, joint in enumerate(joints)], axis=1)


def inertia_matrix(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *,
                   threads: int | None = None) -> Array:
    """Return the joint-space inertia matrix (samples, joints, joints)."""
    single, (q,), _ = rooted(robot, q=q)
    case = MotionCase(robot, body_inertias(robot, inertias), (q,), threads)
    tree, (q,) = case.tree, case.motion
    out, still = np.empty((*q.shape, q.shape[1])), q[:0]
    flat = out.reshape(-1)
    over_samples(lambda a, b: kernels.dynamics_kernel(*tree, case.ten, q, still, still, kernels.INERTIA, flat, a, b),
                 len(q), threads)
    out = case.matrices(out)
    return out[0] if single else out


def forward_dynamics(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, *,
                     rotor: ArrayLike | None = None, wrenches: Sequence[Wrench] = (), t: ArrayLike | None = None,
                     threads: int | None = None) -> Array:
    """Return the accelerations (samples, joints) under the torques tau and external wrenches (Ardiani, eq. 1.12).

    rotor: inertia to add to the inertia matrix, one per joint or a matrix (joints, joints). t: see `inverse_dynamics`.
    """
    at = np.atleast_2d(np.asarray(q, dtype=float)) if wrenches else None
    single, (q, dq, tau), pose = rooted(robot, q=q, dq=dq, tau=tau)
    if at is not None:
        tau = tau + wrench_torques(robot, wrenches, at, t, threads=threads)
    n = robot.dof
    extra = np.zeros((n, n)) if rotor is None else np.asarray(rotor, dtype=float)
    extra = np.ascontiguousarray(np.diag(extra) if extra.ndim == 1 else extra)
    if extra.shape != (n, n) or not np.isfinite(extra).all():
        raise ModelError(f"rotor inertia must be {n} finite numbers or a {n} x {n} matrix, got shape {extra.shape}")
    ten, out = body_inertias(robot, inertias), np.empty(q.shape)
    if robot.followers is not None and (len(ten) > n or robot.followers.carrying):
        bias = _torques(robot, ten, (q, dq, np.zeros_like(q)), False, threads)
        out = solve_motion(inertia_matrix(robot, ten, q, threads=threads) + extra, tau - bias)
    else:
        tree = robot_tree(robot)
        bad = over_samples(lambda a, b: kernels.forward_dynamics_kernel(*tree, ten, extra, q, dq, tau, out, a, b),
                           len(q), threads)
        for sample in bad:
            if isinstance(sample, int) and sample >= 0:
                raise NotPossibleError(f"the inertia matrix of robot '{robot.name}' is singular in sample {sample}, so "
                                       "its motion cannot be computed; give rotor inertias, or other link inertias",
                                       code="inertia-singular")
    out = out if pose is None else world_acceleration(robot, pose, dq, out)
    return out[0] if single else out


def solve_motion(inertia: Array, torque: Array) -> Array:
    """Return the acceleration (..., dof) that solves inertia (..., dof, dof) times acceleration = torque (..., dof)."""
    try:
        return np.asarray(np.linalg.solve(inertia, torque[..., None])[..., 0], dtype=float)
    except np.linalg.LinAlgError:
        raise NotPossibleError("the inertia matrix is singular with these parameters, so the motion cannot "
                               "be computed; add rotor inertia or use physically consistent parameters") from None


def _energies(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, which: int,
              threads: int | None) -> Array:
    single, (q, dq), pose = rooted(robot, q=q, dq=dq)
    case, out = MotionCase(robot, body_inertias(robot, inertias), (q, dq), threads), np.empty((len(q), 2))
    tree, (q, dq) = case.tree, case.motion
    over_samples(lambda a, b: kernels.energy_kernel(*tree, case.ten, q, dq, out, a, b), len(q), threads)
    if pose is not None and which == 1:  # in the frame of the root, the potential energy of the root is constant
        mass, first = mass_moments(inertia_matrix(robot, inertias, q, threads=threads))
        place = mass[:, None] * pose.position + np.einsum("sij,sj->si", pose.rotation, first)
        out[:, 1] = -place @ robot.gravity
    return out[0, which] if single else out[:, which]


def kinetic_energy(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, *,
                   threads: int | None = None) -> Array:
    """Return the kinetic energy (samples,), J."""
    return _energies(robot, inertias, q, dq, 0, threads)


def potential_energy(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *,
                     threads: int | None = None) -> Array:
    """Return the potential energy (samples,), J; zero if the whole mass is at the base origin."""
    _, (at,) = check_motion(robot, q=q)
    need_configuration(robot, at)
    return _energies(robot, inertias, q, np.zeros((*np.shape(q)[:-1], robot.dof)), 1, threads)


def total_momentum(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, *,
                   threads: int | None = None) -> Array:
    """Return the momentum of a robot with a free base (samples, 6): linear, kg m/s, and angular about the centre of
    mass. Components are along the axes of the base. Without external forces the angular momentum is constant."""
    if not robot.has_free_base:
        raise ModelError(f"robot '{robot.name}' has a fixed base, so its total momentum is not defined",
                         code="fixed-base")
    single, (q, dq), pose = rooted(robot, q=q, dq=dq)
    inertia = inertia_matrix(robot, inertias, q, threads=threads)
    mass, first = mass_moments(inertia)
    found = np.einsum("sij,sj->si", inertia[:, :6], dq)
    found[:, 3:] -= np.cross(first / mass[:, None], found[:, :3])
    if pose is not None:
        found = (pose.rotation[:, None] @ found.reshape(-1, 2, 3, 1)).reshape(found.shape)
    return found[0] if single else found

"""Dynamics of a robot over batches of samples.

q, dq, ddq, tau are (samples, joints) arrays, or (joints,) for one sample, and results then have no sample axis.
`inertias` are the ten parameters of every body (joints, 10) or flat; None uses the robot's own. Dependent bodies, on
mimic joints and in closed loops, come last; without them only the robot's own bodies have mass. Arguments are in the
order robot, inertias or frame, then q, dq, ddq or tau. Units are SI; torques of prismatic joints are forces. All take
`threads` (default: all cores).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics import kernels
from dynid.dynamics.following import closed_columns, closure_wrenches, tree_motion
from dynid.dynamics.tiles import TILE
from dynid.dynamics.tree import Tree, tree_of
from dynid.dynamics.wrench import Wrench
from dynid.errors import ModelError, NotPossibleError
from dynid.robot import BASE, Joint, Robot
from dynid.threads import over_samples


def check_motion(robot: Robot, **signals: ArrayLike) -> tuple[bool, list[Array]]:
    """Validate inputs: return (is_single, contiguous arrays of shape (samples, joints) with finite numbers)."""
    arrays: list[Array] = []
    single = False
    for name, signal in signals.items():
        try:
            array = np.ascontiguousarray(signal, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{name} must be an array of numbers", code="not-numbers") from None
        single = array.ndim <= 1
        array = array.reshape(1, -1) if single else array
        if array.ndim != 2 or array.shape[1] != robot.dof:
            raise ModelError(f"{name} must be (samples, {robot.dof}) for robot '{robot.name}' with {robot.dof} joints, "
                             f"got shape {np.shape(signal)}", code="wrong-shape")
        # The sum of finite numbers is finite but for overflow, and costs a quarter of looking at each.
        if not math.isfinite(array.sum()) and not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise ModelError(f"{name} of joint '{robot.joint_names[column]}' is not finite in sample {row}",
                             code="not-finite")
        if arrays and array.shape != arrays[0].shape:
            first = next(iter(signals))
            raise ModelError(f"{name} has {len(array)} samples but {first} has {len(arrays[0])}", code="sample-count")
        arrays.append(array)
    return single, arrays


def _inertias(robot: Robot, inertias: ArrayLike | None) -> Array:
    """Return ten parameters per body (bodies, 10), given or the robot's own."""
    given = np.ascontiguousarray(_own_inertias(robot) if inertias is None else inertias, dtype=float)
    followers = robot.followers
    if given.size != 10 * robot.dof and (followers is None or given.size != 10 * followers.tree.dof):
        more = f" and {len(followers.bodies)} dependent bodies" if followers is not None else ""
        raise ModelError(f"robot '{robot.name}' has {robot.dof} bodies{more} of ten numbers, got {given.size} numbers",
                         code="wrong-inertia-count")
    if not np.isfinite(given).all():
        raise ModelError(f"the inertial numbers of robot '{robot.name}' are not all finite")
    return given.reshape(-1, 10)


def _own_inertias(robot: Robot) -> Array:
    """Return the inertias of all bodies, dependent bodies last."""
    followers = robot.followers
    if followers is None:
        return robot.inertias
    return np.vstack([robot.inertias, followers.tree.inertias[list(followers.bodies)]])


class _Case:
    """The tree and its motion: the robot itself, or the whole tree if dependent joints matter.

    bodies: number of bodies with parameters. `torques` and `matrices` convert results of the tree to the robot's
    joints.
    """

    def __init__(self, robot: Robot, bodies: int, motion: Sequence[Array], threads: int | None = None) -> None:
        followers = robot.followers
        self.rates: Array | None = None
        self.places: list[int] | None = None
        if followers is None or (bodies == robot.dof and not followers.carrying):
            self.robot, self.motion = robot, list(motion)
            return
        whole = tree_motion(robot, *motion, threads=threads)
        self.robot, self.motion, self.rates = followers.tree, list(whole[:len(motion)]), whole.rates
        self.places = [*followers.free, *followers.bodies][:bodies]

    @property
    def tree(self) -> Tree:
        return tree_of(self.robot)

    def numbers(self, ten: Array) -> Array:
        """Ten numbers of every body of the tree (joints, 10)."""
        if self.places is None:
            return ten
        whole = np.zeros((self.robot.dof, 10))
        whole[self.places] = ten
        return whole

    def torques(self, found: Array) -> Array:
        """Torques (samples, dof) of the robot's joints, of those of the tree."""
        return found if self.rates is None else np.einsum("sja,sj->sa", self.rates, found)

    def matrices(self, found: Array) -> Array:
        """Matrices (samples, dof, dof) of the robot's joints, of those of the tree."""
        if self.rates is None:
            return found
        return np.asarray(np.swapaxes(self.rates, 1, 2) @ found @ self.rates)


def regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, out: Array | None = None,
              threads: int | None = None) -> Array:
    """Return Y with tau = Y theta, theta the ten parameters of every body in turn: (samples, joints, 10 joints).

    out: output array, to avoid an allocation.
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
        raise ModelError(f"out must be a contiguous float array of shape {shape}, got {out.shape}",
                         code="wrong-output-array")
    if robot.followers is not None and robot.followers.carrying:
        columns = np.zeros((robot.dof * 10 * robot.dof, len(q)))
        regressor_columns(robot, q, dq, ddq, np.arange(len(columns)).reshape(shape[1:]), columns)
        out[:] = columns.reshape(*shape[1:], len(q)).transpose(2, 0, 1)
        return out[0] if single else out
    tree, y = tree_of(robot), out
    over_samples(lambda a, b: kernels.regressor_kernel(*tree, q, dq, ddq, y, a, b), len(q), threads)
    return out[0] if single else out


def _regressor_of_one(robot: Robot, *motion: ArrayLike) -> Array | None:
    """Return the regressor of a single sample; None for a batch, or if `check_motion` would refuse it."""
    n = len(robot.joints)
    try:
        q, dq, ddq = [np.ascontiguousarray(signal, dtype=float) for signal in motion]
    except (TypeError, ValueError):
        return None
    if not q.shape == dq.shape == ddq.shape == (n,) or n >= TILE:
        return None
    return regressor_of_checked(robot, q, dq, ddq)


def regressor_of_checked(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array | None:
    """Return the regressor of a single sample of contiguous numbers (joints,); None if one is not finite, if the
    robot has more joints than a tile has lanes, or if dependent joints carry its own."""
    n = len(robot.joints)
    if robot.followers is not None and robot.followers.carrying:
        return None
    y = np.empty((n, 10 * n))
    return y if n < TILE and kernels.regressor_of_one(*tree_of(robot), q, dq, ddq, y) else None


def regressor_columns(robot: Robot, q: Array, dq: Array, ddq: Array, place: Ints,
                      out: Array) -> None:
    """Write selected entries of the regressor, each contiguous over the samples, in one thread.

    place (joints, 10 joints) int64: the row of out (rows, samples) of each entry, -1 for none.
    """
    followers = robot.followers
    if followers is None or not followers.carrying:
        kernels.regressor_columns_kernel(*tree_of(robot), q, dq, ddq, place, out, 0, len(q))
        return
    whole = np.full((robot.dof, 10 * followers.tree.dof), -1, dtype=np.int64)
    for i, body in enumerate(followers.free):
        whole[:, 10 * body:10 * body + 10] = place[:, 10 * i:10 * i + 10]
    closed_columns(robot, tree_motion(robot, q, dq, ddq, threads=1), whole, out)


def inverse_dynamics(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                     wrenches: Sequence[Wrench] = (), t: ArrayLike | None = None,
                     threads: int | None = None) -> Array:
    """Torques (samples, joints) that give the accelerations ddq, while wrenches act from outside (Ardiani, eq. 1.11).

    t (samples,): times, s, for wrenches that depend on them.
    """
    single, (q, dq, ddq) = check_motion(robot, q=q, dq=dq, ddq=ddq)
    found = _torques(robot, _inertias(robot, inertias), (q, dq, ddq), False, threads)
    if wrenches:
        found = found - wrench_torques(robot, wrenches, q, t, threads=threads)
    return found[0] if single else found


def gravity(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the gravity torques (samples, joints)."""
    single, (q,) = check_motion(robot, q=q)
    still = np.zeros_like(q)
    return _torques(robot, _inertias(robot, inertias), (q, still, still), single, threads)


def coriolis(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, *,
             threads: int | None = None) -> Array:
    """Torques (samples, joints) of centrifugal and Coriolis effects, C(q, dq) dq."""
    single, (q, dq) = check_motion(robot, q=q, dq=dq)
    return _torques(robot, _inertias(robot, inertias), (q, dq, np.zeros_like(q)), single, threads, weightless=True)


def _torques(robot: Robot, ten: Array, motion: tuple[Array, Array, Array], single: bool, threads: int | None,
             weightless: bool = False) -> Array:
    case = _Case(robot, len(ten), motion, threads)
    tree, ten, (q, dq, ddq) = case.tree, case.numbers(ten), case.motion
    if weightless:
        tree = tree._replace(gravity=np.zeros(3))
    out = np.empty(q.shape)
    over_samples(lambda a, b: kernels.inverse_dynamics_kernel(*tree, ten, q, dq, ddq, out, a, b), len(q), threads)
    out = case.torques(out)
    return out[0] if single else out


def link_wrenches(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                  threads: int | None = None) -> Array:
    """Return the force and moment through each joint (samples, joints, 6), N and N m (Simionato, eq. 2.32).

    About the joint's origin, in the joint's frame after its motion: the third moment of a revolute joint, or the
    third force of a prismatic one, is its torque. Dependent bodies come last. Redundant closures carry no force.
    """
    single, (q, dq, ddq) = check_motion(robot, q=q, dq=dq, ddq=ddq)
    ten = _inertias(robot, inertias)
    case = _Case(robot, len(ten), (q, dq, ddq), threads)
    tree, ten, (q, dq, ddq) = case.tree, case.numbers(ten), case.motion
    out, joints = np.empty((*q.shape, 6)), case.robot.joints
    after = np.array([joint.after[:3].ravel() for joint in joints])
    over_samples(lambda a, b: kernels.link_wrenches_kernel(*tree, ten, after, q, dq, ddq, out, a, b), len(q), threads)
    if case.places is not None:
        out = (out - closure_wrenches(robot, q, _turning(joints, out)))[:, case.places]
    return out[0] if single else out


def _turning(joints: Sequence[Joint], wrenches: Array) -> Array:
    """Torques (samples, joints) of the wrenches (samples, joints, 6) through joints."""
    return np.stack([wrenches[:, j, 2 if joint.prismatic else 5] for j, joint in enumerate(joints)], axis=1)


def inertia_matrix(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, *,
                   threads: int | None = None) -> Array:
    """Joint-space inertia matrix (samples, joints, joints)."""
    single, (q,) = check_motion(robot, q=q)
    ten = _inertias(robot, inertias)
    case = _Case(robot, len(ten), (q,), threads)
    tree, ten, (q,) = case.tree, case.numbers(ten), case.motion
    out = np.zeros((*q.shape, q.shape[1]))
    over_samples(lambda a, b: kernels.inertia_matrix_kernel(*tree, ten, q, out, a, b), len(q), threads)
    out = case.matrices(out)
    return out[0] if single else out


def forward_dynamics(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, *,
                     rotor: ArrayLike | None = None, wrenches: Sequence[Wrench] = (), t: ArrayLike | None = None,
                     threads: int | None = None) -> Array:
    """Accelerations (samples, joints) under the torques tau and wrenches from outside (Ardiani, eq. 1.12).

    rotor: inertia to add to the inertia matrix, one per joint or a matrix (joints, joints). t: see `inverse_dynamics`.
    """
    single, (q, dq, tau) = check_motion(robot, q=q, dq=dq, tau=tau)
    if wrenches:
        tau = tau + wrench_torques(robot, wrenches, q, t, threads=threads)
    n = robot.dof
    extra = np.zeros((n, n)) if rotor is None else np.asarray(rotor, dtype=float)
    extra = np.ascontiguousarray(np.diag(extra) if extra.ndim == 1 else extra)
    if extra.shape != (n, n) or not np.isfinite(extra).all():
        raise ModelError(f"rotor inertia must be {n} finite numbers or a {n} x {n} matrix, got shape {extra.shape}")
    ten, out = _inertias(robot, inertias), np.empty(q.shape)
    if robot.followers is not None and (len(ten) > n or robot.followers.carrying):
        bias = _torques(robot, ten, (q, dq, np.zeros_like(q)), False, threads)
        out = _accelerations(robot, inertia_matrix(robot, ten, q, threads=threads) + extra, tau - bias)
        return out[0] if single else out
    tree = tree_of(robot)
    bad = over_samples(lambda a, b: kernels.forward_dynamics_kernel(*tree, ten, extra, q, dq, tau, out, a, b),
                       len(q), threads)
    for sample in bad:
        if isinstance(sample, int) and sample >= 0:
            raise NotPossibleError(f"the inertia matrix of robot '{robot.name}' is singular in sample {sample}, so "
                                   "its motion cannot be computed; give rotor inertias, or other link inertias",
                                   code="inertia-singular")
    return out[0] if single else out


def _accelerations(robot: Robot, inertia: Array, torque: Array) -> Array:
    """inertia (samples, dof, dof) times acceleration = torque (samples, dof), solved for the acceleration."""
    try:
        return np.asarray(np.linalg.solve(inertia, torque[..., None])[..., 0], dtype=float)
    except np.linalg.LinAlgError:
        raise NotPossibleError(f"the inertia matrix of robot '{robot.name}' is singular, so its motion "
                               "cannot be computed; give rotor inertias, or other link inertias") from None


def _energies(robot: Robot, inertias: ArrayLike | None, q: ArrayLike, dq: ArrayLike, which: int,
              threads: int | None) -> Array:
    single, (q, dq) = check_motion(robot, q=q, dq=dq)
    ten, out = _inertias(robot, inertias), np.empty((len(q), 2))
    case = _Case(robot, len(ten), (q, dq), threads)
    tree, ten, (q, dq) = case.tree, case.numbers(ten), case.motion
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
    """Poses (samples, joints, 3, 4) of the bodies and axes (samples, joints, 6) of the joints of a tree, base frame."""
    poses, axes = np.empty((len(q), robot.dof, 3, 4)), np.empty((len(q), robot.dof, 6))
    tree = tree_of(robot)
    over_samples(lambda a, b: kernels.kinematics_kernel(*tree, q, poses, axes, a, b), len(q), threads)
    return poses, axes


def forward_kinematics(robot: Robot, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the pose of every body in the base (samples, bodies, 4, 4), dependent bodies last."""
    single, (q,) = check_motion(robot, q=q)
    followers = robot.followers
    case = _Case(robot, robot.dof if followers is None else followers.tree.dof, (q,), threads)
    rows, _ = _kinematics(case.robot, case.motion[0], threads)
    poses = np.zeros((*rows.shape[:2], 4, 4))
    poses[:, :, :3], poses[:, :, 3, 3] = rows if case.places is None else rows[:, case.places], 1.0
    return poses[0] if single else poses


def frame_pose(robot: Robot, frame: str, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Pose of a named frame in the base (samples, 4, 4)."""
    poses, place = forward_kinematics(robot, q, threads=threads), robot.frame(frame)
    if place.body == BASE:
        return np.broadcast_to(place.pose, (*poses.shape[:-3], 4, 4)).copy()
    return np.asarray(poses[..., place.body, :, :] @ place.pose)


def jacobian(robot: Robot, frame: str, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the Jacobian of a frame in base axes (samples, 6, joints): velocity of its origin (3 rows) and angular
    velocity (3 rows)."""
    single, (q,) = check_motion(robot, q=q)
    place, followers = robot.frame(frame), robot.followers
    case = _Case(robot, robot.dof if followers is None else followers.tree.dof, (q,), threads)
    tree, body = case.robot, place.body if followers is None else followers.place(place.body)
    poses, axes = _kinematics(tree, case.motion[0], threads)
    out = np.zeros((len(q), 6, tree.dof))
    if body != BASE:
        rows = poses[:, body]
        origin = rows[:, :, :3] @ place.pose[:3, 3] + rows[:, :, 3]
        carried = np.flatnonzero(tree.supports[:, body])
        turn, velocity = axes[:, carried, :3], axes[:, carried, 3:]
        out[:, :3, carried] = np.swapaxes(velocity + np.cross(turn, origin[:, None]), 1, 2)
        out[:, 3:, carried] = np.swapaxes(turn, 1, 2)
    if case.rates is not None:
        out = out @ case.rates
    return out[0] if single else out


def wrench_torques(robot: Robot, wrenches: Sequence[Wrench], q: ArrayLike, t: ArrayLike | None = None, *,
                   threads: int | None = None) -> Array:
    """Return the joint torques of external wrenches (samples, joints): the sum of J' F (Ardiani, eq. 1.18).

    t (samples,): times, s, for time-dependent wrenches.
    """
    single, (q,) = check_motion(robot, q=q)
    times = None if t is None else np.atleast_1d(np.asarray(t, dtype=float))
    if times is not None and times.shape != (len(q),):
        raise ModelError(f"the times of {len(q)} samples have shape {times.shape}")
    out = np.zeros(q.shape)
    for one in wrenches:
        values = one.at(times, len(q))
        if one.axes is not None:
            turn = frame_pose(robot, one.axes, q, threads=threads)[:, :3, :3]
            values = np.hstack([(turn @ half[:, :, None])[:, :, 0] for half in (values[:, :3], values[:, 3:])])
        out += np.einsum("sij,si->sj", jacobian(robot, one.frame, q, threads=threads), values)
    return out[0] if single else out

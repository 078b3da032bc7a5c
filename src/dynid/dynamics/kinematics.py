"""Forward kinematics, Jacobians, and joint torques of external wrenches over batches; arguments are as in `physics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics import kernels
from dynid.dynamics.motion_case import MotionCase, check_motion, rooted
from dynid.dynamics.tree import robot_tree
from dynid.errors import ModelError
from dynid.robot import BASE, Robot
from dynid.threads import over_samples


def body_places(robot: Robot, q: Array, threads: int | None) -> tuple[Array, Array]:
    """Return body poses (samples, joints, 3, 4) and joint axes (samples, joints, 6) of a tree in the base frame."""
    tree, out = robot_tree(robot), np.empty((len(q), robot.dof, kernels.PLACE_NUMBERS))
    still, none, flat = q[:0], np.empty((0, 10)), out.reshape(-1)
    over_samples(lambda a, b: kernels.dynamics_kernel(*tree, none, q, still, still, kernels.PLACES, flat, a, b), len(q),
                 threads)
    return out[:, :, :12].reshape(*out.shape[:2], 3, 4), out[:, :, 12:]


def forward_kinematics(robot: Robot, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the pose of every body in the base frame (samples, bodies, 4, 4); dependent bodies are last."""
    single, (q,), root = rooted(robot, q=q)
    case = MotionCase(robot, None, (q,), threads)
    rows, _ = body_places(case.robot, case.motion[0], threads)
    poses = np.zeros((*rows.shape[:2], 4, 4))
    poses[:, :, :3], poses[:, :, 3, 3] = rows if case.places is None else rows[:, case.places], 1.0
    if root is not None:
        poses[:, :, :3] = root.rotation[:, None] @ poses[:, :, :3]
        poses[:, :, :3, 3] += root.position[:, None]
    return poses[0] if single else poses


def frame_pose(robot: Robot, frame: str, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the pose of a named frame in the base frame (samples, 4, 4)."""
    poses, place = forward_kinematics(robot, q, threads=threads), robot.frame(frame)
    if place.body == BASE:
        return np.broadcast_to(place.pose, (*poses.shape[:-3], 4, 4)).copy()
    return np.asarray(poses[..., place.body, :, :] @ place.pose)


def jacobian(robot: Robot, frame: str, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Return the Jacobian (samples, 6, joints) of a frame in axes of the base. The first three rows give the velocity
    of the frame's origin, the last three rows its angular velocity."""
    single = np.ndim(q) == 1
    (_, found), = frame_jacobians(robot, (frame,), q, threads=threads)
    return found[0] if single else found


def frame_jacobians(robot: Robot, frames: Sequence[str], q: ArrayLike, *, threads: int | None = None
                    ) -> list[tuple[Array, Array]]:
    """Return pose (samples, 4, 4) and Jacobian (samples, 6, joints) of several frames, with one pass over the tree."""
    _, (q,), root = rooted(robot, q=q)
    case = MotionCase(robot, None, (q,), threads)
    tree = case.robot
    poses, axes = body_places(tree, case.motion[0], threads)
    found = []
    for place in map(robot.frame, frames):
        body = place.body if robot.followers is None else robot.followers.place(place.body)
        out, pose = np.zeros((len(q), 6, tree.dof)), np.broadcast_to(place.pose, (len(q), 4, 4)).copy()
        if body != BASE:
            pose[:, :3] = poses[:, body] @ place.pose
            carried = np.flatnonzero(tree.supports[:, body])
            turn, velocity = axes[:, carried, :3], axes[:, carried, 3:]
            out[:, :3, carried] = np.swapaxes(velocity + np.cross(turn, pose[:, None, :3, 3]), 1, 2)
            out[:, 3:, carried] = np.swapaxes(turn, 1, 2)
        if case.rates is not None:
            out = out @ case.rates
        if root is not None:
            out = (root.rotation[:, None] @ out.reshape(len(q), 2, 3, -1)).reshape(out.shape)
            if body != BASE:
                pose[:, :3] = root.rotation @ pose[:, :3]
                pose[:, :3, 3] += root.position
        found.append((pose, out))
    return found


def wrench_torques(robot: Robot, wrenches: Sequence[Wrench], q: ArrayLike, t: ArrayLike | None = None, *,
                   threads: int | None = None) -> Array:
    """Return the joint torques (samples, joints) of external wrenches, the sum of J' F (Ardiani, eq. 1.18). t
    (samples,): times, s, for wrenches that depend on time."""
    single, (q,) = check_motion(robot, q=q)
    times = None if t is None else np.atleast_1d(np.asarray(t, dtype=float))
    if times is not None and times.shape != (len(q),):
        raise ModelError(f"give one time for each of the {len(q)} samples, got shape {times.shape}")
    out = np.zeros((len(q), robot.dof))
    for one in wrenches:
        values = one.at(times, len(q))
        if one.axes is not None:
            turn = frame_pose(robot, one.axes, q, threads=threads)[:, :3, :3]
            values = np.hstack([(turn @ half[:, :, None])[:, :, 0] for half in (values[:, :3], values[:, 3:])])
        out += np.einsum("sij,si->sj", jacobian(robot, one.frame, q, threads=threads), values)
    return out[0] if single else out


TimeFunction = Callable[[float], ArrayLike]  # time (s) -> force and moment (6,)


@dataclass(frozen=True, eq=False)
class Wrench:
    """External force (N) and moment (N m) on a robot, at the origin of a frame.

    The f_e of Ardiani, eq. 1.11 and 1.18, is the wrench that the robot exerts and has the opposite sign.

    Attributes:
        frame: name of the frame.
        values: six constant numbers, an array (times, 6), or a function of time, s.
        times: times of the array, s, between which it is interpolated linearly; before and after, the wrench is zero.
        axes: name of the frame in whose axes the values are given. Default: the base.
    """

    frame: str
    values: ArrayLike | TimeFunction
    times: ArrayLike | None = None
    axes: str | None = None

    @property
    def constant(self) -> bool:
        return self.times is None and not callable(self.values)

    def at(self, t: Array | None, samples: int = 1) -> Array:
        """Return force and moment (samples, 6) at times t (samples,), s; a constant wrench needs no times."""
        if self.constant:
            return np.broadcast_to(self._checked(self.values, (6,)), (samples if t is None else len(t), 6))
        if t is None:
            raise ModelError(f"the wrench on frame '{self.frame}' depends on time", "give the times t of the samples",
                             code="wrench-without-times")
        if callable(self.values):
            return self._checked([self.values(float(one)) for one in t], (len(t), 6))
        times = np.asarray(self.times, dtype=float)
        if times.ndim != 1 or len(times) < 2 or not np.all(np.diff(times) > 0):
            raise ModelError(f"the times of the wrench on frame '{self.frame}' must be at least two increasing numbers",
                             code="wrong-wrench-times")
        given = self._checked(self.values, (len(times), 6))
        return np.column_stack([np.interp(t, times, column, left=0.0, right=0.0) for column in given.T])

    def _checked(self, values: object, shape: tuple[int, ...]) -> Array:
        try:
            numbers = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise ModelError(f"the wrench on frame '{self.frame}' must be finite numbers of shape {shape}, a force and "
                             f"a moment, got shape {numbers.shape}", code="wrong-wrench")
        return numbers


def series(wrenches: Sequence[Wrench], t: Array) -> Array:
    """Return the values (times, wrenches, 6) of external wrenches at times t (times,), s. Each wrench is in the axes
    that its field `axes` names."""
    return np.stack([one.at(t) for one in wrenches], axis=1) if wrenches else np.zeros((len(t), 0, 6))


def places(robot: Robot, wrenches: Sequence[Wrench]) -> Array:
    """Return the points of external wrenches as rows (wrenches, 14), the form of `state.add_wrenches`.

    A row has the index of the body and the point on it (3), then the index of the body in whose axes the wrench is
    given, and a rotation (9) to the axes of that body. Bodies are counted in the tree of all joints.
    """
    def numbered(body: int) -> int:
        return body if robot.followers is None else robot.followers.place(body)

    rows = []
    for one in wrenches:
        where = robot.frame(one.frame)
        axes = None if one.axes is None else robot.frame(one.axes)
        turn = np.eye(3) if axes is None else axes.pose[:3, :3]
        rows.append([numbered(where.body), *where.pose[:3, 3], BASE if axes is None else numbered(axes.body),
                     *turn.ravel()])
    return np.array(rows, dtype=float).reshape(-1, 14)

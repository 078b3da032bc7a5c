"""Checks of the arguments of dynamics functions, and their conversion to the tree that the kernels use."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.following import tree_motion
from dynid.dynamics.root_frame import RootPose, check_quaternions, is_configuration, root_motion, root_pose
from dynid.dynamics.tree import Tree, robot_tree
from dynid.errors import ModelError
from dynid.robot import Robot


def check_motion(robot: Robot, **signals: ArrayLike) -> tuple[bool, list[Array]]:
    """Check signals given by name; return whether they are one sample, and the signals as arrays (samples, joints)."""
    arrays: list[Array] = []
    single = False
    for name, signal in signals.items():
        try:
            array = np.ascontiguousarray(signal, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{name} must be an array of numbers", code="not-numbers") from None
        single = array.ndim <= 1
        array = array.reshape(1, -1) if single else array
        if array.ndim != 2 or (array.shape[1] != robot.dof and not (name == "q" and is_configuration(robot, array))):
            wanted = f"(samples, {robot.dof})" if not robot.has_free_base else (
                f"(samples, {robot.dof + 1}), a configuration," if name == "q" else f"(samples, {robot.dof})")
            raise ModelError(f"{name} must be {wanted} for robot '{robot.name}' with {robot.dof} joints, "
                             f"got shape {np.shape(signal)}", code="wrong-shape")
        # The sum of finite numbers is finite except for overflow, and takes a quarter of the time of testing each.
        if not math.isfinite(array.sum()) and not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            column = max(column - (array.shape[1] - robot.dof), 0)
            raise ModelError(f"{name} of joint '{robot.joint_names[column]}' is not finite in sample {row}",
                             code="not-finite")
        if arrays and len(array) != len(arrays[0]):
            first = next(iter(signals))
            raise ModelError(f"{name} has {len(array)} samples but {first} has {len(arrays[0])}", code="sample-count")
        arrays.append(array)
    return single, arrays


def rooted(robot: Robot, **signals: ArrayLike) -> tuple[bool, list[Array], RootPose | None]:
    """Check signals by `check_motion`, and convert configurations of a free base to the axes of the root.

    The result is whether the signals are one sample, the signals (samples, joints), and the pose of the root or None.
    """
    single, arrays = check_motion(robot, **signals)
    if not is_configuration(robot, arrays[0]):
        return single, arrays, None
    given = dict(zip(signals, arrays, strict=True))
    q, dq, ddq = root_motion(robot, given["q"], given.get("dq"), given.get("ddq"))
    moved = {"q": q, "dq": dq, "ddq": ddq}
    return single, [moved.get(name, array) for name, array in given.items()], root_pose(robot, given["q"])


def regressor_motion(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> tuple[bool, Tree, list[Array]]:
    """Check inputs by `check_motion`; return (is_single, tree, motion) as arguments of `regressor_kernel`. The kernel
    converts configurations of a free base itself, which takes a tenth of the time of `rooted`."""
    single, motion = check_motion(robot, q=q, dq=dq, ddq=ddq)
    tree = robot_tree(robot)
    if is_configuration(robot, motion[0]):
        check_quaternions(robot, motion[0])
        tree = tree._replace(gravity=np.array(robot.gravity, dtype=float))
    return single, tree, motion


def body_inertias(robot: Robot, inertias: ArrayLike | None) -> Array:
    """Return the given inertial parameters as a checked array (bodies, 10); by default those of the robot file."""
    given = np.ascontiguousarray(_nominal_inertias(robot) if inertias is None else inertias, dtype=float)
    followers = robot.followers
    if given.size != 10 * robot.dof and (followers is None or given.size != 10 * followers.tree.dof):
        more = f" and {len(followers.bodies)} dependent bodies" if followers is not None else ""
        raise ModelError(f"robot '{robot.name}' has {robot.dof} bodies{more} with ten inertial parameters each, got "
                         f"{given.size} numbers", code="wrong-inertia-count")
    if not np.isfinite(given).all():
        raise ModelError(f"the inertial parameters of robot '{robot.name}' are not all finite")
    return given.reshape(-1, 10)


def _nominal_inertias(robot: Robot) -> Array:
    """Return the inertial parameters (bodies, 10) of all bodies in the robot file, dependent bodies last."""
    followers = robot.followers
    if followers is None:
        return robot.inertias
    return np.vstack([robot.inertias, followers.tree.inertias[list(followers.bodies)]])


class MotionCase:
    """The kinematic tree with which dynamics are computed, and the motion of its joints.

    The tree consists of all joints if `ten` is None or has parameters of dependent bodies, or if dependent joints carry
    independent joints; otherwise it consists of the independent joints. ten (bodies, 10): inertial parameters of the
    bodies, or None. The attribute `ten` has the parameters of every body of the tree. The methods `torques` and
    `matrices` convert results of the tree to the independent joints.
    """

    def __init__(self, robot: Robot, ten: Array | None, motion: Sequence[Array], threads: int | None = None) -> None:
        followers = robot.followers
        self.ten = np.empty((0, 10)) if ten is None else ten
        self.rates: Array | None = None
        self.places: list[int] | None = None
        if followers is None or (ten is not None and len(ten) == robot.dof and not followers.carrying):
            self.robot, self.motion = robot, list(motion)
            return
        whole = tree_motion(robot, *motion, threads=threads)
        self.robot, self.motion, self.rates = followers.tree, list(whole[:len(motion)]), whole.rates
        self.places = [*followers.free, *followers.bodies]
        if ten is not None:
            self.places = self.places[:len(ten)]
            self.ten = np.zeros((self.robot.dof, 10))
            self.ten[self.places] = ten

    @property
    def tree(self) -> Tree:
        return robot_tree(self.robot)

    def torques(self, found: Array) -> Array:
        """Return the torques (samples, dof) of the independent joints from the torques of all joints."""
        return found if self.rates is None else np.einsum("sja,sj->sa", self.rates, found)

    def matrices(self, found: Array) -> Array:
        """Return inertia matrices (samples, dof, dof) of the independent joints from inertia matrices of all joints."""
        if self.rates is None:
            return found
        return np.asarray(np.swapaxes(self.rates, 1, 2) @ found @ self.rates)


def need_configuration(robot: Robot, q: Array) -> None:
    """Raise an error if q of a robot with a free base does not contain the orientation, which gravity needs."""
    if robot.has_free_base and not is_configuration(robot, q):
        raise ModelError(f"q must be configurations (samples, {robot.dof + 1}) of robot '{robot.name}', because "
                         f"gravity depends on the orientation of its base; got shape {q.shape}", code="wrong-shape")

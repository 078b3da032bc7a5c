"""Search for the kinematic loop that cannot be closed and for the joints that block it, for error messages."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import loop_kernels
from dynid.dynamics.following import closed_chain, linearised, owners
from dynid.dynamics.loop_kernels import CLOSED, OPEN, SINGULAR
from dynid.dynamics.tree import robot_tree
from dynid.robot import Robot
from dynid.robot.followers import DependentJoints
from dynid.robot.loops import Closure

_PATH_HALVINGS = 40
MAX_CLOSURE_STEPS = 50  # steps of the least-squares search for the loop that stays open
_SINGULAR_RATIO = 0.05  # ratio of singular values: below it, the derivatives are rank deficient
_OPEN_RESIDUAL = 1e-6  # m or 1: equations with a larger residual are not satisfied
_CLEARLY_OPEN_RATIO = 2.0  # ratio to the residual of the next loop


def not_closed(robot: Robot, status: int, where: str, q: Array) -> str:
    """Return the message for a loop that cannot be closed, with its joints and their positions.

    status: status of the solution. where: sample or time as text. q (dof,): positions of the independent joints.
    """
    followers = robot.followers
    assert followers is not None and followers.loops is not None
    k, joints = fault(robot, followers, status, np.asarray(q, dtype=float))
    at = ", ".join(f"{name} {value:.4g}" for name, value in zip(robot.joint_names, q, strict=True))
    names = ", ".join(joints)
    how = {OPEN: f"cannot be closed: {names} cannot reach a solution",
           SINGULAR: f"loses rank: the position of {names} is not determined"}.get(
        status, f"passes a singularity where two branches meet: the motion of {names} is ambiguous")
    return f"loop '{followers.loops.closures[k].name}' of robot '{robot.name}' {how} {where}, at {at}"


def fault(robot: Robot, followers: DependentJoints, status: int, q: Array) -> tuple[int, tuple[str, ...]]:
    """Return the index of the closure that fails at q (dof,), and the names of the joints that block its loop.

    The last closed posture on the path from the initial posture to q is usually singular: the derivatives of the
    closures by the dependent joints lose rank, and the singular direction shows the closure and the joints. Otherwise
    a redundant closure is open: the closure with the largest least-squares residual.
    """
    loops, n = followers.loops, robot.dof
    assert loops is not None
    chain, z = closed_chain(robot).closures, _last_closed(robot, followers, q)
    owner = owners(loops.closures)
    if status == OPEN:
        trial = z.copy()
        trial[:n] = q
        for _ in range(MAX_CLOSURE_STEPS):
            phi, jacobian = linearised(followers.tree, trial, chain)
            step = np.linalg.lstsq(jacobian[:, n:], phi, rcond=1e-9)[0]
            trial[n:] -= step / max(1.0, 4.0 * np.abs(step).max(initial=0.0))
        left = np.array([np.abs(phi[owner == k]).max() for k in range(len(loops.closures))])
        worst, second = int(np.argmax(left)), float(np.sort(left)[-2]) if len(left) > 1 else 0.0
        if left[worst] > _OPEN_RESIDUAL and left[worst] > _CLEARLY_OPEN_RATIO * second:
            return worst, _followers_in(followers, loops.closures[worst])
    _, jacobian = linearised(followers.tree, z, chain)
    left_side, values, right_side = np.linalg.svd(jacobian[chain.chosen][:, n:])
    lost = values <= max(values[-1] * 1.001, _SINGULAR_RATIO * 1e-3 * values[0])
    held, moved = np.abs(left_side[:, lost]).max(axis=1), np.abs(right_side[lost]).max(axis=0)
    weight = np.array([np.sum(held[owner[chain.chosen] == k] ** 2) for k in range(len(loops.closures))])
    k = int(np.argmax(weight))
    inside = _followers_in(followers, loops.closures[k])
    names = tuple(name for name, share in zip(followers.following, moved, strict=True)
                  if share > 0.3 * moved.max() and name in inside)
    return k, names or inside


def _followers_in(followers: DependentJoints, closure: Closure) -> tuple[str, ...]:
    """Return the names of the dependent joints in a closure's loop, or of all the loop's joints if none is
    dependent."""
    inside = [followers.tree.joint_names[j] for j in np.flatnonzero(closure.joints(followers.tree))]
    return tuple(name for name in inside if name in followers.following) or tuple(inside)


def _last_closed(robot: Robot, followers: DependentJoints, q: Array) -> Array:
    """Return the coordinates of the last closed posture on the path to q (dof,)."""
    chain, tree, n = closed_chain(robot).closures, robot_tree(followers.tree), robot.dof
    begin, reached = chain.begin[:n], chain.start
    low, high = 0.0, 1.0
    for _ in range(_PATH_HALVINGS):
        middle = 0.5 * (low + high)
        trial, trying = (begin + middle * (q - begin))[None], reached.copy()
        status = np.zeros(1, dtype=np.int64)
        still = np.zeros_like(trial)
        loop_kernels.close_kernel(tree, chain, reached, trial, still, still, np.zeros(1, dtype=np.int64),
                                  np.empty((3, 1, followers.tree.dof)), np.empty((1, followers.tree.dof, n)), status,
                                  trying)
        if status[0] == CLOSED:
            low, reached = middle, trying
        else:
            high = middle
    return reached[:-1]


def loose_loop(followers: DependentJoints, names: tuple[str, ...]) -> str:
    """Return the name of the loop that contains most of the named joints."""
    assert followers.loops is not None
    places = [followers.tree.joint_index(name) for name in names]
    through = [int(np.sum(closure.joints(followers.tree)[places])) for closure in followers.loops.closures]
    return followers.loops.closures[int(np.argmax(through))].name


def holding_loop(followers: DependentJoints, jacobian: Array, dof: int, rank: float) -> str:
    """Return the name of the first loop whose equations constrain the independent joints.

    jacobian (m, coordinates): derivatives of all equations; rank: relative tolerance of singular values.
    """
    assert followers.loops is not None
    owner = owners(followers.loops.closures)

    def count(matrix: Array) -> int:
        values = np.linalg.svd(matrix, compute_uv=False)
        return int(np.sum(values > rank * np.linalg.norm(jacobian, 2)))

    for k, closure in enumerate(followers.loops.closures):
        rows = jacobian[owner <= k]
        if count(rows) > count(rows[:, dof:]):
            return closure.name
    return followers.loops.closures[-1].name

"""Compute the positions of the independent joints of a robot whose encoders are on other joints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics.compiled import ALLOCATING
from dynid.dynamics.following import Closures, closed_chain, tree_motion
from dynid.dynamics.loop_faults import not_closed
from dynid.dynamics.loop_kernels import CLOSED, close_kernel, factor, solve_factored
from dynid.dynamics.tree import Tree, robot_tree
from dynid.errors import NotPossibleError
from dynid.kernel_store import njit
from dynid.robot import Robot
from dynid.robot.followers import DependentJoints

UNMET = 4  # status in addition to those of `loop_kernels`: no posture has these positions of the measured joints
MAX_JOINT_STEP = 0.1  # rad or m of an independent joint in one step
_CONVERGED_STEP = 1e-12  # rad or m of the last step
_MAX_CLOSURE_ERROR = 1e-6  # rad or m: largest final error if as many joints are measured as are independent
_MAX_GAUSS_NEWTON_STEPS = 60  # Gauss-Newton steps per sample
_MIN_RATE_RATIO = 1e-6  # smallest ratio of the derivatives' singular values in the initial posture
_MIN_RATE_SHARE = 0.02  # of the largest derivative in a log; below it, a measured joint is at a turning point


class OwnPositions(NamedTuple):
    """Positions of the independent joints from measured positions of other joints.

    Attributes:
        q: positions of the independent joints (samples, dof).
        rates: derivatives of the measured joints by the independent ones (samples, measured, dof).
        driven: derivatives of the driven joints by the independent ones (samples, driven, dof).
        misfit: measured minus computed positions (samples, measured), rad or m.
        last: coordinates and determinant of the last sample, from which the next samples continue.
    """

    q: Array
    rates: Array
    driven: Array
    misfit: Array
    last: Array


@njit(**ALLOCATING, is_storable=False)
def own_positions_kernel(tree: Tree, closures: Closures, measured: Ints, driven: Ints, given: Array, state: Array,
                         q: Array, rates: Array, moving: Array, misfit: Array, status: Ints) -> None:
    """Compute the positions q (samples, n) of the independent joints, such that positions of the measured joints fit
    `given` (samples, k) in the least-squares sense, by the Gauss-Newton method.

    rates (samples, k, n), moving (samples, driven, n): derivatives of measured and driven joints by the independent
    joints. misfit (samples, k) and status (samples,) are computed too. state (coordinates + 1,): coordinates and
    determinant of a closed posture, at which the search for the first sample starts; it is replaced by the state of the
    last sample. The search for each further sample starts at the previous sample.
    """
    n, k, joints = q.shape[1], len(measured), len(tree.parent)
    own, still, one = np.zeros((1, n)), np.zeros((1, n)), np.zeros(1, np.int64)
    motion, slopes, how = np.zeros((3, 1, joints)), np.zeros((1, joints, n)), np.zeros(1, np.int64)
    square, order = np.empty((n, n)), np.empty(n, np.int64)
    right, step, at, before = np.empty(n), np.empty(n), state[:n].copy(), state[:n].copy()
    for t in range(len(given)):
        for a in range(n):  # extrapolation of the motion
            own[0, a] = at[a] + (min(max(at[a] - before[a], -MAX_JOINT_STEP), MAX_JOINT_STEP) if t > 1 else 0.0)
        before[:] = at
        status[t] = UNMET
        for _ in range(_MAX_GAUSS_NEWTON_STEPS):
            close_kernel(tree, closures, state.copy(), own, still, still, one, motion, slopes, how, state)
            if how[0] != CLOSED:
                status[t] = how[0]
                for a in range(n):
                    own[0, a] = 0.5 * (own[0, a] + state[a])
                continue
            square[:], right[:] = 0.0, 0.0
            for i in range(k):
                j = measured[i]
                off = given[t, i] - motion[0, 0, j]
                misfit[t, i] = off
                for a in range(n):
                    right[a] += slopes[0, j, a] * off
                    for b in range(n):
                        square[a, b] += slopes[0, j, a] * slopes[0, j, b]
            if factor(square, order) == 0.0:
                status[t] = UNMET
                break
            solve_factored(square, order, right, step)
            size = np.abs(step).max()
            if size < _CONVERGED_STEP:
                status[t] = CLOSED
                break
            status[t] = UNMET
            share = min(1.0, MAX_JOINT_STEP / size)
            for a in range(n):
                own[0, a] += share * step[a]
        if status[t] == CLOSED and k == n and np.abs(misfit[t]).max() > _MAX_CLOSURE_ERROR:
            status[t] = UNMET
        if status[t] != CLOSED:
            break
        at[:] = own[0]
        q[t] = own[0]
        for a in range(n):
            for i in range(k):
                rates[t, i, a] = slopes[0, measured[i], a]
            for i in range(len(driven)):
                moving[t, i, a] = slopes[0, driven[i], a]


def own_positions(robot: Robot, measured: Array, begin: Array | None = None) -> OwnPositions:
    """Return the positions of the independent joints from positions `measured` (samples, k) of the joints
    `Robot.measured`.

    begin: field `last` of the result for the previous samples. By default the search starts from the initial posture,
    which selects the branch. An error is raised for positions that no closed posture has, and for postures in which the
    measured joints hardly depend on the independent joints.
    """
    followers, tree = robot.followers, robot.tree
    where, torques = (np.array([tree.joint_index(name) for name in names], dtype=np.int64)
                      for names in (robot.measured or robot.joint_names, robot.driven or robot.joint_names))
    given = np.ascontiguousarray(measured, dtype=float)
    if followers is None or followers.loops is None:
        return _by_mimics(robot, given, where, torques)
    closures, shape = closed_chain(robot).closures, (len(given), robot.dof)
    state = closures.start if begin is None else begin.copy()
    if begin is None:
        _refuse_blind(robot, where)
    q = np.zeros(shape)
    rates, moving = (np.zeros((len(given), len(names), robot.dof)) for names in (where, torques))
    misfit, status = np.zeros(given.shape), np.zeros(len(given), dtype=np.int64)
    own_positions_kernel(robot_tree(tree), closures, where, torques, given, state, q, rates, moving, misfit, status)
    _refuse(robot, followers, given, q, rates, status)
    return OwnPositions(q, rates, moving, misfit, state)


def _refuse_blind(robot: Robot, where: Ints) -> None:
    """Raise an error if the measured joints do not determine the independent ones in the initial posture."""
    here = tree_motion(robot, closed_chain(robot).begin[None, :robot.dof], threads=1).rates[0, where]
    _, values, directions = np.linalg.svd(here)
    if values[-1] < _MIN_RATE_RATIO * values[0]:
        unseen = [name for name, share in zip(robot.joint_names, np.abs(directions[-1]), strict=True) if share > 0.1]
        raise NotPossibleError(f"the measured joints {', '.join(robot.measured)} of robot '{robot.name}' do not "
                               f"determine {', '.join(unseen)}, which can move while the measured joints stand still",
                               "measure one more joint, or other joints")


def _by_mimics(robot: Robot, given: Array, where: Ints, torques: Ints) -> OwnPositions:
    """Return the positions q of the independent joints if the measured joints are mimic joints, with positions
    q_measured = coupling q + offset."""
    followers, n = robot.followers, robot.dof
    of_tree, offset = (np.eye(n), np.zeros(n)) if followers is None else (followers.coupling, followers.offset)
    coupling, off = of_tree[where], given - offset[where]
    q = off @ np.linalg.pinv(coupling).T
    rates, moving = (np.broadcast_to(rows, (len(given), *rows.shape)) for rows in (coupling, of_tree[torques]))
    return OwnPositions(np.ascontiguousarray(q), rates, moving, off - q @ coupling.T, np.zeros(0))


def _refuse(robot: Robot, followers: DependentJoints, given: Array, q: Array, rates: Array, status: Ints) -> None:
    """Raise an error for the first sample that has no solution, or for a sample with an ambiguous solution."""
    assert followers.loops is not None
    measured = ", ".join(robot.measured or robot.joint_names)
    wrong = np.flatnonzero(status != CLOSED)
    if len(wrong):
        t = int(wrong[0])
        last = q[t - 1] if t else closed_chain(robot).begin[:robot.dof]
        at = ", ".join(f"{name} {value:.4g}" for name, value in
                       zip(robot.measured or robot.joint_names, given[t], strict=True))
        if status[t] != UNMET:
            reason = not_closed(robot, int(status[t]), f"in sample {t}, where the log has {at}, after", last)
        else:
            reason = (f"no posture of robot '{robot.name}' near that of the previous sample has the measured positions "
                      f"{at} of sample {t}: the loops {followers.loops.names} do not allow these for {measured}")
        raise NotPossibleError(reason, "check sign, offset and unit of the measured joints")
    least = np.linalg.svd(rates, compute_uv=False)[:, -1] if len(rates) else np.ones(0)
    t = int(np.argmin(least)) if len(least) else 0
    if len(least) and least[t] < _MIN_RATE_SHARE * least.max():
        at = ", ".join(f"{name} {value:.4g}" for name, value in zip(robot.joint_names, q[t], strict=True))
        raise NotPossibleError(f"the measured joints {measured} of robot '{robot.name}' are at a turning point in "
                               f"sample {t}, at {at}, so the solution is ambiguous",
                               "keep the motion away from there, or measure one more joint of the loops "
                               f"{followers.loops.names}")

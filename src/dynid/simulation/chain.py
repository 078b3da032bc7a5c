"""Inertia matrix and bias torques of one state of a robot with dependent joints (mimic joints or closed loops).

They are computed by `state.mass_and_bias` for the whole tree and projected onto the independent joints.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics import state
from dynid.dynamics.compiled import ALLOCATING
from dynid.dynamics.following import Closures, closed_chain, joint_coordinates
from dynid.dynamics.loop_kernels import CLOSED, close_kernel
from dynid.dynamics.tree import Tree, robot_tree
from dynid.kernel_store import njit, when_numba_is_loaded
from dynid.robot import Robot
from dynid.robot.followers import DependentJoints


class ChainRows(NamedTuple):
    """Work arrays of a robot with n independent joints and with dependent joints, in place of the array of
    `state.pack`.

    Attributes:
        rows, tree, closures: work array of `state.pack`, arrays and loop closures of the whole tree.
        reached: coordinates and determinant (coordinates + 1,) of the last solution, from which the next one starts.
        q, dq, still: positions and velocities of the independent joints, and zeros (1, n).
        samples, status: index of the sample and status of the solution (1,).
        motion, rates: motion of all joints (3, 1, joints), and derivatives by the independent joints (1, joints, n).
        matrix, bias: inertia matrix (joints, joints) and bias torques (joints,) of the tree.
        carried: inertia matrix times `rates` (joints, n).
    """

    rows: Array
    tree: Tree
    closures: Closures
    reached: Array
    q: Array
    dq: Array
    still: Array
    samples: Ints
    motion: Array
    rates: Array
    status: Ints
    matrix: Array
    bias: Array
    carried: Array

    def copy(self) -> ChainRows:
        """Return a copy of the work arrays, for another thread."""
        return self._replace(**{name: getattr(self, name).copy() for name in self._fields
                                if name not in ("tree", "closures")})

    @property
    def open(self) -> bool:
        """Whether the loops could not be closed in the last state."""
        return bool(self.status[0] != CLOSED)


def chain_rows(robot: Robot, followers: DependentJoints, numbers: Array) -> ChainRows:
    """Return the work arrays of a robot with inertial parameters `numbers` (bodies, 10), dependent bodies last."""
    whole = np.zeros((followers.tree.dof, 10))
    whole[[*followers.free, *followers.bodies]] = numbers
    tree, n, joints = robot_tree(followers.tree), robot.dof, followers.tree.dof
    closures = _without_loops(followers) if followers.loops is None else closed_chain(robot).closures
    return ChainRows(state.pack(tree, whole), tree, closures, closures.start, np.zeros((1, n)), np.zeros((1, n)),
                     np.zeros((1, n)), np.zeros(1, dtype=np.int64), np.zeros((3, 1, joints)), np.zeros((1, joints, n)),
                     np.zeros(1, dtype=np.int64), np.zeros((joints, joints)), np.zeros(joints), np.zeros((joints, n)))


def _without_loops(followers: DependentJoints) -> Closures:
    """Return the closure arrays of a robot that has mimic joints but no loops: no closures, and its own coordinates."""
    none = np.zeros(0, dtype=np.int64)
    return Closures(none, np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2, 12)), np.zeros(0),
                    *joint_coordinates(followers), none, np.zeros(len(followers.free)), 1.0)


@njit(**ALLOCATING)
def chain_mass_and_bias(gravity: Array, w: ChainRows, q: Array, dq: Array, matrix: Array, bias: Array) -> None:
    """Compute the lower triangle of the inertia matrix G' M G (n, n) and the bias torques G' (M ddq + b) (n,).

    M, b: inertia matrix and bias torques of the tree. G: derivatives of all joints by the independent joints. ddq:
    accelerations of all joints if the independent joints do not accelerate. Results are NaN if the loops do not close.
    """
    n, joints = len(bias), len(w.bias)
    for a in range(n):
        w.q[0, a], w.dq[0, a] = q[a], dq[a]
    close_kernel(w.tree, w.closures, w.reached.copy(), w.q, w.dq, w.still, w.samples, w.motion, w.rates, w.status,
                 w.reached)
    if w.status[0] != CLOSED:
        matrix[:] = math.nan
        bias[:] = math.nan
        return
    state.mass_and_bias(w.tree.parent, gravity, w.rows, w.motion[0, 0], w.motion[1, 0], w.matrix, w.bias)
    for i in range(joints):
        total = w.bias[i]
        for a in range(n):
            w.carried[i, a] = 0.0
        for j in range(joints):
            entry = w.matrix[i, j] if j <= i else w.matrix[j, i]
            total += entry * w.motion[2, 0, j]
            for a in range(n):
                w.carried[i, a] += entry * w.rates[0, j, a]
        w.bias[i] = total
    for a in range(n):
        bias[a] = 0.0
        for i in range(joints):
            bias[a] += w.rates[0, i, a] * w.bias[i]
        for b in range(a + 1):
            matrix[a, b] = 0.0
            for i in range(joints):
                matrix[a, b] += w.rates[0, i, a] * w.carried[i, b]


def mass_and_bias(parent: Ints, gravity: Array, rows: Any, q: Array, dq: Array, matrix: Array, bias: Array) -> None:
    """Compute `state.mass_and_bias` for robots with and without dependent joints, compiled separately for both."""
    raise TypeError("a kernel of the simulation was called from Python, but can be called only from compiled code")


def _mass_and_bias(parent: Any, gravity: Any, rows: Any, q: Any, dq: Any, matrix: Any, bias: Any) -> Any:
    if _is_array(rows):
        def plain(parent: Any, gravity: Any, rows: Any, q: Any, dq: Any, matrix: Any, bias: Any) -> None:
            state.mass_and_bias(parent, gravity, rows, q, dq, matrix, bias)
        return plain

    def closed(parent: Any, gravity: Any, rows: Any, q: Any, dq: Any, matrix: Any, bias: Any) -> None:
        chain_mass_and_bias(gravity, rows, q, dq, matrix, bias)
    return closed


@njit(**ALLOCATING)
def chain_add_wrenches(w: ChainRows, places: Array, values: Array, bias: Array) -> None:
    """Compute `state.add_wrenches` for a robot with dependent joints, at the state of the last
    `chain_mass_and_bias`."""
    torques = np.zeros(len(w.bias))
    state.add_wrenches(w.tree.parent, w.rows, places, values, torques)
    for a in range(len(bias)):
        for i in range(len(torques)):
            bias[a] += w.rates[0, i, a] * torques[i]


def add_wrenches(parent: Ints, rows: Any, places: Array, values: Array, bias: Array) -> None:
    """Compute `state.add_wrenches` for robots with and without dependent joints, compiled separately for both."""
    raise TypeError("a kernel of the simulation was called from Python, but can be called only from compiled code")


def _add_wrenches(parent: Any, rows: Any, places: Any, values: Any, bias: Any) -> Any:
    if _is_array(rows):
        def plain(parent: Any, rows: Any, places: Any, values: Any, bias: Any) -> None:
            state.add_wrenches(parent, rows, places, values, bias)
        return plain

    def closed(parent: Any, rows: Any, places: Any, values: Any, bias: Any) -> None:
        chain_add_wrenches(rows, places, values, bias)
    return closed


def _is_array(rows: Any) -> bool:
    """Return whether the numba type of `rows` is an array, which it is for a robot without dependent joints."""
    from numba import types

    return isinstance(rows, types.Array)


@when_numba_is_loaded
def _declare_overloads() -> None:
    from numba.extending import overload

    overload(mass_and_bias)(_mass_and_bias)
    overload(add_wrenches)(_add_wrenches)

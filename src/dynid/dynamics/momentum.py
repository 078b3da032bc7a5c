"""Momentum and what changes it: the regressor of rows without acceleration.

With h the momentum of what joint j carries and S_j its axis, the torque is

    tau_j = d/dt (S_j . h) - dS_j/dt . h + dV/dq_j,   dS_j/dt = V_j x S_j,

V_j the motion of the joint's body. The momentum of a body is the force it needs to take up its velocity in a second
from rest, so that the regressor's own tile serves, with velocities for accelerations, and once with the axes and once
with their rates.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dynid.arrays import Array, Ints
from dynid.dynamics.compiled import INNER, OPTIONS
from dynid.dynamics.kernels import base_rows, move
from dynid.dynamics.tiles import AXIS, BODY, JOINT, TEN, TILE, regressor_tile
from dynid.dynamics.tree import tree_of
from dynid.dynamics.vectors import add_cross, cross, put, vector
from dynid.robot import Robot


@njit(**INNER)
def twist_tile(axis, joint_rate, up, out, m):
    """Motion of a body as turn and velocity at the base origin (6 rows): its parent's and its joint's."""
    for k in range(AXIS):
        for t in range(m):
            out[k * TILE + t] = up[k * TILE + t] + joint_rate[t] * axis[k * TILE + t]


@njit(**INNER)
def rate_tile(twist, axis, out, m):
    """Rate of an axis that moves with a body (6 rows): W x S, and W x V + U x S with U the velocity at the origin."""
    for t in range(m):
        w, u = vector(twist, t, TILE), vector(twist, 3 * TILE + t, TILE)
        s, v = vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE)
        put(out, t, TILE, cross(w, s))
        put(out, 3 * TILE + t, TILE, add_cross(cross(w, v), u, s))


@njit(**OPTIONS)
def momentum_columns_kernel(parent, pose, axis, q, dq, place, momentum, change, start, stop):
    """momentum, change (rows, samples): S_j . h and dS_j/dt . h for one unit of each number, at rows `place`."""
    n = len(parent)
    base, joint = base_rows(np.zeros(3)), np.empty(JOINT * TILE)
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    twists, rates, still, row = (np.empty((n, AXIS * TILE)), np.empty((n, AXIS * TILE)), np.zeros(AXIS * TILE),
                                 np.empty(TILE))
    ten = np.empty(TEN * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, q[:0], dq, lo, m, joint, bodies, axes)
        for i in range(n):
            for t in range(m):
                row[t] = dq[lo + t, i]
            twist_tile(axes[i], row, still if parent[i] < 0 else twists[parent[i]], twists[i], m)
            rate_tile(twists[i], axes[i], rates[i], m)
        for i in range(n):
            j = i
            while j >= 0:
                for which in range(2):
                    regressor_tile(axes[j] if which == 0 else rates[j], bodies[i], ten, m)
                    for k in range(10):
                        to = place[j, 10 * i + k]
                        if to >= 0:
                            for t in range(m):
                                if which == 0:
                                    momentum[to, lo + t] = ten[k * TILE + t]
                                else:
                                    change[to, lo + t] = ten[k * TILE + t]
                j = parent[j]


def momentum_columns(robot: Robot, q: Array, dq: Array, place: Ints, momentum: Array, change: Array) -> None:
    """Momentum of every joint for one unit of each number, and what the motion of the axes takes off its rate.

    place (joints, 10 joints) int64: the row of momentum and change (rows, samples) each entry goes to, -1 for nowhere.
    tau = d/dt momentum - change + gravity, column by column.
    """
    tree = tree_of(robot)
    momentum_columns_kernel(tree.parent, tree.pose, tree.axis, q, dq, place, momentum, change, 0, len(q))

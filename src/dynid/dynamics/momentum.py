"""Regressor without accelerations: generalised momentum of the joints, and the other terms of their torque.

With h the momentum of the bodies that joint j carries, S_j the joint's axis and U the potential energy, the torque is

    tau_j = d/dt (S_j . h) - dS_j/dt . h + dU/dq_j,   dS_j/dt = V_j x S_j,

where V_j is the twist of the joint's body. The momentum is computed like a wrench, with velocities in place of
accelerations and no centrifugal terms. dS_j/dt . h is the derivative of the kinetic energy by q_j; dU/dq_j is gravity.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics.bodies import axis_in_body
from dynid.dynamics.compiled import INLINED, INNER, OPTIONS
from dynid.dynamics.kernels import base_rows, move, place_rows
from dynid.dynamics.tiles import AXIS, BODY, JOINT, TEN, TILE
from dynid.dynamics.tree import robot_tree
from dynid.dynamics.vectors import add_cross, cross, dot, matrix, put, times, turned_back, vector
from dynid.kernel_store import njit
from dynid.robot import Robot


@njit(**INNER)
def twist_tile(axis, joint_rate, up, out, m):
    """Compute the twist of a body at the base origin (6 rows): the sum of its parent's twist and its joint's twist."""
    for k in range(AXIS):
        for t in range(m):
            out[k * TILE + t] = up[k * TILE + t] + joint_rate[t] * axis[k * TILE + t]


@njit(**INNER)
def rate_tile(twist, axis, out, m):
    """Compute the rate of an axis S, V fixed to a body with twist W, U (6 rows): W x S, and W x V + U x S."""
    for t in range(m):
        w, u = vector(twist, t, TILE), vector(twist, 3 * TILE + t, TILE)
        s, v = vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE)
        put(out, t, TILE, cross(w, s))
        put(out, 3 * TILE + t, TILE, add_cross(cross(w, v), u, s))


@njit(**INLINED)
def put_product(rows, t, a, b):
    """Store the derivatives of a' I b by the six entries XX XY XZ YY YZ ZZ of a symmetric matrix I (6 rows)."""
    put(rows, t, TILE, (a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[0] * b[2] + a[2] * b[0]))
    put(rows, 3 * TILE + t, TILE, (a[1] * b[1], a[1] * b[2] + a[2] * b[1], a[2] * b[2]))


@njit(**INNER)
def momentum_ten_tile(axis, rate, here, lift, mine, rest, m):
    """Compute the contribution of each inertial parameter of a body to a joint's momentum and to its other torques.

    mine (10 rows): momentum; rest (10 rows): torque without the change of momentum. With axis s, v and its rate p, r in
    the body frame, the body's angular and linear velocity e, a, and the acceleration against gravity b = R' lift:
      momentum: I: s e' (symmetric part), h: v x e + a x s, M: a.v
      rest:     I: -p e',                 h: b x s - r x e - a x p, M: b.v - a.r
    """
    for t in range(m):
        R, P = matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE)
        s, v = axis_in_body(R, P, vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE))
        p, r = axis_in_body(R, P, vector(rate, t, TILE), vector(rate, 3 * TILE + t, TILE))
        e, a, b = vector(here, 15 * TILE + t, TILE), vector(here, 18 * TILE + t, TILE), turned_back(R, lift)
        put_product(mine, t, s, e)
        put(mine, 6 * TILE + t, TILE, add_cross(cross(v, e), a, s))
        mine[9 * TILE + t] = dot(a, v)
        put_product(rest, t, times(-1.0, p), e)
        put(rest, 6 * TILE + t, TILE, add_cross(add_cross(cross(b, s), e, r), p, a))
        rest[9 * TILE + t] = dot(b, v) - dot(a, r)


@njit(**OPTIONS)
def momentum_columns_kernel(parent, pose, axis, gravity, q, dq, changing, place, momentum, force, start, stop):
    """Compute momentum and force (rows, samples) for unit inertial parameters; arguments are as in
    `momentum_columns`."""
    n = len(parent)
    base, joint, lift = base_rows(np.zeros(3)), np.empty(JOINT * TILE), times(-1.0, vector(gravity, 0, 1))
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    twists, rates, still = np.empty((n, AXIS * TILE)), np.zeros((n, AXIS * TILE)), np.zeros(AXIS * TILE)
    row, mine, rest = np.empty(TILE), np.empty(TEN * TILE), np.empty(TEN * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, q[:0], dq, lo, m, joint, bodies, axes)
        if changing:
            for i in range(n):
                for t in range(m):
                    row[t] = dq[lo + t, i]
                twist_tile(axes[i], row, still if parent[i] < 0 else twists[parent[i]], twists[i], m)
                rate_tile(twists[i], axes[i], rates[i], m)
        for i in range(n):
            j = i
            while j >= 0:
                momentum_ten_tile(axes[j], rates[j], bodies[i], lift, mine, rest, m)
                place_rows(mine, 0, 1, place[j], 10 * i, 10, momentum, lo, m)
                place_rows(rest, 0, 1, place[j], 10 * i, 10, force, lo, m)
                j = parent[j]


def momentum_columns(robot: Robot, q: Array, dq: Array, place: Ints, momentum: Array, force: Array, *,
                     changing: bool = True) -> None:
    """Compute generalised momentum and force of every joint for unit inertial parameters: tau = d/dt momentum + force.

    place (joints, 10 joints) int64: row of momentum and force (rows, samples) of each entry, -1 for none. changing:
    whether the force includes the change of momentum by the motion of the axes; otherwise the force is gravity alone.
    """
    tree = robot_tree(robot)
    momentum_columns_kernel(*tree, q, dq, changing, place, momentum, force, 0, len(q))

"""Loops over samples, tile by tile, and over the tree's bodies. Each writes its results for samples start..stop."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from dynid.dynamics.tiles import (
    AXIS,
    BODY,
    JOINT,
    OPTIONS,
    TEN,
    TILE,
    WRENCH,
    add_tile,
    axis_tile,
    body_tile,
    inertia_tile,
    joint_tile,
    momentum_tile,
    project_tile,
    regressor_tile,
    wrench_tile,
)


@njit(**OPTIONS)
def base_rows(gravity):
    """The base as a body that stands still and is pushed up against gravity."""
    base = np.zeros(BODY * TILE)
    for k in (0, 4, 8):
        base[k * TILE:(k + 1) * TILE] = 1.0
    for k in range(3):
        base[(18 + k) * TILE:(19 + k) * TILE] = -gravity[k]
    return base


@njit(**OPTIONS)
def move(parent, pose, axis, base, q, dq, ddq, rates, lo, m, joint, bodies, axes):
    """Motion of all bodies and all axes for the tile of m samples from lo; `rates` as in `joint_tile`."""
    for i in range(len(parent)):
        joint_tile(q, dq, ddq, rates, i, lo, m, joint)
        body_tile(pose[i], axis[i], joint, base if parent[i] < 0 else bodies[parent[i]], bodies[i], m)
        axis_tile(axis[i], bodies[i], axes[i], m)


@njit(**OPTIONS)
def regressor_kernel(parent, pose, axis, gravity, q, dq, ddq, out, start, stop):
    """out (samples, n, 10 n): rows are joints, ten columns a body."""
    n = len(parent)
    base, joint, ten = base_rows(gravity), np.empty(JOINT * TILE), np.empty(TEN * TILE)
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, 2, lo, m, joint, bodies, axes)
        out[lo:lo + m] = 0.0  # in one sweep: the scattered writes below then find their lines in cache
        for i in range(n):
            j = i
            while j >= 0:
                regressor_tile(axes[j], bodies[i], ten, m)
                for t in range(m):
                    for k in range(10):
                        out[lo + t, j, 10 * i + k] = ten[k * TILE + t]
                j = parent[j]


@njit(**OPTIONS)
def regressor_of_one(parent, pose, axis, gravity, q, dq, ddq, out):
    """out (n, 10 n) of the sample q, dq, ddq (n,), n < TILE; False where a number is not finite.

    There is one sample, so the lanes of the tiles are bodies: body i is lane i, and lane n stays the base.
    """
    n = len(parent)
    for i in range(n):
        if not (math.isfinite(q[i]) and math.isfinite(dq[i]) and math.isfinite(ddq[i])):
            return False
    joints, bodies, ten = np.empty(JOINT * TILE), base_rows(gravity), np.empty(TEN * TILE)
    axes, same, carried = np.empty(AXIS * TILE), np.empty(AXIS * TILE), np.empty(TILE, np.bool_)
    joint_tile(q.reshape(n, 1), dq.reshape(n, 1), ddq.reshape(n, 1), 2, 0, 0, n, joints)
    for i in range(n):
        body_tile(pose[i], axis[i], joints[i:], bodies[parent[i] if parent[i] >= 0 else n:], bodies[i:], 1)
        axis_tile(axis[i], bodies[i:], axes[i:], 1)
    out[:] = 0.0
    for j in range(n):
        for k in range(AXIS):
            for i in range(j, n):
                same[k * TILE + i] = axes[k * TILE + j]
        regressor_tile(same[j:], bodies[j:], ten, n - j)
        for i in range(j, n):
            carried[i] = i == j or (parent[i] >= j and carried[parent[i]])
            if carried[i]:
                for k in range(10):
                    out[j, 10 * i + k] = ten[k * TILE + i - j]
    return True


@njit(**OPTIONS)
def regressor_columns_kernel(parent, pose, axis, gravity, q, dq, ddq, place, out, start, stop):
    """Chosen columns only, each contiguous over the samples: out (columns, samples).

    place (n, 10 n): where the entry of joint j and parameter c goes, a row of `out`, or -1 for nowhere.
    """
    n = len(parent)
    base, joint, ten = base_rows(gravity), np.empty(JOINT * TILE), np.empty(TEN * TILE)
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, 2, lo, m, joint, bodies, axes)
        for i in range(n):
            j = i
            while j >= 0:
                regressor_tile(axes[j], bodies[i], ten, m)
                for k in range(10):
                    row = place[j, 10 * i + k]
                    if row >= 0:
                        for t in range(m):
                            out[row, lo + t] = ten[k * TILE + t]
                j = parent[j]


@njit(**OPTIONS)
def carry_wrenches(parent, ten, bodies, wrenches, m):
    """Wrench through every joint: what its own body and all it carries need."""
    n = len(parent)
    for i in range(n):
        wrench_tile(ten[i], bodies[i], wrenches[i], m)
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            add_tile(WRENCH, wrenches[i], wrenches[parent[i]], m)


@njit(**OPTIONS)
def inverse_dynamics_kernel(parent, pose, axis, gravity, ten, q, dq, ddq, out, start, stop):
    """out (samples, n): torques. ten (n, 10)."""
    n = len(parent)
    base, joint, row = base_rows(gravity), np.empty(JOINT * TILE), np.empty(TILE)
    bodies, axes, wrenches = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE)), np.empty((n, WRENCH * TILE))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, 2, lo, m, joint, bodies, axes)
        carry_wrenches(parent, ten, bodies, wrenches, m)
        for i in range(n):
            project_tile(wrenches[i], axes[i], row, m)
            for t in range(m):
                out[lo + t, i] = row[t]


@njit(**OPTIONS)
def link_wrenches_kernel(parent, pose, axis, gravity, ten, after, q, dq, ddq, out, start, stop):
    """out (samples, n, 6): force and moment through each joint, about and along its own frame (z the axis).

    after (n, 12): pose of the body in its joint's frame. Joint frame in the base: Rj = R a', Pj = P - Rj d.
    """
    n = len(parent)
    base, joint = base_rows(gravity), np.empty(JOINT * TILE)
    bodies, axes, wrenches = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE)), np.empty((n, WRENCH * TILE))
    R, F, N = np.empty((3, 3)), np.empty(3), np.empty(3)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, 2, lo, m, joint, bodies, axes)
        carry_wrenches(parent, ten, bodies, wrenches, m)
        for i in range(n):
            a, here, wrench = after[i], bodies[i], wrenches[i]
            for t in range(m):
                for r in range(3):
                    for c in range(3):
                        R[r, c] = (here[3 * r * TILE + t] * a[4 * c] + here[(3 * r + 1) * TILE + t] * a[4 * c + 1]
                                   + here[(3 * r + 2) * TILE + t] * a[4 * c + 2])
                for r in range(3):
                    F[r] = wrench[r * TILE + t]
                    N[r] = here[(9 + r) * TILE + t] - R[r, 0] * a[3] - R[r, 1] * a[7] - R[r, 2] * a[11]
                P0, P1, P2 = N[0], N[1], N[2]
                N[0] = wrench[3 * TILE + t] - (P1 * F[2] - P2 * F[1])
                N[1] = wrench[4 * TILE + t] - (P2 * F[0] - P0 * F[2])
                N[2] = wrench[5 * TILE + t] - (P0 * F[1] - P1 * F[0])
                for c in range(3):
                    out[lo + t, i, c] = R[0, c] * F[0] + R[1, c] * F[1] + R[2, c] * F[2]
                    out[lo + t, i, 3 + c] = R[0, c] * N[0] + R[1, c] * N[1] + R[2, c] * N[2]


@njit(**OPTIONS)
def composite_inertias(parent, ten, bodies, inertias, m):
    """Inertia about the base origin of everything each joint carries."""
    n = len(parent)
    for i in range(n):
        inertia_tile(ten[i], bodies[i], inertias[i], m)
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            add_tile(TEN, inertias[i], inertias[parent[i]], m)


@njit(**OPTIONS)
def inertia_matrix_tile(parent, ten, bodies, axes, inertias, momentum, row, matrix, m):
    """matrix (m, n, n): composite rigid bodies, M_ji = axis_j . momentum of composite i moving with axis i."""
    composite_inertias(parent, ten, bodies, inertias, m)
    for i in range(len(parent)):
        momentum_tile(inertias[i], axes[i], momentum, m)
        j = i
        while j >= 0:
            project_tile(momentum, axes[j], row, m)
            for t in range(m):
                matrix[t, i, j] = row[t]
                matrix[t, j, i] = row[t]
            j = parent[j]


@njit(**OPTIONS)
def inertia_matrix_kernel(parent, pose, axis, gravity, ten, q, out, start, stop):
    """out (samples, n, n), zero on entry."""
    n = len(parent)
    base, joint, row = base_rows(gravity), np.empty(JOINT * TILE), np.empty(TILE)
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    inertias, momentum = np.empty((n, TEN * TILE)), np.empty(WRENCH * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, q, q, 0, lo, m, joint, bodies, axes)
        inertia_matrix_tile(parent, ten, bodies, axes, inertias, momentum, row, out[lo:lo + m], m)


@njit(**OPTIONS)
def solve_symmetric(matrix, x):
    """x := matrix^-1 x by L D L', in place; False where the matrix is singular.

    Not Cholesky: the published inertias of some robots cannot exist, yet their equations have a solution.
    """
    n = len(x)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(matrix[i, i]))
    for i in range(n):
        lost = 1e-13 * abs(matrix[i, i]) + 1e-16 * largest  # a pivot below it is rounding
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k] * matrix[k, k]
            matrix[i, j] = value / matrix[j, j]
        value = matrix[i, i]
        for k in range(i):
            value -= matrix[i, k] * matrix[i, k] * matrix[k, k]
        if not abs(value) > lost:
            return False
        matrix[i, i] = value
    for i in range(n):
        for k in range(i):
            x[i] -= matrix[i, k] * x[k]
    for i in range(n - 1, -1, -1):
        x[i] /= matrix[i, i]
        for k in range(i + 1, n):
            x[i] -= matrix[k, i] * x[k]
    return True


@njit(**OPTIONS)
def forward_dynamics_kernel(parent, pose, axis, gravity, ten, extra, q, dq, tau, out, start, stop):
    """out (samples, n): accelerations (M + extra)^-1 (tau - c - g). extra (n, n): inertia of rotors.

    Returns the first sample whose inertia matrix is singular, or -1.
    """
    n = len(parent)
    base, joint, row = base_rows(gravity), np.empty(JOINT * TILE), np.empty(TILE)
    bodies, axes, wrenches = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE)), np.empty((n, WRENCH * TILE))
    inertias, momentum = np.empty((n, TEN * TILE)), np.empty(WRENCH * TILE)
    matrix = np.zeros((TILE, n, n))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, dq, 1, lo, m, joint, bodies, axes)
        carry_wrenches(parent, ten, bodies, wrenches, m)
        inertia_matrix_tile(parent, ten, bodies, axes, inertias, momentum, row, matrix, m)
        for i in range(n):
            project_tile(wrenches[i], axes[i], row, m)
            for t in range(m):
                out[lo + t, i] = tau[lo + t, i] - row[t]
        for t in range(m):
            for i in range(n):
                for j in range(i + 1):
                    matrix[t, i, j] += extra[i, j]
            if not solve_symmetric(matrix[t], out[lo + t]):
                return lo + t
            for i in range(n):
                for j in range(i + 1):  # branches that do not see each other stay zero, the factor did not
                    matrix[t, i, j] = 0.0
    return -1


@njit(**OPTIONS)
def energy_kernel(parent, pose, axis, gravity, ten, q, dq, out, start, stop):
    """out (samples, 2): kinetic energy and potential energy (zero with all centres of mass at the base origin).

    Velocities in the base frame add along the tree: V_i = V_p + axis_i dq_i; T = V.momentum / 2, U = -g.H.
    """
    n = len(parent)
    base, joint, row = base_rows(gravity), np.empty(JOINT * TILE), np.empty(TILE)
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    inertia, momentum = np.empty(TEN * TILE), np.empty(WRENCH * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, q, q, 0, lo, m, joint, bodies, axes)
        out[lo:lo + m] = 0.0
        for i in range(n):
            for k in range(AXIS):  # from here on axes[i] holds the velocity of body i
                for t in range(m):
                    axes[i, k * TILE + t] *= dq[lo + t, i]
            if parent[i] >= 0:
                add_tile(AXIS, axes[parent[i]], axes[i], m)
            inertia_tile(ten[i], bodies[i], inertia, m)
            momentum_tile(inertia, axes[i], momentum, m)
            project_tile(momentum, axes[i], row, m)
            for t in range(m):
                out[lo + t, 0] += 0.5 * row[t]
                out[lo + t, 1] -= (gravity[0] * inertia[6 * TILE + t] + gravity[1] * inertia[7 * TILE + t]
                                   + gravity[2] * inertia[8 * TILE + t])


@njit(**OPTIONS)
def kinematics_kernel(parent, pose, axis, gravity, q, poses, axes_out, start, stop):
    """poses (samples, n, 3, 4) of the bodies and axes_out (samples, n, 6) of the joints, base frame."""
    n = len(parent)
    base, joint = base_rows(gravity), np.empty(JOINT * TILE)
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, q, q, 0, lo, m, joint, bodies, axes)
        for i in range(n):
            for t in range(m):
                for r in range(3):
                    for c in range(3):
                        poses[lo + t, i, r, c] = bodies[i, (3 * r + c) * TILE + t]
                    poses[lo + t, i, r, 3] = bodies[i, (9 + r) * TILE + t]
                for k in range(AXIS):
                    axes_out[lo + t, i, k] = axes[i, k * TILE + t]

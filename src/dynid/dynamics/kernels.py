"""Compiled dynamics of a tree of bodies, in blocks (tiles) of samples; each kernel computes samples start..stop."""

from __future__ import annotations

import math

import numpy as np

from dynid.dynamics.compiled import INNER, OPTIONS, PASSING_ON
from dynid.dynamics.state import solve_state
from dynid.dynamics.tiles import (
    AXIS,
    BODY,
    COLUMNS,
    JOINT,
    TEN,
    TILE,
    WRENCH,
    add_tile,
    axis_tile,
    body_tile,
    copy_row,
    inertia_tile,
    joint_tile,
    momentum_tile,
    project_columns_tile,
    project_tile,
    root_tile,
    spread_four,
    spread_ten,
    wrench_columns_tile,
    wrench_tile,
)
from dynid.dynamics.tree import FREE_ROOT
from dynid.dynamics.vectors import (
    add_cross,
    add_turned,
    dot,
    matrix,
    put,
    times,
    turned,
    turned_back,
    vector,
)
from dynid.kernel_store import njit

TORQUES, INERTIA, PLACES = 0, 1, 2  # selection of the result of `dynamics_kernel`
PLACE_NUMBERS = 12 + AXIS  # pose of a body and axis of its joint


@njit(**PASSING_ON)
def base_rows(gravity):
    """Return the state of the fixed base: identity rotation, no velocity, and an acceleration of minus gravity."""
    base = np.zeros(BODY * TILE)
    for k in (0, 4, 8):
        base[k * TILE:(k + 1) * TILE] = 1.0
    for k in range(3):
        base[(18 + k) * TILE:(19 + k) * TILE] = -gravity[k]
    return base


@njit(**PASSING_ON)
def working_rows(gravity, n):
    """Return the work arrays of a tile: for the base, for one joint, for n bodies and for n joint axes."""
    return base_rows(gravity), np.empty(JOINT * TILE), np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))


@njit(**INNER)
def last_base_row(parent):
    """Return the index of the last coordinate of a free base, whose body is the root link; -1 for a fixed base."""
    return 5 if parent[0] == FREE_ROOT else -1


@njit(**PASSING_ON)
def move_links(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes):
    """Compute the motion of all links and the axes of all joints for the tile of m samples from lo. Empty dq and ddq
    mean zero. The six coordinates of a free base have one link, that of the last coordinate."""
    first = 0
    if parent[0] == FREE_ROOT:
        root_tile(base, q, dq, ddq, lo, m, bodies[5])
        first = 6
    shift = q.shape[1] - dq.shape[1]  # 1 for configurations
    for i in range(first, len(parent)):
        joint_tile(q, i + shift, dq, ddq, i, lo, m, joint)
        body_tile(pose[i], axis[i], joint, base if parent[i] < 0 else bodies[parent[i]], bodies[i], m)
        axis_tile(axis[i], bodies[i], axes[i], m)


@njit(**PASSING_ON)
def move(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes):
    """Compute the motion of links and joint axes, see `move_links`; the axes of a free base are the six unit twists."""
    if parent[0] == FREE_ROOT:
        for i in range(6):
            for k in range(BODY * TILE):
                bodies[i, k] = base[k]
            for k in range(AXIS * TILE):
                axes[i, k] = 0.0
            row = i + 3 if i < 3 else i - 3  # rows of an axis: angular part, then linear part
            for t in range(m):
                axes[i, row * TILE + t] = 1.0
    move_links(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes)


@njit(**OPTIONS)
def regressor_kernel(parent, pose, axis, gravity, q, dq, ddq, bodies, axes, rest, has_zeros, out, origin,
                     start, stop):
    """Compute the regressor of samples start..stop: one row per joint, ten columns per body.

    `out` (samples * n * 10 n,) begins with sample `origin`. It is flat, because code with a reshape could not be stored
    for later processes. bodies (n, BODY * TILE), axes (n, AXIS * TILE) and rest (COLUMNS + TEN) * TILE are work arrays,
    because allocation takes as long as computing a tile. has_zeros: whether structural zeros of the regressor are
    already in `out`.
    """
    n = len(parent)
    base, joint = base_rows(gravity), np.empty(JOINT * TILE)
    columns, ten, width = rest[:COLUMNS * TILE], rest[COLUMNS * TILE:], 10 * n * n
    root = last_base_row(parent)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move_links(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes)
        if not has_zeros:
            # Zeros are written first, so that the scattered writes below hit the cache.
            out[(lo - origin) * width:(lo - origin + m) * width] = 0.0
        for i in range(max(root, 0), n):
            wrench_columns_tile(bodies[i], columns, m)
            at = (lo - origin) * width + 10 * i
            for j in range(3 if root > 0 else 0):
                spread_four(columns, 30 + j, 3, out, at + j * 10 * n + 6, width, m)
                spread_ten(columns, j, 3, out, at + (j + 3) * 10 * n, width, m)
            j = i
            while j > root:
                project_columns_tile(columns, axes[j], ten, m)
                spread_ten(ten, 0, 1, out, at + j * 10 * n, width, m)
                j = parent[j]


@njit(**OPTIONS, is_storable=False)
def regressor_of_one(parent, pose, axis, gravity, q, dq, ddq, out):
    """Compute the regressor (n, 10 n) of one sample q, dq, ddq (n,), n < TILE; return False if a number is not finite.
    The SIMD lanes are bodies instead of samples: lane i is body i, and lane n is the base."""
    n = len(parent)
    for i in range(n):
        if not (math.isfinite(q[i]) and math.isfinite(dq[i]) and math.isfinite(ddq[i])):
            return False
    joints, bodies, ten = np.empty(JOINT * TILE), base_rows(gravity), np.empty(TEN * TILE)
    axes, same, carried = np.empty(AXIS * TILE), np.empty(AXIS * TILE), np.empty(TILE, np.bool_)
    columns = np.empty(COLUMNS * TILE)
    joint_tile(q.reshape(n, 1), 0, dq.reshape(n, 1), ddq.reshape(n, 1), 0, 0, n, joints)
    for i in range(n):
        body_tile(pose[i], axis[i], joints[i:], bodies[parent[i] if parent[i] >= 0 else n:], bodies[i:], 1)
        axis_tile(axis[i], bodies[i:], axes[i:], 1)
    wrench_columns_tile(bodies, columns, n)
    out[:] = 0.0
    for j in range(n):
        for k in range(AXIS):
            for i in range(j, n):
                same[k * TILE + i] = axes[k * TILE + j]
        project_columns_tile(columns[j:], same[j:], ten, n - j)
        for i in range(j, n):
            carried[i] = i == j or (parent[i] >= j and carried[parent[i]])
            if carried[i]:
                for k in range(10):
                    out[j, 10 * i + k] = ten[k * TILE + i - j]
    return True


@njit(**PASSING_ON)
def place_rows(source, first, step, places, start, count, out, lo, m):
    """Copy `count` rows of a tile, `step` rows apart, to the rows places[start..] of `out`; -1: not copied."""
    for k in range(count):
        row = places[start + k]
        if row >= 0:
            copy_row(source, (first + step * k) * TILE, out[row], lo, m)


@njit(**OPTIONS)
def regressor_columns_kernel(parent, pose, axis, gravity, q, dq, ddq, place, out, start, stop):
    """Compute selected entries of the regressor, out (rows, samples); each entry is contiguous over the samples.

    place (n, 10 n): row of `out` for the entry of each joint and parameter, -1 for an entry that is not computed.
    """
    n = len(parent)
    base, joint, bodies, axes = working_rows(gravity, n)
    ten, columns = np.empty(TEN * TILE), np.zeros((COLUMNS + 1) * TILE)  # the last row remains zero
    root = last_base_row(parent)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move_links(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes)
        for i in range(max(root, 0), n):
            wrench_columns_tile(bodies[i], columns, m)
            for j in range(3 if root > 0 else 0):
                for row, first, step, at, count in ((j, COLUMNS, 0, 0, 6), (j, 30 + j, 3, 6, 4), (j + 3, j, 3, 0, 10)):
                    place_rows(columns, first, step, place[row], 10 * i + at, count, out, lo, m)
            j = i
            while j > root:
                project_columns_tile(columns, axes[j], ten, m)
                place_rows(ten, 0, 1, place[j], 10 * i, 10, out, lo, m)
                j = parent[j]


@njit(**PASSING_ON)
def carry(parent, loads, m):
    """Add to the wrench or inertia of each body the wrenches or inertias of all bodies that it carries."""
    for i in range(len(parent) - 1, -1, -1):
        if parent[i] >= 0:
            add_tile(loads[i], loads[parent[i]], m)


@njit(**PASSING_ON)
def carry_wrenches(parent, ten, bodies, wrenches, m):
    """Compute the wrench through every joint: the sum over all bodies that the joint carries."""
    for i in range(len(parent)):
        wrench_tile(ten[i], bodies[i], wrenches[i], m)
    carry(parent, wrenches, m)


@njit(**OPTIONS)
def link_wrenches_kernel(parent, pose, axis, gravity, ten, after, q, dq, ddq, out, start, stop):
    """Compute force and moment through each joint, out (samples, n, 6), in the joint's own frame (z is the axis).

    after (n, 12): pose a, d of the body in the frame of its joint, whose pose in the base is Rj = R a', Pj = P - Rj d.
    """
    n = len(parent)
    base, joint, bodies, axes = working_rows(gravity, n)
    wrenches = np.empty((n, WRENCH * TILE))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes)
        carry_wrenches(parent, ten, bodies, wrenches, m)
        for i in range(n):
            back, here, carried = after[i], bodies[i], wrenches[i]
            turn = (*vector(back, 0, 1), *vector(back, 4, 1), *vector(back, 8, 1))
            offset = turned_back(turn, vector(back, 3, 4))  # a' d
            for t in range(m):
                R, F = matrix(here, t, TILE), vector(carried, t, TILE)
                origin = add_turned(vector(here, 9 * TILE + t, TILE), R, times(-1.0, offset))
                N = add_cross(vector(carried, 3 * TILE + t, TILE), F, origin)
                put(out[lo + t, i], 0, 1, turned(turn, turned_back(R, F)))
                put(out[lo + t, i], 3, 1, turned(turn, turned_back(R, N)))


@njit(**PASSING_ON)
def composite_inertias(parent, ten, bodies, inertias, m):
    """Compute the inertia about the base origin of all bodies that each joint carries."""
    for i in range(len(parent)):
        inertia_tile(ten[i], bodies[i], inertias[i], m)
    carry(parent, inertias, m)


@njit(**PASSING_ON)
def inertia_matrix_tile(parent, ten, bodies, axes, inertias, momentum, row, matrix, m):
    """Compute the inertia matrix (m, n, n) by composite rigid bodies: M_ji is axis j times the momentum of composite i
    for unit velocity of joint i."""
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
def dynamics_kernel(parent, pose, axis, gravity, ten, q, dq, ddq, wanted, out, start, stop):
    """Compute torques, inertia matrices or body poses of the samples, as `wanted` selects (TORQUES, INERTIA, PLACES).
    One kernel computes all three, because the common code for the motion takes most of the compilation time. ten (n,
    10): inertial parameters, which PLACES does not need. dq, ddq: empty for zero. out: flat; torques (samples, n),
    inertia matrices (samples, n, n), or places (samples, n, 18): the pose of the body, row by row, and the axis of the
    joint, in the base frame."""
    n = len(parent)
    base, joint, bodies, axes = working_rows(gravity, n)
    wrenches, momentum = np.empty((n if wanted == TORQUES else 0, WRENCH * TILE)), np.empty(WRENCH * TILE)
    inertias, row = np.empty((n if wanted == INERTIA else 0, TEN * TILE)), np.empty(TILE)
    matrix = np.zeros((TILE if wanted == INERTIA else 0, n, n))
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes)
        if wanted == TORQUES:
            carry_wrenches(parent, ten, bodies, wrenches, m)
            for i in range(n):
                project_tile(wrenches[i], axes[i], row, m)
                for t in range(m):
                    out[(lo + t) * n + i] = row[t]
        elif wanted == INERTIA:
            inertia_matrix_tile(parent, ten, bodies, axes, inertias, momentum, row, matrix, m)
            for t in range(m):
                for i in range(n):
                    for j in range(n):
                        out[((lo + t) * n + i) * n + j] = matrix[t, i, j]
        else:
            for i in range(n):
                for t in range(m):
                    at = ((lo + t) * n + i) * PLACE_NUMBERS
                    for r in range(3):
                        for c in range(3):
                            out[at + 4 * r + c] = bodies[i, (3 * r + c) * TILE + t]
                        out[at + 4 * r + 3] = bodies[i, (9 + r) * TILE + t]
                    for k in range(AXIS):
                        out[at + 12 + k] = axes[i, k * TILE + t]


@njit(**OPTIONS)
def forward_dynamics_kernel(parent, pose, axis, gravity, ten, extra, q, dq, tau, out, start, stop):
    """Compute accelerations, out (samples, n) = (M + extra)^-1 (tau - c - g); extra (n, n): inertia of rotors.

    Returns the first sample whose inertia matrix is singular, or -1.
    """
    n = len(parent)
    base, joint, bodies, axes = working_rows(gravity, n)
    wrenches, row = np.empty((n, WRENCH * TILE)), np.empty(TILE)
    inertias, momentum = np.empty((n, TEN * TILE)), np.empty(WRENCH * TILE)
    matrix, inverse = np.zeros((TILE, n, n)), np.empty(n)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, dq[:0], lo, m, joint, bodies, axes)
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
            if not solve_state(matrix[t], inverse, out[lo + t]):
                return lo + t
            for i in range(n):
                for j in range(i + 1):  # entries of different branches are zero, but their factor was not
                    matrix[t, i, j] = 0.0
    return -1


@njit(**OPTIONS)
def energy_kernel(parent, pose, axis, gravity, ten, q, dq, out, start, stop):
    """Compute out (samples, 2): kinetic and potential energy (zero if all centres of mass are at the base origin).
    Velocities in the base frame add along the tree: V_i = V_p + axis_i dq_i; T = V.momentum / 2, U = -g.H."""
    n = len(parent)
    base, joint, bodies, axes = working_rows(gravity, n)
    inertia, momentum, row = np.empty(TEN * TILE), np.empty(WRENCH * TILE), np.empty(TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, q[:0], q[:0], lo, m, joint, bodies, axes)
        out[lo:lo + m] = 0.0
        for i in range(n):
            for k in range(AXIS):  # from here on, axes[i] contains the velocity of body i
                for t in range(m):
                    axes[i, k * TILE + t] *= dq[lo + t, i]
            if parent[i] >= 0:
                add_tile(axes[parent[i]], axes[i], m)
            inertia_tile(ten[i], bodies[i], inertia, m)
            momentum_tile(inertia, axes[i], momentum, m)
            project_tile(momentum, axes[i], row, m)
            for t in range(m):
                out[lo + t, 0] += 0.5 * row[t]
                out[lo + t, 1] -= dot(vector(gravity, 0, 1), vector(inertia, 6 * TILE + t, TILE))

"""Positions, velocities and accelerations of the joints of closed loops, sample by sample, by Newton's method on the
closure equations of `closures`. `tree` is a `Tree`, `closures` are `Closures`, and `here` are arrays `OnePosture`."""

from __future__ import annotations

import math

import numpy as np

from dynid.dynamics.closures import (
    MOTION,
    ONE_POSTURE,
    bias_lanes,
    closure_jacobian,
    equations_lanes,
    motion_lanes,
    one_posture,
    place_lanes,
    set_joints,
)
from dynid.dynamics.compiled import ALLOCATING, INNER_BORROWING, OPTIONS
from dynid.dynamics.kernels import base_rows, place_rows
from dynid.dynamics.tiles import (
    AXIS,
    BODY,
    COLUMNS,
    JOINT,
    TEN,
    TILE,
    add_tile,
    axis_tile,
    body_tile,
    joint_tile,
    project_columns_tile,
    wrench_columns_tile,
)
from dynid.kernel_store import njit

CLOSED, OPEN, SINGULAR, OTHER_BRANCH = 0, 1, 2, 3
_MAX_NEWTON_STEPS = 20
_NEAR_TOLERANCE = 1e-9  # rad or m: for smaller steps the derivatives are factorised at the posture itself
CONVERGED = 1e-12  # rad or m of a step with these factors; the error afterwards is about its square
_EXACT_TOLERANCE = 1e-14  # the same after a long path, where speed does not matter
_LONG_STEP = 0.02  # rad or m of an independent joint
STAYS_OPEN = 1e-7  # m: with a larger residual, a loop is not closed
LONGEST_STEP = 0.1  # rad or m of an independent joint between two solutions
LARGEST_CORRECTION = 0.3  # rad or m: a larger correction may lead to another branch, so the step is halved
_SHORTEST_SHARE = 1e-4  # of a step: smallest one before the search ends
LEAST_SHARE = 0.4  # smallest ratio of the determinants after and before a step
_MIN_PIVOT_RATIO = 1e-9  # smallest ratio of pivots


@njit(**INNER_BORROWING)
def factor(matrix, order):
    """Compute the LU factors of a matrix in place, with row order `order` and inverse pivots; return the
    determinant."""
    n, determinant, largest = len(matrix), 1.0, 0.0
    for i in range(n):
        order[i] = i
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        size = abs(matrix[pivot, k])
        largest = max(largest, size)
        if not size > _MIN_PIVOT_RATIO * largest:
            return 0.0
        if pivot != k:
            determinant = -determinant
            order[k], order[pivot] = order[pivot], order[k]
            for c in range(n):
                matrix[k, c], matrix[pivot, c] = matrix[pivot, c], matrix[k, c]
        determinant *= matrix[k, k]
        matrix[k, k] = 1.0 / matrix[k, k]
        for i in range(k + 1, n):
            share = matrix[i, k] * matrix[k, k]
            matrix[i, k] = share
            if share != 0.0:  # the matrix is sparse
                for c in range(k + 1, n):
                    matrix[i, c] -= share * matrix[k, c]
    return determinant


@njit(**INNER_BORROWING)
def solve_factored(matrix, order, given, out):
    """Compute the solution out (n,) for the right-hand side `given` (n,) with the factors of `factor`."""
    n = len(matrix)
    for i in range(n):
        out[i] = given[order[i]]
        for c in range(i):
            out[i] -= matrix[i, c] * out[c]
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            out[i] -= matrix[i, c] * out[c]
        out[i] *= matrix[i, i]


@njit(**INNER_BORROWING)
def dependent_slopes(matrix, order, jacobian, chosen, out):
    """Compute the derivatives out (dependent, n) of the dependent coordinates by the independent ones, -Phi_d^-1 Phi_a,
    with the factors of Phi_d."""
    dependent, n = out.shape
    for i in range(dependent):
        for a in range(n):
            out[i, a] = -jacobian[chosen[order[i]], a]
        for c in range(i):
            for a in range(n):
                out[i, a] -= matrix[i, c] * out[c, a]
    for i in range(dependent - 1, -1, -1):
        for c in range(i + 1, dependent):
            for a in range(n):
                out[i, a] -= matrix[i, c] * out[c, a]
        for a in range(n):
            out[i, a] *= matrix[i, i]


@njit(**INNER_BORROWING)
def take_step(square, order, equations, chosen, right, step, z):
    """Correct the dependent coordinates of z (coordinates, 1) by a Newton step with the current factors; return the
    size of the step."""
    n = len(z) - len(chosen)
    for i in range(len(chosen)):
        right[i, 0] = equations[chosen[i], 0]
    solve_factored(square, order, right[:, 0], step)
    size = 0.0
    for c in range(len(chosen)):
        z[n + c, 0] -= step[c]
        size = max(size, abs(step[c]))
    return size


@njit(**INNER_BORROWING)
def factored_here(tree, closures, here, jacobian, square, order):
    """Compute the closure derivatives and factorise those by the dependent coordinates; return the determinant."""
    closure_jacobian(closures, tree.parent, here.bodies, here.equations, jacobian)
    n = jacobian.shape[1] - len(square)
    for i in range(len(square)):
        for c in range(len(square)):
            square[i, c] = jacobian[closures.chosen[i], n + c]
    return factor(square, order)


@njit(**INNER_BORROWING)
def newton(tree, closures, usable, exact, z, here, jacobian, square, order, right, step):
    """Solve the closures for the dependent coordinates of z (coordinates, 1) at fixed independent coordinates; return
    status and determinant.

    exact: largest size of the last step. usable: whether factors of a nearby posture may be used while each step
    reduces the error tenfold, which saves most factorisations. At the end all arrays have the values at the solution.
    """
    last = math.inf
    for _ in range(_MAX_NEWTON_STEPS):
        set_joints(closures, 0, z, here.x, ONE_POSTURE)
        place_lanes(tree, here.x, here.joint, here.bodies, ONE_POSTURE)
        equations_lanes(closures, here.bodies, here.ends, here.equations, ONE_POSTURE)
        fresh, determinant = not usable or last < _NEAR_TOLERANCE, 0.0
        if fresh:
            determinant = factored_here(tree, closures, here, jacobian, square, order)
            if determinant == 0.0:
                return SINGULAR, 0.0
        size, before = take_step(square, order, here.equations, closures.chosen, right, step, z), last
        if not size < 1e3:
            return OPEN, 0.0
        if fresh and (size < exact or 0.1 * before < size < CONVERGED):  # or limited by rounding
            set_joints(closures, len(z) - len(step), z, here.x, ONE_POSTURE)
            for e in range(len(here.equations)):  # redundant equations must be satisfied too
                if abs(here.equations[e, 0]) > STAYS_OPEN:
                    return OPEN, 0.0
            return CLOSED, determinant
        usable = size < 0.1 * last
        last = size
    return OPEN, 0.0


@njit(**ALLOCATING, is_storable=False)
def close_kernel(tree, closures, start, q, dq, ddq, samples, motion, rates, status, reached):
    """Compute the motion (3, samples, joints of the tree) of all joints from positions, velocities and accelerations q,
    dq, ddq (samples, n) of the independent joints.

    rates (samples, joints of the tree, n): derivatives by the n independent coordinates; status (samples,). samples:
    indices to solve, in this order. start (coordinates + 1,): coordinates and determinant of a closed posture. Each
    sample starts from the previous one, in steps within the convergence range of Newton's method, or from `start` if
    that fails. reached (coordinates + 1,): coordinates and determinant of the last solution.
    """
    n, joints, dependent, coordinates = q.shape[1], len(tree.parent), len(closures.chosen), len(start) - 1
    z, trial, here = start[:-1].copy(), np.empty((coordinates, 1)), one_posture(closures)
    jacobian, square = np.empty((len(here.equations), coordinates)), np.empty((dependent, dependent))
    order, right, step = np.empty(dependent, np.int64), np.empty((dependent, 1)), np.empty(dependent)
    slope, fresh = np.zeros((dependent, n)), True  # of the dependent coordinates: now and at two previous solutions
    before, earlier = np.zeros((dependent, n)), np.zeros((dependent, n))
    motions, velocity, guess = np.zeros((joints + 1, MOTION)), np.empty(joints), np.empty(dependent)
    last = start[-1]
    for t in samples:
        how, first, determinant = OPEN, fresh, last
        for again in range(2):
            if again and (first or how == CLOSED):
                break
            if fresh:
                z[:] = start[:-1]
                slope[:] = 0.0
                before[:] = 0.0
                earlier[:] = 0.0
                determinant = start[-1]
            share, done = 1.0, 0.0  # of the path to the sample: next step, and completed part
            while done < 1.0:
                longest = 0.0
                for a in range(n):
                    longest = max(longest, abs(q[t, a] - z[a]))
                portion = min(1.0, share / (1.0 - done), LONGEST_STEP / longest if longest > 0.0 else 1.0)
                trial[:, 0] = z
                for a in range(n):
                    moved = portion * (q[t, a] - z[a])
                    trial[a, 0] = q[t, a] if portion == 1.0 else z[a] + moved
                    for c in range(dependent):  # derivatives are extrapolated (Adams-Bashforth)
                        share_of_slopes = 23.0 * slope[c, a] - 16.0 * before[c, a] + 5.0 * earlier[c, a]
                        trial[n + c, 0] += share_of_slopes / 12.0 * moved
                guess[:] = trial[n:, 0]
                exact = _EXACT_TOLERANCE if longest > _LONG_STEP else CONVERGED
                how, found = newton(tree, closures, not fresh, exact, trial, here, jacobian, square, order, right, step)
                correction = 0.0
                for c in range(dependent):
                    correction = max(correction, abs(trial[n + c, 0] - guess[c]))
                # Branches meet where the determinant is zero: no step goes more than half of the way to such a posture.
                if how != CLOSED or correction > LARGEST_CORRECTION or found / determinant < LEAST_SHARE:
                    how = OTHER_BRANCH if how == CLOSED else how
                    fresh, share = True, 0.5 * portion * (1.0 - done)
                    if share < _SHORTEST_SHARE:
                        break
                    continue
                done = 1.0 if portion == 1.0 else done + portion * (1.0 - done)
                share = 2.0 * share
                z[:], determinant = trial[:, 0], found
                earlier[:] = before
                before[:] = slope
                dependent_slopes(square, order, jacobian, closures.chosen, slope)
                if fresh:
                    before[:] = slope
                    earlier[:] = slope
                fresh = False
        status[t], fresh, last = how, how != CLOSED, determinant
        if fresh:
            motion[:, t] = math.nan
            rates[t] = math.nan
            continue
        reached[:-1] = z
        reached[-1] = determinant
        write_motion(tree, closures, here, slope, dq[t], ddq[t], velocity, motions, square, order, right, step,
                     motion[:, t], rates[t])


@njit(**INNER_BORROWING)
def write_motion(tree, closures, here, slope, dq, ddq, velocity, motions, square, order, right, step, motion, rates):
    """Compute positions, velocities and accelerations `motion` (3, joints) of all joints of the tree for one sample,
    and the derivatives `rates` (joints, n) of the positions by the independent coordinates."""
    joints, n = rates.shape
    for j in range(joints):
        z, ratio, velocity[j] = closures.source[j], closures.ratio[j], 0.0
        for a in range(n):
            rates[j, a] = 0.0 if z < 0 else ratio * slope[z - n, a] if z >= n else ratio if z == a else 0.0
            velocity[j] += rates[j, a] * dq[a]
        motion[0, j], motion[1, j] = here.x[j, 0], velocity[j]
    for i in range(joints):
        motion_lanes(here.bodies[i], velocity[i:i + 1], motions[tree.parent[i]], motions[i], ONE_POSTURE)
    bias_lanes(closures, 0, here.equations, here.ends, motions, right, ONE_POSTURE)
    # Phi_d ddz_d = -(Phi_a ddz_a + bias); the slopes already contain the first part.
    solve_factored(square, order, right[:, 0], step)
    for j in range(joints):
        acceleration = 0.0
        for a in range(n):
            acceleration += rates[j, a] * ddq[a]
        if closures.source[j] >= n:
            acceleration -= closures.ratio[j] * step[closures.source[j] - n]
        motion[2, j] = acceleration


@njit(**INNER_BORROWING)
def twist_tile(rates, i, a, lo, m, own, rate, twist):
    """Add the contribution of joint i to the twist (6 rows) of a body for unit velocity of coordinate a: the joint's
    axis `own` times its derivative by a. rate (TILE,): work space."""
    for t in range(m):
        rate[t] = rates[lo + t, i, a]
    for x in range(AXIS):
        for t in range(m):
            twist[x * TILE + t] = own[x * TILE + t] * rate[t]


@njit(**OPTIONS)
def closed_columns_kernel(parent, pose, axis, gravity, q, dq, ddq, rates, moves, shown, place, out, start, stop):
    """Compute selected entries of the regressor of a robot with closed loops: out (rows, samples).

    q, dq, ddq (samples, joints of the tree); rates (samples, joints, n): derivatives by the coordinates; moves (joints,
    n): mask of nonzero derivatives; place (n, 10 bodies): row of each entry, -1 for none; shown (n, bodies): mask of
    requested bodies. A body contributes to a torque the power of its wrench for unit velocity of the coordinate (Kane).
    """
    n, joints = rates.shape[2], len(parent)
    base, joint, bodies = base_rows(gravity), np.empty(JOINT * TILE), np.empty((joints, BODY * TILE))
    own, twists, ten = np.empty(AXIS * TILE), np.zeros((n, joints, AXIS * TILE)), np.empty(TEN * TILE)
    rate, columns = np.empty(TILE), np.empty(COLUMNS * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        for i in range(joints):
            joint_tile(q, i, dq, ddq, i, lo, m, joint)
            body_tile(pose[i], axis[i], joint, base if parent[i] < 0 else bodies[parent[i]], bodies[i], m)
            axis_tile(axis[i], bodies[i], own, m)
            if shown[:, i].any():
                wrench_columns_tile(bodies[i], columns, m)
            for a in range(n):
                twist = twists[a, i]
                if moves[i, a]:
                    twist_tile(rates, i, a, lo, m, own, rate, twist)
                else:
                    twist[:] = 0.0
                if parent[i] >= 0:
                    add_tile(twists[a, parent[i]], twist, m)
                if shown[a, i]:
                    project_columns_tile(columns, twist, ten, m)
                    place_rows(ten, 0, 1, place[a], 10 * i, 10, out, lo, m)

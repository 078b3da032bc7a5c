"""Positions, velocities and accelerations of the joints of closed loops, sample by sample, by Newton's method on the
closure equations of `closures`."""

from __future__ import annotations

import math

import numpy as np

from dynid.dynamics.closures import closure_bias, closure_jacobian, closure_size, equation_count, place_closures
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
from dynid.dynamics.vectors import cross, vector
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
    """Compute out (dependent, n) = -Phi_d^-1 Phi_a: derivatives of the dependent coordinates by the
    independent ones."""
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
def take_step(square, order, phi, chosen, right, step, z, n):
    """Correct the dependent coordinates of z by a Newton step with the current factors; return the size of the step."""
    for i in range(len(chosen)):
        right[i] = phi[chosen[i]]
    solve_factored(square, order, right, step)
    size = 0.0
    for c in range(len(chosen)):
        z[n + c] -= step[c]
        size = max(size, abs(step[c]))
    return size


@njit(**INNER_BORROWING)
def factored_here(kinds, bodies, parent, wrenches, S, source, ratio, chosen, n, jacobian, square, order):
    """Compute the closure derivatives and factorise those by the dependent coordinates; return the determinant."""
    closure_jacobian(kinds, bodies, parent, wrenches, S, source, ratio, jacobian)
    for i in range(len(chosen)):
        for c in range(len(chosen)):
            square[i, c] = jacobian[chosen[i], n + c]
    return factor(square, order)


@njit(**INNER_BORROWING)
def newton(parent, pose, axis, kinds, bodies, places, lengths, source, ratio, offset, chosen, n, usable, exact, z,
           q, R, P, S, phi, wrenches, ends, jacobian, square, order, right, step):
    """Solve the closures for the dependent coordinates of z, with the first n fixed; return status and determinant.

    exact: largest size of the last step. usable: factors of a nearby posture are used as long as each step reduces the
    error tenfold, which saves most factorisations. At the end all arrays are those of the solution.
    """
    last = math.inf
    for _ in range(_MAX_NEWTON_STEPS):
        place_closures(parent, pose, axis, kinds, bodies, places, lengths, source, ratio, offset, z, q, R, P, S, phi,
                       wrenches, ends)
        fresh, determinant = not usable or last < _NEAR_TOLERANCE, 0.0
        if fresh:
            determinant = factored_here(kinds, bodies, parent, wrenches, S, source, ratio, chosen, n, jacobian, square,
                                        order)
            if determinant == 0.0:
                return SINGULAR, 0.0
        size, before = take_step(square, order, phi, chosen, right, step, z, n), last
        if not size < 1e3:
            return OPEN, 0.0
        if fresh and (size < exact or 0.1 * before < size < CONVERGED):  # or limited by rounding
            for j in range(len(q)):
                if source[j] >= n:
                    q[j] = offset[j] + ratio[j] * z[source[j]]
            for e in range(len(phi)):  # redundant equations must be satisfied too
                if abs(phi[e]) > STAYS_OPEN:
                    return OPEN, 0.0
            return CLOSED, determinant
        usable = size < 0.1 * last
        last = size
    return OPEN, 0.0


@njit(**ALLOCATING, is_storable=False)
def close_kernel(parent, pose, axis, kinds, bodies, places, lengths, source, ratio, offset, chosen, begin, branch, q,
                 dq, ddq, samples, motion, rates, status, reached):
    """Compute the motion (3, samples, joints of the tree) of all joints from positions, velocities and accelerations q,
    dq, ddq (samples, n) of the independent joints.

    rates (samples, joints of the tree, n): derivatives by the n independent coordinates; status (samples,). samples:
    indices to solve, in this order. begin (coordinates,): a closed posture; branch: its determinant. Each sample starts
    from the previous one, in steps within the convergence range of Newton's method, or from `begin` if that fails.
    reached (coordinates + 1,): coordinates and determinant of the last solution.
    """
    n, joints, m = q.shape[1], len(parent), len(kinds)
    dependent, coordinates = len(chosen), len(begin)
    equations = equation_count(kinds)
    z, trial, full = begin.copy(), begin.copy(), np.empty(joints)
    R, P, S = np.empty((joints, 9)), np.empty((joints, 3)), np.empty((joints, 6))
    phi, wrenches, ends = np.empty(equations), np.empty((equations, 6)), np.empty((m, 24))
    jacobian, square = np.empty((equations, coordinates)), np.empty((dependent, dependent))
    order, right, step = np.empty(dependent, np.int64), np.empty(dependent), np.empty(dependent)
    slope, fresh = np.zeros((dependent, n)), True  # of the dependent coordinates: now and at two previous solutions
    before, earlier = np.zeros((dependent, n)), np.zeros((dependent, n))
    V, A, guess = np.zeros((joints + 1, 6)), np.zeros((joints + 1, 6)), np.empty(dependent)
    last = branch
    for t in samples:
        how, first, determinant = OPEN, fresh, last
        for again in range(2):
            if again and (first or how == CLOSED):
                break
            if fresh:
                z[:] = begin
                slope[:] = 0.0
                before[:] = 0.0
                earlier[:] = 0.0
                determinant = branch
            share, done = 1.0, 0.0  # of the path to the sample: next step, and completed part
            while done < 1.0:
                longest = 0.0
                for a in range(n):
                    longest = max(longest, abs(q[t, a] - z[a]))
                portion = min(1.0, share / (1.0 - done), LONGEST_STEP / longest if longest > 0.0 else 1.0)
                trial[:] = z
                for a in range(n):
                    moved = portion * (q[t, a] - z[a])
                    trial[a] = q[t, a] if portion == 1.0 else z[a] + moved
                    for c in range(dependent):  # derivatives are extrapolated (Adams-Bashforth)
                        trial[n + c] += (23.0 * slope[c, a] - 16.0 * before[c, a] + 5.0 * earlier[c, a]) / 12.0 * moved
                guess[:] = trial[n:]
                exact = _EXACT_TOLERANCE if longest > _LONG_STEP else CONVERGED
                how, found = newton(parent, pose, axis, kinds, bodies, places, lengths, source, ratio, offset, chosen,
                                    n, not fresh, exact, trial, full, R, P, S, phi, wrenches, ends, jacobian, square,
                                    order, right, step)
                correction = 0.0
                for c in range(dependent):
                    correction = max(correction, abs(trial[n + c] - guess[c]))
                # Branches meet where the determinant is zero: no step goes more than half of the way to such a posture.
                if how != CLOSED or correction > LARGEST_CORRECTION or found / determinant < LEAST_SHARE:
                    how = OTHER_BRANCH if how == CLOSED else how
                    fresh, share = True, 0.5 * portion * (1.0 - done)
                    if share < _SHORTEST_SHARE:
                        break
                    continue
                done = 1.0 if portion == 1.0 else done + portion * (1.0 - done)
                share = 2.0 * share
                z[:], determinant = trial, found
                earlier[:] = before
                before[:] = slope
                dependent_slopes(square, order, jacobian, chosen, slope)
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
        write_motion(parent, kinds, chosen, source, ratio, n, full, slope, dq[t], ddq[t], S, V, A, wrenches, ends,
                     lengths, bodies, square, order, right, step, motion[:, t], rates[t])


@njit(**INNER_BORROWING)
def write_motion(parent, kinds, chosen, source, ratio, n, q, slope, dq, ddq, S, V, A, wrenches, ends, lengths, bodies,
                 square, order, right, step, motion, rates):
    """Compute positions, velocities and accelerations `motion` (3, joints) of all joints of the tree for one sample,
    and the derivatives `rates` (joints, n) of the positions by the independent coordinates."""
    joints, dependent = len(parent), len(chosen)
    for j in range(joints):
        velocity, z = 0.0, source[j]
        for a in range(n):
            rates[j, a] = (0.0 if z < 0 else ratio[j] * slope[z - n, a] if z >= n else ratio[j] if z == a else 0.0)
            velocity += rates[j, a] * dq[a]
        motion[0, j], motion[1, j] = q[j], velocity
    # Twists, and their rates without acceleration of the coordinates: dS/dt = V_parent x S.
    for i in range(joints):
        s, v, d = vector(S[i], 0, 1), vector(S[i], 3, 1), motion[1, i]
        for x in range(6):
            V[i, x] = V[parent[i], x] + S[i, x] * d  # the base is last, with zeros
            A[i, x] = A[parent[i], x]
        w, u = vector(V[i], 0, 1), vector(V[i], 3, 1)
        turn, across, along = cross(w, s), cross(w, v), cross(u, s)
        for x in range(3):
            A[i, x] += turn[x] * d
            A[i, 3 + x] += (across[x] + along[x]) * d
    row, c = 0, 0
    for k in range(len(kinds)):
        for e in range(closure_size(kinds[k])):
            if c < dependent and chosen[c] == row:  # in ascending order
                right[c] = closure_bias(kinds[k], e, bodies[k], wrenches[row], ends[k], lengths[k], V, A)
                c += 1
            row += 1
    # Phi_d ddz_d = -(Phi_a ddz_a + bias); the slopes already contain the first part.
    solve_factored(square, order, right, step)
    for j in range(joints):
        acceleration = 0.0
        for a in range(n):
            acceleration += rates[j, a] * ddq[a]
        if source[j] >= n:
            acceleration -= ratio[j] * step[source[j] - n]
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

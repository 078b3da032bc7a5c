"""Motion of the joints of closed loops over many samples: LANES pieces of the motion are solved in parallel. Newton's
method starts each sample from the previous one. Difficult samples are solved by `loop_kernels`.

tree is a `Tree`, closures are `Closures`, plan is an `Elimination`; each array row has one number per lane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array, Bools
from dynid.dynamics.closures import (
    END,
    EQUATION,
    FRAME,
    LANES,
    MANY_POSTURES,
    MOTION,
    bias_lanes,
    equation_count,
    equations_lanes,
    motion_lanes,
    place_lanes,
    rate_lanes,
    set_joints,
)
from dynid.dynamics.compiled import INNER, INNER_BORROWING, OPTIONS
from dynid.dynamics.elimination import INVERT, MULTIPLY
from dynid.dynamics.loop_kernels import CLOSED, CONVERGED, LARGEST_CORRECTION, LEAST_SHARE, LONGEST_STEP, STAYS_OPEN
from dynid.kernel_store import njit

_MAX_NEWTON_PASSES = 5
_ON_THE_WAY = 1e-5  # rad or m of a Newton step at intermediate postures
_LARGEST_MULTIPLIER = 1e4  # of an elimination whose pivot order was chosen in another posture


class Work(NamedTuple):
    """Work arrays for LANES parallel postures; arrays not listed here: see `closures`.

    Attributes:
        z, before: coordinates of the current and the previous step (coordinates, LANES).
        target: targets of the independent coordinates (n, LANES).
        x, velocity, acceleration: motion of all joints (joints, LANES).
        slopes: derivatives of dependent coordinates at the current and the previous step (2, dependent, n LANES).
        guess: prediction of the dependent coordinates (dependent, LANES).
        corrections: errors of the prediction at the last three steps (3, dependent, LANES).
        size, growth: last Newton step and largest multiplier (LANES,).
        inverse, found, spare: inverse determinants at the previous and the current step, and work space (LANES,).
        walking: mask of active lanes (LANES,).
    """

    z: Array
    before: Array
    target: Array
    x: Array
    velocity: Array
    acceleration: Array
    slopes: Array
    guess: Array
    corrections: Array
    size: Array
    growth: Array
    inverse: Array
    found: Array
    spare: Array
    walking: Bools
    joint: Array
    bodies: Array
    motions: Array
    ends: Array
    equations: Array
    store: Array
    sides: Array


@njit(**INNER)
def working_space(joints, coordinates, n, closures, equations, rows):
    """Return the work arrays for parallel closure solutions, with the rows of the base initialised."""
    dependent = coordinates - n
    bodies = np.zeros((joints + 1, FRAME * LANES))
    for k in (0, 4, 8):
        bodies[joints, k * LANES:(k + 1) * LANES] = 1.0
    of_lanes, of_joints = np.zeros((5, LANES)), np.zeros((3, joints, LANES))
    return Work(np.zeros((coordinates, LANES)), np.zeros((coordinates, LANES)), np.zeros((n, LANES)), of_joints[0],
                of_joints[1], of_joints[2], np.zeros((2, dependent, n * LANES)), np.zeros((dependent, LANES)),
                np.zeros((3, dependent, LANES)), of_lanes[0], of_lanes[1], of_lanes[2], of_lanes[3], of_lanes[4],
                np.ones(LANES, np.bool_), np.zeros(3 * LANES), bodies, np.zeros((joints + 1, MOTION * LANES)),
                np.zeros((closures, 2, END * LANES)), np.zeros((equations, EQUATION * LANES)), np.zeros((rows, LANES)),
                np.zeros((dependent, (n + 1) * LANES)))


@njit(**OPTIONS, is_storable=False)
def solve_closures_batch(tree, closures, plan, origin, cuts, q, dq, ddq, motion, rates, status):
    """Compute motion, derivatives and status, see `close_kernel`, for samples cuts[t] .. cuts[t + 1] - 1 of every lane
    t.

    All lanes start from the known solution of sample `origin`. The result is the first unsolved sample of every lane.
    """
    n, joints = q.shape[1], len(tree.parent)
    work = working_space(joints, len(closures.begin), n, len(closures.kinds), equation_count(closures.kinds), plan.rows)
    for j in range(joints):
        work.x[j] = closures.offset[j]
        if closures.source[j] >= 0:
            work.z[closures.source[j]] = (motion[0, origin, j] - closures.offset[j]) / closures.ratio[j]
    linearise(tree, closures, plan, work)
    slope_rows(plan, work, work.slopes[0])
    work.slopes[1] = work.slopes[0]
    inverse_determinants(plan, work.store, work.inverse)
    done, at = cuts[:-1].copy(), cuts[:-1].copy()
    longest = 0.0
    for t in range(LANES):
        for a in range(n):
            longest = max(longest, abs(q[cuts[t], a] - q[origin, a]))
    steps = math.ceil(longest / LONGEST_STEP)
    for k in range(1, steps + 1):
        for t in range(LANES):
            for a in range(n):
                work.target[a, t] = q[origin, a] + k / steps * (q[cuts[t], a] - q[origin, a])
        advance(tree, closures, plan, k, _ON_THE_WAY, work)
    for k in range(np.max(cuts[1:] - cuts[:-1])):
        for t in range(LANES):
            work.walking[t] = work.walking[t] and cuts[t] + k < cuts[t + 1]
            at[t] = min(cuts[t] + k, cuts[t + 1] - 1)
        gather(q, at, work.target)
        advance(tree, closures, plan, k, CONVERGED, work)
        if not work.walking.any():
            break
        gather(dq, at, work.target)
        velocities(closures, work.slopes[k % 2], work.target, work.velocity)
        gather(ddq, at, work.target)
        velocities(closures, work.slopes[k % 2], work.target, work.acceleration)
        add_bias(tree, closures, plan, work)
        write_lanes(closures, at, work, work.slopes[k % 2], motion, rates, status)
        for t in range(LANES):
            done[t] += work.walking[t]
    return done


@njit(**INNER_BORROWING)
def advance(tree, closures, plan, k, exact, work):
    """Solve the closures of all lanes at the targets of step k by Newton's method, until steps are below `exact`."""
    for c in range(len(work.z)):
        to, row = work.before[c], work.z[c]
        for t in range(LANES):
            to[t] = row[t]
    predict(k, work)
    work.growth[:] = 0.0
    for _ in range(_MAX_NEWTON_PASSES):
        linearise(tree, closures, plan, work)
        if newton_step(closures, plan, work) < exact:
            break
    dependent = len(work.guess)
    n = len(work.z) - dependent
    for c in range(dependent):
        to, here, there = work.corrections[k % 3, c], work.z[n + c], work.guess[c]
        for t in range(LANES):
            to[t] = here[t] - there[t]
    inverse_determinants(plan, work.store, work.found)
    judge(k, exact, work)
    for t in range(LANES):
        work.inverse[t] = work.found[t]
    slope_rows(plan, work, work.slopes[k % 2])


@njit(**INNER_BORROWING)
def linearise(tree, closures, plan, work):
    """Compute body poses and closure equations, and factorise the derivatives of these equations."""
    set_joints(closures, 0, work.z, work.x, MANY_POSTURES)
    place_lanes(tree, work.x, work.joint, work.bodies, MANY_POSTURES)
    equations_lanes(closures, work.bodies, work.ends, work.equations, MANY_POSTURES)
    rates_lanes(plan.terms, plan.shares, work.equations, work.bodies, work.store, work.sides)
    factor_lanes(plan.factor, work.store, work.growth)


@njit(**INNER_BORROWING)
def rates_lanes(terms, shares, equations, bodies, store, sides):
    """Compute the derivatives of the closure equations by dependent (Phi_d) and independent coordinates (Phi_a).

    Phi_d is written to the store (rows, LANES) of an `Elimination`, Phi_a to its right-hand sides (dependent, (n + 1)
    LANES); all other entries are zero.
    """
    store[:] = 0.0
    sides[:] = 0.0
    rows, flat = len(store), sides.reshape(-1)
    for k in range(len(terms)):
        at = terms[k, 2]
        out = store[at] if at < rows else flat[(at - rows) * LANES:(at - rows + 1) * LANES]
        rate_lanes(equations[terms[k, 0]], bodies[terms[k, 1]], shares[k], out, MANY_POSTURES)


@njit(**INNER_BORROWING)
def factor_lanes(steps, store, growth):
    """Factorise Phi_d in the store of an `Elimination`; growth (LANES,) is updated with the largest multiplier."""
    for k in range(len(steps)):
        kind, to, left = steps[k, 0], store[steps[k, 1]], store[steps[k, 2]]
        if kind == INVERT:
            for t in range(LANES):
                to[t] = 1.0 / to[t]
        elif kind == MULTIPLY:
            for t in range(LANES):
                to[t] *= left[t]
                growth[t] = max(growth[t], abs(to[t]))
        else:
            right = store[steps[k, 3]]
            for t in range(LANES):
                to[t] -= left[t] * right[t]


@njit(**INNER_BORROWING)
def solve_lanes(steps, store, sides, first, stop):
    """Solve the factorised equations for columns first .. stop - 1; the solution replaces the right-hand sides."""
    for k in range(len(steps)):
        to, multiplier = sides[steps[k, 0]], store[steps[k, 1]]
        if steps[k, 2] < 0:
            for a in range(first, stop):
                for t in range(LANES):
                    to[a * LANES + t] *= multiplier[t]
        else:
            other = sides[steps[k, 2]]
            for a in range(first, stop):
                for t in range(LANES):
                    to[a * LANES + t] -= multiplier[t] * other[a * LANES + t]


@njit(**INNER_BORROWING)
def newton_step(closures, plan, work):
    """Make a Newton step in the dependent coordinates and all joints. Returns the largest step of the active lanes."""
    dependent, sides, size = len(work.sides), work.sides, work.size
    n = len(work.z) - dependent
    for c in range(dependent):
        row, equation = sides[c, n * LANES:], work.equations[closures.chosen[c]]
        for t in range(LANES):
            row[t] = equation[t]
    solve_lanes(plan.sides, work.store, sides, n, n + 1)
    size[:] = 0.0
    for c in range(dependent):
        row, to = sides[plan.solved[c], n * LANES:], work.z[n + c]
        for t in range(LANES):
            to[t] -= row[t]
            size[t] = max(size[t], abs(row[t]))
    set_joints(closures, n, work.z, work.x, MANY_POSTURES)
    largest = 0.0
    for t in range(LANES):
        if work.walking[t] and size[t] > largest:  # NaN is detected by `judge`
            largest = size[t]
    return largest


@njit(**INNER_BORROWING)
def slope_rows(plan, work, out):
    """Compute the derivatives out (dependent, n LANES) of the dependent coordinates by the independent coordinates."""
    width, sides = out.shape[1], work.sides
    solve_lanes(plan.sides, work.store, sides, 0, width // LANES)
    for c in range(len(out)):
        row, to = sides[plan.solved[c]], out[c]
        for t in range(width):
            to[t] = -row[t]


@njit(**INNER_BORROWING)
def inverse_determinants(plan, store, out):
    """Compute the inverse determinant of the closure derivatives by the dependent coordinates (Phi_d), for every
    lane."""
    out[:] = plan.sign
    for pivot in plan.pivots:
        for t in range(LANES):
            out[t] *= store[pivot, t]


@njit(**INNER_BORROWING)
def predict(k, work):
    """Predict the coordinates at the targets of step k. Derivatives are extrapolated linearly (Adams-Bashforth).
    Prediction errors of the last three steps are extrapolated by a parabola."""
    n, dependent, guess = len(work.target), len(work.guess), work.guess
    new, old = work.slopes[(k - 1) % 2], work.slopes[k % 2]
    last, middle, first = work.corrections[(k - 1) % 3], work.corrections[(k - 2) % 3], work.corrections[k % 3]
    one = 3.0 if k > 4 else 2.0 if k == 4 else 1.0 if k == 3 else 0.0  # the first two steps have no previous slope
    two, three = -3.0 if k > 4 else -1.0 if k == 4 else 0.0, 1.0 if k > 4 else 0.0
    for c in range(dependent):
        to, row = guess[c], work.before[n + c]
        for t in range(LANES):
            to[t] = row[t]
    for a in range(n):
        moved, own, target, row = work.spare, work.z[a], work.target[a], work.before[a]
        for t in range(LANES):
            own[t] = target[t]
            moved[t] = target[t] - row[t]
        for c in range(dependent):
            to, here, there = guess[c], new[c, a * LANES:], old[c, a * LANES:]
            for t in range(LANES):
                to[t] += (1.5 * here[t] - 0.5 * there[t]) * moved[t]
    for c in range(dependent):
        to, row, x, y, w = work.z[n + c], guess[c], last[c], middle[c], first[c]
        for t in range(LANES):
            to[t] = row[t] + one * x[t] + two * y[t] + three * w[t]


@njit(**INNER_BORROWING)
def judge(k, exact, work):
    """Stop lanes whose last step was long, whose Newton iteration did not converge, or that approach a singular
    posture. Their samples are solved one by one by `loop_kernels`."""
    excess, n = work.spare, len(work.target)
    excess[:] = 0.0
    for a in range(n):
        here, there = work.z[a], work.before[a]
        for t in range(LANES):
            excess[t] = max(excess[t], abs(here[t] - there[t]) / (1.001 * LONGEST_STEP))
    for c in range(len(work.guess)):
        row = work.corrections[k % 3, c]
        for t in range(LANES):
            excess[t] = max(excess[t], abs(row[t]) / LARGEST_CORRECTION)
    for e in range(len(work.equations)):
        row = work.equations[e]
        for t in range(LANES):
            excess[t] = max(excess[t], abs(row[t]) / max(STAYS_OPEN, exact))
    for t in range(LANES):
        work.walking[t] = (work.walking[t] and excess[t] <= 1.0 and work.size[t] < exact
                           and work.growth[t] < _LARGEST_MULTIPLIER
                           and work.inverse[t] / work.found[t] >= LEAST_SHARE and math.isfinite(work.found[t]))


@njit(**INNER_BORROWING)
def gather(signal, at, out):
    """Copy samples `at` of a signal (samples, n) into out (n, LANES)."""
    for t in range(LANES):
        for a in range(len(out)):
            out[a, t] = signal[at[t], a]


@njit(**INNER_BORROWING)
def velocities(closures, slope, own, out):
    """Compute the velocities of all joints, out (joints, LANES), from those of the independent joints (n, LANES).
    Accelerations as input give the accelerations of all joints without their velocity-dependent part."""
    n = len(own)
    for j in range(len(out)):
        c, ratio, to = closures.source[j], closures.ratio[j], out[j]
        if c < 0:
            for t in range(LANES):
                to[t] = 0.0
        elif c < n:
            given = own[c]
            for t in range(LANES):
                to[t] = ratio * given[t]
        else:
            for a in range(n):
                row, given, kept = slope[c - n, a * LANES:], own[a], 0.0 if a == 0 else 1.0
                for t in range(LANES):
                    to[t] = kept * to[t] + ratio * row[t] * given[t]


@njit(**INNER_BORROWING)
def add_bias(tree, closures, plan, work):
    """Add the velocity-dependent part to the accelerations: Phi_d ddz_d = -(Phi_a ddz_a + bias)."""
    n = len(work.target)
    for i in range(len(tree.parent)):
        motion_lanes(work.bodies[i], work.velocity[i], work.motions[tree.parent[i]], work.motions[i], MANY_POSTURES)
    bias_lanes(closures, n, work.equations, work.ends, work.motions, work.sides, MANY_POSTURES)
    solve_lanes(plan.sides, work.store, work.sides, n, n + 1)
    for j in range(len(work.acceleration)):
        c, ratio, to = closures.source[j] - n, closures.ratio[j], work.acceleration[j]
        if c >= 0:
            row = work.sides[plan.solved[c], n * LANES:]
            for t in range(LANES):
                to[t] -= ratio * row[t]


@njit(**INNER_BORROWING)
def write_lanes(closures, at, work, slope, motion, rates, status):
    """Write the motion of all joints and its derivatives to samples `at` of the active lanes."""
    n = rates.shape[2]
    for t in range(LANES):
        if not work.walking[t]:
            continue
        s = at[t]
        status[s] = CLOSED
        for j in range(len(work.x)):
            c, ratio = closures.source[j], closures.ratio[j]
            motion[0, s, j], motion[1, s, j] = work.x[j, t], work.velocity[j, t]
            motion[2, s, j] = work.acceleration[j, t]
            for a in range(n):
                rates[s, j, a] = ratio * slope[c - n, a * LANES + t] if c >= n else ratio if c == a else 0.0

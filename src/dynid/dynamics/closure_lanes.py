"""Loop closures at LANES postures in parallel by SIMD; `closures` has the same functions for one posture.

Every quantity is a row of LANES numbers in a flat array: row k of posture t is at [k LANES + t]. Rows of a body (18):
rotation R 0..8, origin P 9..11, axis of its joint S 12..17, all in the base frame; rows of the base follow the last
body. Rows of the motion of a body (12): its twist V 0..5, and the time derivative of the twist for constant rates of
the coordinates 6..11. Rows of an equation (7): its value, and its wrench.
"""

from __future__ import annotations

import math

from dynid.dynamics.bodies import axis_in_base, placed, pose_in_parent
from dynid.dynamics.closures import POINT, ROD, aligned, closure_size
from dynid.dynamics.compiled import INLINED, INNER_BORROWING
from dynid.dynamics.elimination import INVERT, MULTIPLY
from dynid.dynamics.tiles import EXACT_ANGLE, cos_sin
from dynid.dynamics.vectors import (
    add,
    add_cross,
    add_times,
    add_turned,
    cross,
    dot,
    matrix,
    put,
    put_matrix,
    subtract,
    times,
    vector,
)
from dynid.kernel_store import njit

LANES = 16
FRAME, MOTION, EQUATION, END = 18, 12, 7, 12


@njit(**INNER_BORROWING)
def turns_lanes(x, joint, lanes):
    """Compute the rows of a joint (3), cosine, sine and value of its position, from positions x (LANES,).

    lanes: LANES as a run-time number, because the compiler would otherwise unroll this loop instead of vectorising it.
    """
    largest = 0.0
    for t in range(lanes):
        joint[2 * LANES + t] = x[t]
        largest = max(largest, abs(x[t]))
    if not largest <= EXACT_ANGLE:
        for t in range(lanes):
            joint[t], joint[LANES + t] = math.cos(x[t]), math.sin(x[t])
        return
    for t in range(lanes):
        joint[t], joint[LANES + t] = cos_sin(joint[2 * LANES + t])


@njit(**INNER_BORROWING)
def frame_lanes(pose, axis, joint, up, here):
    """Compute frame and axis of a body from its parent's frame and its joint."""
    s, v = vector(axis, 0, 1), vector(axis, 3, 1)
    for t in range(LANES):
        r, p = pose_in_parent(pose, 0, 1, joint[t], joint[LANES + t], joint[2 * LANES + t])
        R, P = placed(matrix(up, t, LANES), vector(up, 9 * LANES + t, LANES), r, p)
        S, V = axis_in_base(R, P, s, v)
        put_matrix(here, t, LANES, R)
        put(here, 9 * LANES + t, LANES, P)
        put(here, 12 * LANES + t, LANES, S)
        put(here, 15 * LANES + t, LANES, V)


@njit(**INNER_BORROWING)
def set_joints(source, ratio, offset, least, z, x):
    """Compute the positions x (joints, LANES) of joints that depend on coordinates z with index `least` or higher."""
    for j in range(len(source)):
        if source[j] >= least:
            share, shift, row, to = ratio[j], offset[j], z[source[j]], x[j]
            for t in range(LANES):
                to[t] = shift + share * row[t]


@njit(**INNER_BORROWING)
def place_lanes(parent, pose, axis, source, ratio, offset, z, x, joint, bodies, lanes):
    """Compute all joint positions x (joints, LANES) and body poses at coordinates z (coordinates, LANES)."""
    set_joints(source, ratio, offset, 0, z, x)
    for i in range(len(parent)):
        turns_lanes(x[i], joint, lanes)
        frame_lanes(pose[i], axis[i], joint, bodies[parent[i]], bodies[i])  # the base is last


@njit(**INNER_BORROWING)
def end_lanes(place, body, out):
    """Compute rotation and origin (12 rows) in the base frame of an attachment frame `place` (12) on a body."""
    r = (place[0], place[1], place[2], place[4], place[5], place[6], place[8], place[9], place[10])
    p = (place[3], place[7], place[11])
    for t in range(LANES):
        R, P = placed(matrix(body, t, LANES), vector(body, 9 * LANES + t, LANES), r, p)
        put_matrix(out, t, LANES, R)
        put(out, 9 * LANES + t, LANES, P)


@njit(**INNER_BORROWING)
def origin_lanes(place, body, out):
    """Compute the origin in the base frame of an attachment frame `place` on a body."""
    p = (place[3], place[7], place[11])
    for t in range(LANES):
        put(out, 9 * LANES + t, LANES, add_turned(vector(body, 9 * LANES + t, LANES), matrix(body, t, LANES), p))


@njit(**INLINED)
def column_lanes(end, k, t):
    """Return the unit vector along axis k of a frame of posture t."""
    return vector(end, k * LANES + t, 3 * LANES)


@njit(**INLINED)
def apart(first, second, t):
    """Return the origins of two frames of posture t, and the vector from the second to the first."""
    a, b = vector(first, 9 * LANES + t, LANES), vector(second, 9 * LANES + t, LANES)
    return a, b, subtract(a, b)


@njit(**INNER_BORROWING)
def rod_lanes(first, second, length, out):
    """Compute the closure equation of a rod: its two ends have a fixed distance."""
    share = 1.0 / length
    for t in range(LANES):
        a, _, d = apart(first, second, t)
        u = times(share, d)
        out[t] = 0.5 * (dot(d, u) - length)
        put(out, LANES + t, LANES, cross(a, u))
        put(out, 4 * LANES + t, LANES, u)


@njit(**INNER_BORROWING)
def distance_lanes(first, second, e, out):
    """Compute the equation that the origins of two frames coincide along axis e of the first."""
    for t in range(LANES):
        a, b, d = apart(first, second, t)
        unit = column_lanes(first, e, t)
        out[t] = dot(d, unit)
        put(out, LANES + t, LANES, cross(times(0.5, add(a, b)), unit))
        put(out, 4 * LANES + t, LANES, unit)


@njit(**INNER_BORROWING)
def angle_lanes(first, second, i, j, out):
    """Compute the equation that axis i of the first frame and axis j of the second are perpendicular."""
    for t in range(LANES):
        x, y = column_lanes(first, i, t), column_lanes(second, j, t)
        out[t] = dot(x, y)
        put(out, LANES + t, LANES, cross(x, y))
        put(out, 4 * LANES + t, LANES, (0.0, 0.0, 0.0))


@njit(**INNER_BORROWING)
def equations_lanes(kinds, pairs, places, lengths, bodies, ends, equations):
    """Compute the equations (m, 7 LANES) of all closures, and their attachment frames (k, 2, 12 LANES)."""
    row = 0
    for k in range(len(kinds)):
        kind, first, second = kinds[k], ends[k, 0], ends[k, 1]
        if kind == ROD:
            origin_lanes(places[k, 0], bodies[pairs[k, 0]], first)
        else:
            end_lanes(places[k, 0], bodies[pairs[k, 0]], first)
        if kind == ROD or kind == POINT:
            origin_lanes(places[k, 1], bodies[pairs[k, 1]], second)
        else:
            end_lanes(places[k, 1], bodies[pairs[k, 1]], second)
        for e in range(closure_size(kind)):
            if kind == ROD:
                rod_lanes(first, second, lengths[k], equations[row])
            elif e < 3:
                distance_lanes(first, second, e, equations[row])
            else:
                i, j = aligned(kind, e)
                angle_lanes(first, second, i, j, equations[row])
            row += 1


@njit(**INNER_BORROWING)
def rate_lanes(equation, body, share, out):
    """Add to `out` the derivative of an equation by the position of a body's joint, times `share`."""
    for t in range(LANES):
        turned = dot(vector(equation, LANES + t, LANES), vector(body, 12 * LANES + t, LANES))
        moved = dot(vector(equation, 4 * LANES + t, LANES), vector(body, 15 * LANES + t, LANES))
        out[t] += share * (turned + moved)


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
        rate_lanes(equations[terms[k, 0]], bodies[terms[k, 1]], shares[k], out)


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
def motion_lanes(body, d, up, here):
    """Compute the twist of a body, and the time derivative of the twist for constant rates of the coordinates, with
    dS/dt = V_parent x S. d (LANES,): velocity of the body's joint."""
    for t in range(LANES):
        s, v = vector(body, 12 * LANES + t, LANES), vector(body, 15 * LANES + t, LANES)
        w, u = vector(up, t, LANES), vector(up, 3 * LANES + t, LANES)
        put(here, t, LANES, add_times(w, d[t], s))
        put(here, 3 * LANES + t, LANES, add_times(u, d[t], v))
        put(here, 6 * LANES + t, LANES, add_times(vector(up, 6 * LANES + t, LANES), d[t], cross(w, s)))
        put(here, 9 * LANES + t, LANES,
            add_times(vector(up, 9 * LANES + t, LANES), d[t], add_cross(cross(w, v), u, s)))


@njit(**INLINED)
def point_rates(motion, a, t):
    """Return the velocity of a point a of a body, and its centripetal acceleration, both for posture t."""
    w = vector(motion, t, LANES)
    rate = add_cross(vector(motion, 3 * LANES + t, LANES), w, a)
    return rate, cross(w, rate)


@njit(**INNER_BORROWING)
def accelerated_lanes(equation, one, two, out):
    """Compute the product of an equation's wrench and the difference of the twist rates of two bodies."""
    for t in range(LANES):
        c, f = vector(equation, LANES + t, LANES), vector(equation, 4 * LANES + t, LANES)
        out[t] = (dot(c, vector(one, 6 * LANES + t, LANES)) + dot(f, vector(one, 9 * LANES + t, LANES))
                  - dot(c, vector(two, 6 * LANES + t, LANES)) - dot(f, vector(two, 9 * LANES + t, LANES)))


@njit(**INNER_BORROWING)
def distance_bias_lanes(equation, first, second, one, two, share, out):
    """Add to `out` the velocity-dependent second time derivative of a distance equation; share: 1 / length for a rod,
    otherwise zero."""
    for t in range(LANES):
        a, b, _ = apart(first, second, t)
        rate1, turned1 = point_rates(one, a, t)
        rate2, turned2 = point_rates(two, b, t)
        f = vector(equation, 4 * LANES + t, LANES)
        d = subtract(rate1, rate2)
        out[t] += dot(f, turned1) - dot(f, turned2) + share * dot(d, d)


@njit(**INNER_BORROWING)
def angle_bias_lanes(first, second, i, j, one, two, out):
    """Add to `out` the velocity-dependent second derivative of an angle equation."""
    for t in range(LANES):
        x, y = column_lanes(first, i, t), column_lanes(second, j, t)
        w1, w2 = vector(one, t, LANES), vector(two, t, LANES)
        dx, dy = cross(w1, x), cross(w2, y)
        out[t] += dot(cross(w1, dx), y) + 2.0 * dot(dx, dy) + dot(x, cross(w2, dy))


@njit(**INNER_BORROWING)
def bias_lanes(kinds, pairs, lengths, chosen, n, equations, ends, motions, sides):
    """Compute the velocity-dependent second derivatives of the chosen equations, in column n of the right-hand
    sides."""
    row, c = 0, 0
    for k in range(len(kinds)):
        one, two, first, second = motions[pairs[k, 0]], motions[pairs[k, 1]], ends[k, 0], ends[k, 1]
        for e in range(closure_size(kinds[k])):
            if c < len(chosen) and chosen[c] == row:  # in ascending order
                out = sides[c, n * LANES:]
                accelerated_lanes(equations[row], one, two, out)
                if kinds[k] == ROD or e < 3:
                    share = 1.0 / lengths[k] if kinds[k] == ROD else 0.0
                    distance_bias_lanes(equations[row], first, second, one, two, share, out)
                else:
                    i, j = aligned(kinds[k], e)
                    angle_bias_lanes(first, second, i, j, one, two, out)
                c += 1
            row += 1

"""Loop closures at several postures in parallel: their equations, and the first and second derivatives of these.

A closed chain has coordinates z: positions of the independent joints, followed by those of the joints that its closures
determine. Each joint of the tree moves with one coordinate, q = ratio z + offset. A closure has equations phi(q) = 0
with the rates c . (V1 - V2), where c (6) is a wrench, and V1 and V2 are the twists (angular velocity, velocity at the
base origin) of the connected bodies.

A batch has one posture, or LANES postures for SIMD. Every quantity is a row of one number per posture in a flat array:
row k of posture t is at [k size + t], where `size` is the number of postures. Rows of a body (18): rotation R 0..8,
origin P 9..11, axis of its joint S 12..17, all in the base frame; rows of the base follow the last body. Rows of the
motion of a body (12): its twist V 0..5, and the time derivative of the twist for constant rates of the coordinates
6..11. Rows of an equation (7): its value, and its wrench. `closures` are `Closures`, `tree` is a `Tree`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.bodies import axis_in_base, placed, pose_in_parent
from dynid.dynamics.compiled import INLINED, INNER, INNER_BORROWING, OPTIONS
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

POINT, AXIS_CLOSURE, RIGID, ROD = 0, 1, 2, 3
EQUATIONS = (3, 5, 6, 1)  # number of equations for each kind of closure
FRAME, MOTION, EQUATION, END = 18, 12, 7, 12  # rows each
LANES = 16
# Batches of postures. The length of a tuple is a constant of the compiled code, and empty entries are no arguments.
ONE_POSTURE, MANY_POSTURES = ((),), ((),) * LANES


@njit(**INNER_BORROWING)
def closure_size(kind):
    """Return the number of equations of a loop closure of the given kind."""
    return EQUATIONS[kind]


@njit(**INNER_BORROWING)
def equation_count(kinds):
    """Return the total number of equations of loop closures, given the kind of each."""
    count = 0
    for kind in kinds:
        count += closure_size(kind)
    return count


@njit(**INNER_BORROWING)
def aligned(kind, e):
    """Return the axes of the first and the second attachment frame that equation e of a closure keeps perpendicular."""
    if kind == AXIS_CLOSURE:
        return 2, e - 3
    return e - 3, (e - 2) % 3


@njit(**INNER_BORROWING)
def turns_lanes(x, joint, postures, batch):
    """Compute the rows of a joint (3), cosine, sine and value of its position, from positions x (postures,).

    postures: the number of postures at run time, because the compiler would otherwise unroll this loop instead of
    vectorising it.
    """
    size, largest = len(batch), 0.0
    for t in range(postures):
        joint[2 * size + t] = x[t]
        largest = max(largest, abs(x[t]))
    if not largest <= EXACT_ANGLE:
        for t in range(postures):
            joint[t], joint[size + t] = math.cos(x[t]), math.sin(x[t])
        return
    for t in range(postures):
        joint[t], joint[size + t] = cos_sin(joint[2 * size + t])


@njit(**INNER_BORROWING)
def frame_lanes(pose, axis, joint, up, here, batch):
    """Compute frame and axis of a body from its parent's frame and its joint."""
    size = len(batch)
    s, v = vector(axis, 0, 1), vector(axis, 3, 1)
    for t in range(size):
        r, p = pose_in_parent(pose, 0, 1, joint[t], joint[size + t], joint[2 * size + t])
        R, P = placed(matrix(up, t, size), vector(up, 9 * size + t, size), r, p)
        S, V = axis_in_base(R, P, s, v)
        put_matrix(here, t, size, R)
        put(here, 9 * size + t, size, P)
        put(here, 12 * size + t, size, S)
        put(here, 15 * size + t, size, V)


@njit(**INNER_BORROWING)
def set_joints(closures, least, z, x, batch):
    """Compute the positions x (joints, postures) of joints whose coordinate among z has the index `least` or higher."""
    for j in range(len(closures.source)):
        if closures.source[j] >= least:
            share, shift, row, to = closures.ratio[j], closures.offset[j], z[closures.source[j]], x[j]
            for t in range(len(batch)):
                to[t] = shift + share * row[t]


@njit(**INNER_BORROWING)
def place_lanes(tree, x, joint, bodies, batch):
    """Compute the poses of all bodies at joint positions x (joints, postures)."""
    for i in range(len(tree.parent)):
        turns_lanes(x[i], joint, x.shape[1], batch)
        frame_lanes(tree.pose[i], tree.axis[i], joint, bodies[tree.parent[i]], bodies[i], batch)  # the base is last


@njit(**INNER_BORROWING)
def end_lanes(place, body, out, batch):
    """Compute rotation and origin (12 rows) in the base frame of an attachment frame `place` (12) on a body."""
    size = len(batch)
    r = (place[0], place[1], place[2], place[4], place[5], place[6], place[8], place[9], place[10])
    p = (place[3], place[7], place[11])
    for t in range(size):
        R, P = placed(matrix(body, t, size), vector(body, 9 * size + t, size), r, p)
        put_matrix(out, t, size, R)
        put(out, 9 * size + t, size, P)


@njit(**INNER_BORROWING)
def origin_lanes(place, body, out, batch):
    """Compute the origin in the base frame of an attachment frame `place` on a body."""
    size = len(batch)
    p = (place[3], place[7], place[11])
    for t in range(size):
        put(out, 9 * size + t, size, add_turned(vector(body, 9 * size + t, size), matrix(body, t, size), p))


@njit(**INLINED)
def column_lanes(end, k, t, size):
    """Return the unit vector along axis k of a frame at posture t."""
    return vector(end, k * size + t, 3 * size)


@njit(**INLINED)
def apart(first, second, t, size):
    """Return the origins of two frames at posture t, and the vector from the second to the first."""
    a, b = vector(first, 9 * size + t, size), vector(second, 9 * size + t, size)
    return a, b, subtract(a, b)


@njit(**INNER_BORROWING)
def rod_lanes(first, second, length, out, batch):
    """Compute the closure equation of a rod: its two ends have a fixed distance."""
    size = len(batch)
    share = 1.0 / length
    for t in range(size):
        a, _, d = apart(first, second, t, size)
        u = times(share, d)
        out[t] = 0.5 * (dot(d, u) - length)
        put(out, size + t, size, cross(a, u))
        put(out, 4 * size + t, size, u)


@njit(**INNER_BORROWING)
def distance_lanes(first, second, e, out, batch):
    """Compute the equation that the origins of two frames coincide along axis e of the first."""
    size = len(batch)
    for t in range(size):
        a, b, d = apart(first, second, t, size)
        unit = column_lanes(first, e, t, size)
        out[t] = dot(d, unit)
        put(out, size + t, size, cross(times(0.5, add(a, b)), unit))
        put(out, 4 * size + t, size, unit)


@njit(**INNER_BORROWING)
def angle_lanes(first, second, i, j, out, batch):
    """Compute the equation that axis i of the first frame and axis j of the second are perpendicular."""
    size = len(batch)
    for t in range(size):
        x, y = column_lanes(first, i, t, size), column_lanes(second, j, t, size)
        out[t] = dot(x, y)
        put(out, size + t, size, cross(x, y))
        put(out, 4 * size + t, size, (0.0, 0.0, 0.0))


@njit(**INNER_BORROWING)
def equations_lanes(closures, bodies, ends, equations, batch):
    """Compute the equations (m, 7 postures) of all closures, and their attachment frames (k, 2, 12 postures)."""
    row = 0
    for k in range(len(closures.kinds)):
        kind, first, second = closures.kinds[k], ends[k, 0], ends[k, 1]
        places, one, two = closures.places[k], bodies[closures.bodies[k, 0]], bodies[closures.bodies[k, 1]]
        if kind == ROD:
            origin_lanes(places[0], one, first, batch)
        else:
            end_lanes(places[0], one, first, batch)
        if kind == ROD or kind == POINT:
            origin_lanes(places[1], two, second, batch)
        else:
            end_lanes(places[1], two, second, batch)
        for e in range(closure_size(kind)):
            if kind == ROD:
                rod_lanes(first, second, closures.lengths[k], equations[row], batch)
            elif e < 3:
                distance_lanes(first, second, e, equations[row], batch)
            else:
                i, j = aligned(kind, e)
                angle_lanes(first, second, i, j, equations[row], batch)
            row += 1


@njit(**INNER_BORROWING)
def rate_lanes(equation, body, share, out, batch):
    """Add to `out` the derivative of an equation by the position of a body's joint, times `share`."""
    size = len(batch)
    for t in range(size):
        turned = dot(vector(equation, size + t, size), vector(body, 12 * size + t, size))
        moved = dot(vector(equation, 4 * size + t, size), vector(body, 15 * size + t, size))
        out[t] += share * (turned + moved)


@njit(**INNER_BORROWING)
def motion_lanes(body, d, up, here, batch):
    """Compute the twist of a body, and the time derivative of the twist for constant rates of the coordinates, with
    dS/dt = V_parent x S. d (postures,): velocity of the body's joint."""
    size = len(batch)
    for t in range(size):
        s, v = vector(body, 12 * size + t, size), vector(body, 15 * size + t, size)
        w, u = vector(up, t, size), vector(up, 3 * size + t, size)
        put(here, t, size, add_times(w, d[t], s))
        put(here, 3 * size + t, size, add_times(u, d[t], v))
        put(here, 6 * size + t, size, add_times(vector(up, 6 * size + t, size), d[t], cross(w, s)))
        put(here, 9 * size + t, size,
            add_times(vector(up, 9 * size + t, size), d[t], add_cross(cross(w, v), u, s)))


@njit(**INLINED)
def point_rates(motion, a, t, size):
    """Return the velocity of a point a of a body, and its centripetal acceleration, both for posture t."""
    w = vector(motion, t, size)
    rate = add_cross(vector(motion, 3 * size + t, size), w, a)
    return rate, cross(w, rate)


@njit(**INNER_BORROWING)
def accelerated_lanes(equation, one, two, out, batch):
    """Compute the product of an equation's wrench and the difference of the twist rates of two bodies."""
    size = len(batch)
    for t in range(size):
        c, f = vector(equation, size + t, size), vector(equation, 4 * size + t, size)
        out[t] = (dot(c, vector(one, 6 * size + t, size)) + dot(f, vector(one, 9 * size + t, size))
                  - dot(c, vector(two, 6 * size + t, size)) - dot(f, vector(two, 9 * size + t, size)))


@njit(**INNER_BORROWING)
def distance_bias_lanes(equation, first, second, one, two, share, out, batch):
    """Add to `out` the velocity-dependent second time derivative of a distance equation; share: 1 / length for a rod,
    otherwise zero."""
    size = len(batch)
    for t in range(size):
        a, b, _ = apart(first, second, t, size)
        rate1, turned1 = point_rates(one, a, t, size)
        rate2, turned2 = point_rates(two, b, t, size)
        f = vector(equation, 4 * size + t, size)
        d = subtract(rate1, rate2)
        out[t] += dot(f, turned1) - dot(f, turned2) + share * dot(d, d)


@njit(**INNER_BORROWING)
def angle_bias_lanes(first, second, i, j, one, two, out, batch):
    """Add to `out` the velocity-dependent second time derivative of an angle equation."""
    size = len(batch)
    for t in range(size):
        x, y = column_lanes(first, i, t, size), column_lanes(second, j, t, size)
        w1, w2 = vector(one, t, size), vector(two, t, size)
        dx, dy = cross(w1, x), cross(w2, y)
        out[t] += dot(cross(w1, dx), y) + 2.0 * dot(dx, dy) + dot(x, cross(w2, dy))


@njit(**INNER_BORROWING)
def bias_lanes(closures, n, equations, ends, motions, sides, batch):
    """Compute the velocity-dependent second time derivatives of equations `chosen`, in column n of the right-hand
    sides."""
    row, c = 0, 0
    for k in range(len(closures.kinds)):
        kind, first, second = closures.kinds[k], ends[k, 0], ends[k, 1]
        one, two = motions[closures.bodies[k, 0]], motions[closures.bodies[k, 1]]
        for e in range(closure_size(kind)):
            if c < len(closures.chosen) and closures.chosen[c] == row:  # in ascending order
                out = sides[c, n * len(batch):]
                accelerated_lanes(equations[row], one, two, out, batch)
                if kind == ROD or e < 3:
                    share = 1.0 / closures.lengths[k] if kind == ROD else 0.0
                    distance_bias_lanes(equations[row], first, second, one, two, share, out, batch)
                else:
                    i, j = aligned(kind, e)
                    angle_bias_lanes(first, second, i, j, one, two, out, batch)
                c += 1
            row += 1


@njit(**INNER_BORROWING)
def closure_jacobian(closures, parent, bodies, equations, out):
    """Compute the derivatives out (m, coordinates) of all closure equations by the coordinates, for one posture."""
    out[:] = 0.0
    row = 0
    for k in range(len(closures.kinds)):
        stop = row + closure_size(closures.kinds[k])
        for end in range(2):
            sign, j = (1.0 if end == 0 else -1.0), closures.bodies[k, end]
            while j >= 0:
                z = closures.source[j]
                for e in range(row, stop if z >= 0 else row):
                    rate_lanes(equations[e], bodies[j], sign * closures.ratio[j], out[e, z:z + 1], ONE_POSTURE)
                j = parent[j]
        row = stop


class OnePosture(NamedTuple):
    """Work arrays for the closure equations at one posture: joint positions x (joints, 1), and the rows of a joint, of
    the bodies, of the attachment frames, and of the equations."""

    x: Array
    joint: Array
    bodies: Array
    ends: Array
    equations: Array


@njit(**INNER)
def one_posture(closures):
    """Return the work arrays for the closure equations at a single posture."""
    joints = len(closures.source)
    bodies, x = np.zeros((joints + 1, FRAME)), np.empty((joints, 1))
    for k in (0, 4, 8):
        bodies[joints, k] = 1.0
    x[:, 0] = closures.offset
    return OnePosture(x, np.empty(3), bodies, np.zeros((len(closures.kinds), 2, END)),
                      np.empty((equation_count(closures.kinds), EQUATION)))


@njit(**OPTIONS, is_storable=False)
def closure_state(tree, closures, coordinates, q):
    """Return the rows (m, 7) of all closure equations at joint positions q, their derivatives (m, coordinates), and the
    rows (joints + 1, 18) of the bodies."""
    here, jacobian = one_posture(closures), np.empty((equation_count(closures.kinds), coordinates))
    here.x[:, 0] = q
    place_lanes(tree, here.x, here.joint, here.bodies, ONE_POSTURE)
    equations_lanes(closures, here.bodies, here.ends, here.equations, ONE_POSTURE)
    closure_jacobian(closures, tree.parent, here.bodies, here.equations, jacobian)
    return here.equations, jacobian, here.bodies

"""Loop closures at one posture: their equations, and the first and second derivatives of these.

A closed chain has coordinates z: positions of the independent joints, followed by those of the joints that its closures
determine. Each joint of the tree moves with one coordinate, q = ratio z + offset. A closure has equations phi(q) = 0
with the rates c . (V1 - V2), where c (6) is a wrench, and V1 and V2 are the twists (angular velocity, velocity at the
base origin) of the connected bodies.
"""

from __future__ import annotations

import math

import numpy as np

from dynid.dynamics.bodies import axis_in_base, placed, pose_in_parent
from dynid.dynamics.compiled import INNER_BORROWING, OPTIONS
from dynid.dynamics.tiles import EXACT_ANGLE, cos_sin
from dynid.dynamics.vectors import add, add_cross, cross, dot, matrix, put, put_matrix, subtract, times, vector
from dynid.kernel_store import njit

POINT, AXIS_CLOSURE, RIGID, ROD = 0, 1, 2, 3
EQUATIONS = (3, 5, 6, 1)  # number of equations for each kind of closure


@njit(**INNER_BORROWING)
def closure_size(kind):
    """Return the number of equations of a closure of this kind."""
    return EQUATIONS[kind]


@njit(**INNER_BORROWING)
def place_bodies(parent, pose, axis, q, R, P, S):
    """Compute rotation R (n, 9) and origin P (n, 3) of every body and axis S (n, 6) of every joint in the base
    frame."""
    for i in range(len(parent)):
        cosine, sine = cos_sin(q[i]) if abs(q[i]) <= EXACT_ANGLE else (math.cos(q[i]), math.sin(q[i]))
        r, p = pose_in_parent(pose[i], 0, 1, cosine, sine, q[i])
        if parent[i] >= 0:
            r, p = placed(matrix(R[parent[i]], 0, 1), vector(P[parent[i]], 0, 1), r, p)
        put_matrix(R[i], 0, 1, r)
        put(P[i], 0, 1, p)
        turn, velocity = axis_in_base(r, p, vector(axis[i], 0, 1), vector(axis[i], 3, 1))
        put(S[i], 0, 1, turn)
        put(S[i], 3, 1, velocity)


@njit(**INNER_BORROWING)
def attachment_pose(body, place, R, P, out):
    """Compute the pose in the base frame, out (12), of an attachment frame `place` (12) on a body (-1: the base)."""
    r = (place[0], place[1], place[2], place[4], place[5], place[6], place[8], place[9], place[10])
    p = (place[3], place[7], place[11])
    if body >= 0:
        r, p = placed(matrix(R[body], 0, 1), vector(P[body], 0, 1), r, p)
    put_matrix(out, 0, 1, r)
    put(out, 9, 1, p)


@njit(**INNER_BORROWING)
def column(end, k):
    """Return the unit vector along axis k of a frame."""
    return end[k], end[3 + k], end[6 + k]


@njit(**INNER_BORROWING)
def aligned(kind, e):
    """Return the axes of the first and the second attachment frame that equation e of a closure keeps perpendicular."""
    if kind == AXIS_CLOSURE:
        return 2, e - 3
    return e - 3, (e - 2) % 3


@njit(**INNER_BORROWING)
def closure_equations(kinds, bodies, places, lengths, R, P, phi, wrenches, ends):
    """Compute the values phi (m,) and wrenches (m, 6) of all closure equations, and attachment poses `ends` (k, 24)."""
    row = 0
    for k in range(len(kinds)):
        attachment_pose(bodies[k, 0], places[k, 0], R, P, ends[k, :12])
        attachment_pose(bodies[k, 1], places[k, 1], R, P, ends[k, 12:])
        first, second = ends[k, :12], ends[k, 12:]
        a, b = vector(first, 9, 1), vector(second, 9, 1)
        d = subtract(a, b)
        if kinds[k] == ROD:
            u = times(1.0 / lengths[k], d)
            phi[row] = 0.5 * (dot(d, u) - lengths[k])
            put(wrenches[row], 0, 1, cross(a, u))
            put(wrenches[row], 3, 1, u)
            row += 1
            continue
        middle = times(0.5, add(a, b))
        for e in range(3):
            unit = column(first, e)  # in axes of the attachment frame: equations of a planar loop stay in its plane
            phi[row] = dot(d, unit)
            put(wrenches[row], 0, 1, cross(middle, unit))
            put(wrenches[row], 3, 1, unit)
            row += 1
        for e in range(3, closure_size(kinds[k])):
            i, j = aligned(kinds[k], e)
            x, y = column(first, i), column(second, j)
            phi[row] = dot(x, y)
            put(wrenches[row], 0, 1, cross(x, y))
            put(wrenches[row], 3, 1, (0.0, 0.0, 0.0))
            row += 1


@njit(**INNER_BORROWING)
def closure_jacobian(kinds, bodies, parent, wrenches, S, source, ratio, out):
    """Compute out (m, coordinates): derivatives of all closure equations by the coordinates."""
    out[:] = 0.0
    row = 0
    for k in range(len(kinds)):
        count = closure_size(kinds[k])
        for end in range(2):
            sign, j = (1.0 if end == 0 else -1.0), bodies[k, end]
            while j >= 0:
                for e in range(row, row + count):
                    rate = 0.0
                    for x in range(6):
                        rate += wrenches[e, x] * S[j, x]
                    if source[j] >= 0:
                        out[e, source[j]] += sign * rate * ratio[j]
                j = parent[j]
        row += count


@njit(**INNER_BORROWING)
def place_closures(parent, pose, axis, kinds, bodies, places, lengths, source, ratio, offset, z, q, R, P, S, phi,
                   wrenches, ends):
    """Compute all joint positions q, body poses and closure equations at coordinates z."""
    for j in range(len(q)):
        q[j] = offset[j] + (ratio[j] * z[source[j]] if source[j] >= 0 else 0.0)
    place_bodies(parent, pose, axis, q, R, P, S)
    closure_equations(kinds, bodies, places, lengths, R, P, phi, wrenches, ends)


@njit(**INNER_BORROWING)
def equation_count(kinds):
    """Return the number of equations of closures of these kinds."""
    count = 0
    for kind in kinds:
        count += closure_size(kind)
    return count


@njit(**INNER_BORROWING)
def closure_bias(kind, e, pair, wrench, ends, length, V, A):
    """Return the velocity-dependent second time derivative of equation e of a closure.

    V, A (bodies + 1, 6): twists of the bodies, and time derivatives of these for constant rates of the coordinates; the
    last row is the base (zero).
    """
    V1, V2, A1, A2 = V[pair[0]], V[pair[1]], A[pair[0]], A[pair[1]]
    total = 0.0
    for x in range(6):
        total += wrench[x] * (A1[x] - A2[x])
    first, second = ends[:12], ends[12:]
    w1, w2 = vector(V1, 0, 1), vector(V2, 0, 1)
    if kind == ROD or e < 3:
        a, b = vector(first, 9, 1), vector(second, 9, 1)
        rate1, rate2 = add_cross(vector(V1, 3, 1), w1, a), add_cross(vector(V2, 3, 1), w2, b)
        total += dot(vector(wrench, 3, 1), subtract(cross(w1, rate1), cross(w2, rate2)))
        if kind == ROD:
            difference = subtract(rate1, rate2)
            total += dot(difference, difference) / length
        return total
    i, j = aligned(kind, e)
    x, y = column(first, i), column(second, j)
    dx, dy = cross(w1, x), cross(w2, y)
    return total + dot(cross(w1, dx), y) + 2.0 * dot(dx, dy) + dot(x, cross(w2, dy))


@njit(**OPTIONS, is_storable=False)
def closure_state(parent, pose, axis, kinds, bodies, places, lengths, source, ratio, coordinates, q):
    """Return the values (m,) of all closure equations at joint positions q, their derivatives (m, coordinates), their
    wrenches (m, 6), and the poses (joints, 12) of the bodies."""
    joints, m = len(parent), equation_count(kinds)
    R, P, S = np.empty((joints, 9)), np.empty((joints, 3)), np.empty((joints, 6))
    phi, wrenches, ends = np.empty(m), np.empty((m, 6)), np.empty((len(kinds), 24))
    jacobian, poses = np.empty((m, coordinates)), np.empty((joints, 12))
    place_bodies(parent, pose, axis, q, R, P, S)
    closure_equations(kinds, bodies, places, lengths, R, P, phi, wrenches, ends)
    closure_jacobian(kinds, bodies, parent, wrenches, S, source, ratio, jacobian)
    poses[:, :9] = R
    poses[:, 9:] = P
    return phi, jacobian, wrenches, poses

"""Reverse-mode derivative of the regressor Y: derivatives of sum(weights * Y) by q, dq and ddq, for a block of samples.

For body i and a joint j that carries it, the ten entries of Y are the torques of the body's wrench about the joint's
axis for unit inertial parameters. Their sum with weights g is s.n + v.f, the power on the axis of the wrench of a body
with parameters g (see `bodies.wrench`). The derivatives of this sum are

    by the motion (w, e, a) of the body: the formulas of `pair_tile`, propagated down the tree by `motion_tile`;
    by the posture: joint k moves all bodies below it, so the wrench W of pair (j, i) changes by axis_k x* W if k is
        between j and i, and not otherwise (`turn_tile`).
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics.bodies import acceleration_at, axis_in_body, pose_in_parent, wrench, wrench_in_base
from dynid.dynamics.compiled import INNER, OPTIONS
from dynid.dynamics.kernels import move, working_rows
from dynid.dynamics.tiles import AXIS, JOINT, TEN, TILE, WRENCH, add_tile, joint_tile
from dynid.dynamics.vectors import (
    add_cross,
    add_times,
    cross,
    dot,
    matrix,
    put,
    put_more,
    scaled,
    symmetric,
    times,
    turned,
    turned_back,
    vector,
)
from dynid.kernel_store import njit

MOTION = 9  # rows: adjoints of W, E, A of a body


@njit(**INNER)
def pair_tile(axis: Array, here: Array, ten: Array, motion: Array, out: Array, m: int) -> None:
    """Add the derivatives of a weighted sum of regressor entries by a body's motion to `motion` (9 rows).

    ten (10 rows): weights of the entries of one joint and this body. out (6 rows): the wrench f, n of a body with the
    weights J, h, M as parameters. With k = J w and u = s x w, the derivatives of the weighted sum s.n + v.f are
      by w: k x s + J u + h (w.v) + v (h.w) - 2 w (h.v),   by e: J s + h x v,   by a: s x h + M v.
    """
    for t in range(m):
        R, P = matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE)
        s, v = axis_in_body(R, P, vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE))
        w, e = vector(here, 12 * TILE + t, TILE), vector(here, 15 * TILE + t, TILE)
        J, h, M = symmetric(ten, t, TILE), vector(ten, 6 * TILE + t, TILE), ten[9 * TILE + t]
        f, n = wrench(J, h, M, w, e, vector(here, 18 * TILE + t, TILE))
        F, N = wrench_in_base(R, P, f, n)
        by_w = add_cross(scaled(J, cross(s, w)), scaled(J, w), s)
        by_w = add_times(add_times(add_times(by_w, dot(w, v), h), dot(h, w), v), -2.0 * dot(h, v), w)
        put_more(motion, t, TILE, by_w)
        put_more(motion, 3 * TILE + t, TILE, add_cross(scaled(J, s), h, v))
        put_more(motion, 6 * TILE + t, TILE, add_cross(times(M, v), s, h))
        put(out, t, TILE, F)
        put(out, 3 * TILE + t, TILE, N)


@njit(**INNER)
def turn_tile(load: Array, axis: Array, sign: float, turn: Array, m: int) -> None:
    """Add the products of a wrench F, N and an axis S, V to `turn` (6 rows): sign * (N x S + F x V), then sign * F x S.

    The derivative by the position of a joint k between the axis and the body is S_k . (first three rows) + V_k . (last
    three rows).
    """
    for t in range(m):
        F, N = vector(load, t, TILE), vector(load, 3 * TILE + t, TILE)
        S, V = vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE)
        put_more(turn, t, TILE, times(sign, add_cross(cross(N, S), F, V)))
        put_more(turn, 3 * TILE + t, TILE, times(sign, cross(F, S)))


@njit(**INNER)
def motion_tile(pose: Array, axis: Array, joint: Array, up: Array, motion: Array, parent: Array, out: Array,
                m: int) -> None:
    """Add the adjoints `motion` (9 rows) of a body to those of its parent and its joint; reverse of `body_tile`.

    out (3 rows): adjoints of q, dq, ddq. With u = r'W and x- for the adjoint of x, in the body frame unless noted:
      u- = w- + d s x e- + 2 d v x a-,   A0- = r a- (parent frame)
      q- = -(s x u).u- - (s x r'E).e- - (s x r'A0).a- + (r v).p-,   p- = A0- x E + (A0- x W) x W
      W- += r u- + h x A0- + p x (A0- x W), h = W x p;   E- += r e- + p x A0-;   A- += A0-
    """
    s, v = vector(axis, 0, 1), vector(axis, 3, 1)
    sv = cross(s, v)
    for t in range(m):
        (cosine, sine, x), d = vector(joint, t, TILE), joint[3 * TILE + t]
        r, p = pose_in_parent(pose, 0, 1, cosine, sine, x)
        W, E = vector(up, 12 * TILE + t, TILE), vector(up, 15 * TILE + t, TILE)
        h, A = cross(W, p), acceleration_at(p, W, E, vector(up, 18 * TILE + t, TILE))
        u, e, a = turned_back(r, W), turned_back(r, E), turned_back(r, A)
        by_w, by_e = vector(motion, t, TILE), vector(motion, 3 * TILE + t, TILE)
        by_a = vector(motion, 6 * TILE + t, TILE)
        by_u = add_times(add_times(by_w, d, cross(s, by_e)), 2.0 * d, cross(v, by_a))
        by_A = turned(r, by_a)
        k = cross(by_A, W)
        by_p = add_cross(cross(by_A, E), k, W)
        by_q = (dot(v, turned_back(r, by_p)) - dot(cross(s, u), by_u) - dot(cross(s, e), by_e)
                - dot(cross(s, a), by_a))
        by_dq = dot(s, by_w) + dot(cross(u, s), by_e) + 2.0 * dot(add_times(cross(u, v), d, sv), by_a)
        put_more(out, t, TILE, (by_q, by_dq, dot(s, by_e) + dot(v, by_a)))
        put_more(parent, t, TILE, add_cross(add_cross(turned(r, by_u), h, by_A), p, k))
        put_more(parent, 3 * TILE + t, TILE, add_cross(turned(r, by_e), p, by_A))
        put_more(parent, 6 * TILE + t, TILE, by_A)


@njit(**OPTIONS)
def adjoint_kernel(parent: Ints, pose: Array, axis: Array, gravity: Array, q: Array, dq: Array, ddq: Array, place: Ints,
                   weights: Array, out: Array, start: int, stop: int) -> None:
    """Add to out (3, samples, n) the derivatives by q, dq and ddq of sum(weights * Y) for samples start..stop.

    place (n, 10 n): row of weights (rows, samples) of each entry of the regressor Y, -1 for none.
    """
    n = len(parent)
    base, joint, bodies, axes = working_rows(gravity, n)
    ten, load, joints = np.empty(TEN * TILE), np.empty(WRENCH * TILE), np.empty((n, JOINT * TILE))
    motion, turn, total = np.empty((n + 1, MOTION * TILE)), np.empty((n + 1, AXIS * TILE)), np.empty((n, WRENCH * TILE))
    rows = np.empty(3 * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, lo, m, joint, bodies, axes)
        for i in range(n):
            joint_tile(q, i, dq, ddq, i, lo, m, joints[i])
        motion[:] = 0.0
        turn[:] = 0.0
        total[:] = 0.0
        for i in range(n - 1, -1, -1):
            j = i
            while j >= 0:
                used = False
                for k in range(10):
                    row = place[j, 10 * i + k]
                    if row >= 0:
                        used = True
                        for t in range(m):
                            ten[k * TILE + t] = weights[row, lo + t]
                    else:
                        for t in range(m):
                            ten[k * TILE + t] = 0.0
                if used:
                    pair_tile(axes[j], bodies[i], ten, motion[i], load, m)
                    add_tile(load, total[j], m)
                    turn_tile(load, axes[j], 1.0, turn[i], m)
                j = parent[j]
            above = parent[i]
            for t in range(m):
                value = 0.0
                for k in range(AXIS):
                    value += axes[i, k * TILE + t] * turn[i, k * TILE + t]
                rows[t] = value
                rows[TILE + t] = 0.0
                rows[2 * TILE + t] = 0.0
            # Joints closer to the base have no effect on pairs that begin at this joint.
            turn_tile(total[i], axes[i], -1.0, turn[i], m)
            add_tile(turn[i], turn[above], m)
            up = base if above < 0 else bodies[above]
            motion_tile(pose[i], axis[i], joints[i], up, motion[i], motion[above], rows, m)
            for t in range(m):
                out[0, lo + t, i] += rows[t]
                out[1, lo + t, i] += rows[TILE + t]
                out[2, lo + t, i] += rows[2 * TILE + t]

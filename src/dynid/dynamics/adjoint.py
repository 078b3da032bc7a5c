"""Reverse mode through the regressor: how sum(weights * Y) changes with q, dq and ddq, in the tiles of `dynamics`.

For body i and a joint j that carries it, the ten entries of Y are what the body's wrench would do on the joint's axis
if its ten numbers were unit vectors. Contracted with weights g they are therefore s.n + v.f, the power on the axis of
the wrench of a body whose ten numbers are g (see `regressor_tile`). Its derivatives are short:

  by the motion (w, e, a) of the body: the formulas of `pair_tile`, carried down the tree by `motion_tile`;
  by the posture: turning joint k moves all bodies below it, so the wrench W of pair (j, i) changes by
  axis_k x* W when k lies between j and i, and not at all otherwise (`turn_tile`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dynid.arrays import Array, Ints
from dynid.dynamics.kernels import base_rows, move
from dynid.dynamics.tiles import AXIS, BODY, JOINT, OPTIONS, TEN, TILE, WRENCH, add_tile, joint_tile

MOTION = 9  # rows: adjoints of W, E, A of a body


@njit(**OPTIONS)
def pair_tile(axis: Array, here: Array, ten: Array, motion: Array, wrench: Array, m: int) -> None:
    """Weights `ten` (10 rows) of one joint and body: adds to the body's `motion` (9), gives `wrench` (6, base frame).

    L = s.Q e + (s x w).Q w + h.(v x e) + (h.w)(w.v) - (h.v)(w.w) + h.(a x s) + M a.v, with Q, h, M the weights.
    """
    for t in range(m):
        R00, R01, R02 = here[t], here[TILE + t], here[2 * TILE + t]
        R10, R11, R12 = here[3 * TILE + t], here[4 * TILE + t], here[5 * TILE + t]
        R20, R21, R22 = here[6 * TILE + t], here[7 * TILE + t], here[8 * TILE + t]
        P0, P1, P2 = here[9 * TILE + t], here[10 * TILE + t], here[11 * TILE + t]
        S0, S1, S2 = axis[t], axis[TILE + t], axis[2 * TILE + t]
        V0 = axis[3 * TILE + t] + S1 * P2 - S2 * P1
        V1 = axis[4 * TILE + t] + S2 * P0 - S0 * P2
        V2 = axis[5 * TILE + t] + S0 * P1 - S1 * P0
        s0 = R00 * S0 + R10 * S1 + R20 * S2
        s1 = R01 * S0 + R11 * S1 + R21 * S2
        s2 = R02 * S0 + R12 * S1 + R22 * S2
        v0 = R00 * V0 + R10 * V1 + R20 * V2
        v1 = R01 * V0 + R11 * V1 + R21 * V2
        v2 = R02 * V0 + R12 * V1 + R22 * V2
        w0, w1, w2 = here[12 * TILE + t], here[13 * TILE + t], here[14 * TILE + t]
        e0, e1, e2 = here[15 * TILE + t], here[16 * TILE + t], here[17 * TILE + t]
        a0, a1, a2 = here[18 * TILE + t], here[19 * TILE + t], here[20 * TILE + t]
        XX, XY, XZ = ten[t], ten[TILE + t], ten[2 * TILE + t]
        YY, YZ, ZZ = ten[3 * TILE + t], ten[4 * TILE + t], ten[5 * TILE + t]
        h0, h1, h2, M = ten[6 * TILE + t], ten[7 * TILE + t], ten[8 * TILE + t], ten[9 * TILE + t]
        u0, u1, u2 = s1 * w2 - s2 * w1, s2 * w0 - s0 * w2, s0 * w1 - s1 * w0
        k0, k1, k2 = XX * w0 + XY * w1 + XZ * w2, XY * w0 + YY * w1 + YZ * w2, XZ * w0 + YZ * w1 + ZZ * w2
        hw = h0 * w0 + h1 * w1 + h2 * w2
        ww = w0 * w0 + w1 * w1 + w2 * w2
        wv = w0 * v0 + w1 * v1 + w2 * v2
        hv = 2.0 * (h0 * v0 + h1 * v1 + h2 * v2)
        # by s and v: moment and force of a body whose numbers are the weights
        n0 = XX * e0 + XY * e1 + XZ * e2 + w1 * k2 - w2 * k1 + h1 * a2 - h2 * a1
        n1 = XY * e0 + YY * e1 + YZ * e2 + w2 * k0 - w0 * k2 + h2 * a0 - h0 * a2
        n2 = XZ * e0 + YZ * e1 + ZZ * e2 + w0 * k1 - w1 * k0 + h0 * a1 - h1 * a0
        f0 = e1 * h2 - e2 * h1 + hw * w0 - ww * h0 + M * a0
        f1 = e2 * h0 - e0 * h2 + hw * w1 - ww * h1 + M * a1
        f2 = e0 * h1 - e1 * h0 + hw * w2 - ww * h2 + M * a2
        # by w, e and a
        motion[t] += k1 * s2 - k2 * s1 + XX * u0 + XY * u1 + XZ * u2 + h0 * wv + v0 * hw - hv * w0
        motion[TILE + t] += k2 * s0 - k0 * s2 + XY * u0 + YY * u1 + YZ * u2 + h1 * wv + v1 * hw - hv * w1
        motion[2 * TILE + t] += k0 * s1 - k1 * s0 + XZ * u0 + YZ * u1 + ZZ * u2 + h2 * wv + v2 * hw - hv * w2
        motion[3 * TILE + t] += XX * s0 + XY * s1 + XZ * s2 + h1 * v2 - h2 * v1
        motion[4 * TILE + t] += XY * s0 + YY * s1 + YZ * s2 + h2 * v0 - h0 * v2
        motion[5 * TILE + t] += XZ * s0 + YZ * s1 + ZZ * s2 + h0 * v1 - h1 * v0
        motion[6 * TILE + t] += s1 * h2 - s2 * h1 + M * v0
        motion[7 * TILE + t] += s2 * h0 - s0 * h2 + M * v1
        motion[8 * TILE + t] += s0 * h1 - s1 * h0 + M * v2
        F0, F1, F2 = R00 * f0 + R01 * f1 + R02 * f2, R10 * f0 + R11 * f1 + R12 * f2, R20 * f0 + R21 * f1 + R22 * f2
        wrench[t], wrench[TILE + t], wrench[2 * TILE + t] = F0, F1, F2
        wrench[3 * TILE + t] = R00 * n0 + R01 * n1 + R02 * n2 + P1 * F2 - P2 * F1
        wrench[4 * TILE + t] = R10 * n0 + R11 * n1 + R12 * n2 + P2 * F0 - P0 * F2
        wrench[5 * TILE + t] = R20 * n0 + R21 * n1 + R22 * n2 + P0 * F1 - P1 * F0


@njit(**OPTIONS)
def turn_tile(wrench: Array, axis: Array, sign: float, turn: Array, m: int) -> None:
    """turn (6 rows) += sign * what a wrench on an axis asks of every joint between: N x S + F x V, then F x S.

    Joint k feels S_k . (first three) + V_k . (last three).
    """
    for t in range(m):
        F0, F1, F2 = wrench[t], wrench[TILE + t], wrench[2 * TILE + t]
        N0, N1, N2 = wrench[3 * TILE + t], wrench[4 * TILE + t], wrench[5 * TILE + t]
        S0, S1, S2 = axis[t], axis[TILE + t], axis[2 * TILE + t]
        V0, V1, V2 = axis[3 * TILE + t], axis[4 * TILE + t], axis[5 * TILE + t]
        turn[t] += sign * (N1 * S2 - N2 * S1 + F1 * V2 - F2 * V1)
        turn[TILE + t] += sign * (N2 * S0 - N0 * S2 + F2 * V0 - F0 * V2)
        turn[2 * TILE + t] += sign * (N0 * S1 - N1 * S0 + F0 * V1 - F1 * V0)
        turn[3 * TILE + t] += sign * (F1 * S2 - F2 * S1)
        turn[4 * TILE + t] += sign * (F2 * S0 - F0 * S2)
        turn[5 * TILE + t] += sign * (F0 * S1 - F1 * S0)


@njit(**OPTIONS)
def motion_tile(pose: Array, axis: Array, joint: Array, up: Array, motion: Array, parent: Array, out: Array,
                m: int) -> None:
    """Reverse of `body_tile`: a body's `motion` adjoints (9 rows) go to its parent's and to out (3 rows: q, dq, ddq).

    With u = r'W, bars for adjoints, all in the body frame unless noted:
      u- = w- + d s x e- + 2 d v x a-,   A0- = r a- (parent frame)
      q- = -(s x u).u- - (s x r'E).e- - (s x r'A0).a- + (r v).p-,   p- = A0- x E + (A0- x W) x W
      W- += r u- + h x A0- + p x (A0- x W), h = W x p;   E- += r e- + p x A0-;   A- += A0-
    """
    s0, s1, s2, v0, v1, v2 = axis[0], axis[1], axis[2], axis[3], axis[4], axis[5]
    x0, x1, x2 = s1 * v2 - s2 * v1, s2 * v0 - s0 * v2, s0 * v1 - s1 * v0
    for t in range(m):
        c, s, x, d = joint[t], joint[TILE + t], joint[2 * TILE + t], joint[3 * TILE + t]
        r00 = pose[0] + c * pose[12] + s * pose[24]
        r01 = pose[1] + c * pose[13] + s * pose[25]
        r02 = pose[2] + c * pose[14] + s * pose[26]
        p0 = pose[3] + c * pose[15] + s * pose[27] + x * pose[39]
        r10 = pose[4] + c * pose[16] + s * pose[28]
        r11 = pose[5] + c * pose[17] + s * pose[29]
        r12 = pose[6] + c * pose[18] + s * pose[30]
        p1 = pose[7] + c * pose[19] + s * pose[31] + x * pose[43]
        r20 = pose[8] + c * pose[20] + s * pose[32]
        r21 = pose[9] + c * pose[21] + s * pose[33]
        r22 = pose[10] + c * pose[22] + s * pose[34]
        p2 = pose[11] + c * pose[23] + s * pose[35] + x * pose[47]
        W0, W1, W2 = up[12 * TILE + t], up[13 * TILE + t], up[14 * TILE + t]
        E0, E1, E2 = up[15 * TILE + t], up[16 * TILE + t], up[17 * TILE + t]
        h0, h1, h2 = W1 * p2 - W2 * p1, W2 * p0 - W0 * p2, W0 * p1 - W1 * p0
        A0 = up[18 * TILE + t] + E1 * p2 - E2 * p1 + W1 * h2 - W2 * h1
        A1 = up[19 * TILE + t] + E2 * p0 - E0 * p2 + W2 * h0 - W0 * h2
        A2 = up[20 * TILE + t] + E0 * p1 - E1 * p0 + W0 * h1 - W1 * h0
        u0, u1, u2 = r00 * W0 + r10 * W1 + r20 * W2, r01 * W0 + r11 * W1 + r21 * W2, r02 * W0 + r12 * W1 + r22 * W2
        e0, e1, e2 = r00 * E0 + r10 * E1 + r20 * E2, r01 * E0 + r11 * E1 + r21 * E2, r02 * E0 + r12 * E1 + r22 * E2
        a0, a1, a2 = r00 * A0 + r10 * A1 + r20 * A2, r01 * A0 + r11 * A1 + r21 * A2, r02 * A0 + r12 * A1 + r22 * A2
        bw0, bw1, bw2 = motion[t], motion[TILE + t], motion[2 * TILE + t]
        be0, be1, be2 = motion[3 * TILE + t], motion[4 * TILE + t], motion[5 * TILE + t]
        ba0, ba1, ba2 = motion[6 * TILE + t], motion[7 * TILE + t], motion[8 * TILE + t]
        d2 = 2.0 * d
        bu0 = bw0 + d * (s1 * be2 - s2 * be1) + d2 * (v1 * ba2 - v2 * ba1)
        bu1 = bw1 + d * (s2 * be0 - s0 * be2) + d2 * (v2 * ba0 - v0 * ba2)
        bu2 = bw2 + d * (s0 * be1 - s1 * be0) + d2 * (v0 * ba1 - v1 * ba0)
        B0, B1 = r00 * ba0 + r01 * ba1 + r02 * ba2, r10 * ba0 + r11 * ba1 + r12 * ba2
        B2 = r20 * ba0 + r21 * ba1 + r22 * ba2
        k0, k1, k2 = B1 * W2 - B2 * W1, B2 * W0 - B0 * W2, B0 * W1 - B1 * W0  # A0- x W
        bp0 = B1 * E2 - B2 * E1 + k1 * W2 - k2 * W1
        bp1 = B2 * E0 - B0 * E2 + k2 * W0 - k0 * W2
        bp2 = B0 * E1 - B1 * E0 + k0 * W1 - k1 * W0
        out[t] += (v0 * (r00 * bp0 + r10 * bp1 + r20 * bp2) + v1 * (r01 * bp0 + r11 * bp1 + r21 * bp2)
                   + v2 * (r02 * bp0 + r12 * bp1 + r22 * bp2)
                   - (s1 * u2 - s2 * u1) * bu0 - (s2 * u0 - s0 * u2) * bu1 - (s0 * u1 - s1 * u0) * bu2
                   - (s1 * e2 - s2 * e1) * be0 - (s2 * e0 - s0 * e2) * be1 - (s0 * e1 - s1 * e0) * be2
                   - (s1 * a2 - s2 * a1) * ba0 - (s2 * a0 - s0 * a2) * ba1 - (s0 * a1 - s1 * a0) * ba2)
        out[TILE + t] += (s0 * bw0 + s1 * bw1 + s2 * bw2
                          + (u1 * s2 - u2 * s1) * be0 + (u2 * s0 - u0 * s2) * be1 + (u0 * s1 - u1 * s0) * be2
                          + 2.0 * ((u1 * v2 - u2 * v1 + d * x0) * ba0 + (u2 * v0 - u0 * v2 + d * x1) * ba1
                                   + (u0 * v1 - u1 * v0 + d * x2) * ba2))
        out[2 * TILE + t] += s0 * be0 + s1 * be1 + s2 * be2 + v0 * ba0 + v1 * ba1 + v2 * ba2
        parent[t] += r00 * bu0 + r01 * bu1 + r02 * bu2 + h1 * B2 - h2 * B1 + p1 * k2 - p2 * k1
        parent[TILE + t] += r10 * bu0 + r11 * bu1 + r12 * bu2 + h2 * B0 - h0 * B2 + p2 * k0 - p0 * k2
        parent[2 * TILE + t] += r20 * bu0 + r21 * bu1 + r22 * bu2 + h0 * B1 - h1 * B0 + p0 * k1 - p1 * k0
        parent[3 * TILE + t] += r00 * be0 + r01 * be1 + r02 * be2 + p1 * B2 - p2 * B1
        parent[4 * TILE + t] += r10 * be0 + r11 * be1 + r12 * be2 + p2 * B0 - p0 * B2
        parent[5 * TILE + t] += r20 * be0 + r21 * be1 + r22 * be2 + p0 * B1 - p1 * B0
        parent[6 * TILE + t] += B0
        parent[7 * TILE + t] += B1
        parent[8 * TILE + t] += B2


@njit(**OPTIONS)
def adjoint_kernel(parent: Ints, pose: Array, axis: Array, gravity: Array, q: Array, dq: Array, ddq: Array, place: Ints,
                   weights: Array, out: Array, start: int, stop: int) -> None:
    """out (3, samples, n) += derivatives by q, dq, ddq of sum(weights * entries) for samples start..stop.

    place (n, 10 n) and weights (rows, samples): as in `regressor_columns_kernel`, weights for entries.
    """
    n = len(parent)
    base, ten, wrench = base_rows(gravity), np.empty(TEN * TILE), np.empty(WRENCH * TILE)
    joint, joints = np.empty(JOINT * TILE), np.empty((n, JOINT * TILE))
    bodies, axes = np.empty((n, BODY * TILE)), np.empty((n, AXIS * TILE))
    motion, turn, total = np.empty((n + 1, MOTION * TILE)), np.empty((n + 1, AXIS * TILE)), np.empty((n, WRENCH * TILE))
    rows = np.empty(3 * TILE)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        move(parent, pose, axis, base, q, dq, ddq, 2, lo, m, joint, bodies, axes)
        for i in range(n):
            joint_tile(q, dq, ddq, 2, i, lo, m, joints[i])
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
                    pair_tile(axes[j], bodies[i], ten, motion[i], wrench, m)
                    add_tile(WRENCH, wrench, total[j], m)
                    turn_tile(wrench, axes[j], 1.0, turn[i], m)
                j = parent[j]
            above = parent[i]
            for t in range(m):
                value = 0.0
                for k in range(AXIS):
                    value += axes[i, k * TILE + t] * turn[i, k * TILE + t]
                rows[t] = value
                rows[TILE + t] = 0.0
                rows[2 * TILE + t] = 0.0
            # Pairs that begin at this joint do not feel the joints above it.
            turn_tile(total[i], axes[i], -1.0, turn[i], m)
            add_tile(AXIS, turn[i], turn[above], m)
            up = base if above < 0 else bodies[above]
            motion_tile(pose[i], axis[i], joints[i], up, motion[i], motion[above], rows, m)
            for t in range(m):
                out[0, lo + t, i] += rows[t]
                out[1, lo + t, i] += rows[TILE + t]
                out[2, lo + t, i] += rows[2 * TILE + t]

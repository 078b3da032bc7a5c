"""The physics of one body for a tile of samples, in scalar arithmetic that the compiler turns into SIMD.

A tile holds up to TILE samples. Every quantity is a row of TILE numbers in a flat array, so that row k
of sample t stands at [k * TILE + t]: the constant stride lets LLVM prove that rows do not overlap.

Rows of a body (21): R 0..8 its rotation and P 9..11 the place of its origin, both in the base frame;
W 12..14 angular velocity, E 15..17 angular acceleration, A 18..20 acceleration of the origin minus
gravity, these three in the body frame.
Rows of an axis (6): turn 0..2 and velocity of the body's point at the base origin 3..5, base frame. In
that form axes, wrenches and inertias of different bodies are added without any transformation.
"""

from __future__ import annotations

import math

from numba import njit

TILE = 64
BODY, AXIS, TEN, WRENCH, JOINT = 21, 6, 10, 6, 5  # rows each
OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}
# For kernels of a single state, which only read and write arrays that they are given: without reference counts, whose
# atomic additions at every view and call take a third of the time there.
BORROWING = {**OPTIONS, "_nrt": False}

# pi/2 in three parts whose products with a quadrant number below 2^24 are exact (Cody and Waite).
_HALF_PI_1, _HALF_PI_2, _HALF_PI_3 = 1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17
EXACT_ANGLE = 1.0e6  # rad; beyond it the library's sine is used


@njit(**BORROWING)
def joint_tile(q, dq, ddq, rates, i, lo, m, joint):
    """Rows of a joint (5): cos q, sin q, q, dq, ddq, from columns i of (samples, joints) arrays.

    rates: how many of dq and ddq count; 0 is a posture, 1 leaves the accelerations zero.
    """
    far = False
    for t in range(m):
        x = q[lo + t, i]
        joint[2 * TILE + t] = x
        joint[3 * TILE + t] = dq[lo + t, i] if rates > 0 else 0.0
        joint[4 * TILE + t] = ddq[lo + t, i] if rates > 1 else 0.0
        far = far or abs(x) > EXACT_ANGLE
    if far:
        for t in range(m):
            joint[t] = math.cos(joint[2 * TILE + t])
            joint[TILE + t] = math.sin(joint[2 * TILE + t])
        return
    # Sine and cosine to the last digit or two, without branches: reduce to |r| <= pi/4 in quadrant k,
    # then the minimax polynomials of the Cephes library.
    for t in range(m):
        x = joint[2 * TILE + t]
        k = math.floor(x * 0.6366197723675814 + 0.5)
        r = ((x - k * _HALF_PI_1) - k * _HALF_PI_2) - k * _HALF_PI_3
        z = r * r
        sine = r + r * z * (-1.66666666666666307295e-1 + z * (8.33333333332211858878e-3 + z * (
            -1.98412698295895385996e-4 + z * (2.75573136213857245213e-6 + z * (
                -2.50507477628578072866e-8 + z * 1.58962301576546568060e-10)))))
        cosine = 1.0 - 0.5 * z + z * z * (4.16666666666665929218e-2 + z * (-1.38888888888730564116e-3 + z * (
            2.48015872888517045348e-5 + z * (-2.75573141792967388112e-7 + z * (
                2.08757008419747316778e-9 - z * 1.13585365213876817300e-11)))))
        half, quarter = 0.5 * k, 0.25 * k
        odd = half != math.floor(half)
        quadrant = 4.0 * (quarter - math.floor(quarter))
        joint[t] = (sine if odd else cosine) * (1.0 if quadrant < 0.5 or quadrant > 2.5 else -1.0)
        joint[TILE + t] = (cosine if odd else sine) * (1.0 if quadrant < 1.5 else -1.0)


@njit(**OPTIONS)
def body_tile(pose, axis, joint, up, here, m):
    """Motion of a body from its parent's (`up`) and its joint's.

    With r, p the pose in the parent and s, v the axis, all primes in the body frame:
      R' = R r, P' = P + R p
      W' = r' W + s dq
      E' = r' E + s ddq + (r' W) x s dq
      A' = r' (A + E x p + W x (W x p)) + v ddq + 2 (r' W) x v dq + s x v dq^2
    """
    s0, s1, s2, v0, v1, v2 = axis[0], axis[1], axis[2], axis[3], axis[4], axis[5]
    x0, x1, x2 = s1 * v2 - s2 * v1, s2 * v0 - s0 * v2, s0 * v1 - s1 * v0
    for t in range(m):
        c, s, x = joint[t], joint[TILE + t], joint[2 * TILE + t]
        d, dd = joint[3 * TILE + t], joint[4 * TILE + t]
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
        R0, R1, R2 = up[t], up[TILE + t], up[2 * TILE + t]
        here[t] = R0 * r00 + R1 * r10 + R2 * r20
        here[TILE + t] = R0 * r01 + R1 * r11 + R2 * r21
        here[2 * TILE + t] = R0 * r02 + R1 * r12 + R2 * r22
        here[9 * TILE + t] = up[9 * TILE + t] + R0 * p0 + R1 * p1 + R2 * p2
        R0, R1, R2 = up[3 * TILE + t], up[4 * TILE + t], up[5 * TILE + t]
        here[3 * TILE + t] = R0 * r00 + R1 * r10 + R2 * r20
        here[4 * TILE + t] = R0 * r01 + R1 * r11 + R2 * r21
        here[5 * TILE + t] = R0 * r02 + R1 * r12 + R2 * r22
        here[10 * TILE + t] = up[10 * TILE + t] + R0 * p0 + R1 * p1 + R2 * p2
        R0, R1, R2 = up[6 * TILE + t], up[7 * TILE + t], up[8 * TILE + t]
        here[6 * TILE + t] = R0 * r00 + R1 * r10 + R2 * r20
        here[7 * TILE + t] = R0 * r01 + R1 * r11 + R2 * r21
        here[8 * TILE + t] = R0 * r02 + R1 * r12 + R2 * r22
        here[11 * TILE + t] = up[11 * TILE + t] + R0 * p0 + R1 * p1 + R2 * p2
        w0, w1, w2 = up[12 * TILE + t], up[13 * TILE + t], up[14 * TILE + t]
        e0, e1, e2 = up[15 * TILE + t], up[16 * TILE + t], up[17 * TILE + t]
        h0, h1, h2 = w1 * p2 - w2 * p1, w2 * p0 - w0 * p2, w0 * p1 - w1 * p0
        a0 = up[18 * TILE + t] + e1 * p2 - e2 * p1 + w1 * h2 - w2 * h1
        a1 = up[19 * TILE + t] + e2 * p0 - e0 * p2 + w2 * h0 - w0 * h2
        a2 = up[20 * TILE + t] + e0 * p1 - e1 * p0 + w0 * h1 - w1 * h0
        u0 = r00 * w0 + r10 * w1 + r20 * w2
        u1 = r01 * w0 + r11 * w1 + r21 * w2
        u2 = r02 * w0 + r12 * w1 + r22 * w2
        here[12 * TILE + t], here[13 * TILE + t], here[14 * TILE + t] = u0 + s0 * d, u1 + s1 * d, u2 + s2 * d
        here[15 * TILE + t] = r00 * e0 + r10 * e1 + r20 * e2 + s0 * dd + d * (u1 * s2 - u2 * s1)
        here[16 * TILE + t] = r01 * e0 + r11 * e1 + r21 * e2 + s1 * dd + d * (u2 * s0 - u0 * s2)
        here[17 * TILE + t] = r02 * e0 + r12 * e1 + r22 * e2 + s2 * dd + d * (u0 * s1 - u1 * s0)
        here[18 * TILE + t] = r00 * a0 + r10 * a1 + r20 * a2 + v0 * dd + d * (2.0 * (u1 * v2 - u2 * v1) + x0 * d)
        here[19 * TILE + t] = r01 * a0 + r11 * a1 + r21 * a2 + v1 * dd + d * (2.0 * (u2 * v0 - u0 * v2) + x1 * d)
        here[20 * TILE + t] = r02 * a0 + r12 * a1 + r22 * a2 + v2 * dd + d * (2.0 * (u0 * v1 - u1 * v0) + x2 * d)


@njit(**OPTIONS)
def axis_tile(axis, here, out, m):
    """A joint's axis in the base frame: S = R s, V = R v + P x S."""
    s0, s1, s2, v0, v1, v2 = axis[0], axis[1], axis[2], axis[3], axis[4], axis[5]
    for t in range(m):
        S0 = here[t] * s0 + here[TILE + t] * s1 + here[2 * TILE + t] * s2
        S1 = here[3 * TILE + t] * s0 + here[4 * TILE + t] * s1 + here[5 * TILE + t] * s2
        S2 = here[6 * TILE + t] * s0 + here[7 * TILE + t] * s1 + here[8 * TILE + t] * s2
        P0, P1, P2 = here[9 * TILE + t], here[10 * TILE + t], here[11 * TILE + t]
        out[t], out[TILE + t], out[2 * TILE + t] = S0, S1, S2
        out[3 * TILE + t] = here[t] * v0 + here[TILE + t] * v1 + here[2 * TILE + t] * v2 + P1 * S2 - P2 * S1
        out[4 * TILE + t] = (here[3 * TILE + t] * v0 + here[4 * TILE + t] * v1 + here[5 * TILE + t] * v2
                             + P2 * S0 - P0 * S2)
        out[5 * TILE + t] = (here[6 * TILE + t] * v0 + here[7 * TILE + t] * v1 + here[8 * TILE + t] * v2
                             + P0 * S1 - P1 * S0)


@njit(**OPTIONS)
def regressor_tile(axis, here, ten, m):
    """What each of the ten numbers of a body adds to the torque of a joint that carries it (10 rows).

    The body's wrench is f = M a + e x h + w x (w x h), n = I e + w x I w + h x a (Ardiani, s. 1.2); the joint
    feels n.s + f.v with its axis s, v seen from the body. Collected by parameter, with u = s x w:
      I: s e' + u w' (symmetric part), h: v x e + w (w.v) - v |w|^2 + a x s, M: a.v
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
        u0, u1, u2 = s1 * w2 - s2 * w1, s2 * w0 - s0 * w2, s0 * w1 - s1 * w0
        ww = w0 * w0 + w1 * w1 + w2 * w2
        wv = w0 * v0 + w1 * v1 + w2 * v2
        ten[t] = s0 * e0 + u0 * w0
        ten[TILE + t] = s0 * e1 + s1 * e0 + u0 * w1 + u1 * w0
        ten[2 * TILE + t] = s0 * e2 + s2 * e0 + u0 * w2 + u2 * w0
        ten[3 * TILE + t] = s1 * e1 + u1 * w1
        ten[4 * TILE + t] = s1 * e2 + s2 * e1 + u1 * w2 + u2 * w1
        ten[5 * TILE + t] = s2 * e2 + u2 * w2
        ten[6 * TILE + t] = v1 * e2 - v2 * e1 + w0 * wv - ww * v0 + a1 * s2 - a2 * s1
        ten[7 * TILE + t] = v2 * e0 - v0 * e2 + w1 * wv - ww * v1 + a2 * s0 - a0 * s2
        ten[8 * TILE + t] = v0 * e1 - v1 * e0 + w2 * wv - ww * v2 + a0 * s1 - a1 * s0
        ten[9 * TILE + t] = a0 * v0 + a1 * v1 + a2 * v2


@njit(**OPTIONS)
def wrench_tile(body, here, out, m):
    """Force and moment about the base origin that a body with the ten numbers `body` needs, base frame (6 rows).

    f = M a + e x h + w x (w x h), n = I e + w x I w + h x a; then F = R f, N = R n + P x F.
    """
    XX, XY, XZ, YY, YZ, ZZ, h0, h1, h2, M = (body[0], body[1], body[2], body[3], body[4], body[5], body[6],
                                             body[7], body[8], body[9])
    for t in range(m):
        w0, w1, w2 = here[12 * TILE + t], here[13 * TILE + t], here[14 * TILE + t]
        e0, e1, e2 = here[15 * TILE + t], here[16 * TILE + t], here[17 * TILE + t]
        a0, a1, a2 = here[18 * TILE + t], here[19 * TILE + t], here[20 * TILE + t]
        wh0, wh1, wh2 = w1 * h2 - w2 * h1, w2 * h0 - w0 * h2, w0 * h1 - w1 * h0
        f0 = M * a0 + e1 * h2 - e2 * h1 + w1 * wh2 - w2 * wh1
        f1 = M * a1 + e2 * h0 - e0 * h2 + w2 * wh0 - w0 * wh2
        f2 = M * a2 + e0 * h1 - e1 * h0 + w0 * wh1 - w1 * wh0
        k0 = XX * w0 + XY * w1 + XZ * w2
        k1 = XY * w0 + YY * w1 + YZ * w2
        k2 = XZ * w0 + YZ * w1 + ZZ * w2
        n0 = XX * e0 + XY * e1 + XZ * e2 + w1 * k2 - w2 * k1 + h1 * a2 - h2 * a1
        n1 = XY * e0 + YY * e1 + YZ * e2 + w2 * k0 - w0 * k2 + h2 * a0 - h0 * a2
        n2 = XZ * e0 + YZ * e1 + ZZ * e2 + w0 * k1 - w1 * k0 + h0 * a1 - h1 * a0
        F0 = here[t] * f0 + here[TILE + t] * f1 + here[2 * TILE + t] * f2
        F1 = here[3 * TILE + t] * f0 + here[4 * TILE + t] * f1 + here[5 * TILE + t] * f2
        F2 = here[6 * TILE + t] * f0 + here[7 * TILE + t] * f1 + here[8 * TILE + t] * f2
        P0, P1, P2 = here[9 * TILE + t], here[10 * TILE + t], here[11 * TILE + t]
        out[t], out[TILE + t], out[2 * TILE + t] = F0, F1, F2
        out[3 * TILE + t] = here[t] * n0 + here[TILE + t] * n1 + here[2 * TILE + t] * n2 + P1 * F2 - P2 * F1
        out[4 * TILE + t] = (here[3 * TILE + t] * n0 + here[4 * TILE + t] * n1 + here[5 * TILE + t] * n2
                             + P2 * F0 - P0 * F2)
        out[5 * TILE + t] = (here[6 * TILE + t] * n0 + here[7 * TILE + t] * n1 + here[8 * TILE + t] * n2
                             + P0 * F1 - P1 * F0)


@njit(**OPTIONS)
def inertia_tile(body, here, out, m):
    """The ten numbers of a body about the base origin, base frame (10 rows).

    H = R h + M P, and with g = R h: I = R I R' + 2 (g.P) 1 - g P' - P g' + M (P.P 1 - P P').
    """
    XX, XY, XZ, YY, YZ, ZZ, h0, h1, h2, M = (body[0], body[1], body[2], body[3], body[4], body[5], body[6],
                                             body[7], body[8], body[9])
    for t in range(m):
        R00, R01, R02 = here[t], here[TILE + t], here[2 * TILE + t]
        R10, R11, R12 = here[3 * TILE + t], here[4 * TILE + t], here[5 * TILE + t]
        R20, R21, R22 = here[6 * TILE + t], here[7 * TILE + t], here[8 * TILE + t]
        P0, P1, P2 = here[9 * TILE + t], here[10 * TILE + t], here[11 * TILE + t]
        g0 = R00 * h0 + R01 * h1 + R02 * h2
        g1 = R10 * h0 + R11 * h1 + R12 * h2
        g2 = R20 * h0 + R21 * h1 + R22 * h2
        A00, A01, A02 = R00 * XX + R01 * XY + R02 * XZ, R00 * XY + R01 * YY + R02 * YZ, R00 * XZ + R01 * YZ + R02 * ZZ
        A10, A11, A12 = R10 * XX + R11 * XY + R12 * XZ, R10 * XY + R11 * YY + R12 * YZ, R10 * XZ + R11 * YZ + R12 * ZZ
        A20, A21, A22 = R20 * XX + R21 * XY + R22 * XZ, R20 * XY + R21 * YY + R22 * YZ, R20 * XZ + R21 * YZ + R22 * ZZ
        # k = g + M P / 2 folds both Steiner terms into one.
        k0, k1, k2 = g0 + 0.5 * M * P0, g1 + 0.5 * M * P1, g2 + 0.5 * M * P2
        trace = 2.0 * (k0 * P0 + k1 * P1 + k2 * P2)
        out[t] = A00 * R00 + A01 * R01 + A02 * R02 + trace - 2.0 * k0 * P0
        out[TILE + t] = A00 * R10 + A01 * R11 + A02 * R12 - k0 * P1 - k1 * P0
        out[2 * TILE + t] = A00 * R20 + A01 * R21 + A02 * R22 - k0 * P2 - k2 * P0
        out[3 * TILE + t] = A10 * R10 + A11 * R11 + A12 * R12 + trace - 2.0 * k1 * P1
        out[4 * TILE + t] = A10 * R20 + A11 * R21 + A12 * R22 - k1 * P2 - k2 * P1
        out[5 * TILE + t] = A20 * R20 + A21 * R21 + A22 * R22 + trace - 2.0 * k2 * P2
        out[6 * TILE + t] = g0 + M * P0
        out[7 * TILE + t] = g1 + M * P1
        out[8 * TILE + t] = g2 + M * P2
        out[9 * TILE + t] = M


@njit(**OPTIONS)
def momentum_tile(ten, axis, out, m):
    """Momentum of an inertia moving with an axis: L = M V + S x H, K = I S + H x V (6 rows, L first)."""
    for t in range(m):
        S0, S1, S2 = axis[t], axis[TILE + t], axis[2 * TILE + t]
        V0, V1, V2 = axis[3 * TILE + t], axis[4 * TILE + t], axis[5 * TILE + t]
        H0, H1, H2, M = ten[6 * TILE + t], ten[7 * TILE + t], ten[8 * TILE + t], ten[9 * TILE + t]
        out[t] = M * V0 + S1 * H2 - S2 * H1
        out[TILE + t] = M * V1 + S2 * H0 - S0 * H2
        out[2 * TILE + t] = M * V2 + S0 * H1 - S1 * H0
        out[3 * TILE + t] = ten[t] * S0 + ten[TILE + t] * S1 + ten[2 * TILE + t] * S2 + H1 * V2 - H2 * V1
        out[4 * TILE + t] = ten[TILE + t] * S0 + ten[3 * TILE + t] * S1 + ten[4 * TILE + t] * S2 + H2 * V0 - H0 * V2
        out[5 * TILE + t] = ten[2 * TILE + t] * S0 + ten[4 * TILE + t] * S1 + ten[5 * TILE + t] * S2 + H0 * V1 - H1 * V0


@njit(**OPTIONS)
def project_tile(wrench, axis, out, m):
    """Power of a wrench (force, moment) on an axis: out = N.S + F.V (1 row)."""
    for t in range(m):
        out[t] = (axis[t] * wrench[3 * TILE + t] + axis[TILE + t] * wrench[4 * TILE + t]
                  + axis[2 * TILE + t] * wrench[5 * TILE + t] + axis[3 * TILE + t] * wrench[t]
                  + axis[4 * TILE + t] * wrench[TILE + t] + axis[5 * TILE + t] * wrench[2 * TILE + t])


@njit(**OPTIONS)
def add_tile(rows, source, target, m):
    """target += source over the given number of rows."""
    for k in range(rows):
        for t in range(m):
            target[k * TILE + t] += source[k * TILE + t]

"""Inertia matrix and bias torques of a single state, for integrators that go from one state to the next.

The tiles do many samples at once; a simulation has one. The formulas of a body's pose, axis and inertia are those
of `tiles`. Velocities, accelerations and wrenches are kept in the base frame about the base origin, where those of
different bodies add without any transformation:

    V_i = V_p + S_i dq_i,   A_i = A_p + V_p x S_i dq_i,   W_i = I_i A_i + V_i x* I_i V_i.
"""

from __future__ import annotations

import math

from numba import njit

from dynid.dynamics.tiles import OPTIONS
from dynid.robot.inertia import Array

FRAME, MOTION, COMPOSITE = 12, 18, 16  # numbers of a body: R P; S V A; ten numbers and a wrench
_INLINE = {**OPTIONS, "inline": "always"}  # a fifth faster: the numbers of a body stay in registers


@njit(**OPTIONS)
def mass_and_bias(parent: Array, pose: Array, axis: Array, gravity: Array, ten: Array, q: Array, dq: Array,
                  frame: Array, motion: Array, composite: Array, matrix: Array, bias: Array) -> None:
    """Lower triangle of the inertia matrix (n, n) and c(q, dq) + g(q) (n,).

    frame (n, 12), motion (n, 18) and composite (n, 16) are working space. Entries of `matrix` that join two branches
    are left as they are and must be zero on entry.
    """
    n = len(parent)
    for i in range(n):
        _move(parent[i], pose[i], axis[i], gravity, q[i], dq[i], i, frame, motion)
        _load(ten[i], frame[i], motion[i], composite[i])
    for i in range(n - 1, -1, -1):
        here, p = composite[i], parent[i]
        if p >= 0:
            above = composite[p]
            for k in range(COMPOSITE):
                above[k] += here[k]
        s = motion[i]
        S0, S1, S2, V0, V1, V2 = s[0], s[1], s[2], s[3], s[4], s[5]
        H0, H1, H2, M = here[6], here[7], here[8], here[9]
        # Momentum of all that joint i carries, moving with its axis (see `momentum_tile`).
        L0, L1, L2 = M * V0 + S1 * H2 - S2 * H1, M * V1 + S2 * H0 - S0 * H2, M * V2 + S0 * H1 - S1 * H0
        K0 = here[0] * S0 + here[1] * S1 + here[2] * S2 + H1 * V2 - H2 * V1
        K1 = here[1] * S0 + here[3] * S1 + here[4] * S2 + H2 * V0 - H0 * V2
        K2 = here[2] * S0 + here[4] * S1 + here[5] * S2 + H0 * V1 - H1 * V0
        bias[i] = S0 * here[13] + S1 * here[14] + S2 * here[15] + V0 * here[10] + V1 * here[11] + V2 * here[12]
        j = i
        while j >= 0:
            a = motion[j]
            matrix[i, j] = a[0] * K0 + a[1] * K1 + a[2] * K2 + a[3] * L0 + a[4] * L1 + a[5] * L2
            j = parent[j]


@njit(**_INLINE)
def _move(p: int, pose: Array, axis: Array, gravity: Array, x: float, d: float, i: int, frame: Array,
          motion: Array) -> None:
    """Frame, axis, velocity and velocity-dependent acceleration (minus gravity) of body i with parent p."""
    c, s = math.cos(x), math.sin(x)
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
    f, m = frame[i], motion[i]
    if p < 0:
        f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8] = r00, r01, r02, r10, r11, r12, r20, r21, r22
        f[9], f[10], f[11] = p0, p1, p2
    else:
        u = frame[p]
        a, b, e = u[0], u[1], u[2]
        f[0], f[1], f[2] = a * r00 + b * r10 + e * r20, a * r01 + b * r11 + e * r21, a * r02 + b * r12 + e * r22
        f[9] = u[9] + a * p0 + b * p1 + e * p2
        a, b, e = u[3], u[4], u[5]
        f[3], f[4], f[5] = a * r00 + b * r10 + e * r20, a * r01 + b * r11 + e * r21, a * r02 + b * r12 + e * r22
        f[10] = u[10] + a * p0 + b * p1 + e * p2
        a, b, e = u[6], u[7], u[8]
        f[6], f[7], f[8] = a * r00 + b * r10 + e * r20, a * r01 + b * r11 + e * r21, a * r02 + b * r12 + e * r22
        f[11] = u[11] + a * p0 + b * p1 + e * p2
    s0, s1, s2, v0, v1, v2 = axis[0], axis[1], axis[2], axis[3], axis[4], axis[5]
    S0 = f[0] * s0 + f[1] * s1 + f[2] * s2
    S1 = f[3] * s0 + f[4] * s1 + f[5] * s2
    S2 = f[6] * s0 + f[7] * s1 + f[8] * s2
    V0 = f[0] * v0 + f[1] * v1 + f[2] * v2 + f[10] * S2 - f[11] * S1
    V1 = f[3] * v0 + f[4] * v1 + f[5] * v2 + f[11] * S0 - f[9] * S2
    V2 = f[6] * v0 + f[7] * v1 + f[8] * v2 + f[9] * S1 - f[10] * S0
    m[0], m[1], m[2], m[3], m[4], m[5] = S0, S1, S2, V0, V1, V2
    if p < 0:
        m[6], m[7], m[8], m[9], m[10], m[11] = S0 * d, S1 * d, S2 * d, V0 * d, V1 * d, V2 * d
        m[12], m[13], m[14] = 0.0, 0.0, 0.0
        m[15], m[16], m[17] = -gravity[0], -gravity[1], -gravity[2]
        return
    u = motion[p]
    w0, w1, w2, u0, u1, u2 = u[6], u[7], u[8], u[9], u[10], u[11]
    m[6], m[7], m[8] = w0 + S0 * d, w1 + S1 * d, w2 + S2 * d
    m[9], m[10], m[11] = u0 + V0 * d, u1 + V1 * d, u2 + V2 * d
    m[12] = u[12] + d * (w1 * S2 - w2 * S1)
    m[13] = u[13] + d * (w2 * S0 - w0 * S2)
    m[14] = u[14] + d * (w0 * S1 - w1 * S0)
    m[15] = u[15] + d * (w1 * V2 - w2 * V1 + u1 * S2 - u2 * S1)
    m[16] = u[16] + d * (w2 * V0 - w0 * V2 + u2 * S0 - u0 * S2)
    m[17] = u[17] + d * (w0 * V1 - w1 * V0 + u0 * S1 - u1 * S0)


@njit(**_INLINE)
def _load(body: Array, f: Array, m: Array, out: Array) -> None:
    """The ten numbers of a body about the base origin (see `inertia_tile`), then the wrench it needs: F, N.

    L = M u + w x H, K = I w + H x u; F = M a + e x H + w x L, N = I e + H x a + w x K + u x L.
    """
    XX, XY, XZ, YY, YZ, ZZ, h0, h1, h2, M = (body[0], body[1], body[2], body[3], body[4], body[5], body[6], body[7],
                                             body[8], body[9])
    R00, R01, R02, R10, R11, R12, R20, R21, R22 = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]
    P0, P1, P2 = f[9], f[10], f[11]
    g0 = R00 * h0 + R01 * h1 + R02 * h2
    g1 = R10 * h0 + R11 * h1 + R12 * h2
    g2 = R20 * h0 + R21 * h1 + R22 * h2
    A00, A01, A02 = R00 * XX + R01 * XY + R02 * XZ, R00 * XY + R01 * YY + R02 * YZ, R00 * XZ + R01 * YZ + R02 * ZZ
    A10, A11, A12 = R10 * XX + R11 * XY + R12 * XZ, R10 * XY + R11 * YY + R12 * YZ, R10 * XZ + R11 * YZ + R12 * ZZ
    A20, A21, A22 = R20 * XX + R21 * XY + R22 * XZ, R20 * XY + R21 * YY + R22 * YZ, R20 * XZ + R21 * YZ + R22 * ZZ
    k0, k1, k2 = g0 + 0.5 * M * P0, g1 + 0.5 * M * P1, g2 + 0.5 * M * P2
    trace = 2.0 * (k0 * P0 + k1 * P1 + k2 * P2)
    I00 = A00 * R00 + A01 * R01 + A02 * R02 + trace - 2.0 * k0 * P0
    I01 = A00 * R10 + A01 * R11 + A02 * R12 - k0 * P1 - k1 * P0
    I02 = A00 * R20 + A01 * R21 + A02 * R22 - k0 * P2 - k2 * P0
    I11 = A10 * R10 + A11 * R11 + A12 * R12 + trace - 2.0 * k1 * P1
    I12 = A10 * R20 + A11 * R21 + A12 * R22 - k1 * P2 - k2 * P1
    I22 = A20 * R20 + A21 * R21 + A22 * R22 + trace - 2.0 * k2 * P2
    H0, H1, H2 = g0 + M * P0, g1 + M * P1, g2 + M * P2
    w0, w1, w2, u0, u1, u2 = m[6], m[7], m[8], m[9], m[10], m[11]
    e0, e1, e2, a0, a1, a2 = m[12], m[13], m[14], m[15], m[16], m[17]
    L0, L1, L2 = M * u0 + w1 * H2 - w2 * H1, M * u1 + w2 * H0 - w0 * H2, M * u2 + w0 * H1 - w1 * H0
    K0 = I00 * w0 + I01 * w1 + I02 * w2 + H1 * u2 - H2 * u1
    K1 = I01 * w0 + I11 * w1 + I12 * w2 + H2 * u0 - H0 * u2
    K2 = I02 * w0 + I12 * w1 + I22 * w2 + H0 * u1 - H1 * u0
    out[0], out[1], out[2], out[3], out[4], out[5] = I00, I01, I02, I11, I12, I22
    out[6], out[7], out[8], out[9] = H0, H1, H2, M
    out[10] = M * a0 + e1 * H2 - e2 * H1 + w1 * L2 - w2 * L1
    out[11] = M * a1 + e2 * H0 - e0 * H2 + w2 * L0 - w0 * L2
    out[12] = M * a2 + e0 * H1 - e1 * H0 + w0 * L1 - w1 * L0
    out[13] = I00 * e0 + I01 * e1 + I02 * e2 + H1 * a2 - H2 * a1 + w1 * K2 - w2 * K1 + u1 * L2 - u2 * L1
    out[14] = I01 * e0 + I11 * e1 + I12 * e2 + H2 * a0 - H0 * a2 + w2 * K0 - w0 * K2 + u2 * L0 - u0 * L2
    out[15] = I02 * e0 + I12 * e1 + I22 * e2 + H0 * a1 - H1 * a0 + w0 * K1 - w1 * K0 + u0 * L1 - u1 * L0

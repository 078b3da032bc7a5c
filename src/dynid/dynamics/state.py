"""Inertia matrix and bias torques of a single state, for integrators that go from one state to the next.

The tiles do many samples at once; a simulation has one, so here the lanes of a SIMD vector are bodies. The formulas
of a body's pose, axis and inertia are those of `tiles`. Velocities, accelerations and wrenches are kept in the base
frame about the base origin, where those of different bodies add without any transformation:

    V_i = V_p + S_i dq_i,   A_i = A_p + V_p x S_i dq_i,   W_i = I_i A_i + V_i x* I_i V_i.

Only the walk along the chain is done body by body. All numbers stand in one flat array, in blocks of LANES bodies:
row k of body i is at [(i // LANES) BLOCK + k LANES + i % LANES]. One array with constant strides lets LLVM prove that
rows do not overlap.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dynid.arrays import Array
from dynid.dynamics.tiles import BORROWING, JOINT, TILE, joint_tile
from dynid.dynamics.tree import Tree

LANES = 8
# First row of: cos, sin and value of q; pose in the parent r p; frame R P; axis S; velocity V; acceleration A; the ten
# numbers of the body; those about the base origin, later of all it carries; its wrench F N; momentum L K of all it
# carries moving with its axis; constants of the pose (see `Tree`) and the axis.
_CS, _RP, _FRAME, _S, _V, _A, _TEN, _INERTIA, _WRENCH, _MOMENTUM, _POSE, _AXIS = (
    k * LANES for k in (0, 3, 15, 27, 33, 39, 45, 55, 65, 71, 77, 125))
ROWS = 131
BLOCK = ROWS * LANES


def pack(tree: Tree, ten: Array) -> Array:
    """The working array of a robot with bodies `ten` (n, 10)."""
    n = len(tree.parent)
    blocks = -(-n // LANES)
    rows = np.zeros((blocks, ROWS, LANES))
    for i in range(n):
        column = rows[i // LANES, :, i % LANES]
        for first, values in ((_TEN, ten[i]), (_POSE, tree.pose[i]), (_AXIS, tree.axis[i])):
            column[first // LANES:first // LANES + len(values)] = values
    # Sines and cosines of a block are made by `joint_tile`, whose own space follows behind the blocks.
    return np.concatenate([rows.ravel(), np.zeros(JOINT * TILE)])


@njit(**BORROWING)
def mass_and_bias(parent: Array, gravity: Array, w: Array, q: Array, dq: Array, matrix: Array, bias: Array) -> None:
    """Lower triangle of the inertia matrix (n, n) and c(q, dq) + g(q) (n,); q and dq may be longer than n.

    w: see `pack`.
    """
    n = len(parent)
    blocks = (n + LANES - 1) // LANES
    joint = w[blocks * BLOCK:]
    for b in range(blocks):
        block = w[b * BLOCK:(b + 1) * BLOCK]
        for t in range(min(LANES, n - b * LANES)):
            block[_CS + 2 * LANES + t] = q[b * LANES + t]
        column = block[_CS + 2 * LANES:_CS + 3 * LANES].reshape(LANES, 1)
        joint_tile(column, column, column, 0, 0, 0, LANES, joint)
        for t in range(LANES):
            block[_CS + t], block[_CS + LANES + t] = joint[t], joint[TILE + t]
        _poses(block)
    _walk(parent, gravity, w, dq)
    for b in range(blocks):
        _loads(w[b * BLOCK:(b + 1) * BLOCK])
    for i in range(n - 1, -1, -1):
        p = parent[i]
        if p >= 0:
            here, above = w[(i // LANES) * BLOCK + i % LANES:], w[(p // LANES) * BLOCK + p % LANES:]
            for k in range(16):
                above[_INERTIA + k * LANES] += here[_INERTIA + k * LANES]
    for b in range(blocks):
        _momenta(w[b * BLOCK:(b + 1) * BLOCK])
    for i in range(n):
        own = w[(i // LANES) * BLOCK + i % LANES:]
        L0, L1, L2 = own[_MOMENTUM], own[_MOMENTUM + LANES], own[_MOMENTUM + 2 * LANES]
        K0, K1, K2 = own[_MOMENTUM + 3 * LANES], own[_MOMENTUM + 4 * LANES], own[_MOMENTUM + 5 * LANES]
        bias[i] = own[_RP]
        j = i
        while j >= 0:
            s = w[(j // LANES) * BLOCK + j % LANES:]
            matrix[i, j] = (s[_S] * K0 + s[_S + LANES] * K1 + s[_S + 2 * LANES] * K2 + s[_S + 3 * LANES] * L0
                            + s[_S + 4 * LANES] * L1 + s[_S + 5 * LANES] * L2)
            for k in range(parent[j] + 1, j):  # bodies of other branches
                matrix[i, k] = 0.0
            j = parent[j]


@njit(**BORROWING)
def _poses(w: Array) -> None:
    """Pose in the parent: T0 + cos Tc + sin Ts + q Tq (see `Tree`); only places move with q."""
    c, s, z = _POSE + 12 * LANES, _POSE + 24 * LANES, _POSE + 36 * LANES
    for t in range(LANES):
        C, S, x = w[_CS + t], w[_CS + LANES + t], w[_CS + 2 * LANES + t]
        w[_RP + t] = w[_POSE + t] + C * w[c + t] + S * w[s + t]
        w[_RP + LANES + t] = w[_POSE + LANES + t] + C * w[c + LANES + t] + S * w[s + LANES + t]
        w[_RP + 2 * LANES + t] = w[_POSE + 2 * LANES + t] + C * w[c + 2 * LANES + t] + S * w[s + 2 * LANES + t]
        w[_RP + 3 * LANES + t] = (w[_POSE + 3 * LANES + t] + C * w[c + 3 * LANES + t] + S * w[s + 3 * LANES + t]
                                 + x * w[z + 3 * LANES + t])
        w[_RP + 4 * LANES + t] = w[_POSE + 4 * LANES + t] + C * w[c + 4 * LANES + t] + S * w[s + 4 * LANES + t]
        w[_RP + 5 * LANES + t] = w[_POSE + 5 * LANES + t] + C * w[c + 5 * LANES + t] + S * w[s + 5 * LANES + t]
        w[_RP + 6 * LANES + t] = w[_POSE + 6 * LANES + t] + C * w[c + 6 * LANES + t] + S * w[s + 6 * LANES + t]
        w[_RP + 7 * LANES + t] = (w[_POSE + 7 * LANES + t] + C * w[c + 7 * LANES + t] + S * w[s + 7 * LANES + t]
                                 + x * w[z + 7 * LANES + t])
        w[_RP + 8 * LANES + t] = w[_POSE + 8 * LANES + t] + C * w[c + 8 * LANES + t] + S * w[s + 8 * LANES + t]
        w[_RP + 9 * LANES + t] = w[_POSE + 9 * LANES + t] + C * w[c + 9 * LANES + t] + S * w[s + 9 * LANES + t]
        w[_RP + 10 * LANES + t] = w[_POSE + 10 * LANES + t] + C * w[c + 10 * LANES + t] + S * w[s + 10 * LANES + t]
        w[_RP + 11 * LANES + t] = (w[_POSE + 11 * LANES + t] + C * w[c + 11 * LANES + t] + S * w[s + 11 * LANES + t]
                                 + x * w[z + 11 * LANES + t])


@njit(**BORROWING)
def _walk(parent: Array, gravity: Array, w: Array, dq: Array) -> None:
    """Frames, axes, velocities and velocity-dependent accelerations (minus gravity), from the base outwards."""
    for i in range(len(parent)):
        p, d = parent[i], dq[i]
        x = w[(i // LANES) * BLOCK + i % LANES:]
        r, f = _RP, _FRAME
        r00, r01, r02, p0 = x[r], x[r + LANES], x[r + 2 * LANES], x[r + 3 * LANES]
        r10, r11, r12, p1 = x[r + 4 * LANES], x[r + 5 * LANES], x[r + 6 * LANES], x[r + 7 * LANES]
        r20, r21, r22, p2 = x[r + 8 * LANES], x[r + 9 * LANES], x[r + 10 * LANES], x[r + 11 * LANES]
        w0, w1, w2, u0, u1, u2, e0, e1, e2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        a0, a1, a2 = -gravity[0], -gravity[1], -gravity[2]
        R00, R01, R02, R10, R11, R12, R20, R21, R22 = r00, r01, r02, r10, r11, r12, r20, r21, r22
        P0, P1, P2 = p0, p1, p2
        if p >= 0:
            y = w[(p // LANES) * BLOCK + p % LANES:]
            g, v, a = _FRAME, _V, _A
            A0, A1, A2 = y[g], y[g + LANES], y[g + 2 * LANES]
            R00, R01 = A0 * r00 + A1 * r10 + A2 * r20, A0 * r01 + A1 * r11 + A2 * r21
            R02 = A0 * r02 + A1 * r12 + A2 * r22
            P0 = y[g + 3 * LANES] + A0 * p0 + A1 * p1 + A2 * p2
            A0, A1, A2 = y[g + 4 * LANES], y[g + 5 * LANES], y[g + 6 * LANES]
            R10, R11 = A0 * r00 + A1 * r10 + A2 * r20, A0 * r01 + A1 * r11 + A2 * r21
            R12 = A0 * r02 + A1 * r12 + A2 * r22
            P1 = y[g + 7 * LANES] + A0 * p0 + A1 * p1 + A2 * p2
            A0, A1, A2 = y[g + 8 * LANES], y[g + 9 * LANES], y[g + 10 * LANES]
            R20, R21 = A0 * r00 + A1 * r10 + A2 * r20, A0 * r01 + A1 * r11 + A2 * r21
            R22 = A0 * r02 + A1 * r12 + A2 * r22
            P2 = y[g + 11 * LANES] + A0 * p0 + A1 * p1 + A2 * p2
            w0, w1, w2 = y[v], y[v + LANES], y[v + 2 * LANES]
            u0, u1, u2 = y[v + 3 * LANES], y[v + 4 * LANES], y[v + 5 * LANES]
            e0, e1, e2 = y[a], y[a + LANES], y[a + 2 * LANES]
            a0, a1, a2 = y[a + 3 * LANES], y[a + 4 * LANES], y[a + 5 * LANES]
        x[f], x[f + LANES], x[f + 2 * LANES], x[f + 3 * LANES] = R00, R01, R02, P0
        x[f + 4 * LANES], x[f + 5 * LANES], x[f + 6 * LANES], x[f + 7 * LANES] = R10, R11, R12, P1
        x[f + 8 * LANES], x[f + 9 * LANES], x[f + 10 * LANES], x[f + 11 * LANES] = R20, R21, R22, P2
        c = _AXIS
        s0, s1, s2 = x[c], x[c + LANES], x[c + 2 * LANES]
        v0, v1, v2 = x[c + 3 * LANES], x[c + 4 * LANES], x[c + 5 * LANES]
        S0, S1, S2 = R00 * s0 + R01 * s1 + R02 * s2, R10 * s0 + R11 * s1 + R12 * s2, R20 * s0 + R21 * s1 + R22 * s2
        V0 = R00 * v0 + R01 * v1 + R02 * v2 + P1 * S2 - P2 * S1
        V1 = R10 * v0 + R11 * v1 + R12 * v2 + P2 * S0 - P0 * S2
        V2 = R20 * v0 + R21 * v1 + R22 * v2 + P0 * S1 - P1 * S0
        s, v, a = _S, _V, _A
        x[s], x[s + LANES], x[s + 2 * LANES] = S0, S1, S2
        x[s + 3 * LANES], x[s + 4 * LANES], x[s + 5 * LANES] = V0, V1, V2
        x[a] = e0 + d * (w1 * S2 - w2 * S1)
        x[a + LANES] = e1 + d * (w2 * S0 - w0 * S2)
        x[a + 2 * LANES] = e2 + d * (w0 * S1 - w1 * S0)
        x[a + 3 * LANES] = a0 + d * (w1 * V2 - w2 * V1 + u1 * S2 - u2 * S1)
        x[a + 4 * LANES] = a1 + d * (w2 * V0 - w0 * V2 + u2 * S0 - u0 * S2)
        x[a + 5 * LANES] = a2 + d * (w0 * V1 - w1 * V0 + u0 * S1 - u1 * S0)
        x[v], x[v + LANES], x[v + 2 * LANES] = w0 + d * S0, w1 + d * S1, w2 + d * S2
        x[v + 3 * LANES], x[v + 4 * LANES], x[v + 5 * LANES] = u0 + d * V0, u1 + d * V1, u2 + d * V2


@njit(**BORROWING)
def _loads(w: Array) -> None:
    """The ten numbers of each body about the base origin (see `inertia_tile`), and the wrench it needs:

    L = M u + w x H, K = I w + H x u; F = M a + e x H + w x L, N = I e + H x a + w x K + u x L.
    """
    f, m, o = _FRAME, _TEN, _INERTIA
    for t in range(LANES):
        R00, R01, R02, P0 = w[f + t], w[f + LANES + t], w[f + 2 * LANES + t], w[f + 3 * LANES + t]
        R10, R11, R12, P1 = w[f + 4 * LANES + t], w[f + 5 * LANES + t], w[f + 6 * LANES + t], w[f + 7 * LANES + t]
        R20, R21, R22, P2 = w[f + 8 * LANES + t], w[f + 9 * LANES + t], w[f + 10 * LANES + t], w[f + 11 * LANES + t]
        XX, XY, XZ, YY = w[m + t], w[m + LANES + t], w[m + 2 * LANES + t], w[m + 3 * LANES + t]
        YZ, ZZ, M = w[m + 4 * LANES + t], w[m + 5 * LANES + t], w[m + 9 * LANES + t]
        h0, h1, h2 = w[m + 6 * LANES + t], w[m + 7 * LANES + t], w[m + 8 * LANES + t]
        g0 = R00 * h0 + R01 * h1 + R02 * h2
        g1 = R10 * h0 + R11 * h1 + R12 * h2
        g2 = R20 * h0 + R21 * h1 + R22 * h2
        A00, A01, A02 = R00 * XX + R01 * XY + R02 * XZ, R00 * XY + R01 * YY + R02 * YZ, R00 * XZ + R01 * YZ + R02 * ZZ
        A10, A11, A12 = R10 * XX + R11 * XY + R12 * XZ, R10 * XY + R11 * YY + R12 * YZ, R10 * XZ + R11 * YZ + R12 * ZZ
        A20, A21, A22 = R20 * XX + R21 * XY + R22 * XZ, R20 * XY + R21 * YY + R22 * YZ, R20 * XZ + R21 * YZ + R22 * ZZ
        k0, k1, k2 = g0 + 0.5 * M * P0, g1 + 0.5 * M * P1, g2 + 0.5 * M * P2
        k0P0, k1P1, k2P2 = 2.0 * k0 * P0, 2.0 * k1 * P1, 2.0 * k2 * P2
        I00 = A00 * R00 + A01 * R01 + A02 * R02 + k1P1 + k2P2
        I01 = A00 * R10 + A01 * R11 + A02 * R12 - k0 * P1 - k1 * P0
        I02 = A00 * R20 + A01 * R21 + A02 * R22 - k0 * P2 - k2 * P0
        I11 = A10 * R10 + A11 * R11 + A12 * R12 + k0P0 + k2P2
        I12 = A10 * R20 + A11 * R21 + A12 * R22 - k1 * P2 - k2 * P1
        I22 = A20 * R20 + A21 * R21 + A22 * R22 + k0P0 + k1P1
        H0, H1, H2 = g0 + M * P0, g1 + M * P1, g2 + M * P2
        v, a = _V, _A
        w0, w1, w2 = w[v + t], w[v + LANES + t], w[v + 2 * LANES + t]
        u0, u1, u2 = w[v + 3 * LANES + t], w[v + 4 * LANES + t], w[v + 5 * LANES + t]
        e0, e1, e2 = w[a + t], w[a + LANES + t], w[a + 2 * LANES + t]
        a0, a1, a2 = w[a + 3 * LANES + t], w[a + 4 * LANES + t], w[a + 5 * LANES + t]
        L0, L1, L2 = M * u0 + w1 * H2 - w2 * H1, M * u1 + w2 * H0 - w0 * H2, M * u2 + w0 * H1 - w1 * H0
        K0 = I00 * w0 + I01 * w1 + I02 * w2 + H1 * u2 - H2 * u1
        K1 = I01 * w0 + I11 * w1 + I12 * w2 + H2 * u0 - H0 * u2
        K2 = I02 * w0 + I12 * w1 + I22 * w2 + H0 * u1 - H1 * u0
        w[o + t], w[o + LANES + t], w[o + 2 * LANES + t] = I00, I01, I02
        w[o + 3 * LANES + t], w[o + 4 * LANES + t], w[o + 5 * LANES + t] = I11, I12, I22
        w[o + 6 * LANES + t], w[o + 7 * LANES + t], w[o + 8 * LANES + t] = H0, H1, H2
        w[o + 9 * LANES + t] = M
        w[o + 10 * LANES + t] = M * a0 + e1 * H2 - e2 * H1 + w1 * L2 - w2 * L1
        w[o + 11 * LANES + t] = M * a1 + e2 * H0 - e0 * H2 + w2 * L0 - w0 * L2
        w[o + 12 * LANES + t] = M * a2 + e0 * H1 - e1 * H0 + w0 * L1 - w1 * L0
        w[o + 13 * LANES + t] = (I00 * e0 + I01 * e1 + I02 * e2 + H1 * a2 - H2 * a1
                                  + w1 * K2 - w2 * K1 + u1 * L2 - u2 * L1)
        w[o + 14 * LANES + t] = (I01 * e0 + I11 * e1 + I12 * e2 + H2 * a0 - H0 * a2
                                  + w2 * K0 - w0 * K2 + u2 * L0 - u0 * L2)
        w[o + 15 * LANES + t] = (I02 * e0 + I12 * e1 + I22 * e2 + H0 * a1 - H1 * a0
                                  + w0 * K1 - w1 * K0 + u0 * L1 - u1 * L0)


@njit(**BORROWING)
def _momenta(w: Array) -> None:
    """Momentum of all that each joint carries, moving with its axis (see `momentum_tile`), and its bias torque, left in
    the first row of the poses: L = M V + S x H, K = I S + H x V, bias = S.N + V.F."""
    o, s, m = _INERTIA, _S, _MOMENTUM
    for t in range(LANES):
        S0, S1, S2 = w[s + t], w[s + LANES + t], w[s + 2 * LANES + t]
        V0, V1, V2 = w[s + 3 * LANES + t], w[s + 4 * LANES + t], w[s + 5 * LANES + t]
        H0, H1, H2, M = w[o + 6 * LANES + t], w[o + 7 * LANES + t], w[o + 8 * LANES + t], w[o + 9 * LANES + t]
        I01, I02, I12 = w[o + LANES + t], w[o + 2 * LANES + t], w[o + 4 * LANES + t]
        bias = (V0 * w[o + 10 * LANES + t] + V1 * w[o + 11 * LANES + t] + V2 * w[o + 12 * LANES + t]
                + S0 * w[o + 13 * LANES + t] + S1 * w[o + 14 * LANES + t] + S2 * w[o + 15 * LANES + t])
        w[m + t] = M * V0 + S1 * H2 - S2 * H1
        w[m + LANES + t] = M * V1 + S2 * H0 - S0 * H2
        w[m + 2 * LANES + t] = M * V2 + S0 * H1 - S1 * H0
        w[m + 3 * LANES + t] = w[o + t] * S0 + I01 * S1 + I02 * S2 + H1 * V2 - H2 * V1
        w[m + 4 * LANES + t] = I01 * S0 + w[o + 3 * LANES + t] * S1 + I12 * S2 + H2 * V0 - H0 * V2
        w[m + 5 * LANES + t] = I02 * S0 + I12 * S1 + w[o + 5 * LANES + t] * S2 + H0 * V1 - H1 * V0
        w[_RP + t] = bias


@njit(**BORROWING)
def solve_state(matrix: Array, inverse: Array, x: Array) -> bool:
    """x := matrix^-1 x by L D L' of the lower triangle, in place, `inverse` (n,) being working space for 1 / D.

    False where the matrix is singular, by the rule of `solve_symmetric`; one division a row.
    """
    n = len(inverse)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(matrix[i, i]))
    for i in range(n):
        diagonal, rest = matrix[i, i], x[i]
        lost = 1e-13 * abs(diagonal) + 1e-16 * largest  # a pivot below it is rounding
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value  # L_ij D_j, until the row is done
            scaled = value * inverse[j]
            diagonal -= value * scaled
            rest -= scaled * x[j]
        for j in range(i):
            matrix[i, j] *= inverse[j]
        if not abs(diagonal) > lost:
            return False
        inverse[i], x[i] = 1.0 / diagonal, rest
    for i in range(n - 1, -1, -1):
        value = x[i] * inverse[i]
        for k in range(i + 1, n):
            value -= matrix[k, i] * x[k]
        x[i] = value
    return True

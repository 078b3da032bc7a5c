"""The physics of one body for a tile of samples: loops over the formulas of `bodies` that the compiler turns into SIMD.

A tile holds up to TILE samples. Every quantity is a row of TILE numbers in a flat array, so that row k
of sample t is at [k * TILE + t]: the constant stride lets LLVM prove that rows do not overlap.

Rows of a body (21): R 0..8 its rotation and P 9..11 the place of its origin, both in the base frame;
W 12..14 angular velocity, E 15..17 angular acceleration, A 18..20 acceleration of the origin minus
gravity, these three in the body frame.
Rows of an axis (6): turn 0..2 and velocity of the body's point at the base origin 3..5, base frame. In
that form axes, wrenches and inertias of different bodies are added without any transformation.
"""

from __future__ import annotations

import math

from dynid.dynamics.bodies import (
    acceleration_at,
    axis_in_base,
    axis_in_body,
    inertia_in_base,
    momentum,
    placed,
    pose_in_parent,
    wrench,
    wrench_in_base,
)
from dynid.dynamics.compiled import INLINED, INNER, INNER_BORROWING
from dynid.dynamics.vectors import add_cross, add_times, cross, dot, matrix, put, symmetric, times, turned_back, vector
from dynid.kernel_store import njit

TILE = 64
BODY, AXIS, TEN, WRENCH, JOINT = 21, 6, 10, 6, 5  # rows each

# pi/2 in three parts whose products with a quadrant number below 2^24 are exact (Cody and Waite).
_HALF_PI_1, _HALF_PI_2, _HALF_PI_3 = 1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17
EXACT_ANGLE = 1.0e6  # rad; beyond it the library's sine is used


@njit(**INLINED)
def cos_sin(x: float) -> tuple[float, float]:
    """Return cosine and sine of |x| <= EXACT_ANGLE, accurate to the last one or two digits, without branches.

    The angle is reduced to |r| <= pi/4 in quadrant k, then the minimax polynomials of the Cephes library are used.
    """
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
    return ((sine if odd else cosine) * (1.0 if quadrant < 0.5 or quadrant > 2.5 else -1.0),
            (cosine if odd else sine) * (1.0 if quadrant < 1.5 else -1.0))


@njit(**INNER_BORROWING)
def angle_tile(joint, m):
    """Compute rows cos q and sin q of a joint from its row q."""
    far = False
    for t in range(m):
        far = far or abs(joint[2 * TILE + t]) > EXACT_ANGLE
    if far:
        for t in range(m):
            joint[t] = math.cos(joint[2 * TILE + t])
            joint[TILE + t] = math.sin(joint[2 * TILE + t])
        return
    for t in range(m):
        joint[t], joint[TILE + t] = cos_sin(joint[2 * TILE + t])


@njit(**INNER_BORROWING)
def joint_tile(q, dq, ddq, i, lo, m, joint):
    """Compute the rows of a joint (5): cos q, sin q, q, dq, ddq, from columns i of (samples, joints) arrays.

    dq and ddq may be empty (0, joints) and are then zero. (A flag would be compiled again for each of its values.)
    """
    moving, accelerating = len(dq) > 0, len(ddq) > 0
    for t in range(m):
        joint[2 * TILE + t] = q[lo + t, i]
        joint[3 * TILE + t] = dq[lo + t, i] if moving else 0.0
        joint[4 * TILE + t] = ddq[lo + t, i] if accelerating else 0.0
    angle_tile(joint, m)


@njit(**INNER)
def body_tile(pose, axis, joint, up, here, m):
    """Compute the motion of a body from its parent's (`up`) and its joint's.

    With r, p the pose in the parent and s, v the axis, all primes in the body frame:
      R' = R r, P' = P + R p
      W' = r' W + s dq
      E' = r' E + s ddq + (r' W) x s dq
      A' = r' (A + E x p + W x (W x p)) + v ddq + 2 (r' W) x v dq + s x v dq^2
    """
    s, v = vector(axis, 0, 1), vector(axis, 3, 1)
    sv = cross(s, v)
    for t in range(m):
        (cosine, sine, x), d, dd = vector(joint, t, TILE), joint[3 * TILE + t], joint[4 * TILE + t]
        r, p = pose_in_parent(pose, 0, 1, cosine, sine, x)
        W, E = vector(up, 12 * TILE + t, TILE), vector(up, 15 * TILE + t, TILE)
        R, P = placed(matrix(up, t, TILE), vector(up, 9 * TILE + t, TILE), r, p)
        A = acceleration_at(p, W, E, vector(up, 18 * TILE + t, TILE))
        u = turned_back(r, W)
        put(here, t, TILE, R[:3])
        put(here, 3 * TILE + t, TILE, R[3:6])
        put(here, 6 * TILE + t, TILE, R[6:])
        put(here, 9 * TILE + t, TILE, P)
        put(here, 12 * TILE + t, TILE, add_times(u, d, s))
        put(here, 15 * TILE + t, TILE, add_times(add_times(turned_back(r, E), dd, s), d, cross(u, s)))
        put(here, 18 * TILE + t, TILE, add_times(add_times(turned_back(r, A), dd, v), d,
                                                 add_times(times(d, sv), 2.0, cross(u, v))))


@njit(**INNER)
def axis_tile(axis, here, out, m):
    """Compute a joint's axis in the base frame (6 rows)."""
    s, v = vector(axis, 0, 1), vector(axis, 3, 1)
    for t in range(m):
        S, V = axis_in_base(matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE), s, v)
        put(out, t, TILE, S)
        put(out, 3 * TILE + t, TILE, V)


@njit(**INNER)
def regressor_tile(axis, here, ten, m):
    """Compute the contribution of each inertial parameter of a body to the torque of a joint that carries it (10
    rows).

    The torque is n.s + f.v of the body's `wrench` with the axis s, v in the body frame. By parameter, with u = s x w:
    I: s e' + u w' (symmetric part), h: v x e + w (w.v) - v |w|^2 + a x s, M: a.v
    """
    for t in range(m):
        s, v = axis_in_body(matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE), vector(axis, t, TILE),
                            vector(axis, 3 * TILE + t, TILE))
        w, e = vector(here, 12 * TILE + t, TILE), vector(here, 15 * TILE + t, TILE)
        a, u = vector(here, 18 * TILE + t, TILE), cross(s, w)
        ten[t] = s[0] * e[0] + u[0] * w[0]
        ten[TILE + t] = s[0] * e[1] + s[1] * e[0] + u[0] * w[1] + u[1] * w[0]
        ten[2 * TILE + t] = s[0] * e[2] + s[2] * e[0] + u[0] * w[2] + u[2] * w[0]
        ten[3 * TILE + t] = s[1] * e[1] + u[1] * w[1]
        ten[4 * TILE + t] = s[1] * e[2] + s[2] * e[1] + u[1] * w[2] + u[2] * w[1]
        ten[5 * TILE + t] = s[2] * e[2] + u[2] * w[2]
        put(ten, 6 * TILE + t, TILE, add_cross(add_times(add_times(cross(v, e), dot(w, v), w), -dot(w, w), v), a, s))
        ten[9 * TILE + t] = dot(a, v)


@njit(**INNER)
def wrench_tile(body, here, out, m):
    """Compute force and moment about the base origin that a body with parameters `body` needs, base frame (6 rows)."""
    J, h, M = symmetric(body, 0, 1), vector(body, 6, 1), body[9]
    for t in range(m):
        f, n = wrench(J, h, M, vector(here, 12 * TILE + t, TILE), vector(here, 15 * TILE + t, TILE),
                      vector(here, 18 * TILE + t, TILE))
        F, N = wrench_in_base(matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE), f, n)
        put(out, t, TILE, F)
        put(out, 3 * TILE + t, TILE, N)


@njit(**INNER)
def inertia_tile(body, here, out, m):
    """Compute the ten parameters of a body about the base origin, base frame (10 rows)."""
    J, h, M = symmetric(body, 0, 1), vector(body, 6, 1), body[9]
    for t in range(m):
        about, H = inertia_in_base(matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE), J, h, M)
        put(out, t, TILE, about[:3])
        put(out, 3 * TILE + t, TILE, about[3:])
        put(out, 6 * TILE + t, TILE, H)
        out[9 * TILE + t] = M


@njit(**INNER)
def momentum_tile(ten, axis, out, m):
    """Compute the momentum of an inertia that moves with an axis (6 rows, linear part first)."""
    for t in range(m):
        L, K = momentum(symmetric(ten, t, TILE), vector(ten, 6 * TILE + t, TILE), ten[9 * TILE + t],
                        vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE))
        put(out, t, TILE, L)
        put(out, 3 * TILE + t, TILE, K)


@njit(**INNER)
def project_tile(wrench, axis, out, m):
    """Compute the power of a wrench (force, moment) on an axis: out = N.S + F.V (1 row)."""
    for t in range(m):
        out[t] = (dot(vector(axis, t, TILE), vector(wrench, 3 * TILE + t, TILE))
                  + dot(vector(axis, 3 * TILE + t, TILE), vector(wrench, t, TILE)))


@njit(**INNER)
def add_tile(source, target, m):
    """Add source to target, row by row."""
    for k in range(len(target) // TILE):
        for t in range(m):
            target[k * TILE + t] += source[k * TILE + t]

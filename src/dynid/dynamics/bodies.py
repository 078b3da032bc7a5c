"""Formulas of the motion, wrench and inertia of one body and one joint, shared by all kernels.

R, P: rotation and origin of a body in the base frame; s, v: a joint's axis (rotation, velocity of the origin) in the
body frame and S, V in the base frame, where V is the velocity of the body's point at the base origin; w, e, a:
angular velocity and acceleration of a body and acceleration of its origin minus gravity, body frame; J, h, M: its ten
inertial parameters.
"""

from __future__ import annotations

from dynid.arrays import Array
from dynid.dynamics.compiled import INLINED, PASSING_ON
from dynid.dynamics.vectors import (
    Matrix,
    Symmetric,
    Vector,
    add_cross,
    add_times,
    add_turned,
    cross,
    dot,
    scaled,
    times,
    turned,
    turned_back,
    vector,
)
from dynid.kernel_store import njit


@njit(**PASSING_ON)
def _pose_row(rows: Array, at: int, stride: int, c: float, s: float) -> Vector:
    """Return a row of the rotation T0 + cos Tc + sin Ts, whose three parts are stored twelve rows apart."""
    turning = add_times(vector(rows, at, stride), c, vector(rows, at + 12 * stride, stride))
    return add_times(turning, s, vector(rows, at + 24 * stride, stride))


@njit(**INLINED)
def pose_in_parent(rows: Array, at: int, stride: int, c: float, s: float, x: float) -> tuple[Matrix, Vector]:
    """Return rotation and origin of a body in its parent, T0 + cos Tc + sin Ts + q Tq, from the constants `pose` of
    `Tree`."""
    r = (*_pose_row(rows, at, stride, c, s), *_pose_row(rows, at + 4 * stride, stride, c, s),
         *_pose_row(rows, at + 8 * stride, stride, c, s))
    p = add_times(vector(rows, at + 3 * stride, 4 * stride), c, vector(rows, at + 15 * stride, 4 * stride))
    p = add_times(add_times(p, s, vector(rows, at + 27 * stride, 4 * stride)), x,
                  vector(rows, at + 39 * stride, 4 * stride))
    return r, p


@njit(**INLINED)
def placed(R: Matrix, P: Vector, r: Matrix, p: Vector) -> tuple[Matrix, Vector]:
    """Return rotation R r and origin P + R p in the base frame of a body with pose r, p in its parent at R, P."""
    return (*turned_back(r, R[:3]), *turned_back(r, R[3:6]), *turned_back(r, R[6:])), add_turned(P, R, p)


@njit(**INLINED)
def axis_in_base(R: Matrix, P: Vector, s: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Return a joint's axis in the base frame, S = R s, V = R v + P x S, from s, v in the body frame."""
    S = turned(R, s)
    return S, add_cross(turned(R, v), P, S)


@njit(**INLINED)
def axis_in_body(R: Matrix, P: Vector, S: Vector, V: Vector) -> tuple[Vector, Vector]:
    """Return a joint's axis in the body frame, s = R' S, v = R' (V + S x P), from S, V in the base frame."""
    return turned_back(R, S), turned_back(R, add_cross(V, S, P))


@njit(**INLINED)
def acceleration_at(p: Vector, W: Vector, E: Vector, A: Vector) -> Vector:
    """Return the acceleration A + E x p + W x (W x p) of the point p of a body."""
    return add_cross(add_cross(A, E, p), W, cross(W, p))


@njit(**INLINED)
def wrench(J: Symmetric, h: Vector, M: float, w: Vector, e: Vector, a: Vector) -> tuple[Vector, Vector]:
    """Return force and moment of a body: f = M a + e x h + w x (w x h), n = J e + w x J w + h x a (Ardiani, s. 1.2)."""
    f = add_cross(add_cross(times(M, a), e, h), w, cross(w, h))
    return f, add_cross(add_cross(scaled(J, e), w, scaled(J, w)), h, a)


@njit(**INLINED)
def wrench_in_base(R: Matrix, P: Vector, f: Vector, n: Vector) -> tuple[Vector, Vector]:
    """Return a body's wrench in the base frame: force F = R f, moment about the base origin N = R n + P x F."""
    F = turned(R, f)
    return F, add_cross(turned(R, n), P, F)


@njit(**INLINED)
def inertia_in_base(R: Matrix, P: Vector, J: Symmetric, h: Vector, M: float) -> tuple[Symmetric, Vector]:
    """Return inertia J and first moment h of a body about the base origin, in the base frame.

    h becomes g + M P with g = R h, and J becomes R J R' + 2 (g.P) 1 - g P' - P g' + M (P.P 1 - P P'). k = g + M P / 2
    combines both Steiner terms.
    """
    g = turned(R, h)
    x, y, z = R[:3], R[3:6], R[6:]
    Jx, Jy, Jz = scaled(J, x), scaled(J, y), scaled(J, z)
    k = add_times(g, 0.5 * M, P)
    a, b, c = 2.0 * k[0] * P[0], 2.0 * k[1] * P[1], 2.0 * k[2] * P[2]
    about = (dot(Jx, x) + b + c, dot(Jx, y) - k[0] * P[1] - k[1] * P[0], dot(Jx, z) - k[0] * P[2] - k[2] * P[0],
             dot(Jy, y) + a + c, dot(Jy, z) - k[1] * P[2] - k[2] * P[1], dot(Jz, z) + a + b)
    return about, add_times(g, M, P)


@njit(**INLINED)
def momentum(J: Symmetric, H: Vector, M: float, S: Vector, V: Vector) -> tuple[Vector, Vector]:
    """Return linear and angular momentum about the base origin of a body with twist S, V: L = M V + S x H, K = J S + H
    x V."""
    return add_cross(times(M, V), S, H), add_cross(scaled(J, S), H, V)

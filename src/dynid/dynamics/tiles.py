"""Dynamics of one body for a tile of samples: loops over the formulas of `bodies` that the compiler vectorises (SIMD).

A tile holds up to TILE samples. Every quantity is a row of TILE numbers in a flat array, so that row k
of sample t is at [k * TILE + t]: the constant stride lets LLVM prove that rows do not overlap.

Rows of a body (21): R 0..8 its rotation and P 9..11 its origin, both in the base frame; W 12..14 angular velocity, E
15..17 angular acceleration, A 18..20 acceleration of the origin minus gravity, these three in the body frame. Rows of
an axis (6): rotation 0..2 and velocity of the body's point at the base origin 3..5, base frame. In this form axes,
wrenches and inertias of different bodies are added without any transformation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynid.dynamics.bodies import (
    acceleration_at,
    axis_in_base,
    inertia_in_base,
    momentum,
    placed,
    pose_in_parent,
    wrench,
    wrench_in_base,
)
from dynid.dynamics.compiled import INLINED, INNER, INNER_BORROWING
from dynid.dynamics.vectors import (
    add,
    add_cross,
    add_times,
    cross,
    dot,
    matrix,
    put,
    put_matrix,
    symmetric,
    times,
    turned,
    turned_back,
    vector,
)
from dynid.kernel_store import njit, when_numba_is_loaded

TILE = 64
BODY, AXIS, TEN, WRENCH, JOINT, COLUMNS = 21, 6, 10, 6, 5, 42  # rows each

# pi/2 in three parts whose products with a quadrant number below 2^24 are exact (Cody and Waite).
_HALF_PI_1, _HALF_PI_2, _HALF_PI_3 = 1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17
EXACT_ANGLE = 1.0e6  # rad; beyond it the library's sine is used


@njit(**INLINED)
def cos_sin(x: float) -> tuple[float, float]:
    """Return cosine and sine of |x| <= EXACT_ANGLE, accurate to the last one or two digits, without branches. The angle
    is reduced to |r| <= pi/4 in quadrant k, then the minimax polynomials of the Cephes library are used."""
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
def joint_tile(q, column, dq, ddq, i, lo, m, joint):
    """Compute the rows of a joint (5): cos q, sin q, q, dq, ddq, from a column of q and columns i of dq and ddq.

    dq and ddq may be empty (0, joints) and are then zero. Empty arrays are used instead of a flag, because the kernel
    would be compiled again for each value of a flag.
    """
    moving, accelerating = len(dq) > 0, len(ddq) > 0
    for t in range(m):
        joint[2 * TILE + t] = q[lo + t, column]
        joint[3 * TILE + t] = dq[lo + t, i] if moving else 0.0
        joint[4 * TILE + t] = ddq[lo + t, i] if accelerating else 0.0
    angle_tile(joint, m)


@njit(**INNER)
def body_tile(pose, axis, joint, up, here, m):
    """Compute the motion of a body from the motion of its parent (`up`) and of its joint.

    r, p is the pose in the parent and s, v the axis. Primed results are those of the body; r' is the transpose of r:
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
        put_matrix(here, t, TILE, R)
        put(here, 9 * TILE + t, TILE, P)
        put(here, 12 * TILE + t, TILE, add_times(u, d, s))
        put(here, 15 * TILE + t, TILE, add_times(add_times(turned_back(r, E), dd, s), d, cross(u, s)))
        put(here, 18 * TILE + t, TILE, add_times(add_times(turned_back(r, A), dd, v), d,
                                                 add_times(times(d, sv), 2.0, cross(u, v))))


@njit(**INNER)
def root_tile(base, q, dq, ddq, lo, m, here):
    """Compute the motion of the root link of a free base, from which the recursion starts.

    The frame of the root at the instant of a sample is the base frame. The first six columns of dq are the root's
    twist, linear part first. The first six columns of ddq are the acceleration of the root's origin minus gravity, then
    its angular acceleration, all in axes of the root. The linear velocity has no effect on forces.

    If q are configurations, with one column more than dq, columns of ddq are derivatives of those of dq instead, and
    `base` has the acceleration against gravity in the world (see `dynid.dynamics.root_frame`).
    """
    for k in range(3):
        for t in range(m):
            here[(12 + k) * TILE + t] = dq[lo + t, 3 + k] if len(dq) > 0 else 0.0
            here[(15 + k) * TILE + t] = ddq[lo + t, 3 + k] if len(ddq) > 0 else 0.0
            here[(18 + k) * TILE + t] = ddq[lo + t, k] if len(ddq) > 0 else 0.0
    if q.shape[1] > dq.shape[1]:
        for t in range(m):  # quaternions and velocities as rows, so that the next loop is vectorised
            put(here, t, TILE, (q[lo + t, 3], q[lo + t, 4], q[lo + t, 5]))
            put(here, 3 * TILE + t, TILE, (q[lo + t, 6], 0.0, 0.0))
            put(here, 6 * TILE + t, TILE, (dq[lo + t, 0], dq[lo + t, 1], dq[lo + t, 2]))
        up = vector(base, 18 * TILE, TILE)
        for t in range(m):
            axis, w = vector(here, t, TILE), here[np.uintp(3 * TILE + t)]
            # R'u of the quaternion (a, w) is u + 2 (w (u x a) + (u x a) x a).
            side = times(2.0 / (dot(axis, axis) + w * w), cross(up, axis))
            weight = add_cross(add_times(up, w, side), side, axis)
            own = add(vector(here, 18 * TILE + t, TILE), weight)
            put(here, 18 * TILE + t, TILE, add_cross(own, vector(here, 12 * TILE + t, TILE),
                                                     vector(here, 6 * TILE + t, TILE)))
    for k in range(12 * TILE):
        here[k] = base[k]


@njit(**INNER)
def axis_tile(axis, here, out, m):
    """Compute a joint's axis in the base frame (6 rows)."""
    s, v = vector(axis, 0, 1), vector(axis, 3, 1)
    for t in range(m):
        S, V = axis_in_base(matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE), s, v)
        put(out, t, TILE, S)
        put(out, 3 * TILE + t, TILE, V)


@njit(**INNER)
def wrench_columns_tile(here, out, m):
    """Compute the contribution of each inertial parameter of a body to its wrench about the base origin (42 rows).

    Three rows each in the base frame: moments of the ten parameters (0..29), then forces of h and M (30..41), because
    inertias need no force. By parameter, with B = [e x] + [w x][w x]: I: R (I e + w x I w), h: R B and, as a moment, r
    x R a + P x R B with r a column of R, M: R a and P x R a.
    """
    for t in range(m):
        R, P = matrix(here, t, TILE), vector(here, 9 * TILE + t, TILE)
        w, e = vector(here, 12 * TILE + t, TILE), vector(here, 15 * TILE + t, TILE)
        f = turned(R, vector(here, 18 * TILE + t, TILE))
        xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
        xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
        put(out, t, TILE, turned(R, (e[0], xz, -xy)))
        put(out, 3 * TILE + t, TILE, turned(R, (e[1] - xz, e[0] + yz, xx - yy)))
        put(out, 6 * TILE + t, TILE, turned(R, (e[2] + xy, zz - xx, e[0] - yz)))
        put(out, 9 * TILE + t, TILE, turned(R, (-yz, e[1], xy)))
        put(out, 12 * TILE + t, TILE, turned(R, (yy - zz, e[2] - xy, e[1] + xz)))
        put(out, 15 * TILE + t, TILE, turned(R, (yz, -xz, e[2])))
        fx = turned(R, (-yy - zz, xy + e[2], xz - e[1]))
        fy = turned(R, (xy - e[2], -xx - zz, yz + e[0]))
        fz = turned(R, (xz + e[1], yz - e[0], -xx - yy))
        put(out, 18 * TILE + t, TILE, add_cross(cross((R[0], R[3], R[6]), f), P, fx))
        put(out, 21 * TILE + t, TILE, add_cross(cross((R[1], R[4], R[7]), f), P, fy))
        put(out, 24 * TILE + t, TILE, add_cross(cross((R[2], R[5], R[8]), f), P, fz))
        put(out, 27 * TILE + t, TILE, cross(P, f))
        put(out, 30 * TILE + t, TILE, fx)
        put(out, 33 * TILE + t, TILE, fy)
        put(out, 36 * TILE + t, TILE, fz)
        put(out, 39 * TILE + t, TILE, f)


@njit(**INNER)
def project_columns_tile(columns, axis, ten, m):
    """Compute the contribution of each inertial parameter of a body to the torque of a joint that carries it (10 rows):
    the power of the wrenches of `wrench_columns_tile` on the joint's axis."""
    for t in range(m):
        S, V = vector(axis, t, TILE), vector(axis, 3 * TILE + t, TILE)
        for k in range(6):
            ten[k * TILE + t] = dot(S, vector(columns, 3 * k * TILE + t, TILE))
        for k in range(6, 10):
            ten[k * TILE + t] = (dot(S, vector(columns, 3 * k * TILE + t, TILE))
                                 + dot(V, vector(columns, (3 * k + 12) * TILE + t, TILE)))


@njit(**INNER)
def copy_row(source, at, target, lo, m):
    """Copy m numbers from index `at` of one array to index `lo` of another."""
    for t in range(m):
        target[np.uintp(lo + t)] = source[np.uintp(at + t)]


def _transpose_four(typing: Any, source: Any, at: Any, step: Any, target: Any, to: Any, width: Any) -> Any:
    """Transpose a 4 x 4 block by shuffles in registers, which are faster than the code that the compiler would
    generate. Rows of the source array are `step` numbers apart, rows of the target array `width` numbers."""
    from llvmlite import ir
    from numba import types

    signature = types.void(source, types.int64, types.int64, target, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four = ir.VectorType(ir.DoubleType(), 4)

        def places(array: int, first: int, stride: int) -> list[Any]:
            data = context.make_array(signature.args[array])(context, builder, value=arguments[array]).data
            numbers = [builder.add(arguments[first], builder.mul(arguments[stride], ir.Constant(ir.IntType(64), k)))
                       for k in range(4)]
            return [builder.bitcast(builder.gep(data, [number]), four.as_pointer()) for number in numbers]

        def mixed(a: Any, b: Any, *chosen: int) -> Any:
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 4), list(chosen)))

        a, b, c, d = [builder.load(place, align=8) for place in places(0, 1, 2)]
        low = mixed(a, b, 0, 4, 2, 6), mixed(c, d, 0, 4, 2, 6)
        high = mixed(a, b, 1, 5, 3, 7), mixed(c, d, 1, 5, 3, 7)
        columns = [mixed(*low, 0, 1, 4, 5), mixed(*high, 0, 1, 4, 5), mixed(*low, 2, 3, 6, 7), mixed(*high, 2, 3, 6, 7)]
        for column, place in zip(columns, places(3, 4, 5), strict=True):
            builder.store(column, place, align=8)
        return context.get_dummy_value()

    return signature, generate


transpose_four: Any = None  # only compiled code calls this function, so numba is loaded on demand


@when_numba_is_loaded
def _declare_transpose_four() -> None:
    from numba.extending import intrinsic

    globals()["transpose_four"] = intrinsic(_transpose_four)


@njit(**INNER)
def spread_ten(source, first, step, target, at, width, m):
    """Copy ten rows of a tile, which are `step` rows apart, so that the ten numbers of each sample are contiguous."""
    for t in range(0, m - 3, 4):
        for k in (0, 4, 6):  # the third part repeats two rows
            transpose_four(source, (first + step * k) * TILE + t, step * TILE, target, at + t * width + k, width)
    for t in range(m - m % 4, m):
        for k in range(10):
            target[np.uintp(at + t * width + k)] = source[np.uintp((first + step * k) * TILE + t)]


@njit(**INNER)
def spread_four(source, first, step, target, at, width, m):
    """Copy four rows of a tile, which are `step` rows apart, so that the four numbers of each sample are contiguous."""
    for t in range(0, m - 3, 4):
        transpose_four(source, first * TILE + t, step * TILE, target, at + t * width, width)
    for t in range(m - m % 4, m):
        for k in range(4):
            target[np.uintp(at + t * width + k)] = source[np.uintp((first + step * k) * TILE + t)]


@njit(**INNER)
def wrench_tile(body, here, out, m):
    """Compute the force and moment about the base origin that a body with parameters `body` requires, base frame (6
    rows)."""
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
    """Compute the momentum of a body with inertia `ten` for unit velocity along an axis (6 rows, linear part first)."""
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
    """Add the rows of one array to those of another."""
    for k in range(len(target) // TILE):
        for t in range(m):
            target[k * TILE + t] += source[k * TILE + t]

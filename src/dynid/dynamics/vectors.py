"""Vectors as tuples of three numbers, matrices as tuples of nine (row by row), and their storage in arrays.

Element k of a vector stored at index `at` is at [at + k * stride]: the stride is TILE in `tiles`, LANES in `state`, 1
in a plain array. A constant stride lets LLVM prove that rows do not overlap. An unsigned index lets LLVM prove that no
index counts from the end of the array. Vectorisation (SIMD) needs both proofs.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.compiled import INLINED
from dynid.kernel_store import njit

Vector = tuple[float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]
Symmetric = tuple[float, float, float, float, float, float]  # xx xy xz yy yz zz


@njit(**INLINED)
def vector(rows: Array, at: int, stride: int) -> Vector:
    return rows[np.uintp(at)], rows[np.uintp(at + stride)], rows[np.uintp(at + 2 * stride)]


@njit(**INLINED)
def matrix(rows: Array, at: int, stride: int) -> Matrix:
    return (*vector(rows, at, stride), *vector(rows, at + 3 * stride, stride), *vector(rows, at + 6 * stride, stride))


@njit(**INLINED)
def symmetric(rows: Array, at: int, stride: int) -> Symmetric:
    return (*vector(rows, at, stride), *vector(rows, at + 3 * stride, stride))


@njit(**INLINED)
def put(rows: Array, at: int, stride: int, a: Vector) -> None:
    rows[np.uintp(at)], rows[np.uintp(at + stride)], rows[np.uintp(at + 2 * stride)] = a


@njit(**INLINED)
def put_matrix(rows: Array, at: int, stride: int, a: Matrix) -> None:
    """Store a matrix in an array, row by row."""
    put(rows, at, stride, a[:3])
    put(rows, at + 3 * stride, stride, a[3:6])
    put(rows, at + 6 * stride, stride, a[6:])


@njit(**INLINED)
def put_more(rows: Array, at: int, stride: int, a: Vector) -> None:
    """Add the vector a to a vector that is stored in an array."""
    rows[np.uintp(at)] += a[0]
    rows[np.uintp(at + stride)] += a[1]
    rows[np.uintp(at + 2 * stride)] += a[2]


@njit(**INLINED)
def add(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@njit(**INLINED)
def subtract(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(**INLINED)
def add_times(c: Vector, x: float, a: Vector) -> Vector:
    """Return the vector c + x a, in the order that compiles to fused multiply-adds."""
    return c[0] + x * a[0], c[1] + x * a[1], c[2] + x * a[2]


@njit(**INLINED)
def add_cross(c: Vector, a: Vector, b: Vector) -> Vector:
    """Return the vector c + a x b (cross product)."""
    return (c[0] + a[1] * b[2] - a[2] * b[1], c[1] + a[2] * b[0] - a[0] * b[2],
            c[2] + a[0] * b[1] - a[1] * b[0])


@njit(**INLINED)
def add_turned(c: Vector, R: Matrix, a: Vector) -> Vector:
    """Return the vector c + R a, with a rotation matrix R."""
    return (c[0] + R[0] * a[0] + R[1] * a[1] + R[2] * a[2], c[1] + R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            c[2] + R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


@njit(**INLINED)
def times(x: float, a: Vector) -> Vector:
    return x * a[0], x * a[1], x * a[2]


@njit(**INLINED)
def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(**INLINED)
def cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(**INLINED)
def turned(R: Matrix, a: Vector) -> Vector:
    """Return the vector R a, with a rotation matrix R."""
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2], R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


@njit(**INLINED)
def turned_back(R: Matrix, a: Vector) -> Vector:
    """Return the vector R' a: vector a in the axes of a frame with rotation R."""
    return (R[0] * a[0] + R[3] * a[1] + R[6] * a[2], R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
            R[2] * a[0] + R[5] * a[1] + R[8] * a[2])


@njit(**INLINED)
def scaled(S: Symmetric, a: Vector) -> Vector:
    """Return the vector S a, with a symmetric matrix S."""
    return (S[0] * a[0] + S[1] * a[1] + S[2] * a[2], S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
            S[2] * a[0] + S[4] * a[1] + S[5] * a[2])

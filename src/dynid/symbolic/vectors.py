"""Vectors and matrices of graph values, as lists, for recursions over bodies."""

from __future__ import annotations

from collections.abc import Sequence

from dynid.arrays import Array
from dynid.symbolic.graph import Graph, Value

Vector = list[Value]
Matrix = list[list[Value]]


def add(a: Sequence[Value], b: Sequence[Value]) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def subtract(a: Sequence[Value], b: Sequence[Value]) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def cross(a: Sequence[Value], b: Sequence[Value]) -> Vector:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a: Sequence[Value], b: Sequence[Value]) -> Value:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def apply(matrix: Sequence[Sequence[Value]], vector: Sequence[Value]) -> Vector:
    return [dot(row, vector) for row in matrix]


def numbers(graph: Graph, array: Array) -> Vector:
    return [graph.value(float(x)) for x in array]


def transposed(matrix: Sequence[Sequence[Value]]) -> Matrix:
    return [list(row) for row in zip(*matrix, strict=True)]


class Rotation:
    """Rotation from a body's frame to the frame of the previous body: a fixed rotation, then a rotation about z with
    cosine c and sine s (None for a prismatic joint)."""

    def __init__(self, graph: Graph, fixed: Array, c: Value | None, s: Value | None) -> None:
        self._fixed = [numbers(graph, row) for row in fixed]
        self._back = transposed(self._fixed)
        self._c, self._s = c, s

    def up(self, v: Sequence[Value]) -> Vector:
        """Transform a vector from the body's frame to the frame of the previous body."""
        if self._c is not None and self._s is not None:
            v = [self._c * v[0] - self._s * v[1], self._s * v[0] + self._c * v[1], v[2]]
        return apply(self._fixed, v)

    def down(self, v: Sequence[Value]) -> Vector:
        """Transform a vector from the frame of the previous body to the body's frame."""
        v = apply(self._back, v)
        if self._c is None or self._s is None:
            return v
        return [self._c * v[0] + self._s * v[1], self._c * v[1] - self._s * v[0], v[2]]

    def up_symmetric(self, m: Sequence[Value]) -> Vector:
        """Transform a symmetric matrix (xx xy xz yy yz zz) from the body's frame to the frame of the previous body.

        In the plane of rotation with A = xx - yy and t = c A - 2 s xy: xx' = yy + c t, xy' = xy + s t, yy' = xx - c t.
        """
        xx, xy, xz, yy, yz, zz = m
        if self._c is not None and self._s is not None:
            c, s = self._c, self._s
            t = c * (xx - yy) - s * (xy + xy)
            ct = c * t
            xx, xy, yy = yy + ct, xy + s * t, xx - ct
            xz, yz = c * xz - s * yz, s * xz + c * yz
        rows = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        half = [apply(self._fixed, row) for row in rows]  # (F S)' as S is symmetric
        full = [apply(self._fixed, column) for column in transposed(half)]
        return [full[0][0], full[0][1], full[0][2], full[1][1], full[1][2], full[2][2]]

"""Scaled coordinates of links, and projection of batches of symmetric 4 x 4 matrices onto positive definite ones.

LAPACK spends most of its time on call overhead for matrices of this size. Here a matrix that needs no change is
recognised by its pivots, and the others are diagonalised by cyclic Jacobi rotations (Golub and Van Loan, s. 8.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.consistency import Consistency
from dynid.consistency.blocks import smat, svec
from dynid.dynamics.compiled import BORROWING, INNER_BORROWING
from dynid.kernel_store import njit

# m: thickness that is added to a link for its scale. For a flatter link the scale of one direction would be so small
# that a projection needs many more steps; chosen on the Panda and LWR logs.
SCALE_THICKNESS = 0.02
# Smallest eigenvalue of a link in these coordinates after a projection: above rounding, below any effect on torques.
SMALLEST_SCALED_EIGENVALUE = 1e-5


@dataclass(frozen=True, eq=False)
class BodyScaling:
    """Scaled linear coordinates x of the parameters theta.

    Coordinates of a link are svec(L^-1 P L^-T) with its pseudo-inertia P and the Cholesky factor L of a reference link;
    those of other parameters are theta / scale. To second order, Euclidean distances between links equal the log-det
    divergence, so a relative change of a link by a tenth is a step of about 0.1.

    Attributes:
        places: indices of the links' parameters (bodies, 10).
        limited: indices of the other parameters that must not be negative (k,).
        matrix: (parameters, parameters), theta = matrix @ x.
        inverse: (parameters, parameters), x = inverse @ theta.
    """

    places: Ints
    limited: Ints
    matrix: Array
    inverse: Array

    @staticmethod
    def around(consistency: Consistency, theta: Array, other_scales: Array) -> BodyScaling:
        """Return scaled coordinates around consistent parameters theta (parameters,).

        Args:
            consistency: the consistent set, of form "pseudo".
            theta: parameters of the reference links (parameters,).
            other_scales: scale of each parameter that does not belong to a link (parameters,).
        """
        items = consistency.parameters.items
        places = consistency.places
        others = np.array([k for k, item in enumerate(items) if item.body is None], dtype=np.int64)
        inverse = np.zeros((len(items), len(items)))
        inverse[others, others] = 1.0 / other_scales[others]
        pseudo = consistency.matrices(theta)
        pseudo[:, :3, :3] += (SCALE_THICKNESS ** 2 * pseudo[:, 3, 3])[:, None, None] * np.eye(3)
        matrix = np.zeros_like(inverse)
        matrix[others, others] = other_scales[others]
        for own, factor in zip(places, np.linalg.inv(np.linalg.cholesky(pseudo)), strict=True):
            rows = svec(factor @ consistency.basis @ factor.T).T
            inverse[np.ix_(own, own)] = rows
            matrix[np.ix_(own, own)] = np.linalg.inv(rows)
        limited = np.array([k for k in others if items[k].positive], dtype=np.int64)
        return BodyScaling(places, limited, matrix, inverse)

    def projected(self, x: Array) -> Array:
        """Return the consistent points nearest to x (draws, parameters): negative eigenvalues are set to zero."""
        found = x.copy()
        if len(self.places):
            links = np.ascontiguousarray(x[:, self.places]).reshape(-1, self.places.shape[1])
            clip_eigenvalues(links, SMALLEST_SCALED_EIGENVALUE)
            found[:, self.places] = links.reshape(len(x), *self.places.shape)
        found[:, self.limited] = np.maximum(x[:, self.limited], 0.0)
        return found

    def is_consistent(self, x: Array) -> Bools:
        """Return the mask (draws,) of points x (draws, parameters) inside the consistent set."""
        inside = np.all(x[:, self.limited] >= 0.0, axis=1)
        if len(self.places):
            smallest = np.linalg.eigvalsh(smat(x[:, self.places])).min(axis=(1, 2))
            inside &= smallest >= 0.5 * SMALLEST_SCALED_EIGENVALUE
        return np.asarray(inside)


_MAX_SWEEPS = 12  # sweeps of rotations; convergence is quadratic, and four to six sweeps are usual
_OFF_DIAGONAL = 1e-30  # squared off-diagonal entries relative to the squared matrix, below which it counts as diagonal


@njit(**INNER_BORROWING)
def has_positive_pivots(a: Array, floor: float, work: Array) -> bool:
    """Return whether the matrix a (4, 4) minus floor times the identity is positive definite. work: (4, 4)."""
    for i in range(4):
        for j in range(i, 4):
            value = a[i, j]
            if i == j:
                value -= floor
            for k in range(i):
                value -= work[k, i] * work[k, j]
            if i == j:
                if value <= 0.0:
                    return False
                work[i, i] = math.sqrt(value)
            else:
                work[i, j] = value / work[i, i]
    return True


@njit(**INNER_BORROWING)
def diagonalise(a: Array, v: Array) -> None:
    """Rotate a (4, 4) until it is diagonal; the columns of v (4, 4) become its eigenvectors."""
    whole = 0.0
    for i in range(4):
        for j in range(4):
            whole += a[i, j] * a[i, j]
            v[i, j] = 1.0 if i == j else 0.0
    for _ in range(_MAX_SWEEPS):
        off = 0.0
        for p in range(3):
            for q in range(p + 1, 4):
                off += a[p, q] * a[p, q]
        if off <= _OFF_DIAGONAL * whole:
            return
        for p in range(3):
            for q in range(p + 1, 4):
                if a[p, q] == 0.0:
                    continue
                half = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = math.copysign(1.0, half) / (abs(half) + math.sqrt(1.0 + half * half))
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = t * c
                step = t * a[p, q]
                a[p, p] -= step
                a[q, q] += step
                a[p, q] = 0.0
                a[q, p] = 0.0
                for k in range(4):
                    if k != p and k != q:
                        left, right = a[k, p], a[k, q]
                        a[k, p] = c * left - s * right
                        a[k, q] = s * left + c * right
                        a[p, k] = a[k, p]
                        a[q, k] = a[k, q]
                    left, right = v[k, p], v[k, q]
                    v[k, p] = c * left - s * right
                    v[k, q] = s * left + c * right


@njit(**BORROWING)
def _clip_each(vectors: Array, floor: float, work: Array) -> None:
    """Increase the eigenvalues of symmetric matrices to at least `floor`, in place. vectors (matrices, 10): see
    `clip_eigenvalues`. work (3, 4, 4): work space."""
    a, v, pivots = work[0], work[1], work[2]
    root = math.sqrt(2.0)
    for m in range(vectors.shape[0]):
        place = 0
        for column in range(4):
            for row in range(column + 1):
                value = vectors[m, place] if row == column else vectors[m, place] / root
                a[row, column] = value
                a[column, row] = value
                place += 1
        if has_positive_pivots(a, floor, pivots):
            continue
        diagonalise(a, v)
        for e in range(4):
            lack = floor - a[e, e]
            if lack > 0.0:
                place = 0
                for column in range(4):
                    for row in range(column + 1):
                        value = lack * v[row, e] * v[column, e]
                        vectors[m, place] += value if row == column else value * root
                        place += 1


def clip_eigenvalues(vectors: Array, floor: float) -> None:
    """Move symmetric matrices, in place, to the nearest ones with eigenvalues of at least `floor`.

    vectors (matrices, 10), contiguous: matrices in the form of `svec`.
    """
    _clip_each(vectors, floor, np.empty((3, 4, 4)))

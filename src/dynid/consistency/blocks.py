"""Named conditions on parameters theta, written as cone constraints: F theta + g lies in a cone K."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from dynid.arrays import Array, Ints

Cone = Literal["zero", "nonnegative", "soc", "psd"]
Kind = Literal["pseudo-inertia", "spatial-inertia", "positive", "centre-of-mass", "mass", "known", "torque",
               "friction", "interval"]


def svec(matrix: Array) -> Array:
    """Return the upper triangle of symmetric matrices (..., n, n), column by column, off-diagonals times sqrt 2.

    The result is (..., n(n+1)/2). The scalar product of two such vectors is the trace of the product of the matrices.
    """
    row, column = triangle(matrix.shape[-1])
    return matrix[..., row, column] * np.where(row == column, 1.0, np.sqrt(2.0))


def smat(vector: Array) -> Array:
    """Return the symmetric matrices (..., n, n) from their vector form (..., n(n+1)/2), see `svec`."""
    n = int((np.sqrt(8 * vector.shape[-1] + 1) - 1) / 2 + 0.5)
    row, column = triangle(n)
    entries = vector / np.where(row == column, 1.0, np.sqrt(2.0))
    matrix = np.zeros((*vector.shape[:-1], n, n))
    matrix[..., row, column] = entries
    matrix[..., column, row] = entries
    return matrix


def arrow(vector: Array) -> Array:
    """Return t I with u in its first row and column, for a vector (t, u): positive semidefinite if |u| <= t."""
    matrix = vector[0] * np.eye(len(vector))
    matrix[0, 1:] = matrix[1:, 0] = vector[1:]
    return matrix


@cache
def triangle(n: int) -> tuple[Ints, Ints]:
    """Return rows and columns of the upper triangle of an n x n matrix, column by column; the arrays are read-only."""
    column, row = np.tril_indices(n)
    row.flags.writeable = column.flags.writeable = False
    return row, column


@dataclass(frozen=True, eq=False)
class ConeConstraint:
    """Constraint that F theta + g lies in a cone.

    Attributes:
        name: name in messages.
        kind: kind of the condition, such as the inertia of a link.
        cone: type of the cone.
        columns: indices (k,) of the parameters in the condition.
        rows: F (m, k) for these parameters.
        offset: g (m,).
        balance: factors (m,) that scale the rows to about one; for a matrix, a congruence with a diagonal matrix.
        body: name of the link, if the condition is on one.
    """

    name: str
    kind: Kind
    cone: Cone
    columns: Ints
    rows: Array
    offset: Array
    balance: Array
    body: str | None = None

    def value(self, theta: Array) -> Array:
        """Return the value F theta + g (m,) of the constraint at theta (parameters,)."""
        return self.rows @ theta[self.columns] + self.offset

    def slack(self, theta: Array) -> float:
        """Return the distance of F theta + g from the boundary of the cone at theta (parameters,), negative outside.

        The distance is the smallest eigenvalue, the smallest entry, t - |u|, or minus the largest error of an equality.
        """
        return slack(self.cone, self.value(theta))

    def wide(self, width: int) -> Array:
        """Return F (m, width) with a column for each of `width` parameters, zero for those not in the constraint."""
        matrix = np.zeros((len(self.offset), width))
        matrix[:, self.columns] = self.rows
        return matrix

    @property
    def unit(self) -> Array:
        """Central direction (m,) of the cone, along which points move inside; zeros for an equality."""
        if self.cone == "psd":
            return svec(np.eye(len(smat(self.offset))))
        if self.cone == "soc":
            return np.eye(1, len(self.offset))[0]
        return np.full(len(self.offset), 1.0 if self.cone == "nonnegative" else 0.0)


def slack(cone: Cone, value: Array) -> float:
    """Return the distance of a vector from the boundary of a cone, negative outside."""
    if cone == "psd":
        return float(np.linalg.eigvalsh(smat(value))[0])
    if cone == "soc":
        return float(value[0] - np.linalg.norm(value[1:]))
    return float(value.min()) if cone == "nonnegative" else -float(np.abs(value).max())

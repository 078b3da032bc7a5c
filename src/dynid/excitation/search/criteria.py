"""Optimality criteria: functions of the information matrix A = sum_j w_j^2 Y_j' Y_j on the base columns.

A criterion takes A on scaled columns (base, base) and returns its value and derivative S = d value / d A, a symmetric
matrix. Lower is better. Criteria of the worst eigenvalue or parameter are not smooth. Each non-smooth criterion also
has a smooth approximation of order p, which converges from above as p grows. For order 1, the approximation of the
condition number is the Frobenius condition number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from dynid.arrays import Array
from dynid.errors import DynidError

Value = tuple[float, Array]
MIN_EIGENVALUE_RATIO = 1e-15  # eigenvalues below this share of the largest are rounding errors


@dataclass(frozen=True)
class Eigenvalues:
    """Eigenvalues (ascending, bounded away from zero) and eigenvectors of A = vectors diag(values) vectors'."""

    values: Array
    vectors: Array

    @staticmethod
    def from_matrix(matrix: Array) -> Eigenvalues:
        values, vectors = eigh(matrix, check_finite=False, driver="evd")
        return Eigenvalues(np.maximum(values, max(values[-1], 1e-300) * MIN_EIGENVALUE_RATIO), vectors)

    def function(self, values: Array) -> Array:
        """Return the matrix with these eigenvectors and the given eigenvalues (base,)."""
        return (self.vectors * values) @ self.vectors.T


def _condition(s: Eigenvalues) -> Value:
    """Return the regressor's condition number sigma_max / sigma_min (Ardiani, eq. 1.36), and its derivative by A."""
    low, high = s.values[0], s.values[-1]
    value = float(np.sqrt(high / low))
    u, v = s.vectors[:, 0], s.vectors[:, -1]
    return value, 0.5 * value * (np.outer(v, v) / high - np.outer(u, u) / low)


def _smooth_condition(s: Eigenvalues, p: float) -> Value:
    """Return (tr A^p tr A^-p)^(1/2p) for the information matrix A, and its derivative: the Frobenius condition number
    for p = 1 (Ardiani, eq. 1.38), and the condition number in the limit of large p."""
    up, down = (s.values / s.values[-1]) ** p, (s.values[0] / s.values) ** p
    value = float(np.sqrt(s.values[-1] / s.values[0]) * (up.sum() * down.sum()) ** (0.5 / p))
    return value, s.function(0.5 * value * (up / up.sum() - down / down.sum()) / s.values)


def _inverse_smallest(s: Eigenvalues) -> Value:
    """Return the inverse 1 / sigma_min of the regressor's smallest singular value, and its derivative by A."""
    low, u = s.values[0], s.vectors[:, 0]
    return float(low ** -0.5), -0.5 * low ** -1.5 * np.outer(u, u)


def _smooth_inverse_smallest(s: Eigenvalues, p: float) -> Value:
    """Return (tr A^-p)^(1/2p), a smooth approximation of 1 / sigma_min."""
    down = (s.values[0] / s.values) ** p
    value = float(s.values[0] ** -0.5 * down.sum() ** (0.5 / p))
    return value, s.function(-0.5 * value * down / down.sum() / s.values)


def _determinant(s: Eigenvalues) -> Value:
    """Return the D-optimality criterion -log det A / base, twice the mean log of the confidence ellipsoid's axes."""
    return -float(np.log(s.values).mean()), s.function(-1.0 / s.values / len(s.values))


def _variances(s: Eigenvalues) -> Value:
    """Return the A-optimality criterion sqrt(tr A^-1 / base), the root of the mean variance of the scaled
    parameters."""
    value = float(np.sqrt((1.0 / s.values).mean()))
    return value, s.function(-0.5 / value * s.values ** -2 / len(s.values))


def _largest(s: Eigenvalues) -> Value:
    """Return the largest standard deviation of the scaled parameters, sqrt(max diag A^-1)."""
    inverse = s.function(1.0 / s.values)
    worst = int(np.argmax(np.diag(inverse)))
    value = float(np.sqrt(inverse[worst, worst]))
    return value, -0.5 / value * np.outer(inverse[worst], inverse[worst])


def _smooth_largest(s: Eigenvalues, p: float) -> Value:
    """Return (sum variance^p)^(1/2p), a smooth approximation of the largest standard deviation."""
    inverse = s.function(1.0 / s.values)
    variance = np.diag(inverse)
    share = (variance / variance.max()) ** p
    value = float(np.sqrt(variance.max()) * share.sum() ** (0.5 / p))
    return value, -0.5 * value * (inverse * (share / share.sum() / variance)) @ inverse


def _hadamard(matrix: Array, s: Eigenvalues) -> Value:
    """Return the mean of log(A_ii) minus log det A / base, and its derivative; the value is zero exactly if all columns
    are orthogonal (Jin and Gans, 2015)."""
    diagonal = np.maximum(np.diag(matrix), 1e-300)
    value = float(np.log(diagonal).mean() - np.log(s.values).mean())
    return value, (np.diag(1.0 / diagonal) - s.function(1.0 / s.values)) / len(diagonal)


@dataclass(frozen=True)
class Criterion:
    """An optimality criterion by its name in `CRITERIA`; weight: weight of 1/sigma_min in "condition+" (k_1 of Ardiani,
    eq. 1.37)."""

    name: str = "condition"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in CRITERIA:
            raise DynidError(f"there is no criterion '{self.name}'; there are {', '.join(CRITERIA)}",
                             code="unknown-criterion")

    @property
    def logarithmic(self) -> bool:
        """Whether the criterion is already a logarithm."""
        return self.name in ("d", "hadamard")

    @property
    def nonsmooth(self) -> bool:
        """Whether the criterion depends on the worst direction only; a smooth approximation then helps the search."""
        return self.name in ("condition", "condition+", "largest")

    def __call__(self, matrix: Array, order: float | None = None) -> Value:
        """Return the criterion and its derivative at the information matrix A (base, base); order: order of the smooth
        approximation, None for the exact criterion."""
        s = Eigenvalues.from_matrix(matrix)
        if self.name == "hadamard":
            return _hadamard(matrix, s)
        if self.name == "condition+":
            parts = ((_condition(s), _inverse_smallest(s)) if order is None
                     else (_smooth_condition(s, order), _smooth_inverse_smallest(s, order)))
            return parts[0][0] + self.weight * parts[1][0], parts[0][1] + self.weight * parts[1][1]
        exact, smooth = CRITERIA[self.name]
        return exact(s) if order is None or smooth is None else smooth(s, order)


CRITERIA: dict[str, tuple[Callable[[Eigenvalues], Value], Callable[[Eigenvalues, float], Value] | None]] = {
    "condition": (_condition, _smooth_condition), "condition+": (_condition, None),
    "frobenius": (lambda s: _smooth_condition(s, 1.0), None), "d": (_determinant, None), "a": (_variances, None),
    "largest": (_largest, _smooth_largest), "hadamard": (_determinant, None)}

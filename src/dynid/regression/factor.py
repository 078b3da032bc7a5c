"""Triangular factors of regressor and torques, which are the sufficient statistics of least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.errors import NotPossibleError
from dynid.lapack import dgeqrf, is_full_rank

Item = TypeVar("Item")
_DEPENDENT_SHARE = 1e-9  # singular values of a joint's own columns below this share of the largest are zero


def triangular(*parts: Array) -> Array:
    """Return R (columns, columns) of the QR factorisation of stacked matrices, with a non-negative diagonal.

    Rows of zeros are added if there are fewer rows than columns.
    """
    return signed(householder(*parts))


def householder(*parts: Array) -> Array:
    """Return the triangular factor R (columns, columns) of a QR factorisation, with a diagonal of any sign."""
    width, rows = parts[0].shape[1], sum(map(len, parts))
    tall = np.empty((max(rows, width), width), order="F")
    start = 0
    for part in parts:
        tall[start:start + len(part)] = part
        start += len(part)
    tall[rows:] = 0.0
    packed, _, _, info = dgeqrf(tall, lwork=64 * width, overwrite_a=1)
    if info != 0:
        raise NotPossibleError("the QR factorisation failed; check the logs for implausible values")
    return np.where(_upper(width), packed[:width], 0.0)


@lru_cache(maxsize=256)
def _upper(width: int) -> Bools:
    """Return the mask (width, width) of matrix entries on or above the diagonal."""
    return np.tri(width, dtype=bool).T


def signed(r: Array) -> Array:
    """Return a triangular factor with rows multiplied by -1 where their diagonal entry is negative."""
    return np.multiply(r, np.where(r.diagonal() < 0, -1.0, 1.0)[:, None], order="C")


@dataclass(frozen=True, eq=False)
class Factor:
    """Sufficient statistics of the least-squares equations of one joint j, tau_j = Y_j beta.

    Attributes:
        columns: indices (k,) of the base parameters in the joint's equations.
        r: triangular factor (k + 1, k + 1) of [Y_j tau_j].
        rows: number of equations.
        power: sum of squared torques, including the torque of known parameters.
    """

    columns: Ints
    r: Array
    rows: int
    power: float

    def __add__(self, other: Factor) -> Factor:
        return Factor(self.columns, triangular(self.r, other.r), self.rows + other.rows, self.power + other.power)

    def select(self, kept: Ints) -> Factor:
        """Return the same equations with only the base parameters of the indices `kept` (ascending), renumbered."""
        own = np.flatnonzero(np.isin(self.columns, kept))
        r = triangular(self.r[:, np.append(own, len(self.columns))])
        return Factor(np.searchsorted(kept, self.columns[own]), r, self.rows, self.power)

    def substituted(self, matrix: Array, shift: Array) -> Factor:
        """Return the same equations for other base parameters gamma, with beta = matrix gamma + shift."""
        own = matrix[self.columns]
        columns = np.flatnonzero(np.any(own != 0.0, axis=0))
        y, tau = self.r[:, :-1] @ own[:, columns], self.r[:, -1] - self.r[:, :-1] @ shift[self.columns]
        return Factor(columns, triangular(np.column_stack([y, tau])), self.rows, self.power)

    def fits(self, base: int) -> bool:
        """Return whether the arrays of the factor, such as those of a file, are valid for `base` base parameters."""
        columns = np.asarray(self.columns)
        return bool(columns.ndim == 1 and columns.dtype.kind in "iu" and np.ndim(self.r) == 2
                    and np.asarray(self.r).dtype.kind == "f" and self.r.shape[1] == len(columns) + 1
                    and (not len(columns) or (columns.min() >= 0 and columns.max() < base))
                    and np.isfinite(self.r).all() and self.rows >= 0)

    def misfit(self, beta: Array) -> float:
        """Return the sum of squared residuals for base values beta (base,)."""
        return float(np.sum((self.r[:, -1] - self.r[:, :-1] @ beta[self.columns]) ** 2))

    @property
    def least_misfit(self) -> float:
        """Sum of squared residuals of the joint fitted alone.

        If columns are dependent, this is more than the square of the last entry of r, because rounding errors of the
        columns fit a part of the torque.
        """
        r, size = self.r, np.linalg.norm(self.r[:, :-1], axis=0)
        if np.all(size > 0) and is_full_rank(r[:-1, :-1] / size, _DEPENDENT_SHARE):
            return float(r[-1, -1] ** 2)
        columns = r[:, :-1][:, size > 0] / size[size > 0]
        if not columns.shape[1]:
            return float(np.sum(r[:, -1] ** 2))
        rest = r[:, -1] - columns @ np.linalg.lstsq(columns, r[:, -1], rcond=_DEPENDENT_SHARE)[0]
        return float(rest @ rest)


def sum_factors(blocks: Sequence[tuple[Factor, ...]]) -> tuple[Factor, ...]:
    """Return the triangular factor of each joint's equations in all given blocks of time together."""
    return reduce(add_factors, blocks)


def sums_without_each(blocks: Sequence[Item], add: Callable[[Item, Item], Item]) -> list[Item]:
    """Return the sum of all blocks except one, for each of two or more blocks in turn.

    Cumulative sums from both ends need only three additions per block.
    """
    before = list(accumulate(blocks[:-1], add))
    after = list(accumulate(blocks[:0:-1], add))[::-1]
    return [after[0], *map(add, before[:-1], after[1:]), before[-1]]


def add_factors(a: tuple[Factor, ...], b: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Return the triangular factor of each joint's equations in two blocks of time together."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def weighted_rows(factors: Sequence[Factor], weights: Array, base: int) -> Array:
    """Return the triangular factors of all joints, multiplied by weights (dof,), as equations (rows, base + 1)."""
    tall, at = np.zeros((sum(len(factor.r) for factor in factors), base + 1)), 0
    for weight, factor in zip(weights, factors, strict=True):
        tall[at:at + len(factor.r), np.append(factor.columns, base)] = weight * factor.r
        at += len(factor.r)
    return tall


@dataclass(frozen=True, eq=False)
class Stacked:
    """Equations of all joints as one weighted least-squares problem: minimise |r beta - rho|^2 + rest.

    Attributes:
        r: upper triangular factor (base, base).
        rho: right-hand side (base,).
        rest: residual sum of squares that no beta can explain.
        rows: number of equations.
    """

    r: Array
    rho: Array
    rest: float
    rows: int

    @property
    def matrix(self) -> Array:
        """Equations [r rho] of the problem (base + 1, base + 1), with the root of `rest` as the last entry."""
        b = len(self.r)
        found = np.zeros((b + 1, b + 1))
        found[:b, :b], found[:b, b], found[b, b] = self.r, self.rho, np.sqrt(self.rest)
        return found

    @staticmethod
    def from_matrix(matrix: Array, rows: int) -> Stacked:
        """Return the problem of equations [X y] (k, base + 1), of which `rows` are counted as measured."""
        return Stacked.from_triangular(triangular(matrix), rows)

    @staticmethod
    def from_triangular(r: Array, rows: int) -> Stacked:
        """Return the problem of an upper triangular factor r (base + 1, base + 1) of [X y] from `rows` equations."""
        return Stacked(r[:-1, :-1], r[:-1, -1], float(r[-1, -1] ** 2), rows)

    def select(self, kept: ArrayLike) -> Stacked:
        """Return the problem with only the base parameters of the indices `kept`, in this order."""
        return Stacked.from_matrix(self.matrix[:, [*np.asarray(kept, dtype=np.int64), -1]], self.rows)

    def misfit(self, beta: Array) -> float:
        """Return the weighted sum of squared residuals for base values beta (base,)."""
        return float(np.sum((self.rho - self.r @ beta) ** 2) + self.rest)

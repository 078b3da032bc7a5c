"""Errors on blocks of time left out, for many sets of columns of one joint at a time, from a single fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate.bounded import bounded_least_squares
from dynid.lapack import solve_triangular
from dynid.regression import Regression
from dynid.regression.factor import triangular

_TRACE = 1e-14  # share of a column's squares


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns that a set of them is made of. r, rho: weighted triangular equations of the data without a block, of test
    those of the block, per joint so that errors can be told apart; squares (k,): of each column in all of r."""

    r: Array
    rho: Array
    tests: tuple[tuple[Array, Array], ...]  # of each joint
    squares: Array


@dataclass(frozen=True, eq=False)
class ColumnsLeftOut:
    """A fold as columns (k,), each a combination of base parameters, in blocks that are left out in turn.

    low, high, ridge (k,): as those of a `Parameter`.
    """

    blocks: tuple[Columns, ...]
    low: Array
    high: Array
    ridge: Array

    @staticmethod
    def of(regression: Regression, weights: Array, mixing: Array, low: Array, high: Array,
           ridge: Array) -> ColumnsLeftOut:
        """From a fold with weights (dof,) of its joints; mixing (base, k): the columns as combinations."""
        found = []
        for k, others in enumerate(regression.without_each()):
            if not regression.blocks[k].rows:
                continue
            stacked = others.stack(weights, prior=False)
            tests = []
            for weight, factor in zip(weights, regression.blocks[k].factors, strict=True):
                tests.append((weight * factor.r[:, :-1] @ mixing[factor.columns], weight * factor.r[:, -1]))
            r = stacked.r @ mixing
            found.append(Columns(r, stacked.rho, tuple(tests), np.sum(r ** 2, axis=0)))
        return ColumnsLeftOut(tuple(found), low, high, ridge)

    def fits(self, used: Bools, before: Sequence[Array] | None = None) -> list[Array]:
        """Values (k,) of the columns that are used, zero for the others, from the data without each block. before:
        an earlier answer, from which active bounds are guessed."""
        return [self._fit(block, used, None if before is None else before[b]) for b, block in enumerate(self.blocks)]

    def _fit(self, block: Columns, used: Bools, before: Array | None) -> Array:
        own = np.flatnonzero(used & (block.squares > 0))
        tall, right = self._ridged(block, own)
        values = np.zeros(len(used))
        values[own] = _solved(tall, right, self.low[own], self.high[own], None if before is None else before[own])
        return values

    def _ridged(self, block: Columns, own: Ints) -> tuple[Array, Array]:
        """Equations of some columns, with their pull to zero, or a trace of it where the data may not tell them."""
        pull = np.sqrt(np.maximum(self.ridge[own], _TRACE) * block.squares[own])
        return np.vstack([block.r[:, own], np.diag(pull)]), np.concatenate([block.rho, np.zeros(len(pull))])

    def losses(self, fits: Sequence[Array]) -> Array:
        """Weighted squares (blocks, joints) that the fits leave of the blocks they have not seen."""
        return np.array([[float(np.sum((right - matrix @ values) ** 2)) for matrix, right in block.tests]
                         for block, values in zip(self.blocks, fits, strict=True)])

    def reduced(self, used: Bools, own: Ints, fits: Sequence[Array]) -> list[Reduced]:
        """The problem in the columns `own` alone, the other ones that are used eliminated, those that a bound holds in
        `fits` held."""
        return [self._reduced(block, used, own, values) for block, values in zip(self.blocks, fits, strict=True)]

    def _reduced(self, block: Columns, used: Bools, own: Ints, values: Array) -> Reduced:
        others = used.copy()
        others[own] = False
        held = others & ((values <= self.low) | (values >= self.high))
        others &= ~held & (block.squares > 0)
        rest = np.flatnonzero(others)
        tall, right = self._ridged(block, rest)
        mine = np.zeros((len(tall), len(own)))
        mine[:len(block.r)] = block.r[:, own]
        right[:len(block.rho)] -= block.r[:, held] @ values[held]
        r, n = triangular(np.column_stack([tall, mine, right])), len(rest)
        return Reduced(self, block, rest, own, r[:n, :n], r[:n, n:], r[n:-1, n:-1], r[n:-1, -1],
                       np.where(held, values, 0.0))


@dataclass(frozen=True, eq=False)
class Reduced:
    """A left-out block's problem in the columns of one joint, all others eliminated: |inner x - right|^2.

    Attributes:
        rest, own: columns that are eliminated, and those of the joint.
        upper: (rest, rest), triangular, and across (rest, own + 1): upper values[rest] = across (-x, 1).
        inner, right: (own, own) and (own,).
        fixed: (k,), values of the columns that a bound holds, zero for all others.
    """

    whole: ColumnsLeftOut = field(repr=False)
    block: Columns
    rest: Ints
    own: Ints
    upper: Array
    across: Array
    inner: Array
    right: Array
    fixed: Array

    @cached_property
    def errors(self) -> Array:
        """E (rows, own + 1): the errors on the block are E (-x, 1), joint after joint."""
        matrix, target = (np.concatenate(parts) for parts in zip(*self.block.tests, strict=True))
        gone = solve_triangular(self.upper, self.across)
        found = np.column_stack([matrix[:, self.own], target - matrix @ self.fixed])
        return np.asarray(found - matrix[:, self.rest] @ gone)

    def loss(self, chosen: Bools) -> Array:
        """Weighted squares (joints,) left of the block with some of the columns `own`."""
        used = np.flatnonzero(chosen & (self.block.squares[self.own] > 0))
        columns = self.own[used]
        pull = np.sqrt(np.maximum(self.whole.ridge[columns], _TRACE) * self.block.squares[columns])
        tall = np.vstack([self.inner[:, used], np.diag(pull)])
        right = np.concatenate([self.right, np.zeros(len(pull))])
        x = _solved(tall, right, self.whole.low[columns], self.whole.high[columns], None)
        rows = np.cumsum([0, *(len(target) for _, target in self.block.tests)])[:-1]
        return np.asarray(np.add.reduceat((self.errors[:, -1] - self.errors[:, used] @ x) ** 2, rows))


def _solved(r: Array, rho: Array, low: Array, high: Array, before: Array | None) -> Array:
    """Least squares, between bounds where the free solution is not."""
    free = np.asarray(np.linalg.lstsq(r, rho, rcond=1e-11)[0] if r.shape[1] else np.empty(0), dtype=float)
    if np.all((free >= low) & (free <= high)):
        return free
    return bounded_least_squares(r, rho, low, high, free if before is None else before)

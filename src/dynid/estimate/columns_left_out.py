"""Cross-validation over blocks of time for many subsets of regressor columns, from one compressed regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate.bounded import bounded_least_squares
from dynid.lapack import solve_triangular
from dynid.recording import Samples
from dynid.regression import Block, Regression
from dynid.regression.factor import Factor, triangular

_RIDGE_TRACE = 1e-14  # smallest ridge penalty, relative to a column's squared norm
EXACT_SHARE = 1e-8  # of a joint's squared torques: smaller errors are rounding errors
MAX_STRETCHES_OF_A_BLOCK = 8  # intervals of time per block
MIN_ROWS_OF_A_STRETCH = 10  # smallest number of rows per interval, since filtered rows have correlated noise


@dataclass(frozen=True, eq=False)
class Columns:
    """Weighted triangular equations r x = rho of the data without one block of time, and the equations of that block.

    tests: matrix and right-hand side of that block, per joint. squares (k,): squared norms of the columns of r.
    """

    r: Array
    rho: Array
    tests: tuple[tuple[Array, Array], ...]  # one per joint
    squares: Array


@dataclass(frozen=True, eq=False)
class ColumnsLeftOut:
    """Data for cross-validation over blocks of time, in columns (k,) that are combinations of base parameters.

    blocks: equations without each block. low, high, ridge (k,): bounds and ridge of each column, see `Parameter`.
    """

    blocks: tuple[Columns, ...]
    low: Array
    high: Array
    ridge: Array

    @staticmethod
    def from_regression(regression: Regression, weights: Array, mixing: Array, low: Array, high: Array,
                        ridge: Array) -> ColumnsLeftOut:
        """Return the data of a regression with joint weights (dof,); mixing (base, k): combinations of the columns."""
        found = []
        for k, others in enumerate(regression.without_each()):
            if not regression.blocks[k].rows:
                continue
            stacked = others.stack(weights, prior=False)
            tests = tuple((weight * factor.r[:, :-1] @ mixing[factor.columns], weight * factor.r[:, -1])
                          for weight, factor in zip(weights, regression.blocks[k].factors, strict=True))
            r = stacked.r @ mixing
            found.append(Columns(r, stacked.rho, tests, np.sum(r ** 2, axis=0)))
        return ColumnsLeftOut(tuple(found), low, high, ridge)

    def fits(self, used: Bools) -> list[Array]:
        """Return least-squares values (k,) of the used columns without each block of time; zero for other columns."""
        found = []
        for block in self.blocks:
            own = np.flatnonzero(used & (block.squares > 0))
            values = np.zeros(len(used))
            values[own] = _solved(*self.ridged(block, own, block.r[:, own], block.rho), self.low[own], self.high[own])
            found.append(values)
        return found

    def ridged(self, block: Columns, own: Ints, r: Array, rho: Array) -> tuple[Array, Array]:
        """Return equations r x = rho in the columns `own` of a block, extended by ridge penalties. Columns without a
        penalty get a minimal one, since the data may not determine them."""
        penalty = np.sqrt(np.maximum(self.ridge[own], _RIDGE_TRACE) * block.squares[own])
        return np.vstack([r, np.diag(penalty)]), np.concatenate([rho, np.zeros(len(penalty))])

    def losses(self, fits: Sequence[Array]) -> Array:
        """Return the weighted squared torque errors (blocks, joints) of fits on the blocks that they exclude."""
        return np.array([[float(np.sum((right - matrix @ values) ** 2)) for matrix, right in block.tests]
                         for block, values in zip(self.blocks, fits, strict=True)])

    def reduced(self, used: Bools, own: Ints, fits: Sequence[Array]) -> list[Reduced]:
        """Return, for each block of time, the least-squares problem in the columns `own`. The other used columns are
        eliminated, or fixed at a bound that is active in `fits`."""
        return [self._reduced(block, used, own, values) for block, values in zip(self.blocks, fits, strict=True)]

    def _reduced(self, block: Columns, used: Bools, own: Ints, values: Array) -> Reduced:
        others = used.copy()
        others[own] = False
        at_bound = others & ((values <= self.low) | (values >= self.high))
        others &= ~at_bound & (block.squares > 0)
        rest = np.flatnonzero(others)
        tall, right = self.ridged(block, rest, block.r[:, rest], block.rho)
        mine = np.zeros((len(tall), len(own)))
        mine[:len(block.r)] = block.r[:, own]
        right[:len(block.rho)] -= block.r[:, at_bound] @ values[at_bound]
        r, n = triangular(np.column_stack([tall, mine, right])), len(rest)
        return Reduced(self, block, rest, own, r[:n, :n], r[:n, n:], r[n:-1, n:-1], r[n:-1, -1],
                       np.where(at_bound, values, 0.0))


@dataclass(frozen=True, eq=False)
class Reduced:
    """Least-squares problem |inner x - right|^2 without one block of time, in the columns x of one joint.

    Attributes:
        whole, block: data of all blocks, and equations without this block.
        rest, own: indices of the eliminated columns, and of the joint's columns.
        upper, across: triangular (rest, rest) and matrix (rest, own + 1), with upper values[rest] = across (-x, 1).
        inner, right: matrix (own, own) and right-hand side (own,).
        fixed: values of the columns at an active bound, zero for all others (k,).
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
        """Matrix E (rows, own + 1): with values x of the columns `own`, E (-x, 1) are the errors on the block."""
        matrix, target = (np.concatenate(parts) for parts in zip(*self.block.tests, strict=True))
        eliminated = solve_triangular(self.upper, self.across)
        found = np.column_stack([matrix[:, self.own], target - matrix @ self.fixed])
        return np.asarray(found - matrix[:, self.rest] @ eliminated)

    def loss(self, chosen: Bools) -> Array:
        """Return the weighted squared errors (joints,) on the excluded block, with the chosen columns of `own`."""
        used = np.flatnonzero(chosen & (self.block.squares[self.own] > 0))
        columns = self.own[used]
        equations = self.whole.ridged(self.block, columns, self.inner[:, used], self.right)
        x = _solved(*equations, self.whole.low[columns], self.whole.high[columns])
        rows = np.cumsum([0, *(len(target) for _, target in self.block.tests)])[:-1]
        return np.asarray(np.add.reduceat((self.errors[:, -1] - self.errors[:, used] @ x) ** 2, rows))


def _solved(r: Array, rho: Array, low: Array, high: Array) -> Array:
    """Return the least-squares solution of r x = rho, with bounds if the unbounded solution violates them."""
    free = np.asarray(np.linalg.lstsq(r, rho, rcond=1e-11)[0] if r.shape[1] else np.empty(0), dtype=float)
    if np.all((free >= low) & (free <= high)):
        return free
    return bounded_least_squares(r, rho, low, high, free)


@dataclass(frozen=True)
class Worth:
    """Reduction `gain` of a joint's cross-validation error by a friction term, percent, with its standard error."""

    term: str
    gain: float
    error: float

    def __str__(self) -> str:
        return f"{self.term} ({self.gain:.1f} +- {self.error:.1f} %)"


def worth_of_gains(term: str, gains: Array, size: float, power: float) -> Worth:
    """Return the error reduction by a term, from the decrease of the squared error on each block (blocks,). size:
    squared error without the term. power: squared torque."""
    size = max(size, EXACT_SHARE * max(power, 1e-300))
    error = 50.0 * float(gains.std(ddof=1)) * np.sqrt(len(gains)) / size
    return Worth(term, 100.0 * (1.0 - np.sqrt(max(1.0 - float(gains.sum()) / size, 0.0))), error)


def intervals_per_block(logs: Sequence[Samples], count: int) -> int:
    """Return the number of intervals of time for each of `count` blocks, with enough rows per interval."""
    rows = sum(len(range(int(a), int(b), log.decimated_by)) for log in logs for a, b in log.segments)
    return int(np.clip(rows // (count * MIN_ROWS_OF_A_STRETCH), 1, MAX_STRETCHES_OF_A_BLOCK))


def dealt(regression: Regression, count: int) -> Regression:
    """Return a regression divided into `count` blocks, each made of interleaved intervals of time.

    With interleaved blocks, the data without one block still excite every parameter.
    """
    hands = [regression.blocks[k::count] for k in range(count)]
    return replace(regression, blocks=tuple(_together(hand) for hand in hands if hand))


def _together(blocks: Sequence[Block]) -> Block:
    """Return several blocks of time as one block, with one triangular factor for each joint."""
    return Block(tuple(span for block in blocks for span in block.spans), tuple(
        Factor(own[0].columns, triangular(*(factor.r[:max(factor.rows, 1)] for factor in own)),
               sum(factor.rows for factor in own), sum(factor.power for factor in own))
        for own in zip(*(block.factors for block in blocks), strict=True)))


def term_worth(left_out: ColumnsLeftOut, j: int, term: str, without: Array, with_: Array) -> Worth:
    """Return the error reduction by a term on joint j, from squared errors (blocks, joints) without and with it."""
    power = sum(float(block.tests[j][1] @ block.tests[j][1]) for block in left_out.blocks)
    return worth_of_gains(term, (without - with_).sum(axis=1), float(without[:, j].sum()), power)

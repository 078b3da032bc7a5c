"""Elimination of several equations at a time into triangular factors by plane rotations.

Rotations of different rows at one column are independent, so their roots and divisions are computed together; the
result equals that of one row after the other. Factors and rows are padded to vectors of LANES numbers, which is
faster than loops of variable length.
"""

from __future__ import annotations

import math

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.compiled import BORROWING, INNER_BORROWING
from dynid.kernel_store import njit

LANES = 8
GROUP = 8  # rows at a time
EXCITED = 1e-9  # independent share of a column below which it counts as not excited
# Sums in any order, so that they can be vectorised.
SUMMING = {**BORROWING, "fastmath": {"contract", "nsz", "arcp", "reassoc"}}


def stride(width: int) -> int:
    """Return the padded length of a row of a triangular factor with `width` columns."""
    return -(-width // LANES) * LANES


def working_space(count: int) -> tuple[Array, Ints]:
    """Return work space for `rotate` of up to `count` rows: numbers (5, count + 1) and row indices (count,)."""
    return np.zeros((5, count + 1)), np.zeros(count, dtype=np.int64)


@njit(**INNER_BORROWING)
def rotate(r: Array, x: Array, count: int, first: int, width: int, space: Array, which: Ints) -> None:
    """Eliminate rows x[0] .. x[count - 1] from column `first` on, except their last entry, into r.

    r (width, stride) and x (count or more, stride or more) are zero beyond `width`, r below its diagonal. space[0]
    receives the product of each row's cosines, 1 / sqrt(1 + x P x').
    """
    products, values, sizes, cosines, sines = space[0], space[1], space[2], space[3], space[4]
    stop = (width + LANES - 1) // LANES * LANES
    for j in range(count):
        products[j] = 1.0
    for i in range(first, width - 1):
        m, square = 0, r[i, i] * r[i, i]
        sizes[0] = r[i, i]
        for j in range(count):
            v = x[j, i]
            if v * v > 0.0:
                which[m], values[m] = j, v
                square += v * v
                m += 1
                sizes[m] = square
        for j in range(1, m + 1):
            sizes[j] = math.sqrt(sizes[j])
        for j in range(m):
            inverse = 1.0 / sizes[j + 1]
            cosines[j], sines[j] = sizes[j] * inverse, values[j] * inverse
        for j in range(m):
            products[which[j]] *= cosines[j]
        start = i - i % LANES
        p = r[i, start:stop]
        for j in range(0, m - 1, 2):  # two rows in one sweep: half the loads of r
            c, s, c2, s2 = cosines[j], sines[j], cosines[j + 1], sines[j + 1]
            one, two = x[which[j], start:stop], x[which[j + 1], start:stop]
            for k in range(stop - start):
                a, b, e = p[k], one[k], two[k]
                turned = c * a + s * b
                one[k] = c * b - s * a
                p[k] = c2 * turned + s2 * e
                two[k] = c2 * e - s2 * turned
        if m % 2 == 1:
            c, s = cosines[m - 1], sines[m - 1]
            one = x[which[m - 1], start:stop]
            for k in range(stop - start):
                a, b = p[k], one[k]
                p[k] = c * a + s * b
                one[k] = c * b - s * a
        for j in range(m):
            x[which[j], i] = 0.0
        if m > 0:
            r[i, i] = sizes[m]


@njit(**INNER_BORROWING)
def add_rest(r: Array, width: int, rest: float) -> None:
    """Add the residual of an eliminated row to the last diagonal entry of the triangular factor."""
    r[width - 1, width - 1] = math.sqrt(r[width - 1, width - 1] ** 2 + rest * rest)


@njit(**SUMMING)
def solve(r: Array, norms: Array, beta: Array, last: int) -> None:
    """Solve R beta = rho for beta (b,), R the leading rows of r and rho its column `last`; zero for dependent
    columns. norms (b,): squared norms of the columns. Eight rows are processed at a time."""
    b = len(beta)
    for high in range(b, 0, -LANES):
        low = max(high - LANES, 0)
        known = beta[high:]
        for i in range(low, high):
            value, row = 0.0, r[i, high:b]
            for k in range(len(row)):
                value += row[k] * known[k]
            beta[i] = r[i, last] - value
        for i in range(high - 1, low - 1, -1):
            d = r[i, i]
            value = beta[i] / d if d * d > EXCITED * EXCITED * norms[i] else 0.0
            beta[i] = value
            for k in range(low, i):
                beta[k] -= r[k, i] * value


@njit(**INNER_BORROWING)
def rotate_each(factor: Array, x: Array, starts: Ints, low: int, high: int, space: Array, which: Ints) -> None:
    """Eliminate rows x[j - low] of joints low..high, each into its own factor, rows starts[j] to starts[j + 1] of
    `factor`, except their last entry."""
    values, sizes, cosines, sines = space[1], space[2], space[3], space[4]
    widest = 0
    for j in range(low, high):
        widest = max(widest, starts[j + 1] - starts[j])
    for i in range(widest - 1):
        m = 0
        for j in range(low, high):
            if i < starts[j + 1] - starts[j] - 1:
                v, d = x[j - low, i], factor[starts[j] + i, i]
                if v * v > 0.0:
                    which[m], values[m], cosines[m], sizes[m] = j, v, d, d * d + v * v
                    m += 1
        for k in range(m):
            sizes[k] = math.sqrt(sizes[k])
        for k in range(m):
            inverse = 1.0 / sizes[k]
            cosines[k], sines[k] = cosines[k] * inverse, values[k] * inverse
        start = i - i % LANES
        for at in range(m):
            j, c, s = which[at], cosines[at], sines[at]
            stop = (starts[j + 1] - starts[j] + LANES - 1) // LANES * LANES
            p, one = factor[starts[j] + i, start:stop], x[j - low, start:stop]
            for k in range(stop - start):
                a, b = p[k], one[k]
                p[k] = c * a + s * b
                one[k] = c * b - s * a
            p[i - start], one[i - start] = sizes[at], 0.0


@njit(**BORROWING)
def fold_rows(factor: Array, squares: Array, counts: Array, x: Array, space: Array, which: Ints, entries: Array,
              keep: Bools, starts: Ints, start: int, stop: int, shares: Array) -> None:
    """Add every valid equation of samples start..stop to its joint's factor, rows starts[j] to starts[j + 1].

    entries (rows, m), keep and starts as in `kernels.update`. shares: factor on each sample (m,), empty for one.
    squares (rows,): sums of squared entries. counts (2, dof): rows, and squared torques.
    """
    dof = len(starts) - 1
    for t in range(start, stop):
        share = shares[t] if len(shares) > 0 else 1.0
        for low in range(0, dof, GROUP):
            high = min(low + GROUP, dof)
            for j in range(low, high):
                begin, end = starts[j], starts[j + 1]
                row, given, sums = x[j - low], entries[begin:end, t], squares[begin:end]
                for k in range(len(row)):
                    row[k] = 0.0
                if keep[t, j]:
                    for k in range(end - begin):
                        v = share * given[k]
                        row[k] = v
                        sums[k] += v * v
                    counts[0, j] += 1.0
                    counts[1, j] += row[end - begin - 1] ** 2
            rotate_each(factor, x, starts, low, high, space, which)
            for j in range(low, high):
                width = starts[j + 1] - starts[j]
                add_rest(factor[starts[j]:starts[j + 1]], width, x[j - low, width - 1])


@njit(**BORROWING)
def merge(r: Array, other: Array, space: Array, which: Ints) -> None:
    """Add the triangular factor `other` (width, stride), which is overwritten, to the factor r (width, stride)."""
    width = len(r)
    for first in range(0, width, GROUP):
        count = min(GROUP, width - first)
        rows = other[first:first + count]
        rotate(r, rows, count, first, width, space, which)
        for k in range(count):
            add_rest(r, width, rows[k, width - 1])

"""Sparse elimination of dependent joints: sparsity pattern, pivot order and list of operations.

The plan is computed once per robot, so that many samples can be processed in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array, Bools, Ints

INVERT, MULTIPLY, SUBTRACT = 0, 1, 2
_LEAST_PIVOT = 0.3  # of the largest entry of its column: smallest pivot in the initial posture of the loops


class Elimination(NamedTuple):
    """Plan for solving the sparse equations Phi_d x = b for many samples.

    Phi_d, Phi_a: derivatives of the closure equations by dependent and independent coordinates. Entries of Phi_d,
    including fill-in, are in a store with one row over the samples each. Right-hand sides are stored by equation:
    columns 0 .. n-1 are Phi_a, and column n is a further right-hand side. Solutions replace right-hand sides.

    Attributes:
        terms: equation, joint, and row to which the joint adds its derivative (k, 3). The row is one of the store or,
            from `rows` on, of the right-hand sides, n + 1 per equation.
        shares: factors of these derivatives (k,).
        factor: steps of the factorisation (k, 4): an operation and rows of the store.
        sides: steps for right-hand sides (k, 3): equation, multiplier's row of the store, and the equation that is
            subtracted, -1 if the multiplier is the inverse pivot.
        solved: equation whose right-hand side holds the solution of each dependent coordinate (dependent,).
        pivots: rows of the pivots (dependent,).
        sign: sign of the permutation of the pivots.
        rows: number of rows of the store.
    """

    terms: Ints
    shares: Array
    factor: Ints
    sides: Ints
    solved: Ints
    pivots: Ints
    sign: float
    rows: int


Contribution = tuple[int, int, int, int, float]


def planned(pattern: Bools, values: Array, contributions: Sequence[Contribution], n: int) -> Elimination:
    """Return the elimination plan for the chosen equations of a closed chain.

    Args:
        pattern: mask of derivatives that are not zero in every posture (dependent, coordinates).
        values: derivatives in the initial posture of the loops (dependent, coordinates).
        contributions: for each joint in a chosen equation, the index of the equation among the chosen and among all
            equations, the joint, its coordinate, and the factor of the joint's derivative.
        n: number of independent coordinates.
    """
    dependent = len(pattern)
    taken, order = _pivots(pattern[:, n:].copy(), values[:, n:].copy())
    place = np.full((dependent, dependent), -1, dtype=np.int64)
    size = int(np.count_nonzero(taken))
    place[taken] = np.arange(size)
    rows, columns = np.array([row for row, _ in order]), np.array([column for _, column in order])
    factor: list[tuple[int, int, int, int]] = []
    sides: list[tuple[int, int, int]] = []
    for k in range(dependent):
        pivot = place[rows[k], columns[k]]
        factor.append((INVERT, pivot, 0, 0))
        for i in rows[k + 1:][taken[rows[k + 1:], columns[k]]]:
            multiplier = place[i, columns[k]]
            factor.append((MULTIPLY, multiplier, pivot, 0))
            factor += [(SUBTRACT, place[i, c], multiplier, place[rows[k], c])
                       for c in columns[k + 1:][taken[rows[k], columns[k + 1:]]]]
            sides.append((i, multiplier, rows[k]))
    for k in range(dependent - 1, -1, -1):
        later = np.flatnonzero(taken[rows[k], columns[k + 1:]]) + k + 1
        sides += [(rows[k], place[rows[k], columns[j]], rows[j]) for j in later]
        sides.append((rows[k], place[rows[k], columns[k]], -1))
    moving = [entry for entry in contributions if pattern[entry[0], entry[3]]]
    terms = [(equation, joint, place[e, c - n] if c >= n else size + e * (n + 1) + c)
             for e, equation, joint, c, _ in moving]
    swap = np.zeros((dependent, dependent))
    swap[rows, columns] = 1.0
    return Elimination(np.array(terms, dtype=np.int64), np.array([share for *_, share in moving]),
                       np.array(factor, dtype=np.int64), np.array(sides, dtype=np.int64),
                       rows[np.argsort(columns)].astype(np.int64), place[rows, columns],
                       float(round(np.linalg.det(swap))), size)


def _pivots(pattern: Bools, values: Array) -> tuple[Bools, list[tuple[int, int]]]:
    """Return the mask of nonzero entries, including fill-in, and the pivots (equation, coordinate) in order. Among the
    sufficiently large entries, the entry with the least fill-in is the pivot (Markowitz)."""
    n, taken = len(pattern), pattern.copy()
    rows, columns, order = list(range(n)), list(range(n)), []
    for _ in range(n):
        largest = np.abs(values[rows]).max(axis=0)
        able = [(i, c) for i in rows for c in columns if pattern[i, c]
                and abs(values[i, c]) >= _LEAST_PIVOT * largest[c] and values[i, c] != 0.0]
        i, c = min(able, key=lambda entry: ((pattern[entry[0]].sum() - 1) * (pattern[:, entry[1]].sum() - 1),
                                            -abs(values[entry])))
        order.append((i, c))
        rows.remove(i)
        columns.remove(c)
        for r in rows:
            if pattern[r, c]:
                pattern[r, columns] |= pattern[i, columns]
                values[r, columns] -= values[r, c] / values[i, c] * values[i, columns]
        taken[np.ix_(rows, columns)] |= pattern[np.ix_(rows, columns)]
        pattern[i], pattern[:, c] = False, False
    return taken, order

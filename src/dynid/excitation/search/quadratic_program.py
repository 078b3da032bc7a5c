"""Compiled solver of small dense quadratic programmes: minimise g.x + x.H x / 2 subject to C x <= b.

The dual method of Goldfarb and Idnani (1983) starts at the unconstrained minimum, adds the most violated row, and drops
rows whose multiplier would become negative. A motion search calls the solver thousands of times in several threads, so
the solver runs without the interpreter lock. With few active rows, the dual method is several times faster than an
interior-point method.

For q active rows N (q, n) and H = L L', the solver stores K = Q' L^-1 and an upper triangular matrix R (q, q), with an
orthogonal matrix Q such that -K N' = [R; 0]. Rows are added and dropped by Givens rotations of K and R. Entries are
assigned one by one, because numba would compile an error message for slices, which takes two seconds.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.compiled import INNER, OPTIONS
from dynid.kernel_store import njit


@njit(**OPTIONS, is_storable=False)
def solve_qp(hessian: Array, gradient: Array, rows: Array, bounds: Array, tolerance: float,
             limit: int) -> tuple[Array, bool]:
    """Return x (n,) and whether x is the solution of a quadratic programme, for a positive definite Hessian (n, n), a
    gradient (n,) and constraints rows @ x <= bounds, (m, n) and (m,); tolerance: allowed violation of rows of length
    one. limit: largest number of steps."""
    n, m = len(gradient), len(bounds)
    K = _inverse_factor(hessian)
    x = -((K @ gradient) @ K)
    R = np.zeros((n + 1, n + 1))
    active = np.empty(n + 1, dtype=np.int64)
    multipliers = np.zeros(n + 1)
    inside = np.zeros(m, dtype=np.bool_)
    lengths = np.empty(m)
    for i in range(m):
        lengths[i] = max(np.sqrt(np.dot(rows[i], rows[i])), 1e-300)
    q, steps = 0, 0
    while True:
        over = rows @ x - bounds
        p = _most_violated(over, lengths, inside, tolerance)
        if p < 0:
            return x, True
        multiplier, excess = 0.0, over[p]
        while True:
            steps += 1
            if steps > limit:
                return x, False
            d = -(K @ rows[p])
            r = _back_substituted(R, d, q)
            steep = np.dot(d[q:], d[q:])
            # The step at which an active row's multiplier becomes zero, and the step at which row p is satisfied.
            dual, leaving = _dual_step(multipliers, r, q)
            primal = excess / steep if steep > 1e-14 * max(1e-300, np.dot(d, d)) and q < n else np.inf
            t = min(dual, primal)
            if t == np.inf:
                return x, False  # the rows contradict each other
            for i in range(q):
                multipliers[i] -= t * r[i]
            multiplier += t
            if primal < np.inf:
                x += t * (d[q:] @ K[q:])
                excess -= t * steep
            if primal <= dual:
                _take_in(K, R, d, q)
                active[q], multipliers[q], inside[p] = p, multiplier, True
                q += 1
                break
            inside[active[leaving]] = False
            _drop(K, R, active, multipliers, leaving, q)
            q -= 1


@njit(**INNER)
def _inverse_factor(hessian: Array) -> Array:
    """Return the inverse (n, n) of the Cholesky factor L of the Hessian H = L L'."""
    lower = np.linalg.cholesky(hessian)
    K = np.zeros(hessian.shape)
    for i in range(len(K)):
        K[i, i] = 1.0
        for k in range(i):
            for c in range(i):
                K[i, c] -= lower[i, k] * K[k, c]
        for c in range(i + 1):
            K[i, c] /= lower[i, i]
    return K


@njit(**INNER)
def _most_violated(over: Array, lengths: Array, inside: Bools, tolerance: float) -> int:
    """Return the row with the largest violation relative to its length; -1 if none exceeds the tolerance."""
    worst, p = tolerance, -1
    for i in range(len(over)):
        if not inside[i] and over[i] / lengths[i] > worst:
            worst, p = over[i] / lengths[i], i
    return p


@njit(**INNER)
def _back_substituted(R: Array, d: Array, q: int) -> Array:
    """Return the solution r (q,) of R r = d[:q] with an upper triangular matrix R."""
    r = np.zeros(q)
    for i in range(q - 1, -1, -1):
        value = d[i]
        for k in range(i + 1, q):
            value -= R[i, k] * r[k]
        r[i] = value / R[i, i]
    return r


@njit(**INNER)
def _dual_step(multipliers: Array, r: Array, q: int) -> tuple[float, int]:
    """Return the largest step along -r (q,) that keeps the multipliers non-negative, and the index of the multiplier
    that becomes zero; infinity and -1 if none does."""
    step, leaving = np.inf, -1
    for i in range(q):
        if r[i] > 1e-14 and multipliers[i] / r[i] < step:
            step, leaving = multipliers[i] / r[i], i
    return step, leaving


@njit(**INNER)
def _take_in(K: Array, R: Array, d: Array, q: int) -> None:
    """Add a constraint to the active set: rotate d = -K row' (n,) to zero after index q, and store it in R as column
    q."""
    n = len(d)
    for k in range(n - 1, q, -1):
        c, s, size = _givens(d[k - 1], d[k])
        d[k - 1], d[k] = size, 0.0
        _rotate(K, k - 1, c, s, 0, n)
    for i in range(q + 1):
        R[i, q] = d[i]


@njit(**INNER)
def _drop(K: Array, R: Array, active: Ints, multipliers: Array, leaving: int, q: int) -> None:
    """Remove column `leaving` of q columns from R, and make R triangular again."""
    for k in range(leaving, q - 1):
        active[k], multipliers[k] = active[k + 1], multipliers[k + 1]
        for i in range(q):
            R[i, k] = R[i, k + 1]
    for k in range(leaving, q - 1):
        c, s, _ = _givens(R[k, k], R[k + 1, k])
        _rotate(R, k, c, s, k, q - 1)
        _rotate(K, k, c, s, 0, len(K))


@njit(**INNER)
def _givens(a: float, b: float) -> tuple[float, float, float]:
    """Return cosine and sine of the rotation that turns (a, b) into (size, 0), and size."""
    size = np.hypot(a, b)
    if size == 0.0:
        return 1.0, 0.0, 0.0
    return a / size, b / size, size


@njit(**INNER)
def _rotate(matrix: Array, row: int, c: float, s: float, first: int, last: int) -> None:
    """Rotate rows `row` and `row` + 1 of a matrix in columns first..last - 1."""
    for i in range(first, last):
        upper, lower = matrix[row, i], matrix[row + 1, i]
        matrix[row, i] = c * upper + s * lower
        matrix[row + 1, i] = c * lower - s * upper

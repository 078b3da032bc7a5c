"""Small dense quadratic programmes, in threads: minimise g.x + x.H x / 2 with C x <= b.

The dual method of Goldfarb and Idnani (1983): start at the unconstrained minimum, take in the most violated row, drop
rows whose multiplier would turn negative. Sequential programmes need it thousands of times, so it must not hold the
interpreter lock, and with few active rows it is several times faster than an interior point.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dynid.arrays import Array
from dynid.dynamics.compiled import OPTIONS


@njit(**OPTIONS)
def solve_qp(hessian: Array, gradient: Array, rows: Array, bounds: Array, tolerance: float,
             limit: int) -> tuple[Array, bool]:
    """x (n,) and whether it is the solution; hessian (n, n) positive definite, rows (m, n), bounds (m,).

    tolerance: how far rows of length one may be overstepped. limit: steps at most.
    """
    n, m = len(gradient), len(bounds)
    lower = np.linalg.cholesky(hessian)
    K = np.zeros((n, n))  # L^-1, turned as rows come and go: its first q rows span the active ones
    for i in range(n):
        K[i, i] = 1.0
        for k in range(i):
            K[i] -= lower[i, k] * K[k]
        K[i] /= lower[i, i]
    x = -((K @ gradient) @ K)
    R = np.zeros((n + 1, n + 1))
    active = np.empty(n + 1, dtype=np.int64)
    u = np.zeros(n + 1)
    inside = np.zeros(m, dtype=np.bool_)
    size = np.empty(m)
    for i in range(m):
        size[i] = max(np.sqrt(np.dot(rows[i], rows[i])), 1e-300)
    q, steps = 0, 0
    while True:
        worst, p = tolerance, -1
        over = rows @ x - bounds
        for i in range(m):
            if not inside[i] and over[i] / size[i] > worst:
                worst, p = over[i] / size[i], i
        if p < 0:
            return x, True
        multiplier = 0.0
        excess = over[p]
        while True:
            steps += 1
            if steps > limit:
                return x, False
            d = -(K @ rows[p])
            r = np.zeros(q)
            for i in range(q - 1, -1, -1):
                value = d[i]
                for k in range(i + 1, q):
                    value -= R[i, k] * r[k]
                r[i] = value / R[i, i]
            z = d[q:] @ K[q:]
            steep = np.dot(d[q:], d[q:])
            t1, out = np.inf, -1
            for i in range(q):
                if r[i] > 1e-14 and u[i] / r[i] < t1:
                    t1, out = u[i] / r[i], i
            t2 = excess / steep if steep > 1e-14 * max(1e-300, np.dot(d, d)) and q < n else np.inf
            t = min(t1, t2)
            if t == np.inf:
                return x, False  # the rows contradict each other
            for i in range(q):
                u[i] -= t * r[i]
            multiplier += t
            if t2 < np.inf:
                x += t * z
                excess -= t * steep
            if t2 <= t1:
                # Take row p in: Givens rotations make d zero below place q.
                for k in range(n - 1, q, -1):
                    a, b = d[k - 1], d[k]
                    h = np.hypot(a, b)
                    if h == 0.0:
                        continue
                    c, s = a / h, b / h
                    d[k - 1], d[k] = h, 0.0
                    for i in range(n):
                        first, second = K[k - 1, i], K[k, i]
                        K[k - 1, i] = c * first + s * second
                        K[k, i] = c * second - s * first
                R[:q + 1, q] = d[:q + 1]
                active[q], u[q] = p, multiplier
                inside[p] = True
                q += 1
                break
            # Drop the row whose multiplier has come to zero, and go on towards row p.
            inside[active[out]] = False
            for k in range(out, q - 1):
                active[k], u[k] = active[k + 1], u[k + 1]
                R[:q, k] = R[:q, k + 1]
            q -= 1
            for k in range(out, q):
                a, b = R[k, k], R[k + 1, k]
                h = np.hypot(a, b)
                if h == 0.0:
                    continue
                c, s = a / h, b / h
                for i in range(k, q):
                    first, second = R[k, i], R[k + 1, i]
                    R[k, i] = c * first + s * second
                    R[k + 1, i] = c * second - s * first
                for i in range(n):
                    first, second = K[k, i], K[k + 1, i]
                    K[k, i] = c * first + s * second
                    K[k + 1, i] = c * second - s * first

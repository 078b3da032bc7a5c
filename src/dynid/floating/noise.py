"""Noise of the equations of a robot with a free base, from the residuals of projected rows."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.regression import Equations

_MIN_NOISE = 1e-3  # of the largest: a coordinate whose rows hardly remain counts no less


def equation_noise(equations: Equations, beta: Array) -> Array:
    """Return the standard deviation of each coordinate's equation (6 + n,) from residuals of projected rows.

    A row that is the combination m of equations with independent noise has the variance sum of m_j^2 s_j^2. The
    non-negative s_j^2 are fitted to the squares of all residuals.
    """
    from scipy.optimize import nnls

    n = len(equations.joints)
    normal, right = np.zeros((n, n)), np.zeros(n)
    for piece in equations.pieces():
        if not len(piece.rows):
            continue
        found, samples = equations.rows(piece), equations.logs[piece.log]
        mixing = np.broadcast_to(np.eye(n), (len(piece.rows), n, n)) if samples.mixing is None else samples.mixing[
            piece.rows.start:piece.rows.stop:piece.rows.step]
        for j in range(n):
            rows, kept = found.joint(j), found.keep[:, j]
            residual = rows[-1] - beta[found.layout.columns[j]] @ rows[:-1]
            squares = mixing[kept, j] ** 2
            normal += squares.T @ squares
            right += squares.T @ residual[kept] ** 2
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    values, _ = nnls(normal / np.outer(scale, scale), right / scale, maxiter=50 * n)
    deviations = np.sqrt(values / scale)
    return np.asarray(np.maximum(deviations, _MIN_NOISE * deviations.max()))

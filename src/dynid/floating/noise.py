"""Noise of the equations of a robot with a free base, from the residuals of projected rows."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.regression import Equations
from dynid.robot import FREE_COORDINATES as SIX

_MIN_NOISE = 1e-3  # of the largest: a coordinate whose rows hardly remain counts no less
_SPREAD_OF_VARIANCES = 1.0  # relative standard deviation of the variances of coordinates of one kind
_VARIANCE_FITS = 3  # fits of the variances, each weighted by those of the one before


def equation_noise(equations: Equations, beta: Array) -> Array:
    """Return the standard deviation of each coordinate's equation (6 + n,) from residuals of projected rows.

    A row that is the combination m of equations with independent noise has the variance v = sum of m_j^2 s_j^2, and its
    squared residual the variance 2 v^2. The non-negative s_j^2 are fitted to the squares of all residuals. Rows of a
    standing leg contain several coordinates in similar shares, so that single s_j^2 are poorly determined: first one
    variance is fitted for forces on the base, one for moments and one for joints, and the s_j^2 are regularised toward
    these.
    """
    from scipy.optimize import nnls

    n = len(equations.joints)
    squares, residuals = _squares(equations, beta, n)
    kinds = np.zeros((n, 3))
    for kind, coordinates in enumerate((slice(0, 3), slice(3, SIX), slice(SIX, n))):
        kinds[coordinates, kind] = 1.0
    size = np.maximum(squares.sum(axis=1), 1e-300) * residuals.mean() / max(float(squares.sum(axis=1).mean()), 1e-300)

    def fitted(columns: Array, prior: Array | None) -> Array:
        variance, found = size, np.zeros(columns.shape[1])
        for _ in range(_VARIANCE_FITS):
            weight = 1.0 / (np.sqrt(2.0) * np.maximum(variance, 1e-12 * variance.max()))
            weighted, right = columns * weight[:, None], residuals * weight
            normal, product = weighted.T @ weighted, weighted.T @ right
            if prior is not None:
                strength = (_SPREAD_OF_VARIANCES * np.maximum(prior, _MIN_NOISE ** 2 * prior.max())) ** -2
                normal[np.diag_indices(len(normal))] += strength
                product += strength * prior
            scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
            found = nnls(normal / np.outer(scale, scale), product / scale, maxiter=50 * n)[0] / scale
            variance = columns @ found
        return found

    common = kinds @ fitted(squares @ kinds, None)
    deviations = np.sqrt(fitted(squares, common))
    return np.asarray(np.maximum(deviations, _MIN_NOISE * deviations.max()))


def _squares(equations: Equations, beta: Array, n: int) -> tuple[Array, Array]:
    """Return squares of the combinations of equations (rows, 6 + n) and of the residuals (rows,) of all used rows."""
    squares, residuals = list[Array](), list[Array]()
    for piece in equations.pieces():
        if not len(piece.rows):
            continue
        found, samples = equations.rows(piece), equations.logs[piece.log]
        mixing = np.broadcast_to(np.eye(n), (len(piece.rows), n, n)) if samples.mixing is None else samples.mixing[
            piece.rows.start:piece.rows.stop:piece.rows.step]
        for j in range(n):
            rows, kept = found.joint(j), found.keep[:, j]
            residual = rows[-1] - beta[found.layout.columns[j]] @ rows[:-1]
            squares.append(mixing[kept, j] ** 2)
            residuals.append(residual[kept] ** 2)
    return np.vstack(squares), np.concatenate(residuals)

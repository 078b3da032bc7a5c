"""Coordinates whose every value gives positive definite inertias: log-Cholesky and squared virtual parameters.

Nonlinear least squares in these coordinates needs no constraints, but is not convex.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array
from dynid.consistency.consistency import Consistency
from dynid.consistency.fit import Fit
from dynid.consistency.literature.points import as_fit, start_values
from dynid.regression import BaseParameters, Stacked
from dynid.robot import inertia as ten

Map = Callable[[Array], tuple[Array, Array]]  # coordinates (k,) -> ten inertial parameters (10,), Jacobian (10, k)


def log_cholesky(z: Array) -> tuple[Array, Array]:
    """Return ten inertial parameters and their derivatives (10, 10) by log-Cholesky coordinates z (10,), see
    `dynid.robot.inertia.to_log_cholesky`."""
    upper = np.eye(4)
    upper[0, 0], upper[1, 1], upper[2, 2] = np.exp(z[1:4])
    upper[0, 1], upper[1, 2], upper[0, 2], upper[0, 3], upper[1, 3], upper[2, 3] = z[4:10]
    size = np.exp(z[0])
    changes = np.zeros((10, 4, 4))
    changes[0] = upper
    for k, (i, j) in enumerate([(0, 0), (1, 1), (2, 2)], 1):
        changes[k, i, j] = upper[i, j]
    for k, (i, j) in enumerate([(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)], 4):
        changes[k, i, j] = 1.0
    half = changes @ upper.T
    slopes = ten.from_pseudo_inertia(size ** 2 * (half + np.swapaxes(half, 1, 2)))
    return ten.from_pseudo_inertia(size ** 2 * upper @ upper.T), slopes.T


def virtual(t: Array) -> tuple[Array, Array]:
    """Return ten inertial parameters and their derivatives by the coordinates of Ting et al. (2006; Sousa, eq. 2.71).

    t (10,): root of mass, centre of mass (3), lower Cholesky factor of the central inertia by rows (6). The inertia is
    positive definite, but may violate the triangle inequality: these coordinates ensure only the 6 x 6 condition.
    """
    mass, com = t[0] ** 2, t[1:4]
    factor = np.zeros((3, 3))
    row, column = np.tril_indices(3)
    factor[row, column] = t[4:]
    numbers = ten.from_central(np.array(mass), com, factor @ factor.T)
    slopes = np.zeros((10, 10))
    slopes[:, 0] = 2.0 * t[0] * ten.from_central(np.array(1.0), com, np.zeros((3, 3)))
    for axis in range(3):
        unit = np.eye(3)[axis]
        moved = mass * (ten.skew(unit) @ ten.skew(com).T + ten.skew(com) @ ten.skew(unit).T)
        slopes[:, 1 + axis] = np.concatenate([ten.entries(moved), mass * unit, [0.0]])
    for k, (i, j) in enumerate(zip(row, column, strict=True)):
        change = np.zeros((3, 3))
        change[i, j] = 1.0
        product = change @ factor.T
        slopes[:, 4 + k] = np.concatenate([ten.entries(product + product.T), np.zeros(4)])
    return numbers, slopes


def fit_log_cholesky(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, begin: Array | None = None,
                     iterations: int = 200) -> Fit:
    """Fit by nonlinear least squares in log-Cholesky coordinates (Rucker and Wensing 2022), with the exact Jacobian."""
    theta = start_values(consistency, begin)
    first = [ten.to_log_cholesky(theta[columns]) for columns in consistency.bodies.values()]
    return _fit(consistency, base, stacked, theta, first, log_cholesky, iterations)


def fit_virtual(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, begin: Array | None = None,
                iterations: int = 200) -> Fit:
    """Fit by nonlinear least squares in squared virtual parameters (Sousa, eq. 2.72-2.73), with the exact Jacobian."""
    theta = start_values(consistency, begin)
    first = []
    for columns in consistency.bodies.values():
        mass, com, central = ten.to_central(theta[columns])
        factor = np.linalg.cholesky(central)
        first.append(np.concatenate([[np.sqrt(mass)], com, factor[np.tril_indices(3)]]))
    return _fit(consistency, base, stacked, theta, first, virtual, iterations)


def _fit(consistency: Consistency, base: BaseParameters, stacked: Stacked, theta: Array, first: list[Array], body: Map,
         iterations: int) -> Fit:
    from scipy.optimize import least_squares

    matrix = stacked.r @ base.matrix
    places, flagged = consistency.places, consistency.parameters.positive
    rest = np.setdiff1d(np.arange(len(theta)), places.ravel())
    squared = flagged[rest]
    count = places.size

    def expand(x: Array) -> tuple[Array, Array]:
        full, jacobian = np.zeros(len(theta)), np.zeros((len(theta), len(x)))
        for b, columns in enumerate(places):
            own = slice(10 * b, 10 * b + 10)
            full[columns], jacobian[columns, own] = body(x[own])
        others = x[count:]
        full[rest] = np.where(squared, others ** 2, others)
        jacobian[rest, count + np.arange(len(rest))] = np.where(squared, 2.0 * others, 1.0)
        return full, jacobian

    begin = np.concatenate([*first, np.where(squared, np.sqrt(np.maximum(theta[rest], 1e-6)), theta[rest])])
    found = least_squares(lambda x: matrix @ expand(x)[0] - stacked.rho, begin, jac=lambda x: matrix @ expand(x)[1],
                          x_scale="jac", max_nfev=iterations, method="trf")
    return as_fit(consistency, base, stacked, expand(found.x)[0], int(found.nfev))

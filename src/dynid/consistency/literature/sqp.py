"""Sequential quadratic programming with constraints on eigenvalues or minors (Mata et al. 2005; Sousa, eq. 2.69)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency.consistency import LENGTH, Consistency
from dynid.consistency.fit import Fit
from dynid.consistency.interior import scales
from dynid.consistency.literature.points import as_fit, start_values
from dynid.regression import BaseParameters, Stacked

_SMALLEST_MASS = 1e-6  # kg: lower bound of the mass in the conversion of inertias to the centre of mass


def fit_sqp(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, begin: Array | None = None,
            constraint: Literal["sylvester", "eigenvalues"] = "sylvester", iterations: int = 300,
            prior: tuple[Array, float] | None = None, steps: int = 1) -> Fit:
    """Minimise the misfit |R K theta - rho|^2 of base parameters K theta by SLSQP, with exact gradients.

    Args:
        begin: initial parameters (parameters,), or None.
        constraint: leading minors (Farhat et al. 2008) or eigenvalues (Mata et al. 2005) of every body's matrix.
        iterations: largest number of iterations.
        prior: values of base parameters (base,), NaN where unknown, and their common standard deviation s. The
            objective then includes |(values - K theta) / s|^2 (Sousa, eq. 2.69).
        steps: 2 starts at the solution of a first problem, in which only masses and diagonal inertias about the centres
            of mass must be positive (Mata et al.).
    """
    from scipy.optimize import minimize

    scale = scales(consistency)
    size = np.sqrt(max(stacked.rest, 1e-12))
    matrix, rho = stacked.r @ base.matrix, stacked.rho
    if prior is not None:
        given = np.flatnonzero(np.isfinite(prior[0]))
        matrix = np.vstack([matrix, base.matrix[given] / prior[1]])
        rho = np.concatenate([rho, prior[0][given] / prior[1]])
    matrix, rho = matrix * scale / size, rho / size
    normal, right = matrix.T @ matrix, matrix.T @ rho
    places, unit = consistency.places, np.where(np.arange(consistency.basis.shape[1]) < 3, LENGTH, 1.0)
    # Unit of the entries of a body's matrix and of its ten parameters: one kilogram and one decimetre.
    basis = consistency.basis / np.outer(unit, unit) * np.array([LENGTH ** 2] * 6 + [LENGTH] * 3 + [1.0])[:, None, None]

    def values(x: Array) -> Array:
        p = np.einsum("bk,kij->bij", x[places], basis)
        return (np.linalg.eigvalsh(p) if constraint == "eigenvalues" else _minors(p)).ravel()

    def slopes(x: Array) -> Array:
        p = np.einsum("bk,kij->bij", x[places], basis)
        n = p.shape[-1]
        jacobian = np.zeros((len(p) * n, len(x)))
        for b, own in enumerate(places):
            jacobian[b * n:(b + 1) * n, own] = _eigen_slopes(p[b], basis) if constraint == "eigenvalues" else \
                _minor_slopes(p[b], basis)
        return jacobian

    positive = np.flatnonzero(consistency.parameters.positive)
    bounds = [(0.0, None) if k in set(positive) else (None, None) for k in range(len(scale))]

    def solved(start: Array, conditions: Callable[[Array], Array], jacobian: Callable[[Array], Array]) -> Any:
        return minimize(lambda x: float(x @ (normal @ x) / 2 - right @ x), start, jac=lambda x: normal @ x - right,
                        bounds=bounds, method="SLSQP",
                        constraints=[{"type": "ineq", "fun": conditions, "jac": jacobian}],
                        options={"maxiter": iterations, "ftol": 1e-9})

    start, count = start_values(consistency, begin) / scale, 0
    if steps == 2:
        first = solved(start, lambda x: _diagonals(x, places)[0], lambda x: _diagonals(x, places)[1])
        start, count = first.x, int(first.nit)
    found = solved(start, values, slopes)
    return as_fit(consistency, base, stacked, found.x * scale, count + int(found.nit))


def _diagonals(x: Array, places: Ints) -> tuple[Array, Array]:
    """Return masses and diagonals of the inertias about the centres of mass (bodies x 4,), and their derivatives by x.

    The diagonals are I_xx - (h_y^2 + h_z^2) / m and so on, with first moments h and mass m.
    """
    values, jacobian = np.zeros((len(places), 4)), np.zeros((len(places), 4, len(x)))
    for b, own in enumerate(places):
        h, mass = x[own[6:9]], max(float(x[own[9]]), _SMALLEST_MASS)
        values[b, 0], jacobian[b, 0, own[9]] = x[own[9]], 1.0
        for axis, place in enumerate((0, 3, 5)):
            others = [k for k in range(3) if k != axis]
            square = float(np.sum(h[others] ** 2))
            values[b, 1 + axis] = x[own[place]] - square / mass
            jacobian[b, 1 + axis, own[place]] = 1.0
            jacobian[b, 1 + axis, own[6 + np.array(others)]] = -2.0 * h[others] / mass
            jacobian[b, 1 + axis, own[9]] = square / mass ** 2 if x[own[9]] > _SMALLEST_MASS else 0.0
    return values.ravel(), jacobian.reshape(-1, len(x))


def _minors(p: Array) -> Array:
    """Return the leading principal minors (bodies, n) of matrices (bodies, n, n)."""
    return np.stack([np.linalg.det(p[:, :k, :k]) for k in range(1, p.shape[-1] + 1)], axis=1)


def _minor_slopes(p: Array, basis: Array) -> Array:
    """Return derivatives (n, 10) of the leading minors by ten inertial parameters: d det(P_k) = tr(adj(P_k) dP_k)."""
    rows = []
    for k in range(1, len(p) + 1):
        u, s, v = np.linalg.svd(p[:k, :k])
        # The adjugate is computed from singular values, because the matrix may be singular.
        others = np.array([np.prod(np.delete(s, i)) for i in range(k)])
        adjugate = np.linalg.det(u) * np.linalg.det(v) * (v.T * others) @ u.T
        rows.append(np.einsum("ij,kji->k", adjugate, basis[:, :k, :k]))
    return np.array(rows)


def _eigen_slopes(p: Array, basis: Array) -> Array:
    """Return the derivatives (n, 10) of the eigenvalues by ten inertial parameters: d lambda_i = v_i' dP v_i."""
    _, vectors = np.linalg.eigh(p)
    return np.einsum("ai,kab,bi->ik", vectors, basis, vectors)

"""Published fits with point masses, with bounds of each parameter, or with removal of parameters.

Point masses are at fixed positions (Ayusawa and Nakamura 2010; Sousa, eq. 2.74-2.76). Bounds of each parameter (Lomakin
and Deutscher, s. VI) do not ensure physical consistency. The third method removes parameters until least squares is
consistent (Diaz-Rodriguez et al. 2010; Sousa, s. 6.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.consistency.consistency import Consistency
from dynid.consistency.feasibility import TOLERANCE, nearest
from dynid.consistency.fit import Fit
from dynid.consistency.limits import Box
from dynid.regression import BaseParameters, Stacked
from dynid.robot import inertia as ten

_EQUAL_MASS_PENALTY = 1e-3  # regularisation toward equal masses, because many sets of points represent a nominal body
DEFAULT_HALF_EDGE = 0.5  # m: half the edge of the box of a link without a known shape


def point_matrix(box: Box, count: int = 3) -> Array:
    """Return inertial parameters (10, count^3) of unit masses on a grid of points in a box: R of Sousa, eq. 2.74."""
    axes = [np.linspace(low, high, count) for low, high in zip(box.low, box.high, strict=True)]
    places = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
    homogeneous = np.column_stack([places, np.ones(len(places))])
    return ten.from_pseudo_inertia(homogeneous[:, :, None] * homogeneous[:, None, :]).T


def nominal_points(matrix: Array, numbers: Array) -> Array:
    """Return non-negative point masses (points,), kg, whose inertial parameters are nearest to given ones (10,).

    matrix (10, points): see `point_matrix`. Of many solutions, one of small and nearly equal masses is chosen: the
    prior p of Sousa, eq. 2.76.
    """
    from scipy.optimize import nnls

    size = np.maximum(np.abs(matrix).max(axis=1), 1e-12)
    tall = np.vstack([matrix / size[:, None], _EQUAL_MASS_PENALTY * np.eye(matrix.shape[1])])
    return np.asarray(nnls(tall, np.concatenate([numbers / size, np.zeros(matrix.shape[1])]))[0])


def fit_points(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, count: int = 3,
               boxes: Mapping[str, Box] | None = None, prior: tuple[Array, float] | None = None) -> Fit:
    """Minimise |R K theta - rho|^2 over masses p >= 0 of points on a grid in a box around each link (Sousa, eq. 2.76).

    prior: nominal parameters (parameters,) and the standard deviation of each point mass, kg; the objective then
    includes the squared differences from the nominal masses in units of this standard deviation.
    """
    from scipy.optimize import nnls

    width = len(consistency.parameters)
    pieces, given = [], []
    known = {body: limit for body, limit in consistency.centres.items() if isinstance(limit, Box)} | dict(boxes or {})
    default = Box(np.full(3, -DEFAULT_HALF_EDGE), np.full(3, DEFAULT_HALF_EDGE))
    for body, places in consistency.bodies.items():
        matrix = point_matrix(known.get(body, default), count)
        wide = np.zeros((width, matrix.shape[1]))
        wide[places] = matrix
        pieces.append(wide)
        given.append(np.zeros(matrix.shape[1]) if prior is None else nominal_points(matrix, prior[0][places]))
    others = np.setdiff1d(np.arange(width), consistency.places)
    free = others[~consistency.parameters.positive[others]]  # each is the difference of two non-negative variables
    expand = np.hstack([*pieces, np.eye(width)[:, others], -np.eye(width)[:, free]])
    matrix, rho = stacked.r @ base.matrix @ expand, stacked.rho
    if prior is not None:
        masses = np.concatenate(given)
        rows = np.eye(len(masses), matrix.shape[1]) / prior[1]
        matrix, rho = np.vstack([matrix, rows]), np.concatenate([rho, masses / prior[1]])
    size = np.maximum(np.linalg.norm(matrix, axis=0), 1e-12)
    found, _ = nnls(matrix / size, rho, maxiter=30 * matrix.shape[1])
    return as_fit(consistency, base, stacked, expand @ (found / size), 1)


def fit_box(consistency: Consistency, base: BaseParameters, stacked: Stacked) -> Fit:
    """Fit by weighted least squares with masses, diagonal inertias and friction that are not negative."""
    from scipy.optimize import lsq_linear

    width = len(consistency.parameters)
    lower = np.full(width, -np.inf)
    lower[consistency.places[:, [0, 3, 5, 9]].ravel()] = 0.0
    lower[consistency.parameters.positive] = 0.0
    matrix = stacked.r @ base.matrix
    size = 1.0 / np.maximum(np.linalg.norm(matrix, axis=0), 1e-9)
    found = lsq_linear(matrix * size, stacked.rho, (lower / size, np.inf), method="bvls" if width < 60 else "trf")
    return as_fit(consistency, base, stacked, found.x * size, int(found.nit))


@dataclass(frozen=True, eq=False)
class Step:
    """One step of `reduction`: number of removed base parameters, misfit, distance from consistency, base values."""

    removed: int
    misfit: float
    distance: float
    beta: Array


def reduction(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, every: int = 1,
              tolerance: float = TOLERANCE) -> list[Step]:
    """Return least-squares models with fewer and fewer base parameters, until one is physically consistent. The
    parameter with the largest relative standard error is removed first.

    every: number of removals between two tests of consistency.
    """
    kept = list(range(len(base)))
    steps: list[Step] = []
    while kept:
        beta, deviation = _least_squares(stacked, kept, len(base))
        removed = len(base) - len(kept)
        if removed % every == 0 or len(kept) == 1:
            distance = nearest(consistency, beta, base, tolerance=tolerance).distance
            steps.append(Step(removed, stacked.misfit(beta), distance, beta))
            if distance <= tolerance:
                break
        uncertain = deviation[kept] / np.maximum(np.abs(beta[kept]), 1e-300)
        kept.pop(int(np.argmax(uncertain)))
    return steps


def fit_reduced(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, every: int = 1,
                tolerance: float = TOLERANCE) -> Fit:
    """Return the first physically consistent model of `reduction`, with all standard parameters."""
    steps = reduction(consistency, base, stacked, every=every, tolerance=tolerance)
    found = nearest(consistency, steps[-1].beta, base, tolerance=tolerance)
    return as_fit(consistency, base, stacked, found.theta, len(steps))


def _least_squares(stacked: Stacked, kept: list[int], count: int) -> tuple[Array, Array]:
    """Return least-squares values and standard errors (count,) of kept base parameters, zero for removed ones."""
    r = stacked.r[:, kept]
    solution, *_ = np.linalg.lstsq(r, stacked.rho, rcond=None)
    beta, deviation = np.zeros(count), np.zeros(count)
    beta[kept] = solution
    variance = stacked.misfit(beta) / max(stacked.rows - len(kept), 1)
    deviation[kept] = np.sqrt(np.maximum(np.diag(np.linalg.pinv(r.T @ r)), 0.0) * variance)
    return beta, deviation


def as_fit(consistency: Consistency, base: BaseParameters, stacked: Stacked, theta: Array, iterations: int) -> Fit:
    """Return standard parameters theta as a `Fit`; published methods do not report active constraints."""
    beta = base.matrix @ theta
    return Fit(theta, beta, stacked.misfit(beta), stacked.rest, (), (), consistency.smallest_eigenvalue(theta), 0.0,
               iterations)


def start_values(consistency: Consistency, start: Array | None = None) -> Array:
    """Return initial parameters (parameters,) of a nonlinear search: given ones, or spheres of 1 kg and 0.1 m."""
    if start is not None:
        return consistency.parameters.vector(start)
    theta = np.where(consistency.parameters.positive, 0.1, 0.0)
    for columns in consistency.bodies.values():
        theta[columns] = ten.from_central(1.0, np.zeros(3), 0.004 * np.eye(3))
    return theta

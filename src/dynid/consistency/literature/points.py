"""Point masses at fixed positions by quadratic programming (Ayusawa and Nakamura 2010; Sousa, eq. 2.74-2.76)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.arrays import Array
from dynid.consistency.consistency import Consistency
from dynid.consistency.fit import Fit
from dynid.consistency.limits import Box
from dynid.consistency.literature.shared import as_fit
from dynid.regression import BaseParameters, Stacked
from dynid.robot import inertia as ten

_EQUAL_MASS_PENALTY = 1e-3  # pull to equal masses, of a nominal body that points can make up in many ways
DEFAULT_HALF_EDGE = 0.5  # m: half the edge of the box where nothing is known of a link


def point_matrix(box: Box, count: int = 3) -> Array:
    """Return ten parameters of a unit mass at each node of a grid in the box (10, count^3): R of eq. 2.74."""
    axes = [np.linspace(low, high, count) for low, high in zip(box.low, box.high, strict=True)]
    places = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
    homogeneous = np.column_stack([places, np.ones(len(places))])
    return ten.from_pseudo_inertia(homogeneous[:, :, None] * homogeneous[:, None, :]).T


def nominal_points(matrix: Array, numbers: Array) -> Array:
    """Return non-negative masses (points,) of points (10, points) that are nearest to a body's ten parameters.

    Of the many solutions, small and equal masses are chosen: the prior p of eq. 2.76.
    """
    from scipy.optimize import nnls

    size = np.maximum(np.abs(matrix).max(axis=1), 1e-12)
    tall = np.vstack([matrix / size[:, None], _EQUAL_MASS_PENALTY * np.eye(matrix.shape[1])])
    return np.asarray(nnls(tall, np.concatenate([numbers / size, np.zeros(matrix.shape[1])]))[0])


def fit_points(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, count: int = 3,
               boxes: Mapping[str, Box] | None = None, prior: tuple[Array, float] | None = None) -> Fit:
    """Return masses p >= 0 of points on a grid in a box around each link that minimise |R K theta - rho|^2 (eq. 2.76).

    prior: nominal parameters (parameters,) and the standard deviation of each point's mass from them, kg; adds the
    squared differences in units of these standard deviations, the second part of eq. 2.76.
    """
    from scipy.optimize import nnls

    width = len(consistency.parameters)
    columns, pieces, given = [], [], []
    known = {body: limit for body, limit in consistency.centres.items() if isinstance(limit, Box)} | dict(boxes or {})
    for body, places in consistency.bodies.items():
        default = Box(np.full(3, -DEFAULT_HALF_EDGE), np.full(3, DEFAULT_HALF_EDGE))
        matrix = point_matrix(known.get(body, default), count)
        wide = np.zeros((width, matrix.shape[1]))
        wide[places] = matrix
        pieces.append(wide)
        given.append(np.zeros(matrix.shape[1]) if prior is None else nominal_points(matrix, prior[0][places]))
    inside = np.zeros(width, dtype=bool)
    inside[consistency.places.ravel()] = True
    for k in np.flatnonzero(~inside):
        unit = np.zeros((width, 1))
        unit[k] = 1.0
        columns.append(unit)
        if not consistency.parameters.positive[k]:
            columns.append(-unit)  # a free number is the difference of two that are not negative
    expand = np.hstack(pieces + columns)
    matrix, rho = stacked.r @ base.matrix @ expand, stacked.rho
    if prior is not None:
        masses = np.concatenate(given)
        rows = np.eye(len(masses), matrix.shape[1]) / prior[1]
        matrix, rho = np.vstack([matrix, rows]), np.concatenate([rho, masses / prior[1]])
    size = np.maximum(np.linalg.norm(matrix, axis=0), 1e-12)
    found, _ = nnls(matrix / size, rho, maxiter=30 * matrix.shape[1])
    return as_fit(consistency, base, stacked, expand @ (found / size), 1)

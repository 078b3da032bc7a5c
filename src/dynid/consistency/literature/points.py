"""Point masses at fixed places by quadratic programming (Ayusawa and Nakamura 2010; Sousa, eq. 2.74-2.76)."""

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

_HALF = 0.5  # m: half the edge of the box where nothing is known of a link


def point_matrix(box: Box, count: int = 3) -> Array:
    """Ten numbers of a unit mass at each node of a grid in the box (10, count^3): R of eq. 2.74."""
    axes = [np.linspace(low, high, count) for low, high in zip(box.low, box.high, strict=True)]
    places = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
    homogeneous = np.column_stack([places, np.ones(len(places))])
    return ten.from_pseudo_inertia(homogeneous[:, :, None] * homogeneous[:, None, :]).T


def fit_points(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, count: int = 3,
               boxes: Mapping[str, Box] | None = None) -> Fit:
    """Masses p >= 0 of points on a grid in a box around each link, minimising |R K theta - rho|^2 (eq. 2.76)."""
    from scipy.optimize import nnls

    width = len(consistency.parameters)
    columns, pieces = [], []
    known = {body: limit for body, limit in consistency.centres.items() if isinstance(limit, Box)} | dict(boxes or {})
    for body, places in consistency.bodies.items():
        matrix = point_matrix(known.get(body, Box(np.full(3, -_HALF), np.full(3, _HALF))), count)
        wide = np.zeros((width, matrix.shape[1]))
        wide[places] = matrix
        pieces.append(wide)
    inside = np.zeros(width, dtype=bool)
    inside[consistency.places.ravel()] = True
    for k in np.flatnonzero(~inside):
        unit = np.zeros((width, 1))
        unit[k] = 1.0
        columns.append(unit)
        if not consistency.parameters.positive[k]:
            columns.append(-unit)  # a free number is the difference of two that are not negative
    expand = np.hstack(pieces + columns)
    matrix = stacked.r @ base.matrix @ expand
    size = np.maximum(np.linalg.norm(matrix, axis=0), 1e-12)
    masses, _ = nnls(matrix / size, stacked.rho, maxiter=30 * matrix.shape[1])
    return as_fit(consistency, base, stacked, expand @ (masses / size), 1)

"""Coordinates of a full parameter vector in which every link has about the same size, for draws and projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.consistency import Consistency
from dynid.consistency.blocks import smat, svec
from dynid.estimate.draws.eigenvalue_clipping import clip_eigenvalues

# m: thickness that is added to a link for its own scale. A link that is flatter would make the scale of one direction
# so small that a projection needs many more steps; chosen on the Panda and LWR logs.
SCALE_THICKNESS = 0.02
# Smallest eigenvalue of a link in these coordinates after a projection: above rounding, below any effect on torques.
SMALLEST_SCALED_EIGENVALUE = 1e-5


@dataclass(frozen=True, eq=False)
class BodyScaling:
    """Linear coordinates x of theta: of each link svec(L^-1 P L^-T) with P its pseudo-inertia, of others theta / scale.

    With L the Cholesky factor of a reference link, the Euclidean distance between two links is that of the log-det
    divergence to second order. A relative change of one link by a tenth is therefore a step of about 0.1.

    Attributes:
        places: places (bodies, 10) of the links' parameters.
        others: places (k,) of all other parameters.
        positive: (k,), which of these must not be negative.
        matrix: (parameters, parameters), theta = matrix @ x.
        inverse: (parameters, parameters), x = inverse @ theta.
    """

    places: Ints
    others: Ints
    positive: Bools
    matrix: Array
    inverse: Array

    @staticmethod
    def around(consistency: Consistency, theta: Array, other_scales: Array) -> BodyScaling:
        """Return the coordinates around consistent parameters theta (parameters,).

        Args:
            consistency: the set, of form "pseudo".
            theta: (parameters,), whose links are the reference.
            other_scales: (parameters,), the unit of each parameter that is not of a link.
        """
        items = consistency.parameters.items
        places = consistency.places
        others = np.array([k for k, item in enumerate(items) if item.body is None], dtype=np.int64)
        inverse = np.zeros((len(items), len(items)))
        inverse[others, others] = 1.0 / other_scales[others]
        pseudo = consistency.matrices(theta)
        pseudo[:, :3, :3] += (SCALE_THICKNESS ** 2 * pseudo[:, 3, 3])[:, None, None] * np.eye(3)
        matrix = np.zeros_like(inverse)
        matrix[others, others] = other_scales[others]
        for own, factor in zip(places, np.linalg.inv(np.linalg.cholesky(pseudo)), strict=True):
            rows = svec(factor @ consistency.basis @ factor.T).T
            inverse[np.ix_(own, own)] = rows
            matrix[np.ix_(own, own)] = np.linalg.inv(rows)
        positive = np.array([items[k].positive for k in others], dtype=bool)
        return BodyScaling(places, others, positive, matrix, inverse)

    @cached_property
    def _limited(self) -> Ints:
        """Indices of the non-link parameters that must not be negative."""
        return self.others[self.positive]

    def projected(self, x: Array) -> Array:
        """Return the nearest consistent points (draws, parameters): negative eigenvalues and values are set to zero."""
        found = x.copy()
        if len(self.places):
            links = np.ascontiguousarray(x[:, self.places]).reshape(-1, self.places.shape[1])
            clip_eigenvalues(links, SMALLEST_SCALED_EIGENVALUE)
            found[:, self.places] = links.reshape(len(x), *self.places.shape)
        found[:, self._limited] = np.maximum(x[:, self._limited], 0.0)
        return found

    def is_consistent(self, x: Array) -> Bools:
        """Return which points (draws,) of x (draws, parameters) are inside the set."""
        inside = np.all(x[:, self._limited] >= 0.0, axis=1)
        if len(self.places):
            smallest = np.linalg.eigvalsh(smat(x[:, self.places])).min(axis=(1, 2))
            inside &= smallest >= 0.5 * SMALLEST_SCALED_EIGENVALUE
        return np.asarray(inside)

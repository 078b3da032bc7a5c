"""All joints' equations projected on their instruments: what remains is a small square problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import NotPossibleError
from dynid.regression import Stacked
from dynid.regression.base import reduce_columns
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular

_NOT_EXCITED = 1e-8  # share of an instrument column that the others do not explain, below which it is left out
_LOST_RANK = 1e-12  # smallest singular value of Q_Z'Y, as a share of the largest, at which it can be solved


@dataclass(frozen=True, eq=False)
class Projected:
    """All joints seen through the instruments: minimise |r beta - rho| (Ardiani, eq. 2.9).

    r (kept, kept), rho (kept,): Q_Z'Y and Q_Z'tau. z (kept, kept): triangular factor of Z. kept: base columns that the
    instruments excite, of `base` in all. rest: weighted squared torque that the instruments do not see. rows: how many
    equations went in.
    """

    r: Array
    rho: Array
    z: Array
    kept: Ints
    rest: float
    base: int
    rows: int

    @property
    def cross(self) -> Array:
        """Z'Y, weighted (kept, kept)."""
        return self.z.T @ self.r

    @property
    def condition(self) -> float:
        """Of r with its columns scaled to one."""
        singular = _singular_values(self.r)
        return float(singular[0] / singular[-1])

    def solution(self) -> Array:
        """(Z'Y)^-1 Z'tau as base values (base,), zero where the instruments excite nothing."""
        scale, beta = np.linalg.norm(self.r, axis=0), np.zeros(self.base)
        beta[self.kept] = np.linalg.solve(self.r / scale, self.rho) / scale
        return beta

    def stacked(self) -> Stacked:
        """The same criterion as a least-squares problem on all base parameters."""
        wide, rho = np.zeros((self.base, self.base)), np.zeros(self.base)
        wide[:len(self.kept), self.kept], rho[:len(self.kept)] = self.r, self.rho
        return Stacked(wide, rho, self.rest, self.rows)

    def change(self, new: Array, old: Array) -> float:
        """Share of the torques along the instruments that changed from old to new base values (base,)."""
        step, size = self.z @ (new - old)[self.kept], self.z @ new[self.kept]
        return float(np.linalg.norm(step)) / max(float(np.linalg.norm(size)), 1e-300)


def project(layout: Layout, factors: Sequence[Array], weights: Array, rows: int) -> Projected:
    """The projection from each joint's factor of [Z_j Y_j tau_j], weighted; rows: equations behind them.

    Two QR factorisations in one: R of [Z Y tau] holds Q_Z'Y and Q_Z'tau (Janot, Vandanjon, Gautier, eq. 34).
    """
    b = len(layout.base)
    tall = _tall(layout, factors, weights)
    instruments = triangular(tall[:, :b])
    if not np.any(np.abs(instruments) > 0):
        raise NotPossibleError("no equation is left once the start of the simulation is dropped; record longer or give "
                               "a faster controller")
    excited = reduce_columns(instruments, layout.base.parameters, range(b), tolerance=_NOT_EXCITED)
    kept = np.sort(excited.independent)
    k = len(kept)
    r = triangular(tall[:, np.concatenate([kept, b + kept, [2 * b]])])
    found = Projected(r[:k, k:2 * k], r[:k, -1], r[:k, :k], kept, float(np.sum(r[k:, -1] ** 2)), b, rows)
    singular = _singular_values(found.r)
    if singular[-1] < _LOST_RANK * singular[0]:
        raise NotPossibleError("the instruments lost rank against the data, the simulated motion is not the measured "
                               "one; check the controller's gains and the reference, or use start = 'wls'")
    return found


def _tall(layout: Layout, factors: Sequence[Array], weights: Array) -> Array:
    """[Z Y tau] of all joints in one, weighted (rows, 2 base + 1)."""
    b, parts = len(layout.base), []
    for weight, factor, columns in zip(weights, factors, layout.columns, strict=True):
        part, c = np.zeros((len(factor), 2 * b + 1)), len(columns)
        part[:, columns] = weight * factor[:, :c]
        part[:, b + columns] = weight * factor[:, c:2 * c]
        part[:, -1] = weight * factor[:, -1]
        parts.append(part)
    return np.vstack(parts)


def _singular_values(r: Array) -> Array:
    scale = np.linalg.norm(r, axis=0)
    return np.asarray(np.linalg.svd(r / np.where(scale > 0, scale, 1.0), compute_uv=False), dtype=float)

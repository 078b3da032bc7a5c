"""Projection of all joints' equations on their instruments, which gives a small square problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import NotPossibleError
from dynid.regression import Regression, Stacked
from dynid.regression.base import reduce_columns

_NOT_EXCITED = 1e-8  # share of an instrument column that the others do not explain, below which it is left out
_LOST_RANK = 1e-12  # smallest singular value of Q_Z'Y, as a share of the largest, at which it can be solved


@dataclass(frozen=True, eq=False)
class Projected:
    """Equations of all joints projected on the instruments: minimise |r beta - rho| (Ardiani, eq. 2.9).

    Attributes:
        r: (kept, kept), Q_Z'Y.
        rho: (kept,), Q_Z'tau.
        z: (kept, kept), triangular factor of Z.
        kept: indices of the excited base columns.
        base: number of all base columns.
        rest: weighted squared torque outside the span of the instruments.
        rows: number of equations.
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
        """The weighted product Z'Y (kept, kept) of instruments and regressor."""
        return self.z.T @ self.r

    @property
    def condition(self) -> float:
        """Condition number of r with its columns scaled to one."""
        singular = _singular_values(self.r)
        return float(singular[0] / singular[-1])

    def solution(self) -> Array:
        """Return the estimate (Z'Y)^-1 Z'tau (base,), zero for parameters that the instruments Z do not excite."""
        scale, beta = np.linalg.norm(self.r, axis=0), np.zeros(self.base)
        beta[self.kept] = np.linalg.solve(self.r / scale, self.rho) / scale
        return beta

    def stacked(self) -> Stacked:
        """The criterion of instrumental variables as a least-squares problem on all base parameters."""
        wide, rho = np.zeros((self.base, self.base)), np.zeros(self.base)
        wide[:len(self.kept), self.kept], rho[:len(self.kept)] = self.r, self.rho
        return Stacked(wide, rho, self.rest, self.rows)

    def change(self, new: Array, old: Array) -> float:
        """Return the relative change, from old to new base values (base,), of the torques along the instruments."""
        step, size = self.z @ (new - old)[self.kept], self.z @ new[self.kept]
        return float(np.linalg.norm(step)) / max(float(np.linalg.norm(size)), 1e-300)


def project(regression: Regression, weights: Array, rows: int) -> Projected:
    """Return the projection of compressed `Instrumented` equations, weighted by joint (dof,); rows: number of valid
    equations.

    R of [Z Y tau] contains Q_Z'Y and Q_Z'tau (Janot, Vandanjon, Gautier, eq. 34).
    """
    stacked, base = regression.stack(weights), regression.base
    b = len(base) // 2
    instruments = stacked.r[:b, :b]
    if not np.any(np.abs(instruments) > 0):
        raise NotPossibleError("no equation remains after the start of the simulation is dropped",
                               "record longer or give a faster controller", "no-rows-left")
    kept = np.sort(reduce_columns(instruments, base.parameters, range(b), tolerance=_NOT_EXCITED).independent)
    k, chosen = len(kept), stacked.select(np.concatenate([kept, b + kept]))
    rest = float(np.sum(chosen.rho[k:] ** 2)) + chosen.rest
    found = Projected(chosen.r[:k, k:], chosen.rho[:k], chosen.r[:k, :k], kept, rest, b, rows)
    singular = _singular_values(found.r)
    if singular[-1] < _LOST_RANK * singular[0]:
        ridged = [base.parameters.items[c].name for c in base.independent if base.parameters.items[c].ridge > 0]
        if ridged:
            raise NotPossibleError("instruments do not support a ridge penalty, but only a ridge determines "
                                   f"{', '.join(ridged[:4])}{' and others' if len(ridged) > 4 else ''}",
                                   "give a friction curve few widths, such as widths = [0.1], or use 'wls'",
                                   "instruments-without-ridge")
        raise NotPossibleError("the instruments have lost rank: the "
                               "simulated motion differs from the "
                               "measured one", "check the controller's gains and the reference, or use start = 'wls'",
                               "instruments-lost-rank")
    return found


def _singular_values(r: Array) -> Array:
    scale = np.linalg.norm(r, axis=0)
    return np.asarray(np.linalg.svd(r / np.where(scale > 0, scale, 1.0), compute_uv=False), dtype=float)

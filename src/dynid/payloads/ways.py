"""Linear methods for a load's ten parameters (Ardiani, eq. 4.2-4.5).

With W, W_L the weighted columns of the loaded logs, beta' = beta + phi the robot in them (friction may differ by phi,
which has a prior), beta_0 the unloaded estimate and H_0 the information of its data:

- residual (4.2): beta = beta_0 fixed, theta from y - W beta_0. same-motion (4.4) is the same on torques from which
  the residuals of an unloaded log along the same motion were subtracted.
- together (4.5): minimise |H_0^1/2 (beta - beta_0)|^2 + |y - W beta' - W_L theta|^2 over all of them.
- difference (4.3): beta_wl from the loaded logs alone; theta from beta_wl - beta_0 = K theta + phi, weighted by both
  covariances; the same estimate as together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.payloads.loaded_equations import LoadedEquations

Way = Literal["residual", "difference", "same-motion", "together"]
WAYS: tuple[Way, ...] = ("residual", "difference", "same-motion", "together")
_RANK_TOLERANCE = 1e-10  # singular value of scaled equations, as a share of the largest, below which nothing is known
MIN_COLUMN_SHARE = 1e-13  # of the largest column: one below it is no column
_UNKNOWN_SHARE = 1e-6  # share of a parameter that lies in what is not known, above which it is not identified


@dataclass(frozen=True, eq=False)
class Unloaded:
    """The robot without load: values beta_0 (b,), their covariance (b, b), rows (k, b) with H_0 = rows' rows the
    information of its data in units of noise, and by_gain (b, dof): derivative of the values by relative gains of
    each joint; None if its data are not available."""

    values: Array
    covariance: Array
    rows: Array
    by_gain: Array | None = None


@dataclass(frozen=True, eq=False)
class Nuisance:
    """Other effects of the load, each with a prior of mean zero: their columns (n,) in the loaded equations and
    standard deviations (n,)."""

    places: Ints
    deviations: Array

    @staticmethod
    def none() -> Nuisance:
        """Return a nuisance without effects."""
        return Nuisance(np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class LinearPayloadFit:
    """Unknowns x = [beta, nuisance, theta] (u,) by linear least squares.

    Attributes:
        columns: (columns, u), the loaded equations' columns are multiplied by columns @ x.
        inverse: (u, u), of the normal equations.
        by_robot: (u, b), derivatives of x by beta_0.
        by_gain: (u, dof), derivatives of x by the relative gain of each joint in all logs.
        load: (10,), indices of theta in x.
        prior: (u,), variance of the nuisances, as noise of the normal equations.
        identified: (10,), which parameters of the load the data determine.
    """

    x: Array
    columns: Array
    inverse: Array
    by_robot: Array
    by_gain: Array
    load: Ints
    prior: Array
    identified: Bools

    @property
    def theta(self) -> Array:
        """The load's ten inertial parameters."""
        return self.x[self.load]


def residual_fit(loaded: LoadedEquations, unloaded: Unloaded, nuisance: Nuisance) -> LinearPayloadFit:
    """Return the fit of eq. 4.2, with the robot fixed at its unloaded values."""
    return _fit(loaded, unloaded, nuisance, fixed=True)


def together_fit(loaded: LoadedEquations, unloaded: Unloaded, nuisance: Nuisance) -> LinearPayloadFit:
    """Return the fit of eq. 4.5: robot and load jointly, with the unloaded data as prior information."""
    return _fit(loaded, unloaded, nuisance, fixed=False)


def _fit(loaded: LoadedEquations, unloaded: Unloaded, nuisance: Nuisance, fixed: bool) -> LinearPayloadFit:
    matrix, right, joint = loaded.rows
    b, n = len(loaded.robot), len(nuisance.places)
    columns = np.zeros((matrix.shape[1], b + n + 10))
    columns[loaded.robot, np.arange(b)] = 1.0
    columns[nuisance.places, b + np.arange(n)] = 1.0
    columns[loaded.load, b + n + np.arange(10)] = 1.0
    free = np.arange(b if fixed else 0, b + n + 10)
    rows = matrix @ columns
    target = right - rows[:, :b] @ unloaded.values if fixed else right
    known = np.zeros((0, b)) if fixed else unloaded.rows
    prior = np.zeros((n, b + n + 10))
    prior[np.arange(n), b + np.arange(n)] = 1.0 / nuisance.deviations
    tall = np.vstack([rows, np.hstack([known, np.zeros((len(known), n + 10))]), prior])[:, free]
    back, seen = pseudo_inverse(tall)
    inverse, x = np.zeros((b + n + 10,) * 2), np.zeros(b + n + 10)
    inverse[np.ix_(free, free)] = back @ back.T
    x[free] = back @ np.concatenate([target, known @ unloaded.values, np.zeros(n)])
    if fixed:
        by_robot = -inverse @ (rows.T @ rows[:, :b])
        x[:b], by_robot[:b] = unloaded.values, np.eye(b)
    else:
        by_robot = inverse[:, :b] @ (known.T @ known)
    # The gain of a joint multiplies its torques, in the loaded and in the unloaded logs. Without unloaded
    # data, gain errors are assumed to affect only the residual torque.
    torque = right if unloaded.by_gain is not None else right - rows[:, :b] @ unloaded.values
    pushed = np.stack([rows.T @ np.where(joint == j, torque, 0.0) for j in range(len(loaded.weights))], axis=1)
    by_gain = inverse @ pushed + (0.0 if unloaded.by_gain is None else by_robot @ unloaded.by_gain)
    share = np.zeros(b + n + 10)
    share[b:b + n] = nuisance.deviations ** -2.0
    return LinearPayloadFit(x, columns, inverse, by_robot, by_gain, b + n + np.arange(10), share, seen[-10:])


def difference(loaded: LoadedEquations, unloaded: Unloaded, nuisance: Nuisance, change: Array) -> Array:
    """Return the load's ten parameters (10,) by eq. 4.3, from the difference of two sets of base parameters.

    The difference is weighted by both covariances. change (b, 10): see `change_by_load`.
    """
    matrix, right, _ = loaded.rows
    b = len(loaded.robot)
    own = np.array([place >= b for place in nuisance.places], dtype=bool)  # columns that the robot alone does not have
    extra, deviation = nuisance.places[own], nuisance.deviations[own]
    # The loaded logs alone: base parameters beta_wl, what is not the robot's eliminated.
    alone = np.vstack([np.hstack([matrix[:, extra], matrix[:, loaded.robot]]),
                       np.hstack([np.diag(1.0 / deviation), np.zeros((len(extra), b))])])
    target = np.concatenate([right, np.zeros(len(extra))])
    q, r = np.linalg.qr(alone)
    half, rho = r[len(extra):, len(extra):], (q.T @ target)[len(extra):]
    # Covariance of the difference: V = H_0^-1 + Phi + H_b^-1, with H_b = half' half. half V half' is well scaled.
    spread = np.zeros((b, b))
    places = nuisance.places[~own]
    spread[places, places] = nuisance.deviations[~own] ** 2
    back, _ = pseudo_inverse(unloaded.rows)
    known = half @ (back @ back.T + spread) @ half.T + np.eye(b)
    root = np.linalg.cholesky(known)
    left = np.linalg.solve(root, half @ change)
    found = np.linalg.lstsq(left, np.linalg.solve(root, rho - half @ unloaded.values), rcond=None)[0]
    return np.asarray(found, dtype=float)


def pseudo_inverse(matrix: Array) -> tuple[Array, Bools]:
    """Return A^+ (n, rows) of a matrix (rows, n) after column scaling, and which unknowns are determined (n,).
    Columns at rounding level count as zero."""
    size = np.linalg.norm(matrix, axis=0)
    there = size > MIN_COLUMN_SHARE * size.max(initial=0.0)
    matrix, size = np.where(there, matrix, 0.0), np.where(there, size, 1.0)
    left, singular, right = np.linalg.svd(matrix / size, full_matrices=False)
    kept = singular > _RANK_TOLERANCE * singular.max(initial=0.0)
    hidden = np.sqrt(np.maximum(1.0 - np.sum(right[kept] ** 2, axis=0), 0.0))
    return (right[kept] / singular[kept, None]).T @ left[:, kept].T / size[:, None], np.asarray(
        hidden < _UNKNOWN_SHARE, dtype=np.bool_)

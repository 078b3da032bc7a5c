"""Information of a motion with standing feet on the base parameters that its equations can identify."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.excitation.information import Information
from dynid.excitation.standing.options import StandingEquations
from dynid.excitation.standing.stance import Stance
from dynid.excitation.standing.standing_limit import differences
from dynid.model import LinearModel, complete
from dynid.regression import BaseParameters
from dynid.regression.base import reduce_columns
from dynid.regression.factor import triangular
from dynid.robot import FREE_COORDINATES as SIX

_DRAWN_STATES = 6  # random states for each parameter, from which base parameters are found
_STANDING_RANK = 1e-3  # share of a column that must be independent: less is lost in the noise of any log
_SILENT_COLUMN = 1e-6  # of the largest column's norm; columns of a link that stands still have rounding alone


def equation_rows(stance: Stance, model: LinearModel, equations: StandingEquations, weights: Array, x: Array, dx: Array,
                  ddx: Array) -> Array:
    """Return the rows of the equations for all parameters (samples, rows, parameters), divided by their noise.

    The tangent of the driving coordinates spans the null space of the standing contacts' Jacobian. With the noise s of
    the equations and T' s^2 T = L L', the rows L^-1 T' Y contain no contact forces, and have uncorrelated noise of one.

    Args:
        stance: the standing feet.
        model: the model.
        equations: kind of the equations.
        weights: 1 / noise of the equations (6 + n,).
        x, dx, ddx: driving coordinates and their two derivatives (samples, m).
    """
    states = stance.states(x, dx, ddx)
    y = complete(model).regressor(*dynamics.root_motion(stance.robot, states.q, states.v, states.a))
    if equations == "wrenches":
        return np.asarray(weights[:, None] * y)
    if equations == "base":
        return np.asarray(weights[:SIX, None] * y[:, :SIX])
    tangent = states.postures.tangent
    turned = tangent.transpose(0, 2, 1)
    lower = np.linalg.cholesky(turned @ (tangent / weights[:, None] ** 2))
    return np.asarray(np.linalg.solve(lower, turned @ y))


def standing_base_parameters(stance: Stance, model: LinearModel, equations: StandingEquations, reach: Array,
                             frequency: float, seed: int = 0) -> BaseParameters:
    """Return the base parameters that a motion with these standing feet can identify.

    A foot that never moves, or a link that hardly turns, excites fewer parameters than the equations have with lifted
    feet and fast motions.

    Args:
        stance: the standing feet.
        model: the model.
        equations: kind of the equations.
        reach: range of the driving coordinates (m,) about home from which random states are drawn.
        frequency: highest frequency of the motion, Hz, for their velocities and accelerations.
        seed: of these states.
    """
    rng = np.random.default_rng(seed)
    x = stance.drawn(reach, _DRAWN_STATES * len(model.parameters), rng)
    fast = 2.0 * np.pi * frequency
    dx, ddx = (0.5 * reach * fast ** order * rng.normal(size=x.shape) for order in (1, 2))
    rows = equation_rows(stance, model, equations, np.ones(model.dof), x, dx, ddx)
    tall = rows.reshape(-1, rows.shape[2])
    factor = triangular(tall)
    size = np.linalg.norm(factor, axis=0)
    factor[:, size < _SILENT_COLUMN * size.max()] = 0.0
    return reduce_columns(factor, model.parameters, range(len(model.parameters)), _STANDING_RANK)


@dataclass(frozen=True, eq=False)
class StandingInformation(Information):
    """Information matrix of a motion with standing feet.

    Attributes:
        stance: the standing feet.
        equations: kind of the equations.
        prior: information on every scaled parameter before the motion. One is a standard deviation as large as its
            prior magnitude: parameters that standing feet hardly excite then do not decide on the motion alone.
    """

    stance: Stance | None = None
    equations: StandingEquations = "projected"
    prior: float = 0.0

    @property
    def feet(self) -> Stance:
        assert self.stance is not None  # a field after those with defaults
        return self.stance

    def entries(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the rows on the base columns (samples, rows, base) of driving coordinates (samples, m)."""
        rows = equation_rows(self.feet, self.layout.model, self.equations, self.weights, q, dq, ddq)
        return np.ascontiguousarray(rows[:, :, self.layout.base.independent])

    def matrix(self, entries: Array) -> Array:
        tall = entries.reshape(-1, entries.shape[2])
        return np.asarray(self.scale[:, None] * (tall.T @ tall) * self.scale + self.prior * np.eye(len(self.scale)))

    def slope(self, q: Array, dq: Array, ddq: Array, entries: Array, by_matrix: Array) -> Array:
        """Return derivatives (3, samples, m) by q, dq, ddq of a function of A, by differences of the rows."""
        full = self.scale[:, None] * by_matrix * self.scale
        weights = 2.0 * entries @ full
        return differences(lambda *signals: np.einsum(
            "srb,dsrb->ds", weights, self.entries(*signals).reshape(-1, *entries.shape)), q, dq, ddq)

    def factor(self, q: Array, dq: Array, ddq: Array) -> Array:
        entries = self.entries(q, dq, ddq)
        return triangular(entries.reshape(-1, entries.shape[2]) * self.scale)

"""Optimisation problem for an exciting motion: values and gradients of criterion and limits.

Limits on position, velocity, acceleration and jerk are linear in the free coefficients; torques and workspace are
linearised at each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.excitation.information import Information
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import NonlinearLimit
from dynid.excitation.search.criteria import Criterion
from dynid.excitation.trajectories.families import ConstrainedFamily

_LIMIT_MARGIN = 2e-3  # share of every limit that is kept free during the search, for values between grid points
ACTIVE_LIMIT_SHARE = 0.5  # distance from a nonlinear limit below which it is included in a step
_MOST_ROWS = 150  # rows of each nonlinear limit in one step: the largest violations


@dataclass(frozen=True, eq=False)
class MotionProblem:
    """Search problem for the best motion of a family.

    Attributes:
        family: motions that satisfy the conditions at both ends.
        information: Fisher information of a motion.
        criterion: optimality criterion.
        limits, nonlinear: all limits, and the limits that are not linear in the coefficients of a motion.
        t: times (m,), s, at which criterion and limits are evaluated.
    """

    family: ConstrainedFamily
    information: Information
    criterion: Criterion
    limits: Limits
    nonlinear: tuple[NonlinearLimit, ...]
    t: Array

    # -- the motion and its linear limits --------------------------------------------------------
    @property
    def functions(self) -> Array:
        """Contributions (4, m, k) of a joint's free coefficients to q, dq, ddq and jerk."""
        return self._grids[1][0]

    @property
    def fixed_signals(self) -> Array:
        """Contributions (4, m, dof) of the fixed coefficients to q, dq, ddq and jerk."""
        return self._grids[1][1]

    @cached_property
    def _grids(self) -> dict[int, tuple[Array, Array]]:
        """Contributions (4, times, k) and (4, times, dof) of free and fixed coefficients to q, dq, ddq and jerk, for
        each time grid; the key of a grid is its refinement, which is 1 for the grid of the criterion."""
        grids = {}
        for count in {1, *(limit.refinement for limit in self.nonlinear)}:
            grid = np.linspace(self.t[0], self.t[-1], count * (len(self.t) - 1) + 1)
            values = self.family.family.functions(grid)
            grids[count] = np.ascontiguousarray(values @ self.family.null), values @ self.family.fixed.T
        return grids

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper limits (4, dof) of q, dq, ddq and jerk, slightly inside the actual limits."""
        limits = self.limits
        span = limits.upper - limits.lower
        margin = np.where(np.isfinite(span), 0.5 * _LIMIT_MARGIN * span, 0.0)
        ends = [x for x in (limits.start, limits.end) if x is not None]  # a given posture may be exactly at a limit
        low, high = np.min([limits.lower + margin, *ends], axis=0), np.max([limits.upper - margin, *ends], axis=0)
        top = [(1.0 - _LIMIT_MARGIN) * x for x in (limits.velocity, limits.acceleration, limits.jerk)]
        return np.stack([low, *(-x for x in top)]), np.stack([high, *top])

    @cached_property
    def limit_sizes(self) -> Array:
        """Half the range (4, dof) between lower and upper limits of q, dq, ddq and jerk; 1 without a limit."""
        low, high = self.bounds
        with np.errstate(invalid="ignore"):
            half = 0.5 * (high - low)
        return np.where(np.isfinite(half), half, 1.0)

    @cached_property
    def unit(self) -> Array:
        """Scale (dof, k) of each free coefficient: its largest value within the linear limits if all others are
        zero."""
        size = np.abs(self.functions).max(axis=1)  # (4, k)
        low, high = self.bounds
        with np.errstate(invalid="ignore", divide="ignore"):
            reach = np.where(np.isfinite(high - low)[:, :, None], self.limit_sizes[:, :, None] / size[:, None, :],
                             np.inf)
        return np.where(np.isfinite(reach.min(axis=0)), reach.min(axis=0), 1.0)

    def signals(self, z: Array) -> Array:
        """Return q, dq, ddq, jerk (4, m, dof) for free coefficients z (dof, k)."""
        return np.ascontiguousarray(self.fixed_signals + self.functions @ z.T)

    def slack(self, signals: Array) -> tuple[Array, Array]:
        """Return the distances (4, m, dof) of signals to the upper and to the lower linear limits."""
        low, high = self.bounds
        return high[:, None] - signals, signals - low[:, None]

    def excess(self, signals: Array) -> float:
        """Return the largest relative violation of the linear limits; zero or less is inside."""
        low, high = self.bounds
        over = np.maximum(signals - high[:, None], low[:, None] - signals) / self.limit_sizes[:, None]
        return float(over.max())

    def reach(self, signals: Array, d: Array) -> Array:
        """Return the largest step (dof,) of each joint along coefficients d (dof, k), from a motion with given signals,
        that respects the linear limits."""
        up, down = self.slack(signals)
        move = self.functions @ d.T
        with np.errstate(divide="ignore", invalid="ignore"):
            upward = np.where(move > 1e-12, up / move, np.inf).min(axis=(0, 1))
            downward = np.where(move < -1e-12, down / -move, np.inf).min(axis=(0, 1))
        return np.minimum(upward, downward)

    def linear_rows(self, where: Ints, left: Array, sign: float) -> tuple[Array, Array]:
        """Return constraint rows (r, dof k) of linear limits on scaled coefficients, and their slack (r,); where:
        signal, time and joint of each row (r, 3). left: distances to the limits, see `slack`. sign: 1 for upper limits,
        -1 for lower limits."""
        s, i, j = where.T
        dof, k = self.unit.shape
        rows = np.zeros((len(s), dof, k))
        size = self.limit_sizes[s, j]
        rows[np.arange(len(s)), j] = sign * self.functions[s, i] * self.unit[j] / size[:, None]
        return rows.reshape(len(s), dof * k), np.maximum(left[s, i, j] / size, 0.0)

    # -- objective function -----------------------------------------------------------------------
    def _objective(self, value: float) -> float:
        return value if self.criterion.logarithmic else float(np.log(value))

    def value(self, z: Array, order: float | None = None) -> float:
        """Return the logarithm of the criterion, or the criterion itself if it is already a logarithm."""
        q, dq, ddq, _ = self.signals(z)
        matrix = self.information.matrix(self.information.entries(q, dq, ddq))
        return self._objective(self.criterion(matrix, order)[0])

    def value_and_gradient(self, z: Array, order: float | None = None) -> tuple[float, Array]:
        """Return the objective, see `value`, and its gradient (dof, k)."""
        q, dq, ddq, _ = self.signals(z)
        entries = self.information.entries(q, dq, ddq)
        value, by_matrix = self.criterion(self.information.matrix(entries), order)
        slope = self.information.slope(q, dq, ddq, entries, by_matrix)
        gradient = sum(slope[k].T @ self.functions[k] for k in range(3))
        return self._objective(value), np.asarray(gradient if self.criterion.logarithmic else gradient / value)

    # -- torques and workspace -------------------------------------------------------------------
    def _refined_signals(self, z: Array) -> list[Array]:
        """Return q, dq, ddq (3, m', dof) on the grid of each nonlinear limit."""
        signals = {}
        for count in {limit.refinement for limit in self.nonlinear}:
            functions, fixed = self._grids[count]
            signals[count] = np.ascontiguousarray(fixed[:3] + functions[:3] @ z.T)
        return [signals[limit.refinement] for limit in self.nonlinear]

    def nonlinear_values(self, z: Array) -> list[Array]:
        """Return the values (m', K) of each nonlinear limit, positive if it is violated."""
        return [limit.values(q, dq, ddq)
                for limit, (q, dq, ddq) in zip(self.nonlinear, self._refined_signals(z), strict=True)]

    def nonlinear_excess(self, z: Array) -> float:
        """Return the largest value of the nonlinear limits over a motion; zero or less is inside."""
        return max((float(values.max(initial=-np.inf)) for values in self.nonlinear_values(z)), default=-np.inf)

    def nonlinear_excess_at_rest(self, q: Array) -> Array:
        """Return the largest value of the nonlinear limits (m,) in postures q (m, dof) at rest."""
        zero = np.zeros_like(q)
        values = [limit.values(q, zero, zero).max(axis=1, initial=-np.inf) for limit in self.nonlinear]
        return np.max(values, axis=0) if values else np.full(len(q), -np.inf)

    def nonlinear_rows(self, z: Array, values: list[Array]) -> tuple[Array, Array]:
        """Return linearised rows (r, dof k) and values (r,) of the nonlinear limits that are active or violated at z;
        values: result of `nonlinear_values` at z."""
        rows, now = [np.empty((0, self.unit.size))], [np.empty(0)]
        for limit, signals, value in zip(self.nonlinear, self._refined_signals(z), values, strict=True):
            i, column = np.nonzero(local_maxima(value[None])[0] & (value > -ACTIVE_LIMIT_SHARE))
            if not len(i):
                continue
            if len(i) > _MOST_ROWS:
                keep = np.argsort(-value[i, column])[:_MOST_ROWS]
                i, column = i[keep], column[keep]
            q, dq, ddq = (np.ascontiguousarray(x[i]) for x in signals)
            slope = limit.gradient(q, dq, ddq, column)  # (r, 3, dof)
            functions = self._grids[limit.refinement][0][:3, i]
            rows.append(np.einsum("rsj,srk->rjk", slope, functions).reshape(len(i), -1))
            now.append(value[i, column])
        return np.vstack(rows), np.concatenate(now)


def local_maxima(x: Array) -> Bools:
    """Return a mask (s, m, n) of the local maxima of an array (s, m, n) along its second axis."""
    peak = np.ones(x.shape, dtype=bool)
    rise = x[:, 1:] >= x[:, :-1]
    peak[:, 1:] &= rise
    peak[:, :-1] &= ~rise | (x[:, 1:] == x[:, :-1])
    return peak

"""The search: sequential quadratic programming on the free numbers of a family of motions, with exact gradients.

Limits on position, velocity, acceleration and jerk are linear in the free numbers, so every step keeps them exactly on
the grid: rows near their limit go into the quadratic programme, and rows that its step would overstep are added until
none is. Torques and space are linearised, with one elastic number that costs more than it can gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.excitation.constraints import Constraint
from dynid.excitation.criteria import Criterion
from dynid.excitation.family import Family
from dynid.excitation.information import Information
from dynid.excitation.limits import Limits
from dynid.excitation.qp import solve_qp

ROOM = 2e-3  # share of every limit kept free while searching, for what happens between the grid points
_NEAR = 0.3  # rows closer to their limit than this share of it take part from the beginning
_NEAR_CURVED = 0.5
_ORDERS = (1.0, 4.0, 16.0, 64.0)  # of the smooth stand-in, one after the other
_ENOUGH = 2e-4  # relative gain a step; a few smaller ones in a row end an order
_PATIENCE = 5
_STEPS = 150  # at most, for each order
_MOST_ROWS = 150  # of each curved limit in one step; the worst ones decide


@dataclass(frozen=True, eq=False)
class Problem:
    """Which motion of a family is best. t (m,): the samples the criterion and the limits look at."""

    family: Family
    information: Information
    criterion: Criterion
    limits: Limits
    curved: tuple[Constraint, ...]
    t: Array

    # -- the motion and its linear limits --------------------------------------------------------
    @cached_property
    def functions(self) -> Array:
        """(4, m, k): what the free numbers of a joint add to q, dq, ddq and jerk."""
        return np.ascontiguousarray(self.family.functions(self.t) @ self.family.null)

    @cached_property
    def given(self) -> Array:
        """(4, m, dof): what the fixed part gives."""
        return self.family.functions(self.t) @ self.family.fixed.T

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper limits (4, dof) of q, dq, ddq, jerk, a little inside the real ones."""
        limits = self.limits
        span = limits.upper - limits.lower
        room = np.where(np.isfinite(span), 0.5 * ROOM * span, 0.0)
        ends = [x for x in (limits.start, limits.end) if x is not None]  # a posture may stand right at a limit
        low, high = np.min([limits.lower + room, *ends], axis=0), np.max([limits.upper - room, *ends], axis=0)
        top = [(1.0 - ROOM) * x for x in (limits.velocity, limits.acceleration, limits.jerk)]
        return np.stack([low, *(-x for x in top)]), np.stack([high, *top])

    @cached_property
    def half(self) -> Array:
        """(4, dof): size of each limit, 1 where there is none."""
        low, high = self.bounds
        with np.errstate(invalid="ignore"):
            half = 0.5 * (high - low)
        return np.where(np.isfinite(half), half, 1.0)

    @cached_property
    def unit(self) -> Array:
        """(dof, k): how far each free number may go by itself before it meets a limit; the search counts in these."""
        size = np.abs(self.functions).max(axis=1)  # (4, k)
        low, high = self.bounds
        with np.errstate(invalid="ignore", divide="ignore"):
            reach = np.where(np.isfinite(high - low)[:, :, None], self.half[:, :, None] / size[:, None, :], np.inf)
        return np.where(np.isfinite(reach.min(axis=0)), reach.min(axis=0), 1.0)

    def signals(self, z: Array) -> Array:
        """q, dq, ddq, jerk (4, m, dof) at free numbers z (dof, k)."""
        return np.ascontiguousarray(self.given + self.functions @ z.T)

    def excess(self, signals: Array) -> float:
        """Largest overstepping of the linear limits as a share of them; zero or less is inside."""
        low, high = self.bounds
        over = np.maximum(signals - high[:, None], low[:, None] - signals) / self.half[:, None]
        return float(over.max())

    # -- what is minimised -----------------------------------------------------------------------
    def _score(self, value: float) -> float:
        return value if self.criterion.name in ("d", "hadamard") else float(np.log(value))

    def value(self, z: Array, order: float | None = None) -> float:
        """Of the logarithm of the criterion (of the criterion itself where it is one already)."""
        q, dq, ddq, _ = self.signals(z)
        return self._score(self.criterion(self.information.matrix(self.information.entries(q, dq, ddq)), order)[0])

    def value_and_gradient(self, z: Array, order: float | None = None) -> tuple[float, Array]:
        """The same, and its gradient (dof, k)."""
        q, dq, ddq, _ = self.signals(z)
        entries = self.information.entries(q, dq, ddq)
        value, by_matrix = self.criterion(self.information.matrix(entries), order)
        slope = self.information.slope(q, dq, ddq, entries, by_matrix)
        gradient = sum(slope[k].T @ self.functions[k] for k in range(3))
        score = self._score(value)
        return score, np.asarray(gradient if score == value else gradient / value)

    # -- torques and space -----------------------------------------------------------------------
    @cached_property
    def fine(self) -> dict[int, tuple[Array, Array]]:
        """For each fineness that a curved limit asks for: functions (4, m', k) and the fixed part (4, m', dof)."""
        found = {}
        for count in {constraint.fine for constraint in self.curved}:
            values = self.family.functions(np.linspace(self.t[0], self.t[-1], count * (len(self.t) - 1) + 1))
            found[count] = np.ascontiguousarray(values @ self.family.null), values @ self.family.fixed.T
        return found

    def motions(self, z: Array) -> list[Array]:
        """q, dq, ddq (3, m', dof) on the grid of each curved limit."""
        grids = {count: np.ascontiguousarray(given[:3] + functions[:3] @ z.T)
                 for count, (functions, given) in self.fine.items()}
        return [grids[constraint.fine] for constraint in self.curved]

    def curved_values(self, z: Array) -> list[Array]:
        """Values (m', K) of each curved limit, above zero where it is overstepped."""
        return [constraint.values(q, dq, ddq)
                for constraint, (q, dq, ddq) in zip(self.curved, self.motions(z), strict=True)]

    def curved_rows(self, z: Array, values: list[Array]) -> tuple[Array, Array]:
        """Rows (r, dof k) and their present values (r,) of the curved limits that are near or beyond."""
        rows, now = [np.empty((0, self.unit.size))], [np.empty(0)]
        for constraint, signals, value in zip(self.curved, self.motions(z), values, strict=True):
            i, column = np.nonzero(_peaks(value) & (value > -_NEAR_CURVED))
            if not len(i):
                continue
            if len(i) > _MOST_ROWS:
                keep = np.argsort(-value[i, column])[:_MOST_ROWS]
                i, column = i[keep], column[keep]
            q, dq, ddq = (np.ascontiguousarray(x[i]) for x in signals)
            slope = constraint.gradient(q, dq, ddq, column)  # (r, 3, dof)
            rows.append(np.einsum("rsj,srk->rjk", slope, self.fine[constraint.fine][0][:3, i]).reshape(len(i), -1))
            now.append(value[i, column])
        return np.vstack(rows), np.concatenate(now)

    # -- one step --------------------------------------------------------------------------------
    def step(self, gradient: Array, hessian: Array, signals: Array, curved: tuple[Array, Array], radius: float,
             price: float) -> Array:
        """The step (dof, k), in units of `unit`, of the quadratic programme; all linear limits hold after it."""
        n, unit = gradient.size, self.unit.ravel()
        low, high = self.bounds
        up, down = high[:, None] - signals, signals - low[:, None]  # (4, m, dof) left on either side
        near = _NEAR * self.half[:, None]
        blocks = [self._rows(np.argwhere(_peaks_in_time(-up) & (up < near)), up, 1.0),
                  self._rows(np.argwhere(_peaks_in_time(-down) & (down < near)), down, -1.0)]
        elastic = int(len(curved[1]) > 0)
        size = n + elastic
        H, g = np.zeros((size, size)), np.zeros(size)
        # A trace of the identity: rounding must not make it indefinite.
        H[:n, :n], g[:n] = hessian + 1e-9 * np.trace(hessian) / n * np.eye(n), gradient
        fixed = [np.hstack([np.eye(n), np.zeros((n, elastic))]), np.hstack([-np.eye(n), np.zeros((n, elastic))])]
        limit = [np.full(2 * n, radius)]
        if elastic:
            H[n, n], g[n] = 1e-3 * price, price
            fixed += [np.hstack([curved[0] * unit, -np.ones((len(curved[1]), 1))]), np.eye(size)[n:] * -1.0]
            limit += [-curved[1], np.zeros(1)]
        d = np.zeros((len(self.unit), self.unit.shape[1]))
        for _ in range(5):
            linear = np.vstack([rows for rows, _ in blocks])
            rows = np.vstack([np.hstack([linear, np.zeros((len(linear), elastic))]), *fixed])
            x, solved = solve_qp(H, g, rows, np.concatenate([b for _, b in blocks] + limit), 1e-9, 20 * size)
            if not solved and not np.isfinite(x).all():
                return np.zeros_like(d)
            d = (x[:n] * unit).reshape(d.shape)
            move = self.functions @ d.T
            over_up, over_down = move - up, -move - down
            slack = 1e-7 * self.half[:, None]
            wrong = [np.argwhere(_peaks_in_time(over_up) & (over_up > slack)),
                     np.argwhere(_peaks_in_time(over_down) & (over_down > slack))]
            if not len(wrong[0]) and not len(wrong[1]):
                break
            blocks += [self._rows(wrong[0], up, 1.0), self._rows(wrong[1], down, -1.0)]
        move = self.functions @ d.T
        with np.errstate(divide="ignore", invalid="ignore"):
            share = min(1.0, float(np.where(move > 1e-12, up / move, np.inf).min()),
                        float(np.where(move < -1e-12, down / -move, np.inf).min()))
        return d / self.unit * max(share, 0.0)

    def _rows(self, where: Ints, left: Array, sign: float) -> tuple[Array, Array]:
        """Rows of the linear limits at (signal, time, joint), scaled to the limit's size, and what is left there."""
        s, i, j = where.T
        dof, k = self.unit.shape
        rows = np.zeros((len(s), dof, k))
        half = self.half[s, j]
        rows[np.arange(len(s)), j] = sign * self.functions[s, i] * self.unit[j] / half[:, None]
        return rows.reshape(len(s), dof * k), np.maximum(left[s, i, j] / half, 0.0)


def _peaks_in_time(x: Array) -> Bools:
    """Local maxima along the second axis of (4, m, dof)."""
    peak = np.ones(x.shape, dtype=bool)
    rise = x[:, 1:] >= x[:, :-1]
    peak[:, 1:] &= rise
    peak[:, :-1] &= ~rise | (x[:, 1:] == x[:, :-1])
    return peak


def _peaks(x: Array) -> Bools:
    """Local maxima along the first axis of (m, K)."""
    return _peaks_in_time(x[None])[0]


@dataclass(frozen=True, eq=False)
class Point:
    """A place on the way: free numbers z (dof, k), score, and how far the curved limits are overstepped (0: not)."""

    z: Array
    score: float
    excess: float


def descend(problem: Problem, z: Array, stop: Callable[[], bool],
            orders: tuple[float, ...] = _ORDERS, steps: int = _STEPS) -> Iterator[Point]:
    """Better and better motions from z on, until no step helps or stop() says so.

    z must respect the linear limits. The score is of the stand-in for the present order, so it may rise between orders.
    """
    n = z.size
    hessian, radius, price = np.eye(n), 0.2, 1.0
    fresh = True
    signals = problem.signals(z)
    for order in orders if problem.criterion.has_kinks else (None,):
        score, gradient = problem.value_and_gradient(z, order)
        gradient = (gradient * problem.unit).ravel()
        values = problem.curved_values(z)
        bored = 0
        for _ in range(steps if problem.criterion.has_kinks else 3 * steps):
            if stop():
                return
            if fresh:
                hessian = np.eye(n) * max(float(np.abs(gradient).max()), 1e-6) / radius
            curved = problem.curved_rows(z, values)
            violation = max([0.0, *(float(v.max(initial=0.0)) for v in values)])
            if violation:
                price = max(price, 2.0 * float(np.abs(gradient).sum()) * radius / max(violation, 0.05))
            try:
                d = problem.step(gradient, hessian, signals, curved, radius, price)
            except np.linalg.LinAlgError:  # the curvature learnt so far has lost its sense
                if fresh:
                    break
                fresh = True
                continue
            slope = float(gradient @ d.ravel()) - price * violation
            if slope > -1e-8:
                break
            share, merit = 1.0, score + price * violation
            while True:
                new = z + share * d * problem.unit
                new_signals = problem.signals(new)
                new_values = problem.curved_values(new)
                new_violation = max([0.0, *(float(v.max(initial=0.0)) for v in new_values)])
                new_score = problem.value(new, order)
                if new_score + price * new_violation < merit + 1e-4 * share * slope or share < 1e-3:
                    break
                share *= 0.5
            if share < 1e-3:
                if fresh:
                    break
                fresh, radius = True, max(0.5 * radius, 0.01)  # forget the curvature once
                continue
            new_score, new_gradient = problem.value_and_gradient(new, order)
            new_gradient = (new_gradient * problem.unit).ravel()
            hessian = _update(hessian, share * d.ravel(), new_gradient - gradient, fresh)
            fresh = False
            radius = min(2.0 * radius, 0.5) if share == 1.0 else max(0.5 * radius, 0.01)
            gain = merit - (new_score + price * new_violation)
            z, score, gradient, signals, values = new, new_score, new_gradient, new_signals, new_values
            yield Point(z, score, new_violation)
            bored = bored + 1 if gain < _ENOUGH else 0
            if bored >= _PATIENCE:
                break


def _update(hessian: Array, s: Array, y: Array, first: bool) -> Array:
    """BFGS with Powell's damping, so that it stays positive definite; the first step also sets its size."""
    if first:
        size = abs(float(s @ y)) / float(s @ s)
        hessian = np.eye(len(s)) * max(size, 1e-6)
    Hs = hessian @ s
    sHs, sy = float(s @ Hs), float(s @ y)
    mix = 1.0 if sy >= 0.2 * sHs else 0.8 * sHs / (sHs - sy)
    y = mix * y + (1.0 - mix) * Hs
    return hessian - np.outer(Hs, Hs) / sHs + np.outer(y, y) / float(s @ y)

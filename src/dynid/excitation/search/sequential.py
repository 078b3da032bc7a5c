"""Sequential quadratic programming on the free coefficients of a family of motions, with exact gradients.

Every step satisfies the linear limits exactly on the grid: constraints near their limit enter the quadratic programme,
and constraints that its step would violate are added until none remains. Torque and workspace limits are linearised,
with one elastic variable whose penalty exceeds any possible gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.excitation.search.motion_problem import MotionProblem, local_maxima
from dynid.excitation.search.quadratic_program import solve_qp

INITIAL_ACTIVE_SHARE = 0.3  # distance from a limit, relative to the limit, below which rows are included initially
_SMOOTHING_ORDERS = (1.0, 4.0, 16.0, 64.0)  # successive orders of the smooth approximation
SMALL_GAIN = 2e-4  # decrease of the objective in one step, below which a step is small
_SMALL_STEPS = 5  # number of successive small steps that end the search for one smoothing order
MAX_SEARCH_STEPS = 150  # largest number of steps for each smoothing order
MIN_STEP_SHARE = 1e-3  # smallest share of a step in a line search
_SMALLEST_RADIUS, _LARGEST_RADIUS = 0.01, 0.5  # radius of the trust region of the scaled coefficients


@dataclass(frozen=True, eq=False)
class Iterate:
    """An iterate of the optimisation.

    Attributes:
        z: free coefficients (dof, k).
        objective, gradient: objective and its gradient (dof k,) by the scaled coefficients.
        signals: q, dq, ddq, jerk (4, m, dof).
        values: values of the nonlinear limits, positive if violated."""

    z: Array
    objective: float
    gradient: Array
    signals: Array
    values: list[Array]

    @staticmethod
    def at(problem: MotionProblem, z: Array, values: list[Array], order: float | None) -> Iterate:
        """Return the iterate at z (dof, k); values: values of the nonlinear limits at z. order: order of the smooth
        approximation of the criterion, None for the exact criterion."""
        objective, gradient = problem.value_and_gradient(z, order)
        return Iterate(z, objective, (gradient * problem.unit).ravel(), problem.signals(z), values)

    @cached_property
    def violation(self) -> float:
        """Largest violation of the nonlinear limits; 0 for none."""
        return _violation(self.values)


def _violation(values: list[Array]) -> float:
    return max([0.0, *(float(v.max(initial=0.0)) for v in values)])


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """Quadratic model of the objective in n scaled coefficients.

    Attributes:
        hessian: Hessian (n, n).
        fresh: whether the Hessian is the initial one.
        radius: radius of the trust region.
        penalty: penalty on violated nonlinear limits.
    """

    hessian: Array
    fresh: bool = True
    radius: float = 0.2
    penalty: float = 1.0

    def scaled(self, at: Iterate) -> QuadraticModel:
        """Return the model with a scaled initial Hessian, and a penalty larger than any gain from a violation."""
        hessian, penalty = self.hessian, self.penalty
        if self.fresh:
            hessian = np.eye(len(at.gradient)) * max(float(np.abs(at.gradient).max()), 1e-6) / self.radius
        if at.violation:
            gain = 2.0 * float(np.abs(at.gradient).sum()) * self.radius
            penalty = max(penalty, gain / max(at.violation, 0.05))
        return replace(self, hessian=hessian, penalty=penalty)

    def updated(self, step: Array, change: Array, whole: bool) -> QuadraticModel:
        """Return the model updated with the change of the gradient (n,) over a step (n,); whole: whether the full step
        was taken."""
        radius = min(2.0 * self.radius, _LARGEST_RADIUS) if whole else max(0.5 * self.radius, _SMALLEST_RADIUS)
        return replace(self, hessian=_bfgs(self.hessian, step, change, self.fresh), fresh=False, radius=radius)

    def restarted(self) -> QuadraticModel:
        """Return the model with the initial Hessian and a smaller trust region."""
        return replace(self, fresh=True, radius=max(0.5 * self.radius, _SMALLEST_RADIUS))

    def merit(self, objective: float, violation: float) -> float:
        return objective + self.penalty * violation


def descend(problem: MotionProblem, z: Array, stop: Callable[[], bool],
            orders: tuple[float, ...] = _SMOOTHING_ORDERS, steps: int = MAX_SEARCH_STEPS) -> Iterator[Iterate]:
    """Yield iterates from the free coefficients z (dof, k) on, until no step reduces the objective or stop() is True.
    The start z must satisfy the linear limits. The objective is the smooth approximation of the current order, so it
    may increase between orders. steps: largest number of steps for each order."""
    model, values = QuadraticModel(np.eye(z.size)), problem.nonlinear_values(z)
    nonsmooth = problem.criterion.nonsmooth
    for order in orders if nonsmooth else (None,):
        at = Iterate.at(problem, z, values, order)
        small = 0
        for _ in range(steps if nonsmooth else 3 * steps):
            if stop():
                return
            model = model.scaled(at)
            try:
                d = quadratic_step(problem, at, model)
            except np.linalg.LinAlgError:  # the approximated Hessian is no longer positive definite
                if model.fresh:
                    break
                model = replace(model, fresh=True)
                continue
            slope = float(at.gradient @ d.ravel()) - model.penalty * at.violation
            if slope > -1e-8:
                break
            share, values = _line_search(problem, at, d, order, slope, model)
            if share < MIN_STEP_SHARE:
                if model.fresh:
                    break
                model = model.restarted()
                continue
            new = Iterate.at(problem, at.z + share * d * problem.unit, values, order)
            gain = model.merit(at.objective, at.violation) - model.merit(new.objective, new.violation)
            model = model.updated(share * d.ravel(), new.gradient - at.gradient, share == 1.0)
            at, z = new, new.z
            yield at
            small = small + 1 if gain < SMALL_GAIN else 0
            if small >= _SMALL_STEPS:
                break
        values = at.values


def _line_search(problem: MotionProblem, at: Iterate, d: Array, order: float | None, slope: float,
                 model: QuadraticModel) -> tuple[float, list[Array]]:
    """Return the first share of a step d (dof, k), by halving, that reduces the merit function enough (Armijo), and the
    values of the nonlinear limits after the step. The share is below MIN_STEP_SHARE if no share suffices."""
    share, values, merit = 1.0, at.values, model.merit(at.objective, at.violation)
    while share >= MIN_STEP_SHARE:
        new = at.z + share * d * problem.unit
        values = problem.nonlinear_values(new)
        if model.merit(problem.value(new, order), _violation(values)) < merit + 1e-4 * share * slope:
            break
        share *= 0.5
    return share, values


def quadratic_step(problem: MotionProblem, at: Iterate, model: QuadraticModel) -> Array:
    """Return the step (dof, k) of the scaled coefficients that solves the quadratic programme within all linear
    limits."""
    n, shape, unit = at.gradient.size, problem.unit.shape, problem.unit.ravel()
    up, down = problem.slack(at.signals)
    size = problem.limit_sizes[:, None]
    blocks = [problem.linear_rows(np.argwhere(local_maxima(-up) & (up < INITIAL_ACTIVE_SHARE * size)), up, 1.0),
              problem.linear_rows(np.argwhere(local_maxima(-down) & (down < INITIAL_ACTIVE_SHARE * size)), down, -1.0)]
    H, g, fixed, limit = _elastic_programme(problem, at, model)
    d = np.zeros(shape)
    for _ in range(5):
        linear = np.vstack([rows for rows, _ in blocks])
        rows = np.vstack([np.hstack([linear, np.zeros((len(linear), len(g) - n))]), fixed])
        x, solved = solve_qp(H, g, rows, np.concatenate([*(b for _, b in blocks), limit]), 1e-9, 20 * len(g))
        if not solved and not np.isfinite(x).all():
            return np.zeros(shape)
        d = (x[:n] * unit).reshape(shape)
        move = problem.functions @ d.T
        wrong = [(np.argwhere(local_maxima(over) & (over > 1e-7 * size)), left, sign)
                 for over, left, sign in ((move - up, up, 1.0), (-move - down, down, -1.0))]
        if not any(len(where) for where, _, _ in wrong):
            break
        blocks += [problem.linear_rows(where, left, sign) for where, left, sign in wrong]
    return d / problem.unit * float(np.clip(problem.reach(at.signals, d).min(), 0.0, 1.0))


def _elastic_programme(problem: MotionProblem, at: Iterate, model: QuadraticModel) -> tuple[Array, Array, Array, Array]:
    """Return Hessian, gradient, rows and bounds of the quadratic programme without the linear limits. The rows are the
    trust region and the linearised nonlinear limits, which share one elastic variable."""
    n = at.gradient.size
    nonlinear, values = problem.nonlinear_rows(at.z, at.values)
    elastic = int(len(values) > 0)
    H, g = np.zeros((n + elastic, n + elastic)), np.zeros(n + elastic)
    # A small multiple of the identity keeps the Hessian positive definite despite rounding.
    H[:n, :n], g[:n] = model.hessian + 1e-9 * np.trace(model.hessian) / n * np.eye(n), at.gradient
    rows = [np.hstack([np.eye(n), np.zeros((n, elastic))]), np.hstack([-np.eye(n), np.zeros((n, elastic))])]
    bounds = [np.full(2 * n, model.radius)]
    if elastic:
        H[n, n], g[n] = 1e-3 * model.penalty, model.penalty
        rows += [np.hstack([nonlinear * problem.unit.ravel(), -np.ones((len(values), 1))]), -np.eye(n + 1)[n:]]
        bounds += [-values, np.zeros(1)]
    return H, g, np.vstack(rows), np.concatenate(bounds)


def _bfgs(hessian: Array, s: Array, y: Array, first: bool) -> Array:
    """Return the Hessian (n, n) updated by BFGS for a step s (n,) and a change of the gradient y (n,). Powell's damping
    keeps the Hessian positive definite. The first update sets its scale."""
    if first:
        size = abs(float(s @ y)) / float(s @ s)
        hessian = np.eye(len(s)) * max(size, 1e-6)
    Hs = hessian @ s
    sHs, sy = float(s @ Hs), float(s @ y)
    mix = 1.0 if sy >= 0.2 * sHs else 0.8 * sHs / (sHs - sy)
    y = mix * y + (1.0 - mix) * Hs
    return hessian - np.outer(Hs, Hs) / sHs + np.outer(y, y) / float(s @ y)

"""Primal-dual Newton method for a least-squares fit plus a logarithmic barrier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array
from dynid.consistency.barrier import Barrier
from dynid.consistency.consistency import Consistency
from dynid.errors import NotPossibleError
from dynid.lapack import dpotrf, dpotrs, null_space
from dynid.threads import one_blas_thread

MAX_SHARE_TO_BORDER = 0.95  # largest step, relative to the step that reaches the boundary
_CONVERGED_DECREMENT = 1e-9  # Newton decrement relative to the sum of the weights


# Largest numbers of Newton steps: from the start, and from multipliers of another minimum, which help only if near.
_MAX_STEPS, _MAX_STEPS_FROM_NEIGHBOUR = 120, 15
_ACCEPTED_DECREMENT = 1e-3  # relative to the sum of the weights, after the last step; rounding may prevent less


def minimise(matrix: Array, rho: Array, barrier: Barrier, start: Array, near: Array | None = None) -> Array:
    """Return theta (parameters,) that minimises |M theta - rho|^2 / 2 plus the barrier, from a strictly interior start.

    Newton steps (direction of Helmberg, Kojima and Monteiro) solve P_i S_i = w_i I for each matrix P_i of the barrier
    and its multiplier S_i, with weights w_i that decrease to those of the barrier. near (parameters,): the minimum of a
    similar problem, tried before the start.
    """
    return next(minimise_along(matrix, rho, [barrier], start, near))


def minimise_along(matrix: Array, rho: Array, barriers: Iterable[Barrier], start: Array,
                   near: Array | None = None) -> Iterator[Array]:
    """Yield the minimum theta (parameters,), see `minimise`, for barriers of one set with slowly changing weights.

    Each search starts at the previous minimum and its multipliers, or if that fails at `start`. near: see `minimise`.
    """
    misfit = _Misfit(matrix, rho, matrix.T @ matrix)
    theta, state = start, None
    for barrier in barriers:
        with one_blas_thread():
            if state is None and near is not None:
                found = _minimum(misfit, near, barrier, _Multipliers.from_minimum(barrier, near), start)
            else:
                found = _minimum(misfit, theta, barrier, state, theta)
            if found is None:
                raise NotPossibleError("the parameters nearest to the nominal model, or the analytic centre, could "
                                       "not be computed; check for links of the nominal model, or limits, in units "
                                       "other than kilograms and metres")
            theta, state = found
        yield theta


def _minimum(misfit: _Misfit, theta: Array, barrier: Barrier, state: _Multipliers | None, start: Array
             ) -> tuple[Array, _Multipliers] | None:
    """Return the minimum of the fit with one barrier, and its multipliers. The search starts from the multipliers
    `state` of a similar problem, then from `start`; None if both fail."""
    free, found = free_moves(barrier.consistency), None
    try:
        if state is not None:
            found = _newton(misfit, theta, replace(state, barrier=barrier), free, _MAX_STEPS_FROM_NEIGHBOUR, 1.0, 0.0)
        if found is None:
            slope = misfit.matrix.T @ (misfit.matrix @ start - misfit.rho)
            found = _newton(misfit, start, _Multipliers.at(barrier, start, misfit.normal, slope, free), free,
                            _MAX_STEPS, 0.3, _ACCEPTED_DECREMENT)
    except np.linalg.LinAlgError:
        return None
    return found


@dataclass(frozen=True, eq=False)
class _Misfit:
    """Least-squares misfit |M theta - rho|^2 / 2 of equations M theta = rho, with normal = M' M."""

    matrix: Array
    rho: Array
    normal: Array


def _newton(misfit: _Misfit, theta: Array, state: _Multipliers, free: Array | None, most: int, length: float,
            enough: float) -> tuple[Array, _Multipliers] | None:
    """Return the minimum of the fit plus the barrier, and its multipliers; None if the iteration does not converge.
    most: largest number of steps. length: assumed length of the previous step. enough: accepted Newton decrement after
    the last step, relative to the sum of the barrier weights."""
    matrix, normal = misfit.matrix, misfit.normal
    error = matrix @ theta - misfit.rho
    total, decrement = state.total, np.inf
    for _ in range(most):
        at = _Conditions.at(state.barrier, theta)
        goals = state.goals(at, length)
        gradient, hessian = state.system(at, goals)
        gradient += matrix.T @ error
        hessian += normal
        step = _step(hessian, gradient, free)
        decrement = -float(step @ gradient)
        changes = state.changes(at, step, goals)
        length = state.length(at, step, changes)
        theta, error = theta + length * step, error + length * (matrix @ step)
        state = state.moved(changes, length)
        is_final = length == 1.0 and max(goals) == 1.0
        if is_final and decrement < max(_CONVERGED_DECREMENT * total, 1e-13 * float(error @ error)):
            return theta, state
    return (theta, state) if decrement < enough * total and max(goals) == 1.0 else None


class _Conditions(NamedTuple):
    """Values of the conditions of a barrier at one parameter vector.

    Attributes:
        matrices: P (b, n, n) of each group of matrices.
        inverses: inverses of these matrices.
        slacks: distances from the planes (k,).
    """

    matrices: tuple[Array, ...]
    inverses: tuple[Array, ...]
    slacks: Array

    @staticmethod
    def at(barrier: Barrier, theta: Array) -> _Conditions:
        rows, offset = barrier.planes
        matrices = tuple(group.at(theta) for group in barrier.groups)
        return _Conditions(matrices, tuple(np.asarray(np.linalg.inv(p), dtype=float) for p in matrices),
                           rows @ theta + offset)


@dataclass(frozen=True, eq=False)
class _Multipliers:
    """Multipliers of a barrier: S of its matrices P, z (k,) of its planes. At the minimum P S = w I, slack z = w'."""

    barrier: Barrier
    matrices: tuple[Array, ...]
    planes: Array

    @staticmethod
    def from_minimum(barrier: Barrier, theta: Array) -> _Multipliers:
        """Return the multipliers at a minimum theta (parameters,) of the barrier problem."""
        rows, offset = barrier.planes
        return _Multipliers(barrier, tuple(group.weights[:, None, None] * group.inverses(theta)
                                           for group in barrier.groups), barrier.other / (rows @ theta + offset))

    @staticmethod
    def at(barrier: Barrier, theta: Array, normal: Array, slope: Array, free: Array | None) -> _Multipliers:
        """Return initial multipliers at theta, for equal barrier weights so large that theta is nearly optimal."""
        gradient, hessian = barrier.derivatives(theta)
        first = _Multipliers.from_minimum(barrier, theta)
        total = first.total
        step = _step(hessian + normal, gradient + slope, free)
        far = max(1.0, -float(step @ (gradient + slope)) / total)
        matrices = tuple(far * max(1.0, total / group.total) * s
                         for group, s in zip(barrier.groups, first.matrices, strict=True))
        planes = far * total / (barrier.other * max(len(first.planes), 1)) * first.planes
        return _Multipliers(barrier, matrices, planes)

    @property
    def total(self) -> float:
        """Sum of the barrier weights over all eigenvalues of matrices and all planes."""
        return sum(group.total for group in self.barrier.groups) + self.barrier.other * max(len(self.planes), 1)

    def goals(self, at: _Conditions, length: float) -> list[float]:
        """Return the barrier weights after this Newton step, relative to their final values: one per group of matrices,
        and one for the planes. The weights decrease more after a long step."""
        keep = 0.1 if length > 0.7 else 0.4 if length > 0.2 else 1.0
        now = [float(np.sum(p * s)) / group.total
               for group, p, s in zip(self.barrier.groups, at.matrices, self.matrices, strict=True)]
        now.append(float(at.slacks @ self.planes) / (self.barrier.other * max(len(at.slacks), 1)))
        return [max(1.0, keep * x) for x in now]

    def system(self, at: _Conditions, goals: list[float]) -> tuple[Array, Array]:
        """Return gradient and Hessian of the barrier by the parameters, with weights multiplied by `goals`."""
        rows, _ = self.barrier.planes
        gradient = -goals[-1] * self.barrier.other * (rows.T @ (1.0 / at.slacks))
        hessian = rows.T @ (rows * (self.planes / at.slacks)[:, None])
        for group, inverse, own, goal in zip(self.barrier.groups, at.inverses, self.matrices, goals[:-1], strict=True):
            slopes = group.traces(group.inverse_nominal - goal * inverse)
            np.add.at(gradient, group.places, group.weights[:, None] * slopes)
            hessian[group.places[:, :, None], group.places[:, None, :]] += group.products(inverse, own)
        return gradient, hessian

    def changes(self, at: _Conditions, step: Array, goals: list[float]) -> _Multipliers:
        """Return the change of the multipliers by a step (parameters,) of theta."""
        rows, _ = self.barrier.planes
        matrices = []
        for group, inverse, own, goal in zip(self.barrier.groups, at.inverses, self.matrices, goals[:-1], strict=True):
            half = inverse @ group.along(step) @ own
            aim = goal * group.weights[:, None, None] * inverse
            matrices.append(aim - own - 0.5 * (half + np.swapaxes(half, 1, 2)))
        planes = goals[-1] * self.barrier.other / at.slacks - self.planes - self.planes * (rows @ step) / at.slacks
        return _Multipliers(self.barrier, tuple(matrices), planes)

    def length(self, at: _Conditions, step: Array, changes: _Multipliers) -> float:
        """Return the largest fraction of a Newton step that keeps conditions and multipliers inside their cones."""
        rows, _ = self.barrier.planes
        worst = max(float((-(rows @ step) / at.slacks).max(initial=0.0)),
                    float((-changes.planes / self.planes).max(initial=0.0)))
        for group, inside, own, change in zip(self.barrier.groups, at.matrices, self.matrices, changes.matrices,
                                              strict=True):
            matrices, moves = np.concatenate([inside, own]), np.concatenate([group.along(step), change])
            worst = max(worst, -float(np.linalg.eigvals(np.linalg.solve(matrices, moves)).real.min()))
        return min(1.0, MAX_SHARE_TO_BORDER / worst) if worst > 0 else 1.0

    def moved(self, changes: _Multipliers, length: float) -> _Multipliers:
        matrices = tuple(s + length * ds for s, ds in zip(self.matrices, changes.matrices, strict=True))
        return _Multipliers(self.barrier, matrices, self.planes + length * changes.planes)


def free_moves(consistency: Consistency) -> Array | None:
    """Return directions (parameters, k) that do not change equality constraints; None without equality constraints."""
    equalities = [block for block in consistency.blocks if block.cone == "zero"]
    if not equalities:
        return None
    return null_space(np.vstack([block.wide(len(consistency.parameters)) for block in equalities]))


def _step(hessian: Array, gradient: Array, free: Array | None) -> Array:
    """Return the Newton step -H^-1 g within the free directions; the Hessian H is scaled to unit diagonal."""
    if free is not None:
        return free @ _step(free.T @ hessian @ free, free.T @ gradient, None)
    diagonal = np.diag(hessian)
    size = 1.0 / np.sqrt(np.maximum(diagonal, max(1e-100 * diagonal.max(), 1e-200)))  # rounding may make it negative
    scaled = hessian * size * size[:, None]
    lift = 0.0
    for _ in range(12):
        factor, info = dpotrf(scaled + lift * np.eye(len(scaled)) if lift else scaled)
        if info == 0:
            return -size * dpotrs(factor, size * gradient)[0]
        lift = max(10.0 * lift, 1e-14)
    raise NotPossibleError("the parameters have no analytic centre, because data and limits leave some combinations "
                           "of parameters unbounded; give limits on the masses and centres of mass of the links")

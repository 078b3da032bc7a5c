"""Second stage: closed-loop output error. Simulated positions are fitted to the measured ones, inside bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.actuators.problem import ChainProblem
from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.regression.correlation import autocovariance, noise_matrix

_DIFFERENCE_SHARE = 2e-3  # of a parameter's scale: step of central differences, wide against single rows that stick
_CHECK_SHARE = 1e-3  # of the scale: the second step, by which the differences are checked
_MAX_ITERATIONS = 40
_TOLERANCE = 1e-5  # relative decrease of the cost below which the iteration ends
_MAX_DAMPINGS = 10  # attempts of a shorter step before the iteration ends
_FIRST_DAMPING = 1e-3
_MAX_DISAGREEMENT = 0.3  # relative, between central differences of two steps along one direction
_NULL_SHARE = 1e-7  # of the largest singular value: below it a direction is not determined at all


@dataclass(frozen=True, eq=False)
class Refinement:
    """Solution of the output-error problem of one chain.

    Attributes:
        x: values of the unknowns (unknowns,).
        covariance: of those that are free (unknowns, unknowns), zero elsewhere.
        at_bound: which unknowns ended at a bound (unknowns,).
        jacobian: of the simulated positions (rows, dof, unknowns).
        residual: measured minus simulated positions (rows, dof), rad.
        scale: sizes of the unknowns (unknowns,), by which the Jacobian is scaled.
        singular, directions: singular values of the scaled and weighted Jacobian, and their directions
            (unknowns, unknowns), of the free unknowns.
        iterations: number of iterations.
        gradient_error: relative difference between central differences of two steps, the largest over the unknowns.
    """

    x: Array
    covariance: Array
    at_bound: Bools
    jacobian: Array
    residual: Array
    scale: Array
    singular: Array
    directions: Array
    iterations: int
    gradient_error: float

    @property
    def std(self) -> Array:
        """Standard errors (unknowns,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def mean_error(self) -> float:
        """Mean absolute error of the simulated positions, rad."""
        return float(np.mean(np.abs(self.residual)))


def scales(problem: ChainProblem, x: Array) -> Array:
    """A size of each unknown (unknowns,): its own, or one that matters."""
    typical = np.array([one.item.typical for one in problem.unknowns])
    return np.maximum(np.abs(x), np.maximum(typical, 1e-9))


def jacobian(problem: ChainProblem, x: Array, scale: Array, share: float = _DIFFERENCE_SHARE,
             which: Array | None = None) -> Array:
    """Sensitivities of the simulated positions (rows, dof, unknowns) by central differences, one-sided at bounds."""
    lower, upper = problem.lower, problem.upper
    columns = []
    for k in range(len(x)) if which is None else which:
        low, high = x.copy(), x.copy()
        low[k], high[k] = max(x[k] - share * scale[k], lower[k]), min(x[k] + share * scale[k], upper[k])
        first, second = problem.residuals(low), problem.residuals(high)
        if first is None or second is None:
            raise NotPossibleError(f"the simulation diverges near {problem.label(int(k))} = {x[k]:g}",
                                   "check gains, masses and units", "simulation-diverges")
        columns.append((first - second) / (high[k] - low[k]))
    return np.stack(columns, axis=2)


def refine(problem: ChainProblem, start: Array, *, max_iterations: int = _MAX_ITERATIONS,
           finish: bool = True) -> Refinement:
    """Levenberg-Marquardt from `start` (unknowns,) inside the bounds, joints weighted by their own residuals.

    The states at the starts of the simulations are fitted beside the parameters. Unknowns at a bound whose gradient
    points outward are fixed for a step. finish: whether standard errors are computed; without it covariance and
    Jacobian are empty. Raises NotPossibleError where the simulation diverges at the start.
    """
    count, problem = len(start), problem.with_starts()
    start = np.concatenate([start, np.zeros(len(problem.unknowns) - count)])
    x, damping = np.clip(start, problem.lower, problem.upper), _FIRST_DAMPING
    residual = problem.residuals(x)
    if residual is None:
        raise NotPossibleError("the simulation diverges with the values of the first stage",
                               "check gains, masses and units", "simulation-diverges")
    iterations = 0
    while iterations < max_iterations:
        iterations += 1
        scale, weights = scales(problem, x), _weights(residual)
        slopes = jacobian(problem, x, scale)
        a = (slopes * weights[None, :, None] * scale).reshape(-1, len(x))
        b = (residual * weights).ravel()
        gradient = a.T @ b
        free = ~(((x <= problem.lower) & (gradient < 0)) | ((x >= problem.upper) & (gradient > 0)))
        cost, before = float(b @ b), x
        for _ in range(_MAX_DAMPINGS):
            trial = _step(problem, x, a, b, free, damping, scale)
            moved = problem.residuals(trial)
            new = np.inf if moved is None else float(np.sum((moved * weights) ** 2))
            if moved is not None and new < cost:
                x, residual, damping = trial, moved, max(damping / 10.0, 1e-9)
                break
            damping *= 10.0
        if x is before or cost - new < _TOLERANCE * cost:
            break
    return _finished(problem, x, residual, iterations, count, finish)


def _step(problem: ChainProblem, x: Array, a: Array, b: Array, free: Bools, damping: float, scale: Array) -> Array:
    """x after a damped step of the free unknowns, cut to the bounds; those that the cut stops are fixed meanwhile."""
    free = free.copy()
    trial = x.copy()
    for _ in range(3):
        if not free.any():
            break
        own = a[:, free]
        normal = own.T @ own
        normal[np.diag_indices(len(normal))] += damping * np.maximum(np.diag(normal), 1e-12 * np.trace(normal))
        left = b - a[:, ~free] @ ((trial[~free] - x[~free]) / scale[~free])
        step = np.linalg.solve(normal, own.T @ left)
        trial[free] = x[free] + step * scale[free]
        cut = free & ((trial < problem.lower) | (trial > problem.upper))
        trial = np.clip(trial, problem.lower, problem.upper)
        if not cut.any():
            break
        free &= ~cut
    return trial


def _weights(residual: Array) -> Array:
    """1 / rms of each joint (dof,)."""
    rms = np.sqrt(np.mean(residual ** 2, axis=0))
    return 1.0 / np.maximum(rms, 1e-6 * max(float(rms.max()), 1e-9))


def covariance_of(slopes: Array, residual: Array, log_rows: list[int]) -> Array:
    """Covariance (k, k) of least squares on sensitivities (rows, dof, k) with residuals correlated in time."""
    weights, k = _weights(residual), slopes.shape[2]
    gap = max(log_rows) // 5  # rows without weight between logs keep their products apart
    starts = np.cumsum([0, *(count + gap for count in log_rows[:-1])])
    at = np.concatenate([start + np.arange(count) for start, count in zip(starts, log_rows, strict=True)])
    rows = int(at[-1]) + 1
    keep = np.isin(np.arange(rows), at)
    normal, middle = np.zeros((k, k)), np.zeros((k, k))
    basis = np.linalg.qr((slopes * weights[None, :, None]).reshape(-1, k))[0].reshape(*slopes.shape)
    for j in range(residual.shape[1]):
        x, own = np.zeros((k, rows)), np.zeros(rows)
        x[:, at], own[at] = slopes[:, j, :].T, residual[:, j]
        normal += weights[j] ** 2 * (x @ x.T)
        absorbed = np.zeros((k, 2 * rows))
        absorbed[:, at] = basis[:, j, :].T
        absorbed = np.fft.irfft(np.sum(np.abs(np.fft.rfft(absorbed)) ** 2, axis=0))[:rows]  # what the fit took
        middle += weights[j] ** 4 * noise_matrix(x, keep, autocovariance(own, keep, absorbed))
    size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(size, size), hermitian=True, rcond=_NULL_SHARE ** 2)
    inverse /= np.outer(size, size)
    return np.asarray(inverse @ middle @ inverse)


def _finished(problem: ChainProblem, x: Array, residual: Array, iterations: int, count: int,
              finish: bool) -> Refinement:
    """The solution of the first `count` unknowns; the others, states at starts, are projected out."""
    scale = scales(problem, x)
    if not finish:
        return Refinement(x[:count], np.zeros((count, count)), np.zeros(count, dtype=bool), np.zeros((0, 0, count)),
                          residual, scale[:count], np.zeros(0), np.zeros((count, 0)), iterations, 0.0)
    slopes = jacobian(problem, x, scale)
    room = 1e-6 * scale
    at_bound = ((x <= problem.lower + room) | (x >= problem.upper - room))[:count]
    slopes = _projected(slopes, residual, count)
    free = np.flatnonzero(~at_bound)
    covariance, directions, singular = np.zeros((count, count)), np.zeros((count, 0)), np.zeros(0)
    error = 0.0
    if len(free):
        rows = [len(log.signals.t) for log in problem.logs]
        covariance[np.ix_(free, free)] = covariance_of(slopes[:, :, free], residual, rows)
        a = (slopes[:, :, free] * _weights(residual)[None, :, None] * scale[free]).reshape(-1, len(free))
        _, singular, vt = np.linalg.svd(a, full_matrices=False)
        directions = np.zeros((count, len(singular)))
        directions[free] = vt.T
        other = _projected(jacobian(problem, x, scale, _CHECK_SHARE), residual, count)[:, :, free]
        change = (other * _weights(residual)[None, :, None] * scale[free]).reshape(-1, len(free)) - a
        error = float(np.max(np.linalg.norm(change, axis=0) / np.maximum(np.linalg.norm(a, axis=0), 1e-300)))
        # A direction along which the differences of two steps disagree is noise of the simulation, not determined.
        singular = np.where(np.linalg.norm(change @ vt.T, axis=0) > _MAX_DISAGREEMENT * singular, 0.0, singular)
    return Refinement(x[:count], covariance, at_bound, slopes, residual, scale[:count], singular, directions,
                      iterations, error)


def _projected(slopes: Array, residual: Array, count: int) -> Array:
    """Sensitivities (rows, dof, count) of the first unknowns without what the others can explain."""
    if slopes.shape[2] == count:
        return slopes
    weights = _weights(residual)[None, :, None]
    flat = (slopes * weights).reshape(-1, slopes.shape[2])
    q, _ = np.linalg.qr(flat[:, count:])
    own = flat[:, :count] - q @ (q.T @ flat[:, :count])
    return own.reshape(*slopes.shape[:2], count) / weights

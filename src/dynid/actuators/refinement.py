"""Second stage of actuator identification: fit of closed-loop simulations to measured positions (output error)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.actuators.encoder import rounding_errors
from dynid.actuators.problem import ChainProblem
from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.progress import ProgressCallback, prefixed, silent
from dynid.regression.autocorrelation import autocovariance, noise_matrix

# Step of finite differences relative to a parameter's scale, while no standard error is known.
_FIRST_DIFFERENCE_SHARE = 2e-3
# Bounds of the later steps of one standard error, relative to the parameter's scale. Below the first, sticking in
# single rows causes errors; beyond the second, the simulation is no longer linear in the parameter.
_DIFFERENCE_SHARES = (5e-4, 0.05)
_CHECK_RATIO = 0.5  # step of the differences that check the central differences, relative to their step
_ESCAPE_SIGMAS = 2.0  # standard errors along the axes of the confidence ellipsoid at which a lower cost is searched
_MAX_ESCAPES = 3  # restarts of the iteration from a point with a lower cost
_MAX_ITERATIONS = 40  # largest number of iterations of a search
_COST_TOLERANCE = 1e-5  # relative decrease of the cost below which the iteration ends
_FIRST_TOLERANCE = 1e-3  # relative decrease of the cost below which the first search, with one-sided differences, ends
_MAX_DAMPINGS = 10  # attempts with a shorter step before the iteration ends
_FIRST_DAMPING = 1e-3  # initial damping of the Levenberg-Marquardt method
_CHORD_STEPS = 2  # further steps with the same sensitivities, whose computation takes most of the time
_MAX_DISAGREEMENT = 0.3  # relative, between central differences with two step sizes along one direction
_DIVERGENCE_HINT = ("check the unit of the positions (--set log.unit=deg), the gains (--gain kp=...) and the masses of "
                    "the robot file")
_NULL_SHARE = 1e-7  # singular value relative to the largest, below which a direction is undetermined


@dataclass(frozen=True, eq=False)
class Refinement:
    """Solution of the output-error problem of one chain.

    Attributes:
        x: values of the unknowns (unknowns,).
        covariance: covariance of the unknowns that are not at a bound (unknowns, unknowns), zero elsewhere.
        at_bound: mask of the unknowns whose estimate is at a bound (unknowns,).
        jacobian: derivatives of the simulated positions by the unknowns (rows, dof, unknowns).
        residual: measured minus simulated positions (rows, dof), rad.
        scale: scales of the unknowns (unknowns,), by which the Jacobian is multiplied.
        singular, directions: singular values of the scaled and weighted Jacobian, and its right singular vectors
            (unknowns, unknowns).
        iterations: number of iterations.
        gradient_error: relative difference between derivatives with two step sizes, the largest over the unknowns.
        share: steps of the finite differences relative to the scales, for unknowns and initial states.
        starts: estimated initial states of the simulations, in the order of the unknowns.
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
    share: Array
    starts: Array

    @property
    def solution(self) -> Array:
        """Values of all unknowns including initial states, which can start another fit of the same logs."""
        return np.concatenate([self.x, self.starts])

    @property
    def std(self) -> Array:
        """Standard errors of the unknowns (unknowns,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def changes_by(self, error: Array) -> Array:
        """Return the change of each unknown (unknowns,) by an error of the measured positions (rows, dof), rad."""
        weights = joint_weights(self.residual)
        flat = (self.jacobian * weights[None, :, None]).reshape(-1, len(self.x))
        size = np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
        return np.asarray(np.linalg.pinv(flat / size, rcond=_NULL_SHARE) @ (error * weights).ravel() / size)


def scales(problem: ChainProblem, x: Array) -> Array:
    """Return the scale of each unknown (unknowns,): its absolute value, or its typical value if that is larger."""
    typical = np.array([one.item.typical for one in problem.unknowns])
    return np.maximum(np.abs(x), np.maximum(typical, 1e-9))


def jacobian(problem: ChainProblem, x: Array, scale: Array, share: float | Array = _FIRST_DIFFERENCE_SHARE,
             base: Array | None = None) -> Array:
    """Return the sensitivities of the simulated positions (rows, dof, unknowns) by finite differences.

    Args:
        problem: the logs and unknowns.
        x: values of the unknowns (unknowns,).
        scale: scales of the unknowns (unknowns,).
        share: step of the differences, relative to the scales.
        base: residuals (rows, dof) at x; if given, differences are one-sided, which takes half the time.
    """
    if base is not None and problem.coarse is not problem:
        base = problem.coarse.residuals(x)
    problem, lower, upper = problem.coarse, problem.lower, problem.upper
    steps = share * scale
    columns: dict[int, Array] = {}
    for group in _independent_groups(problem, len(x)):
        low, high = x.copy(), x.copy()
        high[group] = np.minimum(x[group] + steps[group], upper[group])
        if base is None or np.any(high[group] - x[group] < 0.5 * steps[group]):
            low[group] = np.maximum(x[group] - steps[group], lower[group])
        first = base if base is not None and np.array_equal(low, x) else problem.residuals(low)
        second = base if base is not None and np.array_equal(high, x) else problem.residuals(high)
        if first is None or second is None:
            raise NotPossibleError(f"the simulation diverges near {problem.label(group[0])} = {x[group[0]]:g}",
                                   _DIVERGENCE_HINT, "simulation-diverges")
        for k in group:
            columns[k] = np.zeros_like(first)
            rows = problem.affected_rows(k)
            columns[k][rows] = (first[rows] - second[rows]) / (high[k] - low[k])
    return np.stack([columns[k] for k in range(len(x))], axis=2)


def _independent_groups(problem: ChainProblem, count: int) -> list[list[int]]:
    """Return groups of the unknowns that affect different rows, so that derivatives need one simulation per group."""
    groups: dict[tuple[str, int, int], list[int]] = {}
    for k in range(count):
        one = problem.unknowns[k]
        groups.setdefault((one.name, one.joint, -1 if one.is_nuisance else k), []).append(k)
    return list(groups.values())


def refine(problem: ChainProblem, start: Array, *, max_iterations: int = _MAX_ITERATIONS, finish: bool = True,
           share: Array | None = None, progress: ProgressCallback = silent) -> Refinement:
    """Return the fit of the simulated to the measured positions by the Levenberg-Marquardt method within bounds.

    Joints are weighted by their residuals. Initial states of the simulations are fitted together with the parameters.
    Unknowns at a bound whose gradient points outward are fixed for a step. Dry friction makes the cost rough on a small
    scale. The sensitivities at the solution are therefore differences over one standard error, and points two standard
    errors away are tested for a lower cost.

    Args:
        problem: the logs and unknowns.
        start: initial values (unknowns,), with or without initial states, see `Refinement.solution`.
        max_iterations: largest number of iterations.
        finish: whether to end with central differences; otherwise covariance and Jacobian use one-sided differences.
        share: steps of the finite differences, from the earlier fit whose solution is `start`.
        progress: called with the number of each iteration.

    Raises:
        NotPossibleError: the simulation diverges at the start.
    """
    count, problem = len(problem.unknowns), problem.with_starts()
    start = np.concatenate([start, np.zeros(len(problem.unknowns) - len(start))])
    x = np.clip(start, problem.lower, problem.upper)
    residual = problem.residuals(x)
    if residual is None:
        raise NotPossibleError("the simulation of the actuators diverges with the start values from linear "
                               "regression", _DIVERGENCE_HINT, "simulation-diverges")
    iterations = 0
    if share is None:
        found = _searched(problem, x, residual, max_iterations, None, progress)
        iterations, (share, covariance) = found.iterations, _difference_steps(problem, found)
        x, residual = found.x, found.residual
        if not finish:
            covariance = covariance[:count, :count] * np.outer(found.scale[:count], found.scale[:count])
            at_bound = _at_bound(problem, x, found.scale)[:count]
            covariance[at_bound], covariance[:, at_bound] = 0.0, 0.0
            return Refinement(x[:count], covariance, at_bound, _projected(found.slopes, residual, count), residual,
                              scales(problem, x)[:count], np.zeros(0), np.zeros((count, 0)), iterations, 0.0, share,
                              x[count:])
    for escape in range(_MAX_ESCAPES):
        found = _searched(problem, x, residual, max_iterations, share,
                          prefixed(progress, f"search {escape + 1} with central differences, "))
        iterations += found.iterations
        share, covariance = _difference_steps(problem, found)
        better = _escape(problem, found, covariance)
        if better is None:
            break
        x, residual = better
    return _finished(problem, found, iterations, count, share)


def _difference_steps(problem: ChainProblem, found: _Minimum) -> tuple[Array, Array]:
    """Return the steps of the finite differences (unknowns,), one standard error within bounds, and the covariance of
    the unknowns (unknowns, unknowns), both in units of the scales of the unknowns."""
    covariance = (autocorrelated_covariance(found.slopes, found.residual, problem.log_rows)
                  / np.outer(found.scale, found.scale))
    return np.clip(np.sqrt(np.maximum(np.diag(covariance), 0.0)), *_DIFFERENCE_SHARES), covariance


@dataclass(frozen=True, eq=False)
class _Minimum:
    """A local minimum of the squared position error.

    Attributes:
        x: values of the unknowns (unknowns,).
        residual: measured minus simulated positions (rows, dof), rad.
        iterations: number of iterations.
        slopes, scale: sensitivities (rows, dof, unknowns) and scales (unknowns,) before the last, insignificant step.
    """

    x: Array
    residual: Array
    iterations: int
    slopes: Array
    scale: Array


def _searched(problem: ChainProblem, x: Array, residual: Array, max_iterations: int, share: Array | None,
              progress: ProgressCallback) -> _Minimum:
    """Return a local minimum of the squared position error, by a search from x (unknowns,). residual: residuals (rows,
    dof) at x. share: steps of central differences relative to the scales of the unknowns; None for one-sided
    differences."""
    damping, iterations, tolerance = _FIRST_DAMPING, 0, _FIRST_TOLERANCE if share is None else _COST_TOLERANCE
    while True:
        iterations += 1
        progress(f"iteration {iterations}")
        scale, weights = scales(problem, x), joint_weights(residual)
        slopes = jacobian(problem, x, scale, base=residual) if share is None else jacobian(problem, x, scale, share)
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
        for _ in range(_CHORD_STEPS if x is not before else 0):  # steps with the same sensitivities
            trial = _step(problem, x, a, (residual * weights).ravel(), free, damping, scale)
            moved = problem.residuals(trial)
            again = np.inf if moved is None else float(np.sum((moved * weights) ** 2))
            if moved is None or again > new * (1.0 - tolerance):
                break
            x, residual, new = trial, moved, again
        if x is before or cost - new < tolerance * cost or iterations >= max_iterations:
            return _Minimum(x, residual, iterations, slopes, scale)


def _escape(problem: ChainProblem, found: _Minimum, covariance: Array) -> tuple[Array, Array] | None:
    """Return a point with a significantly lower cost near a local minimum, and its residuals; None if there is none.
    Points along the longer half of the principal axes of the covariance (unknowns, unknowns), in units of the scales of
    the unknowns, are tested. Along the shorter axes the cost is too steep for a second minimum."""
    weights, coarse = joint_weights(found.residual), problem.coarse
    base = found.residual if coarse is problem else coarse.residuals(found.x)
    if base is None:
        return None
    best, better = (1.0 - 10.0 * _COST_TOLERANCE) * float(np.sum((base * weights) ** 2)), None
    values, axes = np.linalg.eigh(covariance)
    half = len(values) // 2
    for value, axis in zip(values[half:], axes.T[half:], strict=True):
        for sign in (-1.0, 1.0):
            stride = sign * min(_ESCAPE_SIGMAS * np.sqrt(max(value, 0.0)), _DIFFERENCE_SHARES[1] * _ESCAPE_SIGMAS)
            trial = np.clip(found.x + stride * axis * found.scale, problem.lower, problem.upper)
            moved = coarse.residuals(trial)
            if moved is not None and (new := float(np.sum((moved * weights) ** 2))) < best:
                best, better = new, (trial, moved)
    if better is None or coarse is problem:
        return better
    moved, cost = problem.residuals(better[0]), float(np.sum((found.residual * weights) ** 2))
    is_lower = moved is not None and float(np.sum((moved * weights) ** 2)) < (1.0 - 10.0 * _COST_TOLERANCE) * cost
    return (better[0], moved) if moved is not None and is_lower else None


def _step(problem: ChainProblem, x: Array, a: Array, b: Array, free: Bools, damping: float, scale: Array) -> Array:
    """Return x after a damped step of the free unknowns within the bounds; unknowns that reach a bound are fixed."""
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


def joint_weights(residual: Array) -> Array:
    """Return the weight of each joint (dof,): 1 / RMS position residual, 1/rad."""
    rms = np.sqrt(np.mean(residual ** 2, axis=0))
    return 1.0 / np.maximum(rms, 1e-6 * max(float(rms.max()), 1e-9))


def autocorrelated_covariance(slopes: Array, residual: Array, log_rows: list[int]) -> Array:
    """Return the covariance (k, k) of least squares on sensitivities (rows, dof, k) with autocorrelated residuals."""
    weights, k = joint_weights(residual), slopes.shape[2]
    gap = max(log_rows) // 5  # rows of zeros between the logs, so that products of different logs vanish
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
        absorbed = np.fft.irfft(np.sum(np.abs(np.fft.rfft(absorbed)) ** 2, axis=0))[:rows]  # by the fit
        middle += weights[j] ** 4 * noise_matrix(x, keep, autocovariance(own, keep, absorbed))
    size = np.sqrt(np.maximum(np.diag(normal), 1e-60 * max(float(np.diag(normal).max(initial=0.0)), 1e-240)))
    inverse = np.linalg.pinv(normal / np.outer(size, size), hermitian=True, rcond=_NULL_SHARE ** 2)
    inverse /= np.outer(size, size)
    return np.asarray(inverse @ middle @ inverse)


def _finished(problem: ChainProblem, found: _Minimum, iterations: int, count: int, share: Array) -> Refinement:
    """Return the solution for the first `count` unknowns; the initial states are projected out.

    A parameter at a bound has no interval, but its uncertainty widens the intervals of the other parameters.
    Sensitivities use the short integration step: with a longer step, standard errors would be wrong by up to a factor
    of three if friction depends on speed or load.
    """
    x, residual, scale = found.x, found.residual, found.scale
    if problem.coarse is not problem:
        problem = replace(problem, slope_step=problem.step)
        found = replace(found, slopes=jacobian(problem, x, scale, share))
    slopes = _projected(found.slopes, residual, count)
    at_bound = _at_bound(problem, x, scale)[:count]
    weights = joint_weights(residual)[None, :, None]
    covariance = autocorrelated_covariance(slopes, residual, problem.log_rows)
    rounding, share_of_rounding = rounding_errors(problem, x, slopes, residual, weights[0, :, 0])
    variance = np.maximum(np.diag(covariance), 1e-300)
    factor = np.sqrt(1.0 - share_of_rounding + rounding ** 2 / variance)
    covariance *= np.outer(factor, factor)
    if not np.isfinite(covariance).all():
        raise NotPossibleError("the simulated positions do not change smoothly with the actuator parameters, so they "
                               "cannot be fitted to the log", _DIVERGENCE_HINT, "simulation-irregular")
    free = np.flatnonzero(~at_bound)
    directions, singular, error = np.zeros((count, 0)), np.zeros(0), 0.0
    if len(free):
        a = (slopes[:, :, free] * weights * scale[free]).reshape(-1, len(free))
        _, singular, vt = np.linalg.svd(a, full_matrices=False)
        directions = np.zeros((count, len(singular)))
        directions[free] = vt.T
        other = jacobian(problem, x, scale, _CHECK_RATIO * share, base=residual)
        other = _projected(other, residual, count)[:, :, free]
        change = (other * weights * scale[free]).reshape(-1, len(free)) - a
        error = float(np.max(np.linalg.norm(change, axis=0) / np.maximum(np.linalg.norm(a, axis=0), 1e-300)))
        # A direction along which differences of two step sizes disagree shows simulation noise and is not determined.
        is_noise = np.linalg.norm(change @ vt.T, axis=0) > _MAX_DISAGREEMENT * singular
        singular = np.where(is_noise, 0.0, singular)
    covariance[at_bound], covariance[:, at_bound] = 0.0, 0.0
    return Refinement(x[:count], covariance, at_bound, slopes, residual, scale[:count], singular, directions,
                      iterations, error, share, x[count:])


def _at_bound(problem: ChainProblem, x: Array, scale: Array) -> Bools:
    """Return the mask (unknowns,) of the unknowns at a bound."""
    room = 1e-6 * scale
    return np.asarray((x <= problem.lower + room) | (x >= problem.upper - room))


def _projected(slopes: Array, residual: Array, count: int) -> Array:
    """Return the sensitivities (rows, dof, count) of the first `count` unknowns, orthogonal to the sensitivities of all
    other unknowns."""
    if slopes.shape[2] == count:
        return slopes
    weights = joint_weights(residual)[None, :, None]
    flat = (slopes * weights).reshape(-1, slopes.shape[2])
    q, _ = np.linalg.qr(flat[:, count:])
    own = flat[:, :count] - q @ (q.T @ flat[:, :count])
    return own.reshape(*slopes.shape[:2], count) / weights

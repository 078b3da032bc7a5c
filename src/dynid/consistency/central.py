"""Choose the parameters that a fit leaves undetermined: the most central ones, or those nearest to a nominal model.

A logarithmic barrier with small weights is added to the fit. The fit is then optimal to within the weight times the
number of eigenvalues, and the barrier chooses the undetermined parameters.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.consistency.barrier import Barrier
from dynid.consistency.consistency import LENGTH, Consistency
from dynid.consistency.interior import interior_point
from dynid.consistency.newton import minimise

_MAX_ROUNDS = 40  # of computing mean mass and inertia alternately with the parameters


def fill_by_barrier(consistency: Consistency, matrix: Array, rho: Array, best: Array, *, tolerance: float,
                    nominal: Array | None = None) -> tuple[Array, Barrier | None]:
    """Choose parameters that a constrained fit leaves undetermined. Return all parameters (parameters,), with a misfit
    |M theta - rho|^2 at most `tolerance` above the smallest one, and the barrier that they minimise (None if they do
    not).

    Undetermined parameters are nearest to a nominal model, if one is given. Otherwise the most central parameters are
    chosen: links as similar and compact as possible, with the largest sum_i log det P_i at a given mean mass and
    inertia.

    Args:
        consistency: the consistent set.
        matrix, rho: M (k, parameters) and rho (k,) of the equations.
        best: optimal parameters (parameters,).
        tolerance: allowed increase of |M theta - rho|^2.
        nominal: pseudo-inertia of each nominal body (bodies, n, n).
    """
    bodies = len(consistency.bodies)
    if not bodies:
        return best, None
    n = consistency.basis.shape[1]
    theta = 0.5 * (best + interior_point(consistency))
    weight = 0.5 * tolerance / barrier_size(consistency)
    allowed = float(np.sum((matrix @ best - rho) ** 2)) + tolerance
    means, near = _means(consistency, theta), None
    for _ in range(_MAX_ROUNDS):
        inverse_nominal = (_isotropic(means, n, bodies) if nominal is None
                           else np.asarray(np.linalg.inv(nominal), dtype=float))
        barrier = Barrier(consistency, inverse_nominal, np.full(bodies, weight), weight)
        theta = near = minimise(matrix, rho, barrier, theta, near)
        before, means = means, _means(consistency, theta)
        # The barrier increases the misfit by a bounded amount; regularisation toward a distant nominal model adds more.
        if float(np.sum((matrix @ theta - rho) ** 2)) > allowed:
            weight /= 3.0
        elif nominal is not None or max(abs(np.log(np.divide(means, before)))) < 1e-3:
            break
    moved = _within_tolerance(matrix, rho, best, theta, tolerance)
    return moved, barrier if moved is theta else None


def barrier_size(consistency: Consistency) -> int:
    """Return the number of logarithms in the barrier of a consistent set. A fit with the barrier is optimal to within
    this number times the barrier weight."""
    return len(consistency.bodies) * consistency.basis.shape[1] + sum(
        len(block.offset) for block in consistency.blocks if block.cone in ("nonnegative", "soc"))


def _within_tolerance(matrix: Array, rho: Array, best: Array, theta: Array, tolerance: float) -> Array:
    """Return the point nearest to theta on the line from `best` to theta whose misfit is within the tolerance."""
    before, moved = matrix @ best - rho, matrix @ (theta - best)
    # |before + x moved|^2 <= |before|^2 + tolerance
    square, slope = float(moved @ moved), float(before @ moved)
    if square <= 0.0 or square + 2.0 * slope <= tolerance:
        return theta
    share = (-slope + np.sqrt(slope ** 2 + square * tolerance)) / square
    return best + share * (theta - best)


def _isotropic(means: tuple[float, float], n: int, bodies: int) -> Array:
    """Return inverse matrices (bodies, n, n) of identical bodies of mean mass and moments, centred in their frames."""
    diagonal = np.append(np.full(3, 1.0 / means[0]), np.full(n - 3, 1.0 / means[1]))
    return np.broadcast_to(np.diag(diagonal), (bodies, n, n))


def _means(consistency: Consistency, theta: Array) -> tuple[float, float]:
    """Return the means over all bodies of the second moments (kg m^2) and of the masses (kg) at theta (parameters,)."""
    p = consistency.matrices(theta)
    diagonal = np.diagonal(p, axis1=1, axis2=2)
    return max(float(diagonal[:, :3].mean()), 1e-12 * LENGTH ** 2), max(float(diagonal[:, 3:].mean()), 1e-12)

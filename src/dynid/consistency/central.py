"""Choice of full parameters for a fit that determines only some: the most central ones, or those nearest to a nominal
model.

With small barrier weights the fit is optimal to within the weight times the number of eigenvalues, and the barrier
chooses the undetermined parameters.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.consistency.barrier import Barrier
from dynid.consistency.consistency import LENGTH, Consistency
from dynid.consistency.interior import interior_point
from dynid.consistency.newton import minimise

_MAX_ROUNDS = 40  # of finding the mean mass and inertia in turn with the parameters


def fill(consistency: Consistency, matrix: Array, rho: Array, best: Array, *, tolerance: float,
         nominal: Array | None = None) -> Array:
    """Return full parameters (parameters,) that fit within `tolerance` (of |M theta - rho|^2) of the best.

    Undetermined parameters are nearest to a nominal model, if given: nominal (bodies, n, n), the matrix of each body.
    Otherwise they are the most central ones: the robot with the most similar and compact links, with the largest
    sum_i log det P_i for given mean mass and mean inertia. best (parameters,): an optimal point.
    """
    return fill_by_barrier(consistency, matrix, rho, best, tolerance=tolerance, nominal=nominal)[0]


def fill_by_barrier(consistency: Consistency, matrix: Array, rho: Array, best: Array, *, tolerance: float,
                    nominal: Array | None = None) -> tuple[Array, Barrier | None]:
    """Return the parameters of `fill` and the barrier whose minimum they are; None if they are no such minimum."""
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
        # The barrier alone costs no more than its weight allows; the distance from a nominal model far away may.
        if float(np.sum((matrix @ theta - rho) ** 2)) > allowed:
            weight /= 3.0
        elif nominal is not None or max(abs(np.log(np.divide(means, before)))) < 1e-3:
            break
    moved = _no_worse(matrix, rho, best, theta, tolerance)
    return moved, barrier if moved is theta else None


def barrier_size(consistency: Consistency) -> int:
    """Return the number of logarithms in the barrier; the fit is optimal to within its weight times this number."""
    return len(consistency.bodies) * consistency.basis.shape[1] + sum(
        len(block.offset) for block in consistency.blocks if block.cone in ("nonnegative", "soc"))


def _no_worse(matrix: Array, rho: Array, best: Array, theta: Array, tolerance: float) -> Array:
    """Return the farthest point on the line from best to theta that fits within the tolerance; the line is in the
    set."""
    before, moved = matrix @ best - rho, matrix @ (theta - best)
    # |before + x moved|^2 <= |before|^2 + tolerance
    square, slope = float(moved @ moved), float(before @ moved)
    if square <= 0.0 or square + 2.0 * slope <= tolerance:
        return theta
    share = (-slope + np.sqrt(slope ** 2 + square * tolerance)) / square
    return best + share * (theta - best)


def _isotropic(means: tuple[float, float], n: int, bodies: int) -> Array:
    """Return the inverse matrix of a body with mean inertia and mean mass centred in its frame, for every body (bodies,
    n, n)."""
    diagonal = np.append(np.full(3, 1.0 / means[0]), np.full(n - 3, 1.0 / means[1]))
    return np.broadcast_to(np.diag(diagonal), (bodies, n, n))


def _means(consistency: Consistency, theta: Array) -> tuple[float, float]:
    """Return the means of the second moments (kg m^2) and of the masses (kg) over the bodies."""
    p = consistency.matrices(theta)
    diagonal = np.diagonal(p, axis1=1, axis2=2)
    return max(float(diagonal[:, :3].mean()), 1e-12 * LENGTH ** 2), max(float(diagonal[:, 3:].mean()), 1e-12)

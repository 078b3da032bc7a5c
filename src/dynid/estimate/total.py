"""Method tls: total least squares, with errors in the regressor as well as in the torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.covariance import LinearFit
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.lapack import solve_triangular
from dynid.regression import Stacked
from dynid.regression.factor import triangular

_TOO_CLOSE = 0.99  # smallest singular value relative to that of the regressor alone, above which tls diverges


@method("tls", "total least squares, with errors in the regressor")
def total_least_squares(problem: Problem, *, ratio: float = 0.1, exact: Sequence[str] | None = None) -> Estimate:
    """Return the total least-squares estimate (Golub, Van Loan 1980).

    The method makes the smallest change of regressor and torques with which the equations hold exactly. Joints are
    weighted as in `wls`. Each weighted column and the torques are scaled to length one. The errors of columns are
    assumed independent, but are not: prefer `wls` if velocities and accelerations are well filtered. Covariance: first
    order, (H - s^2 D^2)^-1 (sum w^4 X' C X) (H - s^2 D^2)^-1 with the smallest singular value s, the scaling D and the
    autocovariance C of the residuals.

    Args:
        problem: the identification problem.
        ratio: relative error of the columns over that of the torques. 1 is the classical method; towards 0 it becomes
            `wls`.
        exact: base parameters with exact columns (van Huffel, Vandewalle 1991: mixed least squares - total least
            squares), by default the offsets.
    """
    if not ratio > 0:
        raise ModelError(f"the ratio of method 'tls' must be above zero, got {ratio}", code="bad-ratio")
    weights = joint_weights(problem.regression)
    stacked = stack_enough(problem.regression, weights)
    plain = solve(problem.regression, stacked)
    known = _exact_columns(problem, exact) & plain.excited
    solution, smallest = _solve(stacked, plain, known, ratio)
    return LinearFit.from_solution(problem, solution, weights, ratio=ratio, smallest_singular_value=smallest,
                                   exact=[problem.base.names[c] for c in np.flatnonzero(known)]).estimate("tls")


def _exact_columns(problem: Problem, exact: Sequence[str] | None) -> Bools:
    """Return which base parameters (base,) have a column without error."""
    names = problem.base.names
    if exact is None:
        return problem.base.parameters.of_group("offset")[problem.base.independent]
    for name in exact:
        if name not in names:
            raise ModelError(f"there is no base parameter '{name}' to treat as exact; the base parameters are "
                             f"{', '.join(names)}", code="unknown-base-parameter")
    return np.array([name in exact for name in names])


def _solve(stacked: Stacked, plain: Solution, known: Bools, ratio: float) -> tuple[Solution, float]:
    """Return total least squares on the excited columns, and the smallest singular value relative to the torque."""
    b = len(stacked.r)
    order = np.concatenate([np.flatnonzero(known), np.flatnonzero(plain.excited & ~known)])
    first = int(known.sum())
    whole = stacked.matrix[:, [*order, -1]]
    length = np.linalg.norm(whole, axis=0)
    if not length[-1] > 0:
        raise NotPossibleError("all torques are zero, so method 'tls' cannot scale its errors; use 'wls'",
                               code="all-torques-zero")
    scale = 1.0 / np.where(length > 0, length, 1.0)
    scale[first:-1] /= ratio
    # Exact columns first: the rows below them are an ordinary total least-squares problem.
    r = triangular(whole * scale)
    inner = r[first:, first:]
    _, singular, rows = np.linalg.svd(inner)
    smallest = singular[-1]
    gap = np.linalg.svd(inner[:, :-1], compute_uv=False)[-1] if first < len(order) else np.inf
    if not smallest < _TOO_CLOSE * gap:
        raise NotPossibleError("the regressor errors that method 'tls' assumes are as large as the weakest "
                               f"excitation; give a ratio well below {ratio:g}, or use 'wls'", code="errors-too-large")
    scaled = np.zeros(len(order))
    scaled[first:] = -rows[-1, :-1] / rows[-1, -1]
    if first:
        scaled[:first] = solve_triangular(r[:first, :first], r[:first, -1] - r[:first, first:-1] @ scaled[first:])
    beta, inverse = np.zeros(b), np.zeros((b, b))
    beta[order] = scaled * scale[:-1] / scale[-1]
    # H - s^2 D^2 with columns of length one, for any ratio.
    unit = np.where(np.arange(len(order)) < first, 1.0, ratio)
    bread = (r[:, :-1] * unit).T @ (r[:, :-1] * unit)
    bread[np.arange(first, len(order)), np.arange(first, len(order))] -= (smallest * ratio) ** 2
    values, vectors = np.linalg.eigh(bread)
    half = (vectors / np.sqrt(values)) * (scale[:-1] * unit)[:, None]
    inverse[np.ix_(order, order)] = half @ half.T
    return replace(plain, beta=beta, inverse=inverse), float(smallest)

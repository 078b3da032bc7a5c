"""Least squares inside the set of consistent parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.consistency.blocks import ConeConstraint, slack, smat
from dynid.consistency.consistency import Consistency
from dynid.consistency.interior import interior_point, moved_inside, scales
from dynid.consistency.program import ProgramSolution, optimality_gap, solve_program
from dynid.errors import NotPossibleError
from dynid.regression import BaseParameters, Stacked

_TOO_HEAVY = 0.1  # share of the misfit that a robot above the greatest mass would spare, above which it is refused
_MAX_UNEXPLAINED = 0.25  # share of the torques' squares: a relative error of one half
# Share of the misfit by which a solution may be proved to miss the optimum and still be taken.
MAX_OPTIMALITY_GAP = 1e-4
_ACTIVE_CONSTRAINT_SHARE = 1e-7  # share of the misfit that a condition costs to first order, above which it is active


@dataclass(frozen=True, eq=False)
class Fit:
    """Best consistent parameters.

    Attributes:
        theta: (parameters,).
        beta: (base,), K theta.
        misfit: weighted sum of squares.
        unconstrained: that of the unconstrained optimum.
        active: active constraints.
        smallest_eigenvalue: over all bodies, kg and kg m^2.
        shift: largest change of a parameter that moved the solver's solution inside the set, 0 for none.
    """

    theta: Array
    beta: Array
    misfit: float
    unconstrained: float
    active: tuple[ConeConstraint, ...]
    duals: tuple[Array, ...]
    smallest_eigenvalue: float
    shift: float
    iterations: int

    @property
    def excess(self) -> float:
        """Increase of the misfit by the constraints, as a share of the unconstrained misfit."""
        return (self.misfit - self.unconstrained) / self.unconstrained if self.unconstrained > 0 else 0.0


def fit(consistency: Consistency, base: BaseParameters, stacked: Stacked, *,
        prior: tuple[Array, Array] | None = None) -> Fit:
    """Minimise |R K theta - rho|^2 inside the set (Sousa, eq. 3.53 and 3.58; the weights are in R and rho).

    prior: (matrix (k, parameters), values (k,)) adds |matrix theta - values|^2.
    """
    matrix, rho = stacked.r @ base.matrix, stacked.rho
    least = _least(stacked)
    if prior is not None:
        matrix, rho = np.vstack([matrix, prior[0]]), np.concatenate([rho, prior[1]])
        matrix, rho = _triangular(matrix, rho)
    size = float(np.sqrt(_unit(stacked, least)))
    solution = _solve(consistency, matrix, rho, size)
    theta, shift = moved_inside(consistency, solution.theta)
    beta = base.matrix @ theta
    misfit = stacked.misfit(beta)
    _refuse_too_heavy(consistency, solution, size, misfit, stacked)
    active = tuple(block for block, z in zip(consistency.blocks, solution.duals, strict=True)
                   if _multiplier(block, z) > size ** 2 * max(_ACTIVE_CONSTRAINT_SHARE,
                                                              _scaled_slack(block, solution.theta)))
    return Fit(theta, beta, misfit, least, active, solution.duals, consistency.smallest_eigenvalue(theta), shift,
               solution.iterations)


def _refuse_too_heavy(consistency: Consistency, solution: ProgramSolution, size: float, misfit: float,
                      stacked: Stacked) -> None:
    """Refuse a fit that a robot heavier than `heaviest` would improve much: torques or lengths are probably in other
    units.

    The last block is that limit; its multiplier times the limit is the gain of half the sum of squares per logarithm.
    It is refused if that is large compared with the sum of squares, or with its unit (`size` squared) for data
    without noise, or if little of the torques is explained without it.
    """
    if not consistency.bodies:
        return
    gain = 2.0 * float(np.abs(solution.duals[-1]).max()) * consistency.heaviest
    unexplained = misfit > _MAX_UNEXPLAINED * (float(np.sum(stacked.rho ** 2)) + stacked.rest)
    if gain > _TOO_HEAVY * max(misfit, size ** 2) or (unexplained and gain > _TOO_HEAVY * size ** 2):
        interior_point(consistency)  # says which conditions contradict each other, if they do
        raise NotPossibleError(f"only a robot of more than {consistency.heaviest:g} kg explains these torques: the "
                               f"limit '{consistency.blocks[-1].name}' contradicts the data; check for torques or "
                               "lengths in units other than newton metres and metres, for torques or positions of the "
                               "wrong sign, and for a wrong drive gain", code="robot-too-heavy")


def _solve(consistency: Consistency, matrix: Array, rho: Array, size: float) -> ProgramSolution:
    scale = scales(consistency, matrix)
    tried: list[ProgramSolution] = []
    # Kilograms with little regularisation of the solver's equations; without the solver's own balancing of rows, which
    # our scales do not need and which hurts where many bodies touch their borders; then with more regularisation, and
    # tens of grams and tonnes.
    for factor, regularisation, balance in ((1.0, 1e-12, True), (1.0, 1e-12, False), (1.0, 1e-10, True),
                                            (1.0, 1e-8, False), (0.1, 1e-10, False), (1e-2, 1e-9, True),
                                            (1e2, 1e-9, True)):
        solution = solve_program(consistency.blocks, matrix, rho, scale * factor, size=size, settings={
            "static_regularization_constant": regularisation, "equilibrate_enable": balance})
        if solution.solved:
            return solution
        tried.append(solution)
        if solution.impossible:
            break
    # Where many bodies touch their borders the solver may stop short of its own tolerances, beside the optimum.
    gaps = [np.inf if one.impossible else optimality_gap(consistency.blocks, matrix, rho, one, scale, size)
            for one in tried]
    if min(gaps) < MAX_OPTIMALITY_GAP:
        return tried[int(np.argmin(gaps))]
    interior_point(consistency)  # says which conditions contradict each other, if they do
    status = tried[-1].status
    raise NotPossibleError(f"the constrained fit did not converge (solver status: {status}); check for torques or "
                           "limits in units other than newton metres, kilograms and metres")


def misfit_unit(stacked: Stacked) -> float:
    """Return the unit in which the misfit of equations is counted, a weighted sum of squares: the unconstrained misfit,
    and for data without noise a millionth of the squared torques."""
    return _unit(stacked, _least(stacked))


def _unit(stacked: Stacked, least: float) -> float:
    return max(least, 1e-6 * float(np.sum(stacked.rho ** 2)), 1e-300)


def _least(stacked: Stacked) -> float:
    """Return the smallest misfit of any parameters, consistent or not."""
    diagonal = np.abs(np.diag(stacked.r))
    if diagonal.min() > 1e-9 * diagonal.max():
        return stacked.rest
    solution, *_ = np.linalg.lstsq(stacked.r, stacked.rho, rcond=None)
    return stacked.misfit(np.asarray(solution, dtype=float))


def _triangular(matrix: Array, rho: Array) -> tuple[Array, Array]:
    """Return triangular equations with the same sum of squares, up to a constant, with at most as many rows as
    parameters."""
    if len(matrix) <= matrix.shape[1]:
        return matrix, rho
    q, r = np.linalg.qr(matrix)
    return r, q.T @ rho


def _scaled_slack(block: ConeConstraint, theta: Array) -> float:
    """Return the distance of the parameters from the boundary of a condition, in the units of its multiplier.

    At the optimum distance or multiplier is zero; for an inexact solution the larger of both decides.
    """
    return slack(block.cone, block.value(theta) * block.balance)


def _multiplier(block: ConeConstraint, z: Array) -> float:
    """Return the largest multiplier of a condition: the first-order gain of one unit (1 kg, 0.1 m) of slack."""
    scaled = z / block.balance
    if block.cone == "psd":
        return float(np.linalg.eigvalsh(smat(scaled))[-1])
    return float(np.abs(scaled).max())

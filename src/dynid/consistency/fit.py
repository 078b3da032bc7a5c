"""Least squares constrained to physically consistent parameters."""

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

_TOO_HEAVY = 0.1  # relative decrease of the misfit by a mass above the limit, beyond which the fit is refused
_MAX_UNEXPLAINED = 0.25  # of the squared torques: a relative error of one half
# Accepted bound of the suboptimality of a solution, relative to the misfit.
MAX_OPTIMALITY_GAP = 1e-4
_ACTIVE_CONSTRAINT_SHARE = 1e-7  # relative first-order increase of the misfit by a condition, beyond which it is active


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a constrained fit: the consistent parameters with the smallest misfit.

    Attributes:
        theta: full parameters (parameters,).
        beta: base parameters K theta (base,).
        misfit: weighted sum of squared residuals.
        unconstrained: misfit of the unconstrained optimum.
        active, duals: names of active constraints, and multipliers of all constraints.
        smallest_eigenvalue: smallest eigenvalue over all bodies, kg or kg m^2.
        shift: largest change of a parameter when the solver's solution was moved inside the set, 0 for none.
        iterations: number of solver iterations.
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
    """Minimise |R K theta - rho|^2 over physically consistent theta (Sousa, eq. 3.53 and 3.58).

    R and rho are the weighted equations `stacked`, and K theta are the base parameters. prior: matrix (k, parameters)
    and values (k,), which add |matrix theta - values|^2 to the objective.
    """
    matrix, rho = stacked.r @ base.matrix, stacked.rho
    least = _least(stacked)
    if prior is not None:
        matrix, rho = np.vstack([matrix, prior[0]]), np.concatenate([rho, prior[1]])
        matrix, rho = _triangular(matrix, rho)
    size = float(np.sqrt(misfit_unit(stacked, least)))
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
    """Raise an error if a robot above the mass limit `heaviest` would fit much better: units are probably wrong. Twice
    the multiplier of this limit (the last constraint) times the limit is the decrease of the sum of squares per
    logarithm of the limit. The fit is refused if this decrease is large compared with the sum of squares and with
    `size` squared, or with `size` squared alone if the fit explains little of the torques."""
    if not consistency.bodies:
        return
    gain = 2.0 * float(np.abs(solution.duals[-1]).max()) * consistency.heaviest
    unexplained = misfit > _MAX_UNEXPLAINED * (float(np.sum(stacked.rho ** 2)) + stacked.rest)
    if gain > _TOO_HEAVY * max(misfit, size ** 2) or (unexplained and gain > _TOO_HEAVY * size ** 2):
        interior_point(consistency)  # raises an error that names contradicting conditions
        raise NotPossibleError(f"only a robot of more than {consistency.heaviest:g} kg explains these torques: the "
                               f"limit '{consistency.blocks[-1].name}' contradicts the data; check for torques or "
                               "lengths in units other than newton metres and metres, for torques or positions of the "
                               "wrong sign, and for a wrong drive gain", code="robot-too-heavy")


def _solve(consistency: Consistency, matrix: Array, rho: Array, size: float) -> ProgramSolution:
    scale = scales(consistency, matrix)
    tried: list[ProgramSolution] = []
    # Attempts: kilograms with little regularisation of the solver's equations; without the solver's row scaling, which
    # is redundant and harmful if many bodies are at their bounds; more regularisation; tens of grams and tonnes.
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
    # If many bodies are at their bounds, the solver may stop before its tolerances are reached.
    gaps = [np.inf if one.impossible else optimality_gap(consistency.blocks, matrix, rho, one, scale, size)
            for one in tried]
    if min(gaps) < MAX_OPTIMALITY_GAP:
        return tried[int(np.argmin(gaps))]
    interior_point(consistency)  # raises an error that names contradicting conditions
    status = tried[-1].status
    raise NotPossibleError(f"the constrained fit did not converge (solver status: {status}); check for torques or "
                           "limits in units other than newton metres, kilograms and metres")


def misfit_unit(stacked: Stacked, least: float | None = None) -> float:
    """Return the reference value of misfits (weighted sums of squares): the unconstrained misfit `least`, or a
    millionth of the squared torques for data without noise."""
    return max(_least(stacked) if least is None else least, 1e-6 * float(np.sum(stacked.rho ** 2)), 1e-300)


def _least(stacked: Stacked) -> float:
    """Return the misfit (weighted sum of squared residuals) of unconstrained least squares."""
    diagonal = np.abs(np.diag(stacked.r))
    if diagonal.min() > 1e-9 * diagonal.max():
        return stacked.rest
    solution, *_ = np.linalg.lstsq(stacked.r, stacked.rho, rcond=None)
    return stacked.misfit(np.asarray(solution, dtype=float))


def _triangular(matrix: Array, rho: Array) -> tuple[Array, Array]:
    """Return triangular equations with the same least-squares solution, with at most as many rows as parameters."""
    if len(matrix) <= matrix.shape[1]:
        return matrix, rho
    q, r = np.linalg.qr(matrix)
    return r, q.T @ rho


def _scaled_slack(block: ConeConstraint, theta: Array) -> float:
    """Return the distance of the parameters from the boundary of a constraint, in the units of its multiplier. At the
    optimum the distance or the multiplier is zero; for an inexact solution the larger one decides."""
    return slack(block.cone, block.value(theta) * block.balance)


def _multiplier(block: ConeConstraint, z: Array) -> float:
    """Return the largest multiplier of a constraint: decrease of the objective per unit (1 kg, 0.1 m) of slack."""
    scaled = z / block.balance
    if block.cone == "psd":
        return float(np.linalg.eigvalsh(smat(scaled))[-1])
    return float(np.abs(scaled).max())

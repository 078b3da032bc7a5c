"""Ridge regression toward a nominal model inside the set of consistent robots: pc-ridge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, fit
from dynid.consistency.consistency import MARGIN
from dynid.consistency.prior import (
    STRENGTHS,
    Metric,
    Nominal,
    PriorFit,
    best_strength,
    entropic_fits,
    euclidean_fits,
    euclidean_rows,
    nominal_model,
)
from dynid.errors import ModelError
from dynid.estimate.consistent import consistency_of, prior_rows
from dynid.estimate.covariance import Noise, diagnostics, noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, joint_weights, solve
from dynid.estimate.problem import Problem, method
from dynid.findings import Note
from dynid.regression import Stacked
from dynid.regression.correlation import correlation
from dynid.threads import one_blas_thread

_MOSTLY = 0.5  # share of a parameter's variance
_ROUNDS = 4  # noise and strength of the prior depend on each other: this often they are found in turn


@method("pc-ridge", "weighted least squares among consistent robots, pulled to a nominal model", needs={"data"},
        gives={"theta"})
def consistent_ridge(problem: Problem, *, metric: Metric = "entropic", strength: float | None = None,
                     margin: float = MARGIN, shapes: bool = False, centres: Mapping[str, Any] | None = None,
                     masses: Sequence[Any] = ()) -> Estimate:
    """Consistent parameters with a nominal model (the robot's file, or `nominal` of the problem) as prior, its strength
    chosen by the evidence of the data.

    metric: "entropic" (log-det divergence of pseudo-inertias) or "euclidean". strength: by default the one of greatest
    evidence, where joint j counts as many rows as its residuals' correlation leaves independent, and its noise is what
    no consistent robot explains; noise and strength are found in turn.
    """
    if metric not in ("entropic", "euclidean"):
        raise ModelError(f"the metric of pc-ridge is 'entropic' or 'euclidean', not '{metric}'")
    if strength is not None and not (np.isfinite(strength) and strength > 0):
        raise ModelError(f"the strength of pc-ridge must be a number above zero, got {strength}")
    with one_blas_thread():
        consistency = consistency_of(problem, margin=margin, shapes=shapes, centres=centres, masses=masses)
        nominal = nominal_model(consistency, problem.nominal)
        solution = solve(problem.regression, problem.regression.stack(joint_weights(problem.regression)))
        # The first noise is that of the consistent fit with hardly any prior.
        weights = joint_weights(problem.regression)
        stacked = problem.regression.stack(weights, prior=False)
        prior = prior_rows(problem, weights, stacked)
        fit(consistency, problem.base, stacked, prior=prior)  # refuses limits that contradict the data
        chosen = best_strength(_prior_fits(problem, consistency, nominal, metric, stacked, min(STRENGTHS)))
        effective = np.array(problem.regression.rows, dtype=float)
        for _ in range(_ROUNDS):
            deviation, effective = _noise(problem, chosen.theta)
            rows = np.maximum(np.array(problem.regression.rows, dtype=float), 1.0)
            believed = np.sqrt(effective / rows) / deviation
            stacked = problem.regression.stack(believed, prior=False)
            before = chosen
            chosen = best_strength(_prior_fits(problem, consistency, nominal, metric, stacked, strength))
            if chosen.strength == before.strength:
                break
        theta, on_border = chosen.theta, False
        if metric == "euclidean":
            pulled, values = euclidean_rows(consistency, nominal)
            size = np.sqrt(chosen.strength)
            rows, targets = prior or (np.empty((0, pulled.shape[1])), np.empty(0))
            best = fit(consistency, problem.base, stacked,
                       prior=(np.vstack([size * pulled, rows]), np.concatenate([size * values, targets])))
            theta, on_border = best.theta, bool(best.active)
        theta = consistency.with_known(theta)
        beta = problem.base.matrix @ theta
        found, covariance, leaning = _covariance(problem, replace(solution, beta=beta), chosen, stacked, believed)
        facts = diagnostics(
            problem, replace(solution, beta=beta), weights, covariance, found,
            notes=leaning, consistent=True, metric=metric, strength=chosen.strength,
            strength_from="given" if strength else "evidence",
            nominal_thickened=list(nominal.thickened),
            nominal_relative_error=problem.regression.relative_error(problem.base.matrix @ nominal.theta),
            unconstrained_relative_error=problem.regression.relative_error(solution.beta),
            smallest_eigenvalue=consistency.smallest_eigenvalue(theta),
            deviation="of the posterior: noise of the data as it correlates in time, and the prior" + (
                "; the set's border, where it is active, is not in it" if on_border else ""))
        return Estimate("pc-ridge", problem.model, problem.base, beta, covariance, solution.identified, theta,
                        diagnostics=facts, uncertainty="posterior")


def _covariance(problem: Problem, solution: Solution, chosen: PriorFit, stacked: Stacked, weights: Array
                ) -> tuple[Noise, Array, tuple[Note, ...]]:
    """The noise of a fit with these joint weights (dof,), the covariance (base, base) of noise and prior together, and
    a note on the parameters whose deviations are mostly the prior's.

    P = K J^-1 K' is the posterior's, J = K' H K + L with the prior's curvature L, were the data's noise worth H = R'R
    as the weights have it, one number of effective rows a joint. It is worth what correlation says at the frequencies
    of the columns: J^-1 (K' middle K + L) J^-1 is P + P (middle - H) P.
    """
    spread = problem.base.matrix @ chosen.spread @ problem.base.matrix.T
    found = noise(problem, replace(solution, inverse=spread), weights, regression=replace(problem.regression,
                                                                                         prior=None))
    covariance = spread + spread @ (found.middle - stacked.r.T @ stacked.r) @ spread
    by_prior = 1.0 - np.diag(spread @ stacked.r.T @ stacked.r @ spread) / np.maximum(np.diag(spread), 1e-300)
    names = [name for name, share, known in zip(problem.base.names, by_prior, solution.identified, strict=True)
             if known and share > _MOSTLY]
    notes = () if not names else (Note(
        "leans-on-nominal", f"what is said of {', '.join(names)} is from the nominal model more than from the data; "
        "their deviations hold if it errs there no more than elsewhere"),)
    return replace(found, uncertainty="posterior"), 0.5 * (covariance + covariance.T), notes


def _prior_fits(problem: Problem, consistency: Consistency, nominal: Nominal, metric: Metric, stacked: Stacked,
                strength: float | None) -> Iterable[PriorFit]:
    """The fits of all strengths, or of one alone."""
    matrix, rho = stacked.r @ problem.base.matrix, stacked.rho
    prior = prior_rows(problem, np.ones(problem.regression.dof), stacked)
    if prior is not None:
        matrix, rho = np.vstack([matrix, prior[0]]), np.concatenate([rho, prior[1]])
    strengths = STRENGTHS if strength is None else (strength,)
    if metric == "entropic":
        return entropic_fits(consistency, matrix, rho, nominal, strengths)
    return euclidean_fits(consistency, matrix, rho, *euclidean_rows(consistency, nominal), strengths)


def _noise(problem: Problem, theta: Array) -> tuple[Array, Array]:
    """Deviation (dof,) of the torques about a robot, and how many independent rows (dof,) the log is worth."""
    beta = problem.base.matrix @ theta
    rows = np.maximum(np.array(problem.regression.rows, dtype=float), 1.0)
    deviation = np.sqrt(problem.regression.misfits(beta) / rows)
    deviation = np.maximum(deviation, max(1e-9 * float(deviation.max()), 1e-12))
    found = correlation(problem.equations, beta, threads=problem.threads)
    return deviation, found.effective / np.maximum(found.rows, 1.0) * rows

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
from dynid.estimate.covariance import Noise, diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.problem import Problem, method
from dynid.regression import Stacked
from dynid.regression.correlation import correlation
from dynid.threads import one_blas_thread

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
            stacked = problem.regression.stack(np.sqrt(effective / rows) / deviation, prior=False)
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
        covariance = problem.base.matrix @ chosen.spread @ problem.base.matrix.T
        facts = diagnostics(
            problem, replace(solution, beta=beta), weights, covariance, Noise(np.empty((0, 0)), "posterior"),
            consistent=True, metric=metric, strength=chosen.strength,
            strength_from="given" if strength else "evidence",
            nominal_thickened=list(nominal.thickened),
            nominal_relative_error=problem.regression.relative_error(problem.base.matrix @ nominal.theta),
            unconstrained_relative_error=problem.regression.relative_error(solution.beta),
            smallest_eigenvalue=consistency.smallest_eigenvalue(theta),
            deviation="of the posterior: effective rows of data and the prior" + (
                "; the set's border, where it is active, is not in it" if on_border else ""))
        return Estimate("pc-ridge", problem.model, problem.base, beta, covariance, solution.identified, theta,
                        diagnostics=facts.with_facts({"effective_rows_per_joint": effective.tolist()}),
                        uncertainty="posterior")


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

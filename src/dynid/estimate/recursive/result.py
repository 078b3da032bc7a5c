"""Estimate of a recursion with a covariance that accounts for autocorrelation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.estimate.covariance import (
    ScoreNoise,
    block_noise,
    inflation,
    naive_covariance,
    naive_noise_matrix,
)
from dynid.estimate.diagnostics import Diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, solve
from dynid.estimate.recursive.recursion import Recursion
from dynid.estimate.recursive.watchers import low_power
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.regression import Regression

FEWEST_MODERATED_BLOCKS = 3  # of time, from which variances of all parameters together are learnt
FEWEST_COMMON_FREEDOM, MOST_COMMON_FREEDOM = 1.0, 40.0  # of what the parameters have in common; more is never shown


def estimate_of(recursion: Recursion, method: str) -> Estimate:
    """Return the current least-squares estimate, with standard errors under autocorrelated innovations."""
    regression = recursion.regression()
    if recursion.done == 0 and recursion.prior is None:
        raise NotPossibleError("the data contain no samples")
    solution = solve(regression, recursion.live())
    found = stream_noise(recursion, regression, solution)
    naive = naive_covariance(regression, solution, recursion.scale)
    covariance = found.covariance(solution)
    if found.freedoms is not None:
        variances, freedom = moderated(np.diag(naive), np.diag(covariance), found.freedoms, solution.identified)
        covariance, found = with_variances(naive, variances, solution.identified), replace(found, freedom=freedom)
    facts: dict[str, Any] = {"condition": solution.condition, "weights": recursion.scale.tolist(),
                             "confounded": {k: list(v) for k, v in solution.confounded.items()},
                             **stream_facts(recursion)}
    inflated = {} if found.cov_type == "independent" else {
        "deviation_inflation": inflation(covariance, naive, solution.identified)}
    known = OnDemand.known(Uncertainty(covariance, found.cov_type, found.freedom, facts=inflated))
    return Estimate(method, recursion.layout.model, recursion.layout.base, solution.beta, solution.identified, known,
                    diagnostics=Diagnostics.of_fit(regression, solution.beta, rank=solution.rank, **facts))


def stream_facts(recursion: Recursion) -> dict[str, Any]:
    """Return diagnostics of a stream: length, effective samples, forgetting and restarts."""
    return {"samples": recursion.done, "effective_samples": recursion.memory.weight,
            "forgetting": recursion.forgetting.name, "restarts": list(recursion.restarts)}


def stream_noise(recursion: Recursion, regression: Regression, solution: Solution) -> ScoreNoise:
    """Return the noise of the estimate: from blocks of time if all information fades equally, otherwise from the
    low-frequency power of the innovations."""
    blocks = sum(block.rows > 0 for block in regression.blocks)
    if recursion.forgetting.scalar and blocks >= FEWEST_MODERATED_BLOCKS:
        found = block_noise(regression, solution, recursion.scale)
    elif recursion.done > 0 and not recursion.forgetting.scalar:
        known = np.ix_(solution.excited, solution.excited)
        middle = np.zeros_like(solution.inverse)
        middle[known] = low_power(recursion.innovations()) * np.linalg.inv(solution.inverse[known])
        return ScoreNoise(middle, "innovations")
    else:
        found = ScoreNoise(naive_noise_matrix(regression, solution, recursion.scale), "independent")
    return replace(found, middle=found.middle + prior_noise(regression))


def moderated(naive: Array, variances: Array, freedoms: Array, identified: Bools) -> tuple[Array, float]:
    """Return moderated variances (base,) and the median of their degrees of freedom.

    Few blocks of time determine a single variance poorly, but the factor by which autocorrelation enlarges the naive
    variances is similar for all. A moderated variance is a weighted mean of a parameter's own variance and this common
    factor. Ratios to the naive variances have a common scaled inverse chi-square distribution, whose mean and degrees
    of freedom are estimated from their spread (Smyth 2004, "moderated t").

    Args:
        naive: (base,), variances of independent rows.
        variances: (base,), from blocks of time.
        freedoms: (base,), degrees of freedom of `variances`.
        identified: (base,), parameters that are used.
    """
    from scipy.special import digamma, polygamma

    known = identified & (naive > 0.0) & (variances > 0.0)
    if known.sum() < 2:
        return variances, float(np.median(freedoms))
    halves_own = 0.5 * freedoms[known]
    own = np.log(variances[known] / naive[known]) - digamma(halves_own) + np.log(halves_own)
    spread = float(np.var(own, ddof=1) - np.mean(polygamma(1, halves_own)))
    halves = 0.5 * np.geomspace(FEWEST_COMMON_FREEDOM, MOST_COMMON_FREEDOM, 200)
    half = halves[np.argmin(np.abs(polygamma(1, halves) - spread))]  # trigamma falls: the most where none is seen
    common = float(np.exp(np.mean(own) + digamma(half) - np.log(half)))
    whole = freedoms + 2.0 * half
    return (np.where(identified, (2.0 * half * common * naive + freedoms * variances) / whole, variances),
            float(np.median(whole[known])))


def with_variances(naive: Array, variances: Array, identified: Bools) -> Array:
    """Return a covariance (base, base) with the correlations of the naive one and these variances (base,).

    The covariance from thirty blocks lacks full rank and would be overconfident as a prior.
    """
    known = identified & (np.diag(naive) > 0.0)
    scale = np.sqrt(np.where(known, variances / np.where(known, np.diag(naive), 1.0), 0.0))
    return naive * np.outer(scale, scale)


def prior_noise(regression: Regression) -> Array:
    """Return the noise (base, base) of the prior's rows."""
    if regression.prior is None:
        return np.zeros((len(regression.base), len(regression.base)))
    return regression.prior.matrix.T @ regression.prior.matrix

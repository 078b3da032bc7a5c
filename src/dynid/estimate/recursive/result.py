"""A recursion's estimate with an honest covariance."""

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
    """The live estimate of least squares, with the deviations that correlated innovations leave it."""
    regression = recursion.regression()
    if recursion.done == 0 and recursion.prior is None:
        raise NotPossibleError("the data contain no samples")
    solution = solve(regression, recursion.live())
    found = stream_noise(recursion, regression, solution)
    naive = naive_covariance(regression, solution, recursion.scale)
    covariance = found.covariance(solution)
    if found.cov_type == "blocks":
        variances, freedom = moderated(np.diag(naive), np.diag(covariance), found.freedom, solution.identified)
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
    """What a stream adds to diagnostics: how long it was, what it is worth now, how it forgets, where it restarted."""
    return {"samples": recursion.done, "effective_samples": recursion.memory.weight,
            "forgetting": recursion.forgetting.name, "restarts": list(recursion.restarts)}


def stream_noise(recursion: Recursion, regression: Regression, solution: Solution) -> ScoreNoise:
    """What correlated noise does to the estimate: from blocks of time where all that was known fades alike, else from
    the power of the innovations at low frequencies."""
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
    return ScoreNoise(found.middle + prior_noise(regression), found.cov_type, found.freedom)


def moderated(naive: Array, variances: Array, freedom: float, identified: Bools) -> tuple[Array, float]:
    """Return variances (base,) between their own and those of all parameters together, and their degrees of freedom.

    Few blocks of time show little of one parameter, but how much autocorrelated noise enlarges the naive variances is
    alike for all of them. So ratios to the naive variances have a common distribution, a scaled inverse chi-square,
    whose mean and degrees of freedom are those that their spread shows (Smyth 2004, "moderated t").

    Args:
        naive: (base,), variances of independent rows.
        variances: (base,), from blocks of time.
        freedom: Degrees of freedom of `variances`.
        identified: (base,), parameters that count.
    """
    from scipy.special import digamma, polygamma

    known = identified & (naive > 0.0) & (variances > 0.0)
    if known.sum() < 2:
        return variances, freedom
    ratio = np.log(variances[known] / naive[known])
    own = ratio - digamma(0.5 * freedom) + np.log(0.5 * freedom)
    spread = float(np.var(own, ddof=1) - polygamma(1, 0.5 * freedom))
    halves = 0.5 * np.geomspace(FEWEST_COMMON_FREEDOM, MOST_COMMON_FREEDOM, 200)
    half = halves[np.argmin(np.abs(polygamma(1, halves) - spread))]  # trigamma falls: the most where none is seen
    common = float(np.exp(np.mean(own) + digamma(half) - np.log(half)))
    whole = freedom + 2.0 * half
    return np.where(identified, (2.0 * half * common * naive + freedom * variances) / whole, variances), whole


def with_variances(naive: Array, variances: Array, identified: Bools) -> Array:
    """A covariance (base, base) with the correlations of the naive one and these variances (base,).

    Thirty blocks say how large the deviations of sixty parameters are, but not how they hang together: their own
    covariance lacks rank, and as a prior it would be certain of what nobody knows.
    """
    known = identified & (np.diag(naive) > 0.0)
    scale = np.sqrt(np.where(known, variances / np.where(known, np.diag(naive), 1.0), 0.0))
    return naive * np.outer(scale, scale)


def prior_noise(regression: Regression) -> Array:
    """What the deviations of the prior's rows add to the noise (base, base)."""
    if regression.prior is None:
        return np.zeros((len(regression.base), len(regression.base)))
    return regression.prior.matrix.T @ regression.prior.matrix

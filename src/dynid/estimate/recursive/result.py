"""A recursion's estimate with an honest covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.estimate.covariance import (
    FEWEST_BLOCKS,
    Noise,
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
        covariance = with_variances(naive, np.diag(covariance), solution.identified)
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


def stream_noise(recursion: Recursion, regression: Regression, solution: Solution) -> Noise:
    """What correlated noise does to the estimate: from blocks of time where all that was known fades alike, else from
    the power of the innovations at low frequencies."""
    blocks = sum(block.rows > 0 for block in regression.blocks)
    if recursion.forgetting.scalar and blocks >= FEWEST_BLOCKS:
        found = block_noise(regression, solution, recursion.scale)
    elif recursion.done > 0 and not recursion.forgetting.scalar:
        known = np.ix_(solution.excited, solution.excited)
        middle = np.zeros_like(solution.inverse)
        middle[known] = low_power(recursion.innovations()) * np.linalg.inv(solution.inverse[known])
        return Noise(middle, "innovations")
    else:
        found = Noise(naive_noise_matrix(regression, solution, recursion.scale), "independent")
    return Noise(found.middle + prior_noise(regression), found.cov_type, found.freedom)


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

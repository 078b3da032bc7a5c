"""Estimate of a recursion with a covariance that accounts for autocorrelation, and the status of its parameters.

The status is that of the modified recursive least squares (Lomakin and Deutscher, fig. 1). In their notation, K_ii is
the squared norm of a column. <v_i, v_i> is the squared norm of its part that is independent of the identified columns
before it, a squared diagonal entry of the triangular factor. A parameter with too small an independent part keeps its
initial value. Unlike in eq. 41, the others are estimated by least squares on all data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.covariance import (
    ScoreNoise,
    block_noise,
    diagnostics,
    inflation,
    naive_covariance,
    naive_noise_matrix,
)
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, solve
from dynid.estimate.recursive.recursion import Recursion
from dynid.estimate.recursive.watchers import low_power
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import LinearModel, required_robot_model
from dynid.regression import BaseParameters, Regression, Stacked

FEWEST_MODERATED_BLOCKS = 3  # blocks of time for the moderation of variances
FEWEST_COMMON_FREEDOM, MOST_COMMON_FREEDOM = 1.0, 40.0  # degrees of freedom of the common variance factor


def recursive_estimate(recursion: Recursion, method: str) -> Estimate:
    """Return the current least-squares estimate, with standard errors under autocorrelated innovations."""
    regression = recursion.regression()
    if recursion.done == 0 and recursion.prior is None:
        raise NotPossibleError("the data contain no samples; give at least one log with samples")
    solution = solve(regression, recursion.live())
    found = stream_noise(recursion, regression, solution)
    naive = naive_covariance(regression, solution, recursion.scale)
    covariance = found.covariance(solution)
    if found.parameter_freedoms is not None:
        variances, df = moderated(np.diag(naive), np.diag(covariance), found.parameter_freedoms, solution.identified)
        covariance = with_variances(naive, variances, solution.identified)
        found = replace(found, degrees_of_freedom=df)
    inflated = {} if found.cov_type == "independent" else {
        "std_inflation": inflation(covariance, naive, solution.identified)}
    known = OnDemand.known(Uncertainty(covariance, found.cov_type, found.degrees_of_freedom, facts=inflated))
    return Estimate(method, recursion.layout.model, recursion.layout.base, solution.beta, solution.identified, known,
                    diagnostics=diagnostics(regression, solution, recursion.scale, **stream_facts(recursion)))


def stream_facts(recursion: Recursion) -> dict[str, Any]:
    """Return diagnostics of a stream: number of samples, effective number, kind of forgetting, and restarts."""
    return {"samples": recursion.done, "effective_samples": recursion.memory.weight,
            "forgetting": recursion.forgetting.name, "restarts": list(recursion.restarts)}


def stream_noise(recursion: Recursion, regression: Regression, solution: Solution) -> ScoreNoise:
    """Return the noise of a recursive estimate: from blocks of time if all information fades equally, otherwise from
    the low-frequency power of the innovations."""
    blocks = sum(block.rows > 0 for block in regression.blocks)
    if recursion.forgetting.scalar and blocks >= FEWEST_MODERATED_BLOCKS:
        found = block_noise(regression, solution, recursion.scale)
    elif recursion.done > 0 and not recursion.forgetting.scalar:
        known = np.ix_(solution.excited, solution.excited)
        score_covariance = np.zeros_like(solution.inverse)
        score_covariance[known] = low_power(recursion.innovations()) * np.linalg.inv(solution.inverse[known])
        return ScoreNoise(score_covariance, "innovations")
    else:
        found = ScoreNoise(naive_noise_matrix(regression, solution, recursion.scale), "independent")
    prior = regression.prior  # its rows have unit noise
    return found if prior is None else found.plus(prior.matrix.T @ prior.matrix)


def moderated(naive: Array, variances: Array, parameter_freedoms: Array, identified: Bools) -> tuple[Array, float]:
    """Return moderated variances (base,) and the median of their degrees of freedom.

    Few blocks of time determine a single variance poorly, but the factor by which autocorrelation enlarges the naive
    variances is similar for all. A moderated variance is a weighted mean of a parameter's own variance and this common
    factor. Ratios to the naive variances have a common scaled inverse chi-square distribution, whose mean and degrees
    of freedom are estimated from their spread (Smyth 2004, "moderated t").

    Args:
        naive: (base,), variances of independent rows.
        variances: (base,), from blocks of time.
        parameter_freedoms: (base,), degrees of freedom of `variances`.
        identified: (base,), parameters that are used.
    """
    from scipy.special import digamma, polygamma

    known = identified & (naive > 0.0) & (variances > 0.0)
    if known.sum() < 2:
        return variances, float(np.median(parameter_freedoms))
    halves_own = 0.5 * parameter_freedoms[known]
    own = np.log(variances[known] / naive[known]) - digamma(halves_own) + np.log(halves_own)
    spread = float(np.var(own, ddof=1) - np.mean(polygamma(1, halves_own)))
    halves = 0.5 * np.geomspace(FEWEST_COMMON_FREEDOM, MOST_COMMON_FREEDOM, 200)
    half = halves[np.argmin(np.abs(polygamma(1, halves) - spread))]  # trigamma decreases with half
    common = float(np.exp(np.mean(own) + digamma(half) - np.log(half)))
    whole = parameter_freedoms + 2.0 * half
    return (np.where(identified, (2.0 * half * common * naive + parameter_freedoms * variances) / whole, variances),
            float(np.median(whole[known])))


def with_variances(naive: Array, variances: Array, identified: Bools) -> Array:
    """Return a covariance (base, base) with the correlations of `naive` and the given variances (base,).

    The covariance from thirty blocks lacks full rank and would be overconfident as a prior.
    """
    known = identified & (np.diag(naive) > 0.0)
    scale = np.sqrt(np.where(known, variances / np.where(known, np.diag(naive), 1.0), 0.0))
    return naive * np.outer(scale, scale)


Limits = Mapping[str, tuple[float, float]] | str | None
IDENTIFIED, NOT_EXCITED, DEPENDENT = 1, 0, -1  # s_i of Lomakin and Deutscher


@dataclass(frozen=True, eq=False)
class Assessment:
    """Status of each base parameter in modified recursive least squares (method `mrls`).

    Attributes:
        values: values of the base parameters (base,).
        status: 1 identified, 0 not excited, -1 dependent (base,).
        added: squared norm of the independent part of each column (base,).
        norms: squared norm of each column (base,).
    """

    values: Array
    status: Ints
    added: Array
    norms: Array


def judge(stacked: Stacked, initial: Array, threshold: Array, box: tuple[Array, Array] | None = None) -> Assessment:
    """Return the least-squares solution in those parameters whose independent squared column norm exceeds `threshold`
    (base,), with the others at `initial` (base,). box: lower and upper limits (base,) of all values, or None."""
    b = len(initial)
    work, norms = stacked.r.copy(), np.sum(stacked.r ** 2, axis=0)
    status, added, kept = np.zeros(b, dtype=np.int64), np.zeros(b), []
    for i in range(b):
        added[i] = float(work[:, i] @ work[:, i])
        if added[i] > threshold[i]:
            status[i] = IDENTIFIED
            axis = work[:, i] / np.sqrt(added[i])
            work[:, i + 1:] -= np.outer(axis, axis @ work[:, i + 1:])
            kept.append(i)
        else:
            status[i] = DEPENDENT if norms[i] > threshold[i] else NOT_EXCITED
    frozen = np.setdiff1d(np.arange(b), kept)
    values, size = initial.copy(), np.sqrt(norms[kept])
    rest = stacked.rho - stacked.r[:, frozen] @ initial[frozen]
    values[kept] = np.linalg.lstsq(stacked.r[:, kept] / size, rest, rcond=None)[0] / size
    if box is not None:
        values = np.clip(values, *box)
    return Assessment(values, status, added, norms)


def default_threshold(stacked: Stacked, wanted: float | None) -> Array:
    """Return the threshold (noise / wanted standard error)^2 (base,); wanted: in each parameter's unit, by default the
    value that alone would explain the torque."""
    noise = stacked.rest / max(stacked.rows - len(stacked.r), 1)
    if wanted is not None:
        return np.full(len(stacked.r), noise / wanted ** 2)
    torque = float(np.sum(stacked.rho ** 2)) + stacked.rest
    return np.maximum(noise / max(torque, 1e-300), 1e-18) * np.sum(stacked.r ** 2, axis=0) + 1e-300


def standard_limits(model: LinearModel, given: Limits) -> dict[str, tuple[float, float]]:
    """Return limits of standard parameters by name.

    given: limits by name; or "loose", "normal" or "tight" for those of the bodies and shapes in the robot file; or the
    path of a bounds file (see `dynid extract`).
    """
    if given is None:
        return {}
    if not isinstance(given, str):
        try:
            pairs = {name: (float(low), float(high)) for name, (low, high) in given.items()}
        except (AttributeError, TypeError, ValueError):
            raise ModelError("limits must be a lower and an upper number for each parameter name, such as "
                             f'`M1 = [0.0, 3.0]`, "normal" or a bounds file; got {given!r}',
                             code="bad-limits") from None
        unknown = [name for name in pairs if name not in model.parameters.names]
        if unknown:
            raise ModelError(f"limits contain '{unknown[0]}', which is not a standard parameter of the model",
                             code="unknown-parameter")
        return pairs
    own = required_robot_model(model, f"limits '{given}' of a robot file")
    from dynid.extraction import WIDTHS, load_bounds, robot_bounds  # imports estimates

    width = next((one for one in WIDTHS if one == given), None)
    bounds = load_bounds(given, own) if width is None else robot_bounds(own, width)
    return bounds.standard_limits(model.parameters)


def base_limits(base: BaseParameters, limits: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """Return lower and upper limits (base,) of base parameters from limits of standard parameters, by interval
    arithmetic (Lomakin and Deutscher, s. VI); infinite if a standard parameter has none."""
    low, high = np.full((2, len(base.parameters)), np.inf) * [[-1.0], [1.0]]
    for name, (lower, upper) in limits.items():
        if not lower <= upper:
            raise ModelError(f"the lower limit of '{name}' is above its upper limit: {lower} and {upper}")
        low[base.parameters.index(name)], high[base.parameters.index(name)] = lower, upper
    ends = [base.matrix * np.where(base.matrix != 0.0, limit, 0.0) for limit in (low, high)]
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)

"""Recursive instrumental variables: rows [Z Y tau] in the same recursion, solved on demand.

riv (Ardiani, eq. 3.1) and civ (eq. 4.7-4.9) use the same sums Z'Y and Z'tau. P of their equations is not the covariance
of the estimate; that is G Z' C Z G' with G = (Z'Y)^-1 and the covariance C of the noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.covariance import FEWEST_BLOCKS
from dynid.estimate.diagnostics import Diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.recursive.recursion import Recursion
from dynid.estimate.recursive.result import stream_facts
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.regression import BaseParameters, Factor, Regression
from dynid.regression.equations import Layout

_LEAST_CORRELATION = 0.1  # between instruments and regressor, in the direction where it is least


def instrumented_layout(plain: Layout) -> Layout:
    """Return the layout of rows [Z_j Y_j tau_j] of each joint j."""
    b = len(plain.base)
    return plain.with_columns([np.concatenate([own, b + own]) for own in plain.columns])


def instrumented_entries(plain: Layout, instruments: Array, measured: Array) -> Array:
    """Return rows (layout.rows, m) of `instrumented_layout` from the rows of the plain layout along both motions."""
    return np.vstack([part for j in range(len(plain.columns))
                      for part in (instruments[plain.joint(j)][:-1], measured[plain.joint(j)])])


def instrumental_estimate(recursion: Recursion, method: str) -> Estimate:
    """Return the current instrumental-variable estimate with its covariance. Refuses instruments that are nearly
    uncorrelated with the regressor."""
    recursion.solve()
    b, base, beta = len(recursion.beta), recursion.layout.base, recursion.beta.copy()
    excited = np.diag(recursion.r)[:b] > 1e-8 * np.linalg.norm(recursion.r[:b, :b], axis=0)
    correlation = least_correlation(recursion.r, b, excited)
    if correlation < _LEAST_CORRELATION:
        raise NotPossibleError(f"the references have a correlation of only {correlation:.2g} with the measured motion "
                               "in their weakest direction, so they cannot serve as instruments",
                               "improve the tracking, filter the references by the loop, or use 'rls'",
                               "instruments-too-weak")
    doubled = recursion.memory.regression(_doubled(base), recursion.joints)
    cross = recursion.r[:b, :b].T @ recursion.r[:b, b:2 * b]
    gain = np.asarray(np.linalg.pinv(cross, rcond=1e-12), dtype=float)
    middle, cov_type, freedom = _middle(doubled, recursion, beta, gain)
    plain = replace(doubled, base=base, factors=tuple(_without_instruments(f, b) for f in doubled.factors), blocks=())
    facts: dict[str, Any] = {"weights": recursion.scale.tolist(), "least_correlation": correlation,
                             **stream_facts(recursion)}
    known = OnDemand.known(Uncertainty(gain @ middle @ gain.T, cov_type, freedom))
    return Estimate(method, recursion.layout.model, base, beta, excited, known,
                    diagnostics=Diagnostics.of_fit(plain, beta, rank=int(excited.sum()), **facts))


def least_correlation(r: Array, b: int, excited: Any) -> float:
    """Return the smallest canonical correlation between instruments and regressor in the excited columns."""
    y = r[:2 * b, b:2 * b][:, excited]
    size = np.linalg.norm(y, axis=0)
    if not np.all(size > 0.0):
        return 0.0
    q, _ = np.linalg.qr(y / size)
    z, _ = np.linalg.qr(np.vstack([r[:b, :b], np.zeros((b, b))])[:, excited])
    return float(np.linalg.svd(z.T @ q, compute_uv=False)[-1])


def _doubled(base: BaseParameters) -> BaseParameters:
    return replace(base, independent=np.tile(base.independent, 2), matrix=np.vstack([base.matrix, base.matrix]))


def _without_instruments(factor: Factor, b: int) -> Factor:
    """Return the triangular factor of the measured equations, without the columns of the instruments."""
    kept = np.flatnonzero(factor.columns >= b)
    return Factor(factor.columns[kept] - b, factor.r[:, np.append(kept, len(factor.columns))], factor.rows,
                  factor.power)


def _middle(doubled: Regression, recursion: Recursion, beta: Array, gain: Array) -> tuple[Array, Any, float]:
    """Return the score covariance Z' C Z (base, base) by a jackknife over blocks, or for independent rows."""
    b, blocks = len(beta), [block for block in doubled.blocks if block.rows]
    enough = len(blocks) >= FEWEST_BLOCKS
    middle = np.zeros((b, b))
    for block in blocks:
        score, share = np.zeros(b), np.zeros((b, b))
        for weight, factor in zip(recursion.scale, block.factors, strict=True):
            half = len(factor.columns) // 2
            z, y, tau = weight * factor.r[:, :half], weight * factor.r[:, half:-1], weight * factor.r[:, -1]
            own, residual = factor.columns[:half], tau - y @ beta[factor.columns[:half]]
            score[own] += z.T @ residual
            share[np.ix_(own, own)] += z.T @ y if enough else z.T @ z * (residual @ residual) / max(factor.rows, 1)
        if enough:  # what the estimate would be without the block, to first order and one term more
            moved = score + share @ (gain @ score)
            middle += np.outer(moved, moved) * (len(blocks) - 1) / len(blocks)
        else:
            middle += share
    prior = recursion.prior
    if prior is not None:
        middle += prior.matrix.T @ prior.matrix
    return middle, "blocks" if enough else "independent", float(len(blocks) - 1) if enough else np.inf

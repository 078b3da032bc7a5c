"""Errors of estimates that are regularised toward nominal values, or toward zero by a ridge penalty."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.estimate.linear import Solution
from dynid.regression import Regression

_MIN_DATA_SHARE = 1e-9  # smallest share of the information on a direction that comes from the data


def at_most_the_difference(by_penalty: Array, by_noise: Array, without: Array, difference: Array) -> Array:
    """Return the covariance (b, b) of an estimate due to its regularisation, with an upper bound from the data.

    The error of a regularised estimate is that of the unregularised one plus their difference, which is known.
    Regularisation is a contraction, so the two parts are not positively correlated. The mean square error is therefore
    at most the variance without regularisation plus the squared difference.

    Args:
        by_penalty: covariance by estimated errors of the target values of the regularisation (b, b).
        by_noise: covariance of the regularised estimate by noise (b, b).
        without: covariance without regularisation (b, b).
        difference: regularised minus unregularised estimate (b,).
    """
    most = np.maximum(np.diag(without) + difference ** 2 - np.diag(by_noise), 0.0)
    own = np.diag(by_penalty)
    share = np.sqrt(np.where(own > most, most, 1.0) / np.where(own > most, own, 1.0))
    return by_penalty * np.outer(share, share)


def penalty_noise_matrix(regression: Regression, solution: Solution, weights: Array | None,
                         score_covariance: Array) -> Array:
    """Return the squared error of the estimate by ridge penalties, expressed as noise of the equations (base, base).

    The error of each penalised value is estimated from all penalised values of its joint and unit. For an offset, the
    error is as large as Coulomb friction, because a joint that does not reverse determines only their sum. The penalty
    alone makes undetermined values small. The error is therefore at least that of the joint in which the same symbol
    has the largest torque. The errors of bodies and rotors are at most those that the estimate without penalties allows
    (`at_most_the_difference`). Those of friction are not limited, because its terms are approximate.

    Args:
        regression: the equations.
        solution: solution of the equations, with penalties.
        weights: weights of the joints (dof,), or None.
        score_covariance: noise covariance of the equations of the data (base, base).
    """
    base, items, known = regression.base, regression.base.parameters.items, solution.excited
    leads = [items[c] for c in base.independent]
    penalised, size = np.flatnonzero(base.ridge > 0), np.zeros(0)
    for c in penalised:
        divided = [leads[c].owner == item.owner and base.units[c] == unit
                   and (ridge > 0 or (leads[c].kind.group == "offset" and item.kind.group == "friction"))
                   for item, unit, ridge in zip(leads, base.units, base.ridge, strict=True)]
        size = np.append(size, np.sum(np.abs(solution.beta[divided])))
    penalty = regression.ridge_penalty(weights)
    norm = np.sqrt(penalty[penalised] / base.ridge[penalised])
    symbols = np.array([leads[c].symbol for c in penalised])
    for symbol in dict.fromkeys(symbols):
        same = (symbols == symbol) & (norm > 0.0)
        torque = np.max(np.abs(solution.beta[penalised[same]]) * norm[same], initial=0.0)
        size[same] = np.maximum(size[same], torque / norm[same])
    error = np.zeros(len(base))
    error[penalised] = penalty[penalised] * size
    # With penalised normal equations scaled to the identity, the penalties are a part g, and the data are 1 - g.
    share, turn = np.linalg.eigh(solution.half.T @ (penalty[known, None] * solution.half))
    open_half = (solution.half @ turn) / np.sqrt(np.maximum(1.0 - share, _MIN_DATA_SHARE))
    without = open_half @ open_half.T
    inverse, own = solution.inverse[np.ix_(known, known)], score_covariance[np.ix_(known, known)]
    is_rigid = np.array([item.kind.group in ("body", "rotor") for item in leads])[known]
    by_penalty = at_most_the_difference(
        (inverse * error[known] ** 2) @ inverse, inverse @ own @ inverse, without @ own @ without,
        np.where(is_rigid, without @ (penalty[known] * solution.beta[known]), np.inf))
    normal, found = np.linalg.pinv(inverse, hermitian=True, rcond=1e-15), np.zeros_like(score_covariance)
    found[np.ix_(known, known)] = normal @ by_penalty @ normal
    return found

"""What a recursion starts from: a prior on base parameters, and the noise of each joint's torque."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.regression import BaseParameters
from dynid.regression.known import Prior, check_known

# An earlier estimate; standard parameters by name, each with value and deviation; or values and deviations of the base
# parameters, one number or one each.
PriorLike = Prior | Estimate | Mapping[str, Any] | tuple[ArrayLike, ArrayLike]


def base_given(base: BaseParameters, prior: PriorLike | None) -> tuple[BaseParameters, Prior | None]:
    """Base parameters without those whose values a prior gives as exact, and the prior as rows (Prior)."""
    if isinstance(prior, Mapping):
        facts = check_known(base, prior)
        base, *_ = base.given({name: one.value for name, one in facts.items() if one.std == 0.0})
        return base, Prior.of(base, {name: one for name, one in facts.items() if one.std > 0.0})
    return base, prior_rows(base, prior)


def prior_rows(base: BaseParameters, prior: PriorLike | None) -> Prior | None:
    """A prior as rows in units of their deviation; None for none."""
    if prior is None:
        return None
    if isinstance(prior, Prior):
        found = prior
    elif isinstance(prior, Estimate):
        if prior.base.expressions != base.expressions:
            raise ModelError("the prior is an estimate of another model: it has other base parameters")
        found = _from_covariance(prior.values, prior.covariance, prior.identified)
    else:
        found = _from_deviations(base, prior)
    if found.matrix.shape[1] != len(base):
        raise ModelError(f"the prior is on {found.matrix.shape[1]} base parameters, the model has {len(base)}")
    if not (np.isfinite(found.matrix).all() and np.isfinite(found.values).all()):
        raise ModelError("the prior has a value or a deviation that is not finite")
    return found


def _from_covariance(values: Array, covariance: Array, identified: Any) -> Prior:
    """Rows of an estimate; those it does not identify have none."""
    places = np.flatnonzero(identified & (np.diag(covariance) > 0.0))
    part = covariance[np.ix_(places, places)]
    scale = np.sqrt(np.diag(part))
    sizes, vectors = np.linalg.eigh(part / np.outer(scale, scale))
    rows = np.zeros((len(places), len(values)))
    rows[:, places] = (vectors / np.sqrt(np.maximum(sizes, 1e-12 * sizes.max(initial=0.0)))).T / scale
    return Prior(rows, rows @ values, {})


def _from_deviations(base: BaseParameters, given: Any) -> Prior:
    """Rows of values and deviations, one number or one a base parameter."""
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise ModelError("a prior is an estimate, standard parameters by name, or (values, deviations) of the base "
                         f"parameters, got {type(given).__name__}")
    try:
        values, stds = (np.broadcast_to(np.asarray(x, dtype=float), (len(base),)) for x in given)
    except (TypeError, ValueError):
        raise ModelError(f"values and deviations of a prior are one number or {len(base)}, one for each base "
                         "parameter") from None
    if not np.all(stds > 0.0):
        raise ModelError("the deviations of a prior must be above zero")
    finite = np.isfinite(stds)  # an infinite one says nothing
    rows = np.diag(1.0 / np.where(finite, stds, 1.0))[finite]
    return Prior(rows, rows @ values, {})


def noise_of(noise: ArrayLike | str, prior: PriorLike | None, dof: int) -> Array:
    """One-sigma noise of each joint's torque (dof,) to start with: as given; where it is to be learnt, that of a prior
    estimate's residuals, or one."""
    if isinstance(noise, str):
        if noise != "learn":
            raise ModelError(f"noise is a number, one for each joint, or 'learn', got '{noise}'")
        if isinstance(prior, Estimate):
            found = np.array(prior.diagnostics.residual_deviation_per_joint, dtype=float)
            if found.shape == (dof,) and np.all(found > 0.0):
                return found
        return np.ones(dof)
    try:
        found = np.broadcast_to(np.asarray(noise, dtype=float), (dof,)).copy()
    except (TypeError, ValueError):
        raise ModelError(f"noise is one number or {dof}, one for each joint") from None
    if not (np.isfinite(found).all() and np.all(found > 0.0)):
        raise ModelError(f"the noise of a joint's torque must be above zero, got {found.min():g}")
    return found

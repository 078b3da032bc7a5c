"""Initialisation of a recursion: a prior on base parameters, and the noise of each joint's torque."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.model.parameters import Parameters
from dynid.regression import BaseParameters
from dynid.regression.known import Prior

# An earlier estimate; standard parameters by name, each with value and standard deviation; or values and standard
# deviations of the base parameters, one number or one each.
FILE_SHARE = 0.3  # assumed relative error of the values of a robot file
PriorLike = Prior | Estimate | Mapping[str, Any] | tuple[ArrayLike, ArrayLike]


def joined_priors(one: Prior | None, other: Prior | None) -> Prior | None:
    """Return the equations of two priors from independent information as one prior, or None without any."""
    return one if other is None else other if one is None else one.and_also(other)


def prior_rows(base: BaseParameters, prior: PriorLike | None) -> Prior | None:
    """Return a prior as equations of base parameters, each with a standard deviation of one, or None."""
    if prior is None:
        return None
    if isinstance(prior, Prior):
        found = prior
    elif isinstance(prior, Estimate):
        if prior.base.expressions != base.expressions:
            raise ModelError("the prior belongs to another model with other base parameters; give a prior of the same "
                             "robot and terms")
        found = from_covariance(prior.values, prior.covariance, prior.identified)
    else:
        found = _from_std(base, prior)
    if found.matrix.shape[1] != len(base):
        raise ModelError(f"the prior has {found.matrix.shape[1]} base parameters, but the model has {len(base)}")
    if not (np.isfinite(found.matrix).all() and np.isfinite(found.values).all()):
        raise ModelError("the prior has a value or a standard deviation that is not finite; correct or remove it")
    return found


def from_covariance(values: Array, covariance: Array, identified: Any) -> Prior:
    """Return the prior of identified values (base,) with a covariance (base, base)."""
    places = np.flatnonzero(identified & (np.diag(covariance) > 0.0))
    part = covariance[np.ix_(places, places)]
    scale = np.sqrt(np.diag(part))
    sizes, vectors = np.linalg.eigh(part / np.outer(scale, scale))
    rows = np.zeros((len(places), len(values)))
    rows[:, places] = (vectors / np.sqrt(np.maximum(sizes, 1e-12 * sizes.max(initial=0.0)))).T / scale
    return Prior(rows, rows @ values, {})


def prior_of_file(base: BaseParameters, parameters: Parameters) -> Prior:
    """Return a prior on base parameters from nominal values; those that involve a missing value are excluded.

    Each value has an independent standard deviation of `FILE_SHARE` of its scale: the value itself for a mass or joint
    parameter, the body's largest moment for an inertia or first moment.
    """
    if parameters.names != base.parameters.names:
        raise ModelError("the robot of the prior and the observed robot have different parameters; give a prior of "
                         "the same robot and terms")
    sizes = np.array([np.inf if item.nominal is None else abs(item.nominal) for item in parameters])
    values = np.array([0.0 if item.nominal is None else item.nominal for item in parameters])
    for body in parameters.bodies.values():
        for part in (body[:6], body[6:9]):
            sizes[part] = sizes[part].max()
    known = np.isfinite(sizes) & (sizes > 0.0)
    matrix = np.where(known, base.matrix, 0.0)
    covariance = (matrix * (FILE_SHARE * np.where(known, sizes, 0.0)) ** 2) @ matrix.T
    if not known.any():
        raise ModelError("the robot of the prior has no inertias, so it does not determine the parameters; add "
                         "inertias to its file")
    return from_covariance(base.reduce(values), covariance, ~np.any(base.matrix[:, ~known] != 0.0, axis=1))


def _from_std(base: BaseParameters, given: Any) -> Prior:
    """Return the prior of values with standard deviations, one number or one per base parameter."""
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise ModelError("a prior must be an estimate, standard parameters by name, or (values, standard deviations) "
                         f"of the base parameters, got {type(given).__name__}")
    try:
        values, stds = (np.broadcast_to(np.asarray(x, dtype=float), (len(base),)) for x in given)
    except (TypeError, ValueError):
        raise ModelError(f"values and standard deviations of a prior must be one number or {len(base)} numbers, "
                         "one per base parameter", code="bad-prior-shape") from None
    if not np.all(stds > 0.0):
        raise ModelError("the standard deviations of a prior must be above zero", code="bad-prior-std")
    finite = np.isfinite(stds)  # an infinite standard deviation means no prior
    rows = np.diag(1.0 / np.where(finite, stds, 1.0))[finite]
    return Prior(rows, rows @ values, {})


def initial_noise(noise: ArrayLike | str, prior: PriorLike | None, dof: int) -> Array:
    """Return the initial standard deviation of each joint's torque noise (dof,): the given one, or, for "learn", that
    of a prior estimate's residuals, or one."""
    if isinstance(noise, str):
        if noise != "learn":
            raise ModelError(f"noise must be a number, one for each joint, or 'learn', got '{noise}'")
        if isinstance(prior, Estimate):
            found = np.array(prior.diagnostics.residual_std_per_joint, dtype=float)
            if found.shape == (dof,) and np.all(found > 0.0):
                return found
        return np.ones(dof)
    try:
        found = np.broadcast_to(np.asarray(noise, dtype=float), (dof,)).copy()
    except (TypeError, ValueError):
        raise ModelError(f"noise must be one number or {dof} numbers, one per joint", code="bad-noise") from None
    if not (np.isfinite(found).all() and np.all(found > 0.0)):
        raise ModelError(f"the noise of a joint's torque must be above zero, got {found.min():g}", code="bad-noise")
    return found

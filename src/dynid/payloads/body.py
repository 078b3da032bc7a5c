"""The physically consistent body nearest to an unconstrained estimate of a load, and the effect of a weighed mass."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import Consistency, fit
from dynid.consistency.central import fill_by_barrier
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Parameters
from dynid.model.terms import body_parameters
from dynid.payloads.result import Source
from dynid.regression import BaseParameters, Stacked
from dynid.robot import inertia as ten

Parts = dict[Source, Array]  # parts of a covariance (10, 10), by source
_MIN_EIGENVALUE = 1e-9  # smallest eigenvalue of a load's pseudo-inertia, kg and kg m^2, for a valid body
_SHAPE_ALLOWANCE = 0.1  # increase of the squared distance (in standard deviations) allowed for a plausible shape
_MAX_MASS_KG = 1e5  # kg: bound on the mass of a load in the constrained fit
_DEFAULT_MASS = 1e-3  # kg: mass of a body whose mass and first moment are not determined
_MIN_VARIANCE_SHARE = 1e-12  # share of the largest variance, below which parameters count as equally well known
_UNDETERMINED_ERROR_RATIO = 1e6  # times the largest standard error, for parameters that the data do not determine


def weighed(theta: Array, parts: Parts, mass: tuple[float, float]) -> tuple[Array, Parts]:
    """Return a load's parameters (10,) and the parts of their covariance (10, 10), updated by a weighed mass. mass:
    value and standard deviation of the weighed mass, kg. The weighed mass also reduces correlated uncertainty, such as
    that of drive gains."""
    value, std = mass
    if not (np.isfinite(value) and np.isfinite(std)) or value <= 0 or std < 0:
        raise ModelError("the mass of a payload must be positive, with a standard deviation that is not negative, "
                         f"got {value} kg and {std} kg", code="not-above-zero")
    total = np.sum(list(parts.values()), axis=0)
    gain = total[:, 9] / (total[9, 9] + std ** 2)
    keep = np.eye(10) - np.outer(gain, np.eye(10)[9])
    found = {source: keep @ part @ keep.T for source, part in parts.items()}
    found["scale"] = std ** 2 * np.outer(gain, gain)
    return theta + gain * (value - theta[9]), found


def nearest_body(theta: Array, covariance: Array, identified: Bools, mass: float | None = None,
                 lever: float = 1.0) -> Array:
    """Return the parameters (10,) of the physically consistent body nearest to theta in the metric of its covariance.

    Args:
        theta: estimated inertial parameters (10,).
        covariance: covariance (10, 10) of theta.
        identified: mask (10,) of the parameters that the data determine.
        mass: mass if known exactly, kg.
        lever: assumed distance of the centre of mass from the frame, m, for a mass that the data do not determine.
    """
    if not identified[9] and mass is None:
        guess = max(float(np.linalg.norm(np.where(identified, theta, 0.0)[6:9])) / lever, _DEFAULT_MASS)
        theta, covariance = np.append(theta[:9], guess), covariance.copy()
        covariance[9], covariance[:, 9] = 0.0, 0.0
        covariance[9, 9], identified = guess ** 2, identified | (np.arange(10) == 9)
    if identified.all() and np.linalg.eigvalsh(ten.pseudo_inertia(theta))[0] > _MIN_EIGENVALUE:
        return theta
    known = {} if mass is None else {"M": mass}
    measured = identified & (np.arange(10) != 9) if known else identified  # a known mass is fixed
    parameters = Parameters(tuple(body_parameters("", 0, "payload", None)))
    base = BaseParameters(parameters, np.arange(10), np.eye(10))
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    size = np.where(measured & (size > 0), size, size.max(initial=1e-9))
    scaled = np.where(np.outer(measured, measured), covariance / np.outer(size, size), 0.0)
    scaled[~measured, ~measured] = _UNDETERMINED_ERROR_RATIO ** 2
    values, vectors = np.linalg.eigh(scaled)
    half = (vectors / np.sqrt(np.maximum(values, _MIN_VARIANCE_SHARE * values.max(initial=1e-300)))).T / size
    consistency = Consistency(parameters, margin=_MIN_EIGENVALUE, known=known, heaviest=_MAX_MASS_KG)
    stacked = Stacked.from_matrix(np.column_stack([half, half @ np.where(measured, theta, 0.0)]), 10)
    best = fit(consistency, base, Stacked(stacked.r, stacked.rho, 10.0, 20)).theta
    try:  # a body inside the cone, within the noise, instead of one of zero thickness
        theta, _ = fill_by_barrier(consistency, stacked.r, stacked.rho, best, tolerance=_SHAPE_ALLOWANCE)
        return consistency.with_known(theta)
    except NotPossibleError:
        return best


def distance(theta: Array, other: Array, covariance: Array) -> float:
    """Return the Mahalanobis distance of two vectors of ten inertial parameters, in standard deviations. The distance
    is infinite if the covariance (10, 10) is zero and the vectors differ."""
    if not np.any(covariance):
        return float(np.inf if np.any(theta != other) else 0.0)
    size = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    along = vectors.T @ ((theta - other) / size)
    return float(np.sqrt(np.sum(along ** 2 / np.maximum(values, _MIN_VARIANCE_SHARE * values[-1]))))

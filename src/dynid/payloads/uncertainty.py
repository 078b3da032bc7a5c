"""Sources of the uncertainty of a load: noise, the unloaded robot, drive gains, changes of friction."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate.covariance import correlated_noise_matrix
from dynid.payloads.loaded_equations import LoadedEquations
from dynid.payloads.result import Source
from dynid.payloads.ways import LinearPayloadFit, Nuisance, Unloaded
from dynid.regression.autocorrelation import correlation

FRICTION_DEVIATION = 0.2  # of its value: friction warms up, and changes with the load
LEAST_FRICTION = 0.02  # of a joint's torque, root mean square: what friction and offset change by at least
_UNLIKELY_STD = 3.0  # deviations of gains, beyond which something else is wrong
MIN_DEGREES_OF_FREEDOM = 3.0  # degrees of freedom, below which a deviation says nothing
LOAD_FRICTION_DEVIATION = 0.05  # of the torque a gear transmits


def changing_friction(loaded: LoadedEquations, unloaded: Unloaded) -> Nuisance:
    """Return the friction and the offsets that may differ under load, with their standard deviations."""
    base, regression = loaded.regression.base, loaded.regression
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    group = [base.parameters.items[c].kind.group for c in base.independent]
    # A curve of many small parts is held by its ridge: it does not change part by part.
    places = [int(k) for k in loaded.robot if alone[k] and group[k] in ("friction", "offset") and base.ridge[k] == 0]
    deviations = []
    for k in places:
        size = max((math.sqrt(f.power) / max(float(np.linalg.norm(f.r[:, list(f.columns).index(k)])), 1e-300)
                    for f in regression.factors if k in f.columns and f.rows), default=0.0)
        deviations.append(max(FRICTION_DEVIATION * abs(float(unloaded.values[k])), LEAST_FRICTION * min(size, 1e6)))
    held = [d > 0 for d in deviations]
    places = [k for k, yes in zip(places, held, strict=True) if yes]
    return Nuisance(np.array([*places, *loaded.friction], dtype=np.int64),
                    np.array([*(d for d in deviations if d > 0),
                              *np.full(len(loaded.friction), LOAD_FRICTION_DEVIATION)]))


def likely_gain_errors(loaded: LoadedEquations, fit: LinearPayloadFit, gains: Array) -> Array:
    """Return the relative errors of the drive gains (dof,) that explain most of the residuals.

    They are limited by their covariance (dof, dof); the other unknowns are adapted.
    """
    values, vectors = np.linalg.eigh(gains)
    half = vectors * np.sqrt(np.maximum(values, 0.0))  # errors = half @ z, z of deviation one
    matrix, right, joint = loaded.rows
    torque = matrix @ (fit.columns @ fit.x)
    left = right - torque
    # y = (1 + error) W x + noise: gains scale what there is, not the noise, or none at all would fit best.
    slope = -matrix @ (fit.columns @ fit.by_gain)
    slope[np.arange(len(joint)), joint] += torque
    rows = slope @ half
    z = np.linalg.solve(rows.T @ rows + np.eye(len(gains)), rows.T @ left)
    wrong = np.asarray(half @ z)
    # Of a robot that was held to what can exist, the unknowns do not quite move with the gains: only what helps counts.
    after = right / (1.0 + wrong[joint]) - matrix @ (fit.columns @ (fit.x - fit.by_gain @ wrong))
    likely = np.abs(z).max(initial=0.0) < _UNLIKELY_STD and float(after @ after) < float(left @ left)
    return wrong if likely else np.zeros(len(gains))


def covariances(loaded: LoadedEquations, unloaded: Unloaded, fit: LinearPayloadFit, gains: Array,
                threads: int | None = None) -> tuple[dict[Source, Array], float]:
    """Return covariances (10, 10) of a load's parameters by source, and degrees of freedom of Student's t for
    intervals: the number of independent rows of the joint with the fewest. gains (dof, dof): covariance of relative
    drive gains.

    Autocorrelation of the noise is included: standard errors for independent rows would be ten times too small.
    Residuals due to contradictory gains are attributed to the gains, not to noise.
    """
    wrong = likely_gain_errors(loaded, fit, gains)
    logs = tuple(replace(log, tau=log.tau / (1.0 + wrong)) for log in loaded.equations.logs)
    seen = correlation(replace(loaded.equations, logs=logs), fit.columns @ (fit.x - fit.by_gain @ wrong),
                       inverse=fit.columns @ fit.inverse @ fit.columns.T, weights=loaded.weights, threads=threads)
    middle = fit.columns.T @ correlated_noise_matrix(loaded.regression, seen, loaded.weights) @ fit.columns
    own = fit.inverse[fit.load]
    robot, by_gain = fit.by_robot[fit.load], fit.by_gain[fit.load]
    found: dict[Source, Array] = {
        "noise": own @ middle @ own.T, "robot": robot @ unloaded.covariance @ robot.T,
        "gains": by_gain @ gains @ by_gain.T, "friction": (own * fit.prior) @ own.T}
    independent = seen.effective[seen.rows > 0]
    is_mixed = any(log.mixing is not None for log in logs)  # rows are then no joints: some exist at few contacts only
    fewest = independent.max(initial=0.0) if is_mixed else independent.min(initial=np.inf)
    return found, max(float(fewest), MIN_DEGREES_OF_FREEDOM)

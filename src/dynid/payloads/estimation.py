"""Estimation of mass, centre of mass and inertia of a payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, require_type
from dynid.estimate import Estimate, Problem
from dynid.estimate.linear import joint_weights
from dynid.model import Payload, required_robot_model
from dynid.payloads.body import nearest_body, weighed
from dynid.payloads.frames import mounting_frame
from dynid.payloads.judgement import judged
from dynid.payloads.load_recursion import load_lever
from dynid.payloads.payload_methods import (
    LABEL,
    PAYLOAD_METHODS,
    LinearPayloadFit,
    LoadedEquations,
    Nuisance,
    PayloadMethod,
    Unloaded,
    change_by_load,
    difference,
    loaded,
    payload_fit,
    pseudo_inverse,
)
from dynid.payloads.result import PayloadEstimate, changing_friction, covariances
from dynid.recording import Samples
from dynid.recording.drive_gains import gain_covariance
from dynid.regression import Regression, fold
from dynid.regression.derived import torque_equations
from dynid.signals import fast_length
from dynid.threads import one_blas_thread

# Share of a motion's size: largest RMS difference of the same motion with and without load.
MAX_MOTION_DIFFERENCE = 0.2
_EXAMPLE = "payload(estimate, dynid.prepare(dynid.read('loaded.csv', robot=robot)), 'link7')"
UnloadedData = Problem | Regression | Samples | Sequence[Samples]


@one_blas_thread()
def payload(estimate: Estimate, logs: Samples | Sequence[Samples], frame: str | None = None, *,
            method: PayloadMethod | None = None, unloaded: UnloadedData | None = None, pose: ArrayLike | None = None,
            mass: float | tuple[float, float] | None = None, gain_std: ArrayLike | None = None,
            consistent: bool = True, friction: bool = True, label: str = "payload",
            threads: int | None = None) -> PayloadEstimate:
    """Estimate the inertial parameters of a payload with their covariance.

    Args:
        estimate: the robot, identified without the load.
        logs: samples with the load, prepared like those of the robot.
        frame: frame on which the load is mounted. Default: the flange, see `mounting_frame`.
        method: "residual", "difference", "same-motion" or "together" (Ardiani, eq. 4.2-4.5). Default: "together".
        unloaded: data without load, as a problem, a regression or samples; "same-motion" needs samples. Default: the
            covariance of the estimate.
        pose: pose (4, 4) of the frame of the load in the mounting frame. Default: the identity.
        mass: mass from a scale, kg, alone or with its standard deviation.
        gain_std: relative standard deviation of the drive gains: a number, one per joint, or a covariance (dof,
            dof). Default: the value that the logs state, or 8 %, with half of that variance common to all joints.
        consistent: whether the body must be physically consistent.
        friction: whether friction may differ under load.
        label: name of the load.
        threads: number of threads.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    >>> problem = dynid.Problem.from_model(model, samples)
    >>> load = dynid.terms.Payload("link3", nominal=[0.01, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0, 1.0])
    >>> more = dynid.Model(model.robot, (load,)).inverse_dynamics(load.nominal, q, dq, ddq)
    >>> loaded = dynid.Samples.from_arrays(q, dq, ddq, tau + more, rate=100.0)
    >>> found = dynid.payload(dynid.identify(problem, method="wls"), loaded, "link3", unloaded=problem)
    >>> round(found.mass, 2)
    1.0
    """
    require_type(estimate, Estimate, "payload", _EXAMPLE)
    require_type(logs, Samples, "payload", _EXAMPLE)
    parts = (logs,) if isinstance(logs, Samples) else tuple(logs)
    machine = required_robot_model(estimate.model, "an estimate of a payload").robot
    chosen = _checked_method(method, estimate, parts)
    name = mounting_frame(machine, frame)
    term = Payload(name, np.eye(4) if pose is None else np.asarray(pose, dtype=float), LABEL)
    robot = known_robot(estimate, unloaded, threads)
    facts: dict[str, Any] = {}
    if chosen == "same-motion":
        torques = [same_motion_torques(estimate, log, _unloaded_logs(unloaded)) for log in parts]
        parts = tuple(replace(log, tau=tau, raw_tau=None) for log, (tau, _) in zip(parts, torques, strict=True))
        facts["start_difference_s"] = [shift for _, shift in torques]
    made, fit = _fitted(estimate, parts, term, robot, chosen, friction, threads)
    stated = [log.gain_covariance for log in parts if log.gain_covariance is not None]
    if gain_std is None and len(stated) == len(parts):
        gain_std = np.mean(stated, axis=0)
    known = None if mass is None else (float(mass), 0.0) if isinstance(mass, int | float) else mass
    gains = gain_covariance(gain_std, estimate.model.dof)
    theta, (covariance, degrees_of_freedom) = fit.theta, covariances(made, robot, fit, gains, threads)
    if known is not None:
        theta, covariance = weighed(theta, covariance, known)
    total = np.sum(list(covariance.values()), axis=0)
    exact = known[0] if known is not None and known[1] == 0.0 else None
    # Gains scale a whole body: they do not change its shape, so they must not move it to the border of the cone.
    shape = total - covariance["gains"]
    lever = load_lever(machine, name)
    numbers = nearest_body(theta, shape, fit.identified, exact, lever) if consistent else theta
    found = PayloadEstimate(
        name, chosen, numbers, theta, total, covariance, fit.identified, consistent,
        _error(made, fit, numbers), _error(made, fit, None), np.sqrt(np.diag(gains)),
        tuple(log.source for log in parts), label, facts=facts, degrees_of_freedom=degrees_of_freedom,
        lever=lever)
    return judged(found, estimate, weighed=known is not None, given=gain_std is not None, log=(made, fit, robot))


def _checked_method(method: PayloadMethod | None, estimate: Estimate, logs: Sequence[Samples]) -> PayloadMethod:
    if method is not None and method not in PAYLOAD_METHODS:
        raise ModelError(f"there is no payload method '{method}'; there are {', '.join(PAYLOAD_METHODS)}",
                         code="unknown-payload-method")
    if not any(len(log) for log in logs):
        raise NotPossibleError("there are no samples with the payload", "give a log of a motion with the payload")
    for log in logs:
        if log.dof != estimate.model.dof:
            raise ModelError(f"{log.source} has {log.dof} joints, but the robot identified without load has "
                             f"{estimate.model.dof}", "check whether the log is of another robot", code="other-robot")
    return method or "together"


def known_robot(estimate: Estimate, data: UnloadedData | None, threads: int | None = None) -> Unloaded:
    """Return the parameters of the robot without load, with the information of unloaded data or, without data, that of
    the estimate's covariance."""
    regression = data.regression if isinstance(data, Problem) else data if isinstance(data, Regression) else None
    if regression is None and (logs := _unloaded_logs(data)):
        regression = fold(torque_equations(estimate.model, logs, estimate.base), threads=threads)
    same = regression is not None and np.array_equal(regression.base.independent, estimate.base.independent)
    if regression is not None and same:
        weights = joint_weights(regression)
        stacked = regression.stack(weights)
        back, _ = pseudo_inverse(stacked.r)
        pushed = np.zeros((len(estimate.base), regression.dof))
        for j, (w, factor) in enumerate(zip(weights, regression.factors, strict=True)):
            pushed[factor.columns, j] = w ** 2 * factor.r[:, :-1].T @ factor.r[:, -1]
        return Unloaded(estimate.values, estimate.covariance, stacked.r, back @ (back.T @ pushed))
    values, vectors = np.linalg.eigh(estimate.covariance)
    kept = values > 1e-14 * values.max(initial=1e-300)
    return Unloaded(estimate.values, estimate.covariance, (vectors[:, kept] / np.sqrt(values[kept])).T)


def _unloaded_logs(data: UnloadedData | None) -> tuple[Samples, ...]:
    """Return the samples without load; an empty tuple for a regression, which contains no samples."""
    if data is None or isinstance(data, Regression):
        return ()
    return data.data if isinstance(data, Problem) else (data,) if isinstance(data, Samples) else tuple(data)


def _fitted(estimate: Estimate, logs: Sequence[Samples], term: Payload, robot: Unloaded, method: PayloadMethod,
            friction: bool, threads: int | None) -> tuple[LoadedEquations, LinearPayloadFit]:
    """Return the equations of the loaded logs and their linear fit by a method. With load-dependent friction, the fit
    is computed twice, because the friction depends on the estimated load."""
    numbers: Array | None = None
    for _ in range(2 if friction else 1):
        made = loaded(estimate, logs, term, friction=friction, numbers=numbers, threads=threads)
        nuisance = changing_friction(made, robot) if friction else Nuisance.none()
        fit = payload_fit(made, robot, nuisance, fixed=method not in ("together", "difference"))
        numbers = fit.theta
    if method == "difference":
        x = fit.x.copy()
        x[fit.load] = difference(made, robot, nuisance, change_by_load(estimate, term))
        fit = replace(fit, x=x)
    return made, fit


def _error(made: LoadedEquations, fit: LinearPayloadFit, numbers: Array | None) -> float:
    """Return the relative error of the loaded torques, percent, with a load (10,), or None for the robot alone."""
    x = fit.x.copy()
    x[fit.load] = 0.0 if numbers is None else numbers
    return made.regression.relative_error(fit.columns @ x)


def same_motion_torques(estimate: Estimate, loaded: Samples, others: Sequence[Samples]) -> tuple[Array, float]:
    """Return torques (samples, dof) of the loaded log corrected by the model error along the same motion without load,
    and the time shift between the two logs, s.

    The corrected torques are y_wl - (y_wol - W beta), from torques y_wl with and y_wol without load and the unloaded
    model W beta. For equal motions, W beta cancels in the fit (eq. 4.4); otherwise the model corrects the difference.
    """
    shifts = [(*_shift(loaded, other), other) for other in others]
    needs = "method 'same-motion' needs a log of the same motion without load"
    advice = "record such a log, or use method 'together'"
    if not shifts:
        raise NotPossibleError(needs, advice, code="no-same-motion")
    off, rows, other = min(shifts, key=lambda item: item[0])
    if off > MAX_MOTION_DIFFERENCE:
        raise NotPossibleError(f"{needs}: the nearest, {other.source}, differs by {100 * off:.0f} % of the motion of "
                               f"{loaded.source}", advice, code="no-same-motion")
    error = other.tau - estimate.predict(other)
    error[~other.keep] = 0.0
    at = np.clip(np.arange(len(loaded)) - rows, 0, len(other) - 1)
    return loaded.tau - error[at], rows / loaded.rate


def _shift(loaded: Samples, other: Samples) -> tuple[float, int]:
    """Return the RMS distance of two motions relative to their size, and the delay of the loaded motion in rows."""
    if loaded.dof != other.dof or abs(loaded.rate / other.rate - 1.0) > 1e-6:
        return np.inf, 0
    size = fast_length(len(loaded) + len(other))
    total, middle = np.zeros(size), loaded.q.mean(axis=0)
    for j in range(loaded.dof):
        spectra = [np.fft.rfft(x.q[:, j] - middle[j], size) for x in (loaded, other)]
        total += np.fft.irfft(spectra[0] * np.conj(spectra[1]), size)
    rows = int(np.argmax(total))
    rows = rows if rows < len(loaded) else rows - size
    low, high = max(0, rows), min(len(loaded), len(other) + rows)
    if high - low < 0.5 * len(loaded):
        return np.inf, 0
    apart = loaded.q[low:high] - other.q[low - rows:high - rows]
    return float(np.sqrt(np.mean(apart ** 2) / np.mean((loaded.q - middle) ** 2))), rows

"""Instruments without simulation: references, references filtered by identified loops, or motors of flexible joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.closed_loop.loop import Log, loop_response
from dynid.estimate.instruments.equations import hann, smooth
from dynid.model import FlexibleModel
from dynid.recording import Samples
from dynid.signals import at_times
from dynid.simulation import Reference


def plain_references(logs: Sequence[Log]) -> list[Samples]:
    """Return the references at the times of the samples, as instruments (Ardiani, s. 3.3.2, remark 2)."""
    return [_at_samples(log, log.reference.q) for log in logs]


def filtered_references(logs: Sequence[Log]) -> list[Samples]:
    """Return the references filtered by the transfer function H_j(s) = (b1 s + 1) / (a2 s^2 + a1 s + 1) of each joint.

    H_j is fitted to reference and position of the joint (Ardiani, eq. 3.5-3.8), as a continuous-time transfer function
    by the output-error method.
    """
    positions = [at_times(log.reference.t, log.samples.t, log.samples.q) for log in logs]
    fitted = [closed_loop_transfer([(log.reference.q[:, j], q[:, j]) for log, q in zip(logs, positions, strict=True)],
                                   logs[0].reference.rate) for j in range(logs[0].samples.dof)]
    return [_at_samples(log, np.column_stack([response(h, log.reference.q[:, j], log.reference.rate)
                                              for j, h in enumerate(fitted)])) for log in logs]


def closed_loop_transfer(pairs: Sequence[tuple[Array, Array]], rate: float, *, free_start: bool = False) -> Array:
    """Return (a2, a1, b1), all positive, of one joint's transfer function H(s) = (b1 s + 1) / (a2 s^2 + a1 s + 1).
    pairs: reference and position (ticks,) of each log at `rate` Hz. free_start: whether a log may begin in motion."""
    from scipy.optimize import least_squares

    length = sum(len(x) for x, _ in pairs) / rate
    if not any(np.ptp(x) > 0 for x, _ in pairs):
        return np.array([1e-6, 1e-3, 1e-9])  # a joint with a constant reference

    def miss(logs: Array) -> Array:
        parameters = np.exp(np.clip(logs, -40.0, 20.0))
        return np.concatenate([(response_from(parameters, x, y, rate) if free_start else response(parameters, x, rate))
                               - y for x, y in pairs])

    best = None
    starts = [np.log([1.0 / omega ** 2, 1.0 / omega, 0.1 / omega])
              for omega in np.geomspace(max(2.0, 10.0 / length), 0.3 * rate, 5)]
    if free_start:  # each evaluation needs three filters, so only the two best starts are refined
        starts = sorted(starts, key=lambda one: float(np.sum(miss(one) ** 2)))[:2]
    for start in starts:
        try:
            found = least_squares(miss, start, method="lm", max_nfev=60)
        except ValueError:
            continue
        if np.isfinite(found.cost) and (best is None or found.cost < best.cost):
            best = found
    if best is None:
        raise NotPossibleError("no stable transfer function from the reference to the measured position fits the log",
                               "check that the reference belongs to this log", "no-transfer-function")
    return np.exp(best.x)


def response(parameters: Array, x: Array, rate: float) -> Array:
    """Return the response (ticks,) of the fitted loop, initially at rest, to a reference x (ticks,)."""
    a2, a1, b1 = parameters
    return loop_response([b1, 1.0], [a2, a1, 1.0], x, rate)


def response_from(parameters: Array, x: Array, y: Array, rate: float) -> Array:
    """Return the response (ticks,) of the fitted loop to a reference x, from the initial state that fits y best."""
    from scipy.signal import lfilter

    a2, a1, b1 = parameters
    c = 2.0 * rate  # s is replaced by c (z - 1) / (z + 1)
    below = np.array([a2 * c * c + a1 * c + 1.0, 2.0 - 2.0 * a2 * c * c, a2 * c * c - a1 * c + 1.0])
    b, a = np.array([b1 * c + 1.0, 2.0, 1.0 - b1 * c]) / below[0], below / below[0]
    answer, nothing = np.asarray(lfilter(b, a, x)), np.zeros(len(x))
    basis = np.column_stack([lfilter(b, a, nothing, zi=unit)[0] for unit in np.eye(2)])
    if not np.isfinite(basis).all() or not np.isfinite(answer).all():
        return answer
    start = np.linalg.pinv(basis.T @ basis, rcond=1e-12, hermitian=True) @ (basis.T @ (y - answer))
    return np.asarray(answer + basis @ start)


def _at_samples(log: Log, q: Array) -> Samples:
    """Return positions (ticks, dof) at the times of a log's reference as a motion at the times of its samples."""
    motion = Reference.from_arrays(q, rate=log.reference.rate, start=log.reference.start)
    position, velocity, acceleration = (at_times(log.samples.t, motion.t, x) for x in (motion.q, motion.dq, motion.ddq))
    return replace(log.samples, q=position, dq=velocity, ddq=acceleration)


# Alternating updates of deflections and torques; each reduces the error by the factor J w^2 / (K + J w^2).
_DEFLECTION_ITERATIONS = 2


def with_joint_deflection(model: FlexibleModel, theta: Array, motions: Sequence[Samples]) -> list[Samples]:
    """Return motions with link positions q = th - tau_l / K, predicted with parameters theta (parameters,).

    th are the motor positions, tau_l the torques of the links, and K the joint stiffnesses. The positions are smoothed,
    since dry friction makes them jump. As instruments they are free of the noise of both encoders, and unlike
    references of the motors they include the joint deflection.
    """
    values = dict(zip(model.parameters.names, model.parameters.vector(theta), strict=True))
    stiffness = np.array([values[f"K{j + 1}"] for j in model.bending])
    if not np.all(stiffness > 0.0):
        name = model.links.joint_names[model.bending[int(np.argmin(stiffness))]]
        raise NotPossibleError(f"{name} shows no stiffness in the log, so its deflection cannot be modelled",
                               "check that motor_position and position belong to the same joints and have the same "
                               "direction", "no-stiffness")
    own = np.array([values[name] for name in model.links.parameters.names])
    return [_deflected(model, own, stiffness, motion) for motion in motions]


def _deflected(model: FlexibleModel, theta: Array, stiffness: Array, motion: Samples) -> Samples:
    n, bending, window = model.links.dof, list(model.bending), hann(motion.rate)
    links = [np.array(signal[:, :n]) for signal in (motion.q, motion.dq, motion.ddq)]
    for _ in range(_DEFLECTION_ITERATIONS):
        torque = model.links.inverse_dynamics(theta, *links)[:, bending]
        for start, stop in motion.segments:
            rows = slice(int(start), int(stop))
            by = np.column_stack([smooth(torque[rows, k], window) for k in range(len(bending))]) / stiffness
            for signal, link in zip((motion.q, motion.dq, motion.ddq), links, strict=True):
                link[rows, bending] = signal[rows, n:] - by
                by = np.gradient(by, 1.0 / motion.rate, axis=0)
    q, dq, ddq = (np.hstack([link, signal[:, n:]])
                  for link, signal in zip(links, (motion.q, motion.dq, motion.ddq), strict=True))
    return replace(motion, q=q, dq=dq, ddq=ddq)

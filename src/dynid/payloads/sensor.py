"""Load on a force-torque sensor: its ten inertial parameters, the sensor's bias, and the mounting of the sensor.

    wrench = s [R 0; 0 R] W_pl(q, dq, ddq) theta + bias    (Ardiani, eq. 4.6)

W_pl is the wrench that a body of unit parameters needs, in the axes of the mounting frame about its origin. The
rotation matrix R expresses the axes of this frame in sensor axes. The sign s is -1 if the sensor measures the force of
the load on the sensor, and not the reaction. The least-squares 3 x 3 matrix from weight to force is s m R, with mass m.
This matrix gives initial values of R and s; Gauss-Newton iterations then estimate theta, bias and R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.findings import Finding
from dynid.payloads.body import distance, nearest_body
from dynid.payloads.frames import mounting_frame
from dynid.payloads.result import PayloadEstimate
from dynid.recording import Samples
from dynid.regression.autocorrelation import autocovariance, noise_matrix
from dynid.robot import Robot
from dynid.robot import inertia as ten

_GAUSS_NEWTON_STEPS = 20  # largest number of iterations
# Smallest ratio of the extreme singular values of the weight directions that determines a mounting.
_MIN_DIRECTION_SHARE = 1e-3
_ALIGNED_STANDARD_ERRORS = 3.0  # standard errors of the angles, below which a sensor counts as aligned with its frame
_SMALL_ANGLE = np.radians(0.5)  # rad: angle below which a sensor counts as aligned in any case
_IMPOSSIBLE_STD = 6.0  # standard deviations between the free estimate and the nearest physically consistent body


@dataclass(frozen=True, eq=False)
class Mounting:
    """Mounting of a force-torque sensor.

    Attributes:
        rotation: axes (3, 3) of the mounting frame in sensor axes.
        angles, std: rotation vector (3,), rad, and its standard errors.
        sign: -1 if the sensor measures the force of the load on the sensor, 1 if it measures the reaction.
        bias: constant offset (6,) of the measured force and moment, N and N m.
        straight: whether the sensor is aligned with the mounting frame.
    """

    rotation: Array
    angles: Array
    std: Array
    sign: float
    bias: Array
    straight: bool


def sensor_payload(robot: Robot, logs: Samples | Sequence[Samples], frame: str | None = None, *,
                   consistent: bool = True, label: str = "payload") -> tuple[PayloadEstimate, Mounting]:
    """Return the payload on a force-torque sensor in a frame, and the mounting of the sensor.

    Args:
        robot, label: the robot, and the name of the load.
        logs: samples that have a measured `wrench`.
        frame: mounting frame at the sensor's origin. Default: the flange, see `mounting_frame`.
        consistent: whether the body must be physically consistent.
    """
    from scipy.spatial.transform import Rotation

    parts = (logs,) if isinstance(logs, Samples) else tuple(logs)
    name = mounting_frame(robot, frame)
    for log in parts:
        if log.wrench is None:
            raise ModelError(f"{log.source} has no wrench of a force-torque sensor",
                             "map its six columns with --set 'log.wrench=[...]'", code="no-wrench")
    rows = [log.keep.any(axis=1) for log in parts]
    columns = np.concatenate([wrench_columns(robot, name, log)[keep] for log, keep in zip(parts, rows, strict=True)])
    measured = np.concatenate([np.asarray(log.wrench)[keep] for log, keep in zip(parts, rows, strict=True)])
    rotation, sign = _first_mounting(columns, measured)
    fit = _gauss_newton(columns, measured, rotation, sign, turning=True)
    angles, std = Rotation.from_matrix(fit.rotation).as_rotvec(), np.sqrt(np.diag(fit.covariance)[16:])
    if np.all(np.abs(angles) < np.maximum(_ALIGNED_STANDARD_ERRORS * std, _SMALL_ANGLE)):
        fit, angles, std = _gauss_newton(columns, measured, np.eye(3), sign, turning=False), np.zeros(3), np.zeros(3)
    spread = fit.covariance[:10, :10]
    numbers = nearest_body(fit.theta, spread, np.ones(10, dtype=bool)) if consistent else fit.theta
    mounting = Mounting(fit.rotation, angles, std, sign, fit.bias, not fit.turning)
    size, rest = float(np.sum(measured ** 2)), float(np.sum(fit.residual ** 2))
    bias_only = float(np.sum((measured - measured.mean(axis=0)) ** 2))
    estimate = PayloadEstimate(
        name, "sensor", numbers, fit.theta, spread, {"noise": spread}, np.ones(10, dtype=bool), consistent,
        100.0 * np.sqrt(rest / size), 100.0 * np.sqrt(bias_only / size), np.zeros(robot.dof),
        tuple(log.source for log in parts), label, tuple(_findings(fit.theta, numbers, spread, consistent)),
        {"sensor": {
            "bias": mounting.bias.tolist(), "rotation": mounting.rotation.tolist(), "sign": mounting.sign,
            "angles_deg": np.degrees(mounting.angles).tolist(), "angles_std_deg": np.degrees(mounting.std).tolist(),
            "straight": mounting.straight}})
    return estimate, mounting


def _findings(theta: Array, numbers: Array, covariance: Array, consistent: bool) -> list[Finding]:
    away = distance(theta, numbers, covariance) if consistent else 0.0
    if away <= _IMPOSSIBLE_STD:
        return []
    return [Finding("payload-cannot-exist", "problem", "warning",
                    "The sensor data correspond to a load that is not physically consistent; the nearest consistent "
                    f"load differs by {away:.1f} standard deviations: check units and frame.",
                    "payload not physically consistent", evidence={"standard_errors": away})]


def wrench_columns(robot: Robot, frame: str, samples: Samples) -> Array:
    """Return W_pl (samples, 6, 10): force and moment that a body on a frame needs per unit of its inertial parameters.

    Force and moment are in the axes of the frame, about its origin.
    """
    place = robot.frame(frame)
    to_body, to_joint = ten.change_frame(place.pose), robot.joints[place.body].after @ place.pose
    turn, origin = to_joint[:3, :3], to_joint[:3, 3]
    out = np.empty((len(samples), 6, 10))
    for k in range(10):
        inertias = np.zeros((robot.dof, 10))
        inertias[place.body] = to_body[:, k]
        wrench = dynamics.link_wrenches(robot, inertias, samples.q, samples.dq, samples.ddq)[:, place.body]
        force, moment = wrench[:, :3], wrench[:, 3:] - np.cross(origin, wrench[:, :3])
        out[:, :3, k], out[:, 3:, k] = force @ turn, moment @ turn
    return out


def _first_mounting(columns: Array, measured: Array) -> tuple[Array, float]:
    """Return rotation R and sign s of a force sensor, from the least-squares matrix s m R between weight and force."""
    weight = columns[:, :3, 9]
    known = np.column_stack([weight, np.ones(len(weight))])
    spread = np.linalg.svd(weight - weight.mean(axis=0), compute_uv=False)
    if spread[-1] < _MIN_DIRECTION_SHARE * max(float(spread[0]), 1e-300):
        raise NotPossibleError("the sensor does not rotate enough to distinguish its bias from the weight of the load",
                               "record at least four different orientations", code="sensor-rotates-too-little")
    matrix = np.linalg.lstsq(known, measured[:, :3], rcond=None)[0][:3].T
    left, _, right = np.linalg.svd(matrix)
    sign = 1.0 if np.linalg.det(left @ right) > 0 else -1.0
    return sign * (left @ right), sign


@dataclass(frozen=True, eq=False)
class _Fit:
    theta: Array
    bias: Array
    rotation: Array
    covariance: Array  # of theta, bias and angles (19, 19), or without the angles (16, 16)
    residual: Array
    turning: bool


def _gauss_newton(columns: Array, measured: Array, rotation: Array, sign: float, *, turning: bool) -> _Fit:
    """Return the least-squares payload, sensor bias and rotation of the sensor, each channel weighted by its noise.

    columns: see `wrench_columns`. measured: measured wrench (samples, 6). rotation, sign: initial rotation (3, 3) of
    the sensor, and sign of its forces. turning: whether the rotation is estimated.
    """
    from scipy.spatial.transform import Rotation

    n, weights = len(measured), np.ones(6)
    theta, bias = np.zeros(10), np.zeros(6)
    for step in range(_GAUSS_NEWTON_STEPS):
        jacobian = np.zeros((n, 6, 19 if turning else 16))
        for part in (slice(0, 3), slice(3, 6)):
            turned = sign * np.einsum("ab,sbk->sak", rotation, columns[:, part])
            jacobian[:, part, :10] = turned
            if turning and step:
                # R -> R exp(d): R (d x y) = -R [y] d
                jacobian[:, part, 16:] = -sign * np.einsum("ab,sbc->sac", rotation, ten.skew(columns[:, part] @ theta))
        jacobian[:, np.arange(6), 10 + np.arange(6)] = 1.0
        linear = np.concatenate([theta, bias, np.zeros(3 if turning else 0)])
        target = measured - jacobian[:, :, :16] @ linear[:16]
        rows = (jacobian * weights[:, None]).reshape(6 * n, -1)
        used = slice(None) if step or not turning else slice(0, 16)
        moved = np.zeros(rows.shape[1])
        moved[used] = np.linalg.lstsq(rows[:, used], (target * weights).reshape(-1), rcond=None)[0]
        theta, bias = theta + moved[:10], bias + moved[10:16]
        if turning:
            rotation = rotation @ Rotation.from_rotvec(moved[16:]).as_matrix()
        residual = target - jacobian @ moved
        weights = 1.0 / np.maximum(residual.std(axis=0), 1e-9 * np.abs(measured).max())
        if step > 2 and np.abs(moved[16:]).max(initial=0.0) < 1e-10:
            break
    inverse = np.linalg.pinv(rows.T @ rows, hermitian=True, rcond=1e-14)
    every = np.ones(n, dtype=bool)
    middle = np.sum([weights[k] ** 4 * noise_matrix(np.ascontiguousarray(jacobian[:, k].T), every,
                                                    autocovariance(residual[:, k], every)) for k in range(6)], axis=0)
    return _Fit(theta, bias, rotation, inverse @ middle @ inverse, residual, turning)


def fused(first: PayloadEstimate, second: PayloadEstimate) -> PayloadEstimate:
    """Return one payload from two estimates on the same frame, such as those from joint torques and from a force-torque
    sensor, weighted by their covariances."""
    if first.frame != second.frame:
        raise ModelError("two payload estimates can only be combined on one frame: the first is on "
                         f"'{first.frame}', the second on '{second.frame}'", "use one frame for both",
                         code="frames-differ")
    gain = first.covariance @ np.linalg.pinv(first.covariance + second.covariance, hermitian=True, rcond=1e-14)
    keep = np.eye(10) - gain
    theta = first.free + gain @ (second.free - first.free)
    parts = {source: keep @ part @ keep.T for source, part in first.parts.items()}
    for source, part in second.parts.items():
        parts[source] = parts.get(source, np.zeros((10, 10))) + gain @ part @ gain.T
    total = np.sum(list(parts.values()), axis=0)
    numbers = nearest_body(theta, total - parts.get("gains", np.zeros((10, 10))), np.ones(10, dtype=bool)) \
        if first.consistent else theta
    return PayloadEstimate(first.frame, f"{first.method} and {second.method}", numbers, theta, total, parts,
                           first.identified | second.identified, first.consistent, first.relative_error,
                           first.unloaded_error, first.gain_std,
                           tuple(dict.fromkeys((*first.logs, *second.logs))), first.label,
                           (*first.findings, *second.findings), {**first.facts, **second.facts})

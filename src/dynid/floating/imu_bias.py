"""Constant errors of an IMU, from the orientation of the base or from rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.root_frame import quaternions
from dynid.floating.floating_log import FloatingLog
from dynid.robot import Robot

BIAS_WINDOW = 0.5  # s over which specific force is integrated
MIN_BIAS_WINDOWS = 6  # below which a bias has no standard error worth using
TYPICAL_BIAS = np.array([0.005] * 3 + [0.05] * 3)  # rad/s and m/s^2: of MEMS sensors, where nothing shows the bias
REST_SPEED = 0.02  # rad/s of every joint below which the robot rests
MIN_REST = 0.5  # s of rest that the bias of angular rates is taken from
GRAVITY_RANGE = (0.85, 1.15)  # of the mean specific force over gravity, within which an IMU is not mistaken


def specific_force_ratio(robot: Robot, specific_force: Array) -> float:
    """Return the mean magnitude of the specific force over that of gravity; near one for an accelerometer."""
    size = float(np.linalg.norm(robot.gravity)) or 9.81
    return float(np.median(np.linalg.norm(specific_force, axis=1))) / size


def with_bias(robot: Robot, log: FloatingLog) -> tuple[FloatingLog, str]:
    """Return the log with the bias of its IMU and its standard error, and a sentence on it.

    With an orientation, angular rates are compared with its derivative, and specific force with gravity: the integral
    over a window, in world axes, is the change of velocity, which is small for a robot on its feet. Without an
    orientation the angular rates at rest are taken, and no bias of the specific force.
    """
    found, std, said = _bias(robot, log)
    assert log.imu is not None
    return replace(log, imu=replace(log.imu, bias=found, bias_std=std)), said


def _bias(robot: Robot, log: FloatingLog) -> tuple[Array, Array, str]:
    """Return the bias (6,) of angular rate and specific force, its standard errors, and a sentence."""
    assert log.imu is not None
    rate, force, bias = np.asarray(log.imu.angular_rate), np.asarray(log.imu.specific_force), np.zeros(6)
    t = np.asarray(log.t, dtype=float)
    step = np.gradient(t)
    if log.orientation is None:
        speed = np.abs(np.gradient(np.asarray(log.q), t, axis=0)).max(axis=1)
        window = max(1, round(0.1 / float(np.median(step))))
        smooth = np.convolve(speed, np.ones(window) / window, mode="same")
        rest = smooth < REST_SPEED
        if step[rest].sum() < MIN_REST:
            return bias, TYPICAL_BIAS, ("the bias of the imu is not estimated, because the log has neither an "
                                        f"orientation of the base nor rest; {TYPICAL_BIAS[3]:g} m/s^2 is taken as its "
                                        "standard error")
        bias[:3] = rate[rest].mean(axis=0)
        return bias, TYPICAL_BIAS, (f"bias of the angular rate from rest: {_triple(bias[:3])} rad/s; that of the "
                                    "specific force is not estimated, because the log has no orientation of the base; "
                                    f"{TYPICAL_BIAS[3]:g} m/s^2 is taken as its standard error")
    turn = robot.frame(log.imu.frame).pose[:3, :3]
    turns = dynamics.rotations(quaternions(dynamics.rotations(log.orientation))) @ turn
    edges = np.searchsorted(t, np.arange(t[0], t[-1], BIAS_WINDOW))
    spans = [slice(a, b) for a, b in pairwise(edges) if b - a > 2]
    if len(spans) < MIN_BIAS_WINDOWS:
        return bias, TYPICAL_BIAS, "the bias of the imu is not estimated, because the log is short"
    # Rotation over each window, measured after integrated: to first order minus the bias, turned to the window's end.
    turned = np.array([_turned(_integrated(rate[one], step[one]).T @ turns[one.start].T @ turns[one.stop - 1])
                       for one in spans])
    carried = np.array([np.einsum("ji,sjk,s->ik", turns[one.stop - 1], turns[one][:-1], step[one][:-1])
                        for one in spans])
    rates, rates_std = _solved(carried, -turned)
    matrices = np.array([(turns[one] * step[one, None, None]).sum(axis=0) for one in spans])
    gained = np.array([np.einsum("sij,sj,s->i", turns[one], force[one], step[one])
                       + np.asarray(robot.gravity) * step[one].sum() for one in spans])
    if log.position is not None:  # the change of velocity is known
        velocity = np.gradient(np.asarray(log.position), t, axis=0)
        gained -= np.array([velocity[min(one.stop, len(t) - 1)] - velocity[one.start] for one in spans])
    forces, forces_std = _solved(matrices, gained)
    bias, error = np.concatenate([rates, forces]), np.concatenate([rates_std, forces_std])
    return bias, error, (f"bias of the imu from the orientation of the base, which is removed: angular rate "
                         f"{_triple(bias[:3])} rad/s, specific force {_triple(bias[3:])} m/s^2 (standard errors "
                         f"{_triple(error[:3])} rad/s, {_triple(error[3:])} m/s^2)")


def _solved(matrices: Array, values: Array) -> tuple[Array, Array]:
    """Return the solution (3,) of stacked equations (windows, 3, 3) x = values (windows, 3), and its
    standard errors."""
    stacked, right = matrices.reshape(-1, 3), values.ravel()
    found: Array = np.asarray(np.linalg.lstsq(stacked, right, rcond=None)[0], dtype=float)
    left = right - stacked @ found
    variance = float(left @ left) / max(1, len(left) - 3)
    return found, np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked)) * variance)


def _turned(rotation: Array) -> Array:
    """Return the rotation vector (3,) of a rotation matrix of less than half a turn."""
    vector = 0.5 * np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0],
                             rotation[1, 0] - rotation[0, 1]])
    sine, cosine = np.linalg.norm(vector), 0.5 * (np.trace(rotation) - 1.0)
    return np.asarray(vector * (np.arctan2(sine, cosine) / sine if sine > 1e-9 else 1.0))


def _integrated(rate: Array, step: Array) -> Array:
    """Return the rotation (3, 3) from the first sample to the last of angular rates (samples, 3) in body axes."""
    total = np.eye(3)
    middle = 0.5 * (rate[1:] + rate[:-1]) * step[:-1, None]
    for x, y, z in middle:
        angle = np.sqrt(x * x + y * y + z * z)
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        a = np.sinc(angle / np.pi)
        b = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
        total = total @ (np.eye(3) + a * cross + b * cross @ cross)
    return total


def _triple(values: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in values)

"""Statistics of the torque errors of a robot without contact, and the detection threshold for contacts.

Residuals in free motion have three sources, each with a variance per joint: noise of the torques, noise of the
accelerations, multiplied by the inertia matrix M(q), and the undetermined dry friction of a slow joint. The three
sources are separated by regression of the squared residuals on M(q) and the share of slow motion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.contacts.observer import FilterOptions, Observer, ObserverMethod, OutsideTorques
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate
from dynid.model import complete
from dynid.quantities import ALARMS, check_quantity
from dynid.recording import Recording
from dynid.regression.base import dry_columns
from dynid.threads import one_blas_thread

_MAXIMUM_WINDOWS = 5.0  # filter windows per block: the maxima of two blocks are nearly independent
_TAIL_SHARE = 0.1  # share of the largest maxima, from which the tail of the distribution is estimated
MIN_EXCEEDANCES = 8  # smallest number of maxima from which the tail is estimated
_SLOW_SPEED = 0.01  # share of a joint's largest speed below which the joint is slow
MIN_SLOW_SECONDS = 2.0  # s of slow motion of a joint, needed for the torque error at low speed
MIN_FREE_SECONDS = 5.0  # s of free motion, needed for the torque noise
MIN_NOISE_SHARE = 1e-6  # lower bound of the standard deviation of the noise, as a share of a joint's largest torque
MAX_VARIANCE_ROWS = 40000  # rows from which the variances are estimated
_WEIGHTING_ROUNDS = 8  # rounds of reweighting the squared residuals by their variance
_MEDIAN_OF_SQUARED_NORMAL = 0.455  # median of the square of a standard normal variable


@dataclass(frozen=True, eq=False)
class FreeMotion:
    """Statistics of torque errors in free motion, that is, without contact.

    Attributes:
        estimate: the identified robot.
        torque, acceleration, friction: standard deviations (dof,) of torques, N m or N, of accelerations, rad/s^2 or
            m/s^2, and of the friction of a slow joint, N m or N.
        bandwidth: bandwidth of the external torques, rad/s.
        level: detection threshold of a contact, as a squared Mahalanobis norm of the external torques.
        alarms: false alarms per hour, that is, how often free motion crosses the detection threshold.
        seconds: duration of the free motion, s.
        options: options of the filter of the external torques.
    """

    estimate: Estimate
    torque: Array
    acceleration: Array
    friction: Array
    bandwidth: float
    level: float
    alarms: float
    seconds: float
    options: FilterOptions

    def covariance(self, torques: OutsideTorques) -> Array:
        """Return the covariance (m, dof, dof) of the external torques without contact, from noise and parameter
        errors."""
        inertia = complete(self.estimate.model).inertia_matrix(self.estimate.full, torques.q)
        covariance = (inertia * self.acceleration ** 2) @ np.swapaxes(inertia, 1, 2) + torques.model
        joints = np.arange(len(self.torque))
        covariance[:, joints, joints] += self.torque ** 2 + (torques.slow * self.friction) ** 2
        return covariance

    def whitened(self, torques: OutsideTorques) -> Array:
        """Return whitened external torques (m, dof): without contact, they are independent with unit variance."""
        try:
            lower = np.linalg.cholesky(self.covariance(torques))
        except np.linalg.LinAlgError:
            raise NotPossibleError("the covariance of the torques in free motion is not positive definite: the result "
                                   "or the log contains implausible values", "identify the robot again") from None
        return np.linalg.solve(lower, torques.tau[:, :, None])[:, :, 0]


@one_blas_thread()
def free_motion(estimate: Estimate, logs: Recording | Sequence[Recording], method: ObserverMethod = "momentum",
                window: float = 0.03, alarms: float = 1.0) -> FreeMotion:
    """Return the statistics of the torque errors in logs without contact.

    Args:
        estimate: the identified robot.
        logs: one or several logs in which nobody touches the robot.
        method: "momentum" (momentum observer) or "inverse" (filtered inverse dynamics).
        window: length of the filter window, s.
        alarms: false alarms allowed per hour, from which the detection threshold is computed.
    """
    recordings = (logs,) if isinstance(logs, Recording) else tuple(logs)
    check_quantity(ALARMS, alarms, "the rate of false alarms", ModelError)
    if not recordings or sum(one.duration for one in recordings) < MIN_FREE_SECONDS:
        raise NotPossibleError(f"the torque noise needs logs of at least {MIN_FREE_SECONDS:g} s of free motion",
                               "give a log in which nobody touches the robot", "no-free-motion")
    for one in recordings:
        check_joints(estimate, one)
    rate = float(f"{recordings[0].rate:.6g}")
    options = FilterOptions(method, window, rate, tuple(_slow_speeds(recordings)))
    torques = OutsideTorques.joined([Observer(estimate, options).push(one.t, one.q, one.tau) for one in recordings])
    if len(torques.t) < MIN_FREE_SECONDS * rate:
        raise NotPossibleError(f"less than {MIN_FREE_SECONDS:g} s of free motion remain between the gaps of the logs",
                               "give a log in which nobody touches the robot", "no-free-motion")
    largest = np.max([np.abs(one.tau).max(axis=0) for one in recordings], axis=0)
    return _with_level(replace(_variances(estimate, torques, options, largest), alarms=alarms), torques)


def check_joints(estimate: Estimate, log: Recording) -> None:
    """Raise an error if a log has other joints than the estimate, or lacks torques of a joint."""
    names = complete(estimate.model).joint_names
    if log.dof != len(names):
        raise ModelError(f"{log.source} has {log.dof} joints, but the identified robot has {len(names)}",
                         "check whether the log is of another robot", code="other-robot")
    if log.unmeasured:
        raise ModelError(f"{log.source} has no torques of joint '{log.unmeasured[0]}', on which external forces may "
                         "act", "log the torques of all joints", code="torque-not-measured")


def _slow_speeds(logs: Sequence[Recording]) -> Array:
    """Return the speed of each joint (dof,), rad/s or m/s, below which the sign of its velocity is uncertain."""
    top = np.max([np.quantile(np.abs(np.gradient(one.q, one.t, axis=0)), 0.99, axis=0) for one in logs], axis=0)
    reach = np.max([np.ptp(one.q, axis=0) for one in logs], axis=0)
    if not np.any(reach > 1e-3):
        raise NotPossibleError(f"no joint moves in {logs[0].source}, so the log does not show the noise of free motion",
                               "give a log in which the robot moves and nobody touches it", "no-free-motion")
    return np.asarray(_SLOW_SPEED * top)


def _variances(estimate: Estimate, torques: OutsideTorques, options: FilterOptions, largest: Array) -> FreeMotion:
    """Return the standard deviations of torque noise, acceleration noise and low-speed friction, and no detection
    threshold yet. The variances are fitted to the squared residuals by non-negative least squares. largest: largest
    torques (dof,), N m or N."""
    from scipy.optimize import nnls

    n, few = torques.tau.shape[1], torques.rows(slice(None, None, -(-len(torques.t) // MAX_VARIANCE_ROWS)))
    inertia = complete(estimate.model).inertia_matrix(estimate.full, few.q)
    squares, least = few.tau ** 2, (MIN_NOISE_SHARE * np.maximum(largest, largest.max() * 1e-3)) ** 2
    features = np.zeros((n, len(few.t), 3 * n))
    for j in range(n):
        features[j, :, j], features[j, :, n:2 * n] = 1.0, inertia[:, j] ** 2
        features[j, :, 2 * n + j] = few.slow[:, j] ** 2
    found = np.concatenate([np.median(squares, axis=0) / _MEDIAN_OF_SQUARED_NORMAL, np.zeros(n), squares.max(axis=0)])
    for _ in range(_WEIGHTING_ROUNDS):
        gram, right = np.zeros((3 * n, 3 * n)), np.zeros(3 * n)
        for j in range(n):
            variance = features[j] @ found + least[j]
            rows = features[j] / variance[:, None]
            gram += rows.T @ rows
            right += rows.T @ (squares[:, j] / variance)
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        factor = np.linalg.cholesky(gram / np.outer(scale, scale) + 1e-9 * np.eye(3 * n))
        found = nnls(factor.T, np.linalg.solve(factor, right / scale))[0] / scale
    torque, acceleration, friction = found.reshape(3, n)
    known = few.slow.sum(axis=0) * len(torques.t) / len(few.t) > MIN_SLOW_SECONDS * options.rate
    # Dry friction at rest has any value between -Fc and Fc, but the model predicts one of the two.
    friction = np.where(known, friction, np.maximum(friction, (2.0 * _dry_friction(estimate)) ** 2 / 3.0))
    return FreeMotion(estimate, np.sqrt(torque + least), np.sqrt(acceleration), np.sqrt(friction), 0.0, 0.0, 1.0,
                      len(torques.t) / options.rate, options)


def _with_level(found: FreeMotion, torques: OutsideTorques) -> FreeMotion:
    """Return the statistics with their detection threshold: the threshold of Gaussian noise, or a larger one from the
    peaks of the log."""
    rate, wanted = found.options.rate, found.alarms / 3600.0
    unit = found.whitened(torques)
    change = np.diff(unit, axis=0)[np.diff(torques.t) < 1.5 / rate] * rate
    bandwidth = float(np.sqrt(np.mean(np.median(change ** 2, axis=0)) / _MEDIAN_OF_SQUARED_NORMAL))
    level = max(gaussian_level(unit.shape[1], bandwidth, wanted),
                observed_level(np.sum(unit ** 2, axis=1), rate, found.options.used_window, wanted))
    return replace(found, bandwidth=bandwidth, level=level)


def _dry_friction(estimate: Estimate) -> Array:
    """Return the identified Coulomb friction (dof,) of each joint."""
    structure = complete(estimate.model).structure[:, estimate.base.independent]
    own = dry_columns(estimate.model, estimate.base) & (structure.sum(axis=0) == 1)
    return np.array([np.abs(estimate.values[own & row]).max(initial=0.0) for row in structure])


def gaussian_level(dof: int, bandwidth: float, rate: float) -> float:
    """Return the level that the sum of `dof` squared Gaussian signals of unit variance crosses upwards `rate` times per
    second.

    bandwidth: standard deviation of the signals' derivatives, rad/s. Rice's formula gives f(r) bandwidth / sqrt(2 pi)
    crossings of the radius r per second, with f the density of the chi distribution.
    """
    from scipy.optimize import brentq

    def excess(r: float) -> float:
        density = (dof - 1) * math.log(r) - 0.5 * r * r - (0.5 * dof - 1) * math.log(2.0) - math.lgamma(0.5 * dof)
        return density + math.log(bandwidth / math.sqrt(2.0 * math.pi) / rate)

    low = math.sqrt(max(dof - 1, 1))
    return float(brentq(excess, low, 100.0)) ** 2 if excess(low) > 0 else low ** 2


def observed_level(statistic: Array, rate: float, window: float, wanted: float) -> float:
    """Return the level that a statistic (m,) sampled at `rate` Hz crosses `wanted` times per second, from its largest
    values.

    Maxima of blocks much longer than the filter window are independent; their excess over a high level is
    exponentially distributed. The mean excess is increased by one standard deviation to be conservative for short
    logs. The level is zero if there are too few maxima.
    """
    length = max(1, round(_MAXIMUM_WINDOWS * window * rate))
    count = len(statistic) // length
    kept = max(int(_TAIL_SHARE * count), MIN_EXCEEDANCES)
    if count < 2 * MIN_EXCEEDANCES:
        return 0.0
    largest = np.sort(statistic[:count * length].reshape(count, length).max(axis=1))[::-1]
    start = float(largest[kept])
    excess = float(np.mean(largest[:kept] - start)) * (1.0 + 1.0 / math.sqrt(kept))
    often = kept / (count * length / rate)  # blocks per second above the start of the tail
    return start + excess * math.log(max(often / wanted, 1.0))

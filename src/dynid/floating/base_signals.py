"""Base signals in logs of a robot with a free base: their format, unit checks, and the bias of an IMU.

Repeated values, angular rates in degrees and the order of quaternion components are recognised by comparison with
another signal of the same log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Bools, first_not_finite
from dynid.dynamics.root_frame import quaternions
from dynid.errors import RecordingError
from dynid.floating.contacts import Contact
from dynid.robot import Robot
from dynid.robot.pose import quaternions_of_vectors, rotation_errors

QuaternionOrder = Literal["xyzw", "wxyz"]
Order = TypeVar("Order", bound=str)
REPEATED_SIGNALS = {"base_position": "position", "base_orientation": "orientation", "base_velocity": "velocity"}
MIN_CHANGES = 10  # changes of a repeated signal; with fewer, the base may be at rest
MAX_UNEVEN = 0.1  # share of the intervals between changes that may be longer than twice the median interval
RATE_WINDOW = 0.2  # s over which angular rates are integrated: long for the noise, short for the motion
MIN_TURN = 0.01  # rad of rotation in a window; smaller rotations are dominated by noise of the orientation
DEGREES_RATIO = 8.0  # logged divided by actual rates: between 1 (rad/s) and 57 (deg/s)
WRONG_ORDER = 4.0  # ratio of the squared errors of two orders, above which only one of them is possible
BIAS_WINDOW = 0.5  # s over which specific force is integrated
MIN_BIAS_WINDOWS = 6  # windows, needed for a useful standard error of the bias
TYPICAL_BIAS = np.array([0.005] * 3 + [0.05] * 3)  # rad/s, m/s^2: MEMS sensors, for logs without a bias estimate
REST_SPEED = 0.02  # rad/s of every joint below which the robot rests
MIN_REST = 0.5  # s of rest, needed for the bias of angular rates
GRAVITY_RANGE = (0.85, 1.15)  # plausible range of the mean specific force divided by gravity


def without_repetition(t: Array, signals: Mapping[str, Array], notes: list[str]) -> dict[str, Array]:
    """Return the signals of the base, with interpolation of values that were logged at a lower rate and so repeat in
    several rows; a note is appended for each interpolated signal."""
    interpolated = dict(signals)
    for name, word in REPEATED_SIGNALS.items():
        if name not in signals:
            continue
        values = np.asarray(signals[name], dtype=float)
        changes = np.flatnonzero(np.concatenate([[True], np.any(np.diff(values, axis=0) != 0.0, axis=1)]))
        gaps = np.diff(changes)
        if len(gaps) < MIN_CHANGES or np.median(gaps) < 2 or np.mean(gaps > 2.0 * np.median(gaps)) > MAX_UNEVEN:
            continue
        known = values[changes]
        if name == "base_orientation":  # q and -q are the same rotation
            known = known * np.cumprod(np.concatenate([[1.0], np.where(np.sum(known[1:] * known[:-1], axis=1) < 0.0,
                                                                      -1.0, 1.0)]))[:, None]
        columns = np.stack([np.interp(t, t[changes], column) for column in known.T], axis=1)
        if name == "base_orientation":
            columns /= np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-9)
            columns *= np.median(np.linalg.norm(known, axis=1))  # a wrong norm is reported later
        interpolated[name] = columns
        notes.append(f"the {word} of the base changes only in every {np.median(gaps):.0f}th row and is interpolated "
                     "between these rows")
    return interpolated


def rates_in_radians(t: Array, rate: Array, orientation: Array | None, specific_force: Array | None,
                     notes: list[str]) -> Array:
    """Return angular rates (samples, 3) in rad/s; rates many times larger than those of another signal are converted
    from deg/s.

    Args:
        t: times (samples,), s.
        rate: logged angular rates (samples, 3).
        orientation: quaternions (samples, 4) in any order of components, or None.
        specific_force: signal of an accelerometer (samples, 3), whose direction shows rotations about horizontal axes,
            or None.
        notes: list of sentences, to which a note is appended if the unit is converted.
    """
    step = max(1, round(RATE_WINDOW * (len(t) - 1) / max(float(t[-1] - t[0]), 1e-9)))
    starts = np.arange(0, len(t) - 2 * step, step)
    if len(starts) < 3:
        return rate
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(t)[:, None], axis=0)])
    if orientation is not None:
        turned = sums[starts + step] - sums[starts]
        unit = orientation / np.maximum(np.linalg.norm(orientation, axis=1, keepdims=True), 1e-9)
        # The product of two quaternions does not depend on the order of their components.
        cosine = np.abs(np.sum(unit[starts] * unit[starts + step], axis=1))
        shown, named = 2.0 * np.arccos(np.minimum(cosine, 1.0))[:, None], "orientation of the base"
    elif specific_force is not None:
        means = np.stack([np.mean(specific_force[k:k + step], axis=0) for k in starts])
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
        middle = starts + step // 2
        turned = np.cross(sums[middle[1:]] - sums[middle[:-1]], means[:-1])
        shown, named = np.diff(means, axis=0), "direction of gravity"
    else:
        return rate
    size, actual = (float(np.sqrt(np.mean(np.sum(one ** 2, axis=1)))) for one in (turned, shown))
    if actual < MIN_TURN or size < DEGREES_RATIO * actual:
        return rate
    notes.append(f"the angular rate is {size / actual:.0f} times that of the {named}, so it is read in deg/s")
    return np.radians(rate)


def order_errors(t: Array, rate: Array, choices: Mapping[Order, Array]) -> dict[Order, float]:
    """Return the sum of squared differences between integrated angular rates (samples, 3) and orientations, for each
    order of quaternion components."""
    step, errors = np.diff(t)[:, None], dict[Order, float]()
    for order, one in choices.items():
        back = dynamics.rotations(quaternions(dynamics.rotations(one))).transpose(0, 2, 1)
        difference = rotation_errors(back[:-1], back[1:]) - rate[:-1] * step
        difference -= difference.mean(axis=0)  # a bias of the rates
        errors[order] = float(np.sum(np.cumsum(difference, axis=0) ** 2))
    return errors


def check_order(t: Array, rate: Array | None, chosen: Array, choices: Mapping[QuaternionOrder, Array],
                source: str) -> None:
    """Raise an error if quaternions (samples, 4) contradict the angular rates in the chosen order of components, but
    agree with the rates in another order.

    Args:
        t: times (samples,), s.
        rate: angular rates (samples, 3), rad/s, or None.
        chosen: the quaternions as read.
        choices: the quaternions as read in each order of the columns.
        source: name of the log.
    """
    if rate is None or float(np.std(rate)) == 0.0:
        return
    errors = order_errors(t, rate, choices)
    best = min(choices, key=lambda order: errors[order])
    if order_errors(t, rate, {"chosen": chosen})["chosen"] > WRONG_ORDER * errors[best]:
        raise RecordingError(f"{source}: the orientation of the base contradicts the angular rates, unless the columns "
                             f"of the quaternion have the order {best}", f"add --set log.quaternion={best}, or map the "
                             "columns x, y, z, w with --set 'log.base_orientation=[...]'", code="quaternion-order")


def specific_force_ratio(robot: Robot, specific_force: Array) -> float:
    """Return the median magnitude of a specific force (samples, 3), m/s^2, divided by that of gravity; near one for an
    accelerometer of a robot on its feet."""
    size = float(np.linalg.norm(robot.gravity)) or 9.81
    return float(np.median(np.linalg.norm(specific_force, axis=1))) / size


def with_bias(robot: Robot, log: FloatingLog) -> tuple[FloatingLog, str]:
    """Return the log with the estimated bias of its IMU and the standard error, and a sentence on the bias.

    With a logged orientation, angular rates are compared with the derivative of the orientation. Specific force is
    integrated over a window in world axes and compared with gravity and the change of velocity, which is small for a
    robot on its feet. Without an orientation, the bias of angular rates is their mean at rest, and the bias of the
    specific force is unknown.
    """
    bias, std, remark = _bias(robot, log)
    assert log.imu is not None
    return replace(log, imu=replace(log.imu, bias=bias, bias_std=std)), remark


def _bias(robot: Robot, log: FloatingLog) -> tuple[Array, Array, str]:
    """Return the bias (6,) of the angular rate and the specific force of an IMU, the standard errors of the bias (6,),
    and a sentence on the estimation."""
    from scipy.spatial.transform import Rotation

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
                                        "orientation of the base nor a time at rest; the standard error of the "
                                        f"specific force is assumed to be {TYPICAL_BIAS[3]:g} m/s^2")
        bias[:3] = rate[rest].mean(axis=0)
        return bias, TYPICAL_BIAS, (f"bias of the angular rate from rest: {_triple(bias[:3])} rad/s; the bias of the "
                                    "specific force is not estimated, because the log has no orientation of the base; "
                                    f"its standard error is assumed to be {TYPICAL_BIAS[3]:g} m/s^2")
    turn = robot.frame(log.imu.frame).pose[:3, :3]
    turns = dynamics.rotations(quaternions(dynamics.rotations(log.orientation))) @ turn
    edges = np.searchsorted(t, np.arange(t[0], t[-1], BIAS_WINDOW))
    spans = [slice(a, b) for a, b in pairwise(edges) if b - a > 2]
    if len(spans) < MIN_BIAS_WINDOWS:
        return bias, TYPICAL_BIAS, "the bias of the imu is not estimated, because the log is short"
    # Rotation vector from the integrated to the measured rotation over each window: to first order, it is minus the
    # bias times the duration, in the axes at the end of the window.
    turned = Rotation.from_matrix([_integrated(rate[one], step[one]).T @ turns[one.start].T @ turns[one.stop - 1]
                                   for one in spans]).as_rotvec()
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
    solution: Array = np.asarray(np.linalg.lstsq(stacked, right, rcond=None)[0], dtype=float)
    left = right - stacked @ solution
    variance = float(left @ left) / max(1, len(left) - 3)
    return solution, np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked)) * variance)


def _integrated(rate: Array, step: Array) -> Array:
    """Return the rotation (3, 3) between the first and the last sample of angular rates (samples, 3) in body axes."""
    vectors = 0.5 * (rate[1:] + rate[:-1]) * step[:-1, None]
    return np.asarray(reduce(np.matmul, dynamics.rotations(quaternions_of_vectors(vectors))))


def _triple(values: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def at_nearest(t: Array, times: Array, signal: ArrayLike) -> Any:
    """Return the rows of a signal, sampled at increasing times t (samples,), that are nearest to other times."""
    return np.asarray(signal)[np.clip(np.searchsorted(0.5 * (t[1:] + t[:-1]), times), 0, len(t) - 1)]


BaseMotion = Literal["imu", "pose", "velocity"]


@dataclass(frozen=True, eq=False)
class FootWrench:
    """A measured external force, or force and moment, on the robot.

    Attributes:
        frame: name of the frame at whose origin the force acts.
        values: force (samples, 3), N, or force and moment (samples, 6), N and N m.
        axes: "frame" for the axes of that frame, such as those of a sensor in the foot, or "world".
        radius: radius of a round foot, m; a force without moment acts at the lowest point of the foot.
    """

    frame: str
    values: Array
    axes: Literal["frame", "world"] = "frame"
    radius: float = 0.0


@dataclass(frozen=True, eq=False)
class Imu:
    """An inertial measurement unit (IMU) at a named frame.

    Attributes:
        frame: name of the frame.
        angular_rate: angular rate in the axes of the IMU (samples, 3), rad/s.
        specific_force: specific force in the axes of the IMU (samples, 3), m/s^2; at rest it points upward.
        bias: constant errors (6,) that are subtracted from the angular rate and the specific force.
        bias_std: standard errors of the bias (6,).
    """

    frame: str
    angular_rate: Array
    specific_force: Array
    bias: Array | None = None
    bias_std: Array | None = None


@dataclass(frozen=True, eq=False)
class FloatingLog:
    """One log of a robot with a free base and n joints.

    The motion of the base is that of an IMU, or its pose (motion capture or a state estimator), or its orientation and
    velocity.

    Attributes:
        t: time (samples,), s.
        q: joint positions (samples, n), rad or m.
        tau: joint torques (samples, n), N m, or None if not measured.
        position: position of the root link in the world (samples, 3), m.
        orientation: unit quaternion of the root link, x y z w (samples, 4).
        imu: an IMU on the root link, or None; by default, the motion of the base is that of the IMU.
        wrenches: measured forces on the robot.
        contacts: contact points, which do not move while they touch the ground.
        standing: mask of active contacts (samples, contacts).
        source: name of the log for messages.
        velocity: velocity of the root link's origin in the world (samples, 3), m/s.
        motion: source of the base motion: "imu", "pose" or "velocity". Default: the first of these in the log.
    """

    t: Array
    q: Array
    tau: Array | None = None
    position: Array | None = None
    orientation: Array | None = None
    imu: Imu | None = None
    wrenches: tuple[FootWrench, ...] = ()
    contacts: tuple[Contact, ...] = ()
    standing: Bools | None = None
    source: str = "memory"
    velocity: Array | None = None
    motion: BaseMotion | None = None

    @property
    def base_motions(self) -> tuple[BaseMotion, ...]:
        """Sources of the base motion that the log contains."""
        turned = self.orientation is not None
        found = {"imu": self.imu is not None, "pose": turned and self.position is not None,
                 "velocity": turned and self.velocity is not None}
        return tuple(name for name in get_args(BaseMotion) if found[name])

    @property
    def base_motion(self) -> BaseMotion:
        """Signals from which the motion of the base is computed: "imu", "pose" or "velocity"."""
        return self.motion or self.base_motions[0]

    def pose_at(self, t: Array) -> Array | None:
        """Return position (nan if not logged) and quaternion of the base (samples, 7) in the rows nearest to times t
        (samples,), s; None without an orientation."""
        if self.orientation is None:
            return None
        position = np.full((len(self.t), 3), np.nan) if self.position is None else np.asarray(self.position)
        return np.asarray(at_nearest(self.t, t, np.hstack([position, np.asarray(self.orientation)])))

    def __post_init__(self) -> None:
        rows = len(self.t)
        wanted = {"q": self.q, "tau": self.tau, "position": self.position, "orientation": self.orientation,
                  "velocity": self.velocity}
        widths = {"position": 3, "orientation": 4, "velocity": 3}
        for k, one in enumerate(self.wrenches):
            wanted[f"wrench {k + 1} ({one.frame})"] = one.values
        if self.imu is not None:
            wanted |= {"imu.angular_rate": self.imu.angular_rate, "imu.specific_force": self.imu.specific_force}
            widths |= {"imu.angular_rate": 3, "imu.specific_force": 3}
        for name, array in wanted.items():
            if array is None:
                continue
            width = widths.get(name, np.shape(self.q)[1] if name == "tau" else None)
            if np.ndim(array) != 2 or len(array) != rows or (width is not None and np.shape(array)[1] != width):
                raise RecordingError(f"{self.source}: {name} has shape {np.shape(array)}, expected ({rows}, "
                                     f"{width or 'k'})", code="wrong-shape")
            wrong = first_not_finite(np.asarray(array, dtype=float))
            if wrong is not None:
                raise RecordingError(f"{self.source}: {name} is not finite in row {wrong[0]}", code="not-finite")
        if not self.base_motions:
            raise RecordingError(f"{self.source} has no signals of the base motion; position and orientation, or an "
                                 "imu, are needed", "map the columns with --set 'log.base_position=[...]' and --set "
                                 "'log.base_orientation=[...]',"
                                 " or with --set 'log.imu_specific_force=[...]' and --set 'log.imu_angular_rate=[...]'",
                                 code="no-base-motion")
        if self.motion is not None and self.motion not in self.base_motions:
            raise RecordingError(f"{self.source} has no base motion from '{self.motion}', only from "
                                 f"{', '.join(self.base_motions)}", code="no-base-motion")
        if self.standing is not None and np.shape(self.standing) != (rows, len(self.contacts)):
            raise RecordingError(f"{self.source}: standing has shape {np.shape(self.standing)}, expected ({rows}, "
                                 f"{len(self.contacts)}), a column for each contact", code="wrong-shape")
        wide = [one.frame for one in self.wrenches if np.shape(one.values)[1] not in (3, 6)]
        if wide:
            raise RecordingError(f"{self.source}: the wrench of '{wide[0]}' must have 3 or 6 columns",
                                 code="wrong-shape")

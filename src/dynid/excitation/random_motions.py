"""Random motions: through random postures that are spread over the joint ranges, and with random sine velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.limit_check import check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.trajectories.trajectory import FourierSeries, Motion, Piecewise, straight_line
from dynid.excitation.waypoints import quintics, quintics_within, trapezoids
from dynid.robot import Robot

_PATH_TRIES = 100  # paths from a posture that are tried until one is free of collisions
_LEAST_SPEED, _MOST_SPEED = 0.2, 0.9  # smallest and largest velocity amplitude of a sine, relative to the speed limit
MIN_SINE_PERIOD = 0.5  # s, shortest period of a sine
_GRID_POINTS = 50  # grid points per section of a spline, between which it overshoots by less than the next margin
_RANGE_MARGIN = 0.998  # used share of the range of a joint
_ACCELERATION_MARGIN = 0.998  # used share of the acceleration limit, for values between grid points in a check


def random_points(limits: Limits, *, points: int = 50, seed: int = 0, reach: float = 0.9, share: float = 1.0,
                  pause: float = 0.0) -> Piecewise:
    """Return a motion of all joints from one random posture to the next, with a stop at each (Ardiani, s. 3.3.6.1 and
    C.4.2.1).

    The speed is trapezoidal, or quintic with a jerk limit. Paths outside the workspace are not used.

    Args:
        limits: limits of the motion.
        points: number of postures.
        seed: seed of the postures.
        reach: used share of the joint ranges.
        share: used share of the velocity and acceleration limits.
        pause: time of rest in each posture, s.
    """
    rows = spread_postures(limits, points, np.random.default_rng(seed), reach)
    if limits.space is not None:
        rows = _collision_free_order(rows, limits, np.random.default_rng(seed + 1))
    if np.isfinite(limits.jerk).any():
        return quintics_within(rows, limits)
    return trapezoids(rows, limits, pause=pause, share=share)


def random_spline(limits: Limits, *, points: int = 50, seed: int = 0, reach: float = 0.7) -> Piecewise:
    """Return a motion through random postures without stops, by quintics with the speeds of a cubic spline.

    Each section takes one and a half times as long as its slowest joint needs at top speed. The spline overshoots the
    postures, so the default share `reach` of the ranges is smaller than for `random_points`. The postures of a joint
    that would leave its range are moved toward the middle of this range.
    """
    rows = spread_postures(limits, points, np.random.default_rng(seed), reach)
    limits.require_top_speeds("a spline through random postures")
    lengths = np.max(np.abs(np.diff(rows, axis=0)) / limits.velocity, axis=1)
    times = np.concatenate([[0.0], np.cumsum(1.5 * np.maximum(lengths, 0.05))])
    path = quintics(rows, times)
    middle, half = home_posture(None, limits), 0.5 * (limits.upper - limits.lower)  # infinite without limits
    widest = np.abs(path.at(np.linspace(0.0, path.duration, _GRID_POINTS * points)).q - middle).max(axis=0)
    share = np.minimum(1.0, _RANGE_MARGIN * half / np.maximum(widest, 1e-300))
    return path if (share == 1.0).all() else quintics(middle + share * (rows - middle), times)


def _collision_free_order(rows: Array, limits: Limits, rng: np.random.Generator) -> Array:
    """Return postures in an order with collision-free straight paths; some postures are drawn again."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    taken, left = [rows[0]], list(rows[1:])
    for _ in range(_PATH_TRIES * len(rows)):
        if not left:
            return np.array(taken)
        report = check_limits(straight_line(taken[-1], left[0] - taken[-1], 1.0), limits, points=400)
        if all(usage.ok for usage in report.usages if usage.kind == "space"):
            taken.append(left.pop(0))
        elif len(left) > 1 and rng.random() < 0.5:
            left.append(left.pop(0))
        else:
            left[0] = rng.uniform(low, high)
    raise NotPossibleError("no collision-free path through random postures was found; give way-points")


@dataclass(frozen=True, eq=False)
class Sines:
    """Sinusoidal velocity of each joint, from rest: dq_j = A_j sin(2 pi t / T_j) (Simionato, eq. 5.2).

    Attributes:
        start: positions at time 0 (dof,), rad or m.
        amplitude: velocity amplitudes A (dof,), rad/s or m/s.
        period: periods T (dof,), s.
        duration: duration, s.
    """

    start: Array
    amplitude: Array
    period: Array
    duration: float
    jumps = True  # the acceleration jumps at time 0, because a sine velocity from rest starts with its largest slope

    @property
    def dof(self) -> int:
        return len(self.start)

    def at(self, t: ArrayLike) -> Motion:
        time = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)[:, None]
        w = 2.0 * np.pi / self.period
        c, s = np.cos(w * time), np.sin(w * time)
        return Motion(self.start + self.amplitude / w * (1.0 - c), self.amplitude * s, self.amplitude * w * c,
                      -self.amplitude * w ** 2 * s)


def random_sines(limits: Limits, *, duration: float = 10.0, seed: int = 0, reach: float = 0.9) -> Sines:
    """Return random sines of all joints that respect the limits of position, velocity and acceleration (Simionato, s.
    5.1).

    The excursion A T / pi must fit the share `reach` of the range, and the acceleration 2 pi A / T its limit. The two
    conditions give an interval for T.
    """
    if not duration > 0:
        raise DynidError(f"random sines need a duration above zero, got {duration:g} s")
    limits.require_top_speeds("a motion with random sines")
    rng = np.random.default_rng(seed)
    low, high = ranges(limits, reach)
    start, amplitude, period = np.zeros((3, limits.dof))
    for j in range(limits.dof):
        room = high[j] - low[j]
        size = rng.uniform(_LEAST_SPEED, _MOST_SPEED) * float(limits.velocity[j])
        push = _ACCELERATION_MARGIN * float(limits.acceleration[j])
        size = min(size, 0.999 * float(np.sqrt(0.5 * push * room)), np.pi * room / MIN_SINE_PERIOD)
        shortest = max(2.0 * np.pi * size / push, MIN_SINE_PERIOD)
        longest = max(min(np.pi * room / size, duration), shortest)
        period[j] = rng.uniform(shortest, min(longest, np.pi * room / size))
        far = size * period[j] / np.pi
        sign = float(rng.choice([-1.0, 1.0]))
        amplitude[j] = sign * size
        start[j] = rng.uniform(low[j], high[j] - far) if sign > 0 else rng.uniform(low[j] + far, high[j])
    return Sines(start, amplitude, period, duration)


# rad, rad/s, rad/s^2 (or m): limits of a joint without limits in its file
_DEFAULT_RANGE, _DEFAULT_SPEED, _DEFAULT_ACCELERATION = 1.5, 2.0, 10.0


def random_fourier(robot: Robot, duration: float, harmonics: int, rng: np.random.Generator,
                   points: int = 1000) -> FourierSeries:
    """Return a random Fourier series of a duration (s), with every joint at four fifths of its most restrictive limit;
    points: number of times at which the peaks are computed."""
    a, b = rng.normal(size=(2, robot.dof, harmonics))
    lower, upper = robot.limit("lower"), robot.limit("upper")
    bounded = np.isfinite(upper - lower)
    half = np.where(bounded, 0.5 * (np.where(bounded, upper, 1.0) - np.where(bounded, lower, -1.0)), _DEFAULT_RANGE)
    middle = np.where(bounded, 0.5 * (np.where(bounded, upper, 0.0) + np.where(bounded, lower, 0.0)), 0.0)
    speed, acceleration = (np.where(np.isfinite(x), x, default) for x, default in (
        (robot.limit("velocity"), _DEFAULT_SPEED), (robot.limit("acceleration"), _DEFAULT_ACCELERATION)))
    motion = FourierSeries(a, b, np.zeros(robot.dof), duration).at(np.linspace(0.0, duration, points))
    peaks = np.stack([np.ptp(motion.q, axis=0) / 2, np.abs(motion.dq).max(axis=0), np.abs(motion.ddq).max(axis=0)])
    scale = 0.8 * np.min(np.stack([half, speed, acceleration]) / peaks, axis=0)
    shift = 0.5 * (motion.q.max(axis=0) + motion.q.min(axis=0)) * scale
    return FourierSeries(a * scale[:, None], b * scale[:, None], middle - shift, duration)


_POSTURE_TRIES = 200  # draws of a posture until it is free of collisions


def ranges(limits: Limits, reach: float = 1.0) -> tuple[Array, Array]:
    """Return the lowest and highest positions (dof,) of the central share `reach` of each range; the range of a joint
    without limits is one turn."""
    low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    middle, half = 0.5 * (low + high), 0.5 * reach * (high - low)
    return middle - half, middle + half


def home_posture(home: ArrayLike | None, limits: Limits) -> Array:
    """Return the given posture (dof,) after a check, or the middle of every range."""
    is_bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    middle = 0.5 * (np.where(is_bounded, limits.lower, 0.0) + np.where(is_bounded, limits.upper, 0.0))
    posture = middle if home is None else np.array(home, dtype=float)
    if posture.shape != (limits.dof,) or ((posture < limits.lower) | (posture > limits.upper)).any():
        raise DynidError(f"the home posture must be {limits.dof} numbers within the joint limits")
    return posture


def spread_postures(limits: Limits, count: int, rng: np.random.Generator, reach: float = 0.9) -> Array:
    """Return postures (count, dof) spread evenly over each joint's range, in random order (Latin hypercube).

    Postures outside the workspace limits are drawn again.
    """
    if count < 2 or not 0.0 < reach <= 1.0:
        raise DynidError("a motion through random postures needs at least two postures, and a share of the joint "
                         f"ranges (reach) above 0 and up to 1, got {count} and {reach:g}")
    low, high = ranges(limits, reach)
    strata = np.stack([rng.permutation(count) for _ in range(limits.dof)], axis=1)
    rows = low + (strata + rng.random(strata.shape)) / count * (high - low)
    if limits.space is None:
        return rows
    for _ in range(_POSTURE_TRIES):
        shut = (limits.space.slack(rows) < 0.0).any(axis=1)
        if not shut.any():
            return rows
        rows[shut] = rng.uniform(low, high, (int(shut.sum()), limits.dof))
    raise NotPossibleError("almost no posture within the joint limits is free of collisions; enlarge the workspace or "
                           "give way-points")

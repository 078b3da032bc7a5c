"""Motions that excite one effect each: friction, gravity, payload, inertia of a joint, or coupling between joints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.exciting_motion import slow_enough
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.random_motions import home_posture, ranges, spread_postures
from dynid.excitation.trajectories.trajectory import Joined, Piecewise, Trajectory, quintic_between, straight_line
from dynid.excitation.waypoints import quintics_within, trapezoids


def friction_sweep(limits: Limits, *, home: ArrayLike | None = None, speeds: int = 8, slowest: float = 0.02,
                   reach: float = 0.8, longest: float = 20.0) -> Joined:
    """Return a motion of one joint after another, back and forth at constant speeds, with the other joints at home.

    See Ardiani, s. 2.4.2. Quintics connect the strokes.

    Args:
        limits: limits of the motion.
        home: posture (dof,) of the joints that do not move. Default: the middle of all ranges.
        speeds: number of speeds of each joint.
        slowest: lowest speed, relative to the top speed.
        reach: used share of a joint's range.
        longest: largest duration of a stroke, s; slow strokes then use less of the range.
    """
    posture = home_posture(home, limits)
    limits.require_top_speeds("a friction sweep")
    parts: list[Trajectory] = []
    for j, top in enumerate(limits.velocity):
        for speed in float(top) * np.geomspace(slowest, 0.9, speeds):
            parts += _there_and_back(limits, posture, j, float(speed), reach, longest)
    return Joined(tuple(parts))


def _there_and_back(limits: Limits, home: Array, j: int, speed: float, reach: float,
                    longest: float) -> Iterator[Piecewise]:
    low, high = limits.lower[j], limits.upper[j]
    low = low if np.isfinite(low) else home[j] - np.pi
    high = high if np.isfinite(high) else home[j] + np.pi
    # Time to reach the speed v: the quintic that reaches v over the distance v T / 2 has the peak acceleration 1.5 v/T
    # and the peak jerk 6 v/T^2. A small reserve allows for the difference between grid points in a check.
    lead = 1.002 * max(1.5 * speed / limits.acceleration[j], np.sqrt(6.0 * speed / limits.jerk[j]), 0.05)
    run_up = 0.5 * speed * lead
    half = 0.5 * min(reach * (high - low), speed * longest + 2 * run_up)
    if half <= run_up:
        raise NotPossibleError(f"joint '{limits.names[j]}' cannot reach {speed:g} rad/s or m/s within its range and "
                               "acceleration limit; use lower speeds")
    middle = float(np.clip(home[j], low + half, high - half))
    at, unit, zero = home.copy(), np.eye(limits.dof)[j], np.zeros(limits.dof)
    yield from _rest_to_rest(limits, home, home + (middle - half - home[j]) * unit)
    at[j] = middle - half
    for sign in (1.0, -1.0):
        velocity = sign * speed * unit
        fast, slow = at + lead / 2.0 * velocity, at + sign * (2 * half - run_up) * unit
        end = at + sign * 2 * half * unit
        yield quintic_between((at, zero, zero), (fast, velocity, zero), lead)
        yield straight_line(fast, velocity, (2 * half - 2 * run_up) / speed)
        yield quintic_between((slow, velocity, zero), (end, zero, zero), lead)
        at = end
    yield from _rest_to_rest(limits, at, home)


def _rest_to_rest(limits: Limits, first: Array, last: Array) -> Iterator[Piecewise]:
    """Yield a slow quintic from rest to rest between two postures (dof,), if they differ."""
    far = np.abs(last - first)
    if far.max() > 1e-12:
        zero = np.zeros(limits.dof)
        # Peaks of the quintic are 15/8 d/T, 10/sqrt(3) d/T^2 and 60 d/T^3; half of each limit is used.
        need = np.maximum.reduce([3.75 * far / limits.velocity, np.sqrt(11.55 * far / limits.acceleration),
                                  np.cbrt(120.0 * far / limits.jerk)])
        yield quintic_between((first, zero, zero), (last, zero, zero), max(float(need.max()), 0.1))


def gravity_sweep(limits: Limits, *, postures: int = 20, pause: float = 1.0, share: float = 0.1, seed: int = 0,
                  reach: float = 0.9) -> Piecewise:
    """Return a slow trapezoidal motion through random postures with stops, dominated by gravity and dry friction.

    Each posture is approached from both sides, which separates dry friction from gravity.

    Args:
        limits: limits of the motion.
        postures: number of postures.
        pause: time of rest in each posture, s.
        share: used share of the velocity and acceleration limits.
        seed: seed of the postures.
        reach: used share of the joint ranges.
    """
    rng = np.random.default_rng(seed)
    low, high = ranges(limits, reach)
    half = 0.5 * (high - low)
    rows = spread_postures(limits, postures, rng, reach)
    offset = 0.02 * half * rng.choice([-1.0, 1.0], rows.shape)
    pairs = np.stack([rows + offset, rows - offset], axis=1).reshape(-1, limits.dof)
    return trapezoids(np.clip(pairs, low, high), limits, pause=pause, share=share)


@dataclass(frozen=True, eq=False)
class PayloadPair:
    """The same path without and with a payload: all torques except those of the payload cancel in the difference.

    See Ardiani, s. 1.2.5. The motion `loaded` is slower than the motion `without` payload if torque limits require it.
    """

    without: Trajectory
    loaded: Trajectory


def payload_pair(trajectory: Trajectory, limits: Limits, torque: TorqueLimit | None = None) -> PayloadPair:
    """Return the same motion without and with a payload; torque: torque limits with the payload, which may slow down
    the motion with the payload."""
    return PayloadPair(trajectory, slow_enough(trajectory, replace(limits, start=None, end=None), torque))


def inertia_sweep(limits: Limits, *, home: ArrayLike | None = None, postures: int = 3, times: int = 3,
                  reach: float = 0.8, seed: int = 0) -> Piecewise:
    """Return a motion of one joint at a time, back and forth with constant acceleration, the others at rest.

    See Ardiani, C.4.2.1. A stroke has a triangular speed profile up to the top speed, unless the range is too short.

    Args:
        limits: limits of the motion.
        home: first posture (dof,) of the other joints. Default: the middle of all ranges.
        postures: number of postures of the other joints, home and random postures, so that the inertia varies.
        times: number of repetitions of each stroke.
        reach: used share of the joint ranges.
        seed: seed of the random postures.
    """
    others = [home_posture(home, limits)]
    if postures > 1:
        others += list(spread_postures(limits, max(postures - 1, 2), np.random.default_rng(seed), reach)[:postures - 1])
    rows: list[Array] = []
    for at in others:
        for j in range(limits.dof):
            low, high = _triangle(limits, j, float(at[j]), reach)
            rows += _visited(at, (j,), [(low,), (high,)] * times)
    return _through(rows, limits)


def coupling_sweep(limits: Limits, *, home: ArrayLike | None = None, joints: Sequence[Sequence[int]] | None = None,
                   reach: float = 0.6) -> Piecewise:
    """Return a motion of two joints at a time, in the same and in opposite directions, with the others at rest.

    The motion excites inertial and centrifugal coupling (Ardiani, s. 1.4.1.3).

    Args:
        limits: limits of the motion.
        home: posture (dof,) of the joints that do not move. Default: the middle of all ranges.
        joints: pairs of joint indices from 0. Default: all pairs.
        reach: used share of the joint ranges.
    """
    at = home_posture(home, limits)
    pairs = list(combinations(range(limits.dof), 2)) if joints is None else [tuple(pair) for pair in joints]
    for pair in pairs:
        if len(pair) != 2 or not all(0 <= j < limits.dof for j in pair) or pair[0] == pair[1]:
            raise DynidError(f"a pair of joints must be two different numbers from 0 to {limits.dof - 1}, got {pair}",
                             code="bad-pair-of-joints")
    rows: list[Array] = []
    for i, j in pairs:
        (a, b), (c, d) = (_triangle(limits, k, float(at[k]), reach) for k in (i, j))
        rows += _visited(at, (i, j), [(b, d), (a, c), (b, c), (a, d)])
    return _through(rows, limits)


def _triangle(limits: Limits, j: int, middle: float, reach: float) -> tuple[float, float]:
    """Return both ends of a stroke of joint j about a position, on which the joint just reaches its top speed."""
    low, high = (float(side[j]) for side in ranges(limits, reach))
    far = high - low
    if np.isfinite(limits.velocity[j]) and np.isfinite(limits.acceleration[j]):
        far = min(far, float(limits.velocity[j] ** 2 / limits.acceleration[j]))
    first = float(np.clip(middle - 0.5 * far, low, high - far))
    return first, first + far


def _visited(home: Array, joints: tuple[int, ...], places: Sequence[tuple[float, ...]]) -> list[Array]:
    """Return a sequence of postures (dof,): home, home with `joints` at each of the positions `places`, and home."""
    rows = [home]
    for place in places:
        row = home.copy()
        row[list(joints)] = place
        rows.append(row)
    return [*rows, home]


def _through(rows: Sequence[Array], limits: Limits) -> Piecewise:
    """Return the motion through a sequence of postures (dof,), without postures that repeat the previous posture."""
    points = np.array([rows[0], *(row for before, row in pairwise(rows) if np.any(row != before))])
    return quintics_within(points, limits) if np.isfinite(limits.jerk).any() else trapezoids(points, limits)

"""Motions through given points with trapezoidal speed or quintics, and paths from and to a home posture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.limit_check import check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.trajectories.trajectory import Joined, Piecewise, Trajectory, quintic_between

_APPROACH_TRIES = 40  # durations that are tried for a quintic from or to the home posture
_APPROACH_GROWTH = 1.25  # ratio of successive durations


def _checked_points(points: ArrayLike, limits: Limits | None = None) -> Array:
    """Return the points (rows, dof); raise an error if they are not valid or outside the limits."""
    array = np.array(points, dtype=float)
    if array.ndim != 2 or len(array) < 2 or not np.isfinite(array).all():
        raise DynidError(f"a motion through points needs at least two rows of finite numbers, got shape {array.shape}")
    if limits is not None:
        if array.shape[1] != limits.dof:
            raise DynidError(f"the points have {array.shape[1]} joints, but the limits have {limits.dof}")
        outside = (array < limits.lower) | (array > limits.upper)
        if outside.any():
            row, j = np.argwhere(outside)[0]
            raise DynidError(f"point {row + 1} puts joint '{limits.names[j]}' at {array[row, j]:g}, outside its limits "
                             f"{limits.lower[j]:g} to {limits.upper[j]:g}", code="point-beyond-limits")
    return array


def trapezoids(points: ArrayLike, limits: Limits, *, pause: float = 0.0, share: float = 1.0) -> Piecewise:
    """Return a motion from point to point (rows, dof) with trapezoidal speed, at the highest speed that the slowest
    joint allows.

    All joints move together. The acceleration jumps, so the jerk is not finite; a robot with a jerk limit needs
    quintics. pause: time of rest at every point, s. share: used share of the velocity and acceleration limits.
    """
    rows = _checked_points(points, limits)
    if not 0 < share <= 1 or pause < 0:
        raise DynidError("a trapezoidal motion needs a share of the limits between 0 and 1 and a pause of zero or "
                         f"more, got {share} and {pause} s")
    if not np.isfinite(limits.velocity).all() or not np.isfinite(limits.acceleration).all():
        j = int(np.argmin(np.isfinite(limits.velocity) & np.isfinite(limits.acceleration)))
        raise DynidError("a trapezoidal motion needs a velocity and an acceleration limit of every joint; a limit "
                         f"of joint '{limits.names[j]}' is missing")
    pieces, zero = list[tuple[float, Array, Array, Array]](), np.zeros(limits.dof)  # duration, q, dq and ddq
    for first, last in pairwise(rows):
        displacement = last - first
        far = np.abs(displacement)
        pieces.append((pause, first, zero, zero))
        if not far.any():
            continue
        # Every joint's limit is a limit of du and ddu for the path parameter u from 0 to 1.
        with np.errstate(divide="ignore"):
            speed = share * float(np.min(limits.velocity / far))
            push = share * float(np.min(limits.acceleration / far))
        rise = min(speed / push, 1.0 / np.sqrt(push))
        top = push * rise
        flat = (1.0 - top * rise) / top
        pieces += [(rise, first, zero, push * displacement),
                   (flat, first + 0.5 * top * rise * displacement, top * displacement, zero),
                   (rise, last - 0.5 * top * rise * displacement, top * displacement, -push * displacement)]
    lasting = [piece for piece in (*pieces, (pause, rows[-1], zero, zero)) if piece[0] > 1e-12]
    if not lasting:
        raise DynidError("all points are the same, so there is no motion")
    coefficients = np.zeros((len(lasting), limits.dof, 6))
    coefficients[:, :, :3] = [np.stack([q, v, 0.5 * a], axis=1) for _, q, v, a in lasting]
    return Piecewise(np.cumsum([0.0, *(piece[0] for piece in lasting)]), coefficients)


def quintics(points: ArrayLike, when: ArrayLike, *, stop: bool = False) -> Piecewise:
    """Return quintics through points (rows, dof) at the times `when` (rows,), s, from rest to rest.

    Velocity and acceleration are continuous. At the points, velocity and acceleration are equal to those of the cubic
    spline through the points, or zero with `stop`.
    """
    rows, t = _checked_points(points), np.array(when, dtype=float)
    if t.shape != (len(rows),) or t[0] != 0.0 or not (np.diff(t) > 0).all():
        raise DynidError(f"{len(rows)} way-points need one time each, and the times must increase from 0, got {t}")
    speed, push = np.zeros_like(rows), np.zeros_like(rows)
    if not stop and len(rows) > 2:
        from scipy.interpolate import CubicSpline

        spline = CubicSpline(t, rows, bc_type="clamped")
        speed, push = spline(t, 1), spline(t, 2)
        push[0] = push[-1] = speed[0] = speed[-1] = 0.0
    states = pairwise(zip(rows, speed, push, strict=True))
    return Piecewise(t, np.concatenate([quintic_between(first, last, duration).coefficients
                                        for (first, last), duration in zip(states, np.diff(t), strict=True)]))


def quintics_within(points: ArrayLike, limits: Limits) -> Piecewise:
    """Return quintics through points (rows, dof) with stops, as fast as limits of velocity, acceleration and jerk
    allow."""
    rows = _checked_points(points, limits)
    lengths = []
    for first, last in pairwise(rows):
        far = np.abs(last - first)
        # Peaks of the rest-to-rest quintic: 15/8 d/T, 10/sqrt(3) d/T^2, 60 d/T^3.
        need = np.maximum.reduce([15.0 / 8.0 * far / limits.velocity,
                                  np.sqrt(10.0 / np.sqrt(3.0) * far / limits.acceleration),
                                  np.cbrt(60.0 * far / limits.jerk)])
        if not need.max() > 0:
            raise DynidError("a quintic between two points needs different points and a limit on velocity, "
                             "acceleration or jerk")
        lengths.append(float(need.max()) * 1.001)  # reserve for the difference between grid points in a check
    return quintics(rows, np.concatenate([[0.0], np.cumsum(lengths)]), stop=True)


State = Sequence[Array]  # position, velocity and acceleration of every joint


def approach(trajectory: Trajectory, home: ArrayLike, limits: Limits, torque: TorqueLimit | None = None) -> Joined:
    """Return the motion with quintics from the home posture (dof,) and back; position, velocity and acceleration are
    continuous.

    Each quintic has the shortest duration, in steps of 25 %, for which it respects every limit. If a motion begins or
    ends too close to a limit for one quintic, two quintics with a stop in between are used. torque: torque limits of
    the nominal model, or None.
    """
    posture = np.array(home, dtype=float)
    if posture.shape != (limits.dof,) or not np.isfinite(posture).all():
        raise DynidError(f"the home posture must be {limits.dof} finite numbers, got shape {posture.shape}")
    free = replace(limits, start=None, end=None).reaching(posture)
    at_rest = (posture, np.zeros(limits.dof), np.zeros(limits.dof))
    ends = trajectory.at(np.array([0.0, trajectory.duration]))
    first, last = ([x[row] for x in ends[:3]] for row in (0, 1))
    return Joined((*_connected(at_rest, first, free, torque, "from home to its beginning"), trajectory,
                   *_connected(last, at_rest, free, torque, "from its end back home")))


def _connected(first: State, last: State, limits: Limits, torque: TorqueLimit | None, what: str) -> list[Piecewise]:
    """Return the quintics from one state (position, velocity, acceleration) to another; one of the two is at rest.
    what: description of the path in error messages."""
    direct, worst = _shortest(lambda duration: (first, last), limits, torque)
    if direct is not None:
        return [direct]
    is_braking, zero = bool(first[1].any()), np.zeros(limits.dof)

    def ends(duration: float) -> tuple[State, State]:
        """Return the states at both ends of a motion to or from rest with constant acceleration for `duration`, s."""
        if is_braking:
            return first, (first[0] + 0.5 * duration * first[1], zero, zero)
        return (last[0] - 0.5 * duration * last[1], zero, zero), last

    near, _ = _shortest(ends, limits, torque)
    if near is not None:
        stop = (near.at(near.duration if is_braking else 0.0).q[0], zero, zero)
        far, _ = _shortest(lambda duration: (stop, last) if is_braking else (first, stop), limits, torque)
        if far is not None:
            return [near, far] if is_braking else [far, near]
    raise NotPossibleError(f"the motion cannot be reached along a straight line {what} within all limits: {worst}",
                           "choose another home posture")


def _shortest(ends: Callable[[float], tuple[State, State]], limits: Limits,
              torque: TorqueLimit | None) -> tuple[Piecewise | None, str]:
    """Return the quintic of shortest duration that respects all limits, or None and the limit that the longest quintic
    exceeds; ends: function that returns the states at both ends for a duration, s."""
    duration, worst = 0.2, ""
    for _ in range(_APPROACH_TRIES):
        part = quintic_between(*ends(duration), duration)
        report = check_limits(part, limits, torque, points=1000)
        if report.ok:
            return part, ""
        worst = str(report.violated[0])
        duration *= _APPROACH_GROWTH
    return None, worst

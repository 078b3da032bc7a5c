"""Trajectories as functions of time with exact derivatives: polynomials, Fourier series, and sequences of trajectories.

Times outside 0..duration are clipped to the nearest end, except that a Fourier series continues periodically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import perm
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError


class Motion(NamedTuple):
    """Positions and their three derivatives, (samples, joints) each: rad, rad/s, rad/s^2, rad/s^3 (or m)."""

    q: Array
    dq: Array
    ddq: Array
    jerk: Array


class Trajectory(Protocol):
    """Protocol of trajectories: joint motions as functions of time."""

    @property
    def duration(self) -> float: ...

    @property
    def dof(self) -> int: ...

    def at(self, t: ArrayLike) -> Motion: ...


def times(trajectory: Trajectory, rate: float) -> Array:
    """Return evenly spaced sample times (m,) at about `rate` (Hz), including both ends."""
    if not rate > 0:
        raise DynidError(f"the sampling rate must be above zero, got {rate}")
    return np.linspace(0.0, trajectory.duration, max(2, round(trajectory.duration * rate) + 1))


def joint_rows(what: str, values: ArrayLike) -> Array:
    """Return coefficients as an array (dof, K), one row per joint; raise an error that begins with `what` if they are
    not finite."""
    array = np.array(values, dtype=float)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise DynidError(f"{what} must be finite numbers, one row per joint, got shape {array.shape}")
    return array


def power_functions(t: ArrayLike, duration: float) -> Array:
    """Return the powers 0 to 5 of t / duration at times t (m,), with their three derivatives by t (4, m, 6)."""
    u = np.atleast_1d(np.asarray(t, dtype=float)) / duration
    rows = np.zeros((4, len(u), 6))
    for k in range(6):
        for d in range(min(k + 1, 4)):
            rows[d, :, k] = perm(k, d) * u ** (k - d) / duration ** d
    return rows


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Trajectory of piecewise polynomials: q_j(t) = sum_k coefficients[p, j, k] (t - breaks[p])^k in piece p.

    breaks: ends of the pieces (pieces + 1,), s, from 0 to the duration. coefficients: powers 0 to 5 (pieces, dof, 6).
    """

    breaks: Array
    coefficients: Array

    def __post_init__(self) -> None:
        breaks, coefficients = np.array(self.breaks, dtype=float), np.array(self.coefficients, dtype=float)
        if coefficients.ndim != 3 or coefficients.shape[2] != 6 or breaks.shape != (len(coefficients) + 1,):
            raise DynidError(f"a piecewise motion needs (pieces, joints, 6) coefficients and one more break than "
                             f"pieces, got {coefficients.shape} and {breaks.shape}")
        if breaks[0] != 0.0 or not (np.diff(breaks) > 0).all() or not np.isfinite(coefficients).all():
            raise DynidError("the breaks of a piecewise motion must increase from 0 and its coefficients must be "
                             "finite")
        object.__setattr__(self, "breaks", breaks)
        object.__setattr__(self, "coefficients", coefficients)

    @property
    def dof(self) -> int:
        return self.coefficients.shape[1]

    @property
    def duration(self) -> float:
        return float(self.breaks[-1])

    def at(self, t: ArrayLike) -> Motion:
        time = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)
        piece = np.clip(np.searchsorted(self.breaks, time, side="right") - 1, 0, len(self.coefficients) - 1)
        powers = power_functions(time - self.breaks[piece], 1.0)
        return Motion(*np.einsum("dmk,mjk->dmj", powers, self.coefficients[piece]))

    @cached_property
    def jumps(self) -> bool:
        """Whether the acceleration jumps somewhere, so that the jerk is infinite there."""
        size = np.diff(self.breaks)[:, None]
        last = np.sum([k * (k - 1) * self.coefficients[:, :, k] * size ** (k - 2) for k in range(2, 6)], axis=0)
        first = 2.0 * self.coefficients[:, :, 2]
        inside = np.abs(first[1:] - last[:-1]).max(initial=0.0)
        return bool(max(inside, np.abs(first[0]).max(), np.abs(last[-1]).max()) > 1e-6 * (1.0 + np.abs(last).max()))


def straight_line(first: Array, velocity: Array, duration: float) -> Piecewise:
    """Return the motion from a posture (dof,) at constant velocity (dof,) for `duration` (s)."""
    return Piecewise(np.array([0.0, duration]), np.pad(np.stack([first, velocity], axis=1), ((0, 0), (0, 4)))[None])


def quintic_between(first: Sequence[Array], last: Sequence[Array], duration: float) -> Piecewise:
    """Return one quintic from state (q, dq, ddq) `first` to state `last`, (dof,) each, in `duration` (s)."""
    q0, v0, a0 = (np.asarray(x, dtype=float) for x in first)
    q1, v1, a1 = (np.asarray(x, dtype=float) for x in last)
    T = float(duration)
    if not T > 0:
        raise DynidError(f"a motion needs a duration above zero, got {T}")
    d0 = q1 - q0 - v0 * T - 0.5 * a0 * T * T
    d1 = (v1 - v0 - a0 * T) * T
    d2 = (a1 - a0) * T * T
    k = np.stack([q0, v0, 0.5 * a0, (10 * d0 - 4 * d1 + 0.5 * d2) / T ** 3, (-15 * d0 + 7 * d1 - d2) / T ** 4,
                  (6 * d0 - 3 * d1 + 0.5 * d2) / T ** 5], axis=1)
    return Piecewise(np.array([0.0, T]), k[None])


def fourier_functions(t: ArrayLike, harmonics: int, period: float) -> Array:
    """Return the functions sin(lwt)/lw, -cos(lwt)/lw and 1 of a Fourier series at times t (m,), with their three
    derivatives (4, m, 2 harmonics + 1) (Ardiani, eq. 1.39)."""
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    angle = np.multiply.outer(np.atleast_1d(np.asarray(t, dtype=float)), w)
    s, c = np.sin(angle), np.cos(angle)
    one = np.ones((len(angle), 1))
    zero = np.zeros_like(one)
    return np.stack([np.hstack([s / w, -c / w, one]), np.hstack([c, s, zero]), np.hstack([-w * s, w * c, zero]),
                     np.hstack([-w * w * c, -w * w * s, zero])])


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """Fourier series q_j(t) = q0_j + sum_l a_jl / (w l) sin(w l t) - b_jl / (w l) cos(w l t), w = 2 pi / period.

    See Ardiani, eq. 1.39.

    Attributes:
        a, b: coefficients (dof, harmonics), rad/s or m/s.
        q0: mean positions (dof,), rad or m.
        period: period, s.
        periods: number of periods.
    """

    a: Array
    b: Array
    q0: Array
    period: float
    periods: float = 1.0

    def __post_init__(self) -> None:
        a, b, q0 = joint_rows("a", self.a), joint_rows("b", self.b), np.array(self.q0, dtype=float)
        if a.shape != b.shape or q0.shape != (len(a),) or not np.isfinite(q0).all():
            raise DynidError("a Fourier series needs a and b of the same shape and one q0 per joint, got shapes "
                             f"{a.shape}, {b.shape} and {q0.shape}", code="bad-coefficients")
        if not self.period > 0 or not self.periods > 0:
            raise DynidError("a Fourier series needs a period and a number of periods above zero, got "
                             f"{self.period} s and {self.periods} periods")
        for name, value in (("a", a), ("b", b), ("q0", q0)):
            object.__setattr__(self, name, value)

    @property
    def dof(self) -> int:
        return len(self.a)

    @property
    def duration(self) -> float:
        return self.period * self.periods

    def at(self, t: ArrayLike) -> Motion:
        coefficients = np.hstack([self.a, self.b, self.q0[:, None]])
        return Motion(*(fourier_functions(t, self.a.shape[1], self.period) @ coefficients.T))


@dataclass(frozen=True, eq=False)
class Joined:
    """Sequence of trajectories; continuity from one trajectory to the next is not checked."""

    parts: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.parts or any(part.dof != self.parts[0].dof for part in self.parts):
            raise DynidError("joined trajectories need at least one part, and all parts must have the same joints",
                             code="bad-parts")

    @property
    def dof(self) -> int:
        return self.parts[0].dof

    @cached_property
    def starts(self) -> Array:
        """Start time of each trajectory of the sequence (parts,), s."""
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])[:-1]])

    @property
    def duration(self) -> float:
        return float(sum(part.duration for part in self.parts))

    @property
    def jumps(self) -> bool:
        return any(getattr(part, "jumps", False) for part in self.parts)

    def at(self, t: ArrayLike) -> Motion:
        time = np.atleast_1d(np.asarray(t, dtype=float))
        which = np.clip(np.searchsorted(self.starts, time, side="right") - 1, 0, len(self.parts) - 1)
        out = np.empty((4, len(time), self.dof))
        for p, part in enumerate(self.parts):
            rows = which == p
            if rows.any():
                out[:, rows] = part.at(np.clip(time[rows] - self.starts[p], 0.0, part.duration))
        return Motion(*out)


@dataclass(frozen=True, eq=False)
class Slowed:
    """Trajectory along the path of the trajectory `inner`, slowed down to `stretch` times its duration."""

    inner: Trajectory
    stretch: float

    @property
    def dof(self) -> int:
        return self.inner.dof

    @property
    def duration(self) -> float:
        return self.stretch * self.inner.duration

    @property
    def jumps(self) -> bool:
        return bool(getattr(self.inner, "jumps", False))

    def at(self, t: ArrayLike) -> Motion:
        motion = self.inner.at(np.asarray(t, dtype=float) / self.stretch)
        return Motion(*(x / self.stretch ** k for k, x in enumerate(motion)))

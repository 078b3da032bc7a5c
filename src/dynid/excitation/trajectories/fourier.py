"""Fourier series as trajectories, alone and with a quintic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.trajectories.polynomial import power_functions
from dynid.excitation.trajectories.trajectory import Motion, joint_rows


def fourier_functions(t: ArrayLike, harmonics: int, period: float) -> Array:
    """Return sin(lwt)/lw, -cos(lwt)/lw and 1 with their three derivatives (4, m, 2 harmonics + 1)
    (Ardiani, eq. 1.39)."""
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
        a, b: (dof, harmonics), rad/s or m/s.
        q0: (dof,), rad or m.
        periods: number of repetitions.
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
            raise DynidError(f"a Fourier series needs a period above zero, got {self.period} s, {self.periods} times")
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
class FourierQuintic:
    """A Fourier series plus a quintic over the whole duration, which can have any state at both ends (Park, 2006).

    quintic (dof, 6): coefficients of the powers of t / duration.
    """

    series: FourierSeries
    quintic: Array

    def __post_init__(self) -> None:
        quintic = joint_rows("the quintic", self.quintic)
        if quintic.shape != (self.series.dof, 6):
            raise DynidError(f"the quintic needs six coefficients for each of {self.series.dof} joints, "
                             f"got {quintic.shape}")
        object.__setattr__(self, "quintic", quintic)

    @property
    def dof(self) -> int:
        return self.series.dof

    @property
    def duration(self) -> float:
        return self.series.duration

    def at(self, t: ArrayLike) -> Motion:
        powers = power_functions(np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration), self.duration)
        return Motion(*(x + y for x, y in zip(self.series.at(t), powers @ self.quintic.T, strict=True)))

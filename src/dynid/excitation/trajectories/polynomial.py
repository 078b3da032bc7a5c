"""Polynomials as trajectories: pieces one after the other, and the quintic between two states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.trajectories.trajectory import Motion


def power_functions(t: ArrayLike, duration: float, degree: int = 5) -> Array:
    """Return powers of t / duration with their three derivatives by t (4, m, degree + 1)."""
    u = np.atleast_1d(np.asarray(t, dtype=float)) / duration
    rows = np.zeros((4, len(u), degree + 1))
    for k in range(degree + 1):
        factor, power = 1.0, k
        for d in range(4):
            if power >= 0:
                rows[d, :, k] = factor * u ** power / duration ** d
            factor, power = factor * power, power - 1
    return rows


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Piecewise polynomials: q(t) = sum_k coefficients[p, j, k] (t - breaks[p])^k in piece p.

    breaks (pieces + 1,) from 0 to the duration; coefficients (pieces, dof, 6).
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


def quintic_between(first: Sequence[Array], last: Sequence[Array], duration: float) -> Piecewise:
    """Return one quintic from state (q, dq, ddq) to another, (dof,) each, in `duration` (s)."""
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

"""Families of motions q(t) = functions(t) c that are linear in their coefficients c (dof, K).

Rest or given postures at the start and end are linear conditions, which are satisfied by construction: c_j = fixed_j +
null z_j with free coefficients z (dof, k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.trajectories.trajectory import (
    FourierSeries,
    Motion,
    Trajectory,
    fourier_functions,
    power_functions,
)
from dynid.quantities import DURATION, check_quantity

AnyFamily = TypeVar("AnyFamily", bound="Family")
_SPLINE_DEGREE = 5  # of the B-splines: the jerk is smooth


class Family(Protocol):
    """Protocol of a family of motions for a search; its options are the fields of the class."""

    @property
    def kind(self) -> str:
        """Name of the family in files and commands."""

    @property
    def duration(self) -> float:
        """Duration of the motions of the family, s."""

    @property
    def rest(self) -> bool:
        """Whether the motions of the family have zero velocity and acceleration at both ends."""

    @property
    def constant(self) -> Array:
        """Coefficients (K,) of the constant motion q = 1."""

    @property
    def frequencies(self) -> Array:
        """Frequency of each basis function (K,), relative to that of the slowest."""

    @property
    def waves(self) -> float:
        """Number of periods of the highest frequency within the duration; sets the number of samples of a search."""

    def functions(self, t: ArrayLike) -> Array:
        """Return the basis functions at times t (m,) with three derivatives (4, m, K)."""

    def trajectory(self, coefficients: Array) -> Trajectory:
        """Return the trajectory of the family with the given coefficients (dof, K)."""

    def below(self, bandwidth: float) -> Family:
        """Return the family without frequencies above `bandwidth` (Hz)."""


def _unlimited(family: AnyFamily, bandwidth: float) -> AnyFamily:
    """Return the family itself if the bandwidth (Hz) is infinite; otherwise raise an error, because the frequencies of
    the family cannot be limited."""
    if np.isfinite(bandwidth):
        raise DynidError(f"a bandwidth of {bandwidth:g} Hz is supported only by the family 'fourier', got "
                         f"'{family.kind}'", code="bandwidth-not-supported")
    return family


@dataclass(frozen=True)
class Fourier:
    """Family of Fourier series (Ardiani, eq. 1.39).

    Attributes:
        duration: duration, s.
        harmonics: number of harmonics.
        period: period of the first harmonic, s. Default: the duration.
        rest: whether velocity and acceleration are zero at both ends.
    """

    duration: float = 20.0
    harmonics: int = 5
    period: float | None = None
    rest: bool = True
    kind = "fourier"

    def __post_init__(self) -> None:
        check_quantity(DURATION, self.duration, "the duration of a motion")
        if self.harmonics < 1:
            raise DynidError(f"a Fourier series needs at least one harmonic, got {self.harmonics}", code="no-harmonic")
        if self.period is not None and not self.period > 0:
            raise DynidError(f"a Fourier series needs a period above zero, got {self.period} s")

    @property
    def one_period(self) -> float:
        return self.duration if self.period is None else float(self.period)

    @property
    def constant(self) -> Array:
        return np.eye(2 * self.harmonics + 1)[-1]

    @property
    def frequencies(self) -> Array:
        return np.append(np.tile(np.arange(1.0, self.harmonics + 1.0), 2), 1.0)

    @property
    def waves(self) -> float:
        return self.harmonics * (self.duration / self.one_period)

    def functions(self, t: ArrayLike) -> Array:
        return fourier_functions(t, self.harmonics, self.one_period)

    def trajectory(self, coefficients: Array) -> Trajectory:
        n = self.harmonics
        return FourierSeries(coefficients[:, :n], coefficients[:, n:2 * n], coefficients[:, 2 * n], self.one_period,
                             self.duration / self.one_period)

    def below(self, bandwidth: float) -> Fourier:
        if not np.isfinite(bandwidth):
            return self
        most = int(np.floor(bandwidth * self.one_period + 1e-9))
        if most < 1:
            raise NotPossibleError(f"a bandwidth of {bandwidth:g} Hz leaves no harmonic of a period of "
                                   f"{self.one_period:g} s: allow a longer period or a higher bandwidth")
        return replace(self, harmonics=min(self.harmonics, most))


@dataclass(frozen=True)
class FourierPlusQuintic(Fourier):
    """Family of Fourier series plus a quintic over the whole duration; first and last posture may differ (Park,
    2006)."""

    kind = "fourier+quintic"

    @property
    def constant(self) -> Array:
        # The constant is part of the series, so the quintic has five other powers.
        return np.append(super().constant, np.zeros(5))

    @property
    def frequencies(self) -> Array:
        return np.append(super().frequencies, np.ones(5))

    def functions(self, t: ArrayLike) -> Array:
        return np.concatenate([super().functions(t), power_functions(t, self.duration)[:, :, 1:]], axis=2)

    def trajectory(self, coefficients: Array) -> FamilyTrajectory:
        return FamilyTrajectory(self, coefficients)

    def below(self, bandwidth: float) -> Fourier:
        return _unlimited(self, bandwidth)


@dataclass(frozen=True, eq=False)
class Splines:
    """Family of B-splines of degree 5.

    Attributes:
        duration: duration, s.
        pieces: number of intervals of equal length, if no knots are given.
        knots: inner knots, s, ascending; "free" to optimise the knots too; or None.
        rest: whether velocity and acceleration are zero at both ends.
    """

    duration: float = 20.0
    pieces: int = 12
    knots: Array | Literal["free"] | None = None
    rest: bool = True
    kind = "bspline"

    def __post_init__(self) -> None:
        check_quantity(DURATION, self.duration, "the duration of a motion")
        if isinstance(self.knots, str) and self.knots != "free":
            raise DynidError("knots of a spline are an array of inner knots, or 'free' for a search, got "
                             f"'{self.knots}'",
                             code="bad-knots")
        inner = self.inner_knots
        if ((inner <= 0) | (inner >= self.duration)).any() or (np.diff(inner) <= 0).any():
            raise DynidError(f"inner knots must increase strictly between 0 and the duration {self.duration:g} s",
                             code="bad-knots")

    @property
    def free_knots(self) -> bool:
        return isinstance(self.knots, str)

    @cached_property
    def inner_knots(self) -> Array:
        """Inner knots (K - 6,), s; evenly spaced if none are given."""
        if self.knots is None or isinstance(self.knots, str):
            return np.linspace(0.0, self.duration, self.pieces + 1)[1:-1]
        return np.asarray(self.knots, dtype=float)

    @cached_property
    def all_knots(self) -> Array:
        ends = np.zeros(_SPLINE_DEGREE + 1), np.full(_SPLINE_DEGREE + 1, self.duration)
        return np.concatenate([ends[0], self.inner_knots, ends[1]])

    @property
    def constant(self) -> Array:
        return np.ones(len(self.inner_knots) + _SPLINE_DEGREE + 1)

    frequencies = constant  # no spline is faster than another

    @property
    def waves(self) -> float:
        return (len(self.inner_knots) + _SPLINE_DEGREE + 1) / 2

    def functions(self, t: ArrayLike) -> Array:
        from scipy.interpolate import BSpline

        basis = BSpline(self.all_knots, np.eye(len(self.constant)), _SPLINE_DEGREE)
        time = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)
        return np.stack([basis(time, nu=order) for order in range(4)])

    def trajectory(self, coefficients: Array) -> FamilyTrajectory:
        return FamilyTrajectory(self, coefficients)

    def below(self, bandwidth: float) -> Family:
        return _unlimited(self, bandwidth)

    def with_random_knots(self, rng: np.random.Generator, share: float) -> Splines:
        """Return splines on other knots; the length of each interval is changed by a random factor of at most 1 +
        `share`."""
        steps = np.diff(np.concatenate([[0.0], self.inner_knots, [self.duration]]))
        steps = steps * (1.0 + share) ** rng.uniform(-1.0, 1.0, len(steps))
        return replace(self, knots=self.duration * np.cumsum(steps)[:-1] / steps.sum())


FAMILIES: dict[str, Callable[[float, int], Family]] = {
    Fourier.kind: Fourier, FourierPlusQuintic.kind: FourierPlusQuintic,
    Splines.kind: lambda duration, harmonics: Splines(duration)}


def family_named(kind: str, duration: float, harmonics: int) -> Family:
    """Return a family by its name in commands; harmonics: number of harmonics of a Fourier series (not of splines)."""
    if kind not in FAMILIES:
        raise DynidError(f"there is no family of motions '{kind}'; there are {', '.join(FAMILIES)}",
                         code="unknown-motion-family")
    return FAMILIES[kind](duration, harmonics)


@dataclass(frozen=True, eq=False)
class FamilyTrajectory:
    """Trajectory q(t) = functions(t) c of a family of motions, with coefficients c (dof, K)."""

    family: Family
    coefficients: Array

    @property
    def dof(self) -> int:
        return len(self.coefficients)

    @property
    def duration(self) -> float:
        return self.family.duration

    def at(self, t: ArrayLike) -> Motion:
        time = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.duration)
        return Motion(*(self.family.functions(time) @ self.coefficients.T))


_REST_TO_REST = np.array([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])  # powers of t / duration, from 0 to 1


@dataclass(frozen=True, eq=False)
class ConstrainedFamily:
    """Motions of a family that satisfy given conditions at both ends.

    fixed: coefficients (dof, K) of one such motion. null: basis (K, k) of the free coefficients of each joint.
    """

    family: Family
    fixed: Array
    null: Array

    @staticmethod
    def from_family(family: Family, dof: int, start: Array | None = None,
                    end: Array | None = None) -> ConstrainedFamily:
        """Return the motions of a family that begin at `start` and end at `end` (dof,), at rest if `family.rest` is
        True."""
        conditions, targets = _end_conditions(family, dof, start, end)
        count = len(family.constant)
        if not len(conditions):
            return ConstrainedFamily(family, np.zeros((dof, count)), np.eye(count))
        u, s, vt = np.linalg.svd(conditions)
        rank = int((s > 1e-9 * s[0]).sum())
        null = vt[rank:].T
        fixed = (vt[:rank].T @ ((u[:, :rank].T @ targets) / s[:rank, None])).T
        if start is not None or end is not None:
            fixed = _nearest_to_quintic(family, fixed, null, start, end)
        if np.abs(conditions @ fixed.T - targets).max() > 1e-6 * (1.0 + np.abs(targets).max()):
            raise NotPossibleError("a Fourier series is periodic, so the first and the last posture must be the same; "
                                   "use the family 'fourier+quintic' or 'bspline' for different postures",
                                   code="motion-is-periodic")
        if null.shape[1] == 0:
            raise NotPossibleError("rest at both ends and given postures leave no free coefficient in a motion of "
                                   f"{count} coefficients per joint", "use more harmonics or pieces",
                                   "no-free-coefficient")
        return ConstrainedFamily(family, fixed, null)

    @property
    def dof(self) -> int:
        return len(self.fixed)

    @property
    def size(self) -> int:
        """Number k of free coefficients per joint."""
        return self.null.shape[1]

    def coefficients(self, z: Array) -> Array:
        """Return the coefficients c (dof, K) for free coefficients z (dof, k)."""
        return self.fixed + z @ self.null.T

    def trajectory(self, z: Array) -> Trajectory:
        return self.family.trajectory(self.coefficients(z))

    def free(self, c: Array) -> Array:
        """Return the free coefficients z (dof, k) nearest to coefficients c (dof, K)."""
        return np.asarray(np.linalg.lstsq(self.null, (c - self.fixed).T, rcond=None)[0].T, dtype=float)

    def constant_motion(self, posture: Array) -> Array:
        """Return free coefficients (dof, k) of the motion nearest to rest in a posture (dof,)."""
        return self.free(np.outer(posture, self.family.constant))


def _end_conditions(family: Family, dof: int, start: Array | None, end: Array | None) -> tuple[Array, Array]:
    """Return conditions (r, K) of unit length on the coefficients of each joint, and their targets (r, dof)."""
    ends = family.functions(np.array([0.0, family.duration]))
    rows, targets = [], []
    if family.rest:
        rows += [ends[1, 0], ends[2, 0], ends[1, 1], ends[2, 1]]
        targets += [np.zeros(dof)] * 4
    for posture, place in ((start, 0), (end, 1)):
        if posture is not None:
            rows.append(ends[0, place])
            targets.append(np.asarray(posture, dtype=float))
    if not rows:
        return np.empty((0, ends.shape[2])), np.empty((0, dof))
    size = np.linalg.norm(rows, axis=1)[:, None]
    return np.array(rows) / size, np.array(targets) / size


def _nearest_to_quintic(family: Family, fixed: Array, null: Array, start: Array | None, end: Array | None) -> Array:
    """Return coefficients (dof, K) of the motion between the postures that is nearest to a rest-to-rest quintic."""
    grid = np.linspace(0.0, family.duration, 8 * len(family.constant))
    first = np.asarray(end if start is None else start, dtype=float)
    last = np.asarray(first if end is None else end, dtype=float)
    quintic = first + np.outer(power_functions(grid, family.duration)[0] @ _REST_TO_REST, last - first)
    values = family.functions(grid)[0]
    return fixed + np.linalg.lstsq(values @ null, quintic - values @ fixed.T, rcond=None)[0].T @ null.T

"""Families of motions that are linear in their coefficients, which is what the search looks through.

q(t) = functions(t) c with c (dof, K). Rest, first and last posture are linear in c too, so they hold by construction:
c_j = fixed_j + null z_j, and z (dof, k) is free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.trajectory import (
    BSpline,
    FourierQuintic,
    FourierSeries,
    Trajectory,
    fourier_functions,
    power_functions,
    spline_functions,
)

KINDS = ("fourier", "fourier+quintic", "bspline")


@dataclass(frozen=True, eq=False)
class Family:
    """kind, duration (s), functions(t) -> (4, m, K), make(c) -> trajectory, fixed (dof, K), null (K, k).

    centre (K,): the coefficients of the constant 1. wave (K,): how fast each function swings, 1 for the slowest.
    rest: whether it begins and ends at rest. knots: inner knots of a B-spline, empty for others.
    """

    kind: str
    duration: float
    functions: Callable[[Array], Array]
    make: Callable[[Array], Trajectory]
    fixed: Array
    null: Array
    centre: Array
    wave: Array
    rest: bool
    knots: Array

    @property
    def dof(self) -> int:
        return len(self.fixed)

    @property
    def size(self) -> int:
        """Free numbers a joint."""
        return self.null.shape[1]

    def coefficients(self, z: Array) -> Array:
        """c (dof, K) of the free numbers z (dof, k)."""
        return self.fixed + z @ self.null.T

    def trajectory(self, z: Array) -> Trajectory:
        return self.make(self.coefficients(z))

    def free(self, c: Array) -> Array:
        """The free numbers z (dof, k) nearest to coefficients c (dof, K)."""
        return np.asarray(np.linalg.lstsq(self.null, (c - self.fixed).T, rcond=None)[0].T, dtype=float)


def family(kind: str, dof: int, duration: float, *, harmonics: int = 5, period: float | None = None, rest: bool = True,
           start: Array | None = None, end: Array | None = None, knots: Array | None = None,
           pieces: int = 12) -> Family:
    """A family by kind.

    rest: velocity and acceleration zero at both ends. start, end (dof,): postures there. harmonics, period: of the
    Fourier series (period: the duration). knots: inner ones of the B-spline of degree 5, or pieces, evenly spaced.
    """
    if kind not in KINDS:
        raise DynidError(f"there is no family of motions '{kind}'; there are {', '.join(KINDS)}")
    if not duration > 0:
        raise DynidError(f"a motion needs a duration above zero, got {duration}")
    functions: Callable[[Array], Array]
    make: Callable[[Array], Trajectory]
    inner = np.empty(0)
    if kind == "bspline":
        inner = np.linspace(0.0, duration, pieces + 1)[1:-1] if knots is None else np.asarray(knots, dtype=float)
        if ((inner <= 0) | (inner >= duration)).any() or (np.diff(inner) <= 0).any():
            raise DynidError(f"inner knots must rise strictly between 0 and the duration {duration:g} s")
        every = np.concatenate([np.zeros(6), inner, np.full(6, duration)])
        functions = lambda t: spline_functions(t, every, 5)  # noqa: E731
        make = lambda c: BSpline(every, c)  # noqa: E731
        centre = wave = np.ones(len(inner) + 6)
    else:
        if harmonics < 1:
            raise DynidError(f"a Fourier series needs at least one harmonic, got {harmonics}")
        once = duration if period is None else float(period)
        waves = 2 * harmonics + 1

        def series(c: Array) -> FourierSeries:
            a, b, q0 = c[:, :harmonics], c[:, harmonics:2 * harmonics], c[:, 2 * harmonics]
            return FourierSeries(a, b, q0, once, duration / once)

        if kind == "fourier":
            functions = lambda t: fourier_functions(t, harmonics, once)  # noqa: E731
            make = series
            centre = np.zeros(waves)
        else:
            # The quintic's constant is the series' own, so five powers are left.
            functions = lambda t: np.concatenate([fourier_functions(t, harmonics, once),  # noqa: E731
                                                  power_functions(t, duration)[:, :, 1:]], axis=2)
            make = lambda c: FourierQuintic(  # noqa: E731
                series(c), np.hstack([np.zeros((len(c), 1)), c[:, waves:]]))
            centre = np.zeros(waves + 5)
        centre[waves - 1] = 1.0
        wave = np.ones(len(centre))
        wave[:2 * harmonics] = np.tile(np.arange(1.0, harmonics + 1.0), 2)
    ends = functions(np.array([0.0, duration]))
    rows, targets = [], []
    if rest:
        rows += [ends[1, 0], ends[2, 0], ends[1, 1], ends[2, 1]]
        targets += [np.zeros(dof)] * 4
    for posture, place in ((start, 0), (end, 1)):
        if posture is not None:
            rows.append(ends[0, place])
            targets.append(np.asarray(posture, dtype=float))
    count = len(centre)
    if not rows:
        return Family(kind, duration, functions, make, np.zeros((dof, count)), np.eye(count), centre, wave, rest,
                      inner)
    matrix, target = np.array(rows), np.array(targets)
    size = np.linalg.norm(matrix, axis=1)
    matrix, target = matrix / size[:, None], target / size[:, None]
    u, s, vt = np.linalg.svd(matrix)
    rank = int((s > 1e-9 * s[0]).sum())
    null = vt[rank:].T
    fixed = (vt[:rank].T @ ((u[:, :rank].T @ target) / s[:rank, None])).T
    if start is not None or end is not None:
        # Of all motions between the postures, the one nearest to the calm way of a quintic.
        grid = np.linspace(0.0, duration, 8 * count)
        first = np.asarray(end if start is None else start, dtype=float)
        way = power_functions(grid, duration)[0] @ np.array([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
        calm = first + np.outer(way, np.asarray(first if end is None else end, dtype=float) - first)
        values = functions(grid)[0]
        fixed = fixed + np.linalg.lstsq(values @ null, calm - values @ fixed.T, rcond=None)[0].T @ null.T
    if np.abs(matrix @ fixed.T - target).max() > 1e-6 * (1.0 + np.abs(target).max()):
        raise NotPossibleError("a Fourier series comes back to where it began, so the first and the last posture must "
                               "be the same; take the family 'fourier+quintic' or 'bspline' for different ones")
    if null.shape[1] == 0:
        raise NotPossibleError(f"rest and given postures leave nothing free in a motion of {count} coefficients a "
                               "joint; take more harmonics or pieces")
    return Family(kind, duration, functions, make, fixed, null, centre, wave, rest, inner)


def with_random_knots(motions: Family, rng: np.random.Generator, start: Array | None, end: Array | None,
                      share: float) -> Family:
    """The same B-splines on knots moved at random: each step between knots by up to `share` of itself, in logarithm."""
    steps = np.diff(np.concatenate([[0.0], motions.knots, [motions.duration]]))
    steps = steps * (1.0 + share) ** rng.uniform(-1.0, 1.0, len(steps))
    knots = motions.duration * np.cumsum(steps)[:-1] / steps.sum()
    return family("bspline", motions.dof, motions.duration, rest=motions.rest, start=start, end=end, knots=knots)

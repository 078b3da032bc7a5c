"""Check a motion against every limit, also between the samples.

Signals are evaluated on a dense grid. Between two grid points a smooth signal can exceed the values at both points by
at most an eighth of its second difference, which is added. Distances change at most by the bodies' speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import OVERLAP, TorqueLimit
from dynid.excitation.limits.workspace import Workspace
from dynid.excitation.trajectories.trajectory import Joined, Motion, Piecewise, Slowed, Trajectory

TOLERANCE = 1e-9  # largest relative violation of a limit that counts as rounding
_CHECKED_AT_ONCE = 4096  # samples per evaluation: many short pieces of a motion, or a part of a long piece
_FIRST_POSTURES = 101  # postures of a motion that are checked before all others
_MIN_PIECE_SAMPLES = 101  # samples of every piece: its peak is then accurate to about 1e-4 of its variation
_STEPS_PER_ROW = 10  # samples of a path from one row of commands to the next: 1 kHz at a usual rate of 100 Hz
_STANDING_WORDS = {  # limits of standing feet
    "support": "the centre of pressure is {value:.3g} m inside the support polygon, its margin is {bound:.3g} m",
    "load": "the feet carry {value:.3g} times the weight, at least {bound:.3g} times is required",
    "friction": "friction at {where} needs a coefficient of {value:.3g}, {bound:.3g} is allowed",
    "legs": "the legs come close to a singular posture: joint velocities grow {value:.3g} times, {bound:.3g} times is "
            "allowed",
    "height": "foot '{where}' is {value:.3g} m above the ground, at least {bound:.3g} m is required",
    "reach": "the feet cannot reach their positions; the error is {value:.2g} m or rad",
}


@dataclass(frozen=True)
class Usage:
    """Largest use of one limit by a motion.

    Attributes:
        kind: kind of the limit, such as "velocity", "torque" or "space".
        where: name of the joint, or of the bodies.
        value, bound: largest value, and its limit.
        time: time of the largest value, s.
        excess: violation relative to the limit (for distances: to 0.2 m); zero or less if the limit is respected.
    """

    kind: str
    where: str
    value: float
    bound: float
    time: float
    excess: float

    @property
    def ok(self) -> bool:
        return self.excess <= TOLERANCE

    def __str__(self) -> str:
        if self.kind == "space":
            return f"{self.where}: clearance {self.value * 1000:.1f} mm at {self.time:.2f} s"
        if self.kind == "loops":
            return (f"{self.where}: the condition number of the closures reaches {self.value:.4g} at {self.time:.2f} "
                    f"s, its limit is {self.bound:.4g}")
        if self.kind in _STANDING_WORDS:
            words = _STANDING_WORDS[self.kind].format(where=self.where, value=self.value, bound=self.bound)
            return f"{words} at {self.time:.2f} s"
        return (f"{self.kind} of joint '{self.where}' reaches {self.value:.4g} at {self.time:.2f} s, its limit is "
                f"{self.bound:.4g}")


@dataclass(frozen=True, eq=False)
class LimitReport:
    """Largest use of every limit over a motion; unchecked: sentences on limits that could not be checked."""

    usages: tuple[Usage, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return all(usage.ok for usage in self.usages)

    @property
    def excess(self) -> float:
        """Largest relative violation of a limit; zero or less if all limits are satisfied."""
        return max((usage.excess for usage in self.usages), default=-1.0)

    @property
    def violated(self) -> tuple[Usage, ...]:
        """Limits that the motion violates, the largest violation first."""
        return tuple(sorted((u for u in self.usages if not u.ok), key=lambda u: -u.excess))


def smooth_parts(trajectory: Trajectory) -> list[tuple[float, float]]:
    """Return the intervals (start, stop), s, in which all derivatives of a trajectory are continuous."""
    if isinstance(trajectory, Piecewise):
        return list(zip(trajectory.breaks[:-1], trajectory.breaks[1:], strict=True))
    if isinstance(trajectory, Slowed):
        return [(trajectory.stretch * a, trajectory.stretch * b) for a, b in smooth_parts(trajectory.inner)]
    if isinstance(trajectory, Joined):
        parts = zip(trajectory.parts, trajectory.starts, strict=True)
        return [(float(start + a), float(start + b)) for part, start in parts for a, b in smooth_parts(part)]
    return [(0.0, trajectory.duration)]


def peaks(signal: Array, skip: Bools) -> tuple[Array, Ints]:
    """Return the largest value of each column of a signal (m, n), and its row (n,).

    Between grid points a smooth signal may exceed its samples by an eighth of the second difference, which is added
    except in the rows of the mask `skip` (m,). This mask must include the first and last row of every smooth piece.
    """
    rise = np.zeros_like(signal)
    rise[1:-1] = np.abs(signal[2:] - 2.0 * signal[1:-1] + signal[:-2]) / 8.0
    rise[skip] = 0.0
    high = signal + rise
    rows = np.argmax(high, axis=0)
    return high[rows, np.arange(signal.shape[1])], rows


def _grids(trajectory: Trajectory, points: int) -> Iterator[tuple[Array, Bools]]:
    """Yield sample times (m,) of consecutive smooth pieces, several pieces at once, and the mask (m,) of the first
    samples of pieces."""
    times: list[Array] = []
    waiting = 0
    for first, last in smooth_parts(trajectory):
        count = max(_MIN_PIECE_SAMPLES, int(np.ceil(points * (last - first) / trajectory.duration)))
        if times and waiting + count > _CHECKED_AT_ONCE:
            yield _joined(times)
            times, waiting = [], 0
        # The last instant of a piece belongs to the next piece, so the grid ends just before this instant.
        times.append(np.linspace(first, last - 1e-12 * trajectory.duration, count))
        waiting += count
    yield _joined(times)


def _joined(times: list[Array]) -> tuple[Array, Bools]:
    begins = np.zeros(sum(map(len, times)), dtype=bool)
    begins[np.cumsum([0, *map(len, times[:-1])])] = True
    return np.concatenate(times), begins


def check_limits(trajectory: Trajectory, limits: Limits, torque: TorqueLimit | None = None, *, points: int = 5000,
                 unchecked: tuple[str, ...] = ()) -> LimitReport:
    """Return the largest use of every limit over a whole motion; torque: torque limits of the nominal model, or None.
    points: number of samples. unchecked: sentences on limits that could not be checked, for the report."""
    worst: dict[tuple[str, str, float], Usage] = {}
    for t, begins in _grids(trajectory, points):
        for usage in _usages(trajectory, t, begins, limits, torque):
            key = (usage.kind, usage.where, usage.bound)
            if key not in worst or usage.excess > worst[key].excess:
                worst[key] = usage
    usages = list(worst.values())
    if getattr(trajectory, "jumps", False):
        usages = [replace(u, value=np.inf, excess=np.inf) if u.kind == "jerk" else u for u in usages]
    ends = trajectory.at(np.array([0.0, trajectory.duration])).q
    for kind, posture, row in (("first posture", limits.start, 0), ("last posture", limits.end, 1)):
        if posture is not None:
            off = np.abs(ends[row] - posture)
            j = int(np.argmax(off))
            # Rounding errors of the coefficients are not violations.
            usages.append(Usage(kind, limits.names[j], float(ends[row, j]), float(posture[j]),
                                row * trajectory.duration, float(off[j]) - 1e-6))
    return LimitReport(tuple(usages), unchecked)


def find_collision(trajectory: Trajectory, limits: Limits, *, points: int = 5000) -> Usage | None:
    """Return the first collision that is found along a motion, or None if it respects the workspace; points: number of
    samples."""
    if limits.space is None or not limits.space.names:
        return None
    few = np.linspace(0.0, trajectory.duration, _FIRST_POSTURES)
    slack = limits.space.slack(trajectory.at(few).q)
    row, pair = np.unravel_index(int(np.argmin(slack)), slack.shape)
    if slack[row, pair] < 0.0:  # most motions that are not free have such postures, and thousands need no check
        return Usage("space", limits.space.names[pair], float(slack[row, pair]), 0.0, float(few[row]),
                     float(-slack[row, pair] / OVERLAP))
    for t, begins in _grids(trajectory, points):
        for usage in _distances(limits.space, t, begins, trajectory.at(t).q):
            if not usage.ok:
                return usage
    return None


def _usages(trajectory: Trajectory, t: Array, begins: Bools, limits: Limits,
            torque: TorqueLimit | None) -> Iterator[Usage]:
    """Yield the largest use of every limit at times t (samples,) of smooth pieces; begins: mask (samples,) of the first
    sample of each piece."""
    motion = trajectory.at(t)
    edges = begins | np.roll(begins, -1)
    span = limits.upper - limits.lower
    unit = np.where(np.isfinite(span), 0.5 * span, 1.0)
    for sign, bound in ((1.0, limits.upper), (-1.0, limits.lower)):
        value, rows = peaks(sign * motion.q, edges)
        for j in np.flatnonzero(np.isfinite(bound)):
            yield Usage("position", limits.names[j], float(sign * value[j]), float(bound[j]), float(t[rows[j]]),
                        float((value[j] - sign * bound[j]) / unit[j]))
    for kind, signal, bound in (("velocity", motion.dq, limits.velocity),
                                ("acceleration", motion.ddq, limits.acceleration), ("jerk", motion.jerk, limits.jerk)):
        value, rows = peaks(np.abs(signal), edges)
        for j in np.flatnonzero(np.isfinite(bound)):
            yield Usage(kind, limits.names[j], float(value[j]), float(bound[j]), float(t[rows[j]]),
                        float(value[j] / bound[j] - 1.0))
    if torque is not None:
        yield from _torques(torque, limits, t, begins, motion)
    if limits.space is not None:
        yield from _distances(limits.space, t, begins, motion.q)
    if limits.loops is not None:
        value, rows = peaks(limits.loops.values(motion.q, motion.dq, motion.ddq), edges)
        yield Usage("loops", limits.loops.names, float(limits.loops.condition * 10.0 ** value[0]),
                    limits.loops.condition, float(t[rows[0]]), float(value[0]))


def _torques(torque: TorqueLimit, limits: Limits, t: Array, begins: Bools, motion: Motion) -> Iterator[Usage]:
    parts = [[np.ascontiguousarray(x[lo:lo + _CHECKED_AT_ONCE]) for x in motion[:3]]
             for lo in range(0, len(t), _CHECKED_AT_ONCE)]
    tau = np.abs(np.vstack([torque.torques(*part) for part in parts]))
    # Coulomb friction jumps with the sign of the velocity, so second differences across a jump are invalid.
    flips = np.zeros(len(t), dtype=bool)
    flips[1:] = (np.sign(motion.dq[1:]) != np.sign(motion.dq[:-1])).any(axis=1)
    flips &= ~begins
    value, rows = peaks(tau, begins | np.roll(begins, -1) | flips | np.roll(flips, 1) | np.roll(flips, -1))
    for j in np.flatnonzero(np.isfinite(limits.torque)):
        yield Usage("torque", limits.names[j], float(value[j]), float(limits.torque[j]), float(t[rows[j]]),
                    float(value[j] / limits.torque[j] - 1.0))


def is_path_free(space: Workspace, q: Array) -> bool:
    """Return whether postures (rows, dof) that are joined by straight lines respect a workspace, also between rows."""
    rows = np.arange(len(q), dtype=float)
    fine = np.linspace(0.0, rows[-1], _STEPS_PER_ROW * (len(q) - 1) + 1)
    path = np.column_stack([np.interp(fine, rows, column) for column in q.T])
    return all(usage.ok for usage in _distances(space, fine, np.zeros(len(fine), dtype=bool), path))


def _distances(space: Workspace, t: Array, begins: Bools, q: Array) -> Iterator[Usage]:
    """Yield the smallest distance of every pair of bodies over a motion, at times t (samples,) and between the times.

    Between two times of the grid with distances s_k and s_k+1, the distance is at least (s_k + s_k+1 - path) / 2, where
    path is the sum of the lengths of both bodies' paths between these times, m.
    """
    best = np.full(len(space.names), np.inf)
    when = np.zeros(len(space.names))
    for lo in range(0, len(t), _CHECKED_AT_ONCE):
        rows = slice(lo, min(lo + _CHECKED_AT_ONCE + 1, len(t)))
        ends = space.ends(q[rows])
        slack, _ = space.slack_of_ends(ends)
        if len(slack) > 1:
            between = 0.5 * (slack[1:] + slack[:-1] - space.paths(ends))
            between[begins[rows][1:]] = np.inf
            slack = np.vstack([slack[:1], np.minimum(slack[1:], between)])
        k = np.argmin(slack, axis=0)
        low = slack[k, np.arange(slack.shape[1])]
        when = np.where(low < best, t[rows][k], when)
        best = np.minimum(best, low)
    for name, value, at in zip(space.names, best, when, strict=True):
        yield Usage("space", name, float(value), 0.0, float(at), float(-value / OVERLAP))

"""Resampling of a log to a uniform grid, segment by segment.

A uniform log without bad rows is unchanged. A row that repeats the previous one while the robot moves is not a new
measurement (a fast logger, a stuck sensor). It is interpolated, and rows far from any measurement are marked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, like
from dynid.errors import NotPossibleError, RecordingError
from dynid.order_statistics import median
from dynid.quantities import percent_text
from dynid.recording.check import hanging_positions, lost_torques
from dynid.recording.preparation.filters import Segments
from dynid.recording.preparation.selection import encoder_count, equal_ranges, longer_than
from dynid.recording.recording import Recording
from dynid.robot import numbered_joints
from dynid.signals import at_times, cubic_spline

Rows = Bools

_UNIFORM_TOLERANCE = 0.01  # intervals: largest distance of time stamps from the grid of a uniform log
_TOO_CLOSE = 0.2  # intervals: closer time stamps are one instant, with the later value
_MAX_GAP_INTERVALS = 2.5  # intervals: a grid point between measurements further apart is not used
_GAP_INTERVALS, _GAP_SECONDS = 5.0, 0.010  # default longest interpolated gap: the larger of both
_FEW_REPEATS = 1e-3  # share of the rows below which repeated rows are accepted
_STANDS_STILL = 20  # equal rows in succession from which on the robot is at rest, and not only the source slow
_MAX_REFINEMENT = 20  # rate of the grid over that of the log; a finer grid contains no more information


@dataclass(frozen=True, eq=False)
class Uniform:
    """Signals of a recording on a uniform grid: t (samples,), s, and q, tau, dq (samples, joints).

    Attributes:
        measured: (samples,), rows on or close to a measurement.
        segments: (k, 2), row ranges without gaps.
        rate: Hz.
        gap: longest interpolated interval, s.
        steps: processing steps, one sentence each.
    """

    t: Array
    q: Array
    tau: Array
    dq: Array | None
    measured: Rows
    segments: Segments
    rate: float
    gap: float
    steps: tuple[str, ...]

    def averaged(self, times: int) -> Uniform:
        """Return the log averaged over `times` neighbouring rows, segment by segment."""
        if times < 2:
            return self
        counts = (self.segments[:, 1] - self.segments[:, 0]) // times
        ends = np.cumsum(counts)
        t, q, tau, measured = (means(x, times, self.segments) for x in (self.t, self.q, self.tau, self.measured))
        return Uniform(t, q, tau, None if self.dq is None else means(self.dq, times, self.segments), measured > 0.5,
                       np.column_stack([ends - counts, ends])[counts > 0], self.rate / times, self.gap, self.steps)


def to_uniform(recording: Recording, rate: float | None = None, gap: float | None = None, stuck: bool = True
               ) -> Uniform:
    """Return the recording on a grid of `rate` Hz, by default that of the log. gap: longest interpolated interval, s.

    stuck: exclude rows that repeat while the robot moves.
    """
    t = recording.t
    intervals = np.diff(t)
    typical = float(median(intervals))
    widest = max(_GAP_INTERVALS * typical, _GAP_SECONDS) if gap is None else max(gap, 1.5 * typical)
    steps = [timing_sentence(intervals, widest)]
    if rate is not None and rate < 0.9 / typical:
        raise RecordingError(f"{recording.source}: a grid of {rate:g} Hz is coarser than the log's own "
                             f"{1 / typical:.4g} Hz; remove the setting rate; --set prepare.thin=N reduces the "
                             "number of rows", code="grid-too-coarse")
    if rate is not None and rate > _MAX_REFINEMENT / typical:
        raise RecordingError(f"{recording.source}: a grid of {rate:g} Hz is more than {_MAX_REFINEMENT} times finer "
                             f"than the log's own {1 / typical:.4g} Hz and would contain no additional information; "
                             f"give a lower one, such as --set prepare.rate={1 / typical:.4g}")
    fresh = {name: np.ones(len(t), dtype=bool) for name in ("q", "tau", "dq")}
    if stuck:
        for name in fresh:
            signal = getattr(recording, name)
            if signal is not None:
                fresh[name] &= ~stale_rows(recording.q, repeated_rows(signal, likely=name != "q"))
        frozen = frozen_positions(recording.q, fresh["q"])
        for hang in hanging_positions(t, recording.q):
            frozen[hang.start + 1:hang.stop, hang.joint] = True
        steps += repeated_sentences(recording, fresh, frozen)
        fresh["q"] &= ~np.any(frozen, axis=1)

    lost = np.asarray(lost_torques(recording.q, recording.tau).any(axis=1))
    if lost.any():
        steps.append(f"torques are exactly zero in {int(lost.sum())} rows of motion, the first is row "
                     f"{int(np.argmax(lost))}: not measured, left out")
        fresh["tau"] &= ~lost
    segments = split(t, fresh["q"] & ~lost, widest)
    regular = regular_rate(t, segments)
    if regular is not None and (rate is None or abs(rate / regular - 1.0) < 1e-9):
        if all(np.all(rows) for rows in fresh.values()):
            steps.append(f"sampled uniformly at {regular:.6g} Hz: not resampled")
            return Uniform(t, recording.q, recording.tau, recording.dq, fresh["q"], segments, regular, widest,
                           tuple(steps))
        rate = regular
    elif rate is None:
        rate = float(f"{1.0 / typical:.4g}")

    grid, rows = uniform_grid(t, segments, rate)
    if not len(grid):
        raise NotPossibleError(f"{recording.source}: no two samples are within {widest:g} s of each other, so the log "
                               f"cannot be resampled at {rate:g} Hz; give a longer gap with --set prepare.gap=SECONDS "
                               "or a lower rate with --set prepare.rate=N")
    last_of_instant = np.concatenate([intervals >= _TOO_CLOSE * typical, [True]])
    signals: dict[str, Array] = {}
    measured = np.ones(len(grid), dtype=bool)
    for name, good in fresh.items():
        signal = getattr(recording, name)
        if signal is None:
            continue
        use = good & last_of_instant
        signals[name] = interpolate(t, signal, use, grid, segments, rows)
        if name != "dq":
            measured &= near_measurement(t[use], grid, _MAX_GAP_INTERVALS * float(median(np.diff(t[use]))))
    if lost.any():
        after = np.clip(np.searchsorted(t, grid), 1, len(t) - 1)
        measured &= ~lost[after - (grid - t[after - 1] < t[after] - grid)]
    steps.append(f"resampled to a uniform grid of {rate:.6g} Hz by cubic splines: {len(grid)} samples in {len(rows)} "
                 f"segment{'s' * (len(rows) != 1)}, {int(np.sum(~measured))} of them too far from a measurement to be "
                 "used")
    return Uniform(grid, signals["q"], signals["tau"], signals.get("dq"), measured, rows, rate, widest, tuple(steps))


def means(x: Array | Rows, times: int, segments: Segments) -> Array:
    """Return means of `times` neighbouring rows of x (samples, ...) in each segment; remaining rows are dropped."""
    parts = [np.asarray(x[start:start + (stop - start) // times * times], dtype=float) for start, stop in segments]
    return np.concatenate([part.reshape(-1, times, *x.shape[1:]).mean(axis=1) for part in parts])


def timing_sentence(intervals: Array, widest: float) -> str:
    """Return a sentence on the regularity of the time stamps."""
    typical = float(median(intervals))
    inside = intervals[intervals <= widest]
    jitter = 100.0 * float(np.std(inside)) / typical if len(inside) else 0.0
    gaps = int(np.sum(intervals > widest))
    return (f"{len(intervals) + 1} samples over {float(np.sum(intervals)):.4g} s, intervals "
            f"{1e3 * intervals.min():.4g} to {1e3 * intervals.max():.4g} ms, median {1e3 * typical:.4g} ms, "
            f"jitter {percent_text(jitter)}, {gaps} gap{'s' * (gaps != 1)} longer than {1e3 * widest:.3g} ms")


def repeated_rows(x: Array, likely: bool) -> Rows:
    """Return the mask (samples,) of rows that equal the previous row in every column.

    likely: equal neighbours are common (a coarse torque); they count only if ten times as frequent as by chance.
    """
    same = np.ones(len(x), dtype=bool)
    same[0] = False
    chance = 1.0
    for j in range(x.shape[1]):
        equal = x[1:, j] == x[:-1, j]
        same[1:] &= equal
        chance *= float(np.mean(equal))
    return np.zeros(len(x), dtype=bool) if likely and np.sum(same) < 10.0 * chance * len(x) else same


def stale_rows(q: Array, same: Rows) -> Rows:
    """Return which of the repeating rows `same` (samples,) are not new measurements.

    If most repeated rows occur in steady motion, none of them is a new measurement, except long rests of the robot.
    """
    stale = advancing(q, same)
    if np.sum(stale) <= _FEW_REPEATS * len(q):
        return np.zeros(len(q), dtype=bool)
    return same & ~longer_than(same, _STANDS_STILL) if np.sum(stale) > 0.5 * np.sum(same) else stale


def advancing(q: Array, same: Rows) -> Rows:
    """Return which of the rows `same` (samples,) lie within steady motion of some joint.

    Motion is steady if the position changes in one direction, by unequal steps, over the distinct rows among the ten
    rows before and after.
    """
    out = np.zeros(len(q), dtype=bool)
    for j in range(q.shape[1]):
        step = np.diff(q[:, j], prepend=q[0, j])
        for part in np.array_split(np.flatnonzero(same & ~out), len(q) // 100_000 + 1):
            around = np.clip(part[:, None] + np.arange(-10, 11), 1, len(q) - 1)
            steps, used = step[around], ~same[around]
            one_way = np.all((steps > 0.0) | ~used, axis=1) | np.all((steps < 0.0) | ~used, axis=1)
            size = np.abs(steps)
            uneven = np.max(size, axis=1) > 1.02 * np.min(np.where(used, size, np.inf), axis=1)
            out[part] = one_way & uneven & (np.sum(used, axis=1) >= 4)
    return out


def frozen_positions(q: Array, rows: Rows) -> Rows:
    """Return where the position of a joint is stuck (samples, joints): three or more equal values, then a jump.

    Only the given rows (samples,) are considered.

    A jump is at least five encoder counts, and twice the largest step of the five rows before and after. It is also at
    least half of the distance that the joint moves at its mean speed in that time.
    """
    frozen = np.zeros(q.shape, dtype=bool)
    for j in range(q.shape[1]):
        column, hangs = q[rows, j], np.zeros(int(rows.sum()), dtype=bool)
        size, ranges = np.abs(np.diff(column)), equal_ranges(column, 3)
        ranges = ranges[ranges[:, 1] < len(column)]
        for start, stop in ranges[size[ranges[:, 1] - 1] >= 5.0 * encoder_count(column)]:
            around = np.concatenate([size[max(start - 5, 0):start], size[stop:stop + 5]])
            if len(around) and np.any(around > 0.0) and size[stop - 1] > max(2.0 * around.max(),
                                                                             0.5 * around.mean() * (stop - start)):
                hangs[start + 1:stop] = True
        frozen[rows, j] = hangs
    return frozen


def repeated_sentences(recording: Recording, fresh: dict[str, Rows], frozen: Rows) -> list[str]:
    """Return sentences on repeated values, one per kind."""
    out = []
    words = {"q": "positions", "tau": "torques", "dq": "velocities"}
    counts = {words[name]: int(np.sum(~rows)) for name, rows in fresh.items() if not np.all(rows)}
    if counts:
        share = 100.0 * max(counts.values()) / len(recording)
        what = ", ".join(f"{n} of the {word}" for word, n in counts.items())
        out.append(f"rows that repeat the previous one while the robot moves were ignored as not measured: {what} "
                   f"({percent_text(share)})")
    for j in np.flatnonzero(np.any(frozen, axis=0)):
        name = (recording.joints or numbered_joints(recording.dof))[j]
        rows = np.flatnonzero(frozen[:, j])
        out.append(f"position of {name} is stuck in {len(rows)} rows, the first is row {rows[0]}: ignored")
    return out


def split(t: Array, good: Rows, widest: float) -> Segments:
    """Return row ranges (k, 2) between gaps longer than `widest` s; a range begins and ends with a good row."""
    rows = np.flatnonzero(good)
    cuts = np.flatnonzero(np.diff(t[rows]) > widest)
    starts = rows[np.concatenate([[0], cuts + 1])]
    stops = rows[np.concatenate([cuts, [len(rows) - 1]])] + 1
    return np.column_stack([starts, stops]).astype(np.int64)


def regular_rate(t: Array, segments: Segments) -> float | None:
    """Return the rate (Hz) if all segments are uniform with the same rate, otherwise None."""
    spans = np.array([t[stop - 1] - t[start] for start, stop in segments])
    counts = segments[:, 1] - segments[:, 0] - 1
    if not np.sum(counts):
        return None
    if np.sum(counts) + 1 != len(t) and len(segments) == 1:
        return None  # rows were cut off at an end
    rate = float(np.sum(counts) / np.sum(spans))
    nearest = float(f"{rate:.6g}")
    for candidate in (nearest, rate):  # a printed rate is a round number; the stamps are not
        if all(np.max(np.abs(t[a:b] - t[a] - np.arange(b - a) / candidate)) * candidate < _UNIFORM_TOLERANCE
               for a, b in segments):
            return candidate
    return None


def uniform_grid(t: Array, segments: Segments, rate: float) -> tuple[Array, Segments]:
    """Return the times of the uniform grid (samples,) and its row ranges (k, 2), without segments of one row."""
    pieces, rows, done = [], [], 0
    for start, stop in segments:
        count = int(np.floor((t[stop - 1] - t[start]) * rate + _UNIFORM_TOLERANCE)) + 1
        if count < 2:
            continue
        pieces.append(t[start] + np.arange(count) / rate)
        rows.append((done, done + count))
        done += count
    grid = np.concatenate(pieces) if pieces else np.zeros(0)
    return grid, np.array(rows, dtype=np.int64).reshape(-1, 2)


def interpolate(t: Array, x: Array, good: Rows, grid: Array, segments: Segments, rows: Segments) -> Array:
    """Return x (samples, joints) of the good rows interpolated to the grid's times, by cubic splines per segment."""
    out = like(x, (len(grid), x.shape[1]))
    filled = 0
    for start, stop in segments:
        if filled == len(rows) or t[start] != grid[rows[filled, 0]]:
            continue  # a segment too short for the grid
        where = slice(*rows[filled])
        filled += 1
        use = np.flatnonzero(good[start:stop]) + start
        at = np.clip(grid[where], t[use[0]], t[use[-1]]) if len(use) else grid[where]
        if len(use) < 2:
            out[where] = x[start]
        else:
            out[where] = at_times(at, t[use], x[use]) if len(use) < 4 else cubic_spline(t[use], x[use], at)
    return out


def near_measurement(stamps: Array, grid: Array, distance: float) -> Rows:
    """Return whether the measurements before and after each grid point (grid,) are at most `distance` s apart."""
    right = np.clip(np.searchsorted(stamps, grid), 1, len(stamps) - 1)
    left = right - 1
    on_one = np.minimum(np.abs(grid - stamps[left]), np.abs(stamps[right] - grid)) < 1e-3 * distance
    return on_one | (stamps[right] - stamps[left] <= distance)

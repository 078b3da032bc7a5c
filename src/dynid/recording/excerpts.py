"""Excerpts: intervals of time spread evenly over all logs, for computations that do not need every row.

All logs are concatenated, and windows of equal length are placed in the middle of equal parts. A window that crosses
the end of a log or a gap is split. Logs are sorted by name and content, so their given order does not matter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.recording.decimate import reach
from dynid.recording.preparation import selection
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples

STRETCHES = 8  # smallest number of intervals of all logs together; a cross-validation has as many blocks of time
FILTERABLE_SECONDS = 15.0  # s: length of an interval that is filtered again; long compared with filter borders
REST_SECONDS = 1.0  # s without motion of any joint: longer than a reversal, shorter than a pause between motions
SHORTEST_STRETCH = 100  # rows after decimation: several times the reach of its filter

RowRanges = list[tuple[int, int]]  # half-open, in order


def excerpt(samples: Sequence[Samples], rows: int) -> tuple[Samples, ...]:
    """Return about `rows` rows of some logs, as intervals of time spread evenly over all of them.

    Args:
        samples: the logs.
        rows: total number of rows at full rate (before decimation).

    Returns:
        The unchanged logs if they have no more rows. Otherwise the logs in the same order with the rows of their
        intervals, one segment each; a log without an interval is omitted.
    """
    chosen = stretches(samples, rows)
    return tuple(samples) if chosen is None else tuple(samples[k].select(own) for k, own in enumerate(chosen) if own)


def moving_excerpt(recordings: Sequence[Recording], rows: int) -> tuple[Recording, ...]:
    """Return about `rows` rows of some recordings in which the robot moves, as recordings of one interval each.

    A recording with motion throughout is returned unchanged, unless all together have more than `rows` rows.
    """
    parts = [selection.moving_spans(log.q, round(REST_SECONDS * log.rate)) for log in recordings]
    spans = [_Span(k, a, b) for k, own in enumerate(parts) for a, b in own]
    chosen = _spread(recordings, spans, rows, rows // STRETCHES) or parts
    found = tuple(log if (a, b) == (0, len(log)) else log[a:b]
                  for log, own in zip(recordings, chosen, strict=True) for a, b in own)
    return tuple(log for log in found if np.any(selection.moving_joints(log.q))) or tuple(recordings)


def stretches(samples: Sequence[Samples], rows: int, seconds: float = 0.0) -> list[RowRanges] | None:
    """Return the row ranges of each log in an `excerpt`; None if it has all rows. seconds: shortest interval, s."""
    spans = [_Span(k, int(a), int(b), log.decimated_by) for k, log in enumerate(samples) for a, b in log.segments]
    shortest = SHORTEST_STRETCH * max((log.decimated_by for log in samples), default=1)
    return _spread(samples, spans, rows, max(shortest, int(seconds * max((log.rate for log in samples), default=0.0))))


def filterable_excerpt(samples: Sequence[Samples], rows: int) -> dict[int, Samples]:
    """Return an excerpt, by index of the log, to which the filters of the preparation can be applied: intervals are
    long compared with the filter, and rows affected by new borders are not kept."""
    chosen = stretches(samples, rows, FILTERABLE_SECONDS)
    if chosen is None:
        return dict(enumerate(samples))
    return {k: _without_borders(samples[k], own) for k, own in enumerate(chosen) if own}


def _without_borders(samples: Samples, chosen: RowRanges) -> Samples:
    """Return intervals of a log, with the rows next to new borders marked as not used."""
    found, at = samples.select(chosen), 0
    border = round(float(samples.settings.get("border") or 0.0) * samples.rate)
    border = max(border, 0 if samples.decimation is None else reach(samples.decimation))
    keep, own = found.keep.copy(), {int(row) for row in np.ravel(samples.segments)}
    for start, stop in chosen:
        margin, end = min(border, (stop - start) // 4), at + stop - start
        keep[at:at + (0 if start in own else margin)] = False
        keep[end - (0 if stop in own else margin):end] = False
        at = end
    return replace(found, keep=keep)


@dataclass(frozen=True)
class _Span:
    """Rows of one log without a gap. step: excerpts begin at multiples of this number of rows from `start`."""

    log: int
    start: int
    stop: int
    step: int = 1

    def __len__(self) -> int:
        return self.stop - self.start


def _spread(logs: Sequence[Samples] | Sequence[Recording], spans: Sequence[_Span], rows: int, shortest: int
            ) -> list[RowRanges] | None:
    """Return row ranges of each log, in windows of at least `shortest` rows; None if the spans have no more rows."""
    total = sum(map(len, spans))
    if total <= rows:
        return None
    place = {k: at for at, k in enumerate(sorted(range(len(logs)), key=lambda k: _own_order(logs[k])))}
    line = sorted((span for span in spans if len(span)), key=lambda span: (place[span.log], span.start))
    ends = np.cumsum([len(span) for span in line]).tolist()
    count = max(1, min(max(STRETCHES, 2 * len(logs)), rows // max(shortest, 1)))
    length = max(rows // count, 1)
    chosen: list[RowRanges] = [[] for _ in logs]
    for k in range(count):
        first = ((2 * k + 1) * total // count - length) // 2
        for log, a, b in _window(line, ends, first, first + length, shortest):
            chosen[log].append((a, b))
    return chosen


def _window(line: Sequence[_Span], ends: Sequence[int], first: int, last: int, shortest: int
            ) -> list[tuple[int, int, int]]:
    """Return the log and the row range of each part of a window on the concatenated spans.

    A part shorter than `shortest` rows is omitted, except the longest.
    """
    parts = []
    for span, end in zip(line[(at := bisect_right(ends, first)):], ends[at:], strict=True):
        begin = end - len(span)
        if begin >= last:
            break
        a, b = max(first - begin, 0) // span.step * span.step, min(last - begin, len(span))
        parts.append((b - a, b - a == len(span), (span.log, span.start + a, span.start + b)))
    longest = max(size for size, _, _ in parts)
    return [part for size, whole, part in parts if whole or size >= min(shortest, longest)]


def _own_order(log: Samples | Recording) -> tuple[Any, ...]:
    """Return the sort key of a log: its name, then its first rows."""
    return log.source, len(log), *(x[0].tolist() for x in (log.t, log.q, log.tau) if len(log))

"""JointState messages of one topic as time series, interpolated to the times of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import RecordingError

PARTS = ("position", "velocity", "effort")
# What a signal is called in a JointState message.
PART_OF = {"position": "position", "reference": "position", "motor_position": "position", "velocity": "velocity",
           "reference_velocity": "velocity", "torque": "effort", "current": "effort", "sensed_torque": "effort",
           "target_torque": "effort", "target_current": "effort", "external_torque": "effort"}
GAP_INTERVALS = 5.0  # times the median interval of a topic beyond which nothing is known between two messages


@dataclass(frozen=True, eq=False)
class TopicSeries:
    """Messages of one topic: stamps (messages,), ns, rising; values (messages,) by part and joint."""

    topic: str
    stamps: Ints
    values: dict[tuple[str, str], Array]

    @property
    def interval(self) -> float:
        """Median time between two messages, ns."""
        return float(np.median(np.diff(self.stamps))) if len(self.stamps) > 1 else 0.0

    def at(self, stamps: Ints, part: str, joint: str) -> Array:
        """Return the values of one joint at other stamps (n,), interpolated linearly between messages."""
        origin = self.stamps[0]
        return np.interp((stamps - origin).astype(float), (self.stamps - origin).astype(float),
                         self.values[part, joint])

    def reaches(self, stamps: Ints) -> Bools:
        """Return which stamps (n,) lie between two messages without a gap, or within one interval of an end."""
        place = np.searchsorted(self.stamps, stamps, side="right")
        before = stamps - self.stamps[np.maximum(place - 1, 0)]
        after = self.stamps[np.minimum(place, len(self.stamps) - 1)] - stamps
        ends = ((place == 0) & (after <= self.interval)) | ((place == len(self.stamps)) & (before <= self.interval))
        inside = (place > 0) & (place < len(self.stamps))
        return np.asarray(ends | (before == 0) | (inside & (before + after <= GAP_INTERVALS * self.interval)))

    def note(self, rows: int, left_out: int) -> str:
        """Return a note on how the topic was used, for a log with this number of rows."""
        gaps = np.diff(self.stamps)
        wide = gaps[gaps > GAP_INTERVALS * self.interval]
        said = (f"{self.topic} has {1000000000.0 / self.interval:.4g} Hz and was interpolated at the times of the "
                "positions") \
            if self.interval > 0 else f"{self.topic} has a single message"
        if len(wide):
            said += f"; it has {len(wide)} gap{'s' if len(wide) > 1 else ''} of up to {1e-9 * float(wide.max()):.3g} s"
        return said + (f"; {left_out} of {rows} rows are outside its messages and were ignored" if left_out else "")


def joints_of(messages: Iterable[Any]) -> tuple[dict[str, tuple[str, ...]], int, int]:
    """Return the joints with position, velocity or effort in some messages, and the numbers of stamped and of all
    messages."""
    found: dict[str, dict[str, None]] = {part: {} for part in PARTS}
    stamped = looked = 0
    for message in messages:
        looked += 1
        stamped += bool(stamp_of(message))
        for part in PARTS:
            if len(getattr(message, part)) == len(message.name):
                found[part].update(dict.fromkeys(message.name))
    return {part: tuple(names) for part, names in found.items()}, stamped, looked


def series_of(topic: str, messages: Iterable[tuple[int, Any]], wanted: Iterable[tuple[str, str]], stamped: bool
              ) -> TopicSeries:
    """Return the series of (part, joint) pairs from (time of receipt, message).

    A message that lacks one of them, or repeats a stamp, is skipped.
    """
    pairs, times, rows = list(wanted), list[int](), list[list[float]]()
    for received, message in messages:
        places = {joint: i for i, joint in enumerate(message.name)}
        if all(joint in places and places[joint] < len(getattr(message, part)) for part, joint in pairs):
            times.append(stamp_of(message) if stamped else received)
            rows.append([float(getattr(message, part)[places[joint]]) for part, joint in pairs])
    if not rows:
        raise RecordingError(f"topic {topic} has no message with {pairs[0][0]} of joint '{pairs[0][1]}'")
    stamps, first = np.unique(np.array(times, dtype=np.int64), return_index=True)
    values = np.array(rows, dtype=float)[first]
    return TopicSeries(topic, stamps, {pair: values[:, k] for k, pair in enumerate(pairs)})


def stamp_of(message: Any) -> int:
    """Return the stamp of a message's header, ns."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)

"""Messages of a topic as time series of joints or of a base, interpolated to the times of another topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import RecordingError

PARTS = ("position", "velocity", "effort")
# Part of a JointState message that contains a signal.
PART_OF = {"position": "position", "reference": "position", "motor_position": "position", "velocity": "velocity",
           "reference_velocity": "velocity", "torque": "effort", "current": "effort", "sensed_torque": "effort",
           "target_torque": "effort", "target_current": "effort", "external_torque": "effort"}
# Message types for the motion of a base: part -> signal of a mapping, attribute of the message, and axes.
VECTORS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "sensor_msgs/msg/Imu": {"angular_velocity": ("imu_angular_rate", "angular_velocity", "xyz"),
                            "linear_acceleration": ("imu_specific_force", "linear_acceleration", "xyz"),
                            "orientation": ("base_orientation", "orientation", "xyzw")},
    "nav_msgs/msg/Odometry": {"position": ("base_position", "pose.pose.position", "xyz"),
                              "orientation": ("base_orientation", "pose.pose.orientation", "xyzw")},
    "geometry_msgs/msg/PoseStamped": {"position": ("base_position", "pose.position", "xyz"),
                                      "orientation": ("base_orientation", "pose.orientation", "xyzw")},
    "geometry_msgs/msg/PoseWithCovarianceStamped": {
        "position": ("base_position", "pose.pose.position", "xyz"),
        "orientation": ("base_orientation", "pose.pose.orientation", "xyzw")},
    "geometry_msgs/msg/TransformStamped": {"position": ("base_position", "transform.translation", "xyz"),
                                           "orientation": ("base_orientation", "transform.rotation", "xyzw")},
}
_LEAST_QUATERNION_NORM = 0.5  # smaller: the message has no orientation, since such drivers write zeros
GAP_INTERVALS = 5.0  # multiple of a topic's median interval above which a gap is not interpolated


@dataclass(frozen=True, eq=False)
class TopicSeries:
    """Messages of one topic.

    stamps: (messages,), ns, increasing. values: by part and joint, (messages,) for a joint and (messages, k) for a
    vector, whose joint is empty.
    """

    topic: str
    stamps: Ints
    values: dict[tuple[str, str], Array]

    @property
    def interval(self) -> float:
        """Median time between two messages, ns."""
        return float(np.median(np.diff(self.stamps))) if len(self.stamps) > 1 else 0.0

    def at(self, stamps: Ints, part: str, joint: str) -> Array:
        """Return the values of one joint (n,), or of a vector (n, k), at other time stamps (n,), by interpolation."""
        origin, values = self.stamps[0], self.values[part, joint]
        moments, own = (stamps - origin).astype(float), (self.stamps - origin).astype(float)
        if values.ndim == 1:
            return np.interp(moments, own, values)
        found = np.column_stack([np.interp(moments, own, column) for column in values.T])
        return found / np.linalg.norm(found, axis=1, keepdims=True) if part == "orientation" else found

    def reaches(self, stamps: Ints) -> Bools:
        """Return which stamps (n,) lie between two messages without a gap, or within one interval of an end."""
        place = np.searchsorted(self.stamps, stamps, side="right")
        before = stamps - self.stamps[np.maximum(place - 1, 0)]
        after = self.stamps[np.minimum(place, len(self.stamps) - 1)] - stamps
        ends = ((place == 0) & (after <= self.interval)) | ((place == len(self.stamps)) & (before <= self.interval))
        inside = (place > 0) & (place < len(self.stamps))
        return np.asarray(ends | (before == 0) | (inside & (before + after <= GAP_INTERVALS * self.interval)))

    def note(self, rows: int, left_out: int) -> str:
        """Return a sentence on the interpolation of the topic.

        rows: number of rows of the log. left_out: number of these that the topic does not cover.
        """
        gaps = np.diff(self.stamps)
        wide = gaps[gaps > GAP_INTERVALS * self.interval]
        text = (f"{self.topic} has a single message" if self.interval <= 0 else
                f"{self.topic} has {1e9 / self.interval:.4g} Hz and was interpolated at the times of the positions")
        if len(wide):
            text += f"; it has {len(wide)} gap{'s' if len(wide) > 1 else ''} of up to {1e-9 * float(wide.max()):.3g} s"
        return text + (f"; {left_out} of {rows} rows are outside its time or in a gap and were ignored" if left_out
                       else "")


def message_joints(messages: Iterable[Any]) -> tuple[dict[str, tuple[str, ...]], int, int]:
    """Return the joints in some messages by part of the message, and the numbers of stamped and of all messages."""
    found: dict[str, dict[str, None]] = {part: {} for part in PARTS}
    stamped = looked = 0
    for message in messages:
        looked += 1
        stamped += bool(header_stamp(message))
        for part in PARTS:
            if len(getattr(message, part)) == len(message.name):
                found[part].update(dict.fromkeys(message.name))
    return {part: tuple(names) for part, names in found.items()}, stamped, looked


def joint_series(topic: str, messages: Iterable[tuple[int, Any]], wanted: Iterable[tuple[str, str]], stamped: bool
                 ) -> TopicSeries:
    """Return the series of (part, joint) pairs from (time of receipt, message).

    A message without one of the pairs, or with a repeated time stamp, is skipped.
    """
    pairs, times, rows = list(wanted), list[int](), list[list[float]]()
    for received, message in messages:
        places = {joint: i for i, joint in enumerate(message.name)}
        if all(joint in places and places[joint] < len(getattr(message, part)) for part, joint in pairs):
            times.append(header_stamp(message) if stamped else received)
            rows.append([float(getattr(message, part)[places[joint]]) for part, joint in pairs])
    if not rows:
        raise RecordingError(f"topic {topic} has no message with {pairs[0][0]} of joint '{pairs[0][1]}'")
    stamps, first = np.unique(np.array(times, dtype=np.int64), return_index=True)
    values = np.array(rows, dtype=float)[first]
    return TopicSeries(topic, stamps, {pair: values[:, k] for k, pair in enumerate(pairs)})


def vector_parts(kind: str, message: Any) -> tuple[str, ...]:
    """Return the parts with a value in a message of one of the types `VECTORS`."""
    return tuple(part for part, (_, place, axes) in VECTORS[kind].items()
                 if part != "orientation" or np.linalg.norm(_vector(message, place, axes)) > _LEAST_QUATERNION_NORM)


def vector_series(topic: str, kind: str, messages: Iterable[tuple[int, Any]], parts: Iterable[str], stamped: bool
                  ) -> TopicSeries:
    """Return the series of some parts of messages (time of receipt, message) of one of the types `VECTORS`.

    Of messages with the same stamp the first is used. Quaternions keep their sign, so that they can be interpolated.
    """
    wanted, times, rows = list(parts), list[int](), dict[str, list[list[float]]]()
    for received, message in messages:
        times.append(header_stamp(message) if stamped else received)
        for part in wanted:
            rows.setdefault(part, []).append(_vector(message, *VECTORS[kind][part][1:]))
    stamps, first = np.unique(np.array(times, dtype=np.int64), return_index=True)
    values = {(part, ""): np.array(rows[part], dtype=float)[first] for part in wanted}
    turned = values.get(("orientation", ""))
    if turned is not None and len(turned) > 1:
        turned[1:] *= np.cumprod(np.where(np.sum(turned[1:] * turned[:-1], axis=1) < 0.0, -1.0, 1.0))[:, None]
    return TopicSeries(topic, stamps, values)


def _vector(message: Any, place: str, axes: str) -> list[float]:
    """Return the numbers of a vector in a message; place: path of attributes, separated by dots."""
    for name in place.split("."):
        message = getattr(message, name)
    return [float(getattr(message, axis)) for axis in axes]


def header_stamp(message: Any) -> int:
    """Return the time stamp of a message's header, ns."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)

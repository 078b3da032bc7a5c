"""Bags: ROS 1, ROS 2 (sqlite3 and mcap) and MCAP files with sensor_msgs/JointState, and geometry_msgs/WrenchStamped
beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.recording.source import Block, Fault, Values, need
from dynid.signals import at_times

_TYPE = "sensor_msgs/msg/JointState"
_WRENCH = "geometry_msgs/msg/WrenchStamped"
_PARTS = ("position", "velocity", "effort")
_LOOK = 200  # messages looked at to learn the joints of a topic
_CHUNK = 20_000


class Bag:
    """The JointState messages of one topic as columns position/<joint>, velocity/<joint>, effort/<joint>.

    Time is `stamp` (of the message's header) or `received` (when the bag got it), ns.
    Joints are found by name in every message, so their order may change. A topic of wrenches is a field of six columns,
    force and then moment, by its own name, straight between its messages at the times of the joints'.
    """

    row = "message"
    lines = 0
    texts: Mapping[str, tuple[str, ...]] = {}

    def __init__(self, path: Path, topic: str | None = None) -> None:
        highlevel = need("rosbags.highlevel", "ROS bags", path)
        typesys = need("rosbags.typesys", "ROS bags", path)
        self.path = path
        self.notes: list[str] = []
        try:
            self._reader: Any = highlevel.AnyReader(
                [path], default_typestore=typesys.get_typestore(typesys.Stores.ROS2_HUMBLE))
            self._reader.open()
        except Exception as problem:  # damaged bags raise many kinds
            raise RecordingError(f"{path}: the bag cannot be read, {' '.join(str(problem).split())[:200]}") from None
        try:
            self.topic = self._choose(topic)
            self._connections = [item for item in self._reader.connections
                                 if item.topic == self.topic and item.msgtype == _TYPE]
            self._look()
            self._wrenches = sorted({item.topic for item in self._reader.connections
                                     if item.msgtype == _WRENCH and item.msgcount})
        except BaseException:
            self.close()
            raise

    def _choose(self, topic: str | None) -> str:
        topics = sorted({item.topic for item in self._reader.connections if item.msgtype == _TYPE})
        if not topics:
            others = sorted({item.topic for item in self._reader.connections})
            raise RecordingError(f"{self.path}: has no topic of type sensor_msgs/JointState, only "
                                 f"{', '.join(others) or 'nothing'}")
        if topic is not None:
            if topic not in topics:
                raise RecordingError(f"{self.path}: has no JointState topic '{topic}'; it has {', '.join(topics)}")
            return topic
        if len(topics) > 1:
            raise RecordingError(f"{self.path}: has several JointState topics, {', '.join(topics)}; "
                                 f"say which with topic = \"...\"")
        return topics[0]

    def _messages(self) -> Iterator[tuple[int, Any]]:
        for connection, stamp, raw in self._reader.messages(connections=self._connections):
            yield stamp, self._reader.deserialize(raw, connection.msgtype)

    def _wrench(self, topic: str) -> tuple[Array, Array]:
        """Times, ns, and force and moment (messages, 6) of a topic, in the order of time."""
        connections = [item for item in self._reader.connections if item.topic == topic and item.msgtype == _WRENCH]
        times, values = [], []
        for connection, received, raw in self._reader.messages(connections=connections):
            message = self._reader.deserialize(raw, connection.msgtype)
            times.append(_stamp(message) if self._clock == "stamp" else received)
            values.append([getattr(part, axis) for part in (message.wrench.force, message.wrench.torque)
                           for axis in "xyz"])
        order = np.argsort(times, kind="stable")
        return np.array(times, dtype=float)[order], np.array(values, dtype=float).reshape(-1, 6)[order]

    def _look(self) -> None:
        """Which joints and which of position, velocity, effort the messages carry; and whether they are stamped."""
        found: dict[str, dict[str, None]] = {part: {} for part in _PARTS}
        stamped = looked = 0
        for _, message in islice(self._messages(), _LOOK):
            looked += 1
            stamped += bool(_stamp(message))
            for part in _PARTS:
                if len(getattr(message, part)) == len(message.name):
                    found[part].update(dict.fromkeys(message.name))
        if not looked:
            raise RecordingError(f"{self.path}: topic {self.topic} holds no messages")
        self._found = found
        self._clock = "stamp" if stamped else "received"
        if not stamped:
            self.notes.append("messages carry no stamp, the times when the bag received them are used")

    @property
    def fields(self) -> dict[str, tuple[int, ...]]:
        names = ["stamp", "received", *(f"{part}/{joint}" for part in _PARTS for joint in self._found[part])]
        return {**{name: (0,) for name in names}, **{topic: (0, 6) for topic in self._wrenches}}

    @property
    def defaults(self) -> dict[str, str]:
        signals = {"position": "position", "velocity": "velocity", "effort": "torque"}
        found = {signals[part]: part + "/{joint}" for part in _PARTS if self._found[part]}
        return {"time": self._clock, **found, **({"wrench": self._wrenches[0]} if len(self._wrenches) == 1
                                                 else {})}

    def value(self, name: str) -> Values:
        return np.concatenate([block.values[name] for block in self.blocks([name], None, None)])

    def close(self) -> None:
        self._reader.close()

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[Block]:
        sensors = [name for name in names if name in self._wrenches]
        wanted = [(name, *name.split("/", 1)) for name in names if "/" in name and name not in sensors]
        joints = {joint for _, _, joint in wanted}
        felt = {name: self._wrench(name) for name in sensors}
        columns: dict[str, list[Any]] = {name: [] for name in names if name not in sensors}
        times: list[int] = []
        numbers: list[int] = []
        faults: dict[int, Fault] = {}
        others = 0

        def block() -> Block:
            values: dict[str, Values] = {name: np.array(column, dtype=float) for name, column in columns.items()
                                         if "/" in name}
            for name in columns.keys() - values.keys():
                values[name] = np.array(columns[name], dtype=np.int64).view("datetime64[ns]")
            at = np.array(times, dtype=float)
            values.update({name: at_times(at, *found) for name, found in felt.items()})
            return Block(values, np.array(numbers, dtype=np.int64), faults)

        for number, (received, message) in enumerate(self._messages(), start=1):
            places = {joint: i for i, joint in enumerate(message.name)}
            if joints and not joints & places.keys():
                others += 1
                continue
            for name, part, joint in wanted:
                values = getattr(message, part)
                place = places.get(joint)
                if place is None or place >= len(values):
                    what = f"is not in the message, which has {', '.join(message.name)}" if place is None \
                        else "has no value in the message"
                    faults.setdefault(len(numbers), (name, 0, what))
                    columns[name].append(0.0)
                else:
                    columns[name].append(values[place])
            if "stamp" in columns:
                columns["stamp"].append(_stamp(message))
            if "received" in columns:
                columns["received"].append(received)
            times.append(_stamp(message) if self._clock == "stamp" else received)
            numbers.append(number)
            if len(numbers) == min(rows or _CHUNK, _CHUNK):
                yield block()
                columns, numbers, faults, times = {name: [] for name in columns}, [], {}, []
        if numbers:
            yield block()
        if others:
            self.notes.append(f"{others} messages of {self.topic} name none of the joints and were passed over")


def _stamp(message: Any) -> int:
    """Nanoseconds of the header's stamp."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)

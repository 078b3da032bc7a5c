"""Bags: ROS 1, ROS 2 (sqlite3 and mcap) and MCAP files with sensor_msgs/JointState of one or several topics, and
geometry_msgs/WrenchStamped and messages on the motion of a base (sensor_msgs/Imu, poses, odometry).

The package rosbags unpacks a chunk of a bag to any size, so its decompressors are replaced by ones that check the size.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import IO, Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import DynidError, RecordingError
from dynid.files import check_file, read_file
from dynid.recording.mapping import Names
from dynid.recording.mat_structure import datasets_by_path
from dynid.recording.source import Fault, FileRows, Source, Values, need, unreadable
from dynid.recording.topics import (
    PART_OF,
    PARTS,
    VECTORS,
    TopicSeries,
    header_stamp,
    joint_series,
    message_joints,
    vector_parts,
    vector_series,
)
from dynid.recording.unpacking import Measure, measured, unpacked, unpacked_limit
from dynid.signals import at_times

_JOINT_STATE_TYPE = "sensor_msgs/msg/JointState"
_WRENCH_TYPE = "geometry_msgs/msg/WrenchStamped"
_MESSAGES_FOR_JOINTS = 200  # messages read to find the joints of a topic
_MESSAGES_AT_ONCE = 20_000
_MOST_METADATA = 4 << 20  # bytes of metadata.yaml


class Bag(Source):
    """JointState messages of one topic as columns position/<joint>, velocity/<joint>, effort/<joint>.

    Time is `stamp` (message header) or `received` (by the bag), ns. Joints are found by name in every message. A wrench
    topic is a field of six columns, force and moment, interpolated linearly. Other topics are interpolated at the same
    times: JointState messages as columns <topic>:position/<joint> and so on, vectors of an IMU, a pose or an odometry
    as <topic>:angular_velocity and so on (`VECTORS`). Rows outside or in a gap of another topic's messages are omitted.
    """

    row = "message"

    def __init__(self, path: Path, topic: str | None = None) -> None:
        highlevel = need("rosbags.highlevel", "ROS bags", path)
        typesys = need("rosbags.typesys", "ROS bags", path)
        super().__init__(path)
        check_bag(path)
        limit_unpacking(path)
        try:
            self._reader: Any = highlevel.AnyReader(
                [path], default_typestore=typesys.get_typestore(typesys.Stores.ROS2_HUMBLE))
            self._reader.open()
        except DynidError:
            raise
        except Exception as problem:  # damaged bags raise many kinds of exceptions
            raise unreadable(path, "bag", problem) from None
        try:
            self._kinds = {item.topic: item.msgtype for item in self._reader.connections
                           if item.msgtype in VECTORS and item.msgcount}
            self.topic = self._choose(topic)
            self._look()
            self._others = {name: self._joints(name) for name in self._topics if name != self.topic}
            self._wrenches = sorted({item.topic for item in self._reader.connections
                                     if item.msgtype == _WRENCH_TYPE and item.msgcount})
            self._vectors = {topic: self._first_vector(topic) for topic in self._kinds}
        except BaseException:
            self.close()
            raise

    def _choose(self, topic: str | None) -> str:
        topics = self._topics
        if not topics:
            others = sorted({item.topic for item in self._reader.connections})
            raise RecordingError(f"{self.path}: has no topic of type sensor_msgs/JointState, only "
                                 f"{', '.join(others) or 'nothing'}; record the topic /joint_states")
        if topic is not None:
            if topic not in topics:
                raise RecordingError(f"{self.path}: has no JointState topic '{topic}'; it has {', '.join(topics)}")
            return topic
        if len(topics) > 1:
            raise RecordingError(f"{self.path}: has several JointState topics, {', '.join(topics)}; choose one with "
                                 f"--set log.topic={topics[0]}", code="several-topics")
        return topics[0]

    @property
    def _topics(self) -> list[str]:
        """Return the topics of the bag with joint states."""
        return sorted({item.topic for item in self._reader.connections if item.msgtype == _JOINT_STATE_TYPE})

    def _first_vector(self, topic: str) -> tuple[tuple[str, ...], bool]:
        """Return the parts of the first message of a topic on the motion of a base, and whether it has a time stamp."""
        for _, message in self._messages(topic):
            return vector_parts(self._kinds[topic], message), bool(header_stamp(message))
        return (), False

    @property
    def base_fields(self) -> dict[str, str]:
        """Return the signals of a free base, by the field that contains them."""
        return {f"{topic}:{part}": VECTORS[self._kinds[topic]][part][0]
                for topic, (parts, _) in self._vectors.items() for part in parts}

    def _messages(self, topic: str | None = None, kind: str | None = None) -> Iterator[tuple[int, Any]]:
        """Yield time of receipt and message of a topic, by default the main one; kind: message type."""
        name, kind = topic or self.topic, kind or self._kinds.get(topic or "", _JOINT_STATE_TYPE)
        connections = [item for item in self._reader.connections if item.topic == name and item.msgtype == kind]
        measure = Measure(self.path)
        for connection, stamp, raw in self._reader.messages(connections=connections):
            measure.add(len(raw))
            yield stamp, self._reader.deserialize(raw, connection.msgtype)

    def named(self, topic: str, columns: Names | None, signal: str) -> Names:
        """Return the names of a topic's columns as fields of the bag; by default those that contain the signal."""
        if topic in self._wrenches and columns is None:
            return topic
        if topic in self._kinds:
            own = {held: name for name, held in self.base_fields.items() if name.startswith(f"{topic}:")}
            if isinstance(columns, str):
                return f"{topic}:{columns}"
            if signal in own:
                return own[signal]
            raise RecordingError(f"{self.path}: topic {topic} of type {self._kinds[topic]} has no {signal}, only "
                                 f"{', '.join(own)}", where=f"log.{signal}", code="log-lacks-signal")
        if topic not in self._topics:
            raise RecordingError(f"{self.path}: has no JointState topic '{topic}' for {signal}; it has "
                                 f"{', '.join([*self._topics, *self._wrenches, *self._kinds])}")
        if columns is None and signal not in PART_OF:
            raise RecordingError(f"{self.path}: {signal} is not part of a JointState message; name its columns with "
                                 f"--set 'log.{signal}={{topic = \"{topic}\", columns = [...]}}'")
        given = PART_OF[signal] + "/{joint}" if columns is None else columns
        before = "" if topic == self.topic else f"{topic}:"
        return [f"{before}{one}" for one in given] if isinstance(given, list) else f"{before}{given}"

    def _wrench(self, topic: str) -> tuple[Array, Array]:
        """Return times, ns, and force and moment (messages, 6) of a topic, in temporal order."""
        times, values = [], []
        for received, message in self._messages(topic, _WRENCH_TYPE):
            times.append(header_stamp(message) if self._clock == "stamp" else received)
            values.append([getattr(part, axis) for part in (message.wrench.force, message.wrench.torque)
                           for axis in "xyz"])
        order = np.argsort(times, kind="stable")
        return np.array(times, dtype=float)[order], np.array(values, dtype=float).reshape(-1, 6)[order]

    def _joints(self, topic: str) -> tuple[dict[str, tuple[str, ...]], int, int]:
        """Return the joints in the first messages of a topic, and the numbers of stamped and of all these messages."""
        return message_joints(message for _, message in islice(self._messages(topic), _MESSAGES_FOR_JOINTS))

    def _look(self) -> None:
        """Determine the joints and signals in the messages, and whether the messages have time stamps."""
        found, stamped, looked = self._joints(self.topic)
        if not looked:
            raise RecordingError(f"{self.path}: topic {self.topic} contains no messages; choose another topic with "
                                 "--set log.topic=...")
        self._found = found
        self._clock = "stamp" if stamped else "received"
        if not stamped:
            self.notes.append("messages have no time stamp, so the receive times of the bag are used")

    @property
    def fields(self) -> dict[str, tuple[int, ...]]:
        names = ["stamp", "received", *(f"{part}/{joint}" for part in PARTS for joint in self._found[part])]
        names += [f"{topic}:{part}/{joint}" for topic, (found, _, _) in self._others.items()
                  for part in PARTS for joint in found[part]]
        vectors = {name: (0, 4 if signal == "base_orientation" else 3) for name, signal in self.base_fields.items()}
        return {**{name: (0,) for name in names}, **{topic: (0, 6) for topic in self._wrenches}, **vectors}

    @property
    def defaults(self) -> dict[str, str]:
        signals = {"position": "position", "velocity": "velocity", "effort": "torque"}
        found = {signals[part]: part + "/{joint}" for part in PARTS if self._found[part]}
        return {"time": self._clock, **found, **({"wrench": self._wrenches[0]} if len(self._wrenches) == 1 else {})}

    def close(self) -> None:
        self._reader.close()

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        sensors = [name for name in names if name in self._wrenches]
        elsewhere = self._elsewhere(name for name in names if name not in sensors)
        wanted = [(name, *name.split("/", 1)) for name in names
                  if "/" in name and name not in sensors and name not in elsewhere]
        joints = {joint for _, _, joint in wanted}
        felt = {name: self._wrench(name) for name in sensors}
        columns: dict[str, list[Any]] = {name: [] for name in names if name not in sensors and name not in elsewhere}
        times: list[int] = []
        numbers: list[int] = []
        faults: dict[int, Fault] = {}
        others = 0
        reached: dict[TopicSeries, list[int]] = {series: [0, 0] for series, _, _ in elsewhere.values()}

        def block() -> FileRows:
            values: dict[str, Values] = {name: np.array(column, dtype=float) for name, column in columns.items()
                                         if "/" in name}
            for name in columns.keys() - values.keys():
                values[name] = np.array(columns[name], dtype=np.int64).view("datetime64[ns]")
            at = np.array(times, dtype=float)
            values.update({name: at_times(at, *found) for name, found in felt.items()})
            stamps = np.array(times, dtype=np.int64)
            values.update({name: series.at(stamps, part, joint) for name, (series, part, joint) in elsewhere.items()})
            return self._reached(FileRows(values, np.array(numbers, dtype=np.int64), faults), stamps, reached)

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
                columns["stamp"].append(header_stamp(message))
            if "received" in columns:
                columns["received"].append(received)
            times.append(header_stamp(message) if self._clock == "stamp" else received)
            numbers.append(number)
            if len(numbers) == min(rows or _MESSAGES_AT_ONCE, _MESSAGES_AT_ONCE):
                yield block()
                columns, numbers, faults, times = {name: [] for name in columns}, [], {}, []
        if numbers:
            yield block()
        self.notes += [series.note(*counts) for series, counts in reached.items()]
        if others:
            self.notes.append(f"{others} messages of {self.topic} contain none of the joints and were skipped")

    def _elsewhere(self, names: Iterable[str]) -> dict[str, tuple[TopicSeries, str, str]]:
        """Return the columns of other topics: name -> their series, part and joint."""
        pairs: dict[str, dict[str, tuple[str, str]]] = {}
        for name in names:
            for topic in (*self._others, *self._kinds):
                if name.startswith(f"{topic}:"):
                    part, _, joint = name.removeprefix(f"{topic}:").partition("/")
                    pairs.setdefault(topic, {})[name] = (part, joint)
        found: dict[str, tuple[TopicSeries, str, str]] = {}
        for topic, columns in pairs.items():
            is_vector = topic in self._kinds
            stamped = self._is_stamped(topic, self._vectors[topic][1] if is_vector else bool(self._others[topic][1]))
            messages, pairs_here = self._messages(topic), columns.values()
            series = joint_series(topic, messages, pairs_here, stamped) if not is_vector else vector_series(
                topic, self._kinds[topic], messages, [part for part, _ in pairs_here], stamped)
            found |= {name: (series, *pair) for name, pair in columns.items()}
        return found

    def _is_stamped(self, topic: str, has_stamps: bool) -> bool:
        """Return whether another topic has its own time stamps; add a note if receive times are used instead."""
        if self._clock == "stamp" and not has_stamps:
            self.notes.append(f"messages of {topic} have no time stamp, so the receive times of the bag are used")
        return self._clock == "stamp" and has_stamps

    def _reached(self, block: FileRows, stamps: Ints, reached: Mapping[TopicSeries, list[int]]) -> FileRows:
        """Return the rows of a block for which every other topic has messages, and count the rows without messages."""
        good = np.ones(len(stamps), dtype=bool)
        for series, counts in reached.items():
            is_covered = series.reaches(stamps)
            counts[0], counts[1] = counts[0] + len(stamps), counts[1] + int(np.sum(~is_covered))
            good &= is_covered
        return block if np.all(good) else block.take(np.flatnonzero(good))


def check_bag(path: Path) -> None:
    """Refuse a ROS 2 bag whose metadata name a file outside its folder."""
    metadata = path / "metadata.yaml"
    try:
        for file in path.rglob("*") if path.is_dir() else [path]:
            if not file.is_dir():
                check_file(file)
        if not path.is_dir() or not metadata.exists():
            return
        content = read_file(metadata, _MOST_METADATA)
    except OSError as problem:
        raise RecordingError(f"{problem.filename or path}: cannot be read as part of a bag, "
                             f"{problem.strerror}") from None
    yaml = need("ruamel.yaml", "ROS bags", path)
    try:
        table = yaml.YAML(typ="safe").load(content.decode("utf-8", "replace"))
        names = [str(name) for name in table["rosbag2_bagfile_information"]["relative_file_paths"]]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
        return  # damaged: its reader reports that
    folder = path.resolve()
    for name in names:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or PureWindowsPath(name).drive or ".." in parts.parts or not (
                folder / parts.name).resolve().is_relative_to(folder):
            raise RecordingError(f"{metadata}: refers to the file '{name[:80]}', which is not in the bag's folder",
                                 "copy all files of the bag into one folder and run: ros2 bag reindex FOLDER",
                                 code="file-outside")


def limit_unpacking(path: Path) -> None:
    """Limit the size to which rosbags unpacks each chunk and message of a bag."""
    names = ("rosbags.rosbag1.reader", "rosbags.rosbag2.reader", "rosbags.rosbag2.storage_mcap", "lz4.frame")
    modules: list[Any] = [need(name, "ROS bags", path) for name in names]
    ros1, ros2, mcap, lz4 = modules
    zstd = mcap.zstd

    def bounded(make: Any) -> Any:
        def decompress(data: bytes, size: int | None = None) -> bytes:
            limit = unpacked_limit(len(data))
            return unpacked(make(), data, Measure(path, limit if size is None else min(limit, size)))

        return decompress

    def opened(file: IO[bytes], mode: str) -> IO[bytes]:
        return measured(zstd.ZstdFile(file, mode), Measure(path))

    make_lz4, make_zstd = bounded(lz4.LZ4FrameDecompressor), bounded(zstd.ZstdDecompressor)
    ros1.decompressors.update({"bz2": bounded(bz2.BZ2Decompressor), "lz4": make_lz4})
    mcap.DECOMPRESSORS.update({"lz4": make_lz4, "zstd": make_zstd})
    ros2.zstd = SimpleNamespace(open=opened, decompress=make_zstd)


def check_contained(path: Path) -> None:
    """Refuse an HDF5, MATLAB 7.3 or bag file with data in other files. Damaged files pass this check."""
    if path.is_dir():
        check_bag(path)
        return
    try:
        import h5py
    except ImportError:  # without the package, such a file is not read either
        return
    if not path.is_file() or not h5py.is_hdf5(path):
        return
    try:
        with h5py.File(check_file(path), "r") as file:
            datasets_by_path(h5py, file, path)
    except RecordingError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return  # damaged: its reader reports that

"""Bags of ROS 1 and ROS 2, written by rosbags."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore


class Bag:
    """A bag that is written, "ros1" or MCAP. start: ns, where its clock begins."""

    def __init__(self, writer: Any, store: Any, ros1: bool, start: int) -> None:
        self.writer, self.store, self.ros1, self.start = writer, store, ros1, start

    def types(self, *names: str) -> tuple[Any, ...]:
        """Classes of messages, such as "sensor_msgs/msg/JointState"."""
        return tuple(self.store.types[name] for name in names)

    def topic(self, name: str, kind: Any) -> Any:
        return self.writer.add_connection(name, kind.__msgtype__, typestore=self.store)

    def write(self, topic: Any, kind: Any, t: float, make: Callable[[Any], Any]) -> None:
        """A message at a time, s; make: from its header."""
        header, time = self.types("std_msgs/msg/Header", "builtin_interfaces/msg/Time")
        moment = round(t * 1e9) + self.start
        stamp = time(moment // 10**9, moment % 10**9)
        message = make(header(0, stamp, "") if self.ros1 else header(stamp, ""))
        serialize = self.store.serialize_ros1 if self.ros1 else self.store.serialize_cdr
        self.writer.write(topic, moment, serialize(message, kind.__msgtype__))


@contextmanager
def new_bag(path: Path, kind: str, start: int) -> Iterator[Bag]:
    """A bag at a path; kind: "ros1", or anything else for MCAP."""
    ros1 = kind == "ros1"
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    writer = rosbag1.Writer(path) if ros1 else rosbag2.Writer(
        path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP)
    with writer:
        yield Bag(writer, store, ros1, start)

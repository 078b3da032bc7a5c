"""Limits on the unpacked size of bags, and on the files that a bag may refer to.

The package rosbags unpacks a chunk of a bag to any size. Its table of decompressors is therefore replaced by functions
that check the size.
"""

from __future__ import annotations

import bz2
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import IO, Any

from dynid.errors import RecordingError
from dynid.recording.source import need
from dynid.recording.unpacking import Measure, measured, unpacked, unpacked_limit

_MOST_METADATA = 4 << 20  # bytes of metadata.yaml


def check_bag(path: Path) -> None:
    """Refuse a ROS 2 bag whose metadata name a file outside its folder."""
    metadata = path / "metadata.yaml"
    if not path.is_dir() or not metadata.is_file():
        return
    if metadata.stat().st_size > _MOST_METADATA:
        raise RecordingError(f"{metadata}: is larger than {_MOST_METADATA >> 20} MB, so it does not describe a bag")
    yaml = need("ruamel.yaml", "ROS bags", path)
    try:
        table = yaml.YAML(typ="safe").load(metadata.read_text(encoding="utf-8", errors="replace"))
        names = [str(name) for name in table["rosbag2_bagfile_information"]["relative_file_paths"]]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
        return  # damaged: whoever reads it reports that
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

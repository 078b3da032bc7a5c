"""Compressed logs are measured as they are unpacked, and hostile arrays of MATLAB are refused before scipy reads."""

from __future__ import annotations

import bz2
import gzip
import lzma
import resource
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import lz4.frame
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bags import new_bag
from refusals import refused
from rosbags import rosbag1, rosbag2
from scipy.io import loadmat, savemat

from dynid.cli.main import main
from dynid.errors import RecordingError
from dynid.recording import tabular
from dynid.recording.lerobot import Parquet
from dynid.recording.log_reading import read
from dynid.recording.unpacking import LIMIT_VARIABLE

LIMIT = 8  # MB
ROWS = b"0.001,0.5,0.25\n"


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, str(LIMIT))


def refuses(path: Path, code: str = "too-large", *names: str) -> None:
    """The log is refused in a sentence, and not after having been held in memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused(RecordingError, code, path.name, *names) as problem:
        read(path)
    assert "\n" not in str(problem.value)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 150


def text(megabytes: int) -> bytes:
    return b"time,q1,tau1\n" + ROWS * ((megabytes << 20) // len(ROWS))


@pytest.mark.parametrize("name", ["log.csv.gz", "log.csv", "log"])
def test_gzip_with_a_false_size_at_its_end(tmp_path: Path, name: str) -> None:
    """The last four bytes count modulo 4 GiB: here they say what those of a longer one would."""
    packed = gzip.compress(text(5 * LIMIT), 1)
    (tmp_path / name).write_bytes(packed[:-4] + struct.pack("<I", 1000))
    refuses(tmp_path / name)


@pytest.mark.parametrize("compress", [partial(bz2.compress, compresslevel=1), lzma.compress], ids=["bz2", "lzma"])
def test_other_compressed_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               compress: Callable[[bytes], bytes]) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")  # bz2 takes seconds for more of equal rows
    (tmp_path / "log.csv").write_bytes(compress(text(5 * 1)))
    refuses(tmp_path / "log.csv")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_text_within_the_limit_is_read(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    rows = [f"{0.01 * k:.6g},{np.sin(0.1 * k):.17g},{k % 7}" for k in range(500)]
    plain = "\n".join(["time,q1,tau1", *rows, ""]).encode()
    (tmp_path / "plain.csv").write_bytes(plain)
    (tmp_path / "log.csv").write_bytes(compress(plain))
    for at_once in (None, 70):
        found = read(tmp_path / "log.csv", at_once=at_once)
        np.testing.assert_array_equal(found.q, read(tmp_path / "plain.csv").q)


def test_zstd_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(40))
    with refused(RecordingError, "compressed-text", "zstd -d"):
        read(tmp_path / "log.csv.zst")


def test_the_command_line_and_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text(5 * LIMIT), 1))
    with pytest.raises(SystemExit) as left:
        main(["identify", "scara2", str(tmp_path / "log.csv.gz")])
    said = capsys.readouterr().err
    assert left.value.code == 2 and f"{LIMIT_VARIABLE}=" in said and "Traceback" not in said
    monkeypatch.setenv(LIMIT_VARIABLE, "many")
    with refused(RecordingError, "bad-memory-limit", LIMIT_VARIABLE):
        read(tmp_path / "log.csv.gz")


def npy(count: int) -> bytes:
    said = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + said.ljust(117).encode() + b"\n"


def test_an_archive_that_states_less_than_it_unpacks_to(tmp_path: Path) -> None:
    """The sizes in both headers of the member are false, and so is the shape of the array."""
    content = npy(100) + bytes(64 << 20)
    with zipfile.ZipFile(tmp_path / "log.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("time.npy", content)
    raw = (tmp_path / "log.npz").read_bytes()
    (tmp_path / "log.npz").write_bytes(raw.replace(struct.pack("<I", len(content)), struct.pack("<I", 928)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RecordingError):
        read(tmp_path / "log.npz")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 30


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_many_arrays_of_an_archive_count_together(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "log.npz", "w", method) as archive:
        for k in range(12):
            archive.writestr(f"a{k}.npy", npy(1 << 17) + bytes(1 << 20))
    refuses(tmp_path / "log.npz")


def test_arrays_of_python_objects_are_not_read(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[Any, ...]:
            return open, (str(tmp_path / "ran"), "w")

    np.savez(tmp_path / "log.npz", time=np.array([Runs()], dtype=object), q=np.zeros(5))
    with pytest.raises(RecordingError):
        read(tmp_path / "log.npz")
    assert not (tmp_path / "ran").exists()


def test_an_hdf5_chunk_that_unpacks_to_more_than_a_chunk(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for name in ("time", "q", "tau"):
            file.create_dataset(name, (1000,), "f8", chunks=(1000,), compression="gzip")
        file["q"].id.write_direct_chunk((0,), zlib.compress(bytes(300 << 20), 1))
    refuses(tmp_path / "log.h5")


def test_hdf5_with_a_huge_chunk_or_two_compressions(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file["time"], file["tau"] = np.arange(10) / 10.0, np.ones(10)
        file.create_dataset("q", (10,), "f8", chunks=(1 << 24,), maxshape=(None,), compression="gzip")
    refuses(tmp_path / "large.h5")
    with h5py.File(tmp_path / "twice.h5", "w") as file:
        file["time"], file["tau"] = np.arange(100) / 10.0, np.ones(100)
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((100,))
        plan.set_deflate(9)
        plan.set_deflate(9)
        h5py.h5d.create(file.id, b"q", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((100,)), plan)
    refuses(tmp_path / "twice.h5", "compressed-twice")


def test_one_long_word_many_times(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file.create_dataset("names", data=["x" * 100_000] * 900, dtype=h5py.string_dtype())
        file["time"], file["q"], file["tau"] = np.arange(50) / 100.0, np.sin(np.arange(50.0)), np.ones(50)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(read(tmp_path / "log.h5")) == 50
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 60


def test_a_parquet_list_of_one_value_repeated(tmp_path: Path) -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(3 << 20)), 1 << 20).cast(pa.list_(pa.float64()))
    pq.write_table(pa.table({"time": [0.0, 0.1, 0.2], "q": lists, "tau": [1.0, 2.0, 3.0]}), tmp_path / "log.parquet")
    refuses(tmp_path / "log.parquet")


def joint_states(path: Path, kind: str, compression: Any, name: str = "") -> None:
    """A bag of few messages, one of them with a very long name."""
    with new_bag(path, kind, 10**18) as writer:
        (state,) = writer.types("sensor_msgs/msg/JointState")
        topic = writer.topic("/joint_states", state)
        for k in range(20):
            q = np.array([np.sin(0.1 * k)])
            writer.write(topic, state, 0.01 * k, lambda header, q=q: state(header, ["a" + name], q, q, q))


@pytest.mark.parametrize("compression", ["BZ2", "LZ4"])
def test_a_chunk_of_a_ros1_bag(tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    init = rosbag1.Writer.__init__

    def packed(self: Any, path: Path) -> None:
        init(self, path)
        self.set_compression(getattr(rosbag1.Writer.CompressionFormat, compression))

    monkeypatch.setattr(rosbag1.Writer, "__init__", packed)
    joint_states(tmp_path / "good.bag", "ros1", compression)
    assert len(read(tmp_path / "good.bag")) == 20
    joint_states(tmp_path / "log.bag", "ros1", compression, "x" * (1 << 20))
    refuses(tmp_path / "log.bag")


@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
@pytest.mark.parametrize("plugin", ["SQLITE3", "MCAP"])
def test_files_and_messages_of_a_ros2_bag(tmp_path: Path, mode: str, plugin: str,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    made = rosbag2.Writer

    def packed(path: Path, **options: Any) -> Any:
        writer = made(path, **{**options, "storage_plugin": getattr(rosbag2.StoragePlugin, plugin)})
        writer.set_compression(getattr(rosbag2.CompressionMode, mode), rosbag2.CompressionFormat.ZSTD)
        return writer

    monkeypatch.setattr(rosbag2, "Writer", packed)
    joint_states(tmp_path / "good", "ros2", mode)
    assert len(read(tmp_path / "good")) == 20
    joint_states(tmp_path / "log", "ros2", mode, "x" * (1 << 20))
    refuses(tmp_path / "log")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_chunk_of_an_mcap_bag(tmp_path: Path, compression: str) -> None:
    """A chunk of 64 MB that states 64 MB, and one that states 100 bytes."""
    from rosbags.rosbag2.storage_mcap import zstd
    compress = zstd.compress if compression == "zstd" else lz4.frame.compress
    name = compression.encode()
    for k, stated in enumerate((64 << 20, 100)):
        body = struct.pack("<QQQI", 0, 1, stated, 0) + struct.pack("<I", len(name)) + name
        packed = compress(bytes(64 << 20))
        chunk = body + struct.pack("<Q", len(packed)) + packed
        head = struct.pack("<I", 4) + b"ros2" + struct.pack("<I", 0)
        content = b"\x89MCAP0\r\n" + b"\x01" + struct.pack("<Q", len(head)) + head
        content += b"\x06" + struct.pack("<Q", len(chunk)) + chunk + b"\x0f" + struct.pack("<QI", 4, 0)
        content += b"\x02" + struct.pack("<Q", 20) + bytes(20) + b"\x89MCAP0\r\n"
        path = tmp_path / f"log{k}.mcap"
        path.write_bytes(content)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with refused(RecordingError, "too-large", path.name):
            read(path)
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 40


# -- MATLAB v5: elements are written by hand, as "MAT-File Format" has them ------------------------------------------
HEAD = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
ARRAYS = {"time": np.arange(60) / 100.0, "q": np.sin(np.arange(120.0)).reshape(60, 2), "tau": np.ones((60, 2))}


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<2I", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(kind: int, dimensions: tuple[int, ...], body: bytes, name: bytes = b"x") -> bytes:
    return element(14, element(6, struct.pack("<2I", kind, 0))
                   + element(5, struct.pack(f"<{len(dimensions)}i", *dimensions)) + element(1, name) + body)


NUMBERS = matrix(6, (1, 2), element(9, struct.pack("<2d", 1.0, 2.0)))


def nested(depth: int) -> bytes:
    """A cell in a cell, and so on."""
    level = len(matrix(1, (1, 1), b"")) - 8
    sizes = [len(NUMBERS) + k * (level + 8) for k in range(depth)][::-1]
    heads = [struct.pack("<2I", 14, level + size) + matrix(1, (1, 1), b"")[8:] for size in sizes]
    return b"".join(heads) + NUMBERS


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("what", "named"), [
    (nested(50_000), "32"), (matrix(1, (10**9, 1), NUMBERS), "100000 arrays"),
    (matrix(1, (2**31 - 1, 2**31 - 1), NUMBERS), "100000 arrays"),
    (matrix(2, (10**9, 1), element(5, struct.pack("<i", 8)) + element(1, b"")), "100000 arrays"),
    (matrix(1, (500_000, 1), struct.pack("<2I", 14, 0) * 500_000), "100000 arrays"),
    (matrix(1, (-5, 1), NUMBERS), "'x'"), (matrix(99, (1, 1), b""), "99"),
    (matrix(1, (5, 1), NUMBERS), "array"), (matrix(2, (1, 1), element(5, struct.pack("<i", 8))
                                                      + element(1, b"x" * (1 << 21))), f"{1 << 21} bytes")])
def test_hostile_arrays_of_matlab(tmp_path: Path, what: bytes, named: str, packed: bool) -> None:
    (tmp_path / "log.mat").write_bytes(HEAD + (element(15, zlib.compress(what)) if packed else what))
    refuses(tmp_path / "log.mat", "damaged-file", named)


def test_objects_and_functions_of_matlab_are_left_out(tmp_path: Path) -> None:
    savemat(tmp_path / "log.mat", ARRAYS)
    function = matrix(16, (1, 1), NUMBERS, b"f")
    opaque = element(14, element(6, struct.pack("<2I", 17, 0)) + element(1, b"o") + element(1, b"MCOS")
                     + element(1, b"evil") + NUMBERS)
    thing = matrix(3, (1, 1), element(1, b"cls") + element(5, struct.pack("<i", 8)) + element(1, b"field\0\0\0")
                   + NUMBERS, b"thing")
    with (tmp_path / "log.mat").open("ab") as file:
        file.write(function + opaque + thing)
    found = read(tmp_path / "log.mat")
    np.testing.assert_array_equal(found.q, ARRAYS["q"])
    assert any("objects or functions" in note and "f" in note and "thing" in note for note in found.notes)


@pytest.mark.parametrize("packed", [False, True])
def test_plain_variables_are_those_that_scipy_reads(tmp_path: Path, packed: bool) -> None:
    """Cells, structs, text, sparse and complex arrays beside the signals: the walk ends where scipy ends."""
    from scipy.sparse import csc_array

    from dynid.recording.mat_structure import plain_variables
    cell = np.empty((2, 2), dtype=object)
    cell[:] = [["a", np.eye(3)], [1.5, np.array([], dtype=float)]]
    more = {"cell": cell, "struct": {"a": 1.0, "inner": {"b": "text", "c": np.arange(5, dtype=np.int16)}},
            "sparse": csc_array(np.eye(4)), "complex": np.array([1 + 2j, 3j]), "text": "words",
            "empty": np.zeros((0, 3)), "flag": np.array([True, False]), "long_name_of_a_variable": np.float32(2.0)}
    savemat(tmp_path / "log.mat", {**ARRAYS, **more}, do_compression=packed)
    names, others = plain_variables(tmp_path / "log.mat")
    assert set(names) == {name for name in loadmat(tmp_path / "log.mat") if not name.startswith("__")} and not others
    np.testing.assert_array_equal(read(tmp_path / "log.mat").q, ARRAYS["q"])


def test_matlab_v4_is_read_as_before(tmp_path: Path) -> None:
    savemat(tmp_path / "log.mat", ARRAYS, format="4")
    np.testing.assert_array_equal(read(tmp_path / "log.mat").q, ARRAYS["q"])
    raw = (tmp_path / "log.mat").read_bytes()
    (tmp_path / "log.mat").write_bytes(raw[:4] + struct.pack("<2i", 2**30, 2**10) + raw[12:])
    with refused(RecordingError, "damaged-file", "log.mat"):
        read(tmp_path / "log.mat")


# -- many columns -----------------------------------------------------------------------------------------------------
class CountedNames(list[str]):
    """Names of columns that count how often all of them are looked at."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        CountedNames.looks += 1
        return super().__iter__()

    def index(self, *_: Any) -> int:
        raise AssertionError("a name is looked for in all names")


@pytest.mark.parametrize("names", [[f"x{i}sec" for i in range(2000)], ["q1"] * 2000, [f"q{i}" for i in range(2000)],
                                   [f"column {i}" for i in range(2000)]])
def test_the_names_of_columns_are_not_looked_at_once_for_each_of_them(tmp_path: Path, names: list[str],
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    unique = tabular.Text._unique_names
    monkeypatch.setattr(tabular.Text, "_unique_names", lambda self, given: CountedNames(unique(self, given)))
    monkeypatch.setattr(CountedNames, "looks", 0)
    (tmp_path / "log.csv").write_text(",".join(["time", *names]) + "\n" + ",".join("1" * 2001) + "\n")
    with pytest.raises(RecordingError):
        read(tmp_path / "log.csv")
    assert CountedNames.looks < 20


def test_columns_of_lists_of_parquet_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({f"c{i}": [[1.0, 2.0]] for i in range(300)}), tmp_path / "log.parquet")
    calls = []
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches",
                        lambda self, *given, **named: calls.append(1) or batches(self, *given, **named))
    found = Parquet(tmp_path / "log.parquet")
    assert len(found.fields) == 300 and found.fields["c7"] == (1, 2) and len(calls) == 1
    assert found.fields is found.fields


def test_columns_of_parquet_with_one_name_are_not_read(tmp_path: Path) -> None:
    """Each of the names would select all columns, so that reading them would take a time that grows with the square."""
    lists, numbers = pa.array([[1.0, 2.0]]), pa.array([1.0])
    pq.write_table(pa.table([*[lists] * 300, numbers, numbers, numbers], names=[*["x"] * 300, "y", "y", "time"]),
                   tmp_path / "log.parquet")
    found = Parquet(tmp_path / "log.parquet")
    assert list(found.fields) == ["time"] and "x, y" in found.unread

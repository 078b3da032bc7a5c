"""Every kind of file gives back the numbers that its own library wrote."""

from __future__ import annotations

import ast
import csv
import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
from bags import new_bag
from refusals import refused
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

from dynid.errors import DynidError, RecordingError
from dynid.recording.log_reading import read
from dynid.recording.recording import Recording
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Body, Joint, Robot

JOINTS = ("shoulder", "elbow", "wrist")
ARM = Robot("arm", tuple(Joint(name, "revolute", i - 1) for i, name in enumerate(JOINTS)),
            tuple(Body(name) for name in JOINTS))


@pytest.fixture
def log() -> SimpleNamespace:
    rng = np.random.default_rng(5)
    t = np.cumsum(rng.uniform(0.0009, 0.0011, 300)) - 0.0009
    t -= t[0]
    return SimpleNamespace(t=t, q=rng.normal(size=(300, 3)), dq=rng.normal(size=(300, 3)),
                           tau=10 * rng.normal(size=(300, 3)))


def check(recording: Recording, log: SimpleNamespace, *, velocity: bool = True, exact_time: bool = True) -> None:
    np.testing.assert_array_equal(recording.q, log.q)
    np.testing.assert_array_equal(recording.tau, log.tau)
    if velocity:
        np.testing.assert_array_equal(recording.dq, log.dq)
    np.testing.assert_allclose(recording.t, log.t, rtol=0, atol=0 if exact_time else 1.1e-9)


def table(log: SimpleNamespace) -> tuple[list[str], np.ndarray]:
    names = ["time"] + [f"{kind}{i}" for kind in ("q", "dq", "tau") for i in (1, 2, 3)]
    return names, np.column_stack([log.t, log.q, log.dq, log.tau])


def write_table(path: Path, log: SimpleNamespace, delimiter: str, decimal: str = ".", header: bool = True) -> Path:
    names, numbers = table(log)
    lines = [delimiter.join(names)] if header else []
    lines += [delimiter.join(map(repr, row)).replace(".", decimal) for row in numbers.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(params=["pyarrow", "numpy only"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy only":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return str(request.param)


@pytest.mark.parametrize(("delimiter", "decimal"), [(",", "."), (";", "."), ("\t", "."), (" ", "."), (";", ","),
                                                    ("   ", ".")])
def test_text_tables(tmp_path: Path, log: SimpleNamespace, either: str, delimiter: str, decimal: str) -> None:
    recording = read(write_table(tmp_path / "log.csv", log, delimiter, decimal))
    check(recording, log)
    assert any("guessed" in note and "q1, q2, q3" in note for note in recording.notes)
    assert any("decimal comma" in note for note in recording.notes) == (decimal == ",")


def test_text_without_a_header_by_column_number(tmp_path: Path, log: SimpleNamespace, either: str) -> None:
    path = write_table(tmp_path / "log.txt", log, ",", header=False)
    check(read(path, time=1, position="2-4", velocity=[5, 6, 7], torque="8-10"), log)
    with refused(RecordingError, "no-column", "column 11"):
        read(path, time=1, position="2-4", torque="9-11")


def test_text_with_comments_units_quotes_and_trailing_delimiters(tmp_path: Path, log: SimpleNamespace,
                                                                 either: str) -> None:
    names, numbers = table(log)
    path = tmp_path / "log.csv"
    with path.open("w", encoding="utf-8-sig") as file:
        file.write("# a log\n\n")
        file.write(",".join(f'"{name}"' for name in names) + ",\n")
        file.write(",".join(["s"] + ["rad"] * 3 + ["rad/s"] * 3 + ["N m"] * 3) + ",\n")
        for i, row in enumerate(numbers.tolist()):
            file.write(",".join(map(repr, row)) + ",\n" + ("# half\n\n" if i == 150 else ""))
    recording = read(path)
    check(recording, log)
    assert any("row 4 contains no numbers" in note for note in recording.notes)
    assert any("1 comment lines" in note for note in recording.notes)


def test_line_ends_of_windows_an_index_column_and_names_used_twice(tmp_path: Path, either: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b",t,q1,tau1,q1\r\n0,0.00,1,5,9\r\n1,0.01,2,6,8\r\n2,0.02,3,7,7\r\n")
    with refused(RecordingError, "bad-recording", "'q1'", "position", "'q1#"):
        read(path, time="t", position="q1", torque="tau1")
    recording = read(path, time="t", position="q1#2", torque=4)
    np.testing.assert_array_equal(np.column_stack([recording.q, recording.tau]), [[9, 5], [8, 6], [7, 7]])
    np.testing.assert_array_equal(read(path, time=2, position=3, torque=4).q[:, 0], [1, 2, 3])
    assert any("distinguished" in note for note in recording.notes)


def test_savetxt_and_gzip(tmp_path: Path, log: SimpleNamespace, either: str) -> None:
    names, numbers = table(log)
    np.savetxt(tmp_path / "log.txt", numbers, fmt="%.17g", header=" ".join(names))
    recording = read(tmp_path / "log.txt")
    check(recording, log)
    assert any("comment in row 1" in note for note in recording.notes)
    write_table(tmp_path / "log.csv", log, ",")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    check(read(tmp_path / "log.csv.gz"), log)


def test_nanoseconds_since_1970_keep_every_digit(tmp_path: Path, log: SimpleNamespace, either: str) -> None:
    stamps = 1_700_000_000_123_456_789 + np.round(log.t * 1e9).astype(np.int64)
    path = tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table(log)[0])
        numbers = table(log)[1][:, 1:].tolist()
        writer.writerows([stamp, *row] for stamp, row in zip(stamps.tolist(), numbers, strict=True))
    recording = read(path)
    np.testing.assert_array_equal(recording.t, (stamps - stamps[0]) * 1e-9)
    assert any("ns since 1970" in note for note in recording.notes)
    assert any("2023-11-14" in note for note in recording.notes)
    check(read(path, time_unit="ns"), log, exact_time=False)


def test_dates_as_time(tmp_path: Path, either: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text("timestamp,q1,tau1\n2024-05-01T12:00:00.000Z,1,2\n2024-05-01T12:00:00.004Z,1.5,2\n"
                    "2024-05-01T12:00:00.010Z,2,2\n")
    np.testing.assert_allclose(read(path).t, [0, 0.004, 0.010], atol=1e-12)


def test_seconds_and_nanoseconds_in_two_columns(tmp_path: Path, either: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text("header.stamp.secs,header.stamp.nsecs,position_1,effort_1\n"
                    "1700000000,999000000,0,1\n1700000001,1000000,0.1,1\n")
    np.testing.assert_allclose(read(path).t, [0, 0.002], atol=1e-12)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, log: SimpleNamespace, write: Callable[..., None]) -> None:
    path = tmp_path / "log.npz"
    write(path, times=log.t, positions=log.q, velocities=log.dq, torques=np.asfortranarray(log.tau))
    check(read(path), log)


def test_arrays_are_read_although_another_thread_disturbs_the_parser(
        tmp_path: Path, log: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 raises SystemError if two threads parse the headers of arrays at once (python/cpython 106905)."""
    np.savez(tmp_path / "log.npz", times=log.t, positions=log.q, velocities=log.dq, torques=log.tau)
    np.save(tmp_path / "log.npy", table(log)[1])
    parse, calls = ast.literal_eval, list[str]()

    def failing(text: str) -> object:
        calls.append(text)
        if len(calls) % 2:
            raise SystemError("AST constructor recursion depth mismatch (before=96, after=33)")
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", failing)
    check(read(tmp_path / "log.npz"), log)
    check(read(tmp_path / "log.npy", time=1, position="2-4", velocity="5-7", torque="8-10"), log)
    assert len(calls) == 10  # five headers, each of which failed once


def test_transposed_arrays_are_turned_and_said(tmp_path: Path, log: SimpleNamespace) -> None:
    np.savez(tmp_path / "log.npz", t=log.t[None], q=log.q.T, tau=log.tau.T)
    recording = read(tmp_path / "log.npz")
    check(recording, log, velocity=False)
    assert any("'q' is 3 x 300" in note and "transposed" in note for note in recording.notes)


def test_npy_and_record_arrays(tmp_path: Path, log: SimpleNamespace) -> None:
    np.save(tmp_path / "log.npy", table(log)[1])
    check(read(tmp_path / "log.npy", time=1, position="2-4", velocity="5-7", torque="8-10"), log)
    records = np.zeros(300, dtype=[("t", float), ("q", float, 3), ("dq", float, 3), ("tau", float, 3)])
    records["t"], records["q"], records["dq"], records["tau"] = log.t, log.q, log.dq, log.tau
    np.save(tmp_path / "records.npy", records)
    check(read(tmp_path / "records.npy"), log)
    with h5py.File(tmp_path / "records.h5", "w") as file:
        file["log"] = records
    check(read(tmp_path / "records.h5", time="log.t", position="log.q", velocity="log.dq", torque="log.tau"), log)


def test_parquet(tmp_path: Path, log: SimpleNamespace) -> None:
    names, numbers = table(log)
    pq.write_table(pa.table(dict(zip(names, numbers.T, strict=True))), tmp_path / "log.parquet", row_group_size=77)
    check(read(tmp_path / "log.parquet"), log)
    stamps = 1_700_000_000_000_000_000 + np.round(log.t * 1e9).astype(np.int64)
    lists = pa.table({"stamp": pa.array(stamps, pa.timestamp("ns")), "position": pa.array(log.q.tolist()),
                      "velocity": pa.array(log.dq.tolist(), pa.list_(pa.float64(), 3)),
                      "effort": pa.array(log.tau.tolist()), "note": pa.array(["x"] * 300)})
    pq.write_table(lists, tmp_path / "lists.parquet")
    check(read(tmp_path / "lists.parquet"), log, exact_time=False)


def test_matlab_5(tmp_path: Path, log: SimpleNamespace) -> None:
    scipy.io.savemat(tmp_path / "log.mat", {"t": log.t[:, None], "q": log.q, "dq": log.dq, "tau": log.tau})
    check(read(tmp_path / "log.mat"), log)
    scipy.io.savemat(tmp_path / "struct.mat", {"run": {"t": log.t, "q": log.q.T, "i": log.tau / 2.0, "kt": 2.0},
                                               "names": np.array(JOINTS, dtype=object)})
    recording = read(tmp_path / "struct.mat", time="run.t", position="run.q", current="run.i", drive_gain="run.kt")
    check(recording, log, velocity=False)
    assert recording.joints == JOINTS


def test_matlab_73(tmp_path: Path, log: SimpleNamespace) -> None:
    path = tmp_path / "log.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in (("t", log.t[:, None]), ("run/q", log.q), ("run/dq", log.dq), ("run/tau", log.tau)):
            file[name] = np.ascontiguousarray(array.T)  # MATLAB stores column by column
        file["#refs#/a"] = np.zeros(3)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    recording = read(path)
    check(recording, log)
    assert not any("transposed" in note for note in recording.notes)
    check(read(path, time="t", position="run.q", velocity="run.dq", torque="run.tau"), log)


def test_hdf5_groups_and_columns(tmp_path: Path, log: SimpleNamespace) -> None:
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["clock/time"] = log.t
        file.create_dataset("arm/position", data=log.q, chunks=(50, 3), compression="gzip")
        file["arm/velocity"] = log.dq
        for i in range(3):
            file[f"arm/torque/{i}"] = log.tau[:, i]
    check(read(tmp_path / "log.h5", time="clock/time", position="arm/position", velocity="arm/velocity",
               torque="arm/torque/{i}"), log)
    check(read(tmp_path / "log.h5"), log)


# -- bags -----------------------------------------------------------------------------------------------
def write_bag(path: Path, log: SimpleNamespace, kind: str, *, stamped: bool = True, gripper: bool = False,
              topics: tuple[str, ...] = ("/joint_states",)) -> Path:
    """Joints in another order than the robot's, and in yet another in every second message."""
    store = get_typestore(Stores.ROS1_NOETIC if kind == "ros1" else Stores.ROS2_HUMBLE)
    state, header, time = (store.types[name] for name in (
        "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    writer = rosbag1.Writer(path) if kind == "ros1" else rosbag2.Writer(
        path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP if kind == "mcap" else rosbag2.StoragePlugin.SQLITE3)
    with writer:
        for topic in topics:
            connection = writer.add_connection(topic, state.__msgtype__, typestore=store)
            for row in range(len(log.t)):
                moment = round(log.t[row] * 1e9) + 5_000_000_000
                order = [2, 0, 1] if row % 2 else [1, 2, 0]
                stamp = time(moment // 10**9, moment % 10**9) if stamped else time(0, 0)
                head = header(0, stamp, "") if kind == "ros1" else header(stamp, "")
                messages = [state(head, [JOINTS[i] for i in order], log.q[row, order], log.dq[row, order],
                                  log.tau[row, order])]
                if gripper:
                    messages.append(state(head, ["finger"], np.zeros(1), np.zeros(1), np.zeros(1)))
                for message in messages:
                    raw = store.serialize_ros1(message, state.__msgtype__) if kind == "ros1" \
                        else store.serialize_cdr(message, state.__msgtype__)
                    writer.write(connection, moment, raw)
    return path


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_bags(tmp_path: Path, log: SimpleNamespace, kind: str) -> None:
    path = write_bag(tmp_path / ("log.bag" if kind == "ros1" else "log"), log, kind)
    recording = read(path, robot=ARM)
    check(recording, log, exact_time=False)
    assert recording.joints == JOINTS
    if kind != "ros1":
        inner = next(file for file in path.iterdir() if file.suffix in (".db3", ".mcap"))
        check(read(inner, robot=ARM), log, exact_time=False)


@pytest.mark.parametrize("kind", ["ros1", "mcap"])
def test_a_bag_with_a_wrench_beside_the_joints(tmp_path: Path, log: SimpleNamespace, kind: str) -> None:
    """A sensor at another rate: its numbers are straight between its messages, at the times of the joints'."""
    path = tmp_path / ("log.bag" if kind == "ros1" else "log")
    with new_bag(path, kind, start=5_000_000_000) as bag:
        stamped, wrench, vector, state = bag.types("geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/Wrench",
                                                   "geometry_msgs/msg/Vector3", "sensor_msgs/msg/JointState")
        joints, sensor = bag.topic("/joint_states", state), bag.topic("/ft", stamped)
        for row, t in enumerate(log.t):
            bag.write(joints, state, t, lambda head, row=row: state(head, list(JOINTS), log.q[row], log.dq[row],
                                                                   log.tau[row]))
        for t in np.arange(log.t[0] - 0.01, log.t[-1] + 0.01, 0.0037):
            bag.write(sensor, stamped, t, lambda head, t=t: stamped(head, wrench(vector(t, 2 * t, 3 * t),
                                                                                vector(4.0, 5 * t, -t))))
    recording = read(path, robot=ARM)
    check(recording, log, exact_time=False)
    shown = recording.wrench[:, 0]
    np.testing.assert_allclose(recording.wrench, np.column_stack(
        [shown, 2 * shown, 3 * shown, np.full(len(shown), 4.0), 5 * shown, -shown]), atol=1e-6)
    np.testing.assert_allclose(np.diff(shown), np.diff(log.t), atol=1e-6)
    assert read(path, robot=ARM, wrench="/ft").wrench.shape == (len(log.t), 6)


def test_bag_topics_grippers_and_times_of_receipt(tmp_path: Path, log: SimpleNamespace) -> None:
    two = write_bag(tmp_path / "two.bag", log, "ros1", topics=("/left", "/right"))
    with refused(RecordingError, "several-topics"):
        read(two, robot=ARM)
    with refused(RecordingError, "bad-recording", "'/joint_states'", "/left, /right"):
        read(two, robot=ARM, topic="/joint_states")
    check(read(two, robot=ARM, topic="/right"), log, exact_time=False)
    gripper = read(write_bag(tmp_path / "gripper.bag", log, "ros1", gripper=True, stamped=False), robot=ARM)
    check(gripper, log, exact_time=False)
    text = " ".join(gripper.notes)
    assert "300 messages of /joint_states contain none of the joints" in text
    assert "not used: finger" in text and "have no time stamp" in text
    with refused(RecordingError, "no-column", "position", "ankle"):
        read(two, robot=Robot("leg", (Joint("ankle", "revolute", -1),), (Body("foot"),)), topic="/left")


def test_bag_effort_that_is_a_current(tmp_path: Path, log: SimpleNamespace) -> None:
    path = write_bag(tmp_path / "log.bag", log, "ros1")
    gain = {"shoulder": 2.0, "elbow": 3.0, "wrist": -4.0}
    recording = read(path, robot=ARM, position="position/{joint}", current="effort/{joint}", drive_gain=gain)
    np.testing.assert_allclose(recording.tau, log.tau * [2.0, 3.0, -4.0], rtol=1e-15)


# -- writing and missing packages -----------------------------------------------------------------------
@pytest.mark.parametrize("joints", [JOINTS, (), ("torque_a", "q 2", "a,b")])
def test_what_is_written_is_read_back(tmp_path: Path, log: SimpleNamespace, joints: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    before = Recording(log.t, log.q, log.tau, log.dq, reference=log.q + 1, reference_velocity=log.dq + 1,
                       wrench=rng.normal(size=(300, 6)), joints=joints)
    for path in (write_csv(before, tmp_path / "log.csv"), write_npz(before, tmp_path / "log.npz")):
        after = read(path)
        check(after, log)
        np.testing.assert_array_equal(after.reference, before.reference)
        np.testing.assert_array_equal(after.reference_velocity, before.reference_velocity)
        assert after.joints == joints
    wrench = read(tmp_path / "log.npz", position="positions", torque="torques", wrench="wrench").wrench
    np.testing.assert_array_equal(wrench, before.wrench)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "log.npz"]
    with refused(DynidError, "cannot-write", "log.csv"):
        write_csv(before, tmp_path / "log.npz" / "log.csv")


@pytest.mark.parametrize(("module", "start", "name"), [
    ("h5py", b"\x89HDF\r\n\x1a\n", "log.h5"), ("pyarrow", b"PAR1", "log.parquet"),
    ("rosbags", b"#ROSBAG V2.0", "log.bag")])
def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str,
                                                   start: bytes, name: str) -> None:
    for known in [key for key in sys.modules if key == module or key.startswith(module + ".")]:
        monkeypatch.setitem(sys.modules, known, None)
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(start)
    with refused(RecordingError, "bad-recording", module, "pip install 'dynid[logs]'"):
        read(tmp_path / name)


@pytest.mark.parametrize(("name", "content"), [
    ("log.npz", b"PK\x03\x04 not an archive"), ("log.npy", b"\x93NUMPY"), ("log.mat", b"MATLAB 5.0 nothing"),
    ("log.h5", b"\x89HDF\r\n\x1a\n"), ("log.parquet", b"PAR1"), ("log.bag", b"#ROSBAG V2.0\n"),
    ("log.mcap", b"\x89MCAP0\r\n"), ("log.bin", b"\0\0\1\2"), ("log.csv", b""), ("log.csv", b"t,q1,tau1\n")])
def test_damaged_files_give_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordingError) as problem:
        read(tmp_path / name)
    assert name in str(problem.value) and "\n" not in str(problem.value)


def test_no_such_file(tmp_path: Path) -> None:
    with refused(RecordingError, "no-such-file"):
        read(tmp_path / "log.csv")

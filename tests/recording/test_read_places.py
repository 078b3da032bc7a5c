"""Where signals are: one array by rows or columns, files beside the log, constants in the file, joints by prefix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from refusals import refused
from rosbags import rosbag2
from rosbags.typesys import Stores, get_typestore
from scipy.io import savemat

from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.recording.sample_preparation import prepare
from dynid.robot import Body, Joint, Robot

T = np.arange(300) * 0.01
TABLE = np.column_stack([T, np.sin(T), np.cos(2 * T), 3 * np.cos(T), 2 * np.sin(3 * T) + 1])
COLUMNS: dict[str, Any] = {"time": 1, "position": "2-3", "torque": "4-5"}


def robot(*names: str) -> Robot:
    return Robot("arm", tuple(Joint(name, "revolute", i - 1) for i, name in enumerate(names)),
                 tuple(Body(f"link{i}") for i in range(len(names))))


def one_array(path: Path, table: np.ndarray) -> tuple[Path, dict[str, Any]]:
    """A file with one array of all signals, and what the mapping has to say of it."""
    if path.suffix == ".npy":
        np.save(path, table)
        return path, {}
    if path.suffix == ".npz":
        np.savez(path, data=table, version=np.array(3.0))
    elif path.suffix == ".mat":
        savemat(path, {"log": {"data": table}})
        return path, {"array": "log.data"}
    else:
        with h5py.File(path, "w") as file:
            file["run/data"] = table
        return path, {"array": "run/data"}
    return path, {"array": "data"}


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("ending", [".npy", ".npz", ".mat", ".h5"])
def test_rows_or_columns_of_one_array(tmp_path: Path, ending: str, rows: bool, axis: int | None) -> None:
    path, extra = one_array(tmp_path / f"log{ending}", TABLE if rows else TABLE.T.copy())
    said = extra if axis is None else {**extra, "axis": axis}
    if axis is not None and (axis == 0) != rows:  # the word of the mapping counts: five samples of many signals
        found = read(path, {"rate": 100.0, "position": [1, 2], "torque": [3, 4], **said})
        np.testing.assert_array_equal(found.q, TABLE.T[:, :2])
        assert any("too few" in note for note in found.notes)
        return
    for at_once in (None, 64):
        found = read(path, {**COLUMNS, **said}, at_once=at_once)
        np.testing.assert_array_equal(found.t, T)
        np.testing.assert_array_equal(found.q, TABLE[:, 1:3])
        np.testing.assert_array_equal(found.tau, TABLE[:, 3:])


def test_the_axis_of_square_arrays_is_declared(tmp_path: Path) -> None:
    few = TABLE[:2]
    path = tmp_path / "log.npz"
    np.savez(path, q=few[:, 1:3].T, tau=few[:, 3:].T, long_enough=np.zeros(3))
    found = read(path, position="q", torque="tau", rate=100.0, axis=1)
    np.testing.assert_array_equal(found.q, few[:, 1:3])
    np.testing.assert_array_equal(read(path, position="q", torque="tau", rate=100.0, axis=0).q, few[:, 1:3].T)


@pytest.mark.parametrize(("said", "message"), [
    ({"array": "date"}, ("bad-recording", "log.npz", "'date'")),
    ({"array": "version"}, ("bad-recording", "log.npz", "'version'")),
    ({"array": "data", "axis": 2}, ("wrong-setting", "'axis'")),
])
def test_a_wrong_array_is_a_sentence(tmp_path: Path, said: dict[str, Any], message: tuple[str, ...]) -> None:
    path, _ = one_array(tmp_path / "log.npz", TABLE)
    with refused(RecordingError, *message):
        read(path, {**COLUMNS, **said})


def test_arrays_are_not_asked_of_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    np.savetxt(path, TABLE, delimiter=",")
    for said in ({"array": "data"}, {"axis": 1}):
        with refused(RecordingError, "bad-recording", "log.csv"):
            read(path, {**COLUMNS, **said})


def test_ratio_from_the_file(tmp_path: Path) -> None:
    ratio = np.array([100.0, -50.0])
    path = tmp_path / "log.npz"
    np.savez(path, t=T, q=TABLE[:, 1:3] * ratio, tau=TABLE[:, 3:] / ratio, gear=ratio, one=np.array(7.0),
             three=np.ones(3), broken=np.array([1.0, np.nan]))
    rules = {"time": "t", "position": "q", "torque": "tau", "side": "motor", "ratio": "gear"}
    found = read(path, rules)
    np.testing.assert_allclose(found.q, TABLE[:, 1:3], atol=1e-12)
    np.testing.assert_allclose(found.tau, TABLE[:, 3:], atol=1e-12)
    np.testing.assert_allclose(read(path, rules, ratio="one").tau, 7.0 * TABLE[:, 3:] / ratio, atol=1e-12)
    for key, named in (("three", ("3 numbers", "2 joints")),
                         ("gears", ()),
                         ("broken", ("joint 2",))):
        with refused(RecordingError, "bad-recording", "log.npz", "ratio", f"'{key}'", *named):
            read(path, rules, ratio=key)


def test_each_log_has_files_of_its_own_by_its_name(tmp_path: Path) -> None:
    for k in (1, 2):
        np.savetxt(tmp_path / f"run{k}.csv", TABLE[:, :3], delimiter=",")
        np.savetxt(tmp_path / f"run{k}_torques.csv", k * TABLE[:, 3:], delimiter=",")
    for k in (1, 2):
        found = read(tmp_path / f"run{k}.csv", time=1, position="2-3", torque={"file": "{stem}_torques.csv"})
        np.testing.assert_allclose(found.tau, k * TABLE[:, 3:])
    with refused(RecordingError, "no-such-file", "run1_currents.csv"):
        read(tmp_path / "run1.csv", time=1, position="2-3", torque={"file": "{stem}_currents.csv"})


def bag(path: Path, names: list[str]) -> Path:
    store = get_typestore(Stores.ROS2_HUMBLE)
    state, header, moment = (store.types[name] for name in (
        "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    count = len(names) // 2
    with rosbag2.Writer(path, version=9) as writer:
        connection = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
        for row, stamp in zip(TABLE, np.round(T * 1e9).astype(int).tolist(), strict=True):
            q, tau = np.tile(row[1:3], count), np.tile(row[3:], count)
            message = state(header(moment(stamp // 10**9, stamp % 10**9), ""), names, q, np.zeros(0), tau)
            writer.write(connection, stamp, store.serialize_cdr(message, state.__msgtype__))
    return path


@pytest.mark.parametrize(("logged", "own", "note"), [
    (["robot1/joint_1", "robot1/joint_2"], ("joint_1", "joint_2"), "with the prefix 'robot1/'"),
    (["joint1", "joint2"], ("panda_joint1", "panda_joint2"), "without the prefix 'panda_'"),
    (["joint2", "joint1"], ("panda_joint2", "panda_joint1"), "without the prefix 'panda_'"),
])
def test_joints_of_a_bag_by_prefix(tmp_path: Path, logged: list[str], own: tuple[str, ...], note: str) -> None:
    found = read(bag(tmp_path / "bag", logged), robot=robot(*own))
    assert found.joints == own
    np.testing.assert_array_equal(found.q, TABLE[:, 1:3])
    assert any(note in one for one in found.notes)


def test_joints_by_prefix_are_put_into_the_robots_order(tmp_path: Path) -> None:
    found = read(bag(tmp_path / "bag", ["r/b", "r/a"]), robot=robot("a", "b"))
    np.testing.assert_array_equal(found.q, TABLE[:, [2, 1]])
    path = tmp_path / "log.npz"
    np.savez(path, time=T, q=TABLE[:, 1:3], tau=TABLE[:, 3:], joints=np.array(["r/b", "r/a"]))
    by_file = read(path, robot=robot("a", "b"))
    np.testing.assert_array_equal(by_file.q, TABLE[:, [2, 1]])
    assert any("with the prefix 'r/'" in note for note in by_file.notes)


def test_two_robots_in_a_bag_are_asked_about(tmp_path: Path) -> None:
    path = bag(tmp_path / "bag", ["left/a", "left/b", "right/a", "right/b"])
    with refused(RecordingError, "several-robots", "'left/'", "'right/'"):
        read(path, robot=robot("a", "b"))
    found = read(path, robot=robot("a", "b"), time="stamp", position="position/left/{joint}",
                 torque="effort/left/{joint}")
    np.testing.assert_array_equal(found.q, TABLE[:, 1:3])


def test_names_that_differ_by_more_than_a_prefix_are_not_matched(tmp_path: Path) -> None:
    with refused(RecordingError, "no-column", "position"):
        read(bag(tmp_path / "bag", ["x/a", "y/b"]), robot=robot("a", "b"))


def test_a_velocity_that_one_joint_lacks_is_that_joints_alone(tmp_path: Path) -> None:
    """As the joint state broadcaster of ROS 2 writes it: not a number where there is no such interface."""
    dq = np.column_stack([np.cos(T), np.full(len(T), np.nan)])
    path = tmp_path / "log.npz"
    np.savez(path, time=T, q=TABLE[:, 1:3], dq=dq, tau=TABLE[:, 3:], joints=np.array(["a", "b"]))
    for at_once in (None, 100):
        found = read(path, at_once=at_once)
        assert len(found) == len(T) and found.dq is not None
        np.testing.assert_array_equal(found.dq[:, 0], dq[:, 0])
        assert any("is treated as not logged there" in note for note in found.notes)
    samples = prepare(found, cutoff=5.0)
    assert samples.settings["velocity"][1] == "differentiate"
    inside = samples.keep.all(axis=1)
    np.testing.assert_allclose(samples.dq[inside, 1], -2 * np.sin(2 * samples.t[inside]), atol=0.02)

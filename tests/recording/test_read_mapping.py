"""Mappings: what they accept, how they convert, and the sentence they give when they do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping
from dynid.robot import Body, Joint, Robot


def arm(*names: str, **limits: float) -> Robot:
    return Robot("arm", tuple(Joint(name, "revolute", i - 1, **limits) for i, name in enumerate(names)),
                 tuple(Body(name) for name in names))


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = np.column_stack(list(columns.values())).tolist()
    path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A log of two joints called a and b: q_a, q_b, i_a, i_b."""
    rng = np.random.default_rng(2)
    q, current = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    path = write(tmp_path / "two.csv", {"t": np.arange(50) * 0.01, "q_a": q[:, 0], "q_b": q[:, 1],
                                        "i_a": current[:, 0], "i_b": current[:, 1]})
    return path, q, current


COMMON = {"time": "t", "position": "q_{joint}", "torque": "i_{joint}"}


def test_units(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, q, _ = two
    np.testing.assert_allclose(read(path, COMMON, unit="deg").q, np.deg2rad(q), rtol=1e-15)
    np.testing.assert_allclose(read(path, COMMON, unit=["deg", "mm"]).q, q * [np.pi / 180, 1e-3], rtol=1e-15)
    np.testing.assert_allclose(read(path, COMMON, unit={"a": "deg", "b": "rad"}).q, q * [np.pi / 180, 1], rtol=1e-15)
    both = read(path, COMMON, unit="deg", velocity="i_{joint}", offset=[90, 0])
    np.testing.assert_allclose(both.dq, np.deg2rad(two[2]), rtol=1e-15)
    np.testing.assert_allclose(both.q, np.deg2rad(q + np.array([90, 0])), rtol=1e-12)
    np.testing.assert_allclose(read(path, COMMON, velocity="i_{joint}", velocity_unit="rpm").dq, two[2] * np.pi / 30)


def test_units_follow_the_kind_of_joint(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, q, _ = two
    robot = Robot("scara", (Joint("a", "revolute", -1), Joint("b", "prismatic", 0)), (Body("a"), Body("b")))
    recording = read(path, COMMON, robot, unit="deg")
    np.testing.assert_allclose(recording.q, q * [np.pi / 180, 1.0], rtol=1e-15)
    assert any("deg does not fit joint b, which is read in m" in note for note in recording.notes)
    with refused(RecordingError, "unit-does-not-fit", "'b'"):
        read(path, COMMON, robot, unit=["deg", "deg"])


def test_times_in_milliseconds_or_counted(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, *_ = two
    np.testing.assert_allclose(read(path, COMMON, time_unit="ms").t, np.arange(50) * 1e-5, rtol=1e-12)
    counted = read(path, position="q_{joint}", torque="i_{joint}", rate=250)
    np.testing.assert_array_equal(counted.t, np.arange(50) / 250)
    assert any("rate of 250 Hz" in note for note in counted.notes)


def test_current_gain_gears_sign_and_offset_by_hand(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, q, current = two
    recording = read(path, time="t", position="q_{joint}", current="i_{joint}", drive_gain=[0.1, 0.2], side="motor",
                     ratio=[50.0, -100.0], sign=[1, -1], offset=[0.3, -0.4])
    np.testing.assert_allclose(recording.q, np.column_stack([q[:, 0] / 50 + 0.3, q[:, 1] / 100 - 0.4]), rtol=1e-12)
    np.testing.assert_allclose(recording.tau, np.column_stack([current[:, 0] * 5.0, current[:, 1] * 20.0]), rtol=1e-12)
    joint_side = read(path, COMMON, torque_side="motor", ratio=[50.0, -100.0], torque_sign=-1)
    np.testing.assert_array_equal(joint_side.q, q)
    np.testing.assert_allclose(joint_side.tau, -current * [50.0, -100.0], rtol=1e-14)


def test_power_is_the_same_on_both_sides_of_a_coupling(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, q, current = two
    recording = read(path, COMMON, velocity="q_{joint}", side="motor", coupling=[[30.0, 0.0], [12.0, -40.0]])
    np.testing.assert_allclose(np.sum(recording.dq * recording.tau, axis=1), np.sum(q * current, axis=1), rtol=1e-10)
    np.testing.assert_allclose(recording.q @ np.array([[30.0, 0.0], [12.0, -40.0]]).T, q, rtol=1e-10, atol=1e-14)


def test_joints_are_put_into_the_robots_order(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, q, current = two
    for rules in (COMMON, {"time": "t", "position": ["q_a", "q_b"], "torque": ["i_a", "i_b"], "joints": ["a", "b"]}):
        recording = read(path, rules, arm("b", "a"))
        assert recording.joints == ("b", "a")
        np.testing.assert_array_equal(recording.q, q[:, ::-1])
        np.testing.assert_array_equal(recording.tau, current[:, ::-1])
        alone = read(path, rules, arm("b"))
        np.testing.assert_array_equal(alone.q, q[:, 1:])
        assert any("not used" in note and note.endswith(": a") for note in alone.notes)
    for rules, words in (
            (COMMON, ("no-column", "position", "q_a", "q_b")),
            ({"time": "t", "position": ["q_a", "q_b"], "torque": ["i_a", "i_b"], "joints": ["a", "b"]},
             ("bad-recording", "'c'", "'arm'"))):
        with refused(RecordingError, *words):
            read(path, rules, arm("a", "b", "c"))


def test_numbered_columns(tmp_path: Path) -> None:
    columns = {"t": np.arange(20) * 0.01} | {f"{kind}[{i:02}]": np.full(20, i) + np.arange(20.0)
                                             for kind in ("q", "tau") for i in range(4)}
    path = write(tmp_path / "log.csv", columns)
    rules = {"time": "t", "position": "q[{i:02}]", "torque": "tau[{i:02}]"}
    recording = read(path, rules, arm("a", "b", "c"))
    np.testing.assert_array_equal(recording.q[0], [0, 1, 2])
    assert any("number 3" in note for note in recording.notes)
    np.testing.assert_array_equal(read(path).q[0], [0, 1, 2, 3])
    with refused(RecordingError, "no-column", "number 4", "'e'"):
        read(path, rules, arm(*"abcde"))


@pytest.mark.parametrize("header", [
    "time,q1,q2,dq1,dq2,tau1,tau2", "Time,pos_1,pos_2,vel_1,vel_2,torque_1,torque_2",
    "timestamp,position_0,position_1,velocity_0,velocity_1,effort_0,effort_1",
    "t,actual_q_0,actual_q_1,actual_qd_0,actual_qd_1,tau_J_0,tau_J_1",
    "time [s],q1 [rad],q2 [rad],dq1 [rad/s],dq2 [rad/s],tau1 [Nm],tau2 [Nm]",
    "__time,/joint_states/j_a/position,/joint_states/j_b/position,/joint_states/j_a/velocity,"
    "/joint_states/j_b/velocity,/joint_states/j_a/effort,/joint_states/j_b/effort",
    "stamp,JointPosition1,JointPosition2,JointVelocity1,JointVelocity2,JointTorque1,JointTorque2"])
def test_guesses_and_says_so(tmp_path: Path, header: str) -> None:
    numbers = np.random.default_rng(3).normal(size=(20, 6))
    path = write(tmp_path / "log.csv", dict(zip(header.split(","), [np.arange(20) * 0.01, *numbers.T], strict=True)))
    for robot in (None, arm("j_a", "j_b")):
        recording = read(path, robot=robot)
        np.testing.assert_array_equal(np.column_stack([recording.q, recording.dq, recording.tau]), numbers)
        assert sum("guessed" in note for note in recording.notes) == 4


def test_guesses_units_and_references_from_names(tmp_path: Path) -> None:
    t = np.arange(20.0)
    path = write(tmp_path / "log.csv", {"time_ms": 4 * t, "q1_deg": 2 * t, "dq1": t, "q_des1": t, "tau_des1": t,
                                        "tau1": t, "tau_filtered1": t, "ddq1": t, "force_x": t})
    recording = read(path)
    np.testing.assert_allclose(recording.t, t * 0.004)
    np.testing.assert_allclose(recording.q[:, 0], np.deg2rad(2 * t))
    np.testing.assert_allclose(recording.dq[:, 0], np.deg2rad(t))
    assert recording.reference is not None and any("velocity is read in deg/s" in note for note in recording.notes)
    assert any("tau_filtered1 not used" in note for note in recording.notes)


@pytest.mark.parametrize(("columns", "message"), [
    (("t", "q1", "pos1", "tau1"), ("bad-recording", "q1", "pos1", "--set 'log.position=")),
    (("t", "a", "tau1"), ("no-column", "position", "t, a, tau1")),
    (("q1", "tau1"), ("no-column", "log.csv", "time")),
    (("t", "q1", "current1"), ("bad-recording", "current1", "--set")),
    (("t", "q1", "q3", "tau1", "tau3"), ("no-column", "position", "number 2")),
    (("t", "q1", "q2", "tau1"), ("column-count", "position", "torque")),
])
def test_what_cannot_be_guessed_is_asked_for(tmp_path: Path, columns: tuple[str, ...],
                                             message: tuple[str, ...]) -> None:
    path = write(tmp_path / "log.csv", {name: np.arange(20) * 0.01 for name in columns})
    with refused(RecordingError, *message):
        read(path)


def test_two_time_columns_prefer_the_plain_name(tmp_path: Path) -> None:
    t = np.arange(20.0)
    path = write(tmp_path / "log.csv", {"stamp_of_drive": t, "t": 0.01 * t, "q1": t, "tau1": t})
    recording = read(path)
    assert recording.rate == pytest.approx(100)
    assert any("stamp_of_drive not used" in note for note in recording.notes)


@pytest.mark.parametrize(("rules", "message"), [
    ({"posision": "q"}, ("wrong-setting", "'posision'", "'position'")),
    ({"position": {"files": "x"}}, ("wrong-setting", "'position'")),
    ({"position": {"file": "x.txt", "width": 3, "columns": "q"}}, ("wrong-setting", "'position'", "columns", "width")),
    ({"time": "t", "rate": 100}, ("wrong-setting", "time", "rate")),
    ({"rate": -1}, ("wrong-setting", "'rate'")),
    ({"current": "i"}, ("wrong-setting", "drive_gain", "current")),
    ({"torque": "i", "drive_gain": 2}, ("wrong-setting", "drive_gain", "current")),
    ({"side": "motor"}, ("wrong-setting", "ratio", "coupling")),
    ({"ratio": [50]}, ("wrong-setting", "log.side=motor")),
    ({"sign": [2]}, ("wrong-setting", "sign")),
    ({"unit": "inch"}, ("wrong-setting", "'unit'")),
    ({"joints": ["a", "a"]}, ("wrong-setting", "joints")),
    ({"delimiter": "||"}, ("wrong-setting", "delimiter")),
])
def test_wrong_mappings_give_one_sentence(rules: dict[str, object], message: tuple[str, ...]) -> None:
    with refused(RecordingError, *message) as problem:
        Mapping.from_settings(rules, "run.toml [log]")
    assert str(problem.value).startswith("run.toml [log]: ") and "\n" not in str(problem.value)


@pytest.mark.parametrize(("rules", "message"), [
    ({"position": "q_c"}, ("bad-recording", "'q_c'")),
    ({"position": "x{i}"}, ("bad-recording", "'x{i}'")),
    ({"position": "{joint}{i}"}, ("bad-recording", "'{joint}{i}'")),
    ({"unit": ["deg"]}, ("bad-recording", "unit", "1 entries", "2 joints")),
    ({"sign": {"c": 1}}, ("bad-recording", "sign", "'c'")),
    ({"side": "motor", "ratio": {"a": 50}}, ("bad-recording", "ratio", "'b'")),
    ({"side": "motor", "ratio": [50, 0]}, ("singular-coupling", "ratio")),
    ({"side": "motor", "coupling": [[1, 0]]}, ("bad-recording", "coupling", "2 x 2")),
    ({"side": "motor", "coupling": [[1, 2], [2, 4]]}, ("singular-coupling", "coupling")),
    ({"torque": None, "current": "i_{joint}", "drive_gain": "kt"}, ("bad-recording", "'kt'", "drive_gain")),
    ({"time": ["t", "q_a", "q_b"]}, ("bad-recording", "time", "got 3")),
    ({"wrench": ["t", "q_a"]}, ("bad-recording", "wrench", "6 columns")),
    ({"velocity": ["q_a"]}, ("column-count", "position", "velocity")),
    ({"joints": ["a", "b", "c"]}, ("no-column", "position")),
    ({"torque": {"file": "other.csv"}}, ("no-such-file", "other.csv", "--mapping")),
    ({"position": {"width": 2}}, ("bad-recording", "width", "5 columns")),
])
def test_mappings_that_do_not_fit_the_log(two: tuple[Path, np.ndarray, np.ndarray], rules: dict[str, object],
                                          message: tuple[str, ...]) -> None:
    with refused(RecordingError, *message) as problem:
        read(two[0], COMMON, **rules)
    assert ".csv" in str(problem.value) and "\n" not in str(problem.value)


def test_counts_that_do_not_fit_the_robot(two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    places = {"time": "t", "position": ["q_a", "q_b"], "torque": ["i_a", "i_b"]}
    with refused(RecordingError, "joints-do-not-fit", "2", "'arm'", "3", "--lock z=POSITION"):
        read(two[0], places, arm(*"xyz"))
    with refused(RecordingError, "bad-recording", "'z'", "--lock z=POSITION"):
        read(two[0], {**places, "joints": ["x", "y"]}, arm(*"xyz"))
    assert read(two[0], places, arm(*"xyz").lock({"z": 0.2})).dof == 2


def test_mapping_from_a_file(tmp_path: Path, two: tuple[Path, np.ndarray, np.ndarray]) -> None:
    rules = tmp_path / "run.toml"
    rules.write_text('[robot]\nfile = "arm.urdf"\n[log]\ntime = "t"\nposition = "q_{joint}"\ntorque = "i_{joint}"\n')
    np.testing.assert_array_equal(read(two[0], rules).q, two[1])
    assert Mapping.load(rules) == Mapping.from_settings(COMMON)
    assert Mapping.load(rules).having(unit="deg").unit == "deg"
    rules.write_text("[robot]\n")
    with refused(RecordingError, "no-log-table"):
        Mapping.load(rules)
    rules.write_text("[log\n")
    with refused(RecordingError, "not-toml"):
        Mapping.load(rules)
    with refused(RecordingError, "unreadable-mapping"):
        Mapping.load(tmp_path / "none.toml")


def test_files_that_follow_each_other_are_one_log(tmp_path: Path) -> None:
    t = np.arange(40) * 0.01
    paths = [write(tmp_path / f"log_{k}.csv", {"t": 7 + t[part], "q1": t[part], "tau1": t[part]})
             for k, part in enumerate((slice(0, 25), slice(25, 40)))]
    recording = read(paths)
    np.testing.assert_allclose(recording.t, t, atol=1e-12)
    np.testing.assert_array_equal(recording.q[:, 0], t)
    with refused(RecordingError, "time-backwards", "log_0.csv", "row 2"):
        read(paths[::-1])
    np.testing.assert_allclose(read(paths, position="q1", torque="tau1", rate=10).t, np.arange(40) / 10)

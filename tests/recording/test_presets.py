"""Presets: logs with the exact headers of their recorders are read in the right unit, at the right rate, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RecordingError, RobotError
from dynid.recording import presets
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping
from dynid.robot import Body, Joint, Robot

ROWS = 300


def signals(dof: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Positions, velocities and torques (ROWS, dof) of no robot at all."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(ROWS, dof)) for name in ("q", "dq", "tau", "other")}


def write(path: Path, columns: dict[str, np.ndarray], delimiter: str = ",") -> Path:
    table = np.column_stack(list(columns.values()))
    path.write_text("\n".join([delimiter.join(columns), *(delimiter.join(map(repr, row)) for row in table.tolist())]))
    return path


def spread(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """name{0}, name{1}, ... with {} where the number stands."""
    return {name.format(j): values[:, j] for j in range(values.shape[1])}


def libfranka(folder: Path, true: dict[str, np.ndarray]) -> Path:
    columns = {"time": np.arange(ROWS), "success_rate": np.ones(ROWS)}
    for name, key in (("q", "q"), ("q_d", "other"), ("dq", "dq"), ("dq_d", "other"), ("tau_J", "tau"),
                      ("tau_ext_hat_filtered", "other")):
        columns |= spread(f"state.{name}[{{}}]", true[key])
    columns |= spread("cmd.q_d[{}]", true["other"]) | spread("cmd.tau_J_d[{}]", true["other"])
    return write(folder / "log.csv", columns)


def rtde(folder: Path, true: dict[str, np.ndarray], delimiter: str = " ", **more: np.ndarray) -> Path:
    columns = {"timestamp": 5000.0 + np.arange(ROWS) / 125}
    for name, key in (("target_q", "other"), ("target_qd", "other"), ("target_current", "other"),
                      ("target_moment", "other"), ("actual_q", "q"), ("actual_qd", "dq"), ("actual_current", "tau"),
                      ("joint_control_output", "other"), ("actual_TCP_force", "other")):
        columns |= spread(f"{name}_{{}}", true[key])
    for name, values in more.items():
        columns |= spread(f"{name}_{{}}", values)
    columns["joint_position_deviation_ratio"] = np.zeros(ROWS)
    return write(folder / "log.csv", columns, delimiter)


def test_libfranka_counts_milliseconds(tmp_path: Path) -> None:
    true = signals(7)
    found = read(libfranka(tmp_path, true))
    np.testing.assert_allclose(found.t, np.arange(ROWS) / 1000, rtol=1e-15)
    np.testing.assert_array_equal(found.q, true["q"])
    np.testing.assert_array_equal(found.dq, true["dq"])
    np.testing.assert_array_equal(found.tau, true["tau"])
    np.testing.assert_array_equal(found.reference, true["other"])
    assert any("preset 'libfranka'" in note for note in found.notes)


@pytest.mark.parametrize("pattern", ["state.tau_ext_hat_filtered[{i}]", "cmd.tau_J_d[{i}]"])
def test_torques_that_do_not_move_the_robot_are_refused(tmp_path: Path, pattern: str) -> None:
    path = libfranka(tmp_path, signals(7))
    with refused(RecordingError, "not-a-torque") as problem:
        read(path, preset="libfranka", torque=pattern)
    assert pattern.format(i=0) in str(problem.value)


@pytest.mark.parametrize("delimiter", [" ", ","])
def test_rtde_needs_gains_and_takes_measured_signals(tmp_path: Path, delimiter: str) -> None:
    true = signals(6)
    path = rtde(tmp_path, true, delimiter, joint_temperatures=30 + 0 * true["q"])
    with refused(RecordingError, "bad-recording", "Universal Robots", "drive_gain"):
        read(path)
    gains = [13.6, 13.7, 13.7, 9.7, 8.7, 9.0]
    found = read(path, drive_gain=gains)
    np.testing.assert_allclose(found.tau, true["tau"] * gains, rtol=1e-15)
    np.testing.assert_array_equal(found.q, true["q"])
    assert found.temperature is not None and found.temperature.min() == found.temperature.max() == 30.0
    assert np.median(np.diff(found.t)) == pytest.approx(1 / 125)


def test_rtde_finds_gains_in_the_log(tmp_path: Path) -> None:
    """target_moment = 10 target_current, so that is the gain."""
    true = signals(6)
    t = np.arange(ROWS) / 125
    motion = np.sin(t[:, None] * np.arange(1, 7))
    columns = {"timestamp": t}
    for name, values in (("target_current", true["other"]), ("target_moment", 10 * true["other"]), ("actual_q", motion),
                         ("actual_qd", np.gradient(motion, t, axis=0)), ("actual_current", true["tau"])):
        columns |= spread(f"{name}_{{}}", values)
    found = read(write(tmp_path / "log.csv", columns), preset="ur-rtde", drive_gain="from-log")
    np.testing.assert_allclose(found.tau, 10 * true["tau"], rtol=1e-9)


def test_rtde_torques_go_before_currents(tmp_path: Path) -> None:
    true = signals(6)
    path = rtde(tmp_path, true, actual_current_as_torque=true["other"])
    np.testing.assert_array_equal(read(path).tau, true["other"])
    np.testing.assert_array_equal(read(path, drive_gain=2.0).tau, 2 * true["tau"])


def test_panda_py(tmp_path: Path) -> None:
    true = signals(7)
    np.savez(tmp_path / "log.npz", time=np.arange(ROWS), q=true["q"], dq=true["dq"], tau_J=true["tau"],
             tau_ext_hat_filtered=true["other"], O_T_EE=np.zeros((ROWS, 16)))
    found = read(tmp_path / "log.npz")
    np.testing.assert_array_equal(found.tau, true["tau"])
    assert found.t[-1] == pytest.approx((ROWS - 1) / 1000)


def test_logs_without_torque_are_refused_with_the_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", {"TIMESTAMP": np.arange(ROWS) / 250,
                                        **{f"R_FB_POS_RJ{j}": np.zeros(ROWS) for j in range(1, 7)},
                                        **{f"R_FB_VEL_RJ{j}": np.zeros(ROWS) for j in range(1, 7)}})
    with refused(RecordingError, "bad-recording", "log.csv", "ABB"):
        read(path)
    with refused(RecordingError, "wrong-setting", "ABB"):
        Mapping.from_settings({"preset": "abb-egm"})


def test_openarm_dataset_by_names_of_an_array(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    joints, true = ("shoulder", "elbow"), signals(2)
    names = [f"{joint}.{part}" for joint in joints for part in ("pos", "vel", "torque")]
    state = np.stack([np.degrees(true["q"]), np.degrees(true["dq"]), true["tau"]], axis=2).reshape(ROWS, 6)
    folder = tmp_path / "data" / "chunk-000"
    folder.mkdir(parents=True)
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text(json.dumps(
        {"features": {"observation.state": {"dtype": "float32", "shape": [6], "names": names},
                      "timestamp": {"names": None}}}))
    half = ROWS // 2
    parquet.write_table(arrow.table({
        "timestamp": np.tile(np.arange(half) / 30, 2), "episode_index": np.repeat([4, 5], half),
        "observation.state": state.tolist()}), folder / "file-000.parquet")
    robot = Robot("arm", tuple(Joint(name, "revolute", i - 1) for i, name in enumerate(joints)),
                  tuple(Body(name) for name in joints))
    found = read(folder / "file-000.parquet", robot=robot, preset="lerobot-openarm", episode=5)
    np.testing.assert_allclose(found.q, true["q"][half:], rtol=1e-12)
    np.testing.assert_allclose(found.dq, true["dq"][half:], rtol=1e-12)
    np.testing.assert_allclose(found.tau, true["tau"][half:], rtol=1e-12)
    with refused(RecordingError, "bad-recording", "episode 9", "'episode_index'", "4 to 5"):
        read(folder / "file-000.parquet", robot=robot, preset="lerobot-openarm", episode=9)
    with refused(RecordingError, "time-backwards", "--set log.episode"):
        read(folder / "file-000.parquet", robot=robot, preset="lerobot-openarm")
    (tmp_path / "meta" / "info.json").write_text("[]")
    with refused(RecordingError, "bad-dataset-description", "info.json"):
        read(folder / "file-000.parquet", robot=robot, preset="lerobot-openarm", episode=5)


def test_parts_of_an_array_by_number(tmp_path: Path) -> None:
    true = signals(2)
    np.savez(tmp_path / "log.npz", t=np.arange(ROWS) / 100, state=np.column_stack([true["q"], true["tau"]]))
    settings = {"time": "t", "position": {"array": "state", "columns": "1-2"},
                "torque": {"array": "state", "columns": [3, 4]}}
    found = read(tmp_path / "log.npz", settings)
    np.testing.assert_array_equal(found.q, true["q"])
    np.testing.assert_array_equal(found.tau, true["tau"])
    with refused(RecordingError, "no-array", "'stat'"):
        read(tmp_path / "log.npz", settings | {"torque": {"array": "stat", "columns": "3-4"}})
    with refused(RecordingError, "no-column", "5", "1", "4"):
        read(tmp_path / "log.npz", settings | {"torque": {"array": "state", "columns": "4-5"}})


def test_torque_scale(tmp_path: Path) -> None:
    true = signals(2)
    path = write(tmp_path / "log.csv", {"t": np.arange(ROWS) / 100, **spread("q{}", true["q"]),
                                        **spread("tau{}", true["tau"])})
    np.testing.assert_allclose(read(path, torque_scale=1e-3).tau, 1e-3 * true["tau"], rtol=1e-15)
    np.testing.assert_allclose(read(path, torque_scale=[1.0, 0.5]).tau, true["tau"] * [1.0, 0.5], rtol=1e-15)
    with refused(RecordingError, "bad-torque-scale"):
        read(path, torque_scale=-1.0)
    with refused(RecordingError, "wrong-setting", "torque_scale", "drive_gain"):
        Mapping.from_settings({"current": "i{i}", "drive_gain": 1.0, "torque_scale": 2.0})


URDF = """<robot name="geared"><link name="base"/><link name="a"/><link name="b"/>
<joint name="j1" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="j2" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
<ros2_control name="x" type="system"><transmission name="t1">
<plugin>transmission_interface/SimpleTransmission</plugin>
<joint name="j1" role="j"><mechanical_reduction>50</mechanical_reduction></joint></transmission></ros2_control>
<transmission name="t2"><type>transmission_interface/SimpleTransmission</type><joint name="j2"/>
<actuator name="m2"><mechanicalReduction>{}</mechanicalReduction></actuator></transmission></robot>"""


def test_gear_ratios_of_the_robots_file(tmp_path: Path) -> None:
    """Both ways of ROS to write them; tau_joint = n tau_motor and q_joint = q_motor / n, n below zero turns both."""
    true = signals(2)
    path = write(tmp_path / "log.csv", {"t": np.arange(ROWS) / 100, **spread("q{}", true["q"]),
                                        **spread("tau{}", true["tau"])})
    robot = Robot.from_urdf(URDF.format(-100))
    assert [joint.reduction for joint in robot.joints] == [50.0, -100.0]
    found = read(path, robot=robot, side="motor", ratio="robot")
    np.testing.assert_allclose(found.q, true["q"] / [50, -100], rtol=1e-14)
    np.testing.assert_allclose(found.tau, true["tau"] * [50, -100], rtol=1e-14)
    with refused(RecordingError, "no-gear-ratio", "'j2'"):
        read(path, robot=Robot.from_urdf(URDF.replace("mechanicalReduction", "offset")), side="motor", ratio="robot")
    with refused(RobotError, "bad-robot", "'j2'"):
        Robot.from_urdf(URDF.format(0))


def test_a_preset_gives_way_and_bad_names_are_said(tmp_path: Path) -> None:
    true = signals(7)
    path = libfranka(tmp_path, true)
    found = read(path, preset="libfranka", velocity="cmd.q_d[{i}]", time_unit="s")
    np.testing.assert_array_equal(found.dq, true["other"])
    assert found.t[-1] == ROWS - 1
    with refused(RecordingError, "wrong-setting", "'libfranke'", "'libfranka'"):
        read(path, preset="libfranke")


def test_every_preset_is_a_mapping_or_a_refusal() -> None:
    for name, one in presets.PRESETS.items():
        assert one.source and (one.minds or one.refusal)
        if one.refusal is None:
            gain = {"drive_gain": 1.0} if "current" in one.settings else {}
            assert set(one.needs) <= {"unit"}
            unit = {"unit": "deg"} if "unit" in one.needs else {}
            assert Mapping.from_settings({"preset": name, **gain, **unit}).position is not None

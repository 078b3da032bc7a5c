"""The scripts of examples/ that identify: fabricated logs of known robots give the known parameters back."""

from __future__ import annotations

import csv
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from example_scripts import example

import dynid

FRICTION = 0.3  # N m s/rad and N m


def swinging(name: str, rate: float, seconds: float) -> tuple[dynid.Model, np.ndarray, tuple[np.ndarray, ...]]:
    """A model with its true parameters, and time, positions, velocities and torques along slow sines."""
    robot = dynid.Robot.load(name)
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([FRICTION if one.nominal is None else one.nominal for one in model.parameters])
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = 2.0 * np.pi * (0.25 + 0.07 * np.arange(robot.dof))
    lower, upper = (np.nan_to_num(robot.limit(side), nan=0.0, posinf=2.0, neginf=-2.0) for side in ("lower", "upper"))
    middle = 0.5 * (lower + upper)
    q = middle + 0.6 * np.sin(w * t[:, None]) + 0.3 * np.sin(2.3 * w * t[:, None])
    dq = w * (0.6 * np.cos(w * t[:, None]) + 0.69 * np.cos(2.3 * w * t[:, None]))
    ddq = -w**2 * (0.6 * np.sin(w * t[:, None]) + 0.3 * 2.3**2 * np.sin(2.3 * w * t[:, None]))
    noise = np.random.default_rng(3).normal(scale=0.02, size=q.shape)
    return model, theta, (t, q, dq, model.inverse_dynamics(theta, q, dq, ddq) + noise)


def table(path: Path, columns: dict[str, np.ndarray]) -> str:
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", comments="", header=",".join(columns),
               fmt="%.10g")
    return str(path)


def test_a_log_of_libfranka_gives_a_model_for_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model, theta, (t, q, dq, tau) = swinging("franka-panda", 250.0, 16.0)
    log = table(tmp_path / "log.csv", {"time": np.round(1e3 * t), **{
        f"state.{name}[{j}]": values[:, j] for name, values in (("q", q), ("dq", dq), ("tau_J", tau))
        for j in range(7)}})
    found = example("panda_libfranka").main(["franka-panda", log, str(tmp_path / "panda.xml")])
    assert found.diagnostics.relative_error < 2.0
    machine = mujoco.MjModel.from_xml_path(str(tmp_path / "panda.xml"))
    state = mujoco.MjData(machine)
    state.qpos[:] = q[100]
    mujoco.mj_forward(machine, state)  # gravity torques of the file are those of the true robot
    still = np.zeros(7)
    truth = model.inverse_dynamics(theta, q[100][None], still[None], still[None])[0]
    assert state.qfrc_bias == pytest.approx(truth, abs=0.4)


def test_a_log_of_the_fast_robot_interface_gives_the_parameters(tmp_path):
    _, theta, (t, q, _, tau) = swinging("kuka-iiwa14", 200.0, 16.0)
    columns = {"time_stamp_sec": np.floor(t), "time_stamp_nano_sec": np.round(1e9 * (t % 1.0))}
    columns |= {f"{name}_{j}": values[:, j] for name, values in (
        ("measured_joint_position", q), ("commanded_joint_position", q), ("measured_torque", -tau)) for j in range(7)}
    log = table(tmp_path / "log.csv", columns)
    found = example("kuka_fri").main(["kuka-iiwa14", log, "--torque-sign", "-1"])
    assert found.diagnostics.relative_error < 2.0
    truth = found.base.reduce(theta)
    known = found.well_determined
    assert known.sum() > 20 and np.mean(np.abs(found.values - truth)[known] < 4.0 * found.std[known]) > 0.9


class Arm:
    """A fake of ur_rtde: the arm follows at once, its current is a third of its target torque."""

    def __init__(self) -> None:
        self.q, self.time, self.moves, self.stopped = [0.0] * 6, 0.0, [], []

    def modules(self) -> dict[str, types.ModuleType]:
        arm = self

        class Control:
            def __init__(self, address: str) -> None:
                assert address == "10.0.0.1"

            def moveJ(self, q: list[float], speed: float, acceleration: float) -> bool:
                assert 0 < speed <= 1.05 and 0 < acceleration <= 1.4  # defaults of the teach pendant
                arm.moves.append(q)
                return True

            def servoJ(self, q, speed, acceleration, time, lookahead_time, gain) -> bool:
                assert 0.03 <= lookahead_time <= 0.2 and 100 <= gain <= 2000  # ranges that URScript states
                arm.q, arm.period = q, time
                return True

            def initPeriod(self) -> float:
                return arm.time

            def waitPeriod(self, began: float) -> None:
                arm.time = began + arm.period

            def servoStop(self) -> bool:
                arm.stopped.append("servo")
                return True

            def stopScript(self) -> None:
                arm.stopped.append("script")

        class Receive:
            def __init__(self, address: str) -> None:
                pass

            def getTimestamp(self) -> float:
                return 100.0 + arm.time

            def __getattr__(self, name: str):
                kind, what = ("Actual" if "Actual" in name else "Target"), name.partition("ual")[2] or name[9:]
                values = {"Q": arm.q, "Qd": [0.1] * 6, "Current": [2.0] * 6, "Moment": [6.0] * 6}
                assert name == f"get{kind}{what}" and what in values
                return lambda: list(values[what])

        found = {}
        for name, part in (("rtde_control", {"RTDEControlInterface": Control}),
                           ("rtde_receive", {"RTDEReceiveInterface": Receive})):
            found[name] = types.ModuleType(name)
            vars(found[name]).update(part)
        return found


def test_a_universal_robot_follows_and_its_log_is_read_by_the_preset(tmp_path, monkeypatch):
    arm = Arm()
    for name, module in arm.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    robot = dynid.Robot.load("ur10")
    t = np.arange(0.0, 2.0, 0.008)
    motion = np.sin(t[:, None] + np.arange(6))
    table(tmp_path / "motion.csv", {"t": t, **{f"q_{name}": motion[:, j] for j, name in enumerate(robot.joint_names)},
                                    **{f"dq_{name}": 0.0 * t for name in robot.joint_names}})
    script = example("ur_rtde_record")
    script.main(["10.0.0.1", str(tmp_path / "motion.csv"), str(tmp_path / "log.csv")])
    assert arm.moves == [pytest.approx(motion[0])] and arm.stopped == ["servo", "script"]
    log = dynid.read(tmp_path / "log.csv", robot=robot, preset="ur-rtde", drive_gain=3.0)
    assert log.q == pytest.approx(motion) and log.tau == pytest.approx(6.0) and log.rate == pytest.approx(125.0)
    with open(tmp_path / "log.csv", newline="", encoding="utf-8") as file:
        assert "target_moment_5" in next(csv.reader(file))


URDF = """<robot name="one"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.15"/><mass value="0.5"/>
<inertia ixx="1e-5" ixy="0" ixz="0" iyy="1e-5" iyz="0" izz="1e-5"/></inertial></link>
<joint name="shoulder_pan" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="3" velocity="6"/></joint></robot>"""


def test_a_dataset_of_lerobot_gives_armature_and_friction(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "so101.urdf").write_text(URDF)
    rows, step, truth = 500, 2e-4, {"armature": 0.02, "coulomb": 0.04, "viscous": 0.05}
    t = np.arange(rows) * 100 * step
    command = 0.8 * np.sin(2 * np.pi * (0.3 + 0.12 * t) * t) + np.random.default_rng(1).choice(
        [-0.4, 0.4], 10)[(t // 1).astype(int)]
    q, dq, measured, inertia = 0.0, 0.0, [], 0.5 * 0.15**2 + 1e-5 + truth["armature"]
    for k in range(rows):
        measured.append(q)
        for _ in range(100):
            volts = 7.4 * min(max(0.166 * 32.0 * (command[k] - q), -0.97), 0.97)
            torque = 1.2 / 2.68 * (volts - 1.2 * dq) - truth["viscous"] * dq - 9.81 * 0.5 * 0.15 * np.sin(q)
            dry = min(max(torque + inertia * dq / step, -truth["coulomb"]), truth["coulomb"])
            dq += step / inertia * (torque - dry)
            q += step * dq
    folder = tmp_path / "dataset"
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    feature = {"dtype": "float32", "shape": [1], "names": ["shoulder_pan.pos"]}
    (folder / "meta" / "info.json").write_text(json.dumps({
        "codebase_version": "v3.0", "total_episodes": 1, "fps": 50,
        "features": {"action": feature, "observation.state": feature}}))
    pq.write_table(pa.table({
        **{name: pa.FixedSizeListArray.from_arrays(pa.array(np.rad2deg(values).astype(np.float32)), 1)
           for name, values in (("observation.state", np.array(measured)), ("action", command))},
        "timestamp": t, "episode_index": np.zeros(rows, dtype=int)}),
        folder / "data" / "chunk-000" / "file-000.parquet")
    found = example("so101_lerobot").main([str(tmp_path / "so101.urdf"), str(folder), "--kp", "32"])
    assert 1e3 * found.mean_error < 2.0
    for name, tolerance in (("armature", 0.1), ("coulomb", 0.25), ("viscous", 0.25)):
        assert found["shoulder_pan", name].value == pytest.approx(truth[name], rel=tolerance)

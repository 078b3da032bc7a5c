"""The four real logs, against what their READMEs say of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from dynid.recording.log_reading import read
from dynid.robot import Robot

MAPPINGS = Path(__file__).parents[2] / "reproductions" / "mappings"
Data = Callable[..., Path]


def test_emps_force_is_gain_times_command(data: Data) -> None:
    path = data("emps", "DATA_EMPS.mat")
    recording = read(path, MAPPINGS / "emps.toml")
    raw = scipy.io.loadmat(path)
    assert len(recording) == 24841 and recording.dof == 1
    assert recording.duration == pytest.approx(24.84, abs=1e-9) and recording.rate == pytest.approx(1000, rel=1e-4)
    np.testing.assert_allclose(recording.tau, 35.15065188 * raw["vir"], rtol=1e-8)
    np.testing.assert_array_equal(recording.q, raw["qm"])
    np.testing.assert_array_equal(recording.reference, raw["qg"])


def test_tx40_joint_side_by_the_formulas_of_its_readme(data: Data) -> None:
    folder = data("tx40")
    recording = read(folder, MAPPINGS / "tx40.toml", Robot.from_urdf(folder / "tx40_mdh_modified.urdf"))
    motor = np.loadtxt(folder / "pos_read_data.csv", delimiter=",", skiprows=1)
    torque = np.loadtxt(folder / "curr_data.csv", delimiter=",", skiprows=1)
    ratio = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    coupling, back = np.diag(ratio), np.diag(ratio)
    coupling[5, 4] = 32.0
    back[4, 5] = 32.0
    q = np.linalg.solve(coupling, motor.T).T + np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    np.testing.assert_allclose(recording.q, q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(recording.tau, torque @ back.T, rtol=0, atol=1e-12)
    assert len(recording) == 45000 and recording.rate == pytest.approx(5000)
    assert recording.duration == pytest.approx(9 - 0.0002)
    assert read(folder / "pos_read_data.csv", MAPPINGS / "tx40.toml").q.shape == (45000, 6)


@pytest.mark.parametrize("number", [1, 2])
def test_kuka_with_and_without_its_mapping(data: Data, number: int) -> None:
    path = data("kuka_lwr4", f"measurements_{number}.npz")
    robot = Robot.from_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
    recording = read(path, MAPPINGS / "kuka_lwr4.toml", robot)
    guessed = read(path, robot=robot)
    raw = np.load(path)
    for log in (recording, guessed):
        assert log.joints == tuple(f"lwr_{i}_joint" for i in range(7))
        np.testing.assert_array_equal(log.t, raw["times"] - raw["times"][0])
        for name, key in (("q", "positions"), ("dq", "velocities"), ("tau", "torques"),
                          ("reference", "target_positions"), ("reference_velocity", "target_velocities")):
            np.testing.assert_array_equal(getattr(log, name), raw[key])
        assert log.q.shape == (5027, 7)
        assert log.duration == pytest.approx(25.1, abs=0.05) and log.rate == pytest.approx(200, rel=1e-3)
        steps = np.diff(log.t)
        assert steps.min() > 3.1e-3 and steps.max() < 6.9e-3
        assert any("UTC) in the file and is shifted to 0" in note for note in log.notes)
        assert any("time stamps jitter" in note for note in log.notes)


def test_panda_stamps_are_believed(data: Data) -> None:
    folder = data("panda")
    for path in (folder, folder / "exciting_traj_positions.txt"):
        recording = read(path, MAPPINGS / "panda.toml", Robot.from_urdf(folder / "panda_arm.urdf"))
        assert recording.q.shape == (20544, 7)
        assert recording.duration == pytest.approx(20.999, abs=5e-4)
        assert recording.rate == pytest.approx(1000, rel=1e-6)
    np.testing.assert_array_equal(recording.t, np.loadtxt(folder / "exciting_traj_time.txt"))
    for name, file in (("q", "positions"), ("dq", "velocity"), ("tau", "torques")):
        np.testing.assert_array_equal(getattr(recording, name),
                                      np.loadtxt(folder / f"exciting_traj_{file}.txt").reshape(-1, 7))
    text = " ".join(recording.notes)
    assert "mean rate 978.28 Hz" in text  # not the 1 kHz it seems to have
    assert "intervals from 0.7 to 8.81 ms" in text and "2.5 % off by more than half" in text
    assert "6.1 % of the rows repeat" in text
    # The stamps agree with the motion: positions integrate the measured velocities along them
    steps = np.diff(recording.t)[:, None]
    moved = np.cumsum(0.5 * steps * (recording.dq[1:] + recording.dq[:-1]), axis=0)
    assert np.max(np.abs(moved - (recording.q[1:] - recording.q[0]))) < 0.02

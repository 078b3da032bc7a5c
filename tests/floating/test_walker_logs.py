"""Logs of walkers as strangers have them give a model or one sentence, and so do the commands on their results."""

from __future__ import annotations

import csv
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from refusals import refused
from typer.testing import CliRunner
from walking_runs import SETTINGS, identified, short_walk, walk

import dynid
from dynid.cli.main import app
from dynid.errors import DynidError, RecordingError
from dynid.runs.validation import validate_result
from reproductions._walking_world import LEGS

UNITREE = ("FR", "FL", "RR", "RL")


def written(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(np.column_stack(list(columns.values())).round(9).tolist())
    return path


def unitree_columns():
    """Columns as a Unitree robot publishes them: numbered motors and feet, the quaternion w first."""
    s, legs = walk().signals, [LEGS.index(leg) for leg in UNITREE]
    motors = [3 * leg + k for leg in legs for k in range(3)]
    return ({"timestamp": walk().t} | {f"motor_state_{m}_q": s["q"][:, i] for m, i in enumerate(motors)}
            | {f"motor_state_{m}_tau_est": s["tau"][:, i] for m, i in enumerate(motors)}
            | {f"imu_quaternion_{k}": s["orientation"][:, i] for k, i in enumerate((3, 0, 1, 2))}
            | {f"imu_gyroscope_{k}": s["gyro"][:, k] for k in range(3)}
            | {f"imu_accelerometer_{k}": s["accelerometer"][:, k] for k in range(3)}
            | {f"foot_force_{k}": np.linalg.norm(s["wrench"][:, leg, :3], axis=1) for k, leg in enumerate(legs)})


def test_columns_as_of_unitree(tmp_path):
    (tmp_path / "robot.xml").write_text(walk().walker.text)
    log = written(tmp_path / "log.csv", unitree_columns())
    joints = [f"{leg}_{part}" for leg in UNITREE for part in ("hip", "thigh", "calf")]
    run = dynid.identify(tmp_path / "robot.xml", log, log={"foot_radius": 0.022, "joints": joints}, **SETTINGS)
    assert run.reconstruction.relative_error < 4.0
    notes = " ".join(run.notes)
    assert "order wxyz, because it fits the angular rates" in notes and "FR_toe, FL_toe, RR_toe, RL_toe" in notes
    with refused(RecordingError, "motor-order", "FR_hip"):
        dynid.identify(tmp_path / "robot.xml", log, **SETTINGS)


def without_contacts(world):
    return replace(world, signals={**world.signals, "contact": 0 * world.signals["contact"]})


def test_a_log_in_which_no_foot_touches_is_refused(tmp_path):
    with refused(RecordingError, "never-in-contact", "log.contact=never"):
        identified(tmp_path, without_contacts(short_walk()), "wrench")


def test_a_specific_force_in_another_unit_is_refused(tmp_path):
    walked = short_walk()
    world = replace(walked, signals={**walked.signals, "accelerometer": walked.signals["accelerometer"] / 9.81})
    with refused(RecordingError, "no-base-motion", "log the specific force in m/s^2"):
        identified(tmp_path, world, "wrench", "pose")


@pytest.mark.parametrize("settings", [
    {"log": {"feet": ["A", "B", "C", "D"]}}, {"log": {"imu_frame": "nothing"}},
    {"log": {"base_orientation": ["base_quat_x", "base_quat_y", "base_quat_z"]}},
    {"floating": {"equations": "wrenches"}}, {"floating": {"base_motion": "velocity"}},
    {"floating": {"total_mass": -1.0}}])
def test_wrong_settings_are_refused(tmp_path, settings):
    with pytest.raises(DynidError):
        identified(tmp_path, short_walk(), "wrench", **settings)


def test_commands_on_a_result(tmp_path):
    """Validation has the error of the fit, MJCF keeps the free joint, and what does not support it is refused."""
    (tmp_path / "robot.xml").write_text(walk().walker.text)
    log, result = short_walk().write(tmp_path / "log.csv", "wrench"), tmp_path / "result"

    def called(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    done = called("identify", tmp_path / "robot.xml", log, "--method", "pc-wls", "--friction", "viscous", "--set",
                  "prepare.cutoff=14", "--set", "log.foot_radius=0.022", "-o", result)
    assert done.exit_code == 0, done.output
    assert "dynid excite" not in done.output and "moving" not in done.output and "need more excitation" in done.output
    assert "dynid excite" not in (result / "report.html").read_text()
    [fit] = validate_result(result, [str(log)]).fits
    assert fit.relative_error < 3.0
    assert called("export", result, "--for", "mjcf", "-o", tmp_path / "new.xml").exit_code == 0
    assert "<freejoint" in (tmp_path / "new.xml").read_text()
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "new.xml")).nv == 18
    for words in (("payload", result, log, "--method", "sensor"),
                  ("export", result, "--for", "sdf", "-o", tmp_path / "a"),
                  ("excite", tmp_path / "robot.xml", "--improve", result, "-o", tmp_path / "m.csv")):
        refusal = called(*words).exception
        assert isinstance(refusal, DynidError) and "free base" in str(refusal)

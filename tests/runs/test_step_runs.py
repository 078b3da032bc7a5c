"""Runs of methods that go by steps: what JSON, folder and report say of them, on a machine whose loop is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.identification import Run, run
from dynid.runs.results import facts, load, save
from dynid.runs.settings import RunSettings
from dynid.simulation import Poles, Reference, VirtualRobot


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, Any], Path]:
    """A SCARA whose loops are at 20 and 30 rad/s, its commanded and external torques logged too."""
    folder = tmp_path_factory.mktemp("steps")
    model = Model(Robot.builtin("scara2"), (RigidBodies(), Viscous(), Coulomb()))
    theta, t = np.array([p.nominal for p in model.parameters], dtype=float), np.arange(3000) / 200.0
    path = np.column_stack([0.4 * np.sin(0.9 * t) + 0.2 * np.sin(1.9 * t),
                            0.5 * np.sin(1.3 * t) + 0.3 * np.sin(2.7 * t)])
    machine = VirtualRobot(model, theta, Poles([20.0, 30.0]), encoder=2 * np.pi / 400000, torque_noise=[0.05, 0.005])
    log = machine.record(Reference.from_arrays(path, rate=200.0), seed=1)
    log = replace(log, target_torque=1.02 * log.tau, external_torque=0.1 * np.ones_like(log.tau))
    write_csv(log, folder / "log.csv")
    settings = RunSettings.from_values({"robot": "scara2", "logs": [str(folder / "log.csv")], "method": "iv",
                                        "model": {"friction": ["viscous", "coulomb"]},
                                        "controller": {"kind": "poles", "omega": [20.0, 30.0]}})
    result = run(settings)
    save(result, folder / "out")
    return result, facts(result), folder / "out"


def test_json_has_every_step_the_loops_and_what_was_commanded(found: tuple[Run, dict[str, Any], Path]) -> None:
    result, said, _ = found
    assert json.dumps(said, allow_nan=False)
    last = said["iterations"][-1]
    assert {name: one["value"] for name, one in last["values"].items()} == {
        name: one["value"] for name, one in said["parameters"].items()}
    assert last["relative_error_per_joint"] == pytest.approx(said["relative_error_per_joint"])
    assert len(said["iterations"]) == result.estimate.diagnostics["iterations"]
    assert last["motion"]["position_error_per_joint"][0] < 0.1 < last["motion"][
        "position_error_from_reference_per_joint"][0]
    first = said["loops"][0]
    # The first joint is heavy: friction and the second hardly move it, so its loop is the one that was simulated.
    assert first["fit"] > 98.0 and first["pole_ratio"] == pytest.approx(1.0, abs=0.1)
    assert first["natural_frequency"] == pytest.approx(20.0, rel=0.1)
    assert said["tracking"][0]["torque_error_per_joint"] == pytest.approx([2.0, 2.0], rel=0.05)
    assert said["tracking"][0]["external_torque_rms_per_joint"] == pytest.approx([0.1, 0.1], rel=0.01)
    # Poles of 20 rad/s, twice: late by 2 / 20 s.
    assert said["tracking"][0]["lag_per_joint"][0] == pytest.approx(0.1, rel=0.1)
    assert {"reference", "target_torque", "external_torque"} <= set(said["logs"][0]["signals"])


def test_the_folder_keeps_the_steps_with_their_curves(found: tuple[Run, dict[str, Any], Path]) -> None:
    result, _, folder = found
    estimate, _ = load(folder)
    motion = estimate.iterations[-1].motion
    assert motion is not None and motion.q.shape == (400, 2)
    assert np.abs(motion.q - motion.measured).max() < 0.02 * np.ptp(motion.measured)
    assert len(estimate.iterations) == len(result.estimate.iterations)


def test_the_report_shows_steps_to_choose_from_and_tracking_errors(found: tuple[Run, dict[str, Any], Path]) -> None:
    result, _, folder = found
    page = (folder / "report.html").read_text()
    steps = len(result.estimate.iterations)
    assert re.findall(r'aria-controls="iterations-(\d+)"', page) == [str(k + 1) for k in range(steps)]
    labels = re.findall(r'aria-label="([^"]+)"', page)
    assert labels.count("Torque error of every joint over the steps") == 1
    assert sum(label.startswith("Value of") for label in labels) == len(result.estimate.values)
    assert sum(label.endswith("at one step") for label in labels) == 2 * steps
    assert sum(label.startswith("Tracking error") for label in labels) == 4
    assert "poles, estimated / given" in page and "use of references" in page

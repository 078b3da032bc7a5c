"""Whole runs on a four-bar with its encoder on the rocker and on the crank, and with a bar that is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.model import Model, make_terms
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.consistency_check import inspect_robot
from dynid.runs.identification import Run, run
from dynid.runs.settings import RunSettings
from dynid.simulation import ComputedTorque, Reference, VirtualRobot

BUILTIN = Path(__file__).parents[2] / "src/dynid/robot/builtin/four-bar.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Robot files and logs of one motion, without noise."""
    folder, text = tmp_path_factory.mktemp("bars"), BUILTIN.read_text()
    t = np.arange(1500) / 500.0
    q = 1.7 + sum(0.18 * np.sin(2 * np.pi * f * t + k) for k, f in enumerate((0.3, 0.71, 1.3, 2.1)))
    for name, line in (("crank", ""), ("rocker", "measured = true\n")):
        (folder / f"{name}.toml").write_text(text.replace('link = "rocker-bar"\n', f'link = "rocker-bar"\n{line}'))
        robot = Robot.load(folder / f"{name}.toml")
        model = Model(robot, make_terms(robot))
        theta = model.parameters.nominal
        machine = VirtualRobot(model, theta, ComputedTorque(model, theta, 900.0, 60.0), smooth="stick")
        write_csv(machine.record(Reference.from_arrays(q[:, None], rate=500.0)), folder / f"{name}.csv")
    return folder


def found(folder: Path, name: str, **changes: object) -> Run:
    return run(RunSettings.from_values({"robot": str(folder / f"{name}.toml"), "logs": [str(folder / f"{name}.csv")],
                                        "method": "wls", "simulation": {"run": False}, "prepare": {"cutoff": 15.0},
                                        **changes},
                                       "test"))


def test_the_same_result_from_either_encoder(folder: Path) -> None:
    own, other = found(folder, "crank"), found(folder, "rocker")
    assert own.robot.measured == () and other.robot.measured == ("rocker",)
    scale = np.abs(own.estimate.values).max()
    np.testing.assert_allclose(other.estimate.values, own.estimate.values, atol=1e-6 * scale)
    assert any("measured at rocker" in note for note in other.notes)
    assert not any("measured at" in note for note in own.notes)


def test_a_bar_that_is_known_is_not_identified(folder: Path) -> None:
    result = found(folder, "rocker", fixed_inertias=["coupler-bar"])
    whole = found(folder, "rocker")
    model = result.model
    known = {name for name in model.parameters.names if model.parameters.items[model.parameters.index(name)].body
             == "coupler-bar"}
    assert set(result.estimate.known) == known and len(known) == 10
    assert len(result.problem.base) < len(whole.problem.base)
    assert result.reconstruction.relative_error < 1.2 * whole.reconstruction.relative_error + 0.05
    assert result.settings.fixed_inertias == ("coupler-bar",)


def test_inspection_says_which_joints_do_what(folder: Path) -> None:
    facts = inspect_robot(Robot.load(folder / "rocker.toml").with_fixed_inertias(["crank-bar"]))
    assert facts["measured_joints"] == ["rocker"] and facts["driven_joints"] == ["crank"]
    assert facts["following_joints"] == ["coupler", "rocker"] and facts["links_with_fixed_inertia"] == ["crank-bar"]

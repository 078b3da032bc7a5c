"""A folder to run the documentation in."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest
from documentation import DOCS

import dynid
from dynid.recording.write import write_csv
from dynid.runs.demonstration import true_parameters


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder with what the README and the documentation work on: the tutorial's arm and its logs, and the logs that
    the demonstration leaves behind."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(DOCS / "example", folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path("make_logs.py", run_name="__main__")
        robot = dynid.Robot.builtin("franka-panda")
        model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb", "offset")))
        for seed, name in enumerate(("exciting", "other")):
            a, b = 0.4 * np.random.default_rng(seed).normal(size=(2, robot.dof, 5))
            t = np.arange(0.0, 20.0, 0.005)
            motion = dynid.trajectories.FourierSeries(a, b, np.zeros(robot.dof), 20.0).at(t)
            tau = model.inverse_dynamics(true_parameters(model), motion.q, motion.dq, motion.ddq)
            write_csv(dynid.Recording(t, motion.q, tau, joints=robot.joint_names), Path("dynid-demo") / f"{name}.csv")
    return folder


@pytest.fixture
def at_desk(desk, tmp_path, monkeypatch):
    """A copy of the desk of one's own, as the folder one is in."""
    folder = tmp_path / "desk"
    shutil.copytree(desk, folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    return folder

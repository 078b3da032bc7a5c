"""--only and --lock on the command line."""

from __future__ import annotations

import json

import numpy as np
from motions import fourier

from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot

AT = 0.6


def test_only_and_lock_on_the_command_line(tmp_path, dynid):
    robot = Robot.builtin("arm3r")
    model = Model(robot)
    q, dq, ddq = fourier(3, seconds=10.0)
    q[:, 1], dq[:, 1], ddq[:, 1] = AT, 0.0, 0.0
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    write_csv(Recording(np.arange(len(q)) / 200.0, q, tau, joints=robot.joint_names), log := tmp_path / "log.csv")
    first, second, third = robot.joint_names
    shown = dynid("identify", "arm3r", log, "--only", f"{first},{third}", "--lock", f"{second}={AT}",
                  "--cutoff", "20", "--method", "wls", "--no-simulation", "--json")
    assert shown.code == 0
    assert len(json.loads(shown.out)["relative_error_per_joint"]) == 2
    assert json.loads(shown.out)["relative_error"] < 1.0
    told = dynid("inspect", "arm3r", "--lock", f"{second}={AT}", "--json")
    assert json.loads(told.out)["dof"] == 2
    assert dynid("inspect", "arm3r", "--lock", f"{second}=up").code == 2

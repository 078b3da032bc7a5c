"""An arm of one joint as a URDF, and a log of it without noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.robot import Robot

URDF = """<robot name="one arm"> <!-- mine -->
  <link name="base"/>
  <link name="arm">
    <inertial><origin xyz="0.1 0 0"/><mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial>
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
</robot>
"""


def written(folder: Path, name: str = "arm.urdf") -> dict[str, object]:
    """The arm's file and its log in a folder, and the settings of a run on them; viscous friction is 0.4 N m s/rad."""
    (folder / name).write_text(URDF)
    robot = Robot.from_urdf(URDF)
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    t = np.arange(2000) / 200
    q, dq, ddq = np.sin(3 * t)[:, None], 3 * np.cos(3 * t)[:, None], -9 * np.sin(3 * t)[:, None]
    truth = model.parameters.vector([*robot.inertias[0], 0.4])
    write_npz(Recording(t, q, model.inverse_dynamics(truth, q, dq, ddq), joints=("j",)), folder / "log.npz")
    return {"robot": str(folder / name), "logs": [str(folder / "log.npz")], "method": "pc-wls",
            "model": {"friction": ["viscous"]}, "prepare": {"cutoff": 20.0}}

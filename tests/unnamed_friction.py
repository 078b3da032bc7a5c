"""An arm with three joints whose file specifies no friction, and its logs with friction."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot

RATE = 200.0


def write_arm(folder: Path) -> Path:
    """arm.toml, and 20 s each: log.csv with viscous and dry friction, and uneven.csv, in which joint 3 has more viscous
    friction one way than the other."""
    own = Path(__file__).parents[1] / "src" / "dynid" / "robot" / "builtin" / "arm3r.toml"
    (folder / "arm.toml").write_text(own.read_text().partition("[[terms]]")[0].replace('"arm3r"', '"arm"'))
    robot, rng = Robot.load(str(folder / "arm.toml")), np.random.default_rng(3)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([0.0 if one.nominal is None else one.nominal for one in model.parameters])
    for name in ("Fv1", "Fc1", "Fv2", "Fc2", "Fv3", "Fc3"):
        theta[model.parameters.index(name)] = rng.uniform(0.3, 1.0)
    t = np.arange(4000) / RATE
    for name, extra in (("log", 0.0), ("uneven", 0.5)):
        along = FourierSeries(*0.15 * rng.normal(size=(2, 3, 5)), np.zeros(3), 20.0).at(t)
        tau = model.inverse_dynamics(theta, along.q, along.dq, along.ddq)
        tau[:, 2] += extra * np.maximum(along.dq[:, 2], 0.0)
        q, tau = (x + size * rng.normal(size=x.shape) for x, size in ((along.q, 1e-5), (tau, 0.01)))
        write_csv(Recording(t, q, tau, joints=robot.joint_names), folder / f"{name}.csv")
    return folder

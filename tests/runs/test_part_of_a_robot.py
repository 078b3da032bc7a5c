"""Runs on a part of a robot: joints locked or left out, in logs that have their columns or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from motions import fourier
from refusals import refused
from robots import gripper

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import save

ROBOT = Robot.builtin("arm3r")
MODEL = Model(ROBOT, make_terms(ROBOT, friction=("viscous",)))
STANDS, AT = 1, 0.6  # the second joint stands still


def motion(seed: int = 0) -> tuple[Array, Array, Array]:
    """t, q and torques (samples, 3) of the whole arm."""
    q, dq, ddq = fourier(3, seconds=10.0, seed=seed)
    for array, value in ((q, AT), (dq, 0.0), (ddq, 0.0)):
        array[:, STANDS] = value
    theta = MODEL.parameters.vector(MODEL.parameters.nominal)
    return np.arange(len(q)) / 200.0, q, MODEL.inverse_dynamics(theta, q, dq, ddq)


def written(path: Path, columns: list[int], names: tuple[str, ...]) -> str:
    t, q, tau = motion()
    table = np.column_stack([t, q[:, columns], tau[:, columns]])
    header = ",".join(["time", *(f"q{name}" for name in names), *(f"tau{name}" for name in names)])
    np.savetxt(path, table, delimiter=",", header=header, comments="")
    return str(path)


@pytest.mark.parametrize(("columns", "names"), [
    ([0, 1, 2], ("1", "2", "3")),  # numbered, all of them
    ([0, 2], ("1", "2")),  # numbered, those that move
    ([0, 1, 2], tuple(f"_{name}" for name in ROBOT.joint_names)),
    ([2, 0], (f"_{ROBOT.joint_names[2]}", f"_{ROBOT.joint_names[0]}")),
])
def test_a_locked_joint_is_no_unknown(tmp_path: Path, columns: list[int], names: tuple[str, ...]) -> None:
    settings = RunSettings(robot="arm3r", logs=(written(tmp_path / "log.csv", columns, names),),
                           lock={ROBOT.joint_names[STANDS]: AT}, model=ModelSettings(friction=("viscous",)),
                           prepare={"cutoff": 20.0}, method="wls", simulation={"run": False})
    found = run(settings)
    assert found.robot.joint_names == (ROBOT.joint_names[0], ROBOT.joint_names[2])
    part = ROBOT.lock({ROBOT.joint_names[STANDS]: AT})
    truth = found.problem.base.reduce(Model(part, make_terms(part, friction=("viscous",))).parameters.nominal)
    assert found.estimate.identified.all()
    np.testing.assert_allclose(found.estimate.values, truth, rtol=2e-3, atol=2e-3)
    save(found, tmp_path / "out", report=False)
    again = run(RunSettings.load(tmp_path / "out" / "run.toml"))
    assert np.array_equal(again.estimate.values, found.estimate.values)


def test_a_joint_cannot_move_and_be_locked(tmp_path: Path) -> None:
    settings = RunSettings(robot="arm3r", logs=("log.csv",), only=ROBOT.joint_names[:2],
                           lock={ROBOT.joint_names[0]: 0.0})
    with refused(RobotError, "only-and-lock"):
        run(settings)


@pytest.mark.parametrize("every", [False, True])
def test_a_run_of_a_robot_with_mimic_joints(tmp_path: Path, every: bool) -> None:
    """Logs of the joints that move by themselves, or of all; the result is a file that moves the same."""
    (tmp_path / "gripper.urdf").write_text(gripper())
    robot = Robot.load(tmp_path / "gripper.urdf")
    model, following = Model(robot), robot.followers
    assert following is not None
    q, dq, ddq = fourier(3, seconds=10.0)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    if every:
        q, tau = q @ following.coupling.T + following.offset, tau @ following.coupling.T
    names = following.tree.joint_names if every else robot.joint_names
    write_csv(Recording(np.arange(len(q)) / 200.0, q, tau, joints=names), tmp_path / "log.csv")
    found = run(RunSettings(robot=str(tmp_path / "gripper.urdf"), logs=(str(tmp_path / "log.csv"),), method="pc-wls",
                            prepare={"cutoff": 20.0}, model=ModelSettings(friction=("none",))))
    assert found.robot.joint_names == ("arm", "wrist", "right")
    assert found.reconstruction.total.relative_error < 0.5
    files = save(found, tmp_path / "out", report=False)
    again = Model(Robot.load(files["robot"]))
    motion = np.random.default_rng(0).normal(size=(3, 10, 3))
    np.testing.assert_allclose(again.inverse_dynamics(again.parameters.nominal, *motion),
                               found.estimate.predict(*motion), atol=1e-8)

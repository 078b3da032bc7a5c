"""The copy of the user's URDF beside a result, and the user's own files beside that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import one_arm
import pytest

from dynid.estimate import Problem, identify
from dynid.estimate.linear import joint_weights
from dynid.estimate.nearest_robot import consistent_robot
from dynid.model import Model
from dynid.recording import Recording, Samples
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.robot.write_urdf import plain_urdf
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import load, save


@pytest.fixture
def settings(tmp_path):
    return RunSettings.from_values(one_arm.written(tmp_path, "robot.urdf"))


def test_the_copy_predicts_what_the_result_predicts(settings, tmp_path):
    found = run(settings)
    written = save(found, tmp_path / "out", report=False)
    copy = Robot.from_urdf(written["robot"])
    assert "<!-- mine -->" in Path(written["robot"]).read_text()
    assert copy.values["Fv1"] == pytest.approx(0.4, rel=0.01)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 1))
    ours = found.estimate.predict(q, dq, ddq)
    theirs = Model(copy).inverse_dynamics(copy.inertias.ravel(), q, dq, ddq) + copy.values["Fv1"] * dq
    np.testing.assert_allclose(theirs, ours, atol=1e-12)
    again, _ = load(tmp_path / "out")
    again.to_urdf(tmp_path / "again.urdf")
    assert (tmp_path / "again.urdf").read_bytes() == Path(written["robot"]).read_bytes()


def test_a_users_own_file_of_that_name_is_left_alone(settings, tmp_path):
    found = run(settings)
    assert "robot" not in save(found, tmp_path, report=False)
    assert "robot" not in save(found, tmp_path, force=True, report=False)
    assert (tmp_path / "robot.urdf").read_text() == one_arm.URDF


def test_a_method_of_base_parameters_gives_a_consistent_robot_too(settings, tmp_path):
    """The one joint is consistent as wls finds it, so its robot file has the same torques."""
    found, notes = run(settings.model_copy(update={"method": "wls"})), []
    assert found.estimate.theta is None
    copy = Robot.from_urdf(save(found, tmp_path / "out", report=False, add_note=notes.append)["robot"])
    assert "with the same torques" in notes[0]
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 1))
    theirs = Model(copy).inverse_dynamics(copy.inertias.ravel(), q, dq, ddq) + copy.values["Fv1"] * dq
    np.testing.assert_allclose(theirs, found.estimate.predict(q, dq, ddq), rtol=1e-3)


def pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """Of XX XY XZ YY YZ ZZ MX MY MZ M about the frame (Wensing, Kim, Slotine, 2018): positive definite of a body."""
    xx, xy, xz, yy, yz, zz, *first, mass = ten
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[second, np.array(first)[:, None]], [np.array(first)[None, :], np.array([[mass]])]])


def test_an_estimate_that_no_robot_has_is_written_as_the_nearest_one(simulate_arm, tmp_path):
    """Noise as large as the torques: least squares are not consistent, the robot written is, and it costs something."""
    problem, estimate = simulate_arm
    robot = consistent_robot(problem, estimate)
    places = problem.model.parameters.bodies
    assert all(np.linalg.eigvalsh(pseudo_inertia(robot.theta[places[body]])).min() > 0 for body in places)
    assert not robot.same and robot.error > robot.estimate_error
    assert f"instead of {robot.estimate_error:.2g} %" in robot.sentence
    # No other consistent robot tried is nearer in the weighted torques of the data: pc-wls is the nearest to wls.
    best = identify(problem, method="pc-wls")
    stacked = problem.regression.stack(joint_weights(problem.regression))
    assert stacked.misfit(problem.base.reduce(robot.theta)) == pytest.approx(stacked.misfit(best.values), rel=1e-2)


@pytest.fixture
def simulate_arm():
    model, rng = Model(Robot.builtin("arm3r")), np.random.default_rng(3)
    q, dq, ddq = rng.uniform(-1.0, 1.0, size=(3, 60, 3))
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    tau += 0.5 * np.abs(tau).mean() * rng.normal(size=tau.shape)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0))
    return problem, identify(problem, method="wls")


def test_a_robot_that_is_not_a_urdf_is_written_as_mjcf(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = Model(Robot.builtin("arm3r"))
    t = np.arange(2000) / 200
    phase = np.outer(t, [2.0, 3.1, 4.3])
    speed = np.array([2.0, 3.1, 4.3])
    motion = np.sin(phase), speed * np.cos(phase), -speed ** 2 * np.sin(phase)
    tau = model.inverse_dynamics(model.parameters.nominal, *motion)
    write_npz(Recording(t, motion[0], tau, joints=model.robot.joint_names), tmp_path / "log.npz")
    found = run(RunSettings.from_values({"robot": "arm3r", "logs": [str(tmp_path / "log.npz")], "method": "wls",
                                         "model": {"friction": ["none"]}, "simulation": {"run": False}}))
    written = save(found, tmp_path / "out", report=False)
    assert written["robot"].endswith("robot.xml")
    loaded = mujoco.MjModel.from_xml_path(written["robot"])
    data = mujoco.MjData(loaded)
    data.qpos, data.qvel, data.qacc = (signal[700] for signal in motion)
    mujoco.mj_inverse(loaded, data)
    np.testing.assert_allclose(data.qfrc_inverse, tau[700], rtol=1e-2, atol=1e-2 * np.abs(tau).max())


def test_the_report_says_what_to_know_about_the_copy(settings, tmp_path):
    rotor = settings.model_copy(update={"model": ModelSettings(friction=("viscous", "offset"))})
    save(run(rotor), tmp_path / "out")
    assert "cannot represent Fo1" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("name", ["franka-panda", "kuka-iiwa14", "staubli-tx40", "emps"])
def test_a_table_of_modified_parameters_has_a_urdf(name):
    robot = Robot.builtin(name)
    text = plain_urdf(robot)
    assert text is not None
    again = Robot.from_urdf(text)
    assert again.joint_names == robot.joint_names and again.body_names == robot.body_names
    for limit in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_allclose(again.limit(limit), robot.limit(limit))
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, robot.dof))
    theta = Model(robot).parameters.nominal
    np.testing.assert_allclose(Model(again).inverse_dynamics(theta, q, dq, ddq),
                               Model(robot).inverse_dynamics(theta, q, dq, ddq), atol=1e-9)


@pytest.mark.parametrize("name", ["arm3r", "kuka-lwr4", "four-bar"])
def test_a_table_of_standard_parameters_and_a_closed_loop_have_none(name):
    assert plain_urdf(Robot.builtin(name)) is None

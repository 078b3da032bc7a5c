"""The verdict on a real log, as it is and with a fault put in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import cross_validate, reconstruct, verdict


def _panda(data, robot: Robot) -> tuple[Model, Samples]:
    """A model of a robot with plain friction, and the log of a Panda."""
    q, dq, tau = (np.loadtxt(data("panda", f"exciting_traj_{name}.txt")).reshape(-1, 7)
                  for name in ("positions", "velocity", "torques"))
    t = np.loadtxt(data("panda", "exciting_traj_time.txt"))
    log = Recording(t, q, tau, dq=dq, source="panda", joints=robot.joint_names)
    return Model(robot, make_terms(robot, ("viscous", "coulomb", "offset"))), prepare(log, cutoff=5.0)


@pytest.mark.parametrize(("folder", "file", "grade"), [
    pytest.param("panda", "panda_arm.urdf", "good", marks=pytest.mark.slow), ("models", "xarm7.urdf", "usable")])
def test_joints_contradict_each_other_with_the_file_of_another_robot(data, folder, file, grade):
    """Another arm with as many joints fits the torques to 7 %: its geometry and its gravity contradict them."""
    model, samples = _panda(data, Robot.from_urdf(data(folder, file)))
    problem = Problem.from_model(model, samples)
    estimate = identify(problem, method="wls")
    found = verdict(estimate, problem, cross=cross_validate(problem, estimate=estimate))
    warned = [one for one in found.of_kind("problem") if one.code == "unexplained-misfit"]
    assert [one.title for one in warned] == ["joints contradict each other"] * (grade == "usable")
    assert found.summary.grade == grade


def test_a_real_robot_and_a_wrong_gain_put_into_its_log(data):
    model, samples = _panda(data, Robot.from_urdf(data("panda", "panda_arm.urdf")))
    problem = Problem.from_model(model, samples)
    estimate = identify(problem, method="wls")
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples),
                    cross=cross_validate(problem, estimate=estimate))
    assert not {"drive-gain", "torque-sign", "joint-at-rest"} & {one.code for one in found.findings}
    assert sum(not p.lacking for p in found.excitation.parameters) > 40
    wrong = replace(samples, tau=samples.tau * np.array([1, 1.25, 1, 1, 1, 1, 1]))
    problem = Problem.from_model(model, wrong)
    estimate = identify(problem, method="wls")
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, wrong))
    assert [one.joints for one in found.findings if one.code == "drive-gain"] == [("panda_joint2",)]
    assert found.gains[1].gain == pytest.approx(1.25, abs=0.02)

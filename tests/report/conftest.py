"""Reports of simulated logs: seven joints, one sliding joint, a model of one's own, a motion that excites little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import fourier

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.estimate.cutoff_choice import choose_cutoff
from dynid.model import LinearModel, Model, Payload, Scara, make_terms
from dynid.payloads.estimation import payload
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.report import ReportData
from dynid.robot import Robot
from dynid.simulation import Cascade
from dynid.validate import (
    cross_validate,
    cutoff_dependence,
    deflections,
    physics,
    reconstruct,
    simulation_checks,
    verdict,
)

RATE = 200.0


def simulated(model: LinearModel, theta: Array, seed: int, seconds: float, still: tuple[int, ...] = ()) -> Recording:
    """A log along a Fourier series with torque noise of 1 %; joints in `still` do not move."""
    q, dq, ddq = fourier(model.dof, seconds=seconds, rate=RATE, seed=seed)
    for j in still:
        q[:, j], dq[:, j], ddq[:, j] = 0.3, 0.0, 0.0
    rng = np.random.default_rng(seed)
    tau = model.regressor(q, dq, ddq) @ theta
    tau += 0.01 * tau.std(axis=0) * rng.normal(size=tau.shape) + 1e-4 * rng.normal(size=tau.shape)
    robot = getattr(model, "robot", None)
    joints = robot.joint_names if robot is not None else tuple(f"axis{j + 1}" for j in range(model.dof))
    return Recording(np.arange(len(q)) / RATE, q, tau, joints=joints, source=f"logs/motion{seed}.csv",
                     notes=(f"read {len(q)} rows",))


def report_of(model: LinearModel, logs: list[Samples], others: list[Samples], methods: tuple[str, ...] = ("wls", "ols"),
              **more: object) -> ReportData:
    """Identify from some samples, validate on others, and gather a report."""
    problem = Problem.from_model(model, logs, blocks=5)
    estimate, *beside = [identify(problem, method=method) for method in methods]
    own = reconstruct(estimate, logs)
    validations = tuple(reconstruct(estimate, part) for part in others)
    cross = cross_validate(problem, methods[0], estimate=estimate)
    found = verdict(estimate, problem, reconstruction=own, validation=validations, cross=cross)
    simulations = simulation_checks(estimate, [((part,), None) for part in others or logs])
    data = ReportData(title="A test", estimate=estimate, reconstruction=own, verdict=found,
                      robot=getattr(model, "robot", None), others=tuple(beside), validations=validations,
                      cross_validation=cross, physics=physics(estimate, logs[0]), samples=tuple(logs),
                      simulations=simulations, notes=("a note",), command="dynid identify run.toml -o out",
                      settings='robot = "test"\n', seconds=1.5)
    return replace(data, **more)


def arm_model(name: str) -> tuple[Model, Array]:
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, defaults=True))
    theta = model.parameters.nominal
    assert theta is not None
    return model, theta


@pytest.fixture(scope="session")
def lwr() -> ReportData:
    """Seven joints, two methods, all parameters given, one other log, one with a load; torque sensors behind joints of
    2000 N m/rad."""
    model, theta = arm_model("kuka-lwr4")
    logs = [prepare(simulated(model, theta, seed, seconds), decimate=1) for seed, seconds in ((0, 10.0), (1, 5.0))]
    data = report_of(model, logs[:1], logs[1:])
    estimate = replace(data.estimate, theta=theta)
    log = simulated(model, theta, 0, 10.0)
    choice = choose_cutoff(model, log)
    moves = cutoff_dependence(Problem.from_model(model, logs[0], base=estimate.base, recordings=log), estimate)
    sensed = replace(log, motor_position=log.q + log.tau / 2000.0, sensed_torque=log.tau)
    weight = Payload("link7", nominal=[0.02, 0.0, 0.0, 0.02, 0.0, 0.001, 0.0, 0.0, 0.2, 2.0])
    columns = Model(model.robot, (weight,))
    more = columns.inverse_dynamics(columns.parameters.nominal, logs[1].q, logs[1].dq, logs[1].ddq)
    carried = payload(estimate, replace(logs[1], tau=logs[1].tau + more), "link7", label="weight")
    return replace(data, estimate=estimate, physics=physics(estimate, logs[0]), cutoff_choice=choice,
                   cutoff_dependence=moves, deflections=deflections(estimate, logs[:1], [sensed]), payloads=(carried,))


@pytest.fixture(scope="session")
def emps() -> ReportData:
    """One sliding joint, one method, no other log, decimated in parallel, simulated with and without feedback."""
    model, theta = arm_model("emps")
    log = simulated(model, theta, 2, 20.0)
    samples = prepare(log, decimate=4)
    data = report_of(model, [samples], [], ("wls",))
    checks = simulation_checks(data.estimate, [((samples,), replace(log, reference=log.q))],
                               controller=Cascade(40.0, 100.0, 35.0, feedforward=True))
    return replace(data, simulations=checks)


@pytest.fixture(scope="session")
def scara() -> ReportData:
    """A model of one's own: there is no robot to draw."""
    theta = np.array([3.4, 0.05, 0.5, 0.06, 0.12, 0.005, 0.01, 0.1])
    log = simulated(Scara(), theta, 3, 10.0)
    return report_of(Scara(), [prepare(log)], [])


@pytest.fixture(scope="session")
def still() -> ReportData:
    """Only the first joint of three moves, so that most parameters are not identified."""
    model, theta = arm_model("arm3r")
    return report_of(model, [prepare(simulated(model, theta, 4, 10.0, still=(1, 2)))], [])

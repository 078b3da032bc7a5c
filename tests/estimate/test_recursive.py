"""Recursive methods over logs, by their names."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import arm, motion
from refusals import refused

from dynid import Online, Problem, Recording, Reference, Samples, VirtualRobot, identify, prepare
from dynid.controllers import Poles
from dynid.errors import ModelError
from dynid.estimate.recursive.stream import owners


@pytest.fixture(scope="module")
def recorded() -> tuple[np.ndarray, Recording]:
    """A log of a virtual arm with its reference."""
    model = arm()
    theta = model.parameters.nominal
    assert theta is not None
    q, dq, ddq = motion(15_000, 3, rate=1000.0, size=0.5)
    machine = VirtualRobot(model, theta, Poles(np.full(3, 60.0)), encoder=1e-5, torque_noise=0.02)
    return theta, machine.record(Reference.from_arrays(q, dq, ddq, rate=1000.0), seed=1)


@pytest.mark.parametrize(("method", "references"), [
    ("riv", "reference"), ("civ", "reference"), ("riv", "transfer"),
    pytest.param("civ", "transfer", marks=pytest.mark.slow)])
def test_instruments_from_the_logged_references(recorded: tuple[np.ndarray, Recording], method: str,
                                                references: str) -> None:
    theta, log = recorded
    model = arm()
    problem = Problem.from_model(model, prepare(log, cutoff=15.0), recordings=log)
    estimate = identify(problem, method=method, references=references)
    truth = problem.base.reduce(theta)
    size = np.abs(model.regressor(*motion(500, 3, size=0.5))[:, :, problem.base.independent] @ (
        estimate.values - truth)).max()
    assert size < 0.2 and estimate.diagnostics["least_correlation"] > 0.5
    with refused(ModelError, "no-reference"):
        identify(Problem.from_model(model, prepare(log, cutoff=15.0)), method=method)


def test_sequential_ones_follow_their_own_recursion() -> None:
    model, rng = arm(), np.random.default_rng(0)
    q, dq, ddq = motion(60, 3)
    tau = model.inverse_dynamics(rng.normal(size=len(model.parameters)), q, dq, ddq) + 0.1 * rng.normal(size=q.shape)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0))
    b, owner = len(problem.base), owners(problem.base)
    y = model.regressor(q, dq, ddq)[:, :, problem.base.independent]
    p, beta = 4.0 * np.eye(b), np.zeros(b)
    for j in (2, 1, 0):  # Ardiani, eq. 3.15-3.16, the gain applied to the joint's own parameters only
        for t in range(60):
            x = y[t, j]
            gain = p @ x / (1.0 + x @ p @ x)
            error = tau[t, j] - x @ beta
            beta = beta + np.where(owner == j, gain, 0.0) * error
            p = p - np.outer(gain, x @ p)
    found = identify(problem, method="s-rls-b", prior_std=2.0)
    assert np.allclose(found.values, beta, rtol=1e-6, atol=1e-8)
    line, known = identify(problem, method="line-by-line").values, np.zeros(b)
    for j in (2, 1, 0):
        own = owner == j
        known[own] = np.linalg.lstsq(y[:, j, own], tau[:, j] - y[:, j, ~own] @ known[~own], rcond=None)[0]
    assert np.allclose(y[:, 2] @ line, y[:, 2] @ known, atol=1e-8)


def test_s_rls_goes_joint_after_joint() -> None:
    model, rng = arm(), np.random.default_rng(3)
    q, dq, ddq = motion(80, 3)
    tau = model.inverse_dynamics(rng.normal(size=len(model.parameters)), q, dq, ddq) + 0.1 * rng.normal(size=q.shape)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0))
    b = len(problem.base)
    y = model.regressor(q, dq, ddq)[:, :, problem.base.independent]
    p, beta, stages = 4.0 * np.eye(b), np.zeros(b), np.empty((3, b))
    for j in (2, 1, 0):  # Ardiani, eq. 3.15-3.16
        for t in range(80):
            gain = p @ y[t, j] / (1.0 + y[t, j] @ p @ y[t, j])
            beta, p = beta + gain * (tau[t, j] - y[t, j] @ beta), p - np.outer(gain, y[t, j] @ p)
        stages[j] = beta
    found = identify(problem, method="s-rls", prior_std=2.0, noise=1.0)
    on_the_way = np.array(found.diagnostics["joint_estimates"])
    assert np.allclose(on_the_way, stages, rtol=1e-8, atol=1e-9) and np.allclose(found.values, beta, rtol=1e-8)
    assert np.linalg.norm(stages[2] - beta) > 0.1 * np.linalg.norm(beta)  # the last joint alone is not enough
    coupled = identify(problem, method="cls", prior_std=2.0, noise=1.0)
    assert "joint_estimates" not in coupled.diagnostics
    assert 0.0 < np.abs(coupled.values - found.values).max() < 1e-9  # two orders, one estimate but for rounding
    with refused(ModelError, "forgetting-not-supported"):
        Online(model, "s-rls", forgetting=0.999)


def test_mrls_says_what_it_kept() -> None:
    model = arm()
    q, dq, ddq = motion(400, 3)
    q[:, :2], dq[:, :2], ddq[:, :2] = 0.3, 0.0, 0.0  # only the last joint moves
    tau = model.inverse_dynamics(np.ones(len(model.parameters)), q, dq, ddq)
    tau += 0.01 * np.random.default_rng(0).normal(size=q.shape)
    estimate = identify(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0), "mrls")
    status = np.array(estimate.diagnostics["status"])
    assert set(status.tolist()) == {1, 0, -1} and np.array_equal(estimate.identified, status == 1)
    assert np.all(estimate.values[status != 1] == 0.0) and estimate.diagnostics.rank == int((status == 1).sum())

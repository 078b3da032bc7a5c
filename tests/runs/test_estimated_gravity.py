"""gravity = "estimate": a run finds how its robot is mounted, and says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import RunSettings, run
from dynid.runs.results import facts


@pytest.fixture
def sideways(tmp_path):
    """A log of the 3R arm mounted with gravity along +x."""
    robot = Robot.builtin("arm3r")
    model = Model(robot.with_gravity((9.81, 0.0, 0.0)), make_terms(robot, defaults=True))
    theta = np.array([p.nominal or 0.0 for p in model.parameters])
    t = np.arange(0.0, 20.0, 0.01)
    rng = np.random.default_rng(0)
    w = 2.0 * np.pi * np.array([0.1, 0.3, 0.5])
    a, phase = rng.uniform(0.1, 0.4, (3, 3)), rng.uniform(0.0, 6.0, (3, 3))
    angle = t[:, None, None] * w + phase
    q, dq = np.sum(a * np.sin(angle), axis=2), np.sum(a * w * np.cos(angle), axis=2)
    tau = model.inverse_dynamics(theta, q, dq, np.sum(-a * w ** 2 * np.sin(angle), axis=2))
    tau += 0.01 * np.sqrt(np.mean(tau ** 2, axis=0)) * rng.normal(size=tau.shape)
    log = Recording(t, q, tau, source="sideways", joints=robot.joint_names)
    return str(write_csv(replace(log), tmp_path / "sideways.csv"))


def test_a_run_estimates_the_direction_of_gravity(sideways):
    settings = RunSettings.from_values({"robot": "arm3r", "logs": [sideways], "gravity": "estimate",
                                        "method": "wls", "simulation": {"run": False}})
    found = run(settings)
    assert found.mounting is not None
    assert np.allclose(found.mounting.vector, (9.81, 0.0, 0.0), atol=0.2) and np.all(found.mounting.std < 1.0)
    assert found.robot.gravity == pytest.approx(found.mounting.vector)
    assert found.settings.gravity == pytest.approx(tuple(found.mounting.vector))  # so that run.toml repeats it
    assert facts(found)["gravity"]["vector"] == pytest.approx([9.81, 0.0, 0.0], abs=0.2)
    assert found.reconstruction.relative_error < 3.0
    assert any("gravity was estimated" in note for note in found.notes)


def test_without_it_the_verdict_names_the_mounting(sideways):
    found = run(RunSettings.from_values({"robot": "arm3r", "logs": [sideways], "method": "wls",
                               "simulation": {"run": False}}))
    codes = {one.code: one for one in found.verdict.findings}
    assert codes["gravity-direction"].evidence["gravity"] == pytest.approx((9.81, 0.0, 0.0), abs=0.3)

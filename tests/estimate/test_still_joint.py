"""A joint that stands still: what motion does not excite is not identified, by any method and in every file."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motions import fourier

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.identification import run
from dynid.runs.results import facts, parameters_text
from dynid.runs.settings import RunSettings

STILL = ("Ia3", "Fv3", "Fc3")
COUNT = 2 * np.pi / 2 ** 16  # rad of one count of the encoder


def arm() -> tuple[Model, Array]:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=True))
    usual = {"Ia": 0.2, "Fv": 0.5, "Fc": 1.5}
    return model, np.array([item.nominal or usual.get(item.symbol, 0.0) for item in model.parameters])


def still_log(model: Model, theta: Array, flicker: str, seed: int = 0) -> Recording:
    """20 s of a motion in which joint 3 holds its position, torque noise of 1 %."""
    q, dq, ddq = fourier(3, rate=500.0, seed=seed)
    q[:, 2], dq[:, 2], ddq[:, 2] = 0.4, 0.0, 0.0
    rng = np.random.default_rng(seed)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.01 * tau.std(axis=0) * rng.normal(size=tau.shape)
    if flicker == "counts":
        q = COUNT * np.round((q + 0.4 * COUNT * rng.normal(size=q.shape)) / COUNT)
    elif flicker == "white":
        q = q + COUNT * rng.normal(size=q.shape)
    return Recording(np.arange(len(q)) / 500.0, q, tau, joints=("joint1", "joint2", "joint3"))


@pytest.mark.parametrize("flicker", ["counts", "white", "none"])
@pytest.mark.parametrize("method", ["wls", "irls", "ridge", "pc-ols", "pc-wls", "pc-ridge"])
def test_what_a_still_joint_hides_is_not_identified(method: str, flicker: str) -> None:
    """Rotor inertia 0.2 came out as -0.017 +- 0.004, Coulomb friction 0.18 as 8e-5 +- 6e-5; now nothing is said of
    them, and what the others tell is true."""
    model, theta = arm()
    problem = Problem.from_model(model, prepare(still_log(model, theta, flicker)), nominal=theta)
    estimate = identify(problem, method=method)
    hidden = [estimate.names.index(name) for name in STILL]
    assert not estimate.identified[hidden].any() and np.isinf(estimate.std[hidden]).all()
    assert estimate.identified.sum() == len(estimate.values) - 3
    offset = estimate.names.index("Fo3")
    assert abs(estimate.values[offset] - problem.base.reduce(theta)[offset]) < 4e-4
    if estimate.theta is not None:  # what cannot be told stays as the robot's file has it, or zero
        nominal = [item.nominal or 0.0 for item in model.parameters]
        places = [model.parameters.index(name) for name in STILL[1:]]
        np.testing.assert_allclose(estimate.theta[places], np.array(nominal)[places], atol=1e-9)


def test_every_file_counts_the_same(tmp_path: Path) -> None:
    model, theta = arm()
    path = write_csv(still_log(model, theta, "counts"), tmp_path / "log.csv")
    settings = RunSettings.from_values({"robot": "arm3r", "logs": [str(path)], "method": "wls",
                                        "simulation": {"run": False}, "model": {
                 "friction": ["viscous", "coulomb", "offset"], "rotor": True}})
    found = run(settings)
    said, kept = json.loads(json.dumps(facts(found))), tomllib.loads(parameters_text(found))
    good, poor = int(found.estimate.well_determined.sum()), int(found.estimate.poorly_determined.sum())
    [counted] = [one for one in found.verdict.findings if one.code == "identified"]
    assert good + poor == len(found.estimate.values) - 3
    assert {name for name, one in said["parameters"].items()
            if not one["identified"] and not one["poorly_determined"]} == set(STILL)
    for numbers in (said, kept["result"], counted.evidence):
        assert numbers["identified"] == good and numbers["poorly_determined"] == poor
    assert sum(one["identified"] for one in kept["base"].values()) == good
    assert sum(one["poorly_determined"] for one in kept["base"].values()) == poor
    assert found.verdict.summary.lines[1].startswith(f"{good} of {len(found.estimate.values)} ")
    assert [one.joints for one in found.verdict.findings if one.code == "joint-at-rest"] == [("joint3",)]


def test_all_is_never_said_beside_a_joint_at_rest() -> None:
    """Without friction and rotor inertia the other joints' motion shows all that there is."""
    from dynid.validate import verdict
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot))
    theta = np.array([item.nominal for item in model.parameters])
    problem = Problem.from_model(model, prepare(still_log(model, theta, "none")))
    estimate = identify(problem, method="wls")
    found = verdict(estimate, problem)
    assert estimate.identified.all()
    assert any(one.code == "joint-at-rest" for one in found.findings)
    assert not any(one.text.startswith("All") for one in found.findings) and not found.headline.startswith("All")


def test_a_robot_heavier_than_a_tonne() -> None:
    """An arm of 1076 kg by its file; the limit follows the file, and limits that are given."""
    model, theta = arm()
    factor = 1076.0 / sum(theta[places[9]] for places in model.parameters.bodies.values())
    bodies = [replace(body, inertia=factor * np.asarray(body.inertia)) for body in model.robot.bodies]
    heavy = Model(replace(model.robot, bodies=tuple(bodies)), model.terms)
    truth = theta.copy()
    for places in model.parameters.bodies.values():
        truth[places] *= factor
    q, dq, ddq = fourier(3, seed=1)
    tau = heavy.inverse_dynamics(truth, q, dq, ddq)
    tau += 0.01 * tau.std(axis=0) * np.random.default_rng(1).normal(size=tau.shape)
    log = Recording(np.arange(len(q)) / 200.0, q, tau, joints=("joint1", "joint2", "joint3"))
    for method in ("pc-wls", "pc-ridge"):
        assert identify(heavy, prepare(log), method=method).diagnostics.relative_error < 1.2
    unknown = replace(model.robot, bodies=tuple(replace(body, inertia=None) for body in model.robot.bodies))
    estimate = identify(Model(unknown, model.terms), prepare(log), method="pc-wls", masses=[{"equal": 1076.0}])
    assert estimate.theta is not None
    assert sum(estimate.theta[places[9]] for places in model.parameters.bodies.values()) == pytest.approx(1076.0)

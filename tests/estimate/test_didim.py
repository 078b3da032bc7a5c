"""didim on virtual machines: where its iterations end, and whether the truth is as near as its deviations say."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.simulation import Cascade
from dynid.study import Study, run_study

RAW = {"method": "none", "torque_cutoff": "none", "slow": 0.0}
EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_arm_of_the_tutorial(seed: int, known: bool) -> None:
    """With its gains and reference: gravity makes a loop show four times its inertia, and gains scaled for that are
    not the machine's. Without: a loop that somebody made up must not lag by what gravity asks of it."""
    example = runpy.run_path(str(EXAMPLE / "make_logs.py"))
    model, theta = example["true_arm"](EXAMPLE / "arm.urdf")
    log = example["record"](seed, EXAMPLE / "arm.urdf")
    base = base_parameters(model)
    law = Cascade(kp=30.0, kv=(60.0, 80.0, 25.0), feedforward=True)
    if not known:
        log = replace(log, reference=None, reference_velocity=None)
    problem = Problem.from_model(model, prepare(log), base=base, recordings=log, controller=law if known else None)
    for method in ("didim", "iv"):
        estimate = identify(problem, method=method)
        score = (estimate.values - base.reduce(theta)) / estimate.std
        assert np.max(np.abs(score)) < 3.5
        assert np.sqrt(np.mean(score ** 2)) < 1.4


@pytest.mark.slow
def test_deviations_of_a_soft_loop_hold_the_truth() -> None:
    """In a soft loop the motion follows the parameters: least squares on it states deviations that are too small."""
    study: dict[str, Any] = {
        "robot": "scara2", "repetitions": 40, "duration": 10.0, "rate": 200.0, "seed": 0, "methods": ["didim"],
        "controller": {"kind": "poles", "omega": [3.0, 8.0]}, "model": {"friction": ["viscous", "coulomb"]},
        "noise": {"encoder": 2e-4, "position": 1e-4, "torque": [0.1, 0.02]}, "prepare": RAW}
    result = run_study(Study.from_values(study), workers=1)
    score = result.score("didim")
    assert score.converged == 1.0
    inertial, friction = (score.group(result.members(name)) for name in ("inertial", "friction"))
    assert inertial is not None and friction is not None
    assert 0.85 <= inertial["coverage"] <= 0.99 and inertial["lowest_coverage"] >= 0.85
    assert 0.85 <= friction["coverage"] <= 0.99


@pytest.mark.slow
def test_a_light_wrist_with_much_friction_settles_from_the_regular_start() -> None:
    """The plain iterations diverge from there; Newton's, with the slopes of the torques, do not."""
    study: dict[str, Any] = {
        "robot": "staubli-tx40", "repetitions": 2, "duration": 8.0, "rate": 1000.0, "seed": 1, "methods": ["didim"],
        "model": {"rotor": True, "friction": ["viscous", "coulomb"]}, "prepare": RAW,
        "noise": {"encoder": 5e-5, "position": 2.5e-5, "torque": [0.5, 0.5, 0.3, 0.1, 0.1, 0.05]}}
    result = run_study(Study.from_values(study), workers=1)
    score = result.score("didim")
    assert score.converged == 1.0
    assert np.sqrt(np.mean(((score.values - result.truth) / score.std)[:, result.inertial] ** 2)) < 1.5

"""Closed-loop methods on a virtual arm of six joints with encoder steps, dry friction and no filter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording.log_reading import read
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.study import Study, run_study
from dynid.study.result import GROUPS

MAPPINGS = Path(__file__).resolve().parents[2] / "reproductions" / "mappings"
STUDY: dict[str, Any] = {
    "robot": "staubli-tx40", "duration": 8.0, "rate": 1000.0, "seed": 1, "repetitions": 3,
    "model": {"rotor": True, "friction": ["viscous", "coulomb"]},
    "noise": {"encoder": 5e-5, "position": 2.5e-5, "torque": [0.5, 0.5, 0.3, 0.1, 0.1, 0.05]},
    "prepare": {"method": "none", "torque_cutoff": "none", "slow": 0.0}, "methods": ["iv"],
}


def test_a_wrist_that_sticks_does_not_keep_instruments_from_settling() -> None:
    # The last joint's dry friction is thirty times what moves its inertia: it sticks at each reversal.
    result = run_study(Study.from_values(STUDY), workers=1)
    score = result.score("iv")
    assert score.converged == 1.0
    errors = ((score.values - result.truth) / score.std)[:, result.inertial]
    assert np.sqrt(np.mean(errors ** 2)) < 1.5


def test_instruments_stop_where_their_deviations_say() -> None:
    # The torques of the whole arm settle when those of its wrist, a hundredth of them, have not.
    long = {"name": "iv", "label": "long", "options": {"tolerance": 1e-6, "max_iterations": 30}}
    result = run_study(Study.from_values({**STUDY, "seed": 0, "repetitions": 2, "methods": ["iv", long]}), workers=1)
    short, end = result.score("iv"), result.score("long")
    assert end.converged == 1.0
    assert np.max(np.abs(short.values - end.values) / end.std) < 0.1
    assert np.allclose(short.std, end.std, rtol=0.1)


@pytest.mark.slow
def test_a_hard_sign_leaves_no_bias_of_its_own() -> None:
    study = {**STUDY, "repetitions": 2, "noise": {**STUDY["noise"], "factors": [0.0, 1.0]}}
    result = run_study(Study.from_values(study), workers=1)
    quiet, loud = result.scores
    assert np.max(np.abs(quiet.bias) / loud.stated) < 0.02


@pytest.mark.slow
def test_intervals_hold_where_a_coarse_encoder_errs_most_at_low_speed() -> None:
    """Twelve bits a turn, no filter: noise whose power follows the speed of each joint."""
    result = run_study(Study.from_values({
        "robot": "arm3r", "repetitions": 16, "duration": 10.0, "rate": 500.0, "seed": 3, "methods": ["iv"],
        "prepare": {"method": "none", "torque_cutoff": "none", "slow": 0.0},
        "noise": {"encoder": 2.0 * np.pi / 4096, "torque": [0.05, 0.05, 0.02]}}), workers=1)
    found = result.score("iv")
    for group in GROUPS:
        share = found.group(result.members(group))
        assert share is not None and share["coverage"] > 0.92 and share["spread_over_stated"] > 0.4


def test_a_real_arm_whose_law_nobody_told(data: Callable[..., Path]) -> None:
    """The Panda's torques are those of its links: one loop a joint at this rate would not hold its wrist."""
    robot = Robot.load(data("panda", "panda_arm.urdf"))
    log = read(data("panda"), MAPPINGS / "panda.toml", robot)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    problem = Problem.from_model(model, prepare(log), recordings=log)
    least = identify(problem, method="wls").diagnostics["relative_error"]
    for name, cost in (("iv", 0.1), ("pc-iv", 0.2)):
        found = identify(problem, method=name).diagnostics
        assert found["relative_error"] < least + cost
        [assumed] = [note for note in found["notes"] if note.code == "controller-assumed"]
        assert assumed.evidence["poles"] == pytest.approx(150.0)

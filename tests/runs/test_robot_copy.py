"""The copy of the user's URDF beside a result, and the user's own files beside that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import one_arm
import pytest

from dynid.model import Model
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import load, save


@pytest.fixture
def settings(tmp_path):
    return RunSettings.of(one_arm.written(tmp_path, "robot.urdf"))


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


def test_a_stale_copy_goes_with_its_result(settings, tmp_path):
    save(run(settings), tmp_path / "out", report=False)
    base_only = run(settings.model_copy(update={"method": "ols"}))
    assert "robot" not in save(base_only, tmp_path / "out", force=True, report=False)
    assert not (tmp_path / "out" / "robot.urdf").exists()


def test_the_report_says_what_to_know_about_the_copy(settings, tmp_path):
    rotor = settings.model_copy(update={"model": ModelSettings(friction=("viscous", "offset"))})
    save(run(rotor), tmp_path / "out")
    assert "no place for Fo1" in (tmp_path / "out" / "report.html").read_text()

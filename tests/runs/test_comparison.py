"""Methods side by side: each with its own options, and one that fails does not end the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from motions import fourier
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.comparison import compare, comparison_facts, comparison_report
from dynid.runs.settings import RunSettings


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    q, dq, ddq = fourier(3, seconds=10.0)
    tau = model.inverse_dynamics(np.array([item.nominal for item in model.parameters]), q, dq, ddq)
    tau += 0.02 * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    names = tuple(joint.name for joint in robot.joints)
    return write_csv(Recording(np.arange(len(q)) / 200.0, q, tau, joints=names),
                     tmp_path_factory.mktemp("logs") / "log.csv")


def settings(log: Path, **more: object) -> RunSettings:
    return RunSettings.from_values({"robot": "arm3r", "logs": [str(log)], "model": {"friction": ["viscous"]},
                                    "simulation": {"run": False}, **more})


def test_each_method_has_its_own_options(log: Path) -> None:
    chosen = settings(log, method="irls", options={"loss": "huber", "tuning": 2.0},
                      compare={"options": {"ridge": {"strength": 1e-3}, "pc-wls": {"margin": 1e-4}}})
    found = compare(chosen, ["wls", "irls", "ridge", "pc-wls"])
    used = {estimate.method: dict(estimate.provenance["options"]) for estimate in found.estimates}
    assert used == {"wls": {}, "irls": {"loss": "huber", "tuning": 2.0}, "ridge": {"strength": 1e-3},
                    "pc-wls": {"margin": 1e-4}}
    assert found.estimates[3].diagnostics["smallest_eigenvalue"] >= 1e-4


def test_shared_options_go_to_the_methods_that_have_them(log: Path) -> None:
    found = compare(settings(log, method="pc-wls", options={"margin": 1e-4, "fill_with": "central"}),
                    ["pc-ols", "pc-ridge", "wls"])
    used = {estimate.method: dict(estimate.provenance["options"]) for estimate in found.estimates}
    assert used == {"pc-ols": {"margin": 1e-4, "fill_with": "central"}, "pc-ridge": {"margin": 1e-4}, "wls": {}}


def test_a_method_that_fails_is_listed_and_the_others_go_on(log: Path) -> None:
    chosen = settings(log, compare={"options": {"pc-wls": {"masses": [{"equal": 5.0}, {"low": 6.0}]}}})
    found = compare(chosen, ["pc-wls", "wls", "ols"])
    said = comparison_facts(found)
    assert list(said["methods"]) == ["wls", "ols"] and list(said["failed"]) == ["pc-wls"]
    assert "5 kg" in said["failed"]["pc-wls"] and found.run.estimate.method == "wls"
    assert any(note.startswith("pc-wls gave no estimate") for note in comparison_report(found).notes)
    with refused(NotPossibleError, "not-possible", "pc-wls", "5 kg", "6 kg"):
        compare(chosen, ["pc-wls"])
    with refused(ModelError, "unknown-method", "wsl"):
        compare(chosen, ["wls", "wsl"])
    with refused(ModelError, "unknown-method", "plc"):
        compare(settings(log, compare={"options": {"plc": {}}}), ["wls"])

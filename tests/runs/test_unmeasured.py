"""Joints whose torque is not measured: they move, they carry load, they have no equation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from motions import fourier
from refusals import refused

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.model import Model, make_terms
from dynid.recording.log_reading import read
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import facts, save

ROBOT = Robot.builtin("arm3r")
MODEL = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb")))
FIRST, SILENT, THIRD = ROBOT.joint_names


def motion(noise: float = 0.01) -> tuple[Array, Array]:
    q, dq, ddq = fourier(3, seconds=20.0)
    theta = MODEL.parameters.vector(MODEL.parameters.nominal)
    return q, MODEL.inverse_dynamics(theta, q, dq, ddq) + noise * np.random.default_rng(0).normal(size=q.shape)


def written(path: Path, torques: dict[str, Array], q: Array, names: tuple[str, ...] = ROBOT.joint_names) -> str:
    table = np.column_stack([np.arange(len(q)) / 200.0, q, *torques.values()])
    header = ",".join(["time", *(f"q_{name}" for name in names), *(f"tau_{name}" for name in torques)])
    np.savetxt(path, table, delimiter=",", header=header, comments="")
    return str(path)


def logs(tmp_path: Path) -> dict[str, str]:
    q, tau = motion()
    silent = {"absent": {}, "not-numbers": {SILENT: np.full(len(q), np.nan)}, "zero": {SILENT: np.zeros(len(q))},
              "nonsense": {SILENT: np.full(len(q), 1e12)}}
    return {how: written(tmp_path / f"{how}.csv", {FIRST: tau[:, 0], **column, THIRD: tau[:, 2]}, q)
            for how, column in silent.items()}


@pytest.mark.parametrize("how", ["absent", "not-numbers", "zero", "nonsense"])
def test_the_others_identify_what_they_show(tmp_path: Path, how: str) -> None:
    log = logs(tmp_path)[how]
    found = run(RunSettings(robot="arm3r", logs=(log,), validate_on=(log,), prepare={"cutoff": 20.0}, method="wls",
                            model=ModelSettings(friction=("viscous", "coulomb")), log={"unmeasured": [SILENT]}))
    estimate = found.estimate
    # As many as the rank of the rows of the other two joints, with combinations of their own.
    rng = np.random.default_rng(1)
    rows = MODEL.regressor(*rng.normal(size=(3, 200, 3)))[:, [0, 2]].reshape(400, -1)
    singular = np.linalg.svd(rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-6), compute_uv=False)
    assert len(estimate.base) == np.sum(singular > 1e-9 * singular[0]) < len(base_parameters(MODEL))
    assert estimate.identified.all()
    truth = estimate.base.reduce(MODEL.parameters.nominal)
    assert np.all(np.abs(estimate.values - truth) < 4 * estimate.std)
    codes = {finding.code for finding in found.verdict.findings}
    assert not codes & {"torque-zero", "torque-constant", "indefinite-inertia", "not-excited"}
    said = facts(found)
    assert said["relative_error_per_joint"][1] is None and said["relative_error_per_joint"][0] < 2.0
    assert said["validation"][0]["relative_error_per_joint"][1] is None
    assert [check["reason"]["code"] for check in said["simulation"]] == ["torque-unmeasured"]
    assert any(SILENT in step and "not measured" in step for step in said["steps"])
    save(found, tmp_path / "out")


def test_faults_of_the_others_are_still_found(tmp_path: Path) -> None:
    q, tau = motion()
    log = written(tmp_path / "log.csv", {FIRST: 0.0 * tau[:, 0], THIRD: tau[:, 2]}, q)
    found = run(RunSettings(robot="arm3r", logs=(log,), prepare={"cutoff": 20.0}, method="wls",
                            log={"unmeasured": [SILENT]}))
    assert [finding.joints for finding in found.verdict.findings if finding.code == "torque-zero"] == [(FIRST,)]


def test_columns_by_number_by_list_and_in_an_array(tmp_path: Path) -> None:
    q, tau = motion()
    log = written(tmp_path / "log.csv", {"1": tau[:, 0], "2": tau[:, 2]}, q, ("1", "2", "3"))
    said = {"time": "time", "position": "q_{i}", "torque": ["tau_1", "tau_2"], "unmeasured": [SILENT]}
    by_list = read(log, said, ROBOT)
    np.savez(tmp_path / "log.npz", t=np.arange(len(q)) / 200.0, q=q, tau=tau[:, [0, 2]])
    by_array = read(tmp_path / "log.npz", {"unmeasured": [SILENT]}, ROBOT)
    for found in (by_list, by_array):
        np.testing.assert_allclose(found.tau, tau * [1.0, 0.0, 1.0], atol=1e-12)
        assert found.unmeasured == (SILENT,)


@pytest.mark.parametrize(("unmeasured", "message"), [
    (["elbow"], ("bad-recording", "'elbow'")), (list(ROBOT.joint_names), ("torque-not-measured", "absent.csv")),
    ([], ("no-column", "torque", "joint2"))])
def test_refusals(tmp_path: Path, unmeasured: list[str], message: tuple[str, ...]) -> None:
    with refused(RecordingError, *message):
        read(logs(tmp_path)["absent"], {"unmeasured": unmeasured}, ROBOT)

"""Identification from the fold of many logs, as from the logs themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from motions import arm, fourier

from dynid.errors import DynidError
from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.runs import RunSettings
from dynid.runs.folded import expanded, run_folded, save_folded
from dynid.runs.results import load
from dynid.workers import Workers


def settings(folder: Path, count: int = 4) -> tuple[Model, RunSettings]:
    model, theta = arm()
    for k in range(count):
        rng = np.random.default_rng(k)
        q, dq, ddq = fourier(model.dof, seconds=6.0, seed=k)
        tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
        write_npz(Recording(np.arange(len(q)) / 200.0, q, tau, joints=model.robot.joint_names), folder / f"{k}.npz")
    return model, RunSettings.of({"robot": "arm3r", "logs": [str(folder)], "prepare": {"cutoff": 20.0}})


def test_many_logs_give_the_truth_and_a_result_to_load(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    model, chosen = settings(tmp_path / "logs")
    (tmp_path / "logs" / "bad.npz").write_bytes(b"PK")
    found = run_folded(chosen, Workers(1), tmp_path / "folds")
    truth = found.estimate.base.reduce(arm()[1])
    z = (found.estimate.values - truth) / found.estimate.std
    assert np.sqrt(np.mean(z ** 2)) < 2.0
    facts = found.to_dict()
    assert len(facts["logs"]) == 4 and len(facts["failures"]) == 1 and facts["relative_error"] < 5.0
    save_folded(found, tmp_path / "out")
    again, _ = load(tmp_path / "out")
    assert np.array_equal(again.values, found.estimate.values)
    assert run_folded(chosen, Workers(2), tmp_path / "folds").folded.read == 1  # the bad one is tried again
    assert model.dof == 3


def test_patterns_are_expanded(tmp_path: Path) -> None:
    settings(tmp_path, 3)
    chosen = expanded(RunSettings.of({"robot": "arm3r", "logs": [f"{tmp_path}/*.npz"]}))
    assert [Path(str(log)).name for log in chosen.logs] == ["0.npz", "1.npz", "2.npz"]


def test_logs_with_settings_of_their_own_are_refused(tmp_path: Path) -> None:
    settings(tmp_path, 1)
    chosen = RunSettings.of({"robot": "arm3r", "logs": [{"file": f"{tmp_path}/0.npz", "start": 1.0}]})
    with pytest.raises(DynidError, match="settings of its own"):
        run_folded(chosen, Workers(1))

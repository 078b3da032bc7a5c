"""Runs on more logs than are held in memory: the same result wherever the sum over them is computed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motions import arm, fourier
from refusals import refused

from dynid.datasets.log_fold import LogSource
from dynid.errors import NotPossibleError
from dynid.recording import Recording
from dynid.recording.log_files import LogFile
from dynid.recording.write import write_npz
from dynid.runs import Run, RunSettings, run
from dynid.runs.results import facts, load, save
from dynid.workers import Workers

_LOGS, _ROWS = 5, 1000  # of each log
FRICTION = {"friction": ["viscous", "coulomb", "offset"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of the 3R arm, a file that is none, and a copy."""
    place = tmp_path_factory.mktemp("many") / "arms" / "data"  # the draw depends on these names
    place.mkdir(parents=True)
    model, theta = arm()
    for k in range(_LOGS):
        rng = np.random.default_rng(k)
        q, dq, ddq = fourier(model.dof, seconds=_ROWS / 200.0, seed=k)
        tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
        write_npz(Recording(np.arange(len(q)) / 200.0, q, tau, joints=model.robot.joint_names), place / f"{k}.npz")
    (place / "bad.npz").write_bytes(b"PK")
    shutil.copy(place / "1.npz", place / "copy.npz")
    return place


def test_the_draw_of_logs_does_not_depend_on_where_they_are(tmp_path: Path) -> None:
    here, there, other = (LogSource.from_file(LogFile(str(tmp_path / place / "arm" / "data" / name))).draw
                          for place, name in (("here", "1.npz"), ("there", "1.npz"), ("here", "2.npz")))
    assert here == there != other


def plain(result: Run) -> str:
    """Everything that a run states, without times."""
    return json.dumps({name: value for name, value in facts(result).items() if name != "elapsed_s"}, sort_keys=True)


def settings(folder: Path, **more: Any) -> RunSettings:
    return RunSettings.from_values({"robot": "arm3r", "logs": [str(folder)], "simulation": {"run": False}, **more})


@pytest.mark.parametrize("method", ["wls", pytest.param("auto", marks=pytest.mark.slow)])
def test_workers_and_a_store_change_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            method: str) -> None:
    monkeypatch.setattr("dynid.datasets.dataset.PILOT_ROWS", int(1.5 * _ROWS))
    chosen = settings(folder, method=method)
    first = run(chosen)
    assert first.problem.is_excerpt and len(first.problem.data) == 2 and len(first.logs) == _LOGS
    assert len(first.problem.regression.sources) == _LOGS
    truth = first.estimate.base.reduce(arm()[1]) if len(first.estimate.base.parameters) == len(arm()[1]) else None
    if truth is not None:
        assert np.sqrt(np.mean(((first.estimate.values - truth) / first.estimate.std) ** 2)) < 2.0
    for workers, store in ((Workers(2), None), (None, tmp_path / "folds"), (Workers(2), tmp_path / "folds")):
        again = run(chosen, workers=workers, store=store)
        assert plain(again) == plain(first)
    assert again.problem.folded is not None and again.problem.folded.read == 3  # two held, one is no log
    save(first, tmp_path / "out", report=False)
    assert np.array_equal(load(tmp_path / "out")[0].values, first.estimate.values)


def test_logs_left_out_are_findings(folder: Path) -> None:
    found = run(settings(folder, method="wls", prepare={"cutoff": 20.0}))
    codes = {finding.code: finding.logs for finding in found.verdict.findings}
    assert [Path(log).name for log in codes["log-left-out"]] == ["bad.npz"]
    assert [Path(log).name for log in codes["copied-log"]] == ["copy.npz"]
    assert {one["code"] for one in facts(found)["left_out"]} == {"no-rows", "copied-log"}


def test_few_held_logs_and_all_of_them_agree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are of all logs in either case; standard errors are learnt from fewer rows."""
    chosen = settings(folder, method="wls", prepare={"cutoff": 20.0}, model=FRICTION)
    whole = run(chosen)
    monkeypatch.setattr("dynid.datasets.dataset.PILOT_ROWS", 3 * _ROWS)
    few = run(chosen)
    assert few.problem.is_excerpt and not whole.problem.is_excerpt
    assert few.estimate.values == pytest.approx(whole.estimate.values, rel=1e-9)
    apart = np.abs(np.log2(few.estimate.std / whole.estimate.std))  # from three logs of 5 s in place of five
    assert np.median(apart) < 0.3 and np.max(apart) < 1.0


def test_a_method_that_goes_through_all_rows_gets_all_logs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings(folder, method="irls", prepare={"cutoff": 20.0}, model=FRICTION)
    whole = run(chosen)
    monkeypatch.setattr("dynid.datasets.dataset.PILOT_ROWS", int(1.5 * _ROWS))
    few = run(chosen)
    # Its steps end at a tolerance, and begin from sums in another order.
    assert few.estimate.values == pytest.approx(whole.estimate.values, rel=1e-5, abs=1e-8)


def test_no_usable_log(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"PK")
    with refused(NotPossibleError, "no-usable-log", "1 logs"):
        run(settings(tmp_path))

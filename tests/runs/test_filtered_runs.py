"""Runs whose rows have no accelerations: from a run file and from the command line, judged by torques."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from filtered_logs import simulated
from refusals import refused
from typer.testing import CliRunner

from dynid.arrays import lies_on_disk
from dynid.cli.main import app
from dynid.errors import ModelError
from dynid.recording.write import write_csv
from dynid.runs import RunSettings, run
from dynid.runs.results import facts, load, save
from dynid.validate import reconstruct


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("logs")
    return tuple(write_csv(simulated("arm3r", seed=seed, rate=250.0, positions=1e-5, torques=0.02, seconds=20.0)[2],
                           folder / f"{name}.csv") for seed, name in ((0, "one"), (1, "two")))


def settings_of(logs: tuple[Path, Path], **prepare: object) -> RunSettings:
    return RunSettings.from_values({"robot": "arm3r", "logs": [str(logs[0])], "validate_on": [str(logs[1])],
                                    "method": "wls",
                                    "model": {"friction": ["viscous", "coulomb", "offset"]},
                                    "simulation": {"run": False}, "prepare": prepare})


@pytest.fixture(scope="module")
def runs(logs):
    return {kind: run(settings_of(logs, equations=kind)) for kind in ("torque", "kernel", "power", "energy")}


@pytest.mark.parametrize("kind", ["kernel", "power", "energy"])
def test_a_run_is_judged_by_torques(runs, kind):
    plain, found = facts(runs["torque"]), facts(runs[kind])
    json.dumps(found, allow_nan=False)
    assert plain["equations"] == {"kind": "torque"} and found["equations"]["kind"] == kind
    assert len(found["relative_error_per_joint"]) == 3
    assert found["relative_error"] == pytest.approx(reconstruct(runs[kind].estimate, runs[kind].samples).relative_error,
                                                    rel=1e-6)
    # Each kind chooses its own cut-off: on the same torques. Rows of the whole robot know less of each parameter.
    behind = reconstruct(runs[kind].estimate, runs["torque"].samples).relative_error / plain["relative_error"]
    assert behind < (1.1 if kind == "kernel" else 1.3)
    assert found["cross_validation"]["mean"] == pytest.approx(found["relative_error"], rel=0.5)
    assert found["validation"][0]["relative_error"] < 2.0 * found["relative_error"]
    assert found["cutoff"]["chosen"]["cutoff"] > 0 and found["cutoff"]["dependence"] is not None
    assert not [one for one in found["verdict"]["findings"] if one["severity"] == "alarm"]
    assert any("no acceleration is used" in step for step in found["steps"])


def test_results_repeat_and_show_the_response(runs, logs, tmp_path):
    written = save(runs["kernel"], tmp_path / "out")
    page = Path(written["report"]).read_text(encoding="utf-8")
    assert "Equations without accelerations" in page and "Gain of the kernel" in page
    estimate, settings = load(tmp_path / "out")
    assert settings.prepare["equations"] == "kernel" and settings.prepare["kernel_window"] > 0
    np.testing.assert_array_equal(estimate.values, runs["kernel"].estimate.values)
    again = run(settings)
    np.testing.assert_allclose(again.estimate.values, estimate.values, rtol=1e-9)
    assert "Equations without accelerations" not in Path(save(runs["torque"], tmp_path / "plain")["report"]).read_text()


def test_streamed_logs_give_the_same(logs):
    whole, streamed = (run(settings_of(logs, equations="kernel", cutoff=8.0).model_copy(update={"stream_rows": rows}))
                       for rows in (None, 733))
    assert lies_on_disk(streamed.samples[0].filtered.dq)
    np.testing.assert_allclose(streamed.estimate.values, whole.estimate.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(streamed.estimate.std, whole.estimate.std, rtol=1e-6)


def test_the_command_line(logs):
    call = ["identify", "arm3r", str(logs[0]), "--friction", "viscous,coulomb,offset", "--method", "wls", "--cutoff",
            "8", "--no-simulation", "--json"]
    found = json.loads(CliRunner().invoke(app, [*call, "--equations", "kernel"]).stdout)
    assert found["equations"]["kind"] == "kernel"
    wrong = CliRunner().invoke(app, [*call, "--equations", "work"])
    assert wrong.exit_code != 0


def test_methods_that_cannot_are_refused_in_a_sentence(logs):
    settings = settings_of(logs, equations="power", cutoff=8.0).model_copy(update={"method": "didim"})
    with refused(ModelError, "needs-torque-equations", "didim"):
        run(settings)
    with refused(ModelError, "no-momentum", "load"):
        run(settings_of(logs, equations="kernel", cutoff=8.0).model_copy(update={
            "model": settings.model.model_copy(update={"terms": ({"kind": "load"},)})}))

"""A log in which nothing moves, among others: it is named and left out, and the run goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from motions import arm, fourier
from refusals import refused

from dynid.errors import NotPossibleError
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.runs import RunSettings, run
from dynid.runs.results import facts, save
from dynid.runs.validation import validate_result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """moves.csv, other.csv and rest.csv of the 3R arm."""
    folder = tmp_path_factory.mktemp("logs")
    model, theta = arm()
    for seed, name in enumerate(("moves.csv", "other.csv", "rest.csv")):
        q, dq, ddq = fourier(3, seconds=10.0, seed=seed)
        if name == "rest.csv":
            q, dq, ddq = np.full_like(q, 0.3), 0.0 * dq, 0.0 * ddq
        tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.01 * np.random.default_rng(seed).normal(size=q.shape)
        write_csv(Recording(np.arange(len(q)) / 200.0, q, tau, joints=model.joint_names), folder / name)
    return folder


def settings(folder, logs, **more) -> RunSettings:
    return RunSettings(robot="arm3r", logs=tuple(str(folder / log) for log in logs), method="wls",
                       prepare={"cutoff": 15.0}, simulation={"run": False}, **more)


@pytest.mark.parametrize("logs", [("rest.csv", "moves.csv"), ("moves.csv", "rest.csv")])
def test_it_is_named_and_the_others_are_used(folder, logs):
    alone, both = run(settings(folder, ["moves.csv"])), run(settings(folder, logs))
    np.testing.assert_array_equal(both.estimate.values, alone.estimate.values)
    [said] = [one for one in both.verdict.findings if one.code == "log-at-rest"]
    assert said.logs == (str(folder / "rest.csv"),) and said.kind == "problem"
    assert not [one for one in alone.verdict.findings if one.code == "log-at-rest"]


def test_a_validation_log_at_rest_is_named(folder):
    found = run(settings(folder, ["moves.csv"], validate_on=tuple(str(folder / x) for x in ("rest.csv", "other.csv"))))
    assert [one.source for one in found.validations] == [str(folder / "other.csv")]
    assert "log-at-rest" in [one["code"] for one in facts(found)["verdict"]["findings"]]


def test_validating_a_result_goes_on_without_it(folder, tmp_path):
    save(run(settings(folder, ["moves.csv"])), tmp_path / "out", report=False)
    found = validate_result(tmp_path / "out", [str(folder / "rest.csv"), str(folder / "other.csv")])
    assert len(found.fits) == 1 and [one.code for one in found.findings] == ["log-at-rest"]
    assert json.dumps(found.to_dict(), allow_nan=False)
    with refused(NotPossibleError, "log-at-rest"):
        validate_result(tmp_path / "out", [str(folder / "rest.csv")])


def test_alone_it_stops_the_run(folder):
    with refused(NotPossibleError, "log-at-rest"):
        run(settings(folder, ["rest.csv"]))

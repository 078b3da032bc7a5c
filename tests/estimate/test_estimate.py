"""The one result: intervals, residuals, files, and how it shows itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
from motions import arm, motion
from refusals import refused
from scipy.stats import norm, t

from dynid.errors import DynidError, ModelError, RecordingError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Model, Stribeck
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.validate import reconstruct
from dynid.version import __version__


@pytest.fixture(scope="module")
def fitted() -> tuple[Problem, Estimate]:
    model, theta = arm()
    noise = 0.2 * np.random.default_rng(0).normal(size=(2000, 3))
    problem = Problem.from_model(model, motion(model, theta, noise, seconds=10.0))
    return problem, identify(problem, method="wls")


def test_intervals_are_students(fitted: tuple[Problem, Estimate]) -> None:
    """Degrees of freedom: of the residuals' spectrum, nearly normal for 2,000 rows of white noise; of blocks."""
    problem, whole = fitted
    from_fold = identify(Problem(problem.model, problem.regression), method="wls")
    assert t.ppf(0.95, whole.uncertainty.degrees_of_freedom) == pytest.approx(norm.ppf(0.95), rel=5e-3)
    assert 4.0 < from_fold.uncertainty.degrees_of_freedom < 9.0
    for estimate in (whole, from_fold):
        degrees = estimate.uncertainty.degrees_of_freedom
        low, high = estimate.conf_int(0.9).T
        np.testing.assert_allclose(high - low, 2.0 * t.ppf(0.95, degrees) * estimate.std, rtol=1e-9)
        np.testing.assert_allclose(0.5 * (low + high), estimate.values, rtol=1e-12, atol=1e-12)
    with refused(ModelError, "bad-level", "0", "1"):
        whole.conf_int(95)


def test_residuals_and_score_are_those_of_the_rows(fitted: tuple[Problem, Estimate]) -> None:
    problem, estimate = fitted
    samples = problem.data[0]
    found, = estimate.residuals(samples)
    np.testing.assert_allclose(found.residual, samples.tau - estimate.predict(samples.q, samples.dq, samples.ddq),
                               atol=1e-9)
    about = samples.tau - samples.tau.mean(axis=0)
    assert estimate.score(samples) == pytest.approx(1.0 - np.sum(found.residual ** 2) / np.sum(about ** 2), rel=1e-9)
    assert estimate.score(samples) == pytest.approx(reconstruct(estimate, samples).total.r2, rel=1e-9)


def test_a_file_holds_all_of_it(fitted: tuple[Problem, Estimate], tmp_path) -> None:
    problem, estimate = fitted
    told = identify(problem.model, problem.data, method="pc-wls", known={"Fv1": 2.0})
    for one in (estimate, told):
        one.save(tmp_path / "estimate.npz")
        again = Estimate.load(tmp_path / "estimate.npz", problem.model)
        for name in ("values", "covariance", "identified", "std"):
            np.testing.assert_array_equal(getattr(again, name), getattr(one, name))
        assert (again.method, again.cov_type, again.uncertainty.degrees_of_freedom, again.known, again.names) == (
            one.method, one.cov_type, one.uncertainty.degrees_of_freedom, one.known, one.names)
        assert dict(again.diagnostics) == dict(one.diagnostics)
        assert (again.theta is None) == (one.theta is None)
        np.testing.assert_array_equal(again.full, one.full)
    with refused(ModelError, "another-model"):
        Estimate.load(tmp_path / "estimate.npz", Model(Robot.builtin("arm3r")))
    (tmp_path / "no.npz").write_bytes(b"no")
    with refused(ModelError, "not-an-estimate"):
        Estimate.load(tmp_path / "no.npz", problem.model)


def test_a_file_of_a_later_format_is_refused_with_its_version(fitted: tuple[Problem, Estimate], tmp_path) -> None:
    problem, estimate = fitted
    estimate.save(tmp_path / "estimate.npz")
    arrays = dict(np.load(tmp_path / "estimate.npz"))
    facts = json.loads(str(arrays["facts"]))
    assert facts["dynid"] == __version__
    arrays["facts"] = np.array(json.dumps(facts | {"format": facts["format"] + 1, "dynid": "9.1"}))
    np.savez(tmp_path / "later.npz", **arrays)
    with refused(ModelError, "later-format", "9.1"):
        Estimate.load(tmp_path / "later.npz", problem.model)


def test_a_shape_that_was_found_is_loaded_with_it(tmp_path) -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot, (*Model(robot).terms, Stribeck(delta=20.0, free=("delta",))))
    theta = np.where([p.nominal is None for p in model.parameters], 1.0,
                     [p.nominal or 0.0 for p in model.parameters])
    samples = motion(model, theta, 0.01 * np.random.default_rng(1).normal(size=(2000, 3)), seconds=10.0)
    found = identify(model, samples, method="sls")
    found.save(tmp_path / "estimate.npz")
    again = Estimate.load(tmp_path / "estimate.npz", model)
    np.testing.assert_array_equal(again.model.shape, found.model.shape)
    np.testing.assert_allclose(again.predict(samples.q, samples.dq, samples.ddq),
                               found.predict(samples.q, samples.dq, samples.ddq))


def test_it_shows_itself(fitted: tuple[Problem, Estimate]) -> None:
    _, estimate = fitted
    shown = repr(estimate)
    assert "wls" in shown and f"{len(estimate.values)} base parameters" in shown and "\n" not in shown
    page = estimate._repr_html_()
    assert page.count("<tr>") == len(estimate.values) + 1 and estimate.names[0] in page
    assert estimate.summary().count("\n") == len(estimate.values) + 2


def test_tables_of_pandas(fitted: tuple[Problem, Estimate], monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    problem, estimate = fitted
    table = estimate.to_frame()
    np.testing.assert_array_equal(table["value"].to_numpy(), estimate.values)
    np.testing.assert_array_equal(table[["low", "high"]].to_numpy(), estimate.conf_int())
    names = problem.model.parameters.names
    theta = problem.model.parameters.vector(pandas.Series(np.arange(len(names), dtype=float), index=names))
    np.testing.assert_array_equal(theta, np.arange(len(names)))
    samples = problem.data[0]
    recording = Recording(samples.t, samples.q, samples.tau, samples.dq, joints=("a", "b", "c"))
    again = Recording.from_frame(recording.to_frame())
    assert again.joints == recording.joints
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(again, name), getattr(recording, name))
    frame = samples.to_frame()
    assert frame.shape == (len(samples), 1 + 5 * 3) and frame["keep_1"].all()
    with refused(RecordingError, "bad-recording", "'clock'"):
        Recording.from_frame(recording.to_frame(), time="clock")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with refused(DynidError, "missing-package"):
        estimate.to_frame()

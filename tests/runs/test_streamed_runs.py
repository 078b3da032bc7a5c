"""A log read in pieces into temporary files gives the numbers of the same log in memory, by every method."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.arrays import lies_on_disk
from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run

ROBOT = Robot.builtin("arm3r")
FRICTION = ("viscous", "coulomb", "offset")
METHODS = ("wls", "iv", *(pytest.param(one, marks=pytest.mark.slow) for one in ("irls", "ml", "pc-wls", "pc-ridge")))


def record(seed: int = 0, seconds: float = 20.0, rate: float = 250.0, drift: float = 0.0) -> Recording:
    """Three joints along sines whose stamps jitter, with an encoder's noise and coloured torques; drift (N m): dry
    friction that joint 1 has more."""
    rng = np.random.default_rng(seed)
    model = Model(ROBOT, make_terms(ROBOT, friction=FRICTION))
    t = np.arange(int(seconds * rate)) / rate + rng.uniform(-0.2, 0.2, int(seconds * rate)) / rate
    w = 2 * np.pi * np.array([0.1, 0.25, 0.4, 0.55])
    a, phase = rng.uniform(0.1, 0.5, (3, 4)), rng.uniform(0, 6, (3, 4))
    angle = w * t[:, None, None] + phase
    q, dq, ddq = ((a * f).sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
    tau = model.inverse_dynamics(model.parameters.vector(model.parameters.nominal), q, dq, ddq)
    tau += np.array([drift, 0.0, 0.0]) * np.sign(dq)
    white = rng.normal(size=q.shape)
    noise = np.cumsum(white - 0.05 * np.cumsum(white, axis=0) / np.arange(1, len(t) + 1)[:, None], axis=0)
    tau += 0.002 * white + 0.0005 * (noise - noise.mean(axis=0))
    return Recording(t - t[0], q + 1e-6 * rng.normal(size=q.shape), tau, joints=ROBOT.joint_names)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("logs")
    return write_csv(record(0), folder / "one.csv"), write_csv(record(1, seconds=12.0), folder / "two.csv")


def settings_of(logs: tuple[Path, ...], method: str = "wls", **rest: object) -> RunSettings:
    return RunSettings.from_values({"robot": "arm3r", "logs": [str(path) for path in logs], "method": method,
                                    "model": ModelSettings(friction=FRICTION).model_dump(),
                                    "simulation": {"run": False}, **rest})


@pytest.mark.parametrize("method", METHODS)
def test_streamed_and_whole_runs_agree(logs: tuple[Path, Path], method: str) -> None:
    whole, streamed = (run(settings_of(logs, method, stream_rows=rows)) for rows in (None, 733))
    assert lies_on_disk(streamed.samples[0].ddq) and not lies_on_disk(whole.samples[0].ddq)
    # What is chosen from the data is chosen from all of them in either case.
    assert [part.settings for part in streamed.samples] == [part.settings for part in whole.samples]
    np.testing.assert_allclose(streamed.estimate.values, whole.estimate.values, rtol=1e-9)
    np.testing.assert_allclose(streamed.estimate.std, whole.estimate.std, rtol=1e-9)
    assert streamed.reconstruction.relative_error == pytest.approx(whole.reconstruction.relative_error, rel=1e-9)


@pytest.mark.slow
def test_separable_least_squares_too(logs: tuple[Path, Path]) -> None:
    model = {"terms": [{"kind": "stribeck", "free": ["delta"]}]}
    whole, streamed = (run(settings_of(logs[1:], "sls", stream_rows=rows, model=model)) for rows in (None, 733))
    np.testing.assert_allclose(streamed.estimate.values, whole.estimate.values, rtol=1e-9)
    np.testing.assert_allclose(streamed.estimate.std, whole.estimate.std, rtol=1e-9)


def test_a_problem_has_all_the_data_that_were_folded(logs: tuple[Path, Path]) -> None:
    problem = run(settings_of(logs)).problem
    part = problem.data[0]
    with refused(ModelError, "data-of-another-regression"):
        replace(problem, data=problem.data[:1])
    with refused(ModelError, "data-of-another-regression"):
        replace(problem, data=(replace(part, segments=part.segments // 5), problem.data[1]))
    saved = replace(problem, data=())
    with refused(ModelError, "needs-data"):
        identify(saved, method="irls")
    assert identify(saved).cov_type == "blocks"


def test_blocks_are_stretches_of_one_log(logs: tuple[Path, Path]) -> None:
    found = run(settings_of(logs, stream_rows=500))
    blocks = found.problem.regression.blocks
    assert len(blocks) == 10
    spans = [span for block in blocks for span in block.spans]
    assert all(len(block.spans) == 1 for block in blocks)
    assert [span.log for span in spans] == sorted(span.log for span in spans) and {span.log for span in spans} == {0, 1}
    for one, after in pairwise(spans):
        assert one.log != after.log or one.stop < after.start
    assert found.cross is not None
    assert all(path.name in where for path, where in zip((logs[0], logs[1]), (found.cross.where[0],
                                                                             found.cross.where[-1]), strict=True))


def test_a_drift_between_two_logs_is_found(tmp_path: Path) -> None:
    paths = [write_csv(record(k, drift=drift), tmp_path / f"{name}{k}.csv")
             for name, drifts in (("same", (0.0, 0.0)), ("warm", (0.0, 2.0))) for k, drift in enumerate(drifts)]
    same, warm = (run(settings_of(tuple(pair))) for pair in (paths[:2], paths[2:]))
    assert "logs-differ" not in {finding.code for finding in same.verdict.findings}
    finding, = (finding for finding in warm.verdict.findings if finding.code == "logs-differ")
    assert set(finding.logs) <= {str(path) for path in paths[2:]} and finding.logs
    assert warm.cross is not None
    assert all(one.from_others > 2.0 * one.from_itself for one in warm.cross.logs if one.source in finding.logs)


def test_a_reloaded_result_keeps_its_covariance(logs: tuple[Path, Path], tmp_path: Path) -> None:
    from dynid.runs.results import load, save

    found = run(settings_of(logs))
    save(found, tmp_path / "out", report=False)
    again, _ = load(tmp_path / "out")
    np.testing.assert_array_equal(again.covariance, found.estimate.covariance)
    scale = found.estimate.std
    correlation = found.estimate.covariance / np.outer(scale, scale)
    assert np.abs(correlation - np.eye(len(scale))).max() > 0.5
    assert again.cov_type == "correlated" and dict(again.diagnostics) == dict(found.estimate.diagnostics)
    assert isinstance(found.problem, Problem)

"""LiveModel: a stream whose friction nobody names, on the command line and in the studio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unnamed_friction import write_arm

from dynid.estimate import Problem, identify
from dynid.recording import Recording
from dynid.recording.prepare import prepare
from dynid.robot import Robot
from dynid.runs.live_model import LiveModel, LiveOptions
from dynid.runs.loading import load_problem, read_logs
from dynid.runs.models import make_model
from dynid.runs.settings import RunSettings
from dynid.studio.tasks.watchers import watcher


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunSettings, Robot, Recording]:
    folder = write_arm(tmp_path_factory.mktemp("arm"))
    settings = RunSettings.of({"robot": str(folder / "arm.toml"), "logs": [str(folder / "uneven.csv")]})
    robot = Robot.load(settings.robot)
    return settings, robot, next(iter(read_logs(settings.logs, settings, robot)))


def fed(stream: Any, log: Recording, after: float = 0.0) -> Any:
    for start in range(0, len(log), 256):
        part = slice(start, start + 256)
        stream.feed(log.t[part] + after, log.q[part], log.tau[part])
    return stream


def test_the_studio_ends_with_the_model_of_a_run(case: tuple[RunSettings, Robot, Recording]) -> None:
    settings, robot, log = case
    problem = load_problem(settings, robot).problem
    stream, live = fed(watcher({}, settings, robot, None), log), fed(LiveModel(settings, robot, LiveOptions()), log)
    stream.finish()
    live.finish()
    assert live.online.base.expressions == problem.base.expressions
    assert live.online.model.learned == problem.model.learned
    shown = stream.look()
    assert [one["name"] for one in shown["parameters"]] == list(problem.base.names)
    assert [one["value"] for one in shown["parameters"]] == pytest.approx(live.online.estimate().values.tolist())
    assert [one["code"] for one in stream.events] == [one.code for one in live.online.events]


def test_a_stream_longer_than_its_excerpt_keeps_the_data_after_the_choice(
        case: tuple[RunSettings, Robot, Recording]) -> None:
    settings, robot, log = case
    live = LiveModel(settings, robot, LiveOptions())
    assert live._excerpt is not None
    live._excerpt.most = 2500
    for k in range(4):
        fed(live, log, after=k * (log.duration + 1.0 / log.rate))
    live.finish()
    excerpt = live._excerpt.recording()
    assert not live._excerpt.is_whole and len(excerpt) < 4500
    estimate = live.online.estimate()
    assert estimate.diagnostics.relative_error < 1.0
    assert "friction-chosen" in [one.code for one in live.online.events]
    assert not {"gap", "clock-restarted"} & {one.code for one in live.online.events}


def test_a_result_as_prior_brings_its_model(case: tuple[RunSettings, Robot, Recording]) -> None:
    settings, robot, log = case
    named = settings.model_copy(update={"model": settings.model.model_copy(update={"friction": ("viscous",)})})
    prior = identify(Problem.of(make_model(named, robot), prepare(log, cutoff=8.0)), method="wls")
    live = fed(LiveModel(settings, robot, LiveOptions(prior=prior)), log)
    live.finish()
    assert live.online.base.names == prior.base.names and live.online.events == ()


def test_a_run_that_names_auto_chooses_too(case: tuple[RunSettings, Robot, Recording]) -> None:
    settings, robot, log = case
    auto = settings.model_copy(update={"model": settings.model.model_copy(update={"friction": ("auto",)})})
    live = fed(LiveModel(auto, robot, LiveOptions()), log)
    live.finish()
    assert "friction-chosen" in [one.code for one in live.online.events]
    assert np.isfinite(live.online.estimate().std[live.online.estimate().identified]).all()

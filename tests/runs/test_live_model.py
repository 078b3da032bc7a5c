"""LiveModel: a stream whose friction nobody names, on the command line and in the studio."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loads import LOAD, Arm, arm
from unnamed_friction import write_arm

from dynid.estimate import Problem, identify
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.runs.live_model import LiveModel, LiveOptions
from dynid.runs.loading import load_problem, read_logs
from dynid.runs.models import make_model
from dynid.runs.settings import RunSettings
from dynid.studio.tasks.live import watcher


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunSettings, Robot, Recording]:
    folder = write_arm(tmp_path_factory.mktemp("arm"))
    settings = RunSettings.from_values({"robot": str(folder / "arm.toml"), "logs": [str(folder / "uneven.csv")]})
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
    prior = identify(Problem.from_model(make_model(named, robot), prepare(log, cutoff=8.0)), method="wls")
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


def watched(machine: Arm, log: Recording, rest: float = 20.0) -> LiveModel:
    """A robot that stands for some seconds before it moves, with noise of its encoders and torques."""
    rng, count = np.random.default_rng(1), round(rest * log.rate)
    still = np.repeat(log.q[:1], count, axis=0)
    holding = machine.model.inverse_dynamics(machine.theta, still, 0.0 * still, 0.0 * still)
    whole = replace(log, t=np.concatenate([np.arange(count) / log.rate, log.t + rest]),
                    q=np.vstack([still, log.q]) + 1e-5 * rng.normal(size=(count + len(log), 7)),
                    tau=np.vstack([holding + 0.3 * rng.normal(size=holding.shape), log.tau]))
    settings = RunSettings.from_values({"robot": "kuka-iiwa14", "logs": ["-"],
                                        "model": {"friction": ["viscous", "coulomb", "offset"]}})
    live = fed(LiveModel(settings, machine.model.robot, LiveOptions()), whole)
    live.finish()
    return live


def test_a_watch_waits_for_motion_and_does_not_restart_as_it_begins() -> None:
    machine = arm()
    log = machine.stream(1, noise=0.3, seconds=40.0)
    still, moving = watched(machine, log).online, watched(machine, log, rest=0.1).online
    assert still.filter == moving.filter  # not that of a robot at rest
    assert still.restarts == () and [one.code for one in still.events] == ["cutoff-chosen"]
    assert abs(still.samples - moving.samples) < 0.1 * moving.samples


@pytest.mark.parametrize(("cause", "words"), [("load", "the load"), ("friction", "friction of joint2")])
def test_a_change_is_an_event_with_its_likely_cause(cause: str, words: str) -> None:
    machine = arm()
    theta = machine.loaded(LOAD) if cause == "load" else machine.theta.copy()
    if cause == "friction":
        theta[[machine.model.parameters.index(name) for name in ("Fc2", "Fv2")]] *= 2.5
    live = watched(machine, machine.stream(2, noise=0.3, seconds=60.0, change=(30.0, theta)))
    (event,) = [one for one in live.online.events if one.code != "cutoff-chosen"]
    assert event.code == "model-changed" and words in event.text
    # The samples come in blocks of 2.6 s, the first of which is mostly from before the change.
    assert 50.0 < float(event.text.partition("about ")[2].partition(" s")[0]) < 56.0


def test_a_changed_robot_is_identified_from_its_own_samples(case: tuple[RunSettings, Robot, Recording]) -> None:
    """All torques half as large again after twenty seconds: so are all parameters, with the model chosen before."""
    settings, robot, log = case
    live = fed(LiveModel(settings, robot, LiveOptions()), log)
    before = live.online.estimate()
    fed(live, replace(log, tau=1.5 * log.tau), after=float(log.t[-1] + np.median(np.diff(log.t))))
    live.finish()
    after = live.online.estimate()
    codes = [one.code for one in live.online.events]
    assert codes.count("model-changed") == 1 and codes[0] == "friction-chosen"
    assert after.names == before.names and after.diagnostics.relative_error < 1.0
    sure = before.well_determined & after.well_determined
    errors = (after.values - 1.5 * before.values) / np.hypot(after.std, 1.5 * before.std)
    assert sure.sum() > 10 and np.sqrt(np.mean(errors[sure] ** 2)) < 1.5

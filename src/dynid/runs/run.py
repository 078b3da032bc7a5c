"""Run: from settings to an estimate, its validation and its verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dynid.errors import NotPossibleError, RecordingError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.friction_choice import FrictionChoice
from dynid.model import LinearModel
from dynid.recording import Recording, Samples
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import prepare
from dynid.recording.read import read
from dynid.robot import Robot
from dynid.runs.models import AUTO, ChosenFriction, choose_friction, make_model, make_robot
from dynid.runs.settings import RunSettings
from dynid.simulation.controllers import Controller, controller_from_table
from dynid.validate import (
    CrossValidation,
    Physics,
    Reconstruction,
    SimulationCheck,
    Verdict,
    cross_validate,
    physics,
    reconstruct,
    simulation_checks,
    verdict,
)

_PATIENCE = 20.0  # s, for cross-validation

Tell = Callable[[str], None]  # says in a few words what is going on now


@dataclass(frozen=True, eq=False)
class Run:
    """Everything a run found. simulations: on the validation logs, or on its own where there are none; empty where
    the run's settings leave them out. physics: what the parameters are as a robot, None where they are not bodies'.
    friction: what was chosen for each joint, where the run asked for that."""

    settings: RunSettings
    robot: Robot
    problem: Problem
    estimate: Estimate
    reconstruction: Reconstruction
    validations: tuple[Reconstruction, ...]
    cross: CrossValidation | None
    verdict: Verdict
    notes: tuple[str, ...]
    seconds: float
    simulations: tuple[SimulationCheck, ...] = ()
    physics: Physics | None = None
    friction: FrictionChoice | None = None

    @property
    def model(self) -> LinearModel:
        return self.problem.model

    @property
    def samples(self) -> tuple[Samples, ...]:
        return self.problem.data


def run(settings: RunSettings, tell: Tell = lambda sentence: None) -> Run:
    """Read, prepare, fold, identify, validate and judge."""
    started = time.perf_counter()
    tell("reading the robot")
    robot = make_robot(settings)
    problem, recordings, choice = load_problem(settings, robot, tell)
    settings = settings if choice is None else choice.settings
    tell(f"identifying by {settings.method}")
    begun = time.perf_counter()
    estimate = identify(problem, method=settings.method, **settings.options)
    tell("validating")
    result = judge(problem, estimate, settings, robot, tell, seconds=time.perf_counter() - begun)
    notes = dict.fromkeys(note for recording in recordings for note in recording.notes)
    return replace(result, notes=(*notes, *result.notes), seconds=time.perf_counter() - started,
                   friction=None if choice is None else choice.friction)


def judge(problem: Problem, estimate: Estimate, settings: RunSettings, robot: Robot,
          tell: Tell = lambda sentence: None, *, seconds: float = 0.0) -> Run:
    """Validate an estimate on its own data, on other logs, by simulation and by cross-validation, and put it into
    words.

    seconds: the method took; cross-validation runs it once a block and is left out where that would take too long.
    """
    own = reconstruct(estimate, problem.data)
    others, recordings = [], []
    chosen = Preparation.of(dict(problem.data[0].settings)).elsewhere()
    for recording, samples in prepared(settings.validate_on, settings, robot, chosen, tell):
        recordings.append(recording)
        others.append(reconstruct(estimate, samples))
    simulations = simulated(estimate, settings, list(zip((one.samples for one in others), recordings, strict=True))
                            or own_logs(problem), tell)
    cross, notes = None, []
    if len(problem.regression.blocks) > 2 and seconds * len(problem.regression.blocks) < _PATIENCE:
        tell("cross-validating over blocks of time")
        try:
            cross = cross_validate(problem, settings.method, estimate=estimate, options=settings.options)
        except NotPossibleError as error:  # fewer data may not allow what all of them do: the estimate stands
            notes.append(f"there is no cross-validation, since without one of its blocks of time {error}")
    body = physics(estimate, problem.data[0])
    found = verdict(problem, estimate, own, validations=tuple(others), cross=cross, physics=body)
    return Run(settings, robot, problem, estimate, own, tuple(others), cross, found, tuple(notes), 0.0,
               simulations, body)


def simulated(estimate: Estimate, settings: RunSettings, logs: Sequence[tuple[Sequence[Samples], Recording | None]],
              tell: Tell = lambda sentence: None) -> tuple[SimulationCheck, ...]:
    """Validation by simulation as a run's settings ask for it; empty where they leave it out."""
    if not settings.simulation.run:
        return ()
    tell("simulating (the first time this is compiled, which takes a while)")
    return simulation_checks(estimate, logs, horizon=settings.simulation.horizon, controller=_controller(settings))


def _controller(settings: RunSettings) -> Controller | None:
    return None if settings.controller is None else controller_from_table(settings.controller)


def own_logs(problem: Problem) -> list[tuple[Sequence[Samples], Recording | None]]:
    """The logs of a problem: the samples of each and its recording."""
    recordings = problem.recordings or (None,) * len(problem.data)
    return [((samples,), recording) for samples, recording in zip(problem.data, recordings, strict=True)]


def load_problem(settings: RunSettings, robot: Robot, tell: Tell = lambda sentence: None
                 ) -> tuple[Problem, list[Recording], ChosenFriction | None]:
    """Logs to a folded problem, each read and prepared once; and friction that was chosen from them, if it was."""
    if AUTO not in settings.model.friction:
        make_model(settings, robot)  # refused before logs are read, if it must be
    logs = list(prepared(settings.logs, settings, robot, Preparation.of(settings.prepare, "[prepare]"), tell))
    recordings, samples = [recording for recording, _ in logs], [one for _, one in logs]
    if AUTO in settings.model.friction:
        tell("choosing the friction of each joint")
    choice = choose_friction(settings, robot, samples)
    model = make_model(settings if choice is None else choice.settings, robot)
    tell("folding")
    problem = Problem.of(model, samples, known=settings.known, blocks=settings.blocks, recordings=recordings,
                         controller=_controller(settings))
    return problem, recordings, choice


def prepared(logs: Sequence[str | Sequence[str]], settings: RunSettings, robot: Robot, chosen: Preparation,
             tell: Tell = lambda sentence: None) -> Iterator[tuple[Recording, Samples]]:
    """Recording and samples of each log, all prepared alike: what the first one's data chose holds for the others."""
    for log in logs:
        tell(f"reading {_name(log)}")
        recording = read_log(log, settings, robot)
        tell(f"preparing {_name(log)}")
        samples = prepare(recording, chosen)
        chosen = Preparation.of(dict(samples.settings)).elsewhere()
        yield recording, samples


def read_log(log: str | Sequence[str], settings: RunSettings, robot: Robot) -> Recording:
    """One log as the run's [log] table reads it."""
    paths = [log] if isinstance(log, str) else list(log)
    for path in paths:
        if not os.path.exists(path):
            raise RecordingError(f"there is no log {path}")
    return read(paths if len(paths) > 1 else paths[0], dict(settings.log), robot, at_once=settings.stream_rows)


def _name(log: str | Sequence[str]) -> str:
    return Path(log if isinstance(log, str) else log[0]).name

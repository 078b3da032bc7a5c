"""Logs of a run: read, prepared alike and folded into a problem, with what was chosen from them on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dynid.errors import NotPossibleError, RecordingError
from dynid.estimate import FrictionChoice, Problem
from dynid.findings import Finding
from dynid.model import chosen as chosen_joints
from dynid.model import complete
from dynid.progress import Progress, Tell
from dynid.recording import Recording, Samples
from dynid.recording.both_sides import both_sides
from dynid.recording.names import short_name
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import AT_REST, check_usable, prepare
from dynid.recording.read import read
from dynid.robot import Robot
from dynid.runs.drive_gains import with_drive_gains
from dynid.runs.logs import LogEntry, LogSettings, check_files, labels, log_settings
from dynid.runs.models import AUTO, first_model, friction_of_run, make_model, names_friction
from dynid.runs.mounting import gravity_note, with_estimated_gravity
from dynid.runs.settings import RunSettings
from dynid.simulation.controllers import Controller, controller_from_table
from dynid.validate import CutoffChoice, Gravity, choose_cutoff

_SKEW = ("damping D and the viscous friction of motors and links are off by up to K s where both encoders of a "
         "flexible joint are read s seconds apart; [model.flexible] skew = true identifies it as Ks")


@dataclass(frozen=True, eq=False)
class Resting:
    """A log in which nothing moves, and what preparing it said."""

    source: str
    problem: NotPossibleError

    @property
    def finding(self) -> Finding:
        """That it was left out."""
        return Finding(AT_REST, "suspicious", "warning", f"A log is left out: {self.problem.reason}.",
                       f"log at rest ({self.source})", logs=(self.source,))


@dataclass(frozen=True, eq=False)
class Loaded:
    """A folded problem, with the run's settings and robot as they are once the logs were looked at.

    cutoff: the choice of the cut-off, None where it was given. resting: logs left out. mounting: the direction of
    gravity, where it was estimated. friction: what was chosen for each joint, where the run asked for that or named no
    friction; unnamed: what to say of that.
    """

    problem: Problem
    settings: RunSettings
    robot: Robot
    cutoff: CutoffChoice | None = None
    resting: tuple[Resting, ...] = ()
    mounting: Gravity | None = None
    friction: FrictionChoice | None = None
    unnamed: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found on the way, and what reading the logs said, each once."""
        said = (self.unnamed,) if self.unnamed else ()
        said = said if self.mounting is None else (*said, gravity_note(self.mounting))
        bends = self.settings.model.flexible
        if bends is not None and not bends.skew:
            said = (*said, _SKEW)
        return (*said, *dict.fromkeys(note for recording in self.problem.recordings for note in recording.notes))


def load_problem(settings: RunSettings, robot: Robot, tell: Tell = lambda sentence: None) -> Loaded:
    """The run's logs as a folded problem; each is read once."""
    tell = Progress.of(tell)
    model = first_model(settings, robot)
    chosen = Preparation.of(settings.prepare, "[prepare]").keeping_slow(complete(model).slow_joints, model.dof)
    resting: list[Resting] = []
    settings = with_drive_gains(settings, robot, tell)
    recordings = list(moving(read_logs(settings.unloaded, settings, robot, tell.part(0.0, 0.3)), resting))
    if not recordings:
        raise resting[0].problem
    cutoff = None
    if chosen.chooses_cutoff:
        tell("choosing the cut-off by blocks of time left out", 0.3)
        cutoff = choose_cutoff(model, recordings, chosen, known=settings.known)
        chosen = cutoff.settings
    samples = [one for _, one in prepare_alike(recordings, chosen, tell.part(0.6, 0.7))]
    if cutoff is not None:
        samples = [replace(one, steps=(cutoff.step, *one.steps)) for one in samples]
    if AUTO in settings.model.friction or not names_friction(settings, robot):
        tell("choosing the friction of each joint", 0.7)
    settings, friction, unnamed = friction_of_run(settings, robot, samples)
    tell("folding", 0.9)
    problem = Problem.of(make_model(settings, robot), samples, known=settings.known, blocks=settings.blocks,
                         recordings=recordings, controller=control_law(settings))
    mounting = None
    if settings.gravity == "estimate":
        tell("estimating the direction of gravity", 0.95)
        settings, robot, problem, mounting = with_estimated_gravity(settings, robot, problem)
    return Loaded(problem, settings, robot, cutoff, tuple(resting), mounting, friction, unnamed)


def control_law(settings: RunSettings) -> Controller | None:
    """The control law that a run names."""
    return None if settings.controller is None else controller_from_table(settings.controller)


def prepared(logs: Sequence[LogEntry], settings: RunSettings, robot: Robot, chosen: Preparation,
             tell: Tell = lambda sentence: None, resting: list[Resting] | None = None
             ) -> Iterator[tuple[Recording, Samples]]:
    """Recording and samples of each log, all prepared alike.

    resting: takes the logs in which nothing moves, which are left out; without it they are refused.
    """
    recordings = read_logs(logs, settings, robot, tell)
    return prepare_alike(recordings if resting is None else moving(recordings, resting), chosen, tell)


def moving(recordings: Iterable[Recording], resting: list[Resting]) -> Iterator[Recording]:
    """The recordings in which something moves; `resting` takes the others."""
    for recording in recordings:
        try:
            check_usable(recording)
        except NotPossibleError as problem:
            if problem.code != AT_REST:
                raise
            resting.append(Resting(recording.source, problem))
            continue
        yield recording


def prepare_alike(recordings: Iterable[Recording], chosen: Preparation,
                  tell: Tell = lambda sentence: None) -> Iterator[tuple[Recording, Samples]]:
    """Each recording and its samples: what the first one's data chose holds for the others."""
    for recording in recordings:
        tell(f"preparing {short_name(recording.source)}")
        samples = prepare(recording, chosen)
        chosen = Preparation.of(dict(samples.settings)).elsewhere()
        yield recording, samples


def read_logs(logs: Sequence[LogEntry], settings: RunSettings, robot: Robot,
              tell: Tell = lambda sentence: None) -> Iterator[Recording]:
    """The logs one by one, as their own tables and the run's [log] table read them; logs of one name are kept apart."""
    tables = [log_settings(log) for log in logs]
    check_files(tables, settings.log)
    names = labels(tables, settings.log)
    tell = Progress.of(tell)
    for i, (log, name) in enumerate(zip(tables, names, strict=True)):
        tell(f"reading {short_name(name, names)}", i / len(names))
        recording = replace(_read_log(log, settings, robot), source=name)
        bends = settings.model.flexible
        yield recording if bends is None else both_sides(recording, chosen_joints(robot, bends.joints))


def _read_log(log: LogSettings, settings: RunSettings, robot: Robot) -> Recording:
    for path in log.files:
        if not os.path.exists(path):
            raise RecordingError(f"there is no log {path}")
    return read(log.files, log.mapping(settings.log), robot, at_once=settings.stream_rows)

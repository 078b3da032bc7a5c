"""Logs of a run, read, prepared and compressed into a problem, with the choices made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.datasets import Dataset, LogFacts
from dynid.datasets.log_folds import COPIED, Failure
from dynid.errors import NotPossibleError
from dynid.estimate import FrictionChoice, Problem
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.findings import Finding
from dynid.model import LinearModel, robot_model
from dynid.progress import Progress, ProgressCallback, silent
from dynid.recording import Recording, Samples
from dynid.recording.check import find_jumps
from dynid.recording.log_files import short_name, short_names
from dynid.recording.mapping import FROM_LOG, KNOWN_LOAD
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import AT_REST, check_usable, prepare
from dynid.robot import Robot, Symmetry
from dynid.runs.choices import Choices, choose
from dynid.runs.logs import LogEntry, found_logs_sentence, log_settings, log_sources
from dynid.runs.models import first_model, make_model
from dynid.runs.settings import FloatingSettings, RunSettings
from dynid.validate import Gravity
from dynid.workers import Workers

if TYPE_CHECKING:
    from dynid.floating.facts import Facts
    from dynid.simulation.controllers import Controller

_SKEW_NOTE = ("damping D and the viscous friction of motors and links have an error of up to K s, with the stiffness "
              "K, if motor and link encoder are read s seconds apart; [model.flexible] skew = true identifies Ks")
_LEFT_OUT_TITLES = {AT_REST: "log at rest", COPIED: "log given twice"}


@dataclass(frozen=True, eq=False)
class Resting:
    """A log without motion, and the error that was raised when the log was prepared."""

    source: str
    problem: NotPossibleError

    @property
    def finding(self) -> Finding:
        """Return the finding that the log was not used, because no joint moves."""
        return left_out_finding(Failure(self.source, "", self.problem.reason, AT_REST))


def left_out_finding(failure: Failure) -> Finding:
    """Return the finding that a log was not used, with the reason."""
    code = failure.code if failure.code in _LEFT_OUT_TITLES else "log-left-out"
    return Finding(code, "problem", "warning", f"A log is not used: {failure.reason}.",
                   f"{_LEFT_OUT_TITLES.get(code, 'log not used')} ({failure.source})", logs=(failure.source,))


@dataclass(frozen=True, eq=False)
class LoadedProblem:
    """The problem of a run, with its final settings and robot.

    Attributes:
        problem: model, compressed regression and data.
        settings, robot: settings and robot of the run, with every choice made.
        cutoff: choice of the cut-off; None if it was given.
        left_out: logs that could not be used, or are copies of others.
        mounting: direction of gravity, if it was estimated.
        friction: choice of the friction of each joint; None if it was given.
        chosen_notes: sentences on choices that were not requested.
        logs: facts on each log.
        file_findings: findings on the robot file.
    """

    problem: Problem
    settings: RunSettings
    robot: Robot
    cutoff: CutoffChoice | None = None
    left_out: tuple[Failure, ...] = ()
    mounting: Gravity | None = None
    friction: FrictionChoice | None = None
    chosen_notes: tuple[str, ...] = ()
    logs: tuple[LogFacts, ...] = ()
    file_findings: tuple[Finding, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the choices and on the logs, without repetition."""
        bends = self.settings.model.flexible
        skew = (_SKEW_NOTE,) if bends is not None and not bends.skew else ()
        found = found_logs_sentence(self.settings, [log.source for log in self.logs],
                                    [log.source for log in self.left_out])
        return (*filter(None, [found]), *self.chosen_notes, *skew,
                *dict.fromkeys(note for recording in self.problem.recordings for note in recording.notes))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on the robot file, on excluded logs, and on positions that jump."""
        jumps = (jump_finding(recording, self.robot) for recording in self.problem.recordings)
        return (*self.file_findings, *map(left_out_finding, self.left_out), *filter(None, jumps))


def jump_finding(recording: Recording, robot: Robot) -> Finding | None:
    """Return a finding on a log of the robot whose positions jump, or None."""
    jumps = find_jumps(recording.t, recording.q)
    if jumps is None:
        return None
    times = len(jumps.times)
    joint = recording.joints[jumps.joint] if recording.joints else f"joint {jumps.joint + 1}"
    unit = "m" if any(one.kind == "prismatic" for one in robot.joints if one.name == joint) else "rad"
    return Finding("positions-jump", "problem", "warning", (
        f"Positions of {recording.source} jump {f'{times} times, first' if times > 1 else 'once,'} at "
        f"{jumps.times[0]:.4g} s, where {joint} moves by {jumps.size:.3g} {unit} in one row: "
        f"{f'the encoder of {joint} was probably reset' if jumps.is_single else 'several runs were probably joined'}. "
        "Give the part before and the part after as separate logs, or select one with --start and --stop, in seconds."
        ),
        f"jumps ({joint})", (joint,), logs=(str(recording.source),),
        evidence={"jumps": float(times), "time": jumps.times[0], "size": jumps.size})


def open_dataset(settings: RunSettings, robot: Robot, progress: ProgressCallback = silent, *,
                 workers: Workers | None = None, store: Path | None = None) -> Dataset:
    """Return the dataset of a run's logs without payload."""
    logs = log_sources(settings.unloaded, settings)
    dataset = Dataset.open(logs, robot, workers=workers, store=store, progress=progress)
    return replace(dataset, progress=lambda done, count: progress(f"{done} of {count} logs compressed"))


def load_problem(settings: RunSettings, robot: Robot, progress: ProgressCallback = silent, *,
                 workers: Workers | None = None, store: Path | None = None) -> LoadedProblem:
    """Return the problem of a run's logs, with all open choices made.

    workers: processes that read and compress logs; store: folder of compressed logs for the next run.
    """
    progress = Progress.from_callback(progress)
    Preparation.from_settings(settings.prepare, "[prepare]")
    first_model(settings, robot)  # both raise for wrong settings, before any log is read
    if _asks_for_gains(settings):
        from dynid.runs.drive_gains import with_drive_gains  # imported here, because most runs need no payloads
        settings = with_drive_gains(settings, robot, progress)
    dataset = open_dataset(settings, robot, progress.part(0.0, 0.3), workers=workers, store=store)
    chosen = choose(settings, robot, dataset, progress.part(0.3, 0.9))
    progress("compressing the regression", 0.9)
    return loaded_problem(chosen)


def _asks_for_gains(settings: RunSettings) -> bool:
    """Return whether drive gains are to be estimated from the logs."""
    tables = (settings.log, *(log_settings(log).own for log in settings.logs))
    return any(isinstance(gain := table.get("drive_gain"), str) and gain in (FROM_LOG, KNOWN_LOAD) for table in tables)


def compressed(settings: RunSettings, robot: Robot, dataset: Dataset) -> Problem:
    """Return the problem of a run's model and prepared logs."""
    return Problem.from_model(make_model(settings, robot), dataset, known=settings.known, blocks=settings.blocks,
                              controller=control_law(settings))


def loaded_problem(chosen: Choices) -> LoadedProblem:
    """Return the identification problem of a run after all choices were made."""
    settings = chosen.settings
    problem = compressed(settings, chosen.robot, chosen.dataset)
    if chosen.robot.has_free_base:
        from dynid.estimate.whole_body import with_facts  # imported here, for free bases alone

        problem = with_facts(problem, stated_facts(problem.model, settings.floating))
    folded = problem.folded
    left_out = folded.left_out if folded is not None else ()
    entries = folded.entries if folded is not None else ()
    facts = tuple(entry.facts for entry in entries if entry.facts is not None) or chosen.dataset.facts
    return LoadedProblem(problem, settings, chosen.robot, chosen.cutoff, left_out, chosen.gravity, chosen.friction,
                         chosen.notes, facts)


def stated_facts(model: LinearModel, asked: FloatingSettings) -> list[Facts]:
    """Return known facts on a robot with a free base that a run states: its total mass and its symmetry."""
    from dynid.floating.facts import TOTAL_MASS_STD, symmetry, total_mass  # imported here, for free bases alone

    found = []
    if asked.total_mass is not None:
        given = asked.total_mass
        mass, std = given if isinstance(given, tuple) else (given, TOTAL_MASS_STD * given)
        found.append(total_mass(model, mass, std))
    own = robot_model(model)
    if own is not None:
        stated = own.robot.symmetry
        mirrored = asked.symmetry if asked.symmetry is not None else stated is not None and (stated.pairs or True)
        if mirrored:
            std = asked.symmetry_std or (stated or Symmetry()).std
            found.append(symmetry(own, None if mirrored is True else mirrored, std=std))
    return found


def control_law(settings: RunSettings) -> Controller | None:
    """Return the control law that a run names, or None."""
    if settings.controller is None:
        return None
    from dynid.simulation.controllers import controller_from_table  # most runs have no controller

    return controller_from_table(settings.controller)


def prepared(logs: Sequence[LogEntry], settings: RunSettings, robot: Robot, chosen: Preparation,
             progress: ProgressCallback = silent, resting: list[Resting] | None = None
             ) -> Iterator[tuple[Recording, Samples]]:
    """Yield recording and samples of each log, all prepared with the options chosen for the first one.

    resting: receives the logs without motion, which are excluded; without it they are refused.
    """
    recordings = read_logs(logs, settings, robot, progress)
    for recording in recordings if resting is None else moving(recordings, resting):
        progress(f"preparing {short_name(recording.source)}")
        samples = prepare(recording, chosen)
        chosen = samples.preparation
        yield recording, samples


def moving(recordings: Iterable[Recording], resting: list[Resting]) -> Iterator[Recording]:
    """Yield the recordings with motion; the list `resting` receives those without."""
    for recording in recordings:
        try:
            check_usable(recording)
        except NotPossibleError as problem:
            if problem.code != AT_REST:
                raise
            resting.append(Resting(recording.source, problem))
            continue
        yield recording


def read_logs(logs: Sequence[LogEntry], settings: RunSettings, robot: Robot,
              progress: ProgressCallback = silent) -> Iterator[Recording]:
    """Yield the recording of each log, read with its own [[logs]] table and the run's [log] table."""
    sources, progress = log_sources(logs, settings), Progress.from_callback(progress)
    names = short_names(source.source for source in sources)
    for source in sources:
        source.stamp()  # raises for the first log that does not exist, before any is read
    for i, source in enumerate(sources):
        progress(f"reading {names[source.source]}", i / len(sources))
        yield source.read(robot)

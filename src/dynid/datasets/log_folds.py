"""Compression of many logs by workers: one task per log, and a sum of their regressions in a fixed order.

The result does not depend on the number of workers or their order. An unusable log is listed with the reason, and logs
with the same content count once.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import FoldStore, LogFacts, LogFold, LogSource, ManifestEntry, signature
from dynid.errors import DynidError, NotPossibleError, RecordingError
from dynid.model import LinearModel
from dynid.recording import Recording, Samples
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import AT_REST, on_grid, prepare_gridded
from dynid.regression import BaseParameters, Equations, Regression, fold, prepared_equations
from dynid.robot import Robot
from dynid.workers import Job, Workers

LogProgress = Callable[[int, int], None]  # logs done, of how many
NoiseOf = Callable[[Equations, Regression], tuple[Array, ...] | None]
_BLOCKS_OF_SUM = 20  # logs whose blocks stay separate in a sum, which limits memory for many logs
_SECONDS_BETWEEN_MANIFESTS = 2.0  # s: an interrupted run loses little, and a quick one writes once
_STORE_FORM = 4  # version of manifests; compressed logs of another version are computed again
_PROBE_SAMPLES = 40  # number of samples whose regressor identifies a model


COPIED = "copied-log"  # code of the reason why a copy of another log is excluded


@dataclass(frozen=True)
class Failure:
    """An excluded log and the reason.

    Attributes:
        source, robot: names of the log and its robot.
        reason, code: reason as a sentence, and its code.
        original: name of the log with the same content, for a copy."""

    source: str
    robot: str
    reason: str
    code: str = "bad-recording"
    original: str = ""

    @staticmethod
    def from_copy(source: str, robot: str, original: str) -> Failure:
        """Return the record of a log that is excluded because it has the same content as another one."""
        return Failure(source, robot, f"{source} has the same content as {original}", COPIED, original)


@dataclass(frozen=True, eq=False)
class LogInMemory:
    """A log that is in memory.

    Attributes:
        samples: filtered samples; None before they are computed.
        recording: the recording of these samples; None if samples were given without one.
        sha256: hash of the content; empty if the log is not from a file.
    """

    samples: Samples | None
    recording: Recording | None = None
    sha256: str = ""


@dataclass(frozen=True, eq=False)
class FoldJob:
    """Common data of all tasks, which are sent to each worker once.

    Attributes:
        model, base: model of the equations and its base parameters.
        robot: the robot of the logs.
        preparation: filter options.
        blocks: number of intervals of each log that are kept separate.
        noise: module-level function that returns the noise matrices of one log, for fleets; or None.
        keeps: whether compressed logs are sent back to be stored.
        threads: number of threads per log.
    """

    model: LinearModel
    base: BaseParameters
    robot: Robot | None
    preparation: Preparation
    blocks: int = 1
    noise: NoiseOf | None = None
    keeps: bool = False
    threads: int | None = 1

    def fold(self, log: LogSource, in_memory: LogInMemory | None = None) -> LogFold:
        """Return the compressed regression of one log; the log is read unless it is in memory."""
        stamp = log.stamp()
        if in_memory is None:
            read, sha256 = log.read_hashed(self.robot)
            in_memory = LogInMemory(prepared_alike(read, self.preparation), read, sha256)
        samples = in_memory.samples
        assert samples is not None
        equations = prepared_equations(self.model, (samples,), self.base)
        found = fold(equations, blocks=self.blocks, threads=self.threads)
        noise = None if self.noise is None else self.noise(equations, found)
        first, recording = log.files[0], in_memory.recording
        facts = None if recording is None else LogFacts.from_recording(recording, "identification")
        t = samples.t if recording is None else recording.t
        entry = ManifestEntry(log.source, in_memory.sha256, len(t), float(t[0]), float(t[-1]), first.robot, first.date,
                              first.motion, stamp, facts)
        return LogFold(entry, found, noise)

    def check_travels(self) -> None:
        """Raise an error if the job cannot be sent to worker processes (pickled)."""
        try:
            pickle.dumps(self)
        except (pickle.PicklingError, TypeError, AttributeError) as problem:
            raise NotPossibleError(f"the model cannot be sent to worker processes ({problem})",
                                   "use workers = 1") from None


@dataclass(frozen=True, eq=False)
class LogReport:
    """Report of a worker on one log.

    Attributes:
        entry: record of the log.
        read: whether the worker read the log; otherwise its regression was in memory or in the store.
        packed: bytes of the log's compressed regression, if they are to be stored.
    """

    entry: ManifestEntry
    read: bool = False
    packed: bytes = b""


@dataclass(frozen=True, eq=False)
class FoldedLogs:
    """Logs that were included in the sum of compressed regressions, and excluded ones.

    Attributes:
        entries: included logs, in the order of the dataset.
        left_out: excluded logs with reasons.
        preparation: filter options of all logs.
        read: number of logs read in this call; the others were in the store.
    """

    entries: tuple[ManifestEntry, ...]
    left_out: tuple[Failure, ...]
    preparation: Preparation
    read: int = 0

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Logs that were excluded because they cannot be used."""
        return tuple(one for one in self.left_out if one.code != COPIED)

    @property
    def copies(self) -> dict[str, str]:
        """Logs with the same content as another one: source -> source of the other."""
        return {one.source: one.original for one in self.left_out if one.code == COPIED}


@dataclass(frozen=True, eq=False)
class Folding:
    """Logs whose regressions are to be summed.

    Attributes:
        logs, job: all logs, and the common data of the tasks.
        in_memory, known, failures: logs in memory, logs in the store, and missing logs, by index in `logs`.
        store: the store of compressed logs, or None."""

    logs: Sequence[LogSource]
    job: FoldJob
    in_memory: Mapping[int, LogInMemory]
    store: FoldStore | None
    known: Mapping[int, ManifestEntry]
    failures: dict[int, Failure]

    @staticmethod
    def start(logs: Sequence[LogSource], job: FoldJob, in_memory: Mapping[int, LogInMemory] | None = None,
              store: Path | None = None, failures: Mapping[int, Failure] | None = None) -> Folding:
        kept = None if store is None else FoldStore(store, fold_key(job))
        found = dict(failures or {})
        known = {}
        for k, log in enumerate(logs):
            if k in found or (in_memory is not None and k in in_memory):
                continue
            try:
                log.stamp()  # raises an error if the file does not exist
                entry = None if kept is None else kept.known(log)
            except DynidError as problem:
                found[k] = log_failure(log, problem)
                continue
            if entry is not None:
                known[k] = entry
        return Folding(logs, replace(job, keeps=kept is not None), in_memory or {}, kept, known, found)

    def workers(self, wanted: Workers) -> Workers:
        """Return the given workers, or one process if at most one log is to be read."""
        left = len(self.logs) - len(self.in_memory) - len(self.known) - len(self.failures)
        chosen = wanted if left > 1 or wanted.scheduler is not None else Workers(1)
        if chosen.processes != 1 or chosen.scheduler is not None:
            self.job.check_travels()
        return chosen


def prepared_alike(recording: Recording, preparation: Preparation) -> Samples:
    """Return the samples of a recording with fully specified filter options, which need no spectrum of the
    recording."""
    return prepare_gridded(on_grid(recording, preparation, spectrum=False), preparation)


def log_failure(log: LogSource, problem: Exception) -> Failure:
    """Return the record of an excluded log, with the reason."""
    robot = log.files[0].robot
    if isinstance(problem, DynidError):
        return Failure(log.source, robot, str(problem), problem.code)
    return Failure(log.source, robot, f"{log.source} cannot be read: {type(problem).__name__}: {problem}")


class Intake:
    """Processing of workers' reports in the order of the logs, so that the first of several copies counts. New
    regressions are stored, if there is a store."""

    def __init__(self, folding: Folding, progress: LogProgress | None) -> None:
        self._folding, self._progress, self._written = folding, progress, time.monotonic()
        self._entries: list[ManifestEntry] = []
        self._owners: dict[str, str] = {}
        self._done = self._read = 0

    def keep(self, place: int, report: LogReport | Failure) -> None:
        """Store a new regression, and from time to time the manifest."""
        store = self._folding.store
        self._read += isinstance(report, Failure) or report.read
        if store is None or isinstance(report, Failure) or not report.packed:
            return
        store.keep(self._folding.logs[place].place, report.entry, report.packed)
        if time.monotonic() - self._written > _SECONDS_BETWEEN_MANIFESTS:
            store.write()
            self._written = time.monotonic()

    def take(self, place: int, report: LogReport | Failure) -> bool:
        """Record the report on the next log, and return whether its regression is added to the sum."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, len(self._folding.logs))
        if isinstance(report, Failure):
            self._folding.failures[place] = report
            return False
        entry = report.entry
        owner = self._owners.setdefault(entry.sha256, entry.source) if entry.sha256 else entry.source
        if owner != entry.source:
            self._folding.failures[place] = Failure.from_copy(entry.source, entry.robot, owner)
            return False
        self._entries.append(entry)
        return True

    def close(self) -> None:
        """Write the manifest of the store."""
        store = self._folding.store
        if store is not None and store.entries:
            store.write()

    def result(self) -> FoldedLogs:
        failures = self._folding.failures
        return FoldedLogs(tuple(self._entries), tuple(failures[k] for k in sorted(failures)),
                          self._folding.job.preparation, self._read)


@dataclass(frozen=True, eq=False)
class Item:
    """One log as it is sent to a worker: in memory, as its record and bytes from the store, or as files to be read."""

    log: LogSource
    in_memory: LogInMemory | None = None
    entry: ManifestEntry | None = None
    packed: bytes = b""


class _Items(Sequence[Item | Failure]):
    """Sequence of the logs of a sum; stored regressions are read on demand."""

    def __init__(self, folding: Folding) -> None:
        self._folding = folding

    def __len__(self) -> int:
        return len(self._folding.logs)

    def __getitem__(self, k: Any) -> Any:
        folding = self._folding
        if k in folding.failures:
            return folding.failures[k]
        entry = folding.known.get(k)
        packed = b"" if entry is None or folding.store is None else folding.store.read_bytes(entry)
        return Item(folding.logs[k], folding.in_memory.get(k), entry, packed)


def part_task(job: FoldJob, item: Item | Failure) -> tuple[LogReport | Failure, Regression | None]:
    """Return a worker's report on one log, and its regression. A damaged stored regression is computed again."""
    if isinstance(item, Failure):
        return item, None
    if item.entry is not None:
        try:
            return LogReport(item.entry), LogFold.load(item.packed, job.model).of_entry(item.entry).regression
        except RecordingError:
            pass
    found = _folded(job, item)
    if isinstance(found, Failure):
        return found, None
    packed = found.packed() if job.keeps else b""
    return LogReport(found.entry, True, packed), found.regression


def _folded(job: FoldJob, item: Item) -> LogFold | Failure:
    try:
        return job.fold(item.log, item.in_memory)
    except Exception as problem:  # readers raise various errors for damaged files
        if item.log.is_required and getattr(problem, "code", None) != AT_REST:
            raise
        return log_failure(item.log, problem)


def add_parts(job: FoldJob, one: Regression, other: Regression) -> Regression:
    """Return the sum of two regressions; their blocks of time are merged only if there are very many."""
    return (one + other).joined(max(job.blocks, 1) * _BLOCKS_OF_SUM)


def _lost(item: Item | Failure, why: str) -> Failure:
    return item if isinstance(item, Failure) else Failure(item.log.source, item.log.files[0].robot, why, "lost-worker")


def sum_folds(folding: Folding, workers: Workers, blocks: int, progress: LogProgress | None = None
              ) -> tuple[Regression, FoldedLogs]:
    """Return the sum of the regressions of all logs in at most `blocks` blocks of time, and the records of the logs."""
    intake = Intake(folding, progress)

    def take(place: int, report: LogReport | Failure) -> bool:
        if place not in folding.failures:
            intake.keep(place, report)
        return intake.take(place, report)

    try:
        total = folding.workers(workers).total(Job(part_task, folding.job, _lost, add_parts), _Items(folding), take)
    finally:
        intake.close()
    result = intake.result()
    if total is None:
        raise none_usable(len(folding.logs), result.failures)
    missing = {entry.source for entry in result.entries} ^ set(total.sources)
    if missing:  # the worker was lost, and a second attempt failed
        raise NotPossibleError(f"{sorted(missing)[0]} was processed by a worker that was lost, and "
                               "could not be processed again", "repeat the call")
    return total.joined(max(blocks, 1)), result


def none_usable(count: int, failures: Sequence[Failure]) -> NotPossibleError:
    """Return the error for the case that none of the logs can be used."""
    first = failures[0].reason if failures else ""
    return NotPossibleError(f"none of {count} logs can be used; the first one: {first}", code="no-usable-log")


def fold_each(folding: Folding, workers: Workers, progress: LogProgress | None = None) -> FoldedLogs:
    """Compress every log that is not in the store, and store it; no log is kept in memory."""
    intake = Intake(folding, progress)
    waiting: dict[int, LogReport | Failure] = {
        **{k: LogReport(entry) for k, entry in folding.known.items()}, **folding.failures}
    todo, taken, items = [k for k in range(len(folding.logs)) if k not in waiting], 0, _Items(folding)
    try:
        for place, report in folding.workers(workers).each(each_task, folding.job, [items[k] for k in todo], _lost):
            intake.keep(todo[place], report)
            waiting[todo[place]] = report if isinstance(report, Failure) else replace(report, packed=b"")
            while taken in waiting:
                intake.take(taken, waiting.pop(taken))
                taken += 1
        while taken in waiting:
            intake.take(taken, waiting.pop(taken))
            taken += 1
    finally:
        intake.close()
    return intake.result()


def each_task(job: FoldJob, item: Item | Failure) -> LogReport | Failure:
    """Compress one log whose result is kept in the store; return a report or a failure."""
    return part_task(job, item)[0]


def fold_key(job: FoldJob) -> str:
    """Return a hash of the model, the preparation and the stored content, which names the folder of compressed logs."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, _PROBE_SAMPLES, job.model.dof))
    probe = np.round(job.model.regressor(q, dq, ddq), 9).tobytes().hex()
    learned = getattr(job.model, "learned", {})  # such as the times of a drift, which the probe does not show
    return signature(_STORE_FORM, job.base.expressions, list(job.base.known.items()), probe, learned,
                     job.preparation.as_table(), job.blocks, job.noise is not None)

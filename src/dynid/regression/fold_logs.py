"""Many logs, folded wherever workers are: one task a log, and a sum over a fixed tree that workers make too.

All logs are prepared alike, see `CommonPreparation`. A log that cannot be read or used is listed with the reason and
costs nothing else. The result does not depend on how many workers there are, nor on the order in which they finish.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError, RecordingError
from dynid.model import LinearModel
from dynid.recording.log_files import LogFile, content_hash, find_logs
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import on_grid, prepare_gridded
from dynid.recording.read import mapping_of, read
from dynid.regression.base import BaseParameters, base_parameters
from dynid.regression.common_preparation import CommonPreparation, common_preparation
from dynid.regression.equations import Equations
from dynid.regression.filtered import equations_of
from dynid.regression.fold import fold
from dynid.regression.fold_store import FoldStore
from dynid.regression.log_fold import LogFold, ManifestEntry, signature
from dynid.regression.regression import Regression
from dynid.robot import Robot
from dynid.workers import Job, Workers

LogProgress = Callable[[int, int], None]  # logs done, of how many
NoiseOf = Callable[[Equations, Regression], tuple[Array, ...] | None]
_EVERY = 2.0  # s between two manifests written on the way
_FORM = 2  # of manifests; folds beside one of another form are made again
_PROBE = 40  # samples by whose regressor a model is known again


@dataclass(frozen=True)
class Failure:
    """A log that was left out, and why. code: of the reason, in kebab-case."""

    source: str
    robot: str
    reason: str
    code: str = "bad-recording"


@dataclass(frozen=True, eq=False)
class LogReport:
    """What a worker says of a log. read: whether it was read now. packed: its fold, where it is to be kept."""

    entry: ManifestEntry
    read: bool = False
    packed: bytes = b""


@dataclass(frozen=True, eq=False)
class FoldOptions:
    """mapping: how logs are read. preparation: from logs to samples. robot: whose joints they have. blocks: stretches
    of each log that are kept apart. noise: what the residuals of a log say, of a module, so that workers find it.
    store: folder of folds to go on from, None to keep none. workers: where the work is done."""

    mapping: LogMapping = field(default_factory=LogMapping)
    preparation: Preparation = field(default_factory=Preparation)
    robot: Robot | None = None
    blocks: int = 1
    noise: NoiseOf | None = None
    store: Path | None = None
    workers: Workers = field(default_factory=lambda: Workers(1))

    @staticmethod
    def of(robot: Robot | None = None, *, mapping: Any = None, prepare: Mapping[str, Any] | None = None,
           workers: int | None = 1, scheduler: str | None = None, store: str | Path | None = None) -> FoldOptions:
        """From plain values: mapping and prepare as [log] and [prepare] tables have them."""
        return FoldOptions(mapping_of(mapping, {}), Preparation.of(dict(prepare or {})), robot,
                           store=None if store is None else Path(store), workers=Workers(workers, scheduler))


@dataclass(frozen=True, eq=False)
class FoldJob:
    """What every task needs: sent to each worker once."""

    model: LinearModel
    base: BaseParameters
    options: FoldOptions
    preparation: Preparation

    def fold(self, log: LogFile) -> LogFold:
        """The fold of one log; it is read once."""
        stamp = log.stamp()
        with log.local() as path:
            sha256 = content_hash(path)
            recording = replace(read(path, self.options.mapping, self.options.robot), source=log.source)
            samples = prepare_gridded(on_grid(recording, self.preparation, spectrum=False), self.preparation)
        equations = equations_of(self.model, (samples,), self.base)
        found = fold(equations, blocks=self.options.blocks, threads=1)
        noise = None if self.options.noise is None else self.options.noise(equations, found)
        entry = ManifestEntry(log.source, sha256, len(recording), float(recording.t[0]), float(recording.t[-1]),
                              log.robot, log.date, log.motion, stamp)
        return LogFold(entry, found, noise)


@dataclass(frozen=True, eq=False)
class FoldedLogs:
    """What folding gave. entries: of the logs that went in, in the order of the logs. copies: logs whose content
    another one has as well, by source: they count for nothing. failures: logs left out. common: the preparation of all
    of them. read: how many logs were read; the others were known."""

    entries: tuple[ManifestEntry, ...]
    copies: Mapping[str, str]
    failures: tuple[Failure, ...]
    common: CommonPreparation
    read: int

    @property
    def preparation(self) -> Preparation:
        return self.common.preparation


@dataclass(frozen=True, eq=False)
class Folding:
    """What a call begins with. known: logs that were folded before, by place. failures: logs that are not there, by
    place."""

    logs: Sequence[LogFile]
    job: FoldJob
    common: CommonPreparation
    store: FoldStore | None
    known: Mapping[int, ManifestEntry]
    failures: dict[int, Failure]

    @staticmethod
    def of(model: LinearModel, logs: Sequence[LogFile], options: FoldOptions,
           base: BaseParameters | None = None) -> Folding:
        if not logs:
            raise RecordingError("there is no log to fold")
        base = base_parameters(model) if base is None else base
        store = None if options.store is None else FoldStore(options.store, fold_key(model, base, options))
        failures: dict[int, Failure] = {}
        known = _known(store, logs, failures)
        common = None if store is None else store.common  # an earlier run's choice holds on
        if common is None:
            there = [log for k, log in enumerate(logs) if k not in failures]
            if not there:
                raise NotPossibleError(f"none of {len(logs)} logs can be used; the first said: {failures[0].reason}")
            common = common_preparation(there, options.preparation, options.mapping, options.robot)
        if store is not None:
            store.common = common
        job = FoldJob(model, base, options, common.preparation)
        if options.workers.processes != 1 or options.workers.scheduler is not None:
            _check_travels(job)
        return Folding(logs, job, common, store, known, failures)


class Intake:
    """What is said of logs, taken in the order of the logs, so that of those with the same content it is always the
    first that counts. Their folds are kept in the store, where there is one."""

    def __init__(self, folding: Folding, progress: LogProgress | None) -> None:
        self._folding, self._progress, self._written = folding, progress, time.monotonic()
        self._entries: list[ManifestEntry] = []
        self._copies: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._done = self._read = 0

    def keep(self, report: LogReport | Failure) -> None:
        """Keep a new fold, and now and then the manifest."""
        store = self._folding.store
        self._read += isinstance(report, Failure) or report.read
        if store is None or isinstance(report, Failure) or not report.packed:
            return
        store.keep(report.entry, report.packed)
        if time.monotonic() - self._written > _EVERY:
            store.write()
            self._written = time.monotonic()

    def take(self, place: int, report: LogReport | Failure) -> bool:
        """Whether a log's fold counts; called in the order of the logs."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, len(self._folding.logs))
        if isinstance(report, Failure):
            self._folding.failures[place] = report
            return False
        entry = report.entry
        owner = self._owners.setdefault(entry.sha256, entry.source)
        if owner != entry.source:
            self._copies[entry.source] = owner
            return False
        self._entries.append(entry)
        return True

    def close(self) -> None:
        """Write the manifest."""
        store = self._folding.store
        if store is not None and store.entries:
            store.write()

    def result(self) -> FoldedLogs:
        failures = self._folding.failures
        return FoldedLogs(tuple(self._entries), self._copies, tuple(failures[k] for k in sorted(failures)),
                          self._folding.common, self._read)


def fold_each(model: LinearModel, logs: Sequence[LogFile], options: FoldOptions, *, base: BaseParameters | None = None,
              progress: LogProgress | None = None) -> FoldedLogs:
    """Fold every log that the store of the options does not have yet, and keep its fold there; none stays in memory."""
    folding = Folding.of(model, logs, options, base)
    intake = Intake(folding, progress)
    waiting: dict[int, LogReport | Failure] = {
        **{k: LogReport(entry) for k, entry in folding.known.items()}, **folding.failures}
    todo, taken = [k for k in range(len(logs)) if k not in waiting], 0
    try:
        for place, report in options.workers.each(fold_task, folding.job, [logs[k] for k in todo], _lost):
            intake.keep(report)
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


def fold_task(job: FoldJob, log: LogFile) -> LogReport | Failure:
    """The work of one worker on one log: its fold as bytes and its entry, or why there is none."""
    found = _folded(job, log)
    return found if isinstance(found, Failure) else LogReport(found.entry, True, found.packed())


def _folded(job: FoldJob, log: LogFile) -> LogFold | Failure:
    try:
        return job.fold(log)
    except DynidError as problem:
        return Failure(log.source, log.robot, str(problem), problem.code)
    except Exception as problem:  # whatever a damaged file makes a reader raise
        return Failure(log.source, log.robot, f"{log.source} cannot be folded: {type(problem).__name__}: {problem}")


def _lost(log: LogFile | Stored | Failure, why: str) -> Failure:
    return Failure(log.source, log.robot, why, "lost-worker")


def _check_travels(job: FoldJob) -> None:
    try:
        pickle.dumps(job)
    except (pickle.PicklingError, TypeError, AttributeError) as problem:
        raise NotPossibleError(f"the model cannot be sent to worker processes ({problem})", "use workers = 1") from None


def _known(store: FoldStore | None, logs: Sequence[LogFile], failures: dict[int, Failure]) -> dict[int, ManifestEntry]:
    """Logs that were folded before, by place; those that are not there are failures."""
    found = {}
    for k, log in enumerate(logs):
        try:
            log.stamp()  # raises where it is not there
            entry = None if store is None else store.known(log)
        except DynidError as problem:
            failures[k] = Failure(log.source, log.robot, str(problem), problem.code)
            continue
        if entry is not None:
            found[k] = entry
    return found


def fold_key(model: LinearModel, base: BaseParameters, options: FoldOptions) -> str:
    """A text that differs where folds do: by the model, how logs are read and prepared, and what is kept of them."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, _PROBE, model.dof))
    probe = np.round(model.regressor(q, dq, ddq), 9).tobytes().hex()
    return signature(_FORM, base.expressions, list(base.known.items()), probe, options.mapping.model_dump(mode="json"),
                     options.preparation.as_table(), options.blocks, options.noise is not None)


@dataclass(frozen=True, eq=False)
class Stored:
    """A log that was folded before: its entry and its fold as bytes."""

    log: LogFile
    entry: ManifestEntry
    packed: bytes

    @property
    def source(self) -> str:
        return self.log.source

    @property
    def robot(self) -> str:
        return self.log.robot


@dataclass(frozen=True, eq=False)
class SumJob:
    """What every task of a sum needs: sent to each worker once. blocks: of the sum, at most."""

    fold: FoldJob
    blocks: int


class _Parts(Sequence[LogFile | Stored | Failure]):
    """What a sum is made of, log by log; kept folds are read as they are asked for."""

    def __init__(self, folding: Folding) -> None:
        self._folding = folding

    def __len__(self) -> int:
        return len(self._folding.logs)

    def __getitem__(self, k: Any) -> Any:
        folding = self._folding
        if k in folding.failures:
            return folding.failures[k]
        if k in folding.known and folding.store is not None:
            return Stored(folding.logs[k], folding.known[k], folding.store.bytes_of(folding.known[k]))
        return folding.logs[k]


def part_task(job: SumJob, item: LogFile | Stored | Failure) -> tuple[LogReport | Failure, Regression | None]:
    """The work of one worker on one log of a sum: what is said of the log, and its part. A kept fold that is damaged
    is made again."""
    if isinstance(item, Failure):
        return item, None
    if isinstance(item, Stored):
        try:
            return LogReport(item.entry), LogFold.load(item.packed, job.fold.model).of_entry(item.entry).regression
        except RecordingError:
            item = item.log
    found = _folded(job.fold, item)
    if isinstance(found, Failure):
        return found, None
    return LogReport(found.entry, True, found.packed() if job.fold.options.store is not None else b""), found.regression


def add_parts(job: SumJob, one: Regression, other: Regression) -> Regression:
    """Two parts of a sum in one."""
    return (one + other).joined(job.blocks)


def fold_logs(model: LinearModel, sources: Any, options: FoldOptions, *, blocks: int = 10,
              base: BaseParameters | None = None, progress: LogProgress | None = None
              ) -> tuple[Regression, FoldedLogs]:
    """The sum of all logs' folds in at most so many blocks, and what went in. Workers fold the logs and add their
    folds; what comes here is the sum, an entry for each log, and the folds that a store keeps, one after the other.

    sources: as `find_logs` takes them.
    """
    folding = Folding.of(model, find_logs(sources), options, base)
    intake = Intake(folding, progress)

    def take(place: int, report: LogReport | Failure) -> bool:
        if place not in folding.failures:
            intake.keep(report)
        return intake.take(place, report)

    job = Job(part_task, SumJob(folding.job, max(blocks, 1)), _lost, add_parts)
    try:
        total = options.workers.total(job, _Parts(folding), take)
    finally:
        intake.close()
    result = intake.result()
    if total is None:
        first = result.failures[0].reason if result.failures else ""
        raise NotPossibleError(f"none of {len(folding.logs)} logs could be folded; the first said: {first}")
    missing = {entry.source for entry in result.entries} ^ set(total.sources)
    if missing:  # a worker was lost with it, and it could not be read a second time
        raise NotPossibleError(f"{sorted(missing)[0]} was folded by a worker that was lost, and could not be folded "
                               "again", "repeat the call")
    return total, result

"""Many logs, folded wherever workers are: one task a log, and a sum over a fixed tree.

All logs are prepared alike: what the first log's data choose (a cut-off, for one) holds for the others. A log that
cannot be read or used is listed with the reason and costs nothing else. The result does not depend on how many workers
there are, nor on the order in which they finish.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from dynid.recording.prepare import prepare
from dynid.recording.read import mapping_of, read
from dynid.regression.base import BaseParameters, base_parameters
from dynid.regression.equations import Equations
from dynid.regression.filtered import equations_of
from dynid.regression.fold import fold
from dynid.regression.fold_store import FoldStore
from dynid.regression.log_fold import LogFold, ManifestEntry, signature
from dynid.regression.regression import Regression
from dynid.regression.tree_sum import TreeSum
from dynid.robot import Robot
from dynid.workers import Workers

LogProgress = Callable[[int, int], None]  # logs done, of how many
NoiseOf = Callable[[Equations, Regression], tuple[Array, ...] | None]
_EVERY = 2.0  # s between two manifests written on the way
_PROBE = 40  # samples by whose regressor a model is known again


@dataclass(frozen=True)
class Failure:
    """A log that was left out, and why. code: of the reason, in kebab-case."""

    source: str
    robot: str
    reason: str
    code: str = "bad-recording"


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
            samples = prepare(recording, self.preparation)
        equations = equations_of(self.model, (samples,), self.base)
        found = fold(equations, blocks=self.options.blocks, threads=1)
        noise = None if self.options.noise is None else self.options.noise(equations, found)
        entry = ManifestEntry(log.source, sha256, len(recording), float(recording.t[0]), float(recording.t[-1]),
                              log.robot, log.date, log.motion, stamp)
        return LogFold(entry, found, noise)


@dataclass(frozen=True, eq=False)
class FoldedLogs:
    """What folding gave. entries: of the logs that went in, in the order of the logs. copies: logs whose content
    another one has as well, by source: they count for nothing. failures: logs left out. preparation: that of all of
    them. read: how many logs were read; the others were known."""

    entries: tuple[ManifestEntry, ...]
    copies: Mapping[str, str]
    failures: tuple[Failure, ...]
    preparation: Preparation
    read: int


Take = Callable[[int, LogFold], None]  # place of a log and its fold


def fold_each(model: LinearModel, logs: Sequence[LogFile], options: FoldOptions, take: Take, *,
              base: BaseParameters | None = None, progress: LogProgress | None = None) -> FoldedLogs:
    """Fold every log and hand each fold over as it is done, copies left out."""
    if not logs:
        raise RecordingError("there is no log to fold")
    base = base_parameters(model) if base is None else base
    store = None if options.store is None else FoldStore(options.store, fold_key(model, base, options))
    failures: dict[int, Failure] = {}
    known = _known(store, logs, failures)
    preparation = _preparation(logs, options, store, failures)
    job = FoldJob(model, base, options, preparation)
    order = _InOrder(logs, take, failures)
    todo = []
    for k in range(len(logs)):
        found = store.load(known[k], model) if store is not None and k in known else None
        if found is not None:
            order.put(k, found)
        elif k not in failures:
            todo.append(k)
    done = len(logs) - len(todo)
    for k, result in _fold_tasks(job, logs, todo, store):
        order.put(k, result)
        done += 1
        if progress is not None:
            progress(done, len(logs))
    return FoldedLogs(tuple(order.entries), order.copies, tuple(failures[k] for k in sorted(failures)), preparation,
                      len(todo))


class _InOrder:
    """Folds that come in any order, handed over in the order of the logs, so that of logs with the same content it is
    always the first that counts."""

    def __init__(self, logs: Sequence[LogFile], take: Take, failures: dict[int, Failure]) -> None:
        self.entries: list[ManifestEntry] = []
        self.copies: dict[str, str] = {}
        self._logs, self._take, self._failures = logs, take, failures
        self._waiting: dict[int, LogFold] = {}
        self._owners: dict[str, str] = {}
        self._next = 0

    def put(self, k: int, found: LogFold | Failure) -> None:
        """Take the fold of a log in, or that it has none."""
        if isinstance(found, Failure):
            self._failures[k] = found
        else:
            self._waiting[k] = found
        while self._next in self._waiting or self._next in self._failures:
            one = self._waiting.pop(self._next, None)
            if one is not None:
                owner = self._owners.setdefault(one.entry.sha256, one.entry.source)
                if owner == one.entry.source:
                    self.entries.append(one.entry)
                    self._take(self._next, one)
                else:
                    self.copies[one.entry.source] = owner
            self._next += 1


def _fold_tasks(job: FoldJob, logs: Sequence[LogFile], todo: Sequence[int],
                store: FoldStore | None) -> Iterator[tuple[int, LogFold | Failure]]:
    """Every log that is not known yet, folded by the workers and kept in the store."""
    workers, written = job.options.workers, time.monotonic()
    if todo and (workers.processes != 1 or workers.scheduler is not None):
        _check_travels(job)
    tasks = workers.each(fold_task, job, [logs[k] for k in todo],
                         lambda log, why: Failure(log.source, log.robot, why, "lost-worker"))
    try:
        for place, result in tasks:
            k = todo[place]
            if isinstance(result, Failure):
                yield k, result
                continue
            packed, entry = result
            if store is not None:
                store.keep(entry, packed)
                if time.monotonic() - written > _EVERY:
                    store.write()
                    written = time.monotonic()
            yield k, LogFold.load(packed, job.model)
    finally:
        if store is not None and store.entries:
            store.write()


def fold_task(job: FoldJob, log: LogFile) -> tuple[bytes, ManifestEntry] | Failure:
    """The work of one worker on one log: its fold as bytes and its entry, or why there is none."""
    try:
        found = job.fold(log)
    except DynidError as problem:
        return Failure(log.source, log.robot, str(problem), problem.code)
    except Exception as problem:  # whatever a damaged file makes a reader raise
        return Failure(log.source, log.robot, f"{log.source} cannot be folded: {type(problem).__name__}: {problem}")
    return found.packed(), found.entry


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


def _preparation(logs: Sequence[LogFile], options: FoldOptions, store: FoldStore | None,
                 failures: Mapping[int, Failure]) -> Preparation:
    """What the first log that can be used chooses for all; an earlier run's choice holds on."""
    if store is not None and store.preparation is not None:
        return Preparation.of(store.preparation, "the store of folds")
    reason = "none of the logs is there"
    for k, log in enumerate(logs):
        if k in failures:
            continue
        try:
            with log.local() as path:
                samples = prepare(read(path, options.mapping, options.robot), options.preparation)
        except DynidError as problem:
            reason = str(problem)
            continue
        except Exception as problem:  # as in a task
            reason = f"{log.source} cannot be read: {type(problem).__name__}: {problem}"
            continue
        chosen = Preparation.of(dict(samples.settings)).elsewhere()
        if store is not None:
            store.preparation = chosen.as_table()
        return chosen
    raise NotPossibleError(f"none of {len(logs)} logs can be used; the last said: {reason}")


def fold_key(model: LinearModel, base: BaseParameters, options: FoldOptions) -> str:
    """A text that differs where folds do: by the model, how logs are read and prepared, and what is kept of them."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, _PROBE, model.dof))
    probe = np.round(model.regressor(q, dq, ddq), 9).tobytes().hex()
    return signature(base.expressions, list(base.known.items()), probe, options.mapping.model_dump(mode="json"),
                     options.preparation.as_table(), options.blocks, options.noise is not None)


def fold_logs(model: LinearModel, sources: Any, options: FoldOptions, *, blocks: int = 10,
              base: BaseParameters | None = None, progress: LogProgress | None = None
              ) -> tuple[Regression, FoldedLogs]:
    """The sum of all logs' folds in at most so many blocks, and what went in. sources: as `find_logs` takes them."""
    logs = find_logs(sources)
    tree = TreeSum[Regression](len(logs), lambda one, other: (one + other).joined(max(blocks, 1)))
    taken: set[int] = set()

    def take(place: int, found: LogFold) -> None:
        taken.add(place)
        tree.put(place, found.regression)

    result = fold_each(model, logs, options, take, base=base, progress=progress)
    for place in set(range(len(logs))) - taken:
        tree.put(place, None)
    total = tree.total
    if total is None:
        first = result.failures[0].reason if result.failures else ""
        raise NotPossibleError(f"none of {len(logs)} logs could be folded; the first said: {first}")
    return total, result

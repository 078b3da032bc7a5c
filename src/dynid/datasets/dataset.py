"""A set of logs with their mapping and preparation, and sums over all logs.

A dataset keeps some of its logs in memory: all of them if they are small, otherwise a few selected by a hash of their
names (pilot logs). Choices from data (cut-off, friction, gravity) and tests on single rows use the logs in memory. The
compressed regression is summed log by log, so memory does not grow with the data. This process, worker processes or a
cluster compute the sum, which is bitwise the same in all three cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid.datasets import log_folds
from dynid.datasets.log_fold import LogFacts, LogSource
from dynid.errors import ModelError
from dynid.model import LinearModel
from dynid.progress import Progress, ProgressCallback, silent
from dynid.recording import Recording, Samples
from dynid.recording.excerpts import filterable_excerpt
from dynid.recording.log_files import find_logs, short_name, short_names
from dynid.recording.log_reading import resolve_mapping
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import AT_REST, Gridded, check_usable, on_grid, prepare_gridded
from dynid.regression import BaseParameters, Equations, Regression, fold, prepared_equations
from dynid.robot import Robot
from dynid.workers import Workers

PILOT_ROWS = 131_072  # rows kept in memory for choices and tests: enough for correlations, 40 MB for seven joints


@dataclass(frozen=True, eq=False)
class Dataset:
    """Logs with their column mapping and signal preparation, and the workers that process them.

    Attributes:
        in_memory: logs in memory, by index.
        logs: all logs from files, in order; empty for a dataset made of samples.
        robot: the robot of the logs.
        preparation: filter options for logs that are not in memory; None before they are chosen.
        workers: processes that compute the sum over logs.
        store: folder in which compressed logs are kept for the next run, or None.
        failures: excluded logs, by index.
        progress: called with the number of finished logs and the number of all logs.
    """

    in_memory: Mapping[int, log_folds.LogInMemory]
    logs: tuple[LogSource, ...] = ()
    robot: Robot | None = None
    preparation: Preparation | None = None
    workers: Workers = field(default_factory=lambda: Workers(1))
    store: Path | None = None
    failures: Mapping[int, log_folds.Failure] = field(default_factory=dict)
    progress: log_folds.LogProgress | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for a copy or for another process, without the progress callback."""
        return {**self.__dict__, "progress": None}

    @staticmethod
    def from_samples(samples: Samples | Sequence[Samples], recordings: Recording | Sequence[Recording] = ()) -> Dataset:
        """Return the dataset of samples in memory. recordings: the recording of each set of samples, or none at all."""
        data = (samples,) if isinstance(samples, Samples) else tuple(samples)
        behind: Sequence[Recording | None] = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
        if behind and len(behind) != len(data):
            raise ModelError(f"{len(behind)} recordings were given for {len(data)} sets of samples; give one "
                             "recording per set, or none",
                             code="recordings-of-other-samples")
        pairs = zip(data, behind or (None,) * len(data), strict=True)
        return Dataset({k: log_folds.LogInMemory(one, recording) for k, (one, recording) in enumerate(pairs)})

    @staticmethod
    def from_recordings(recordings: Recording | Sequence[Recording]) -> Dataset:
        """Return the dataset of recordings in memory, which are not prepared yet."""
        logs = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
        return Dataset({k: log_folds.LogInMemory(None, recording) for k, recording in enumerate(logs)})

    @staticmethod
    def from_files(sources: Any, robot: Robot | None = None, *, mapping: Any = None,
                   prepare: Mapping[str, Any] | None = None, workers: int = 1, scheduler: str | None = None,
                   store: str | Path | None = None, pilot_rows: int | None = None) -> Dataset:
        """Return the dataset of all logs in given files, folders, patterns or addresses, with filtered samples.

        Args:
            sources: files, folders, patterns or addresses, see `find_logs`. Unusable logs are excluded, see `failures`.
            robot: the robot of the logs.
            mapping: how the logs are read: settings as in a [log] table, or a file that has one.
            prepare: options of the preparation, as in a [prepare] table.
            workers: number of processes that read and compress the logs.
            scheduler: address of a Dask scheduler, which is used instead of local processes.
            store: folder in which compressed logs are kept, so that the next call reads only new ones.
            pilot_rows: number of rows that are kept in memory, by default `PILOT_ROWS`.
        """
        rules = resolve_mapping(mapping, {})
        dataset = Dataset.open([LogSource.from_file(file, rules) for file in find_logs(sources)], robot,
                               workers=Workers(workers, scheduler), store=None if store is None else Path(store),
                               pilot_rows=pilot_rows)
        return dataset.prepared(Preparation.from_settings(dict(prepare or {})))

    @staticmethod
    def open(logs: Sequence[LogSource], robot: Robot | None = None, *, workers: Workers | None = None,
             store: Path | None = None, pilot_rows: int | None = None, progress: ProgressCallback = silent) -> Dataset:
        """Return the dataset of given logs; up to `pilot_rows` rows (default `PILOT_ROWS`) are read into memory.

        Raises:
            RecordingError: for a required log that does not exist or cannot be read.
            NotPossibleError: if no log can be used.
        """
        progress, failures = Progress.from_callback(progress), dict[int, log_folds.Failure]()
        in_memory: dict[int, log_folds.LogInMemory] = {}
        enough = PILOT_ROWS if pilot_rows is None else pilot_rows
        problems: list[Exception] = []
        for log in logs:
            if log.is_required:
                log.stamp()  # raises an error if the file does not exist
        rows, names = 0, short_names(log.source for log in logs)
        for count, place in enumerate([0, *sorted(range(1, len(logs)), key=lambda k: logs[k].draw)]):
            if rows >= enough:
                break
            log = logs[place]
            progress(f"reading {names[log.source]}", min(count / len(logs), rows / enough))
            try:
                recording, sha256 = log.read_hashed(robot, hashed=len(logs) > 1)
                check_usable(recording)
            except Exception as problem:  # readers raise various errors for damaged files
                if log.is_required and getattr(problem, "code", None) != AT_REST:
                    raise
                problems.append(problem)
                failures[place] = log_folds.log_failure(log, problem)
                continue
            in_memory[place] = log_folds.LogInMemory(None, recording, sha256)
            rows += len(recording)
        _leave_out_copies(in_memory, failures)
        if not in_memory:
            raise problems[0] if any(log.is_required for log in logs) else log_folds.none_usable(len(logs),
                                                                                       list(failures.values()))
        ordered = dict(sorted(in_memory.items()))
        return Dataset(ordered, tuple(logs), robot, None, workers or Workers(1), store, failures)

    # -- logs in memory -----------------------------------------------------------------------
    @property
    def is_in_memory(self) -> bool:
        """Whether all usable logs are in memory."""
        return len(self.in_memory) + len(self.failures) >= len(self.logs)

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """Recordings of the logs in memory, in order; empty if samples were given without them."""
        return tuple(log.recording for log in self.in_memory.values() if log.recording is not None)

    @property
    def samples(self) -> tuple[Samples, ...]:
        """Samples of the logs in memory, in order; empty before they are prepared."""
        return tuple(log.samples for log in self.in_memory.values() if log.samples is not None)

    def prepared(self, preparation: Preparation, *, steps: Sequence[str] = (), grids: Sequence[Gridded] = (),
                 progress: ProgressCallback = silent) -> Dataset:
        """Return the dataset with all logs in memory filtered with the options that are determined from the first log.

        Args:
            preparation: filter options.
            steps: sentences on how the preparation was chosen.
            grids: recordings that are already resampled, with the same options except the cut-off.
            progress: function to report progress.
        """
        in_memory, chosen = dict[int, log_folds.LogInMemory](), preparation
        for place, log in self.in_memory.items():
            assert log.recording is not None
            progress(f"preparing {short_name(log.recording.source)}")
            # Options determined from the first log are used for the others.
            grid = next((one for one in grids if one.recording is log.recording and chosen is preparation), None)
            samples = prepare_gridded(grid or on_grid(log.recording, chosen), chosen)
            chosen = samples.preparation
            in_memory[place] = replace(log, samples=replace(samples, steps=(*steps, *samples.steps)))
        return replace(self, in_memory=in_memory, preparation=chosen)

    def excerpt(self, rows: int | None = None) -> tuple[tuple[int, ...], tuple[Samples, ...], tuple[Recording, ...]]:
        """Return the logs in memory: their indices, samples and recordings. Samples are limited to intervals of time of
        about `rows` rows in all; recordings are complete."""
        few = filterable_excerpt(self.samples, PILOT_ROWS if rows is None else rows)
        places, recordings = tuple(self.in_memory), self.recordings
        return (tuple(places[k] for k in few), tuple(few.values()),
                tuple(recordings[k] for k in few) if recordings else ())

    def every_sample(self, left_out: Collection[str] = ()) -> Iterator[Samples]:
        """Yield the samples of every log in turn; logs that are not in memory are read again.

        left_out: names of excluded logs.
        """
        for place in range(max(len(self.logs), len(self.in_memory) + len(self.failures))):
            if place in self.in_memory:
                samples = self.in_memory[place].samples
                assert samples is not None
                yield samples
            elif place not in self.failures and self.logs[place].source not in left_out:
                assert self.preparation is not None
                yield log_folds.prepared_alike(self.logs[place].read(self.robot), self.preparation)

    # -- the sum over all logs -------------------------------------------------------------------
    def fold(self, model: LinearModel, base: BaseParameters, *, blocks: int = 10, threads: int | None = None,
             equations: Equations | None = None) -> tuple[Regression, log_folds.FoldedLogs]:
        """Return the compressed regression of all logs on a model's base parameters, and the records of these logs.

        Args:
            model, base: model of the equations and its base parameters.
            blocks: intervals of time kept separate, for cross-validation and standard errors.
            threads: number of threads for logs in memory.
            equations: equations of the logs in memory, if available.
        """
        if self.is_in_memory:
            own = prepared_equations(model, self.samples, base) if equations is None else equations
            left_out = tuple(self.failures[k] for k in sorted(self.failures))
            return fold(own, blocks=blocks, threads=threads), log_folds.FoldedLogs((), left_out,
                                                                         self.preparation or Preparation())
        assert self.preparation is not None
        job = log_folds.FoldJob(model, base, self.robot, self.preparation, max(1, blocks))
        folding = log_folds.Folding.start(self.logs, job, self.in_memory, self.store, self.failures)
        return log_folds.sum_folds(folding, self.workers, blocks, self.progress)

    @property
    def facts(self) -> tuple[LogFacts, ...]:
        """Rows, duration and notes of the logs in memory."""
        return tuple(LogFacts.from_recording(one, "identification") for one in self.recordings)


def _leave_out_copies(in_memory: dict[int, log_folds.LogInMemory], failures: dict[int, log_folds.Failure]) -> None:
    """Move logs with the same content as an earlier one to the excluded logs."""
    owners: dict[str, str] = {}
    for place in sorted(in_memory):
        recording = in_memory[place].recording
        assert recording is not None
        owner = owners.setdefault(in_memory[place].sha256 or recording.source, recording.source)
        if owner != recording.source:
            failures[place] = log_folds.Failure.from_copy(recording.source, "", owner)
            del in_memory[place]

"""Comparison of the robots of a fleet, from settings to results.

All robots of a fleet have one model and one preparation. Later calls with the same settings and store reuse the
choices, so that compressed logs stay comparable.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets import Dataset, LogSource
from dynid.datasets.identifiable import BoundModel, DataFacts, bind_to_data
from dynid.datasets.log_fold import FoldStore, LogFold, ManifestEntry, signature
from dynid.datasets.log_folds import FoldedLogs, Folding, FoldJob, LogInMemory, fold_each, none_usable
from dynid.errors import DynidError, ModelError, NotPossibleError
from dynid.estimate.fitted import fitted_model
from dynid.files import read_small, write_whole
from dynid.fleet.change_detection import LogEstimates, PartChange, Series, changes
from dynid.fleet.outliers import StandingOut, changes_prior, fleet_parts, standing_out
from dynid.fleet.pooling import RobotInformation
from dynid.fleet.prediction_errors import CrossPrediction, commanded, cross_prediction
from dynid.fleet.result import FleetResult, OddLog
from dynid.fleet.robot_fold import RobotFold, level_noise, log_noise
from dynid.fleet.robot_scatter import scatter
from dynid.fleet.settings import FleetSettings
from dynid.fleet.shared import SharedEstimate, consistent_shared_estimate, shared_estimate
from dynid.model import LinearModel, robot_model
from dynid.progress import ProgressCallback, silent
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.preparation import Preparation
from dynid.regression import BaseParameters
from dynid.robot import Robot
from dynid.runs.choices import choose
from dynid.runs.models import make_model, make_robot
from dynid.runs.settings import ModelSettings, RunSettings
from dynid.threads import one_blas_thread
from dynid.workers import Workers

_MAX_TABLE_ROBOTS = 12  # robots in the cross-prediction table: those that differ, then the first ones
_ODD_LOG_RATIO = 2.0  # residual of a log with the model of the robot's other logs, relative to its own residual
MIN_LOGS_FOR_ODD = 3  # logs of a robot, needed to find an odd one
DECIDING_ROBOTS = 5  # robots with which the spread between robots has three degrees of freedom or more
_FILE_FORMAT = 2  # version of the file of choices; a file of another version is replaced


@dataclass(frozen=True)
class FleetOptions:
    """Options of a fleet comparison.

    Attributes:
        store: folder with compressed logs of an earlier comparison.
        workers: processes that compress the logs.
        keep_gone: whether logs that were compressed before and whose files were deleted still count.
    """

    store: Path | None = None
    workers: Workers = field(default_factory=lambda: Workers(1))
    keep_gone: bool = False


@one_blas_thread()
def run_fleet(settings: FleetSettings, options: FleetOptions | None = None,
              progress: ProgressCallback = silent) -> FleetResult:
    """Compress all new logs of a fleet, and compare its robots.

    Compressed logs are stored in a temporary folder if none is given, and read robot by robot.
    """
    options = options or FleetOptions()
    if options.store is not None:
        return _run(settings, options, options.store, progress)
    with TemporaryDirectory(prefix="dynid-folds-") as folder:
        return _run(settings, options, Path(folder), progress)


def _run(settings: FleetSettings, options: FleetOptions, store: Path, progress: ProgressCallback) -> FleetResult:
    started = time.perf_counter()
    progress("searching for logs")
    files = settings.find()
    mapping = LogMapping.from_settings(settings.log, "[log]")
    logs = [LogSource.from_file(file, mapping) for file in files]
    chosen = choices_of_fleet(settings, logs, store, progress)
    robot, model = chosen.robot, chosen.model
    job = FoldJob(model, chosen.base, robot, chosen.preparation, noise=log_noise)
    folding = Folding.start(logs, job, chosen.in_memory, store)
    folded = fold_each(folding, options.workers, lambda done, total: progress(f"{done} of {total} logs compressed"))
    assert folding.store is not None
    if options.keep_gone:
        folded = _with_gone(folding.store, logs, folded)
    if not folded.entries:
        raise none_usable(len(logs), folded.failures)
    result = compare(settings, robot, model, folding.store, folded, progress)
    notes = (*chosen.notes, *result.notes)
    signals = commanded(folded.entries, mapping, robot)
    return replace(result, commanded=signals, notes=notes, run=chosen.settings, seconds=time.perf_counter() - started)


def _with_gone(store: FoldStore, logs: Sequence[LogSource], folded: FoldedLogs) -> FoldedLogs:
    """Return the compressed logs, including those whose files no longer exist."""
    here = {log.place for log in logs}
    have, entries = {entry.sha256 for entry in folded.entries}, list(folded.entries)
    for place, entry in sorted(store.entries.items()):
        if place not in here and entry.sha256 not in have and store.path(entry.sha256).is_file():
            have.add(entry.sha256)
            entries.append(entry)
    return replace(folded, entries=tuple(entries))


def compare(settings: FleetSettings, robot: Robot, model: LinearModel, store: FoldStore, folded: FoldedLogs,
            progress: ProgressCallback) -> FleetResult:
    """Return the comparison of the robots of a fleet, from their compressed logs. The logs are read from the store
    robot by robot, several times, and only sums and estimates are kept."""
    notes = list[str]()
    progress("comparing robots")
    odd = _odd_logs(KeptFolds(store, model, folded.entries))
    sources = {one.source for one in odd}
    same_structure = KeptFolds(store, model, [entry for entry in folded.entries if entry.source not in sources])
    robots = level_noise([RobotFold.from_folds(name, same_structure[name]).summed for name in same_structure])
    logs = tuple(LogEstimates.from_folds(one, same_structure[one.name]) for one in robots)
    spread = scatter(robots, logs)
    known = [RobotInformation.from_fold(one, spread.inflation) for one in robots]
    out = standing_out(robots, known, settings.rate)
    pooled = tuple(out.pooling.member(information, changes_prior(free, out.pooling.size))
                   for information, free in zip(known, out.free, strict=True))
    progress("testing for changes over time")
    changed = _changes(robots, same_structure, out, spread.inflation, settings.rate)
    shared: SharedEstimate | None = None
    try:
        shared = (consistent_shared_estimate if settings.consistent else shared_estimate)(
            robots, settings.own, settings.gains)
    except NotPossibleError as problem:
        notes.append(f"the parameters that are common to all robots could not be estimated: {problem}")
    notes += [spread.crossed.sentence] if spread.crossed is not None else []
    notes += [_undecided(len(robots))] if len(robots) < DECIDING_ROBOTS else []
    cross = _cross(robots, same_structure, out)
    if len(cross.robots) < len(robots):
        notes.append(f"the table of cross-prediction shows {len(cross.robots)} of {len(robots)} robots")
    return FleetResult(settings, robot, model, folded, robots, logs, spread, out, pooled, shared, cross, changed, odd,
                       tuple(notes))


def _undecided(robots: int) -> str:
    """Return a sentence that states which differences a comparison of few robots cannot detect."""
    if robots < 3:
        return (f"{robots} robot{'s' if robots > 1 else ''} cannot show which one differs, nor how much robots of this "
                "type differ naturally; add logs of other robots of the type")
    return (f"{robots} robots show only differences much larger than those among the others: the natural differences "
            f"between robots of this type can be estimated from {DECIDING_ROBOTS} robots on; add logs of other robots "
            "of the type")


def _odd_logs(folds: Mapping[str, list[LogFold]]) -> tuple[OddLog, ...]:
    """Return the logs that disagree with the other logs of their robot. A log disagrees if its residuals with the model
    of the other logs are much larger than with its own model, and this ratio is much larger than that of the other logs
    (median)."""
    odd = []
    for name in folds:
        own = folds[name]
        while len(own) >= MIN_LOGS_FOR_ODD:
            ratios = _ratios(name, own)
            worst = int(np.argmax(ratios))
            usual = float(np.median(np.delete(ratios, worst)))
            if not ratios[worst] > max(_ODD_LOG_RATIO * usual, _ODD_LOG_RATIO):
                break
            odd.append(OddLog(name, own[worst].entry.source, float(ratios[worst])))
            del own[worst]
    return tuple(odd)


def _ratios(name: str, own: Sequence[LogFold]) -> Array:
    """Return for each log (logs,) the ratio of its residuals with the model of the robot's other logs to its residuals
    with its own model, for the joint with the largest ratio."""
    whole = RobotFold.from_folds(name, own)
    ratios = np.ones(len(own))
    for k, fold in enumerate(own):
        try:
            rest = RobotFold.from_folds(name, [one for one in own if one is not fold], whole.weights).solution
            mine = RobotFold.from_folds(name, [fold], whole.weights).solution
        except NotPossibleError:
            continue
        if not np.all(rest.identified):
            continue
        rows = np.maximum(np.array(fold.regression.rows, dtype=float), 1.0)
        spare = np.maximum(rows - [len(factor.columns) for factor in fold.regression.factors], 0.1 * rows)
        least = np.maximum(fold.regression.misfits(mine.beta) / spare, 1e-300)
        ratios[k] = float(np.sqrt(np.max(fold.regression.misfits(rest.beta) / rows / least)))
    return ratios


def _changes(robots: Sequence[RobotFold], folds: Mapping[str, list[LogFold]], out: StandingOut, inflation: float,
             rate: float) -> tuple[PartChange, ...]:
    """Return the changes of every robot over time; logs without a date are used in the given order."""
    base = out.pooling.base
    parts = fleet_parts(base, robots[0].regression.joints)
    changed: list[PartChange] = []
    for robot, free in zip(robots, out.free, strict=True):
        own = folds[robot.name]
        levels = _log_levels(robot, own)
        logs = tuple(RobotInformation.from_fold(RobotFold.from_folds(robot.name, [fold], robot.weights),
                                                inflation * level)
                     for fold, level in zip(own, levels, strict=True))
        prior = out.pooling.prior + changes_prior(free, out.pooling.size)
        series = Series(robot.name, tuple(fold.entry.date for fold in own), logs, out.pooling.mean, prior, base.names)
        # Correction for multiple tests: one per robot.
        changed += changes(series, parts, rate / len(robots))
    return tuple(changed)


def _log_levels(robot: RobotFold, own: Sequence[LogFold]) -> list[float]:
    """Return for each log the ratio of the robot's noise level to that of the log's own residuals, at least one."""
    if robot.noise is None or any(fold.noise is None for fold in own):
        return [1.0] * len(own)
    power = robot.weights ** 4
    rows = sum(np.array(fold.regression.rows, dtype=float) for fold in own)
    whole = sum(w * float(np.trace(one)) for w, one in zip(power, robot.noise, strict=True))
    levels = []
    for fold in own:
        assert fold.noise is not None
        mine = sum(w * float(np.trace(one)) for w, one in zip(power, fold.noise, strict=True))
        share = float(np.sum(fold.regression.rows) / np.sum(rows))
        levels.append(float(np.sqrt(max(whole * share / mine, 1.0))) if mine > 0 else 1.0)
    return levels


def _cross(robots: Sequence[RobotFold], folds: Mapping[str, list[LogFold]], out: StandingOut) -> CrossPrediction:
    first = [k for name in out.robots for k, robot in enumerate(robots) if robot.name == name]
    places = sorted([*first, *(k for k in range(len(robots)) if k not in first)][:_MAX_TABLE_ROBOTS])
    shown = [robots[k] for k in places]
    return cross_prediction(shown, [folds[robot.name] for robot in shown])


class KeptFolds(Mapping[str, list[LogFold]]):
    """Compressed logs of each robot by name, ordered by date and source; read from the store on demand."""

    def __init__(self, store: FoldStore, model: LinearModel, entries: Sequence[ManifestEntry]) -> None:
        self._store, self._model = store, model
        self._entries: dict[str, list[ManifestEntry]] = {entry.robot: [] for entry in entries}
        for entry in sorted(entries, key=lambda one: (one.date, one.source)):
            self._entries[entry.robot].append(entry)

    def __getitem__(self, robot: str) -> list[LogFold]:
        return [self._store.load(entry, self._model) for entry in self._entries[robot]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, eq=False)
class FleetChoices:
    """Model and preparation of a fleet.

    Attributes:
        settings: settings of a run on the fleet's logs, with friction and cut-off chosen.
        robot: the robot type.
        model, base: model of all robots, with terms set from the data, and its base parameters.
        preparation: filter options of all logs.
        notes: sentences on the choices.
        in_memory: logs that were read for the choices, by index in the list of logs.
    """

    settings: RunSettings
    robot: Robot
    model: LinearModel
    base: BaseParameters
    preparation: Preparation
    notes: tuple[str, ...] = ()
    in_memory: Mapping[int, LogInMemory] = field(default_factory=dict)


def choices_of_fleet(settings: FleetSettings, logs: Sequence[LogSource], store: Path,
                     progress: ProgressCallback) -> FleetChoices:
    """Return the model and preparation that are stored in a folder; if nothing is stored, choose and store them."""
    asked = settings.run_settings(tuple(log.source for log in logs), settings.prepare)
    robot = make_robot(asked)
    path = store / f"choices-{_key(settings, robot)}.json"
    kept = _kept(path)
    if kept is not None:
        run = asked.model_copy(update={"model": ModelSettings.model_validate(kept["model"]),
                                       "prepare": kept["preparation"]})
        whole = _bound(make_model(run, robot), DataFacts(tuple(kept["unmeasured"])), run)
        own = robot_model(whole.model)
        model = whole.model if own is None else own.with_learned(kept["learned"])
        return FleetChoices(run, robot, model, whole.base, Preparation.from_settings(kept["preparation"]),
                            tuple(kept["notes"]))
    chosen = choose(asked, robot, Dataset.open(logs, robot, progress=progress), progress)
    preparation, samples = chosen.dataset.preparation, chosen.dataset.samples
    assert preparation is not None
    notes = list(chosen.notes) if chosen.cutoff is None else [chosen.cutoff.step, *chosen.notes]
    run = chosen.settings.model_copy(update={"prepare": preparation.as_table()})
    facts = DataFacts.from_samples(samples)
    whole = _bound(make_model(run, chosen.robot), facts, run)
    model = fitted_model(whole.model, samples, whole.base)
    table = {"model": run.model.model_dump(mode="json"), "preparation": preparation.as_table(), "notes": notes,
             "learned": getattr(model, "learned", {}), "unmeasured": facts.unmeasured}
    with write_whole(path) as file:
        json.dump(table, file, indent=1)
    return FleetChoices(run, robot, model, whole.base, preparation, tuple(notes), chosen.dataset.in_memory)


def _bound(model: LinearModel, facts: DataFacts, run: RunSettings) -> BoundModel:
    """Return the model of a fleet bound to its data; raise an error for known values that are not exact."""
    whole = bind_to_data(model, facts, run.known)
    if whole.prior is not None:
        raise ModelError(f"a fleet supports only exactly known parameters; give {', '.join(whole.prior.known)} without "
                         "a standard deviation, or remove them", code="needs-exact-values")
    return whole


def _key(settings: FleetSettings, robot: Robot) -> str:
    table = settings.model_dump(mode="json", include={"model", "log", "prepare", "gravity", "only", "lock", "known"})
    return signature(_FILE_FORMAT, table, robot.name, robot.joint_names, settings.robot)


def _kept(path: Path) -> dict[str, Any] | None:
    """Return the choices stored in a file; None if the file does not exist."""
    try:
        table = json.loads(read_small(path))
        return {name: table[name] for name in ("model", "preparation", "notes", "learned", "unmeasured")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise DynidError(f"{path} does not contain the chosen model and preparation of a fleet; remove the file, and "
                         "the next call chooses them again") from None

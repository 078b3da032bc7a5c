"""A run on any number of logs, wherever they lie: folded by workers, identified from the fold alone."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.choice import AUTO
from dynid.estimate.earlier import with_prior
from dynid.model.held import held_values
from dynid.plain import finite
from dynid.progress import Tell
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import prepare
from dynid.recording.read import read
from dynid.regression.fold_logs import FoldedLogs, FoldOptions, fold_logs
from dynid.robot import Robot
from dynid.runs.earlier import from_prior
from dynid.runs.logs import LogSettings
from dynid.runs.models import make_model, make_robot
from dynid.runs.result_folder import new_result
from dynid.runs.results import ESTIMATE, PARAMETERS, REGRESSION, SETTINGS
from dynid.runs.settings import RunSettings
from dynid.runs.toml import dumps
from dynid.validate import Reconstruction, reconstruct
from dynid.version import __version__
from dynid.workers import Workers

LOGS = "logs.json"
_METHOD = "wls"  # where none is named: choosing one takes all the data at once
_BLOCKS = 20  # stretches of time kept apart, from which deviations are found


@dataclass(frozen=True, eq=False)
class FoldedRun:
    """What a folded run found. validations: on the logs named for that. seconds: it took. notes: what else to know."""

    settings: RunSettings
    robot: Robot
    problem: Problem
    estimate: Estimate
    folded: FoldedLogs
    validations: tuple[Reconstruction, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What `dynid identify --json` says of it; numbers that are not finite are None."""
        estimate, fit = self.estimate, self.estimate.diagnostics
        return {
            "method": estimate.method, "robot": self.robot.name, "parameters": {
                name: {"value": finite(value), "std": finite(std), "rel_std": finite(share), "unit": unit,
                       "expression": expression, "identified": bool(known)}
                for name, value, std, share, unit, expression, known in zip(
                    estimate.names, estimate.values, estimate.std, estimate.relative_std, estimate.base.units,
                    estimate.base.expressions, estimate.identified, strict=True)},
            "known": estimate.known, "relative_error": finite(fit.relative_error),
            "relative_error_per_joint": [finite(x) for x in fit.relative_error_per_joint], "rank": fit.rank,
            "condition": finite(fit.condition), "uncertainty": estimate.cov_type,
            "consistent": fit.get("consistent"), "validation": [one.to_dict() for one in self.validations],
            "logs": [entry.to_dict() for entry in self.folded.entries],
            "failures": [{"source": one.source, "reason": one.reason, "code": one.code}
                         for one in self.folded.failures],
            "copies": dict(self.folded.copies), "preparation": self.folded.common.to_dict(), "read": self.folded.read,
            "notes": list(self.notes), "elapsed_s": self.seconds}


def run_folded(settings: RunSettings, workers: Workers, store: Path | None = None,
               tell: Tell = lambda sentence: None) -> FoldedRun:
    """Fold all logs that the settings' sources stand for, and identify from the sum.

    store: folder of folds to go on from. What needs the samples themselves (simulation, most of the verdict) is left
    out.
    """
    begun = time.perf_counter()
    settings, earlier = from_prior(settings)
    sources = [_source(one) for one in settings.unloaded]
    robot = make_robot(settings)
    model = make_model(settings, robot)
    options = FoldOptions(LogMapping.of(settings.log, "[log]"), Preparation.of(settings.prepare, "[prepare]"), robot,
                          store=store, workers=workers)
    tell("folding")
    total, folded = fold_logs(model, sources, options, blocks=max(settings.blocks, _BLOCKS),
                              progress=lambda done, count: tell(f"{done} of {count} logs folded"))
    known = {**held_values(robot), **settings.known}
    if known:
        total = total.given(known)
    problem, weight = Problem(model, total, nominal=model.parameters.nominal), None
    if earlier is not None:
        problem, weight = with_prior(problem, earlier)
    method = _METHOD if settings.method == AUTO else settings.method
    tell(f"identifying by {method}")
    estimate = identify(problem, method=method, **settings.options)
    found = []
    for one in settings.validate_on:
        tell("validating")
        samples = prepare(read(_source(one), options.mapping, robot), folded.preparation)
        found.append(reconstruct(estimate, samples))
    notes = () if weight is None else (weight.sentence,)
    return FoldedRun(settings, robot, problem, estimate, folded, tuple(found), time.perf_counter() - begun, notes)


def _source(log: Any) -> str:
    if isinstance(log, LogSettings) and (log.own or log.payload or len(log.files) > 1):
        raise ModelError(f"log {log.label} has settings of its own, and logs that workers fold are all read alike; "
                         "give such logs without --workers, --scheduler and --folds")
    return log.files[0] if isinstance(log, LogSettings) else log if isinstance(log, str) else log[0]


def save_folded(run: FoldedRun, folder: Path) -> dict[str, str]:
    """Write values, fold, settings and the list of logs into a folder, all or nothing; paths by what they are."""
    folder, facts = Path(folder), run.to_dict()
    settings = run.settings.model_copy(update={"prepare": run.folded.preparation.as_table()}).moved(Path(), folder)
    with new_result(folder) as new:
        text = "# Base parameters with one-sigma deviations (rel_std in percent), SI units.\n" + dumps({
            "result": {"dynid": __version__, "method": facts["method"], "robot": facts["robot"],
                       "relative_error": facts["relative_error"] or 0.0, "rank": facts["rank"] or 0},
            "base": {name: {key: value for key, value in one.items() if value is not None}
                     for name, one in facts["parameters"].items()}})
        (new / PARAMETERS).write_text(text, encoding="utf-8", newline="")
        run.estimate.save(new / ESTIMATE)
        run.problem.regression.save(new / REGRESSION)
        (new / SETTINGS).write_text(settings.as_toml(f"Repeat with: dynid identify {SETTINGS} -o FOLDER"),
                                    encoding="utf-8", newline="")
        said = {"logs": facts["logs"], "failures": facts["failures"], "copies": facts["copies"]}
        (new / LOGS).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    named = {"parameters": PARAMETERS, "estimate": ESTIMATE, "regression": REGRESSION, "settings": SETTINGS,
             "logs": LOGS}
    return {what: str(folder / name) for what, name in named.items()}


def expanded(settings: RunSettings) -> RunSettings:
    """The settings with patterns among their logs replaced by the files they stand for."""
    from dynid.recording.log_files import find_logs

    def each(logs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(name for log in logs for name in (
            [one.source for one in find_logs(log)] if isinstance(log, str) and "://" not in log and any(
                sign in log for sign in "*?[") and not Path(log).exists() else [log]))

    return settings.model_copy(update={"logs": each(settings.logs), "validate_on": each(settings.validate_on)})

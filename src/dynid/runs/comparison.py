"""Comparison of several methods on the same compressed data, and of two earlier results."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynid.datasets.log_fold import LogFacts
from dynid.errors import DynidError, NotPossibleError
from dynid.estimate import Estimate, identify
from dynid.estimate.problem import find_method
from dynid.estimate.torque_errors import with_torque_errors
from dynid.output_fields import map_of, output_fields, record
from dynid.progress import Progress, ProgressCallback, silent
from dynid.recording import Samples
from dynid.recording.preparation import Preparation
from dynid.report import ReportData
from dynid.runs.arguments import settings_for_other_logs
from dynid.runs.identification import Run, judge, own_logs, simulated
from dynid.runs.loading import Resting, load_problem, prepared
from dynid.runs.models import make_robot
from dynid.runs.results import load, load_regression
from dynid.runs.settings import RunSettings
from dynid.validate import Reconstruction, SimulationCheck, reconstruct
from dynid.validate.comparison import EstimateComparison
from dynid.validate.comparison import compare as compare_estimates
from dynid.validate.equation_counts import Counted, MovingErrors, moving_errors

_COMPARED_METHOD = record("ComparedMethod", method=str, relative_error=float | None,
                          relative_error_per_joint=list[float | None], moving=MovingErrors,
                          validation=list[float | None],
                          validation_moving=list[MovingErrors], simulation=list[SimulationCheck],
                          consistent=bool | None, rank=int | None, elapsed_s=float)
_COMPARED_VALUE = record("ComparedValue", value=float | None, std=float | None)


@dataclass(frozen=True, eq=False)
class ComparedMethods:
    """A run with full validation for the first method, and the estimates of the others.

    Attributes:
        run: the run of the first method.
        names: the methods as requested, one per estimate; the estimate of "auto" has another name.
        estimates, seconds: estimate of each method, and its computing time, s.
        validations: torque predictions of each method on the validation logs.
        simulations: simulations of every method under the logs' torques; empty if not requested.
        failures: methods that failed, with reasons.
    """

    run: Run
    names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    validations: tuple[tuple[Reconstruction, ...], ...]
    seconds: tuple[float, ...]
    simulations: tuple[tuple[SimulationCheck, ...], ...]
    failures: Mapping[str, str] = field(default_factory=dict)


def compare(settings: RunSettings, names: Sequence[str], progress: ProgressCallback = silent) -> ComparedMethods:
    """Read and compress the logs once, then run every method with its own options.

    A method that fails is listed with its reason.
    """
    if not names:
        raise DynidError("no method is given", "name the methods to compare, such as --methods wls,irls",
                         code="no-method")
    options = {name: method_options(settings, name) for name in names}
    progress, robot = Progress.from_callback(progress), make_robot(settings)
    loaded = load_problem(settings, robot, progress.part(0.0, 0.35))
    settings, robot = loaded.settings, loaded.robot
    found, estimates, seconds, failures = [], [], [], {}
    each = progress.part(0.35, 0.75)
    for i, name in enumerate(names):
        each(f"identifying by {name}", i / len(names))
        start = time.perf_counter()
        try:
            estimates.append(identify(loaded.problem, method=name, **options[name]))
        except DynidError as problem_found:
            failures[name] = str(problem_found)
            continue
        found.append(name)
        seconds.append(time.perf_counter() - start)
    if not estimates:
        raise NotPossibleError("no method gave an estimate: " + "; ".join(
            f"{name}: {reason}" for name, reason in failures.items()))
    first, estimates = found[0], [with_torque_errors(estimate, loaded.problem) for estimate in estimates]
    run = judge(loaded, estimates[0], settings.model_copy(update={"method": first, "options": options[first]}), robot,
                progress.part(0.75, 0.95))
    validations = tuple(tuple(reconstruct(estimate, one.samples) for one in run.validations) for estimate in estimates)
    # Logs are simulated without a controller, because methods differ most without feedback.
    alone = settings.model_copy(update={"controller": None})
    logs = [(one.samples, None) for one in run.validations] or own_logs(loaded.problem)
    simulations = tuple(simulated(estimate, alone, logs, progress.part(0.95, 1.0)) for estimate in estimates)
    return ComparedMethods(run, tuple(found), tuple(estimates), validations, tuple(seconds), simulations, failures)


def method_options(settings: RunSettings, name: str) -> dict[str, Any]:
    """Return the options of a method: those options of the run that the method has, then [compare.options.METHOD]."""
    for other in settings.compare.options:
        find_method(other)
    known = find_method(name).options
    shared = {option: value for option, value in settings.options.items() if name == settings.method or option in known}
    return {**shared, **settings.compare.options.get(name, {})}


@output_fields(robot=str, methods=map_of(_COMPARED_METHOD), failed=dict[str, str],
               parameters=map_of(map_of(_COMPARED_VALUE)), counted=Counted, counted_text=str, logs=list[LogFacts])
def comparison_facts(result: ComparedMethods) -> dict[str, Any]:
    """Return the comparison of methods as the object that `dynid compare --json` prints."""
    names = result.names
    methods = {name: {
        "method": estimate.method, "relative_error": estimate.diagnostics["relative_error"],
        "relative_error_per_joint": list(estimate.diagnostics["relative_error_per_joint"]),
        "moving": moving_errors(estimate, result.run.samples, result.run.reconstruction.names).to_dict(),
        "validation": [one.total.relative_error for one in validations],
        "validation_moving": [one.moving.to_dict() for one in validations],
        "simulation": [one.to_dict() for one in simulations], "consistent": estimate.diagnostics.get("consistent"),
        "rank": estimate.diagnostics.get("rank"), "elapsed_s": seconds}
        for name, estimate, validations, simulations, seconds in zip(
            names, result.estimates, result.validations, result.simulations, result.seconds, strict=True)}
    base = result.estimates[0].base.names
    parameters = {name: {method: _value(estimate, name) for method, estimate in
                         zip(names, result.estimates, strict=True)} for name in base}
    counted = result.run.reconstruction.counted
    return {"robot": result.run.robot.name, "methods": methods, "failed": dict(result.failures),
            "parameters": parameters, "counted": counted.to_dict(), "counted_text": counted.text,
            "logs": [log.to_dict() for log in result.run.logs]}


def _value(estimate: Estimate, name: str) -> dict[str, float | None]:
    k = estimate.names.index(name)
    std = float(estimate.std[k])
    return {"value": float(estimate.values[k]), "std": std if math.isfinite(std) else None}


def comparison_report(result: ComparedMethods, command: str = "") -> ReportData:
    """Return the data of the report on the first method, with the other methods for comparison."""
    run = result.run
    return ReportData(title=f"{run.robot.name}: {', '.join(result.names)}",
                      robot=run.robot, estimate=run.estimate, others=result.estimates[1:], samples=run.samples,
                      reconstruction=run.reconstruction, validations=run.validations, simulations=run.simulations,
                      cross_validation=run.cross, physics=run.physics, cutoff_choice=run.choice,
                      cutoff_dependence=run.dependence, verdict=run.verdict, command=command,
                      notes=(*run.notes, *(f"{name} gave no estimate: {why}" for name, why in result.failures.items())),
                      settings=run.settings.as_toml(), seconds=sum(result.seconds))


@dataclass(frozen=True, eq=False)
class ComparedResults:
    """Comparison of result a with result b, each given by its folder."""

    result_a: str
    result_b: str
    comparison: EstimateComparison

    @output_fields(EstimateComparison, result_a=str, result_b=str)
    def to_dict(self) -> dict[str, Any]:
        """Return the comparison of two results as plain data for JSON."""
        return {"result_a": self.result_a, "result_b": self.result_b, **self.comparison.to_dict()}


def compare_results(folder_a: str, folder_b: str, logs: Sequence[str] = (), log: Mapping[str, Any] | None = None,
                    progress: ProgressCallback = silent, *, trust: bool = False) -> ComparedResults:
    """Compare two results of one robot on the logs of the first result, and on further logs.

    Logs are prepared like those of the first result. log: overrides the [log] table of that result; trust: see `load`.
    """
    progress("reading the results")
    (a, settings), (b, _) = load(folder_a, trust=trust), load(folder_b, trust=trust)
    samples: list[Samples] = []
    if logs:
        settings, resting = settings_for_other_logs(settings, {"log": log}, folder_a), list[Resting]()
        samples = [one for _, one in prepared(logs, settings, make_robot(settings),
                                              Preparation.from_settings(settings.prepare).elsewhere(), progress,
                                              resting)]
        if not samples:
            raise resting[0].problem
    progress("comparing")
    found = compare_estimates(a, b, samples, (load_regression(folder_a, a), load_regression(folder_b, b)))
    if not found.names and not found.torques:
        raise DynidError(f"{folder_a} and {folder_b} have no parameter in common; give a log on which their torques "
                         "can be compared")
    return ComparedResults(folder_a, folder_b, found)

"""A run, or a comparison of methods, as a job, stored as a result with everything that the page shows."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.estimate import Estimate
from dynid.estimate.export import WrittenFile
from dynid.files import write_json
from dynid.progress import Progress
from dynid.recording import Samples
from dynid.report import ReportData, write_report
from dynid.report.figure import thinned_rows
from dynid.report.words import joint_units
from dynid.runs.comparison import ComparedMethods, compare, comparison_facts, comparison_report, method_options
from dynid.runs.identification import Run, run
from dynid.runs.results import facts, save
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.log import replay
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel
from dynid.studio.workspace import FACTS
from dynid.validate import Reconstruction, cross_validate
from dynid.validate.friction_shape import FrictionShape, friction_shapes
from dynid.validate.grade import Grade

_CURVE_POINTS = 3000  # points of a log's curves
_CURVE_DIGITS = 6
GRADES: dict[Grade, str] = {"good": "good", "usable": "fair", "not usable": "poor"}  # colours of the page
_BAND_STD = 2.0  # standard errors on each side of a friction curve
_METHOD_TIMEOUT = 20.0  # s: longest cross-validation of one method


def run_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Identify with the given settings. Return the id of the result."""
    progress = Progress(voice.progress)
    settings = run_settings(bounds)
    with bounds.trusting(settings.robot, *([settings.model.python] if settings.model.python else [])):
        found = run(settings, progress.part(0.0, 0.85))
        identity = str(params["id"])
        progress("writing the results", 0.85)
        keep_run(found, Path("results") / identity, progress)
    return {"result": identity, "sentence": found.verdict.headline, "grade": GRADES[found.verdict.grade]}


def keep_run(found: Run, folder: Path, progress: Progress, more: Mapping[str, Any] | None = None,
             report: ReportData | None = None) -> None:
    """Write a run and the data that the page shows; the file that marks the result as complete is written last.

    Args:
        more: further curves, such as those of compared methods.
        report: replaces the run's own report.
    """
    files: list[WrittenFile] = []
    save(found, folder, repeat_command(folder), report=report is None, add_file=files.append)
    if report is not None:
        write_report(report, folder / "report.html")
    write_json(folder / "results.json", facts(found, *files))
    progress("drawing", 0.95)
    curves = {**run_curves(found), **(more or {})}
    (folder / "curves.json").write_text(json.dumps(curves, allow_nan=False, separators=(",", ":")), encoding="utf-8")
    write_mjcf(found, folder / "robot.xml")
    keep_meta(folder, "run" if more is None else "compare", found.estimate.method, found.robot.name,
              found.estimate.diagnostics.relative_error)


def write_mjcf(found: Run, path: Path) -> None:
    """Write the identified robot as MJCF, if its parameters allow it; the report states why not."""
    if found.estimate.theta is None:
        return
    try:
        found.estimate.to_mjcf(path, samples=found.samples)
    except DynidError:
        path.unlink(missing_ok=True)


def keep_meta(folder: Path, kind: str, method: str | None, robot: str, error: float | None, **more: Any) -> None:
    """Write the facts of a result, which mark the result as complete. more: facts on results of this kind only."""
    write_json(folder / FACTS, {"kind": kind, "method": method, "robot": robot,
                               "relative_error": None if error is None else float(error),
                               "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **more})


def repeat_command(folder: Path) -> str:
    """Return the `dynid identify` command that gives the same result."""
    return f"dynid identify {folder.resolve() / 'run.toml'} -o FOLDER"


def run_curves(found: Run) -> dict[str, Any]:
    """Return all data that the page draws for a run."""
    logs = [(found.reconstruction, "identification"), *((one, "validation") for one in found.validations)]
    return {
        "logs": [facts for one, role in logs for facts in log_curves(found, one, role)],
        "parameters": parameter_facts(found),
        "friction": [friction_facts(one) for one in friction_shapes(found.reconstruction)],
        "cross": None if found.cross is None else found.cross.to_dict(),
        "verdict": {"grade": GRADES[found.verdict.grade], "lines": list(found.verdict.summary.lines),
                    "headline": found.verdict.headline, "sentences": [
            {"code": one.code, "text": one.text, "hint": one.title, "severity": one.severity, "kind": one.kind,
             "joints": list(one.joints)} for one in found.verdict.findings]},
        "joints": list(found.reconstruction.names), "units": unit_facts(found),
        "notes": list(found.notes), "methods": None}


def unit_facts(found: Run) -> list[dict[str, str]]:
    """Return the units of position, velocity and torque of each joint."""
    return [{"position": one.position, "velocity": one.velocity, "torque": one.torque}
            for one in joint_units(found.estimate.model, found.robot)]


def log_curves(found: Run, one: Reconstruction, role: str) -> list[dict[str, Any]]:
    """Return motion and torques of each log of a reconstruction, decimated with extremes kept."""
    made = []
    for samples, series in zip(one.samples, one.series, strict=True):
        rows = thinned_rows(np.hstack([series.measured, series.residual]), _CURVE_POINTS)
        q, dq = _at(samples, series.t[rows], samples.q), _at(samples, series.t[rows], samples.dq)
        made.append({
            "name": samples.source, "role": role, "t": plain(series.t[rows], 9), "q": plain(q.T, _CURVE_DIGITS),
            "dq": plain(dq.T, _CURVE_DIGITS), "measured": plain(series.measured[rows].T, _CURVE_DIGITS),
            "predicted": plain(series.predicted[rows].T, _CURVE_DIGITS),
            "residual": plain(series.residual[rows].T, _CURVE_DIGITS),
            "relative_error": plain(one.relative_error), "per_joint": plain(one.relative_error_per_joint),
            **replay(found.robot, samples.t, samples.q, samples.base_pose)})
    return made


def _at(samples: Samples, t: Array, signal: Array) -> Array:
    """Return a signal (rows, dof) at the given times (rows,), each from the first sample that is not earlier."""
    place = np.clip(np.searchsorted(samples.t, t), 0, len(samples.t) - 1)
    return signal[place]


def parameter_facts(found: Run) -> list[dict[str, Any]]:
    """Return base parameters with their standard errors and how well each is determined."""
    estimate: Estimate = found.estimate
    return [{"name": name, "meaning": meaning, "expression": expression, "unit": unit,
             "value": plain(value), "std": plain(std), "relative": plain(share), "status": "well determined" if well
             else "poorly determined" if poor else "not identified"}
            for name, meaning, expression, unit, value, std, share, well, poor in zip(
                estimate.names, estimate.base.meanings, estimate.base.expressions, estimate.base.units,
                estimate.values, estimate.std, estimate.relative_std, estimate.well_determined,
                estimate.poorly_determined, strict=True)]


def friction_facts(one: FrictionShape) -> dict[str, Any]:
    """Return the friction of a joint over velocity with a band of two standard errors, and medians of the data."""
    return {"joint": one.joint, "dq": plain(one.velocity, _CURVE_DIGITS), "torque": plain(one.torque, _CURVE_DIGITS),
            "low": plain(one.torque - _BAND_STD * one.std, _CURVE_DIGITS),
            "high": plain(one.torque + _BAND_STD * one.std, _CURVE_DIGITS),
            "points_dq": plain(one.centres, _CURVE_DIGITS), "points_torque": plain(one.medians, _CURVE_DIGITS),
            "points_low": plain(one.low, _CURVE_DIGITS), "points_high": plain(one.high, _CURVE_DIGITS)}


def compare_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Run every method on the same data. The stored result is that of the first method, with the other methods for
    comparison."""
    progress = Progress(voice.progress)
    settings = run_settings(bounds)
    names = params.get("methods")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DynidError("name at least one method to compare", where="methods")
    with bounds.trusting(settings.robot, *([settings.model.python] if settings.model.python else [])):
        found = compare(settings, names, progress.part(0.0, 0.8))
        cross = _cross_errors(found, progress.part(0.8, 0.9))
        folder = Path("results") / str(params["id"])
        progress("writing the results", 0.9)
        facts = comparison_facts(found)
        more = {"methods": _methods(found, cross), "compared_parameters": facts["parameters"]}
        keep_run(found.run, folder, progress, more, comparison_report(found, repeat_command(folder)))
    return {"result": folder.name, "sentence": f"{len(found.names)} methods compared"}


def _cross_errors(found: ComparedMethods, progress: Progress) -> list[float | None]:
    """Return the cross-validation error of each method, percent, or None if it would take too long."""
    problem, settings = found.run.problem, found.run.settings
    blocks, errors = len(problem.regression.blocks), list[float | None]()
    for i, (name, estimate, seconds) in enumerate(zip(found.names, found.estimates, found.seconds, strict=True)):
        progress(f"cross-validating {name}", i / len(found.names))
        quick = blocks > 2 and (seconds * blocks < _METHOD_TIMEOUT or estimate.left_out is not None)
        try:
            errors.append(float(cross_validate(problem, name, estimate=estimate,
                                               options=method_options(settings, name)).mean) if quick else None)
        except NotPossibleError:
            errors.append(None)
    return errors


def _methods(found: ComparedMethods, cross: list[float | None]) -> list[dict[str, Any]]:
    """Return one row per method; methods without an estimate are last, with the reason."""
    made = [{"name": name, "method": estimate.method, "relative_error": plain(estimate.diagnostics.relative_error),
             "validation_error": plain(max((one.relative_error for one in others), default=float("nan"))),
             "cross_error": error, "consistent": estimate.diagnostics.get("consistent"), "seconds": seconds,
             "notes": [note.text for note in estimate.notes]}
            for name, estimate, others, seconds, error in zip(
                found.names, found.estimates, found.validations, found.seconds, cross, strict=True)]
    return [*made, *({"name": name, "method": name, "relative_error": None, "validation_error": None,
                      "cross_error": None, "consistent": None, "seconds": None, "notes": [why]}
                     for name, why in found.failures.items())]

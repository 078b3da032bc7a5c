"""A run as a job, stored as a result with everything that the page shows."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.errors import DynidError
from dynid.files import write_json
from dynid.progress import Progress
from dynid.report import ReportData, write_report
from dynid.runs.identification import Run, run
from dynid.runs.results import facts, save
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.curves import run_curves
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel
from dynid.studio.workspace import FACTS


def run_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Identify with the given settings. Return the id of the result."""
    tell = Progress(voice.progress)
    settings = run_settings(bounds)
    with bounds.trusting(settings.robot, *([settings.model.python] if settings.model.python else [])):
        found = run(settings, tell.part(0.0, 0.85))
        identity = str(params["id"])
        tell("writing the results", 0.85)
        keep_run(found, Path("results") / identity, tell)
    return {"result": identity, "sentence": found.verdict.headline}


def keep_run(found: Run, folder: Path, tell: Progress, more: Mapping[str, Any] | None = None,
             report: ReportData | None = None) -> None:
    """Write a run with what the page shows of it; the file that marks it as complete is written last.

    Args:
        more: further curves, such as those of compared methods.
        report: replaces the run's own report.
    """
    save(found, folder, repeat_command(folder), report=report is None)
    if report is not None:
        write_report(report, folder / "report.html")
    write_json(folder / "results.json", facts(found))
    tell("drawing", 0.95)
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
        found.estimate.to_mjcf(path)
    except DynidError:
        path.unlink(missing_ok=True)


def keep_meta(folder: Path, kind: str, method: str | None, robot: str, error: float | None) -> None:
    """Write the facts of a result, which mark it as complete."""
    write_json(folder / FACTS, {"kind": kind, "method": method, "robot": robot,
                               "relative_error": None if error is None else float(error),
                               "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})


def repeat_command(folder: Path) -> str:
    """Return the command that gives the same numbers."""
    return f"dynid identify {folder.resolve() / 'run.toml'} -o FOLDER"

"""Comparison of several methods as a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.errors import DynidError, NotPossibleError
from dynid.progress import Progress
from dynid.runs.comparison import ComparedMethods, compare, comparison_facts, comparison_report, method_options
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.run import keep_run, repeat_command
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel
from dynid.validate import cross_validate

_METHOD_TIMEOUT = 20.0  # s that cross-validation of one method may take


def compare_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Run every method on the same data. The result is that of the first, with the others for comparison."""
    tell = Progress(voice.progress)
    settings = run_settings(bounds)
    names = params.get("methods")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DynidError("name at least one method to compare", where="methods")
    with bounds.trusting(settings.robot, *([settings.model.python] if settings.model.python else [])):
        found = compare(settings, names, tell.part(0.0, 0.8))
        cross = _cross_errors(found, tell.part(0.8, 0.9))
        folder = Path("results") / str(params["id"])
        tell("writing the results", 0.9)
        facts = comparison_facts(found)
        more = {"methods": _methods(found, cross), "compared_parameters": facts["parameters"]}
        keep_run(found.run, folder, tell, more, comparison_report(found, repeat_command(folder)))
    return {"result": folder.name, "sentence": f"{len(found.names)} methods compared"}


def _cross_errors(found: ComparedMethods, tell: Progress) -> list[float | None]:
    """Return the cross-validation error of each method, percent, or None if it would take too long."""
    problem, settings = found.run.problem, found.run.settings
    blocks, errors = len(problem.regression.blocks), list[float | None]()
    for i, (name, estimate, seconds) in enumerate(zip(found.names, found.estimates, found.seconds, strict=True)):
        tell(f"cross-validating {name}", i / len(found.names))
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

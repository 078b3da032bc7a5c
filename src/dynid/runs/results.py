"""Writing and reading of a result folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.datasets.log_fold import LogFacts
from dynid.errors import DynidError, ModelError, RecordingError
from dynid.estimate import Estimate
from dynid.estimate.choice import Choice
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.estimate.export import WrittenFile, compare_file
from dynid.estimate.friction_choice import FrictionChoice
from dynid.estimate.iterations import Iteration
from dynid.estimate.nearest_robot import consistent_robot
from dynid.estimate.reduction import Essential
from dynid.files import toml_file, try_folder
from dynid.findings import Note
from dynid.model import robot_model
from dynid.output_fields import array_of, map_of, output_fields, record
from dynid.plain import finite, plain
from dynid.regression import Regression
from dynid.report import ReportData, write_report
from dynid.robot.write_urdf import plain_urdf
from dynid.runs.identification import Run
from dynid.runs.loading import control_law
from dynid.runs.models import make_model
from dynid.runs.remedies import improve_command, remedy
from dynid.runs.result_folder import MANIFEST, new_result, owned, read_result
from dynid.runs.settings import RunSettings
from dynid.runs.toml import dumps
from dynid.validate.conclusion import Verdict
from dynid.validate.cross_validation import CrossValidation
from dynid.validate.cutoff_influence import CutoffDependence
from dynid.validate.deflection import Deflection
from dynid.validate.equation_counts import Counted, MovingErrors
from dynid.validate.friction_shape import Breakaway
from dynid.validate.hypotheses.gravity import Gravity
from dynid.validate.physical import Physics
from dynid.validate.reconstruction import Reconstruction
from dynid.validate.simulation_check import SimulationCheck
from dynid.validate.tracking import Tracking
from dynid.version import __version__

PARAMETERS, ESTIMATE, REGRESSION = "parameters.toml", "estimate.npz", "regression.npz"
REPORT, SETTINGS, ROBOT, MJCF = "report.html", "run.toml", "robot.urdf", "robot.xml"


PARAMETER = record("BaseParameter", value=float | None, std=float | None, textbook_std=float | None,
                   rel_std=float | None, unit=str, expression=str, identified=bool, poorly_determined=bool)
_LOOPS, _PAYLOAD = "dynid.estimate.loop_fit:ControllerFit", "dynid.payloads.result:PayloadEstimate"
_CUTOFF = record("Cutoff", chosen=CutoffChoice | None, dependence=CutoffDependence | None)
_ESSENTIAL = record("EssentialOnOthers", Essential, validation_before=list[float | None])
_LEFT_OUT = record("LeftOutLog", log=str, reason=str, code=str | None)


@output_fields(method=str, choice=Choice | None, robot=str, parameters=map_of(PARAMETER), identified=int,
               poorly_determined=int, standard_parameters=dict[str, float] | None, known=dict[str, Any],
               relative_error=float | None, relative_error_per_joint=list[float | None], counted=Counted,
               moving=MovingErrors, equations=dict[str, Any], rank=int, condition=float | None, uncertainty=str,
               std_inflation=float | None, estimate_notes=list[Note], shape=Any, consistent=bool | None)
def _estimate_facts(run: Run) -> dict[str, Any]:
    """Return the part of `facts` that describes the estimate, which parameters.toml also contains."""
    estimate, fit = run.estimate, run.estimate.diagnostics
    return {
        "method": estimate.method, "choice": estimate.diagnostics.get("choice"), "robot": run.robot.name,
        "parameters": parameter_facts(estimate),
        "identified": int(estimate.well_determined.sum()),
        "poorly_determined": int(estimate.poorly_determined.sum()),
        "standard_parameters": None if estimate.theta is None else {
            name: float(value) for name, value in zip(run.model.parameters.names, estimate.theta, strict=True)},
        "known": estimate.known,
        "relative_error": finite(fit.relative_error),
        "relative_error_per_joint": [finite(x) if rows else None for x, rows in
                                     zip(fit.relative_error_per_joint, fit.rows_per_joint, strict=True)],
        "counted": run.reconstruction.counted.to_dict(), "moving": run.reconstruction.moving.to_dict(),
        "equations": fit.get("equations", {"kind": "torque"}),
        "rank": fit.rank, "condition": finite(fit.condition), "uncertainty": estimate.cov_type,
        "std_inflation": finite(estimate.uncertainty.facts.get("std_inflation")),
        "estimate_notes": [note.to_dict() for note in estimate.notes],
        "shape": plain(estimate.diagnostics.get("shape")),
        "consistent": estimate.diagnostics.get("consistent"),
    }


@output_fields(_estimate_facts, validation=list[Reconstruction], simulation=list[SimulationCheck],
               cross_validation=CrossValidation | None, cutoff=_CUTOFF, physics=Physics | None,
               gravity=Gravity | None, friction=FrictionChoice | None, essential=_ESSENTIAL | None,
               iterations=list[Iteration], tracking=list[Tracking], loops=array_of(_LOOPS),
               breakaway=list[Breakaway], deflection=list[Deflection], payloads=array_of(_PAYLOAD),
               verdict=Verdict, logs=list[LogFacts], left_out=array_of(_LEFT_OUT), steps=list[str],
               notes=list[str], written_file=WrittenFile | None, elapsed_s=float)
def facts(run: Run, written_file: WrittenFile | None = None) -> dict[str, Any]:
    """Return the content of `dynid identify --json`; non-finite numbers are None. written_file: see `save`."""
    essential, loops = run.essential, run.controller_fit
    return {**_estimate_facts(run), **plain({
        "validation": run.validations, "simulation": run.simulations, "cross_validation": run.cross,
        "cutoff": {"chosen": run.choice, "dependence": run.dependence}, "physics": run.physics,
        "gravity": run.mounting, "friction": run.friction,
        "essential": None if essential is None else {
            **essential.to_dict(), "validation_before": run.essential_on_others},
        "iterations": [one.to_dict(run.estimate.names) for one in run.estimate.iterations], "tracking": run.tracking,
        "loops": [] if loops is None else loops.to_dict(control_law(run.settings)), "breakaway": run.breakaway,
        "deflection": run.deflections, "payloads": run.payloads, "verdict": run.verdict, "logs": run.logs,
        "left_out": [{"log": one.source, "reason": one.reason, "code": one.code} for one in run.left_out],
        "steps": [step for samples in run.samples for step in samples.steps], "notes": run.notes,
        "written_file": written_file, "elapsed_s": run.seconds})}


def parameter_facts(estimate: Estimate) -> dict[str, dict[str, Any]]:
    """Return the base parameters of an estimate by name, as every command with `--json` writes them.

    textbook_std: standard error for independent rows, None if the method does not give it.
    """
    textbook = estimate.uncertainty.facts.get("textbook_std") or [None] * len(estimate.names)
    return {name: {"value": finite(value), "std": finite(std), "textbook_std": finite(plain_std),
                   "rel_std": finite(relative), "unit": unit, "expression": expression, "identified": bool(well),
                   "poorly_determined": bool(poor)}
            for name, value, std, plain_std, relative, unit, expression, well, poor in zip(
                estimate.names, estimate.values, estimate.std, textbook, estimate.relative_std, estimate.base.units,
                estimate.base.expressions, estimate.well_determined, estimate.poorly_determined, strict=True)}


def check_output(folder: str | Path, force: bool = False) -> None:
    """Refuse a folder that cannot take a result, before the computation. force: whether to replace an earlier result
    and files with its names."""
    if str(folder) == "":
        raise DynidError("the name of the folder for the results is empty; name a folder, or write . for the current "
                         "folder")
    folder = Path(folder)
    try_folder(folder)
    if force:
        return
    if (folder / PARAMETERS).exists() or (folder / MANIFEST).exists():
        raise DynidError(f"{folder} already contains a result; choose another folder or add --force",
                         code="folder-in-use")
    for name in (ESTIMATE, REGRESSION, SETTINGS, REPORT):
        if (folder / name).exists():
            raise DynidError(f"{folder / name} exists already and does not belong to a result; choose another folder, "
                             "or add --force to replace it", code="folder-in-use")


def save(run: Run, folder: str | Path, command: str = "", *, force: bool = False,
         report: bool = True, add_note: Callable[[str], object] = lambda note: None,
         add_file: Callable[[WrittenFile], object] = lambda file: None) -> dict[str, str]:
    """Write a run's results into a folder atomically; return the path of each file by kind.

    An earlier result is only replaced with `force`; other files stay. add_note: receives notes on the written files.
    add_file: receives the torque errors of the written robot file, if it is written.
    """
    folder = Path(folder)
    check_output(folder, force)
    settings = run.settings.model_copy(update={"prepare": dict(run.samples[0].settings)})
    text = settings.moved(Path(), folder).as_toml(f"Repeat with: dynid identify {SETTINGS} -o FOLDER")
    written = {"parameters": PARAMETERS, "estimate": ESTIMATE, "regression": REGRESSION, "settings": SETTINGS}
    with new_result(folder, replace=force) as new:
        (new / PARAMETERS).write_text(parameters_text(run), encoding="utf-8", newline="")
        run.estimate.save(new / ESTIMATE)
        run.problem.regression.save(new / REGRESSION)
        (new / SETTINGS).write_text(text, encoding="utf-8", newline="")
        robot = ROBOT if run.robot.text is not None or plain_urdf(run.robot) is not None else MJCF
        is_written, notes, errors = _save_robot(run, new / robot, folder / robot)
        if is_written:
            written["robot"] = robot
        if errors is not None:
            add_file(errors)
        code, said = _save_code(run, new, folder)
        written |= code
        notes = (*notes, *said)
        for note in notes:
            add_note(note)
        if report:
            run = replace(run, notes=(*run.notes, *notes))
            written["report"] = REPORT
            improve = "" if run.robot.has_free_base else improve_command(run.settings.robot, folder)
            write_report(replace(report_data(run, command, text), improve=improve, written_file=errors), new / REPORT)
    return {what: str(folder / name) for what, name in written.items()}


def _save_robot(run: Run, path: Path, present: Path) -> tuple[bool, tuple[str, ...], WrittenFile | None]:
    """Write a copy of the user's URDF, or an MJCF file, with the identified values; return whether it was written,
    notes, and its torque errors. For base parameters only, the nearest physically consistent robot is written.

    present: final location of the file; a user's file there is kept.
    """
    if present.exists():
        own, belongs = Path(run.settings.robot), present.name in owned(present.parent)
        used = os.path.exists(own) and own.samefile(present)
        if used and belongs:  # the file belongs to the earlier result
            shutil.copyfile(present, path)
        if used or not belongs:
            return False, (f"{path.name} is not written, because the folder contains a file of that name",), None
    if robot_model(run.model) is None:
        return False, (), None
    estimate, notes = run.estimate, list[str]()
    try:
        if estimate.theta is None:
            found = consistent_robot(run.problem, estimate)
            estimate = replace(estimate, theta=found.theta)
            notes.append(f"method {estimate.method} gives base parameters only; this is {found.sentence}")
        notes += (estimate.to_urdf if path.name == ROBOT else estimate.to_mjcf)(path, samples=run.samples)
        errors = compare_file(path, estimate, run.reconstruction.samples, run.reconstruction.series,
                              is_nearest=run.estimate.theta is None)
        return True, tuple(f"{path.name}: {note}" for note in notes), errors
    except DynidError as problem:
        path.unlink(missing_ok=True)
        return False, (f"{path.name} is not written: {problem}",), None


def _save_code(run: Run, new: Path, folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Write the identified model as code in the requested languages; return file names by kind, and notes.

    folder: final location; a file of the user there is kept.
    """
    if not run.settings.output.code:
        return {}, ()
    from dynid.runs.code_files import CodeOptions, code_paths, estimate_program, with_companions, write_code
    options = CodeOptions(languages=with_companions(run.settings.output.code))
    taken = {path.name for path in folder.iterdir()} - owned(folder) if folder.is_dir() else set()
    paths = code_paths(new, run.robot.name, options)
    free = tuple(language for language, path in paths.items() if path.name not in taken)
    notes = tuple(f"{paths[language].name} is not written, because the folder contains a file of that name"
                  for language in options.languages if language not in free)
    try:
        program = estimate_program(run.estimate, options)
        made = write_code(program, replace(options, languages=free), new) if free else {}
    except DynidError as problem:
        return {}, (*notes, f"code is not written: {problem}")
    return {f"code_{language.replace('-', '_')}": path.name for language, path in made.items()}, notes


def parameters_text(run: Run) -> str:
    """Return the text of parameters.toml, which is the same for the same data and settings."""
    said = _estimate_facts(run)
    base = {name: {key: value for key, value in one.items() if value is not None}
            for name, one in said["parameters"].items()}
    moving = {"relative_error_moving": said["moving"]["low_passed"], "relative_error_raw": said["moving"]["raw"]}
    values: dict[str, Any] = {
        "result": {"dynid": __version__, "method": said["method"], "robot": said["robot"],
                   "relative_error": said["relative_error"] or 0.0,
                   **{key: error for key, error in moving.items() if error is not None}, "rank": said["rank"] or 0,
                   "identified": said["identified"], "poorly_determined": said["poorly_determined"]},
        "base": base}
    if said["known"]:
        values["known"] = said["known"]
    if run.essential is not None:
        values["essential"] = {"rule": run.essential.criterion, "left_out": [one.name for one in run.essential.removed],
                               "relative_error_before": run.essential.error_before}
    if said["standard_parameters"] is not None:
        values["standard"] = said["standard_parameters"]
    if said["shape"]:
        values["shape"] = {name: {key: value for key, value in one.items() if value is not None}
                           for name, one in said["shape"].items()}
    return ("# Base parameters with standard errors (rel_std in percent), SI units.\n" + dumps(values))


def report_data(run: Run, command: str, settings: str) -> ReportData:
    """Return the data for the report on an identification run."""
    return ReportData(title=f"{run.robot.name} identified by {run.estimate.method}", robot=run.robot,
                      estimate=run.estimate, samples=run.samples, reconstruction=run.reconstruction,
                      validations=run.validations, simulations=run.simulations, cross_validation=run.cross,
                      physics=run.physics, cutoff_choice=run.choice, cutoff_dependence=run.dependence,
                      friction=run.friction, essential=run.essential, essential_on_others=run.essential_on_others,
                      deflections=run.deflections, breakaway=run.breakaway, payloads=run.payloads, verdict=run.verdict,
                      tracking=run.tracking, controller_fit=run.controller_fit, controller=control_law(run.settings),
                      notes=run.notes, command=command, settings=settings, seconds=run.seconds,
                      corrections={one.text: options for one in run.verdict.of_kind("problem")
                                   if (options := remedy(one, run))})


def load(folder: str | Path, *, trust: bool = False) -> tuple[Estimate, RunSettings]:
    """Return an earlier result from its folder: the estimate with its covariance, and the settings of its run.

    trust: whether a Python file that the result names as its model may be run; without it such a result is refused.
    """
    folder = Path(folder)
    if folder.is_file():
        raise DynidError(f"{folder} is a file, not the folder of a result", "give the folder that `dynid identify -o` "
                         "wrote", "no-result")
    if not folder.is_dir():
        raise DynidError(f"there is no folder {folder}", "give the folder that `dynid identify -o` wrote", "no-result")
    return read_result(folder, lambda place: _load(place, folder, trust))


def load_regression(folder: str | Path, estimate: Estimate) -> Regression | None:
    """Return the compressed regression in the folder of a result; None if there is none for the estimate's model."""
    try:
        return read_result(Path(folder), lambda place: Regression.load(place / REGRESSION, estimate.model))
    except (ModelError, RecordingError):
        return None


def _load(place: Path, folder: Path, trust: bool) -> tuple[Estimate, RunSettings]:
    """Return the result in `place`, whose settings name files relative to `folder`."""
    for name in (PARAMETERS, ESTIMATE, SETTINGS):
        if not (place / name).is_file():
            raise DynidError(f"{folder} contains no result: {name} is missing; identify again")
    settings = RunSettings.from_values(toml_file(place / SETTINGS, RunSettings.file_kind), str(folder / SETTINGS),
                                       trust=trust).moved(folder, Path())
    try:
        estimate = Estimate.load(place / ESTIMATE, make_model(settings))
    except ModelError:
        raise DynidError(f"{folder / ESTIMATE} does not match the robot and terms of {folder / SETTINGS}") from None
    return estimate.with_provenance(folder=str(folder)), settings

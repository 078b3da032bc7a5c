"""Uses of a result as jobs: estimate a payload, and write code for a controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.files import toml_file
from dynid.progress import Progress
from dynid.runs.code_files import CodeOptions, estimate_program, with_companions, write_code
from dynid.runs.payload_result import PayloadOptions, find_payload, save_payload
from dynid.runs.results import load
from dynid.runs.settings import RunSettings
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.log import chosen_log
from dynid.studio.tasks.run import keep_meta
from dynid.studio.tasks.settings import run_settings, trust
from dynid.studio.voice import ProgressChannel
from dynid.studio.workspace import RESULT_ID


def result_folder(params: Mapping[str, Any], bounds: Confinement) -> Path:
    """Return the folder of a result, relative to the workspace, after a check of the files that the result names."""
    identity = params.get("result")
    if not isinstance(identity, str) or not RESULT_ID.fullmatch(identity) or not (
            bounds.folder / "results" / identity / "run.toml").is_file():
        raise DynidError("choose the result of a run first", where="result")
    folder = Path("results") / identity
    trust(bounds)
    named = RunSettings.from_values(toml_file(folder / "run.toml"), "the result's run file").moved(folder, Path())
    bounds.check(named.model_dump(mode="json"))
    return folder


def loaded(params: Mapping[str, Any], bounds: Confinement) -> tuple[Estimate, RunSettings]:
    """Return the estimate and the settings of a stored result."""
    folder = result_folder(params, bounds)
    with bounds.trusting(RunSettings.load(folder / "run.toml").robot):
        return load(folder)


def payload_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Estimate the payload of the robot in one of the run's logs, and return the values to enter into controllers."""
    progress, settings = Progress(voice.progress), run_settings(bounds)
    chosen, folder = chosen_log(params, settings), result_folder(params, bounds)
    table = {**settings.log, **chosen.own}
    with bounds.trusting(settings.robot):
        found = find_payload(folder, [chosen.file], PayloadOptions(frame=params.get("frame") or None),
                             {"log": table} if table else None, progress.part(0.0, 0.9))
    made = Path("results") / str(params["id"])
    progress("writing the results", 0.9)
    command = f"dynid payload {folder} {' '.join(chosen.files)} -o FOLDER"
    save_payload(found, made, command)
    keep_meta(made, "payload", None, found.robot.name, found.payload.relative_error)
    return {"result": made.name, "sentence": f"{found.payload.mass:.4g} kg on {found.payload.frame}"}


def code_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Write the identified model as functions for a controller, one file per language."""
    progress = Progress(voice.progress)
    languages = params.get("languages") or ["c"]
    if not isinstance(languages, list) or not all(isinstance(one, str) for one in languages):
        raise DynidError("the languages of generated code must be a list of names, such as c and "
                         "python", where="languages")
    options = CodeOptions(languages=with_companions(languages))
    estimate, settings = loaded(params, bounds)
    progress("writing the functions", 0.2)
    with bounds.trusting(settings.robot):
        program = estimate_program(estimate, options)
    made = Path("results") / str(params["id"])
    made.mkdir(parents=True)
    paths = write_code(program, options, made)
    keep_meta(made, "code", estimate.method, program.plan.model.robot.name, None)
    return {"result": made.name, "sentence": f"{', '.join(path.name for path in paths.values())} written"}

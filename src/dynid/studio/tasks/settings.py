"""Settings of a run for the page: checked, completed, and as the text of a run file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.errors import DynidError
from dynid.recording.mapping import Mapping as LogMapping
from dynid.robot.robot_files import builtin_names
from dynid.runs.settings import RunSettings, read_table
from dynid.studio.confinement import Confinement, looks_like_file, named_files
from dynid.studio.voice import ProgressChannel

_NOBODY, _NOTHING = "arm3r", "files/none.csv"  # placeholders for a robot and a log that are not selected yet
_REPEAT_LINE = "Repeat with: dynid identify run.toml -o FOLDER"


def open_run(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return the settings of the run file given on the command line; its files are trusted from now on."""
    assert bounds.run is not None
    with bounds.lifted():
        settings = RunSettings.load(bounds.run).moved(Path(), bounds.folder)
    trust(bounds)
    return _shown(settings)


def trust(bounds: Confinement) -> None:
    """Trust the files that the run file of the command line names, without reading it again later."""
    if bounds.run is None or bounds.trusted:
        return
    with bounds.lifted():
        named = read_table(bounds.run, RunSettings.file_kind)
    bounds.trusted = frozenset(Path(os.path.realpath(bounds.run.parent / name)) for _, name in named_files(named))


def checked_settings(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return the checked settings of the page; every file they name may be read."""
    given = {key: _without_nulls(value, key) for key, value in params["settings"].items() if value is not None}
    robot, logs = given.get("robot") or "", given.get("logs") or []
    complete = {**given, "robot": robot or _NOBODY, "logs": logs or [_NOTHING]}
    settings = RunSettings.from_values(complete, "run")
    plain = settings.model_dump(mode="json")
    if robot and not isinstance(robot, str):
        raise DynidError("the robot must be the name of a file or of a built-in robot", where="robot")
    uploaded = {one.relative_to(bounds.files).as_posix() for one in bounds.files.rglob("*") if one.is_file()}
    plain = {**plain, "robot": _placed(plain["robot"], uploaded),
             **{which: [_placed_log(log, uploaded) for log in plain[which]] for which in ("logs", "validate_on")}}
    if not looks_like_file(plain["robot"]) and plain["robot"] not in builtin_names():
        raise DynidError(f"there is no built-in robot '{plain['robot'][:80]}'", f"there are "
                         f"{', '.join(builtin_names())}; or upload a file", where="robot")
    trust(bounds)
    bounds.check({**plain, "logs": plain["logs"] if logs else []})
    LogMapping.from_settings(plain["log"], "[log]")
    settings = RunSettings.from_values(plain, "run")
    return _shown(settings.model_copy(update={} if robot and logs else {
        **({} if robot else {"robot": ""}), **({} if logs else {"logs": ()})}))


def _without_nulls(value: Any, where: str) -> Any:
    """Return a setting without null values, which run files cannot express: the defaults apply."""
    if isinstance(value, dict):
        return {key: _without_nulls(one, f"{where}.{key}") for key, one in value.items() if one is not None}
    if isinstance(value, list):
        if None in value:
            raise DynidError(f"a list in '{where}' has an empty entry", "remove it", where=where)
        return [_without_nulls(one, where) for one in value]
    return value


def _placed(name: str, uploaded: set[str]) -> str:
    """Return a path as in the run file; the folder of an uploaded file may be omitted."""
    return f"files/{name}" if name in uploaded else name


def _placed_log(log: Any, uploaded: set[str]) -> Any:
    if isinstance(log, Mapping):
        return {**log, "file": _placed_log(log["file"], uploaded)}
    return _placed(log, uploaded) if isinstance(log, str) else [_placed(one, uploaded) for one in log]


def _shown(settings: RunSettings) -> dict[str, Any]:
    return {"settings": settings.model_dump(mode="json"), "run_toml": settings.as_toml(_REPEAT_LINE)}


def run_settings(bounds: Confinement, *, logs: bool = True, robot: str | None = None) -> RunSettings:
    """Return the run of the workspace, ready to be executed.

    Args:
        bounds: which files may be read.
        logs: whether the run needs any.
        robot: an uploaded file that replaces the run's robot.
    """
    values = read_table(bounds.folder / "run.toml", RunSettings.file_kind) if (
        bounds.folder / "run.toml").exists() else {}
    values = values if robot is None else {**values, "robot": f"files/{robot}"}
    if not values.get("robot"):
        raise DynidError("no robot is selected", "select or upload one in step 1", where="robot")
    if logs and not values.get("logs"):
        raise DynidError("no log is selected", "upload one in step 3", where="logs")
    settings = RunSettings.from_values({**values, "logs": values.get("logs") or [_NOTHING]}, "run")
    trust(bounds)
    bounds.check({**settings.model_dump(mode="json"), **({} if values.get("logs") else {"logs": []})})
    return settings

"""Settings of a run from files and single settings that a user gives."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from dynid.errors import DynidError
from dynid.files import toml_file, toml_table
from dynid.quantities import finite_number
from dynid.recording import mapping
from dynid.robot import builtin_names
from dynid.runs.settings import RunSettings

Kind = Literal["settings", "robot", "log"]
GAIN_SETTINGS = ("drive_gain", "gain_std", "unmeasured")  # settings of [log] that an estimate of drive gains sets
WINDOW = ("start", "stop")  # settings of [log] that belong to one log, not to a format
_ROBOT_SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro", ".toml")


def command_line(*words: str) -> str:
    """Return a `dynid` command line that reaches this program: `dynid`, or the path by which it was started if the
    shell finds no `dynid` or another one."""
    return shlex.join([*_program(), *words])


def _program() -> list[str]:
    started = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path("dynid")
    if started.name == "__main__.py" and started.parent.name == "dynid":  # python -m dynid
        found = shutil.which("python")
        is_first = found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)
        return ["python" if is_first else _shorter(sys.executable), "-m", "dynid"]
    if started.name != "dynid" or not started.is_file():
        return ["dynid"]  # dynid runs inside another program
    found = shutil.which("dynid")
    return ["dynid" if found is not None and os.path.samefile(found, started) else _shorter(started)]


def _shorter(path: str | Path) -> str:
    """Return a path relative to the working folder if it is inside, otherwise the absolute path."""
    whole, here = os.path.abspath(path), os.getcwd()
    relative = os.path.relpath(whole, here) if os.path.splitdrive(whole)[0] == os.path.splitdrive(here)[0] else whole
    return whole if relative.startswith(os.pardir) else relative if os.sep in relative else os.path.join(".", relative)


def source_kind(source: str | Path) -> Kind:
    """Return the kind of a source: "settings" (a TOML file of a run or study, which names a robot), "log" (any other
    existing file) or "robot" (a URDF, an MJCF, a robot TOML, a built-in name)."""
    path = Path(source)
    if path.suffix.lower() == ".toml":
        return "settings" if "robot" in toml_file(path) else "robot"
    return "log" if os.path.exists(path) and path.suffix.lower() not in _ROBOT_SUFFIXES else "robot"


def run_settings(source: str, logs: Sequence[str] = (), given: Mapping[str, Any] | None = None,
                 assignments: Sequence[str] = (), *, trust: bool = False) -> RunSettings:
    """Return settings from a run file, or from a robot and logs, overridden by `given`.

    Args:
        source: a run file or a robot.
        logs: log files.
        given: settings and tables of settings by name; None for not given.
        assignments: see `assign`.
        trust: whether Python files named by the run file or its prior may be run; model.python in an assignment always
            may.
    """
    if logs:
        robots = [log for log in logs if Path(log).suffix.lower() in _ROBOT_SUFFIXES or log in builtin_names()]
        if robots and source_kind(source) == "log":
            others = [source, *(log for log in logs if log not in robots)]
            raise DynidError(f"'{source}' is a log and '{robots[0]}' a robot: the robot comes first",
                             f"write dynid identify {shlex.join([robots[0], *others])}", code="wrong-order")
        values: dict[str, Any] = {"robot": source, "logs": list(logs)}
    else:
        kind = source_kind(source)
        if kind == "log":
            raise DynidError(f"'{source}' is a log; give the robot first (dynid identify ROBOT LOG ...), or a run file",
                             code="no-robot")
        if kind == "robot":
            raise DynidError(f"'{source}' is a robot; give logs as well (dynid identify ROBOT LOG ...), or a run file",
                             code="no-log")
        values = RunSettings.load(source).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    values = merged(values, given or {})
    direct: dict[str, Any] = {}
    for assignment in assignments:
        values, direct = assign(values, assignment), assign(direct, assignment)
    own = isinstance(direct.get("model"), dict) and "python" in direct["model"]
    return RunSettings.from_values(values, source, trust=trust or ("model" if own else False))


def merged(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` overridden by `given`: tables are merged key by key, and None is ignored."""
    out = dict(values)
    for key, value in given.items():
        if isinstance(value, Mapping):
            table = {name: item for name, item in value.items() if item is not None}
            if table:
                out[key] = {**out.get(key, {}), **table}
        elif value is not None:
            out[key] = value
    return out


def settings_for_other_logs(settings: RunSettings, given: Mapping[str, Any], source: str) -> RunSettings:
    """Return the settings of a result for other logs, without the time window of the result's own logs.

    given: overriding settings, see `merged`. A table "log" replaces that of the result unless it is only a time window.
    A table "log_changes" has settings on top of either. Drive gains that the result estimated belong to its parameters:
    where the new settings ask for an estimate from the log, they are used with their covariance.
    """
    given = dict(given)
    log = {key: value for key, value in (given.pop("log", None) or {}).items() if value is not None}
    window = {key: log.pop(key) for key in WINDOW if key in log}
    rules = log or {key: value for key, value in settings.log.items() if key not in WINDOW}
    rules = {**rules, **given.pop("log_changes", {})}
    if uses_stored_gains(settings, rules):
        rules |= {name: settings.log[name] for name in GAIN_SETTINGS if name in settings.log}
    return RunSettings.from_values(merged(settings.model_dump(), given) | {"log": {**rules, **window}}, source,
                                   trust=settings.trust)


def uses_stored_gains(settings: RunSettings, rules: Mapping[str, Any]) -> bool:
    """Return whether drive gains that a result estimated apply to another log with these settings of [log]."""
    return (isinstance(settings.log.get("drive_gain"), dict) and "gain_std" in settings.log
            and rules.get("drive_gain") in (mapping.FROM_LOG, mapping.KNOWN_LOAD, settings.log["drive_gain"]))


def assign(values: Mapping[str, Any], assignment: str) -> dict[str, Any]:
    """Return the settings with one of them set by a text 'table.name=value'; the value is TOML or plain text."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise DynidError(f"--set takes KEY=VALUE such as prepare.cutoff=8, got '{assignment}'", code="not-key-value")
    try:
        value = toml_table(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    out = dict(values)
    *path, last = key.strip().split(".")
    table = out
    for part in path:
        inner = table.get(part, {})
        if not isinstance(inner, dict):
            raise DynidError(f"--set {assignment}: '{part}' is not a table of settings")
        table[part] = dict(inner)
        table = table[part]
    table[last] = value
    return out


def log_changes(assignments: Sequence[str]) -> dict[str, Any]:
    """Return settings of the [log] table from texts such as 'log.unit=deg'."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        found = assign(found, assignment)
        if set(found) != {"log"} or not isinstance(found["log"], dict):
            raise DynidError(f"--set takes settings of the log here, such as log.unit=deg, got '{assignment}'",
                             code="unknown-setting")
    return dict(found.get("log", {}))


def log_table(path: Path | None, start: float | None = None, stop: float | None = None) -> dict[str, Any]:
    """Return the [log] table of a mapping file, or an empty one, with a time window from `start` to `stop`, s."""
    table = {} if path is None else mapping.Mapping.load(path).model_dump(mode="json", exclude_unset=True)
    window = {name: value for name, value in zip(WINDOW, (start, stop), strict=True) if value is not None}
    return {**table, **window}


def known_table(texts: Sequence[str]) -> dict[str, Any]:
    """Return the [known] table from texts such as 'M3=1.2' and 'Ia1=0.1+-0.01'."""
    table: dict[str, Any] = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        try:
            found = [finite_number(number) for number in numbers.split("+-", 1)]
        except ValueError:
            raise DynidError(f"--known takes NAME=VALUE or NAME=VALUE+-STD such as M3=1.2+-0.1, got '{text}'",
                             code="not-key-value") from None
        table[name.strip()] = found[0] if len(found) == 1 else found
    return table


def lock_table(texts: Sequence[str]) -> dict[str, float]:
    """Return the [lock] table from texts such as 'finger_joint1=0.02'; without a position a joint is locked at zero."""
    table: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        try:
            table[name.strip()] = finite_number(number) if equals else 0.0
        except ValueError:
            raise DynidError(f"--lock takes JOINT or JOINT=POSITION such as finger_joint1=0.02, got '{text}'",
                             code="not-key-value") from None
    return table

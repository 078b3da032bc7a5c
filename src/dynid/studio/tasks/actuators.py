"""Identification of actuators from positions and commands as a job: settings, estimate, and curves for plots."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators.estimate import ActuatorEstimate, SimulatedLog
from dynid.errors import DynidError
from dynid.progress import Progress
from dynid.report.figure import thinned_rows
from dynid.runs.actuators import PENDULUM, ActuatorSettings, actuator_settings, find_actuators, save_actuators
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.run import keep_meta
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel

_CURVE_POINTS, _CURVE_DIGITS = 3000, 6  # points and digits of the positions of a log
_WORD_SETTINGS = ("law", "friction")  # settings with a single word
_LOG_COLUMNS = {"position": "position", "command": "reference"}  # columns of a log: name on the page -> name in [log]
_PENDULUM_PARTS = ("mass", "length", "arm_mass")  # kg, m, kg


def actuators_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Identify the actuators of a robot or of a servo with a pendulum from uploaded logs without torques."""
    settings = _settings(params, bounds)
    progress = Progress(voice.progress)
    with bounds.trusting(settings.robot):
        found = find_actuators(settings, progress)
    folder = Path("results") / str(params["id"])
    progress("writing the results", 0.95)
    command = _command(settings)
    save_actuators(found, folder, command)
    estimate = found.estimate
    (folder / "curves.json").write_text(json.dumps({
        **estimate.to_dict(), "command": command, "curves": [_curves(log) for log in estimate.logs]},
        allow_nan=False, separators=(",", ":")), encoding="utf-8")
    keep_meta(folder, "actuators", estimate.law, found.robot.name, None)
    return {"result": folder.name, "sentence": _headline(estimate)}


def _headline(estimate: ActuatorEstimate) -> str:
    """Return the simulation error of the identified actuators in one sentence."""
    known = sum(one.identified for one in estimate.parameters)
    unknown = sum(not one.is_given for one in estimate.parameters)
    if estimate.unusable:
        return f"Not usable: {estimate.unusable}"
    return (f"Simulated positions have a mean error of {1e3 * estimate.mean_error:.3g} mrad "
            f"({estimate.delayed_command.text}: {1e3 * estimate.delayed_command.mean_error:.3g}); {known} of {unknown} "
            "parameters are determined")


def _settings(params: Mapping[str, Any], bounds: Confinement) -> ActuatorSettings:
    """Return the settings that the page sent, after checks."""
    logs = [str(bounds.uploaded(name, "log", "actuators.logs"))
            for name in _texts(params.get("logs"), "actuators.logs")]
    if not logs:
        raise DynidError("no log is selected", "upload a log with positions and commands", where="actuators.logs")
    bounds.check_files(logs)
    given: dict[str, Any] = {name: _word(params.get(name), f"actuators.{name}") for name in _WORD_SETTINGS}
    given["delay"] = _number(params.get("delay"), "actuators.delay")
    given["also"] = _texts(params.get("also"), "actuators.also") or None
    given["gains"] = _numbers(params.get("gains"), "actuators.gains")
    given["log"] = {key: names for own, key in _LOG_COLUMNS.items()
                    if (names := _texts(params.get(own), f"actuators.{own}"))}
    unit = _word(params.get("unit"), "actuators.unit")
    if unit:
        given["log"]["unit"] = unit
    if params.get("robot") == PENDULUM:
        given["pendulum"] = {name: value for name in _PENDULUM_PARTS
                             if (value := _number(params.get(name), f"actuators.{name}")) is not None}
        return actuator_settings(PENDULUM, logs, given)
    return actuator_settings(run_settings(bounds, logs=False).robot, logs, given)


def _texts(given: Any, where: str) -> list[str]:
    """Return a list of names that the page sent, without empty names. where: the setting, for error messages."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise DynidError(f"the setting {where} must be a list of names", where=where)
    return [one.strip() for one in given if one.strip()]


def _word(given: Any, where: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise DynidError(f"the setting {where} must be a name", where=where)
    return given or None


def _number(given: Any, where: str) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise DynidError(f"the setting {where} must be a number", where=where)
    return float(given)


def _numbers(given: Any, where: str) -> dict[str, float | list[float]]:
    """Return numbers that the page sent, by name; a list has one number for each joint."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise DynidError(f"the setting {where} must be a table of numbers by name", where=where)
    found: dict[str, float | list[float]] = {}
    for name, own in given.items():
        values = own if isinstance(own, list) else [own]
        numbers = [number for one in values if (number := _number(one, where)) is not None]
        if numbers:
            found[name] = numbers if isinstance(own, list) and len(numbers) > 1 else numbers[0]
    return found


def _command(settings: ActuatorSettings) -> str:
    """Return the `dynid actuators` command that gives the same result."""
    words = ["dynid", "actuators", *([] if settings.robot == PENDULUM else [settings.robot]), *settings.logs]
    if settings.pendulum:
        words += ["--pendulum", ",".join(f"{name}={value:g}" for name, value in settings.pendulum.items())]
    words += ["--law", settings.law]
    for name, value in settings.gains.items():
        numbers: Sequence[Any] = value if isinstance(value, list) else [value]
        words += ["--gain", f"{name}={','.join(f'{one:g}' for one in numbers)}"]
    words += ["--friction", settings.friction]
    words += [] if settings.delay is None else ["--delay", f"{settings.delay:g}"]
    words += ["--also", ",".join(settings.also)] if settings.also else []
    for name, own in settings.log.items():
        words += ["--set", f"log.{name}={json.dumps(own)}"]
    return shlex.join([*words, "-o", "FOLDER"])


def _curves(log: SimulatedLog) -> dict[str, Any]:
    """Return measured, simulated and commanded positions of a log by joint, decimated with extremes kept."""
    rows = thinned_rows(np.hstack([log.measured, log.measured - log.simulated]), _CURVE_POINTS)
    return {"name": Path(log.source).name, "t": plain(log.t[rows], 9),
            **{name: plain(positions[rows].T, _CURVE_DIGITS) for name in ("measured", "simulated", "command")
               if (positions := getattr(log, name)) is not None}}

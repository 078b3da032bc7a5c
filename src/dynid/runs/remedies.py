"""Command-line options that correct or test a finding, and the command that designs a better motion."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.errors import DynidError
from dynid.findings import Finding
from dynid.recording.layout import columns_in_order
from dynid.recording.mapping import per_joint
from dynid.runs.arguments import command_line
from dynid.runs.logs import log_sources
from dynid.validate.thresholds import UNIT_SPREAD
from dynid.validate.verdict_checks.residuals import robust_method

if TYPE_CHECKING:
    from dynid.runs.identification import Run

MOTION = "improved.csv"  # file that the command writes, beside the motion.csv of the first design


def remedy(finding: Finding, run: Run) -> str:
    """Return command-line options that correct or test a finding, quoted for a shell; empty if there are none."""
    found = REMEDIES.get(finding.code)
    return "" if found is None else found(finding, run)


def _numbers(finding: Finding, name: str) -> list[float]:
    return [float(x) for x in np.atleast_1d(np.asarray(finding.evidence.get(name, ()), dtype=float))]


def _set(assignment: str) -> str:
    return f"--set {shlex.quote(assignment)}"


def _list(values: list[str]) -> str:
    return f"[{', '.join(values)}]"


def _signs(setting: str, finding: Finding, run: Run) -> str:
    """Return the option that reverses the sign of the finding's joints, on top of the signs of the settings."""
    names = run.reconstruction.names
    before = per_joint(run.settings.log.get(setting), names, len(names), setting, "", 1.0)
    signs = [f"{-one if name in finding.joints else one:g}" for name, one in zip(names, before, strict=True)]
    return _set(f"log.{setting}={signs[0] if len(set(signs)) == 1 else _list(signs)}")


def _position_signs(finding: Finding, run: Run) -> str:
    """Return the options that reverse positions; `sign` also reverses torques, which `torque_sign` turns back."""
    options = _signs("sign", finding, run)
    return options if any(_numbers(finding, "torque")) else f"{options} {_signs('torque_sign', finding, run)}"


def _swapped(setting: str) -> Callable[[Finding, Run], str]:
    """Return a function for the option that gives each joint the column that belongs to it."""
    def options(finding: Finding, run: Run) -> str:
        names, order = run.reconstruction.names, list(range(len(run.reconstruction.names)))
        for joint, number in zip(finding.joints, _numbers(finding, "column_of"), strict=False):
            order[names.index(joint)] = round(number) - 1
        log = log_sources(run.settings.unloaded, run.settings)[0]
        columns = None
        with suppress(DynidError), log.files[0].local() as path:  # the log may have been removed since
            columns = columns_in_order(path, log.mapping, run.robot, setting, order)
        is_current = setting == "torque" and log.mapping.torque is None and log.mapping.drive_gain is not None
        unknown = _list([f'"COLUMN{k + 1}"' for k in order])
        return _set(f"log.{'current' if is_current else setting}={columns or unknown}")
    return options


def _unit(finding: Finding, run: Run) -> str:
    """Return the option for torques in another unit: a common power of ten, or one factor per joint."""
    factors = _numbers(finding, "nominal")
    if not factors or min(factors) <= 0:
        return ""
    if np.ptp(np.log(factors)) < 2.0 * UNIT_SPREAD or len(factors) != len(finding.joints):
        return _set(f"log.torque_scale={10.0 ** -round(float(np.log10(np.median(factors)))):g}")
    return _scales(finding, run, factors, float(np.median(factors)))


def _gain(finding: Finding, run: Run) -> str:
    """Return the option that corrects a wrong drive gain; empty if the gain of another joint could be wrong instead."""
    gains = _numbers(finding, "gain")
    return "" if any(_numbers(finding, "rivals")) or min(gains, default=0.0) <= 0 else _scales(finding, run, gains)


def _scales(finding: Finding, run: Run, factors: list[float], of_others: float = 1.0) -> str:
    """Return the option with a torque scale per joint: the inverse of the finding's factors, and `of_others` for other
    joints. Empty if the settings already have a scale."""
    if {"torque_scale", "current", "drive_gain"} & set(run.settings.log):
        return ""
    known = dict(zip(finding.joints, factors, strict=False))
    scales = [f"{1.0 / known.get(name, of_others):.3g}" for name in run.reconstruction.names]
    return _set(f"log.torque_scale={_list(scales)}")


def _offset(finding: Finding, run: Run) -> str:
    """Return the option that corrects the zero position of a joint; empty if the settings have an offset or a unit."""
    if {"offset", "unit"} & set(run.settings.log):
        return ""
    [offset] = _numbers(finding, "offset")
    return _set("log.offset=" + _list([f"{offset:.3g}" if name in finding.joints else "0"
                                       for name in run.reconstruction.names]))


def _friction_choice(finding: Finding, run: Run) -> str:
    return "" if run.friction is not None else "--friction auto"


def _gravity(finding: Finding, run: Run) -> str:
    vector = _numbers(finding, "gravity")
    return f"--gravity {','.join(f'{x:.3g}' for x in vector)}" if len(vector) == 3 else "--gravity estimate"


def _consistent(finding: Finding, run: Run) -> str:
    return "" if run.estimate.method.startswith("pc-") else "--method pc-wls"


REMEDIES: dict[str, Callable[[Finding, Run], str]] = {
    "torque-sign": partial(_signs, "torque_sign"), "position-sign": _position_signs,
    "positions-swapped": _swapped("position"), "torques-swapped": _swapped("torque"), "torque-unit": _unit,
    "drive-gain": _gain, "position-offset": _offset,
    "gravity-direction": _gravity, "degrees-for-radians": lambda finding, run: _set("log.unit=deg"),
    "negative-friction": _consistent, "negative-rotor-inertia": _consistent, "unphysical-inertia": _consistent,
    "indefinite-inertia": _consistent, "impossible-links": _consistent, "energy-grows": _consistent,
    "residual-follows-delay": _friction_choice,
    "residual-follows-reversal": lambda finding, run: "--friction viscous,coulomb,offset,dahl",
    "residual-follows-speed-squared": _friction_choice,
    "residual-follows-load": _friction_choice,
    "residual-follows-low-speed": _friction_choice,
    "residual-follows-velocity": lambda finding, run: "--friction viscous,coulomb,offset",
    "residual-follows-velocity-sign": lambda finding, run: "--friction viscous,coulomb,offset",
    "residual-follows-offset": lambda finding, run: "--friction viscous,coulomb,offset",
    "residual-follows-acceleration": lambda finding, run: "--rotor",
    "residual-outliers": lambda finding, run: f"--method {robust_method(run.estimate.method)}"}


def improve_command(robot: str, folder: str | Path) -> str:
    """Return the `dynid excite` command that designs a better motion for a robot and the folder of its result."""
    return command_line("excite", robot, "--improve", str(folder), "-o", MOTION)

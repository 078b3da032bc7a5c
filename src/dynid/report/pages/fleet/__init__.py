"""Page on a fleet: which robots differ, in which parameters, since when, and which models can be shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import SERIES, Figure, axis, line, numbers, significant, text, title
from dynid.report.section import Page, Section
from dynid.report.words import count, typeset

MAX_SENTENCES_SHOWN = 30  # sentences
GOOD, POOR = 10.0, 50.0  # percent: green below, red above (Ardiani, table F.1)
_COLORS = {"good": "#cdebdf", "poor": "#f6cdb8", "fair": "transparent"}
ALIKE = 1.0  # percent: smaller differences of commanded positions are ignored
_DIFFERENCE_WORDS = {
    "robots": "between robots", "motions": "between motions only", "nothing": "no", "unknown": "not known"}
MAX_LOGS_SHOWN = 1000  # rows of the table; the manifest lists all


@dataclass(frozen=True)
class RobotRow:
    """One robot in the table of a fleet.

    Attributes:
        name, page, logs, seconds: the robot, its page, and number and duration of its logs.
        error: relative error of its own model, percent.
        lean: largest share of a value that comes from the fleet, percent.
        words: differences and changes as text.
    """

    name: str
    page: str
    logs: int
    seconds: float
    error: float
    lean: float
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ParameterRow:
    """One parameter of a fleet.

    Attributes:
        name, unit, mean: the parameter, and its mean over the fleet.
        spread, within: standard deviations beyond noise, between robots and between motions of one robot.
        p_robots, p_motions: p-values of both.
        differs: source of the variation: "robots", "motions", "nothing" or "unknown".
    """

    name: str
    unit: str
    mean: float
    spread: float
    within: float
    p_robots: float
    p_motions: float
    differs: str


@dataclass(frozen=True, eq=False)
class Signals:
    """One motion of several robots.

    Attributes:
        t: (points,), s from the start of each log.
        position: (robots, points, dof), commanded.
        torque: (robots, points, dof), measured.
        position_difference, torque_difference: (dof,), largest RMS difference from the first robot, percent of its
            standard deviation.
    """

    motion: str
    robots: tuple[str, ...]
    t: Array
    position: Array
    torque: Array
    position_difference: Array
    torque_difference: Array


@dataclass(frozen=True, eq=False)
class FleetData:
    """Data of the page on a fleet.

    Attributes:
        sentences: main findings.
        cross: (robots, robots, dof), percent, error of the model of the first robot on the logs of the second.
        cross_robots, joints: names along the axes of `cross`.
        boxes: for each parameter shown its name, unit, and for each robot its name and the values of its logs.
        logs: source, robot, date, rows, seconds, hash.
        failures: source and reason.
        signals: a motion that several robots made, or None.
    """

    title: str
    sentences: tuple[str, ...]
    robots: tuple[RobotRow, ...]
    parameters: tuple[ParameterRow, ...]
    cross_robots: tuple[str, ...]
    joints: tuple[str, ...]
    cross: Array
    boxes: tuple[tuple[str, str, tuple[tuple[str, tuple[float, ...]], ...]], ...]
    logs: tuple[tuple[str, str, str, int, float, str], ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    settings: str
    command: str = ""
    signals: Signals | None = None


def _overview(data: FleetData) -> Mapping[str, Any]:
    """Main findings on the fleet in words: which robots differ, and in which parameters."""
    differing = [row.name for row in data.parameters if row.differs == "robots"]
    moving = [row.name for row in data.parameters if row.differs == "motions"]
    return {"sentences": data.sentences[:MAX_SENTENCES_SHOWN],
            "more": max(len(data.sentences) - MAX_SENTENCES_SHOWN, 0),
            "out": sum(bool(row.words) for row in data.robots), "count": len(data.robots),
            "differing": differing, "moving": moving, "notes": data.notes, "failed": len(data.failures)}


def _cross_prediction(data: FleetData) -> Mapping[str, Any] | None:
    """Cross-prediction: a heat map of the error of one robot's model on the logs of another, joint by joint."""
    if len(data.cross_robots) < 2:
        return None
    rows = [{"model": data.cross_robots[i], "robot": data.cross_robots[j], "first": j == 0, "own": i == j,
             "cells": [(float(x), _COLORS[_grade(float(x))]) for x in data.cross[i, j]]}
            for i in range(len(data.cross_robots)) for j in range(len(data.cross_robots))]
    return {"rows": rows, "joints": data.joints, "good": GOOD, "poor": POOR, "span": len(data.cross_robots)}


def _grade(error: float) -> str:
    return "fair" if not np.isfinite(error) else "good" if error < GOOD else "poor" if error > POOR else "fair"


def _signals(data: FleetData) -> Mapping[str, Any] | None:
    """Commanded and measured signals of the robots in the same motion."""
    shown = data.signals
    if shown is None:
        return None
    rows = [(joint, float(shown.position_difference[k]), float(shown.torque_difference[k]))
            for k, joint in enumerate(data.joints)]
    figures = [signal_figure(shown, values, k, joint, name) for k, joint in enumerate(data.joints)
               for values, name in ((shown.position, "commanded position"), (shown.torque, "measured torque"))]
    return {"rows": rows, "figures": figures, "motion": shown.motion, "alike": ALIKE,
            "same": all(position < ALIKE for _, position, _ in rows)}


def signal_figure(shown: Signals, values: Array, joint: int, label: str, name: str) -> Figure:
    """Return one signal (robots, points, dof) of one joint, one line per robot."""
    traces = [line(numbers(shown.t), numbers(values[k, :, joint]), text(robot), SERIES[k % len(SERIES)])
              for k, robot in enumerate(shown.robots)]
    layout = {"title": title(label), "xaxis": axis("time, s"), "yaxis": axis(name)}
    return Figure(traces, layout, f"{name} of {label}, one line per robot", 240)


def _parameters(data: FleetData) -> Mapping[str, Any]:
    """Variation of the parameters within and between robots, in numbers and as box plots."""
    return {"rows": data.parameters, "words": _DIFFERENCE_WORDS, "figures": [box_figure(*one) for one in data.boxes]}


def box_figure(name: str, unit: str, robots: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """Return box plots of one parameter's values from each log, one box per robot."""
    traces = [{"type": "box", "name": text(robot), "y": significant(values), "boxpoints": "all", "jitter": 0.3,
               "pointpos": 0, "marker": {"color": SERIES[k % len(SERIES)], "size": 4}, "line": {"width": 1}}
              for k, (robot, values) in enumerate(robots)]
    layout = {"yaxis": axis(typeset(text(f"{name}, {unit}"))), "xaxis": axis(""), "showlegend": False}
    return Figure(traces, layout, f"{name} of each log, one box per robot", 280, width=40 * len(robots))


def _logs(data: FleetData) -> Mapping[str, Any]:
    """Logs that were used, and those that could not be used."""
    return {"rows": data.logs[:MAX_LOGS_SHOWN], "more": max(len(data.logs) - MAX_LOGS_SHOWN, 0),
            "failures": data.failures}


SECTIONS: tuple[Section[FleetData], ...] = (
    Section("overview", "Differences", _overview),
    Section("cross_prediction", "Cross-prediction between robots", _cross_prediction),
    Section("signals", "The same motion on all robots", _signals),
    Section("parameters", "Parameters", _parameters),
    Section("robots", "Robots", lambda data: {"rows": sorted(data.robots, key=lambda row: not row.words)}),
    Section("logs", "Logs", _logs),
    Section("provenance", "Provenance", lambda data: {"settings": data.settings, "command": data.command}))


def subtitle(data: FleetData) -> str:
    """Number of robots, logs and parameters."""
    return (f"{count(len(data.robots), 'robot')}, {count(len(data.logs), 'log')}, "
            f"{len(data.parameters)} base parameters")


FLEET = Page("fleet", subtitle, SECTIONS)

__all__ = ["FLEET", "SECTIONS", "FleetData", "ParameterRow", "RobotRow", "Signals"]

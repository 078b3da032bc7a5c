"""Pages of a fleet and of each of its robots: which robots differ, in which parameters, and since when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from dynid.arrays import Array
from dynid.fleet.change_detection import days
from dynid.fleet.result import FleetResult
from dynid.report.figure import BLUE, GREY, SERIES, VERMILION, Figure, axis, line, numbers, significant, text, title
from dynid.report.section import Page, Section
from dynid.report.words import count, file_name, typeset

_MAX_BOX_PLOTS = 24  # number of box plots, of the parameters with the most significant differences
SIGNIFICANT_STEP = 4.0  # smallest plotted step of a parameter over time, in standard errors
_MAX_ROBOTS_PER_BOX_PLOT = 40  # robots in one figure
MAX_SENTENCES_SHOWN = 30  # sentences on differences of robots
GOOD, POOR = 10.0, 50.0  # prediction errors, percent: green below the first, red above the second (Ardiani, table F.1)
_COLORS = {"good": "#cdebdf", "poor": "#f6cdb8", "fair": "transparent"}
ALIKE = 1.0  # percent: smaller differences of commanded positions are ignored
_DIFFERENCE_WORDS = {
    "robots": "between robots", "motions": "between motions only", "nothing": "no", "unknown": "not known"}
MAX_LOGS_SHOWN = 1000  # rows of the table of logs; the manifest lists all logs
_WIDTH_PX, _HEIGHT_PX, _MARGIN_PX = 260, 70, 4  # size and margin of a small plot, px


@dataclass(frozen=True, eq=False)
class FleetPage:
    """Data of the page on a fleet: the result, the text of the settings file, and the command that was called."""

    result: FleetResult
    settings: str
    command: str = ""

    @property
    def title(self) -> str:
        """Headline of the page."""
        return f"Fleet of {len(self.result.robots)} {self.result.robot.name}"


def page_names(result: FleetResult) -> dict[str, str]:
    """Return the file name of the HTML page of each robot, by name of the robot."""
    pages: dict[str, str] = {}
    for robot in result.robots:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", robot.name).strip("-") or "robot"
        name, more = f"robot-{plain}.html", 2
        while name in pages.values():
            name, more = f"robot-{plain}-{more}.html", more + 1
        pages[robot.name] = name
    return pages


def _sentences(result: FleetResult, robot: str) -> list[str]:
    """Return the findings on one robot as sentences."""
    return [one.sentence for group in (result.odd_logs, result.out.differences, result.changes) for one in group
            if one.robot == robot]


def _overview(data: FleetPage) -> Mapping[str, Any]:
    """Main findings on the fleet in words: which robots differ, and in which parameters."""
    result, names = data.result, data.result.out.pooling.base.names
    return {"sentences": result.sentences[:MAX_SENTENCES_SHOWN],
            "more": max(len(result.sentences) - MAX_SENTENCES_SHOWN, 0),
            "out": sum(bool(_sentences(result, robot.name)) for robot in result.robots), "count": len(result.robots),
            "differing": result.scatter.named("robots", names), "moving": result.scatter.named("motions", names),
            "notes": result.notes, "failed": len(result.folded.failures)}


def _cross_prediction(data: FleetPage) -> Mapping[str, Any] | None:
    """Cross-prediction: a heat map of the error of one robot's model on the logs of another, joint by joint."""
    names, errors = data.result.cross.robots, data.result.cross.between()
    if len(names) < 2:
        return None
    rows = [{"model": model, "robot": robot, "first": j == 0, "own": i == j,
             "cells": [(float(x), _COLORS[_grade(float(x))]) for x in errors[i, j]]}
            for i, model in enumerate(names) for j, robot in enumerate(names)]
    return {"rows": rows, "joints": data.result.cross.joints, "good": GOOD, "poor": POOR, "span": len(names)}


def _grade(error: float) -> str:
    return "fair" if not np.isfinite(error) else "good" if error < GOOD else "poor" if error > POOR else "fair"


def _signals(data: FleetPage) -> Mapping[str, Any] | None:
    """Commanded and measured signals of the robots in the same motion."""
    shown, joints = data.result.commanded, data.result.cross.joints
    if shown is None:
        return None
    rows = [(joint, float(shown.position_difference[k]), float(shown.torque_difference[k]))
            for k, joint in enumerate(joints)]
    figures = [_signal_figure(shown.robots, shown.t, values[:, :, k], joint, name) for k, joint in enumerate(joints)
               for values, name in ((shown.position, "commanded position"), (shown.torque, "measured torque"))]
    return {"rows": rows, "figures": figures, "motion": shown.motion, "alike": ALIKE,
            "same": all(position < ALIKE for _, position, _ in rows)}


def _signal_figure(robots: Sequence[str], t: Array, values: Array, joint: str, name: str) -> Figure:
    """Return the figure of one signal (robots, points) of a joint at times t (points,), s, with one line per robot."""
    traces = [line(numbers(t), numbers(values[k]), text(robot), SERIES[k % len(SERIES)])
              for k, robot in enumerate(robots)]
    layout = {"title": title(joint), "xaxis": axis("time, s"), "yaxis": axis(name)}
    return Figure(traces, layout, f"{name} of {joint}, one line per robot", 240)


def _parameters(data: FleetPage) -> Mapping[str, Any]:
    """Variation of the parameters within and between robots, in numbers and as box plots."""
    result, base, scatter = data.result, data.result.out.pooling.base, data.result.scatter
    rows = [{"name": name, "unit": base.units[k], "mean": result.out.pooling.mean[k],
             "spread": result.out.pooling.spread[k], "within": scatter.within[k], "p_robots": scatter.p_robots[k],
             "p_motions": scatter.p_motions[k], "differs": scatter.differs[k]} for k, name in enumerate(base.names)]
    return {"rows": rows, "words": _DIFFERENCE_WORDS, "figures": _box_figures(result)}


def _box_figures(result: FleetResult) -> list[Figure]:
    """Return box plots of the estimates from each log, one box per robot, for the parameters that differ most
    significantly."""
    base = result.out.pooling.base
    chance = np.where(np.isfinite(result.scatter.p_robots), result.scatter.p_robots, 2.0)
    names = [*result.out.robots, *(robot.name for robot in result.robots if robot.name not in result.out.robots)]
    shown = [logs for logs in result.logs if logs.robot in names[:_MAX_ROBOTS_PER_BOX_PLOT]]
    figures = []
    for k in np.sort(np.argsort(chance)[:_MAX_BOX_PLOTS]):
        name = base.names[k]
        traces = [{"type": "box", "name": text(logs.robot), "boxpoints": "all", "jitter": 0.3, "pointpos": 0,
                   "y": significant(logs.values[np.isfinite(logs.values[:, k]), k]),
                   "marker": {"color": SERIES[i % len(SERIES)], "size": 4}, "line": {"width": 1}}
                  for i, logs in enumerate(shown)]
        layout = {"yaxis": axis(typeset(text(f"{name}, {base.units[k]}"))), "xaxis": axis(""), "showlegend": False}
        figures.append(Figure(traces, layout, f"{name} of each log, one box per robot", 280, width=40 * len(shown)))
    return figures


def _robots(data: FleetPage) -> Mapping[str, Any]:
    """Table of the robots: logs, torque error, weight of the prior and differences; robots that differ are first."""
    result, pages, rows = data.result, page_names(data.result), []
    for robot, logs, pooled in zip(result.robots, result.logs, result.pooled, strict=True):
        words = [sentence.removeprefix(f"{robot.name}: ") for sentence in _sentences(result, robot.name)]
        rows.append({"name": robot.name, "page": pages[robot.name], "logs": len(logs.entries),
                     "seconds": sum(entry.span for entry in logs.entries),
                     "error": robot.regression.relative_error(robot.solution.beta),
                     "lean": 100.0 * float(pooled.lean.max()), "words": words})
    return {"rows": sorted(rows, key=lambda row: not row["words"])}


def _logs(data: FleetPage) -> Mapping[str, Any]:
    """Tables of the logs that were used, and of the logs that could not be used."""
    folded = data.result.folded
    return {"rows": folded.entries[:MAX_LOGS_SHOWN], "more": max(len(folded.entries) - MAX_LOGS_SHOWN, 0),
            "failures": folded.failures}


def _subtitle(data: FleetPage) -> str:
    """Return the subtitle of the page: number of robots, logs and base parameters."""
    result = data.result
    return (f"{count(len(result.robots), 'robot')}, {count(len(result.folded.entries), 'log')}, "
            f"{len(result.out.pooling.base)} base parameters")


FLEET = Page("fleet", _subtitle, (
    Section("overview", "Differences", _overview),
    Section("cross_prediction", "Cross-prediction between robots", _cross_prediction),
    Section("signals", "The same motion on all robots", _signals),
    Section("parameters", "Parameters", _parameters),
    Section("robots", "Robots", _robots),
    Section("logs", "Logs", _logs),
    Section("provenance", "Provenance", lambda data: {"settings": data.settings, "command": data.command})))


@dataclass(frozen=True, eq=False)
class RobotPage:
    """Data of the page on one robot of a fleet: the result of the fleet, and the index of the robot."""

    result: FleetResult
    place: int

    @property
    def title(self) -> str:
        """Headline of the page."""
        return f"{self.result.robots[self.place].name} of a fleet of {len(self.result.robots)}"

    @property
    def dates(self) -> tuple[str, ...]:
        """Date of each log."""
        return tuple(entry.date for entry in self.result.logs[self.place].entries)


def _robot_parameters(data: RobotPage) -> Mapping[str, Any]:
    """Table of the parameters of one robot next to those of its fleet."""
    result, k = data.result, data.place
    alone, pooling, pooled = result.robots[k].solution, result.out.pooling, result.pooled[k]
    std = np.sqrt(np.maximum(np.diag(result.robots[k].covariance), 0.0))
    rows = [{"name": name, "unit": pooling.base.units[i], "value": pooled.values[i], "std": pooled.std[i],
             "alone": alone.beta[i] if alone.identified[i] else None, "alone_std": std[i] if alone.identified[i] else
             None, "mean": pooling.mean[i], "lean": float(np.round(100.0 * pooled.lean[i], 1))}
            for i, name in enumerate(pooling.base.names)]
    return {"rows": rows, "sentences": _sentences(result, result.robots[k].name)}


def _history(data: RobotPage) -> Mapping[str, Any]:
    """History of one robot: small static plots of each parameter over the logs."""
    result, logs, base = data.result, data.result.logs[data.place], data.result.out.pooling.base
    time = days(data.dates)
    at = dict(zip(data.dates, time.tolist(), strict=True))
    changed = [(name, at[one.date], one.date) for one in result.changes if one.robot == logs.robot
               and one.kind == "step" and one.date in at for name, _, _, sigmas in one.parameters
               if abs(sigmas) > SIGNIFICANT_STEP]
    pictures = [(name, base.units[k], _picture(time, logs.values[:, k], logs.std[:, k], [
        (day, date) for parameter, day, date in changed if parameter == name])) for k, name in enumerate(base.names)]
    rows = [(file_name(entry.source), entry.date, errors)
            for entry, errors in zip(logs.entries, logs.relative_error.tolist(), strict=True)]
    known = [date for date in data.dates if date]
    return {"pictures": pictures if len(time) > 1 else [], "logs": rows, "joints": result.cross.joints,
            "dates": f"{known[0]} to {known[-1]}" if len(known) > 1 else ""}


def _picture(time: Array, values: Array, std: Array, changes: Sequence[tuple[float, str]]) -> Markup:
    """Return an SVG of a parameter over time with a band of two standard errors, and a line at each change."""
    known = np.isfinite(values) & np.isfinite(std)
    if known.sum() < 2:
        return Markup("")
    t, x, reach = time[known], values[known], 2.0 * std[known]
    low, high = float((x - reach).min()), float((x + reach).max())
    span = max(float(np.ptp(t)), 1e-9)
    across = _MARGIN_PX + (t - t[0]) / span * (_WIDTH_PX - 2 * _MARGIN_PX)

    def down(y: Array) -> Array:
        return _HEIGHT_PX - _MARGIN_PX - (y - low) / max(high - low, 1e-300) * (_HEIGHT_PX - 2 * _MARGIN_PX)

    def points(xs: Array, ys: Array) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys, strict=True))

    band = points(np.concatenate([across, across[::-1]]), np.concatenate([down(x + reach), down(x - reach)[::-1]]))
    line = points(across, down(x))
    marks = "".join(_mark(_MARGIN_PX + (day - t[0]) / span * (_WIDTH_PX - 2 * _MARGIN_PX), date)
                    for day, date in changes)
    labels = "".join(f'<text x="{_MARGIN_PX}" y="{y}" font-size="9" fill="{GREY}">{number:.3g}</text>'
                     for y, number in ((9, high), (_HEIGHT_PX - 1, low)))
    return Markup(f'<svg width="{_WIDTH_PX}" height="{_HEIGHT_PX}" role="img"><polygon points="{band}" fill="{BLUE}" '
                  f'fill-opacity="0.18"/><polyline points="{line}" fill="none" stroke="{BLUE}"/>{marks}{labels}</svg>')


def _mark(at: float, date: str) -> str:
    anchor = "end" if at > _WIDTH_PX / 2 else "start"
    return (f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{_HEIGHT_PX}" stroke="{VERMILION}" stroke-dasharray="3 2"/>'
            f'<text x="{at + (-3 if anchor == "end" else 3):.1f}" y="9" font-size="9" fill="{VERMILION}" '
            f'text-anchor="{anchor}">{escape(date)}</text>')


def _robot_subtitle(data: RobotPage) -> str:
    """Return the subtitle of the page: number of logs, and dates of the first and the last log."""
    dated = [date for date in data.dates if date]
    return count(len(data.dates), "log") + (f", {dated[0]} to {dated[-1]}" if dated else "")


FLEET_ROBOT = Page("fleet_robot", _robot_subtitle, (
    Section("parameters", "Parameters", _robot_parameters),
    Section("history", "History", _history)))

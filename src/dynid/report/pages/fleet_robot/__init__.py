"""Page on one robot of a fleet: differences, its parameters next to the fleet's, and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from dynid.arrays import Array
from dynid.report.figure import BLUE, GREY, VERMILION
from dynid.report.section import Page, Section
from dynid.report.words import count, file_name

_WIDTH_PX, _HEIGHT_PX, _MARGIN_PX = 260, 70, 4  # px


@dataclass(frozen=True, eq=False)
class FleetRobotData:
    """Data of the page on one robot of a fleet.

    Attributes:
        title, joints: headline, and names of the joints.
        sentences: differences and changes of the robot.
        names, units: of the base parameters.
        values, std: (base,), with the fleet as a prior.
        alone, alone_std: (base,), without the prior.
        mean: (base,), mean of the fleet.
        lean: (base,), percent of a value that comes from the prior.
        dates, days, sources: of the logs in order; days since the first (logs,).
        history, history_std: (logs, base), estimates of single logs, nan if a log does not excite a parameter.
        errors: (logs, dof), percent, of each log with its own estimate.
        changed: a parameter, the day and the date of each change.
    """

    title: str
    sentences: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    std: Array
    alone: Array
    alone_std: Array
    mean: Array
    lean: Array
    dates: tuple[str, ...]
    days: Array
    sources: tuple[str, ...]
    history: Array
    history_std: Array
    joints: tuple[str, ...]
    errors: Array
    changed: tuple[tuple[str, float, str], ...] = ()


def _parameters(data: FleetRobotData) -> Mapping[str, Any]:
    """Section with parameters of one robot next to those of its fleet."""
    rows = [{"name": name, "unit": data.units[k], "value": float(data.values[k]), "std": float(data.std[k]),
             "alone": float(data.alone[k]), "alone_std": float(data.alone_std[k]), "mean": float(data.mean[k]),
             "lean": float(data.lean[k])} for k, name in enumerate(data.names)]
    return {"rows": rows, "sentences": data.sentences}


def _history(data: FleetRobotData) -> Mapping[str, Any]:
    """History of one robot: small static plots of each parameter over the logs."""
    time = data.days
    pictures = [(name, data.units[k], picture(time, data.history[:, k], data.history_std[:, k], [
        (day, date) for changed, day, date in data.changed if changed == name])) for k, name in enumerate(data.names)]
    logs = [(file_name(source), date, [float(x) for x in errors])
            for source, date, errors in zip(data.sources, data.dates, data.errors, strict=True)]
    known = [date for date in data.dates if date]
    dates = f"{known[0]} to {known[-1]}" if len(known) > 1 else ""
    return {"pictures": pictures if len(time) > 1 else [], "logs": logs, "joints": data.joints, "dates": dates}


def picture(time: Array, values: Array, std: Array, changes: Sequence[tuple[float, str]] = ()) -> Markup:
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


SECTIONS: tuple[Section[FleetRobotData], ...] = (
    Section("parameters", "Parameters", _parameters),
    Section("history", "History", _history))


def subtitle(data: FleetRobotData) -> str:
    """Number of logs, and the dates of the first and last."""
    dated = [date for date in data.dates if date]
    return count(len(data.sources), "log") + (f", {dated[0]} to {dated[-1]}" if dated else "")


FLEET_ROBOT = Page("fleet_robot", subtitle, SECTIONS)

__all__ = ["FLEET_ROBOT", "SECTIONS", "FleetRobotData"]

"""Page on a stream: events, parameters over time with bands, and excitation over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import BLUE, VERMILION, Figure, axis, line, mark, significant, text
from dynid.report.section import Page, Section
from dynid.report.words import count, typeset

_MAX_EVENTS_SHOWN, _MAX_EXPLANATIONS = 50, 3
MAX_PARAMETERS_SHOWN = 24  # best determined parameters
_MAX_LINE_POINTS = 400  # points of a parameter over time
_MAX_MAP_COLUMNS = 200  # columns of the map of excited parameters
_COLOUR_DECADES = 2.0  # decades above the smallest standard error at which the colour scale ends


@dataclass(frozen=True)
class Shown:
    """A detected change: time t (s) and row, its cause in words, and possible explanations, each with text, log
    evidence, and the explained percentage of the new residual."""

    t: float
    row: int
    cause: str
    explanations: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, eq=False)
class StreamData:
    """Data of the page on a stream.

    Attributes:
        title, method, samples: headline, method, and number of samples.
        t: (updates,), times of the stored estimates, s.
        values, stds: (updates, base), estimates and standard errors, infinite if a parameter was not identifiable.
        names, units: (base,), names and units of the base parameters.
        restarts: times at which the estimation started again, s.
        changes: detected changes with their explanations.
        events: time (s) and text of each event.
    """

    title: str
    method: str
    samples: int
    t: Array
    values: Array
    stds: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    restarts: tuple[float, ...]
    changes: tuple[Shown, ...]
    events: tuple[tuple[float, str], ...]


def _happened(data: StreamData) -> Mapping[str, Any] | None:
    """Events: changes with their explanations, and faults of the source."""
    if not data.changes and not data.events:
        return None
    return {"changes": data.changes, "most": _MAX_EXPLANATIONS, "events": data.events[-_MAX_EVENTS_SHOWN:],
            "more": max(0, len(data.events) - _MAX_EVENTS_SHOWN)}


def _over_time(data: StreamData) -> Mapping[str, Any] | None:
    """Each parameter over time with a band of two standard errors, and the restarts."""
    if len(data.t) < 2:
        return None
    relative = data.stds[-1] / np.maximum(np.abs(data.values[-1]), 1e-300)
    best = np.sort(np.argsort(relative)[:MAX_PARAMETERS_SHOWN])
    return {"figures": [parameter_figure(data, int(k)) for k in best], "more": len(data.names) - len(best)}


def parameter_figure(data: StreamData, k: int) -> Figure:
    """Return one parameter over time; estimates at which it was not identifiable are omitted."""
    rows = np.flatnonzero(np.isfinite(data.stds[:, k]))
    if len(rows):
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(_MAX_LINE_POINTS, len(rows))).astype(int))]
    t, value, reach = data.t[rows], data.values[rows, k], 2.0 * data.stds[rows, k]
    band = {"type": "scatter", "mode": "lines", "x": significant(np.concatenate([t, t[::-1]])),
            "y": significant(np.concatenate([value + reach, (value - reach)[::-1]])), "fill": "toself",
            "fillcolor": "rgba(0,114,178,0.18)", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    traces: list[Mapping[str, Any]] = [band, line(significant(t), significant(value), text(data.names[k]), BLUE)]
    layout = {"xaxis": axis("time, s", range=significant(data.t[[0, -1]])), "yaxis": axis(
        typeset(text(f"{data.names[k]}, {data.units[k]}")), range=_span(value, reach)), "showlegend": False,
        "shapes": [mark(at, VERMILION, "dot") for at in data.restarts]}
    return Figure(traces, layout, f"{data.names[k]} over time with a band of two standard errors", 240)


def _span(value: Array, reach: Array) -> list[float]:
    """Return axis limits that show the last half of a line over time completely."""
    half = slice(len(value) // 2, None)
    if not len(value[half]):
        return [-1.0, 1.0]
    low, high = float((value - reach)[half].min()), float((value + reach)[half].max())
    room = 0.5 * max(high - low, 1e-9 * max(abs(low), abs(high), 1e-9))
    return [low - room, high + room]


def _excited(data: StreamData) -> Mapping[str, Any] | None:
    """Standard error of each parameter over time, relative to its final value."""
    if len(data.t) < 2:
        return None
    rows = np.unique(np.linspace(0, len(data.t) - 1, min(_MAX_MAP_COLUMNS, len(data.t))).astype(int))
    stds = data.stds[rows]
    least = np.where(np.isfinite(stds), stds, np.inf).min(axis=0)
    known = np.isfinite(least) & (least > 0.0)
    if not known.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        decades = np.clip(np.log10(stds[:, known] / least[known]), 0.0, _COLOUR_DECADES)
    decades = np.where(np.isfinite(decades), decades, _COLOUR_DECADES)
    names = [text(name) for name, own in zip(data.names, known, strict=True) if own]
    trace = {"type": "heatmap", "x": significant(data.t[rows]), "y": names,
             "z": [significant(row) for row in decades.T], "zmin": 0.0, "zmax": _COLOUR_DECADES,
             "colorscale": [[0.0, "#0072b2"], [0.5, "#9ecae1"], [1.0, "#ffffff"]],
             "colorbar": {"title": {"text": "decades"}}}
    layout = {"xaxis": axis("time, s"), "yaxis": {**axis(""), "autorange": "reversed", "dtick": 1}, "showlegend": False}
    return {"figure": Figure([trace], layout, "standard error of each parameter over time, in decades above its "
                                              "smallest value",
                             max(240, 90 + 15 * len(names)))}


def subtitle(data: StreamData) -> str:
    """Line below the headline: method, number of rows and parameters, and number of restarts."""
    return (f"{data.method}, {count(data.samples, 'row')} of the regression, {len(data.names)} base parameters, "
            f"{count(len(data.restarts), 'restart')}")


STREAM = Page("stream", subtitle, (
    Section("happened", "Changes and events", _happened),
    Section("over_time", "Over time", _over_time),
    Section("excited", "Excitation over time", _excited)))

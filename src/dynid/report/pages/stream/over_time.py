"""Each parameter over time with a band of two standard errors, and the restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import BLUE, VERMILION, Figure, axis, line, mark, significant, text
from dynid.report.pages.stream.data import StreamData
from dynid.report.section import Section
from dynid.report.words import typeset

MAX_PARAMETERS_SHOWN = 24  # parameters, those that are known best
_DRAWN_LOOKS = 400  # points of a line


def gather(data: StreamData) -> Mapping[str, Any] | None:
    if len(data.t) < 2:
        return None
    relative = data.stds[-1] / np.maximum(np.abs(data.values[-1]), 1e-300)
    best = np.sort(np.argsort(relative)[:MAX_PARAMETERS_SHOWN])
    return {"figures": [parameter_figure(data, int(k)) for k in best], "more": len(data.names) - len(best)}


def parameter_figure(data: StreamData, k: int) -> Figure:
    """Return one parameter over time; estimates at which it was not identifiable are omitted."""
    rows = np.flatnonzero(np.isfinite(data.stds[:, k]))
    rows = (
        rows[np.unique(np.linspace(0, len(rows) - 1, min(_DRAWN_LOOKS, len(rows))).astype(int))] if len(rows) else rows
    )
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
    """Return axis limits that show the last half of a line completely."""
    half = slice(len(value) // 2, None)
    if not len(value[half]):
        return [-1.0, 1.0]
    low, high = float((value - reach)[half].min()), float((value + reach)[half].max())
    room = 0.5 * max(high - low, 1e-9 * max(abs(low), abs(high), 1e-9))
    return [low - room, high + room]


SECTION = Section("over_time", "Over time", gather)

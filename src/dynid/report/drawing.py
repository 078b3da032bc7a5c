"""Figures of a reproduction: curves in panels, with a description of the document's own figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import (
    GREY,
    INK,
    MEASURED,
    SERIES,
    SYMBOLS,
    Figure,
    axis,
    line,
    log_axis,
    numbers,
    thinned_rows,
    title,
)

Role = Literal["ours", "printed", "true"]
ROLES: tuple[Role, ...] = get_args(Role)
Kind = Literal["line", "points", "bars"]
_LEGEND_LINE = 20  # px: height of a row of the legend
_LEGEND_LETTER, _LEGEND_SYMBOL = 6.5, 50.0  # px: width of a letter, and of the symbol before a name with its spaces
_LEGEND_WIDTH = {True: 700.0, False: 300.0}  # px: width of a panel over the whole page, or half of it


@dataclass(frozen=True)
class PlotCurve:
    """One curve of a panel.

    x are numbers, or names for bars and points; y has the same length, with None for missing values. `role` is the
    origin of the curve: values printed in a document are hatched or open circles, true values of a simulation are a
    thick line below the others.
    """

    name: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float | None]
    kind: Kind = "line"
    role: Role = "ours"


@dataclass(frozen=True)
class Panel:
    """Curves with common axes.

    Attributes:
        title, curves: heading, and the curves.
        x, y: quantities of the axes, with units.
        logarithmic: whether the vertical axis is logarithmic.
        is_map: whether both axes have the same scale, as for positions in a plane.
    """

    title: str
    x: str
    y: str
    curves: tuple[PlotCurve, ...]
    logarithmic: bool = False
    is_map: bool = False

    def figure(self, is_wide: bool = False) -> Figure:
        """Return the panel as a figure in the style of the report. is_wide: full width of the page, not half."""
        places = {role: [curve for curve in self.curves if curve.role == role] for role in ROLES}
        traces = [_trace(curve, places[curve.role].index(curve)) for curve in self.curves]
        shown = len(self.curves) > 1
        # Legend entries are in columns of equal width.
        longest = _LEGEND_SYMBOL + _LEGEND_LETTER * max((len(curve.name) for curve in self.curves), default=0)
        rows = -(-len(self.curves) // max(1, int(_LEGEND_WIDTH[is_wide] // longest))) if shown else 0
        layout: dict[str, Any] = {
            "title": title(self.title), "xaxis": axis(self.x), "yaxis": self._vertical(), "barmode": "group",
            "showlegend": shown, "margin": {"l": 66, "r": 16, "t": 40 + _LEGEND_LINE * rows, "b": 46}}
        words = f"{self.title}: {self.y} over {self.x}; {', '.join(curve.name for curve in self.curves)}"
        return Figure(traces, layout, words, 280 + _LEGEND_LINE * rows)

    def _vertical(self) -> dict[str, Any]:
        if not self.logarithmic:
            return {**axis(self.y), **({"scaleanchor": "x"} if self.is_map else {})}
        values = [abs(y) for curve in self.curves for y in curve.y if y]
        return log_axis(self.y, min(values), max(values))


@dataclass(frozen=True)
class Drawing:
    """A figure of a reproduction. document: the number of the document's figure and a description of it."""

    title: str
    document: str
    panels: tuple[Panel, ...]


def _trace(curve: PlotCurve, place: int) -> dict[str, Any]:
    color = {"ours": SERIES[place % len(SERIES)], "printed": GREY, "true": MEASURED}[curve.role]
    x = list(curve.x) if curve.x and isinstance(curve.x[0], str) else numbers(np.asarray(curve.x, dtype=float), 6)
    y = numbers(np.array([np.nan if value is None else value for value in curve.y], dtype=float))
    if curve.kind == "bars":  # printed bars are hatched, in the colour of the computed bars at the same place
        hatched = {"color": "#ffffff", "line": {"color": SERIES[place % len(SERIES)], "width": 1},
                   "pattern": {"shape": "/", "fgcolor": SERIES[place % len(SERIES)], "size": 5}}
        return {"type": "bar", "x": x, "y": y, "name": curve.name,
                "marker": hatched if curve.role == "printed" else {"color": color}}
    if curve.kind == "points":
        printed = curve.role == "printed"
        marker = {"symbol": "circle-open", "size": 9, "line": {"width": 2}} if printed else {
            "symbol": SYMBOLS[place % len(SYMBOLS)], "size": 8}
        return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": curve.name,
                "marker": {"color": INK if printed else color, **marker}}
    dash = {"dash": "dash"} if curve.role == "printed" else {}
    return line(x, y, curve.name, color, 4.0 if curve.role == "true" else 1.6, line=dash)


def thinned(t: Array, signals: Array, most: int = 400) -> tuple[list[float], list[list[float | None]]]:
    """Return times and each column of signals (samples, k) as plain numbers, decimated to about `most` rows. Half of
    the rows are evenly spaced, so that lines of many columns stay smooth; the other rows are extremes."""
    even = np.linspace(0, len(t) - 1, min(most // 2, len(t))).astype(int)
    rows = np.union1d(even, thinned_rows(np.where(np.isfinite(signals), signals, 0.0), most // 2))
    return [float(f"{x:.7g}") for x in t[rows]], [numbers(column, 6) for column in signals[rows].T]

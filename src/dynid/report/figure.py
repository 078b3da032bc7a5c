"""Figures as plain dictionaries for plotly's JavaScript, in one style, and decimation that keeps extremes."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.html_tables import html_text
from dynid.order_statistics import distinct

# Okabe and Ito's colours, distinguishable with any colour vision; grey for measured values.
INK, GREY, LIGHT, GRID = "#2b2f36", "#7b828c", "#c9ced6", "#e8ebef"
MEASURED = "#a9b0ba"  # drawn thick below predictions, so that both are visible where they agree
BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#56b4e9", "#cc79a7"
SERIES = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, "#8c6d31", GREY)
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "star", "cross", "pentagon")
# From vermilion over white to blue, for signed numbers.
DIVERGING = [[0.0, "#b34700"], [0.25, "#eda36c"], [0.5, "#ffffff"], [0.75, "#7cb8dc"], [1.0, "#005a8e"]]

_MOST_DECADES = 8  # decades up to which an axis labels every power of ten; with more, every second, third, ...

# Layout common to all figures; the page's script combines it with each figure's own layout.
LAYOUT: dict[str, Any] = {
    "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif", "size": 13,
             "color": INK},
    "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "#ffffff", "colorway": list(SERIES), "showlegend": True,
    "margin": {"l": 66, "r": 16, "t": 34, "b": 46}, "hovermode": "closest",
    "modebar": {"bgcolor": "rgba(255,255,255,0.85)", "color": GREY, "activecolor": BLUE, "orientation": "v"},
    "hoverlabel": {"bgcolor": "#ffffff", "bordercolor": LIGHT, "font": {"size": 13, "color": INK}},
    "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.01, "yanchor": "bottom",
               "bgcolor": "rgba(0,0,0,0)", "font": {"size": 12}},
}
AXIS: dict[str, Any] = {"gridcolor": GRID, "zerolinecolor": LIGHT, "linecolor": LIGHT, "showline": True,
                        "ticks": "outside", "tickcolor": LIGHT, "ticklen": 4, "automargin": True}
CONFIG: dict[str, Any] = {"responsive": True, "displaylogo": False, "showSendToCloud": False,
                          "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
                          "toImageButtonOptions": {"format": "svg"}}


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure for plotly's JavaScript.

    Attributes:
        data: plotly traces, plain values.
        layout: settings in addition to `LAYOUT`, plain values.
        label: text alternative for screen readers.
        height: px.
        width: minimum width, px; a narrower window scrolls the figure.
        widest: maximum width, px, or 0 for no limit.
        frames: animation frames in plotly's format.
    """

    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    label: str
    height: int = 300
    width: int = 0
    widest: int = 0
    frames: Sequence[Mapping[str, Any]] = ()

    def __html__(self) -> str:
        moving = {"frames": list(self.frames)} if self.frames else {}
        spec = script_json({"data": list(self.data), "layout": dict(self.layout), **moving})
        size = f"height:{self.height}px" + (f";min-width:{self.width}px" if self.width else "")
        size += f";max-width:{self.widest}px" if self.widest else ""
        return (f'<div class="scroll"><div class="figure" role="img" aria-label="{html_text(self.label)}" '
                f'style="{size}"><script type="application/json">{spec}</script></div></div>')


def script_json(value: Any) -> Markup:
    """Return JSON that is safe inside a script element. Raise for a number that is not finite, which is a bug."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_binary)
    for sign in "&<>\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def text(name: str) -> str:
    """Escape a name for a figure: plotly interprets some HTML, which a user's names must not contain."""
    return html_text(name, quotes=False).replace("%{", "% {")


def _binary(values: np.ndarray) -> dict[str, str]:
    """Return the values of `packed` in plotly's binary form."""
    return {"dtype": f"{values.dtype.kind}{values.dtype.itemsize}", "bdata": b64encode(values.tobytes()).decode()}


def packed(values: ArrayLike) -> np.ndarray:
    """Return the values of a line of many points with seven digits; nan leaves a gap.

    A page contains them in binary form: text takes ten times as long to write.
    """
    return np.asarray(values, dtype="<f4", order="C")


def numbers(values: ArrayLike, digits: int = 5) -> list[float | None]:
    """Round values to `digits` digits of the largest one, as plain numbers; None for values that are not finite."""
    x = np.asarray(values, dtype=float)
    good = np.isfinite(x)
    top = float(np.abs(x[good]).max()) if good.any() else 0.0
    if top > 0:
        x = np.round(x, int(np.clip(digits - 1 - np.floor(np.log10(top)), -290, 290)))
    plain: list[float | None] = x.tolist()
    return plain if good.all() else [v if ok else None for v, ok in zip(plain, good.tolist(), strict=True)]


def significant(values: ArrayLike, digits: int = 4) -> list[float | None]:
    """Round each value to `digits` significant digits, for logarithmic axes; None for values that are not finite."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]


def axis(title: str, **options: Any) -> dict[str, Any]:
    """Return the layout of a plot axis with a title that includes the unit."""
    return {**AXIS, "title": {"text": title, "standoff": 8, "font": {"size": 13}}, **options}


def log_axis(title: str, low: float, high: float, **options: Any) -> dict[str, Any]:
    """Return a logarithmic axis from low to high, labelled at 1, 2 and 5 over few decades, else at powers of ten.

    By default plotly labels the digits between two powers in a smaller size, and these labels overlap in small figures.
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    digits = (1, 2, 5) if np.log10(high / low) < 2.5 else (1,)
    every = -(-(last - first) // _MOST_DECADES) or 1
    ticks = [float(f"{digit}e{k}") for k in range(first, last + 1) if k % every == 0 for digit in digits]
    return axis(title, type="log", tickvals=ticks, ticktext=[tick_text(tick) for tick in ticks], **options)


def tick_text(value: float) -> str:
    """Format a tick as a plain number, or as a power of ten if that is shorter."""
    size = abs(value)
    if value == 0 or 1e-3 <= size < 1e5:
        return f"{value:g}".replace("-", "\u2212")
    digit, exponent = f"{size:.0e}".split("e")
    factor = "" if digit == "1" else f"{digit}\u00b7"
    return ("\u2212" if value < 0 else "") + f"{factor}10<sup>{int(exponent)}</sup>".replace("-", "\u2212")


def title(name: str) -> dict[str, Any]:
    """Return a name as the bold title of a figure, at its left."""
    return {"text": f"<b>{text(name)}</b>", "x": 0.005, "xanchor": "left", "y": 0.99, "yanchor": "top",
            "font": {"size": 14}}


def line(x: Sequence[Any] | np.ndarray, y: Sequence[Any] | np.ndarray, name: str, color: str, width: float = 1.5,
         **options: Any) -> dict[str, Any]:
    """Return a plotly trace: a line through points."""
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name,
            "line": {"color": color, "width": width, **options.pop("line", {})}, **options}


def level(value: float, color: str = GREY, dash: str = "dash") -> dict[str, Any]:
    """Return a horizontal line across the plot, as a shape."""
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
            "line": {"color": color, "width": 1, "dash": dash}}


def mark(value: float, color: str = GREY, dash: str = "dash") -> dict[str, Any]:
    """Return a vertical line across the plot, as a shape."""
    return {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": value, "x1": value,
            "line": {"color": color, "width": 1, "dash": dash}}


def thinned_rows(signals: Array, most: int) -> Ints:
    """Return at most `most` rows of signals (samples, k): those with the lowest and highest value of each signal in
    every interval of time, in order.

    A line through these rows reaches the same extremes as a line through all rows.
    """
    count, width = signals.shape
    if count <= most:
        return np.arange(count)
    stretches = max(1, (most - 2) // (2 * width))
    size = -(-count // stretches)
    stretches = -(-count // size)
    starts = np.arange(stretches)[:, None] * size
    # The last interval is padded with its last row.
    padded = np.concatenate([signals, np.repeat(signals[-1:], stretches * size - count, axis=0)])
    blocks = padded.reshape(stretches, size, width)
    picked = [starts + blocks.argmin(axis=1), starts + blocks.argmax(axis=1)]
    rows = distinct(np.concatenate([np.zeros(1, dtype=np.int64), np.array([count - 1]), *(p.ravel() for p in picked)]))
    return rows[rows < count]


def with_breaks(t: Array, rows: Ints, longest: float, *signals: Array) -> list[Array]:
    """Return t (samples,) and signals (samples,) at the chosen rows, with nan between rows that are more than `longest`
    seconds apart."""
    jumps = np.flatnonzero(np.diff(t) > longest) + 1  # first rows after a jump
    at = np.searchsorted(rows, jumps)
    at = distinct(at[(at > 0) & (at < len(rows))])
    chosen = [np.insert(signal[rows], at, np.nan) for signal in signals]
    return [np.insert(t[rows], at, t[rows][at]), *chosen]

"""Panels of lines and points as one SVG in docs/images: text in the reader's own font, nothing to fetch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array

IMAGES = Path(__file__).resolve().parents[1] / "images"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito's
WIDTH, HEIGHT, COLUMNS = 450, 340, 2  # of a panel, pixels
LEFT, TOP, BOTTOM = 64, 30, 118  # room for labels and the legend


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines by their legend, each x and y (points,). points: legends drawn as points; log: y on a logarithmic axis;
    dashed: legends whose lines are dashed, so that one under them shows."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[Array, Array]]
    points: tuple[str, ...] = ()
    dashed: tuple[str, ...] = ()
    log: bool = False


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers between two."""
    raw = (high - low) / 5.0
    step = min((m * 10.0 ** np.floor(np.log10(raw)) for m in (1.0, 2.0, 5.0, 10.0)), key=lambda s: abs(s - raw))
    return [float(round(x, 10)) + 0.0 for x in np.arange(np.ceil(low / step) * step, high + 1e-9 * step, step)]


def drawn(panel: Panel) -> str:
    """A panel as SVG, its upper left corner at the origin."""
    lines = {name: (np.asarray(x, float), np.log10(y) if panel.log else np.asarray(y, float))
             for name, (x, y) in panel.lines.items()}
    xs, ys = (np.concatenate([line[k] for line in lines.values()]) for k in (0, 1))
    room = 0.06 * (ys.max() - ys.min())
    (x0, x1), (y0, y1) = (xs.min(), xs.max()), (ys.min() - room, ys.max() + room)
    right, low = WIDTH - 12, HEIGHT - BOTTOM

    def place(x: Any, y: Any) -> tuple[Any, Any]:
        return LEFT + (x - x0) / (x1 - x0) * (right - LEFT), low - (y - y0) / (y1 - y0) * (low - TOP)

    parts = [f'<text x="{LEFT}" y="18" font-weight="bold" font-size="14">{panel.title}</text>']
    for x in ticks(x0, x1):
        at, _ = place(x, 0.0)
        parts.append(f'<path d="M{at:.1f} {TOP}V{low}" stroke="#e4e4e4"/><text x="{at:.1f}" y="{low + 15}" '
                     f'text-anchor="middle">{x:g}</text>')
    for y in ticks(y0, y1):
        _, at = place(0.0, y)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{right}" stroke="#e4e4e4"/><text x="{LEFT - 6}" y="{at + 4:.1f}" '
                     f'text-anchor="end">{f"{10.0 ** y:.1g}" if panel.log else f"{y:g}"}</text>')
    parts.append(f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{low - TOP}" fill="none" stroke="#999"/>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{low + 31}" text-anchor="middle">{panel.x}</text>')
    parts.append(f'<text transform="translate(13 {(TOP + low) / 2}) rotate(-90)" text-anchor="middle">{panel.y}</text>')
    for k, (name, (x, y)) in enumerate(lines.items()):
        places, colour, key = list(zip(*place(x, y), strict=True)), COLOURS[k], low + 47 + 13 * k
        dash = ' stroke-dasharray="5 4"' if name in panel.dashed else ""
        if name in panel.points:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6" fill="{colour}"/>' for a, b in places]
        else:
            joined = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
            parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
        parts.append(f'<path d="M{LEFT} {key - 4}h20" stroke="{colour}" stroke-width="3"{dash}/>'
                     f'<text x="{LEFT + 26}" y="{key}">{name}</text>')
    return "".join(parts)


def write(name: str, panels: Sequence[Panel]) -> None:
    """docs/images/NAME.svg: two panels in a row."""
    rows, wide = -(-len(panels) // COLUMNS), WIDTH * min(COLUMNS, len(panels))
    high = HEIGHT - 13 * (6 - max(len(one.lines) for one in panels))  # there is room for six lines of a legend
    inside = "\n".join(f'<g transform="translate({WIDTH * (k % COLUMNS)} {high * (k // COLUMNS)})">{drawn(one)}</g>'
                       for k, one in enumerate(panels))
    (IMAGES / f"{name}.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" viewBox="0 0 {wide} {high * rows}" '
        f'font-family="sans-serif" font-size="11" fill="#222"><rect width="100%" height="100%" '
        f'fill="#fff"/>\n{inside}\n</svg>\n', encoding="utf-8")

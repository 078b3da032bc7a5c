"""Variation of the parameters within and between robots, in numbers and as box plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dynid.report.figure import SERIES, Figure, axis, significant, text
from dynid.report.pages.fleet.data import FleetData
from dynid.report.section import Section
from dynid.report.words import typeset

_DIFFERENCE_WORDS = {
    "robots": "between robots", "motions": "between motions only", "nothing": "no", "unknown": "not known"}


def gather(data: FleetData) -> Mapping[str, Any]:
    return {"rows": data.parameters, "words": _DIFFERENCE_WORDS, "figures": [box_figure(*one) for one in data.boxes]}


def box_figure(name: str, unit: str, robots: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """Return box plots of one parameter's values from each log, one box per robot."""
    traces = [{"type": "box", "name": text(robot), "y": significant(values), "boxpoints": "all", "jitter": 0.3,
               "pointpos": 0, "marker": {"color": SERIES[k % len(SERIES)], "size": 4}, "line": {"width": 1}}
              for k, (robot, values) in enumerate(robots)]
    layout = {"yaxis": axis(typeset(text(f"{name}, {unit}"))), "xaxis": axis(""), "showlegend": False}
    return Figure(traces, layout, f"{name} of each log, one box per robot", 280, width=40 * len(robots))


SECTION = Section("parameters", "Parameters", gather)

"""Figures of sousa-point-masses: errors and times of three methods over the number of links."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve


def figures(result: dict[str, Any]) -> list[Drawing]:
    rows = result["curve"]
    ways = list(max((row["growth"] for row in rows), key=len))

    def panel(what: str, label: str, logarithmic: bool) -> Panel:
        return Panel("random robots", "links", label, tuple(
            PlotCurve(way, [row["links"] for row in rows if way in row[what]],
                      [row[what][way] for row in rows if way in row[what]]) for way in ways), logarithmic)

    return [Drawing("Error above that of least squares", "figure 6.2: the cone programme always has the smallest "
                    "error, point masses about twice its excess, and sequential quadratic programming now near, now "
                    "far.",
                    (panel("growth", "error above least squares, %", True),)),
            Drawing("Time of the solvers", "figure 6.3: times of the cone programme follow a smooth curve, point "
                    "masses are faster, and sequential quadratic programming is slow.",
                    (panel("seconds", "CPU time, s", True),))]

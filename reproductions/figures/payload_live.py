"""Figures of payload-live: the mass of a constant and of a changing load over time."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve

TRUE = {"M_L": (4.092, "mass, kg"), "MZ_L": (0.69, "first moment, kg m")}


def figures(result: dict[str, Any]) -> list[Drawing]:
    series = dict(result["figure_4_3"])
    t = series.pop("t")
    few = sum(x <= 20.0 for x in t)
    panels = tuple(Panel(what, "time, s", label, (
        PlotCurve("true", (0.0, 20.0), (value, value), role="true"),
        *(PlotCurve(name, t[:few], one[what][:few]) for name, one in series.items())))
        for what, (value, label) in TRUE.items())
    tasks = []
    for name, trips in result["tasks"].items():
        steps = [(x, one["mass"]) for one in trips for x in (one["t"][0], one["t"][-1])]
        tasks.append(Panel(name, "time, s", "mass, kg", (
            PlotCurve("true", [x for x, _ in steps], [y for _, y in steps], role="true"),
            PlotCurve("ten numbers of the load", [x for one in trips for x in one["t"]],
                  [y for one in trips for y in one["history"]]))))
    return [Drawing("A constant load", "figure 4.3: mass and first moment of the cylinder from 64 base parameters that "
                    "are estimated at once rise quickly and then approach the truth; by three equations of joint 4 "
                    "(E1) sooner than by six (E2), sooner still with larger variances (F), and with forgetting (G) "
                    "they vary more.", panels),
            Drawing("A load that changes", "figure 4.6: the mass while a box is loaded with 2 kg, 0.5 kg and emptied "
                    "at two work-stations, for several ways to forget; it takes a trip or more to follow.",
                    tuple(tasks))]

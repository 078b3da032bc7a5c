"""Figures of scara-iv: what instruments find at each step, and the estimates of all cases."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve

# Table 4: the start and three steps.
STEPS = {"ZZ1R": (1.0, 3.46, 3.45, 3.45), "Fv1": (0.0, 0.04, 0.02, 0.02), "Fc1": (0.0, 0.82, 0.85, 0.85),
         "ZZ2": (1.0, 0.06, 0.061, 0.061), "LMX2": (0.0, 0.122, 0.124, 0.124), "LMY2": (0.0, 0.05, 0.07, 0.07),
         "Fv2": (0.0, 0.005, 0.01, 0.01), "Fc2": (0.0, 0.130, 0.132, 0.132)}
UNITS = {"ZZ1R": "kg m²", "ZZ2": "kg m²", "LMX2": "kg m²", "LMY2": "kg m²", "Fv1": "N m s", "Fv2": "N m s",
         "Fc1": "N m", "Fc2": "N m"}


def figures(result: dict[str, Any]) -> list[Drawing]:
    steps = result["history"]
    count = range(1, len(steps) + 1)
    panels = []
    for k, name in enumerate(result["names"]):
        panels.append(Panel(name, "step", f"{name}, {UNITS[name]}", (
            PlotCurve("true", (1, max(len(steps), 3)), (result["truth"][k],) * 2, role="true"),
            PlotCurve("instruments", tuple(count), tuple(step[k] for step in steps), "points"),
            PlotCurve("table 4, printed", (1, 2, 3), STEPS[name][1:], "points", "printed"))))
    return [Drawing("Values at every step", "figure 10 and table 4: from the regular start all eight parameters of the "
                    "arm are found in the first step and hardly move after it.", tuple(panels)), _cases(result)]


def _cases(result: dict[str, Any]) -> Drawing:
    cases, panels = list(result["published"]), []
    for name in ("ZZ1R", "ZZ2", "LMX2", "Fc1"):
        k = result["names"].index(name)
        panels.append(Panel(name, "", f"{name}, {UNITS[name]}", (
            PlotCurve("ours", cases, [result["values"][case][k] for case in cases], "bars"),
            PlotCurve("printed", cases, [result["published"][case][k] for case in cases], "bars", "printed"))))
    return Drawing("Estimates of all cases", "tables 1 to 7: filtered, both methods agree; unfiltered, least squares "
                   "is off by half in the first inertia and instruments are not; half the bandwidth changes little.",
                   tuple(panels))

"""Figures of scara-iv: estimates of instrumental variables at each step, errors of the simulated motion, and all
estimates."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions._printed import printed

UNITS = {"ZZ1R": "kg m²", "ZZ2": "kg m²", "LMX2": "kg m²", "LMY2": "kg m²", "Fv1": "N m s", "Fv2": "N m s",
         "Fc1": "N m", "Fc2": "N m"}


def figures(result: dict[str, Any]) -> list[Drawing]:
    steps, table_4 = result["history"], printed("002", "4")
    count = range(1, len(steps) + 1)
    panels = []
    for k, name in enumerate(result["names"]):
        panels.append(Panel(name, "step", f"{name}, {UNITS[name]}", (
            PlotCurve("true", (1, max(len(steps), 3)), (result["truth"][k],) * 2, role="true"),
            PlotCurve("instruments", tuple(count), tuple(step[k] for step in steps), "points"),
            PlotCurve("table 4, printed", (1, 2, 3),
                      [table_4.value(name, step) for step in ("first", "second", "third")], "points", "printed"))))
    return [Drawing("Values at every step", "figure 10 and table 4: from the regular start all eight parameters of the "
                    "arm are found in the first step and hardly move after it. LMY2 is printed ten times too large.",
                    tuple(panels)),
            _motions(result), _torques(result), _cases(result)]


def _motions(result: dict[str, Any]) -> Drawing:
    """Return figures 8, 9, 12 and 13."""
    panels = []
    for how, path in result["path"].items():
        for joint in range(2):
            panels.append(Panel(f"joint {joint + 1}, {how}", "step", "motion error, %", tuple(
                PlotCurve(f"{quantity}, relative to the {whose}", tuple(range(1, len(path[key]) + 1)),
                          [step[k][joint] for step in path[key]], "points")
                for key, whose in (("measured", "measured"), ("reference", "reference"))
                for k, quantity in enumerate(("position", "velocity", "acceleration"))), True))
    return Drawing("The simulated motion beside the measured one and the reference", "figures 8 and 9, filtered, and "
                   "12 and 13, unfiltered: from the first step on the simulated motion is close to the measured one; "
                   "relative to the reference 1.5 % are printed in position, 15 in velocity and 30 in acceleration.",
                   tuple(panels))


def _torques(result: dict[str, Any]) -> Drawing:
    """Return figure 11."""
    panels = tuple(Panel(how, "step", "torque error, %", tuple(
        PlotCurve(f"joint {joint + 1}", tuple(range(1, len(path["torque"]) + 1)),
                  [step[joint] for step in path["torque"]], "points") for joint in range(2)))
        for how, path in result["path"].items())
    return Drawing("The torque error at every step", "figure 11: it has converged after the first step.", panels)


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

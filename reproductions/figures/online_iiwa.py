"""Figures of online-iiwa: parameters of joint 4 from four starts, sequential methods, and a load that changes."""

from __future__ import annotations

from typing import Any

from figures.panels import bars

from dynid.report.drawing import Drawing, Panel, PlotCurve

JOINTS = [f"joint {j}" for j in range(1, 8)]
UNITS = {"F": "N m", "M": "kg m", "X": "kg m²", "Z": "kg m²"}  # by a name's first letter
# Table 3.3, on the real robot: Global_Spline_1.
PRINTED = {"rls, cls, s-rls": (22.02, 2.56, 3.40, 0.78, 10.60, 21.38, 22.83),
           "s-rls-b": (22.54, 2.65, 3.56, 0.84, 12.36, 19.98, 20.62),
           "line-by-line": (22.78, 2.64, 3.55, 0.84, 12.71, 20.02, 20.62)}


def figures(result: dict[str, Any]) -> list[Drawing]:
    cases, load = result["starts"], result["load"]
    shown = tuple(Panel(name, "time, s", f"{name}, {UNITS[name[0]]}",
                        tuple(PlotCurve(f"case {case}", one[name]["t"], one[name]["values"])
                              for case, one in cases.items() if case != "C")) for name in cases["A"])
    errors = {name: logs[0] for name, logs in result["table_3_3"]["errors"].items() if name not in ("cls", "s-rls")}
    trips = tuple(range(1, len(load["loads"]) + 1))
    masses = Panel("mass of the load", "trip", "mass, kg", (
        PlotCurve("true", trips, load["loads"], role="true"),
        *(PlotCurve(name, trips, one["mass"]) for name, one in load["ways"].items())))
    return [
        Drawing("Parameters of joint 4 from the first sample on", "figure 4.2: from knowledge of the robot (A) or of "
                "its controller (B) the main parameters are near their final values from the start; without deleting "
                "slow samples (D) they jump around the fifth second. Case C, from nothing, is in its table 4.1 only.",
                shown),
        Drawing("From nothing", "table 4.1, case C: more than 35 s until the three main inertial parameters settle.",
                tuple(Panel(name, "time, s", f"{name}, {UNITS[name[0]]}", (
                    PlotCurve("case C", cases["C"][name]["t"], cases["C"][name]["values"]),))
                    for name in ("XX4R", "MY4R"))),
        Drawing("Recursive and sequential methods", "table 3.3: no difference of note between them; joints 1, 5, 6 and "
                "7 of the real robot are predicted worse, since friction is most of their torque.",
                (bars(JOINTS, errors, PRINTED, "error of torques on another motion", "relative error, %"),)),
        Drawing("A load that changes at the work-stations", "figure 4.6: the mass follows the load when old samples "
                "are forgotten, the faster the more are forgotten, and then with more noise.", (masses,))]

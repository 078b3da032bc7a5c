"""Figures of online-iiwa: parameters of joint 4 from four starts, sequential methods, and a load that changes."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions._printed import printed
from reproductions.figures.panels import bars, by_joint

JOINTS = [f"joint {j}" for j in range(1, 8)]
UNITS = {"F": "N m", "M": "kg m", "X": "kg m²", "Z": "kg m²"}  # by a name's first letter


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
        *_recursive(result),
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
                (bars(JOINTS, errors, _printed_errors(), "error of torques on another motion", "relative error, %"),)),
        Drawing("A load that changes at the work-stations", "figure 4.6: the mass follows the load when old samples "
                "are forgotten, the faster the more are forgotten, and then with more noise.", (masses,))]


def _printed_errors() -> dict[str, list[float]]:
    """Return the errors of table 3.3 for the first motion."""
    table = printed("000", "3.3")
    return {row: [table.value(row, column) for column in table.columns] for row in list(table.rows)[:3]}


def _recursive(result: dict[str, Any]) -> list[Drawing]:
    """Return figures 3.1 to 3.4."""
    curves, sensed = dict(result["evolution"]), dict(result["figure_3_2"])
    t = curves.pop("t")

    def panels(names: tuple[str, ...], ways: tuple[str, ...]) -> tuple[Panel, ...]:
        return tuple(Panel(name, "time, s", f"{name}, {UNITS[name[0]]}",
                           tuple(PlotCurve(way, t, curves[way][name]) for way in ways)) for name in names)

    fourth = ("ZZ4R", "XX4R", "MY4R")
    return [Drawing("Estimates in situation 1", "figure 3.1: eight estimates by recursive instruments on filtered "
                    "data, from the model of the controller.", panels(
                        tuple(name for name in curves["riv"] if name != "Fc4"), ("riv",))),
            Drawing("Torques by the estimates of situation 1", "figure 3.2: sensed and reconstructed torques of "
                    "another motion.", by_joint(sensed.pop("t"), sensed, "time, s", "torque, N m")),
            Drawing("With and without knowledge", "figure 3.3: without knowledge the estimates of joint 4 take longer "
                    "to settle. Dry friction, which is not known in either case, varies more.",
                    panels((*fourth, "Fc4"), ("rls", "rls, no knowledge"))),
            Drawing("Least squares and instruments", "figure 3.4: on filtered data recursive least squares and "
                    "instruments have close estimates.", panels(fourth, ("rls", "riv")))]

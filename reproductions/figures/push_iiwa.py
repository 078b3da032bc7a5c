"""Figures of push-iiwa: forces of a person, and torques of models with and without these forces."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions.figures.panels import by_joint


def figures(result: dict[str, Any]) -> list[Drawing]:
    curves = result["curves"]
    forces = tuple(Panel(f"force {axis}", "time, s", "force, N", (
        PlotCurve("true", curves["force_t"], curves["force_true"][k], role="true"),
        PlotCurve("found from joint torques", curves["force_t"], curves["force_found"][k])))
        for k, axis in enumerate("xyz"))
    return [Drawing("Forces of a person at the hand", "figure 4.7: a force sensor shows pushes downwards in the first "
                    "and third loop and along the hand's axis in the fifth, nothing between.", forces),
            Drawing("Torques", "figure 4.8: while somebody pushes, the model identified before misses the sensed "
                    "torque; the model that is estimated all the time follows it.",
                    by_joint(curves["t"], curves["torques"], "time, s", "torque, N m"))]

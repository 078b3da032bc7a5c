"""Figures of iiwa-offline: torques of the controller's model and of the identified ones, and signals of joint 4."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions.figures.panels import by_joint


def figures(result: dict[str, Any]) -> list[Drawing]:
    commanded, sensed = dict(result["controller"]["figure_2_2"]), dict(result["figure_2_3"])
    signals = tuple(panel for name, curves in result["signals"].items() for panel in (
        Panel(name.split(",")[0], "time, s", name, (
            PlotCurve("sensed", curves["t"], curves["sensed"], role="true"),
            PlotCurve("commanded", curves["t"], curves["commanded"]))),
        Panel(f"{name.split(',')[0]}, difference", "time, s", name, (
            PlotCurve("sensed without commanded", curves["t"], curves["difference"]),))))
    return [Drawing("Commanded torques of the spline", "figure 2.2: the model found from commanded signals gives the "
                    "commanded torques of another motion, joint 7 worst.",
                    by_joint(commanded.pop("t"), commanded, "time, s", "torque, N m")),
            Drawing("Sensed torques of the spline", "figure 2.3: least squares, instruments and unfiltered instruments "
                    "reconstruct the sensed torques alike; models of the literature do not, of "
                    "which that of iiwa_stack is public.",
                    by_joint(sensed.pop("t"), sensed, "time, s", "torque, N m")),
            Drawing("Commanded and sensed signals of joint 4", "figures B.8 to B.11: the position error is below 1 % "
                    "and has the profile of the velocity; noise shows in acceleration and torque.", signals)]

"""Figures of iiwa-joint4: the motion of the joint, and its torque."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve


def figures(result: dict[str, Any]) -> list[Drawing]:
    curves = dict(result["curves"])
    t = curves.pop("t")
    *motion, sensed, ours = curves
    return [Drawing("The motion of joint 4", "figure C.4: position, velocity and acceleration of joint 4 alone, there "
                    "and back.", tuple(Panel(name.split(",")[0], "time, s", name, (
                        PlotCurve("joint 4", t, curves[name]),)) for name in motion)),
            Drawing("Its torque", "figure C.5: the torque of five essential parameters lies on the sensed one, within "
                    "0.5 %.", (Panel("joint 4", "time, s", "torque, N m", (
                        PlotCurve("sensed", t, curves[sensed], role="true"), PlotCurve(ours, t, curves[ours]))),))]

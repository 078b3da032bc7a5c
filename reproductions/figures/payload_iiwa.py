"""Figure of payload-iiwa: forces of a force-torque sensor, and those of the estimated load."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve


def figures(result: dict[str, Any]) -> list[Drawing]:
    curves = result["figure_c_6"]
    panels = tuple(Panel(name, "time, s", "force, N", (
        PlotCurve("sensed", curves["t"], curves["sensed"][k], role="true"),
        PlotCurve("reconstructed", curves["t"], curves["reconstructed"][k])))
        for k, name in enumerate(("Fx", "Fy", "Fz")))
    return [Drawing("Forces of the sensor", "figure C.6: forces of the sensor, and those that the parameters of the "
                    "load behind it give.", panels)]

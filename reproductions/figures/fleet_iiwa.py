"""Figures of fleet-iiwa: equal commands, different torques, and the error of each robot's model on the other robots."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions.figures.panels import bars
from reproductions.fleet_iiwa import mean_error

JOINTS = [f"joint {j}" for j in range(1, 8)]
ROBOTS = ("robot 1", "robot 2", "robot 3")


def figures(result: dict[str, Any]) -> list[Drawing]:
    curves = result["curves"]

    def over_time(what: str, label: str) -> tuple[Panel, ...]:
        return tuple(Panel(joint, "time, s", label, tuple(PlotCurve(name, curves[name]["t"], curves[name][what][j])
                                                          for name in ROBOTS)) for j, joint in enumerate(JOINTS))

    cross = tuple(bars(JOINTS, {f"on robot {j}": result["errors"][i - 1][j - 1] for j in (1, 2, 3)},
                       {f"on robot {j}": mean_error(i, j) for j in (1, 2, 3)}, f"model of robot {i}",
                       "relative error, %", logarithmic=True) for i in (1, 2, 3))
    return [Drawing("Commanded positions", "figure F.2: the same for all three arms.",
                    over_time("commanded", "position, rad")),
            Drawing("Torques", "figure F.3: they differ, most in joints 1, 5, 6 and 7.",
                    over_time("torques", "torque, N m")),
            Drawing("Whose model serves whom", "table F.1: every model serves every arm in joints 2 to 4; in the "
                    "others those of arms 1 and 3 do not serve arm 2, nor its model them.", cross)]

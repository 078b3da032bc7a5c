"""Figures of tx40-pc-iv: torques of the second joint on another motion, from fine and from coarse positions."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve

WORDS = {"actual data": "figure D.2: identified from actual data, all four methods give the torque of the second joint "
                        "on another motion.",
         "coarse data": "figure D.3: identified from downgraded data, consistent least squares misses it and the "
                        "others do not."}


def figures(result: dict[str, Any]) -> list[Drawing]:
    drawings = []
    for case, given in result["curves"].items():
        curves = dict(given)
        t = curves.pop("t")
        drawings.append(Drawing(f"Cross-validation, second joint, {case} (virtual TX40)", WORDS[case], (
            Panel("joint 2", "time, s", "torque, N m", tuple(
                PlotCurve(name, t, one, role="true" if name == "measured" else "ours")
                for name, one in curves.items())),)))
    return drawings

"""Figure of sousa-feasibility: how many inertia matrices are positive definite between two solutions."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve


def figures(result: dict[str, Any]) -> list[Drawing]:
    line = result["positive_definite"]
    panel = Panel("WAM", "share of the way from weighted LS to the constrained solution", "share of postures", (
        PlotCurve("random postures", line["share"], line["ratio"]),))
    return [Drawing("Positive definite inertia matrices", "figure 6.1: the ratio of positive definite inertia matrices "
                    "at random postures grows from the solution of weighted LS, which is not feasible, to one at the "
                    "feasible one.", (panel,))]

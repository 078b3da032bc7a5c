"""Figure of sousa-reduction: error and distance over the number of parameters left out."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve


def figures(result: dict[str, Any]) -> list[Drawing]:
    steps, error, published = result["steps"], result["relative_error"], result["published"]
    out = [step["left_out"] for step in steps]
    ends = (0, out[-1])
    errors = Panel("regression error", "parameters left out", "relative error, %", (
        PlotCurve("parameters left out one by one", out, [step["relative_error"] for step in steps]),
        PlotCurve("constrained, all parameters", ends, (error["constrained"],) * 2),
        PlotCurve("printed: least squares, constrained, reduced", (0, 0, published["left out"]),
              (published["least squares"], published["constrained"], published["reduced"]), "points", "printed")))
    far = Panel("distance to the feasible set", "parameters left out", "distance",
                (PlotCurve("distance", out, [max(step["distance"], 1e-9) for step in steps]),), logarithmic=True)
    return [Drawing("Leaving out parameters", "figure 6.4: the error grows with the number of parameters left out, and "
                    "the distance to the feasible set comes to zero only after 36 of 76, with an error above that of "
                    "the constrained solution.", (errors, far))]

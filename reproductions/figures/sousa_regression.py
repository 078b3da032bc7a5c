"""Figures of sousa-regression: errors of the torques by joint on both motions."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing
from reproductions._printed import printed
from reproductions.figures.panels import bars

JOINTS = [f"joint {j}" for j in range(1, 8)]


def figures(result: dict[str, Any]) -> list[Drawing]:
    on_a, on_b = result["errors"]["A"], result["errors"]["B"]
    table_a, table_b = printed("001", "4.7"), printed("001", "4.11")
    fitted = bars(JOINTS, {name: on_a[name] for name in ("ols", "wls")},
                  {"ols": table_a.values("OLS"), "wls": table_a.values("WLS")}, "motion A, fitted",
                  "relative error, %")
    other = bars(JOINTS, {name: on_b[name] for name in ("wls", "pc-wls")},
                 {"wls": table_b.values("B-WLS"), "pc-wls": table_b.values("B-limits")}, "motion B, not fitted",
                 "relative error, %")
    return [Drawing("Errors of the torques", "tables 4.7 and 4.11, figures 4.6 to 4.9: weights bring the wrist's "
                    "errors down; on motions that were not fitted the constrained solution errs less in every joint.",
                    (fitted, other))]

"""Torques: measured against predicted, joint by joint, on every log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.regression.residuals import Residuals
from dynid.report.figure import BLUE, MEASURED, ORANGE, Figure, axis, line, numbers, title
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.thin import runs, thinned_rows, with_breaks
from dynid.report.units import JointUnits

MOST_POINTS = 3000  # of one joint in one log
FEWEST_POINTS = 500
POINTS = 6000  # of one joint in all logs together; the page stays light
_STRETCHES = 300  # of rows left out that are drawn apart


def gather(data: ReportData) -> Mapping[str, Any]:
    logs = [("identified from", part) for part in data.reconstruction.series]
    logs += [("validation", part) for one in data.validations for part in one.series]
    points = int(np.clip(POINTS // max(len(logs), 1), FEWEST_POINTS, MOST_POINTS))
    panes = [{"label": data.log_name(part.source), "source": part.source, "kind": kind, "rows": len(part.t),
              "thinned": len(part.t) > points,
              "figures": [torque_figure(part, j, name, units, points)
                          for j, (name, units) in enumerate(zip(data.joints, data.units, strict=True))]}
             for kind, part in logs]
    fits = [{"own": own, "unit": units.torque, "others": [one.joints[j].relative_error for one in data.validations]}
            for j, (own, units) in enumerate(zip(data.reconstruction.joints, data.units, strict=True))]
    mixed = len({units.torque for units in data.units}) > 1
    total = {"own": data.reconstruction.total, "unit": "" if mixed else data.units[0].torque,
             "others": [one.total.relative_error for one in data.validations]}
    return {"panes": panes, "fits": fits, "total": total, "points": points,
            "others": [", ".join(map(data.log_name, one.sources)) for one in data.validations]}


def torque_figure(part: Residuals, j: int, name: str, units: JointUnits, points: int) -> Figure:
    """One joint: measured, predicted, and along the bottom the rows that were not used."""
    measured, predicted = part.measured[:, j], part.predicted[:, j]
    t = part.t - part.t[0]
    rows = thinned_rows(np.column_stack([measured, predicted]), points)
    time, shown, hat = with_breaks(t, rows, 3.5 / part.rate, measured, predicted)
    x, unit = numbers(time, 7), units.torque
    hover = f"%{{y:.4~g}} {unit} at %{{x:.3f}} s"
    traces = [line(x, numbers(shown), "measured", MEASURED, 4, hovertemplate=hover),
              line(x, numbers(hat), "predicted", BLUE, 1.4, hovertemplate=hover)]
    layout: dict[str, Any] = {"title": title(name), "xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]),
                              "yaxis": axis(f"{units.effort}, {unit}")}
    left_out = _stretches(t, ~part.keep[:, j])
    if left_out:
        traces.append(line(numbers(left_out, 7), [0.0] * len(left_out), "not used", ORANGE, 5, yaxis="y2",
                           hoverinfo="skip"))
        layout["yaxis2"] = {"overlaying": "y", "range": [0.0, 1.0], "visible": False, "fixedrange": True}
    return Figure(traces, layout, f"Measured and predicted {units.effort} of {name} over time", 290)


def _stretches(t: Array, left_out: Bools) -> list[float]:
    """Starts and ends of the stretches left out, a nan between them; neighbours are joined where they are too many."""
    stretches = [(float(t[a]), float(t[b - 1])) for a, b in runs(left_out)]
    apart = float(t[-1]) / _STRETCHES if len(stretches) > _STRETCHES else 0.0
    joined: list[tuple[float, float]] = []
    for start, end in stretches:
        if joined and start - joined[-1][1] < apart:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return [v for start, end in joined for v in (start, end, np.nan)]


SECTION = Section("torques", "Torques", gather)

"""Measured and predicted torques of each joint, for every log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, true_ranges
from dynid.recording import Samples
from dynid.regression.residual_series import Residuals
from dynid.report.figure import (
    BLUE,
    LIGHT,
    MEASURED,
    ORANGE,
    Figure,
    axis,
    line,
    numbers,
    packed,
    thinned_rows,
    title,
    with_breaks,
)
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits
from dynid.validate import Reconstruction

MOST_POINTS = 3000  # points per joint in one log
FEWEST_POINTS = 500
POINTS = 6000  # points per joint in all logs, which limits the page's size
_MAX_DRAWN_GAPS = 300  # largest number of drawn unused intervals


def gather(data: ReportData) -> Mapping[str, Any]:
    logs = [("identified from", *one) for one in _logs(data.reconstruction)]
    logs += [("validation", *one) for other in data.validations for one in _logs(other)]
    points = int(np.clip(POINTS // max(len(logs), 1), FEWEST_POINTS, MOST_POINTS))
    panes = [{"label": data.log_name(part.source), "source": part.source, "kind": kind, "rows": len(part.t),
              "all_rows": len(samples), "raw": _filtered(samples), "thinned": len(samples) > points,
              "figures": [torque_figure(part, samples, j, name, units, points)
                          for j, (name, units) in enumerate(zip(data.joints, data.units, strict=True))]}
             for kind, part, samples in logs]
    every = (data.reconstruction, *data.validations)
    fits = [{"own": own, "unit": units.torque,
             "errors": [(one.joints[j].relative_error, one.moving.joints[j]) for one in every]}
            for j, (own, units) in enumerate(zip(data.reconstruction.joints, data.units, strict=True))]
    mixed = len({units.torque for units in data.units}) > 1
    total = {"own": data.reconstruction.total, "unit": "" if mixed else data.units[0].torque,
             "errors": [(one.total.relative_error, one.moving.total) for one in every]}
    return {"panes": panes, "fits": fits, "total": total, "points": points, "counted": data.reconstruction.counted.text,
            "has_moving": any(one.moving.total.rows for one in every),
            "others": [(", ".join(map(data.log_name, one.sources)), one.counted.text) for one in data.validations]}


def _logs(fit: Reconstruction) -> list[tuple[Residuals, Samples]]:
    """Return each log as residuals of the regression and as samples."""
    return list(zip(fit.series, fit.samples, strict=True))


def _filtered(samples: Samples) -> bool:
    """Whether the torques of the regression differ from the measured ones."""
    return samples.decimation is not None or samples.raw_tau is not None


def torque_figure(part: Residuals, samples: Samples, j: int, name: str, units: JointUnits, points: int) -> Figure:
    """Return measured, low-passed and predicted torque of one joint; the unused rows are marked along the bottom."""
    measured, predicted = part.measured[:, j], part.predicted[:, j]
    t = part.t - part.t[0]
    rows = thinned_rows(np.column_stack([measured, predicted]), points)
    time, shown, hat = with_breaks(t, rows, 3.5 / part.rate, measured, predicted)
    x, unit = packed(time), units.torque
    hover = f"%{{y:.4~g}} {unit} at %{{x:.3f}} s"
    raw = [_raw_trace(part, samples, j, points, hover)] if _filtered(samples) else []
    traces = [*raw, line(x, packed(shown), "low-passed" if raw else "measured", MEASURED, 4, hovertemplate=hover),
              line(x, packed(hat), "predicted", BLUE, 1.4, hovertemplate=hover)]
    layout: dict[str, Any] = {"title": title(name), "xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]),
                              "yaxis": axis(f"{units.effort}, {unit}")}
    left_out = _stretches(t, ~part.keep[:, j])
    if left_out:
        traces.append(line(numbers(left_out, 7), [0.0] * len(left_out), "not used", ORANGE, 5, yaxis="y2",
                           hoverinfo="skip"))
        layout["yaxis2"] = {"overlaying": "y", "range": [0.0, 1.0], "visible": False, "fixedrange": True}
    return Figure(traces, layout, f"Measured and predicted {units.effort} of {name} over time", 290)


def _raw_trace(part: Residuals, samples: Samples, j: int, points: int, hover: str) -> Mapping[str, Any]:
    """Return the torque of joint j as measured, at the log's own rate, as a thin line that keeps peaks."""
    raw = np.ascontiguousarray(samples.measured_tau[:, j])
    rows = thinned_rows(raw[:, None], points)
    time, shown = with_breaks(samples.t - part.t[0], rows, 3.5 / samples.rate, raw)
    return line(packed(time), packed(shown), "raw", LIGHT, 0.8, hovertemplate=hover)


def _stretches(t: Array, left_out: Bools) -> list[float]:
    """Return starts and ends of unused intervals, separated by nan; neighbours are merged if there are too many."""
    stretches = [(float(t[a]), float(t[b - 1])) for a, b in true_ranges(left_out)]
    longest_gap = float(t[-1]) / _MAX_DRAWN_GAPS if len(stretches) > _MAX_DRAWN_GAPS else 0.0
    joined: list[tuple[float, float]] = []
    for start, end in stretches:
        if joined and start - joined[-1][1] < longest_gap:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return [v for start, end in joined for v in (start, end, np.nan)]


SECTION = Section("torques", "Torques", gather)

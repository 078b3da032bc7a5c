"""Filtered equations: the kernel and its frequency response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.recording.preparation.row_filter import RowFilter
from dynid.report.figure import BLUE, GREY, LIGHT, Figure, axis, log_axis, mark, significant
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section

_CURVE_POINTS = 240
_SHOWN_DECADES = 1.3  # decades below and above the cut-off


def gather(data: ReportData) -> Mapping[str, Any] | None:
    signals = next((log.filtered for log in data.logs if log.filtered is not None), None)
    if signals is None:
        return None
    rows = data.estimate.diagnostics.get("equations", {})
    suppressed = () if signals.filter.kernel is None else signals.filter.kernel.suppress
    return {"sentence": signals.filter.sentence(), "kind": signals.filter.kind, "rows": rows,
            "delay": signals.filter.delay, "suppressed": suppressed, "response": response_figure(signals.filter)}


def response_figure(filter_: RowFilter) -> Figure:
    """Return the gain of the equations, and of the motion that enters them, over the frequency."""
    high = min(filter_.cutoff * 10 ** _SHOWN_DECADES, 0.5 * filter_.rate)
    f = np.geomspace(filter_.cutoff * 10 ** -_SHOWN_DECADES, high, _CURVE_POINTS)
    traces = [{"type": "scatter", "mode": "lines", "x": significant(f), "y": significant(gain), "name": name,
               "line": {"color": color, "width": 2}, "hovertemplate": "%{x:.3~g} Hz: %{y:.3~g}<extra></extra>"}
              for gain, name, color in ((filter_.gain(f), "rows", BLUE), (filter_.motion_gain(f), "motion", GREY))]
    shapes = [mark(filter_.cutoff, GREY)]
    if filter_.kernel is not None:
        shapes += [mark(one, LIGHT, "dot") for one in filter_.kernel.suppress if f[0] <= one <= high]
    layout = {"xaxis": log_axis("frequency, Hz", float(f[0]), float(f[-1])),
              "yaxis": axis("gain", rangemode="tozero"), "shapes": shapes}
    return Figure(traces, layout, "Gain of the kernel over the frequency", 270, widest=560)


SECTION = Section("filtered_rows", "Equations without accelerations", gather)

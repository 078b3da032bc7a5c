"""Choice of the cut-off, and the change of parameters at half and twice its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.report.figure import BLUE, GREY, LIGHT, Figure, axis, log_axis, mark, significant
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.validate import CutoffDependence

MAX_TABLE_ROWS = 8  # parameters in the table


def gather(data: ReportData) -> Mapping[str, Any] | None:
    choice, dependence = data.cutoff_choice, data.cutoff_dependence
    known = dependence if choice is None else choice
    if known is None:
        return None
    return {"cutoff": known.cutoff, "choice": choice, "dependence": dependence,
            "errors": None if choice is None else errors_figure(choice),
            "moves": [] if dependence is None else moves(dependence)}


def moves(dependence: CutoffDependence) -> list[dict[str, Any]]:
    """Return the parameters that change most with the cut-off, sorted by the change in standard errors."""
    standard_errors, percent = dependence.standard_errors, dependence.percent
    known = np.flatnonzero(np.isfinite(dependence.std))
    order = known[np.argsort(-np.abs(standard_errors[:, known]).max(axis=0))][:MAX_TABLE_ROWS]
    return [{"name": dependence.names[i], "value": float(dependence.values[i]), "std": float(dependence.std[i]),
             "sides": [(float(dependence.at[k, i]), float(standard_errors[k, i]), float(percent[k, i]))
                       for k in range(len(dependence.others))]} for i in order]


def errors_figure(choice: CutoffChoice) -> Figure | None:
    """Return the cross-validation error over the cut-off; filled markers: about as good as the best cut-off."""
    if len(choice.tried) < 2:
        return None
    colors = [BLUE if good else "#ffffff" for good in choice.alike]
    traces = [{"type": "scatter", "mode": "lines+markers", "x": significant(choice.tried),
               "y": significant(choice.errors), "name": "cross-validation", "line": {"color": BLUE, "width": 2},
               "marker": {"size": 9, "color": colors, "line": {"color": BLUE, "width": 2}},
               "hovertemplate": "%{x:.3~g} Hz: %{y:.3~g} %<extra></extra>"}]
    low, high = float(choice.errors.min()), float(choice.errors.max())
    y = axis("cross-validation error, %", rangemode="tozero") if high < 10.0 * low else log_axis(
        "cross-validation error, %", low, high)
    layout = {"xaxis": log_axis("cut-off, Hz", float(choice.tried[0]), float(choice.tried[-1])), "yaxis": y,
              "showlegend": False, "shapes": [mark(choice.cutoff, GREY), mark(choice.spectrum, LIGHT, "dot")]}
    return Figure(traces, layout, "Cross-validation error over the cut-off frequency", 270, widest=560)


SECTION = Section("cutoff", "Cut-off", gather)

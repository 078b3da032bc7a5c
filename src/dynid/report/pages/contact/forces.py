"""Forces and moments over time with bands of two standard deviations, and the statistic with its threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.figure import BLUE, VERMILION, Figure, axis, level, line, numbers, title
from dynid.report.pages.contact.data import ContactData
from dynid.report.section import Section
from dynid.report.thin import thinned_rows

_AXIS_POINTS = 1500  # of one axis
_WRENCH_AXES = (("force x", "N"), ("force y", "N"), ("force z", "N"), ("moment x", "N m"), ("moment y", "N m"),
         ("moment z", "N m"))


def gather(data: ContactData) -> Mapping[str, Any]:
    return {"figures": [_axis_figure(data, k) for k in range(6)], "statistic": _statistic_figure(data),
            "frame": data.frame, "axes": data.axes}


def _axis_figure(data: ContactData, k: int) -> Figure:
    rows, (name, unit) = data.log.rows, _WRENCH_AXES[k]
    value, reach = rows.wrench[:, k], 2.0 * rows.std[:, k]
    shown = thinned_rows(np.column_stack([value, reach]), _AXIS_POINTS)
    t, value, reach = rows.t[shown], value[shown], reach[shown]
    band = {"type": "scatter", "mode": "lines", "x": numbers(np.concatenate([t, t[::-1]]), 6),
            "y": numbers(np.concatenate([value + reach, (value - reach)[::-1]])), "fill": "toself",
            "fillcolor": "rgba(0,114,178,0.18)", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    trace = line(numbers(t, 6), numbers(value), name, BLUE, 1.4, hovertemplate=f"%{{y:.4~g}} {unit} at %{{x:.3f}} s")
    layout = {"title": title(name), "xaxis": axis("time, s"), "yaxis": axis(f"{name}, {unit}"), "showlegend": False,
              "shapes": _spans(data)}
    return Figure([band, trace], layout, f"{name} over time with a band of two standard deviations", 240)


def _statistic_figure(data: ContactData) -> Figure:
    rows = data.log.rows
    shown = thinned_rows(rows.statistic[:, None], _AXIS_POINTS)
    trace = line(numbers(rows.t[shown], 6), numbers(np.maximum(rows.statistic[shown], 1e-3)), "statistic", BLUE, 1.2,
                 hovertemplate="%{y:.4~g} at %{x:.3f} s")
    layout = {"xaxis": axis("time, s"), "yaxis": axis("squared, normalised", type="log"), "showlegend": False,
              "shapes": [level(data.level, VERMILION)]}
    return Figure([trace], layout, "External joint torques, squared and normalised by their covariance, and the "
                                   "detection threshold",
                  240)


def _spans(data: ContactData) -> list[dict[str, Any]]:
    """Return the times of contacts as shaded areas."""
    return [{"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": one.start, "x1": one.stop, "layer": "below",
             "fillcolor": "rgba(213,94,0,0.10)", "line": {"width": 0}} for one in data.log.contacts]


SECTION = Section("forces", "Forces over time", gather)

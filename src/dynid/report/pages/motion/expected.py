"""Expected standard error of each base parameter from a log of the motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.figure import GREY, MEASURED, Figure, axis, level, significant, text
from dynid.report.pages.motion.data import MotionData
from dynid.report.section import Section
from dynid.report.words import COLORS, GOOD, POOR, grade, number, percent, typeset

_PER_NAME = 14  # px a parameter needs on the axis


def gather(data: MotionData) -> Mapping[str, Any]:
    found, base = data.excitation, data.excitation.base
    rows = [{"name": name, "meaning": base.meanings[k], "value": float(data.values[k]),
             "std": float(found.deviations[k]), "relative": float(data.relative[k]),
             "before": None if data.before is None else float(data.before[k]), "unit": typeset(base.units[k]),
             "expression": base.expressions[k],
             "grade": grade(float(data.relative[k])) if np.isfinite(data.relative[k]) else ""}
            for k, name in enumerate(base.names)]
    return {"figure": expected_figure(data), "rows": rows, "rate": found.rate, "noise": noise_words(data),
            "before": data.before is not None, "good": GOOD, "poor": POOR}


def noise_words(data: MotionData) -> str:
    """Return the torque noise with its unit: once if it is the same for all joints, else joint by joint."""
    noise = data.excitation.noise
    if np.allclose(noise, noise[0]) and len({units.torque for units in data.units}) == 1:
        return f"{number(float(noise[0]), 3)} {data.units[0].torque}"
    return ", ".join(f"{number(float(x), 3)} {units.torque}" for x, units in zip(noise, data.units, strict=True))


def expected_figure(data: MotionData) -> Figure | None:
    """Return bars of relative standard errors on a logarithmic axis, before and after if there are earlier logs."""
    shown = np.flatnonzero(np.isfinite(data.relative))
    if not len(shown):
        return None
    base, relative = data.excitation.base, data.relative[shown]
    names = [text(base.names[k]) for k in shown]
    labels = [f"{name}: {percent(float(r))}, ±{number(float(data.excitation.deviations[k]), 3)} "
              f"{typeset(base.units[k])}" for name, r, k in zip(names, relative, shown, strict=True)]
    traces: list[dict[str, Any]] = []
    reach = [relative]
    if data.before is not None:
        earlier = 100.0 * data.before[shown] / np.abs(data.values[shown])
        reach.append(earlier[np.isfinite(earlier)])
        traces.append({"type": "bar", "x": names, "y": significant(earlier), "name": "before",
                       "marker": {"color": MEASURED}, "hovertemplate": "%{x}: %{y:.3~g} %<extra>before</extra>"})
    traces.append({"type": "bar", "x": names, "y": significant(relative), "name": "expected", "text": labels,
                   "textposition": "none", "hovertemplate": "%{text}<extra></extra>",
                   "marker": {"color": [COLORS[grade(float(r))] for r in relative]}})
    every = np.concatenate(reach)
    low, high = np.log10(every.min()), np.log10(every.max())
    layout = {"xaxis": axis("base parameter", type="category", tickangle=-90 if len(names) > 12 else 0,
                            tickfont={"size": 11 if len(names) > 12 else 13}, dtick=1),
              "yaxis": axis("expected standard error, %", type="log", dtick=1, exponentformat="none",
                            range=[float(np.floor(low - 0.1)), float(high + 0.15)]),
              "shapes": [level(value, GREY, "dot") for value in (GOOD, POOR)], "bargap": 0.25,
              "showlegend": data.before is not None}
    return Figure(traces, layout, "Expected relative standard errors of the base parameters", 380,
                  120 + _PER_NAME * len(names))


SECTION = Section("expected", "Expected accuracy", gather)

"""Parameters: a sortable table and a chart with standard errors, with other methods for comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.estimate import Estimate
from dynid.estimate.estimate import WELL_DETERMINED
from dynid.estimate.problem import method_title
from dynid.estimate.summary_text import UNCERTAINTY
from dynid.order_statistics import quantile
from dynid.report.figure import GREY, SERIES, SYMBOLS, Figure, axis, level, numbers, significant, text, tick_text
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import GOOD, POOR, grade, number, percent, typeset
from dynid.robot.inertia import NAMES
from dynid.validate import compare

_PER_NAME = 11  # px per parameter on the axis
_MOST_BARS = 1e4  # percent: largest standard error drawn


def gather(data: ReportData) -> Mapping[str, Any]:
    estimate = data.estimate
    others = [other_values(estimate, other) for other in data.others]
    source = nominal_values(estimate)
    std, relative = estimate.std, estimate.relative_std
    units, expressions = estimate.base.units, estimate.base.expressions
    rows = [{"name": name, "meaning": estimate.base.meanings[k], "value": float(estimate.values[k]),
             "std": float(std[k]), "relative": float(relative[k]),
             "known": bool(estimate.identified[k]), "unit": typeset(units[k]), "expression": expressions[k],
             "grade": grade(float(relative[k])),
             "nominal": None if source is None else float(source[k]),
             "others": [{"value": float(other.values[k]), "known": bool(np.isfinite(other.values[k])),
                         "z_score": float(other.z_scores[k])} for other in others]}
            for k, name in enumerate(estimate.names)]
    parameters = estimate.base.parameters
    given = [{"name": name, "value": value, "unit": typeset(parameters.units[parameters.index(name)])}
            for name, value in estimate.known.items()]
    return {"rows": rows, "given": given, "uncertainty": UNCERTAINTY[estimate.cov_type], "others": others,
            "titles": {one.method: method_title(one.method) for one in others},
            "chart": chart(estimate, others, source), "hints": json.dumps(hints(estimate)),
            "identified": int(estimate.well_determined.sum()), "confounded": estimate.diagnostics.get("confounded", {}),
            "has_nominal": source is not None, "links": links(estimate), "joint_values": joint_values(estimate),
            "shape": shape_rows(estimate), "notes": [note.text for note in estimate.notes],
            "good": GOOD, "poor": WELL_DETERMINED,
            "well": int(np.sum(estimate.identified & (relative < GOOD))),
            "hardly": int(estimate.poorly_determined.sum())}


def hints(estimate: Estimate) -> dict[str, str]:
    """Return meaning and unit of every standard and base parameter by its name, for display on hover."""
    standard = {item.name: (item.meaning, item.unit) for item in estimate.model.parameters}
    base = dict(zip(estimate.names, zip(estimate.base.meanings, estimate.base.units, strict=True), strict=True))
    return {name: f"{meaning}, {typeset(unit)}" for name, (meaning, unit) in {**standard, **base}.items()}


def nominal_values(estimate: Estimate) -> Array | None:
    """Return the base values (base,) of the nominal model, or None if the nominal model is incomplete."""
    nominal = estimate.model.parameters.nominal
    return None if nominal is None else estimate.base.reduce(nominal)


@dataclass(frozen=True, eq=False)
class MethodValues:
    """Values of another method, standard errors, and differences from the main estimate in standard errors (base,)."""

    method: str
    values: Array
    std: Array
    z_scores: Array


def other_values(estimate: Estimate, other: Estimate) -> MethodValues:
    """Return the estimate of another method, expressed in the base parameters of the main estimate."""
    found = compare(estimate, other)
    place = {name: k for k, name in enumerate(estimate.names)}
    rows = [place[name] for name in found.names]
    values, std, z_scores = np.full((3, len(estimate.names)), np.nan)
    values[rows], std[rows], z_scores[rows] = found.values_b, found.std_b, found.z_scores
    return MethodValues(other.method, values, std, z_scores)


def links(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the ten inertial parameters of every body, if the method gives them."""
    if estimate.theta is None:
        return []
    return [{"name": body, "values": [float(estimate.theta[c]) for c in columns]}
            for body, columns in estimate.model.parameters.bodies.items() if len(columns) == len(NAMES)]


def joint_values(estimate: Estimate) -> list[dict[str, Any]]:
    """Return all parameters other than the inertial parameters of bodies, if the method gives them."""
    if estimate.theta is None:
        return []
    return [{"name": item.name, "meaning": item.meaning, "value": float(value), "unit": typeset(item.unit)}
            for item, value in zip(estimate.model.parameters, estimate.theta, strict=True) if item.body is None]


def shape_rows(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the friction shape parameters of the diagnostics, {name: value or {value, std}}, if available."""
    rows = []
    for name, found in (estimate.diagnostics.get("shape") or {}).items():
        facts = found if isinstance(found, Mapping) else {"value": found}
        rows.append({"name": name, "value": facts.get("value"), "std": facts.get("std")})
    return rows


def chart(estimate: Estimate, others: list[MethodValues], source: Array | None) -> Figure:
    """Return the values with two standard errors on an axis that is linear near zero and logarithmic otherwise, and the
    relative standard errors below. Parameters that are not identifiable are omitted."""
    shown = np.flatnonzero(estimate.identified)
    names = [text(estimate.names[k]) for k in shown]
    units = [f"{typeset(estimate.base.units[k])}<br>{text(estimate.base.meanings[k])}" for k in shown]
    linear = linear_part(estimate.values[shown])
    own = MethodValues(estimate.method, estimate.values, estimate.std, np.zeros(len(estimate.values)))
    traces = []
    for m, one in enumerate([own, *others]):
        # Markers of several methods are placed around the parameter's position on the axis.
        x = np.arange(float(len(names))) + 0.6 * ((m + 0.5) / (1 + len(others)) - 0.5)
        traces += _method(m, one, x, shown, names, units, linear)
    if source is not None:
        traces.append({"type": "scatter", "mode": "markers", "x": list(range(len(names))),
                       "y": numbers(symmetric_log(source[shown], linear)),
                       "name": "nominal", "marker": {"symbol": "line-ew-open", "size": 12, "color": GREY,
                                                          "line": {"width": 2}},
                       "text": [f"{name} = {number(v, 5)}" for name, v in zip(names, source[shown], strict=True)],
                       "hovertemplate": "%{text}<extra>nominal</extra>"})
    ticks = symmetric_log_ticks(estimate.values[shown], linear)
    layout = {"xaxis": axis("base parameter", tickangle=-90 if len(names) > 12 else 0, anchor="y2", zeroline=False,
                            tickfont={"size": 10 if len(names) > 12 else 13}, tickvals=list(range(len(names))),
                            ticktext=names, range=[-0.7, len(names) - 0.3]),
              "yaxis": axis("value, SI units", domain=[0.42, 1.0], tickvals=numbers(symmetric_log(ticks, linear), 6),
                            ticktext=[tick_text(v) for v in ticks]),
              "yaxis2": axis("standard error, %", domain=[0.0, 0.34], type="log", exponentformat="none", dtick=1),
              "shapes": [{**level(value, GREY, "dot"), "yref": "y2"} for value in (GOOD, POOR)],
              "legend": {"x": 0, "xanchor": "left"}}  # visible even if the chart is wider than the window
    width = 120 + _PER_NAME * len(names)
    return Figure(traces, layout, "Values of the base parameters with their standard errors", 560, width)


def _method(m: int, one: MethodValues, x: Array, shown: Ints, names: list[str], units: list[str],
            linear: float) -> list[dict[str, Any]]:
    """Return markers of one method at positions x: values with error bars on the symmetric logarithm, and relative
    standard errors below."""
    values, std = one.values[shown], one.std[shown]
    at, wide = symmetric_log(values, linear), 2.0 * np.nan_to_num(std, nan=0.0, posinf=0.0)
    relative = 100.0 * std / np.where(values == 0.0, np.nan, np.abs(values))
    labels = [f"{own}, {percent(r)}: {number(v, 5)} ± {number(s, 2)} {unit}"
            for own, v, s, unit, r in zip(names, values, std, units, relative, strict=True)]
    color, label = SERIES[m % len(SERIES)], text(one.method)
    marker = {"symbol": SYMBOLS[m % len(SYMBOLS)], "size": 7, "color": color, "opacity": 1.0 if m == 0 else 0.8}
    common = {"type": "scatter", "mode": "markers", "x": numbers(x), "name": label, "marker": marker,
              "legendgroup": str(m), "text": labels, "hovertemplate": f"%{{text}}<extra>{label}</extra>"}
    up, down = symmetric_log(values + wide, linear) - at, at - symmetric_log(values - wide, linear)
    bars = {"type": "data", "symmetric": False, "array": numbers(up), "arrayminus": numbers(down), "color": color,
            "thickness": 1.2, "width": 3}
    return [{**common, "y": numbers(at), "error_y": bars},
            {**common, "y": significant(np.clip(relative, 1e-4, _MOST_BARS)), "yaxis": "y2", "showlegend": False}]


def linear_part(values: Array) -> float:
    """Return the size below which the axis is linear: the power of ten below the 10 % quantile of the magnitudes."""
    size = np.abs(values[values != 0])
    return 10.0 ** np.floor(np.log10(quantile(size, 0.1))) if len(size) else 1.0


def symmetric_log(values: Array, linear: float) -> Array:
    """Return the symmetric logarithm: decades beyond `linear`, linear through zero."""
    return np.arcsinh(np.asarray(values, dtype=float) / (2.0 * linear)) / np.log(10.0)


def symmetric_log_ticks(values: Array, linear: float) -> Array:
    """Return ticks at zero and at powers of ten on both sides within the range of the values."""
    ticks, low = [0.0], int(np.round(np.log10(linear))) + 1
    for sign in (1.0, -1.0):
        reach = float(np.max(sign * values, initial=0.0))
        if reach > 0:
            top = max(int(np.ceil(np.log10(reach))), low)
            ticks += [sign * 10.0 ** k for k in range(low, top + 1, max(1, -(-(top - low) // 5)))]
    return np.array(sorted(ticks))


SECTION = Section("parameters", "Parameters", gather)

"""Tracking: commanded and measured signals over time and over velocity, and the identified control loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.order_statistics import distinct
from dynid.report.figure import BLUE, GREY, LIGHT, VERMILION, Figure, axis, line, numbers, packed, thinned_rows, title
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits
from dynid.validate import Tracking

POINTS = 1500  # points per joint in one log
CLOUD = 800  # points of error against speed
_USE_WORDS = {"as-they-are": "as they are", "as-instruments": "as instruments", "no": "not without the loop",
          "unknown": "not known"}


def gather(data: ReportData) -> Mapping[str, Any] | None:
    if not data.tracking:
        return None
    loops = [] if data.controller_fit is None else [
        {**row, "serve": _USE_WORDS[row["references_serve"]]} for row in data.controller_fit.to_dict(data.controller)]
    return {"panes": [_pane(data, one) for one in data.tracking], "loops": loops,
            "ratios": any(row["pole_ratio"] is not None for row in loops)}


def _pane(data: ReportData, log: Tracking) -> dict[str, Any]:
    torque, outside, units = log.torque_share, log.external_rms, data.units
    rows = [{"name": name, "unit": unit.position, "rms": float(log.rms[j]),
             "largest": float(np.abs(log.error[:, j]).max()), "share": float(log.share[j]),
             "lag": float(1e3 * log.lag[j]), "by_speed": float(log.by_speed[j]),
             "torque": None if torque is None else float(torque[j]),
             "external": None if outside is None else float(outside[j])}
            for j, (name, unit) in enumerate(zip(log.joints, units, strict=True))]
    figures = [figure for j, (name, unit) in enumerate(zip(log.joints, units, strict=True))
               for figure in (error_figure(log, j, name, unit), speed_figure(log, j, name, unit))]
    torques = [torque_figure(log, j, name, unit) for j, (name, unit) in enumerate(zip(log.joints, units, strict=True))
               if log.torque_error is not None or log.external_torque is not None]
    return {"label": data.log_name(log.source), "source": log.source, "kind": "", "rows": rows, "figures": figures,
            "torques": torques, "commanded": torque is not None, "external": log.external_torque is not None}


def error_figure(log: Tracking, j: int, name: str, units: JointUnits) -> Figure:
    """Return the position error of one joint over time, and the commanded velocity times the fitted lag."""
    t, late = log.t - log.t[0], np.nan_to_num(log.lag[j]) * log.speed[:, j]
    rows = thinned_rows(np.column_stack([log.error[:, j], late]), POINTS)
    hover = f"%{{y:.4~g}} {units.position} at %{{x:.3f}} s"
    traces = [line(packed(t[rows]), packed(log.error[rows, j]), "commanded minus measured", BLUE, 1.2,
                   hovertemplate=hover),
              line(packed(t[rows]), packed(late[rows]), "lag times velocity", VERMILION, 1.0, line={"dash": "dot"},
                   hovertemplate=hover)]
    layout = {"title": title(name), "xaxis": axis("time, s"), "yaxis": axis(f"error, {units.position}")}
    return Figure(traces, layout, f"Tracking error of {name} over time", 260)


def speed_figure(log: Tracking, j: int, name: str, units: JointUnits) -> Figure:
    """Return the commanded minus the measured position of one joint over its commanded velocity, and the fitted lag."""
    rows = distinct(np.linspace(0, len(log.t) - 1, CLOUD).round().astype(np.int64))
    speed, error = log.speed[rows, j], log.error[rows, j]
    ends = np.array([speed.min(), speed.max()])
    traces: list[Mapping[str, Any]] = [
        {"type": "scatter", "mode": "markers", "x": packed(speed), "y": packed(error), "name": "rows",
         "marker": {"color": GREY, "size": 3, "opacity": 0.6},
         "hovertemplate": f"%{{y:.4~g}} {units.position} at %{{x:.3~g}} {units.velocity}"},
        line(numbers(ends), numbers(np.nan_to_num(log.lag[j]) * ends), "lag", VERMILION, 1.5)]
    layout = {"title": title(name), "xaxis": axis(f"commanded velocity, {units.velocity}"), "showlegend": False,
              "yaxis": axis(f"error, {units.position}")}
    return Figure(traces, layout, f"Tracking error of {name} over its velocity", 260)


def torque_figure(log: Tracking, j: int, name: str, units: JointUnits) -> Figure:
    """Return the commanded minus the measured torque of one joint over time, and the estimated external torques."""
    t = log.t - log.t[0]
    signals: Sequence[tuple[str, str, Any]] = [
        (label, color, signal[:, j]) for label, color, signal in (
            ("commanded minus measured", BLUE, log.torque_error), ("external", VERMILION, log.external_torque))
        if signal is not None]
    rows = thinned_rows(np.column_stack([signal for _, _, signal in signals]), POINTS)
    traces = [line(packed(t[rows]), packed(signal[rows]), label, color, 1.1,
                   hovertemplate=f"%{{y:.4~g}} {units.torque} at %{{x:.3f}} s") for label, color, signal in signals]
    layout = {"title": title(name), "xaxis": axis("time, s"), "yaxis": axis(f"{units.effort}, {units.torque}",
                                                                            zerolinecolor=LIGHT)}
    return Figure(traces, layout, f"Commanded and external {units.effort} of {name} over time", 260)


SECTION = Section("tracking", "Commanded and measured", gather)

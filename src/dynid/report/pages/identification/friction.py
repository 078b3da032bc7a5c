"""Friction over velocity of each joint, and the chosen friction terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.figure import BLUE, MEASURED, Figure, axis, line, numbers, title
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits
from dynid.validate.friction_shape import FrictionShape, friction_shapes

_BAND_STD = 2.0  # standard errors on each side


def gather(data: ReportData) -> Mapping[str, Any] | None:
    shapes = friction_shapes(data.reconstruction)
    if not shapes:
        return None
    units = dict(zip(data.joints, data.units, strict=True))
    return {"figures": [figure(shape, units[shape.joint]) for shape in shapes],
            "starts": [(one, units[one.joint].torque) for one in data.breakaway]}


def figure(shape: FrictionShape, units: JointUnits) -> Figure:
    """Return medians and quartiles of one joint's friction data, and the fitted curve with its band."""
    x, unit = numbers(shape.velocity), units.torque
    low, high = (numbers(shape.torque + sign * _BAND_STD * shape.std) for sign in (-1.0, 1.0))
    bars = {"type": "data", "symmetric": False, "array": numbers(shape.high - shape.medians),
            "arrayminus": numbers(shape.medians - shape.low), "color": MEASURED, "thickness": 1, "width": 0}
    hover = f"%{{y:.4~g}} {unit} at %{{x:.3~g}} {units.velocity}"
    traces = [
        line(x, low, "band", BLUE, 0, hoverinfo="skip", showlegend=False),
        line(x, high, "two standard errors", BLUE, 0, hoverinfo="skip", fill="tonexty",
             fillcolor="rgba(0,114,178,0.18)"),
        {"type": "scatter", "mode": "markers", "x": numbers(shape.centres), "y": numbers(shape.medians), "name": "data",
         "marker": {"color": MEASURED, "size": 6}, "error_y": bars, "hovertemplate": hover},
        line(x, numbers(shape.torque), "friction", BLUE, 2, hovertemplate=hover)]
    layout = {"title": title(shape.joint), "xaxis": axis(f"velocity, {units.velocity}"),
              "yaxis": axis(f"friction, {unit}")}
    return Figure(traces, layout, f"Friction of {shape.joint} over velocity", 290)


SECTION = Section("friction", "Friction", gather)

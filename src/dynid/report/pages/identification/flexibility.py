"""Joint flexibility: torque over deflection of joints whose motor and link positions were both measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.figure import BLUE, MEASURED, VERMILION, Figure, axis, line, numbers, title
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits
from dynid.validate.deflection import Deflection

_DRAWN_POINTS = 700  # points drawn per direction


def gather(data: ReportData) -> Mapping[str, Any] | None:
    if not data.deflections:
        return None
    return {"figures": [figure(one, data.units[one.number]) for one in data.deflections],
            "sensed": data.deflections[0].origin == "sensor",
            "skewed": any(one.skew is not None for one in data.deflections)}


def figure(one: Deflection, units: JointUnits) -> Figure:
    """Return the torque of one joint at increasing and decreasing deflection, and the line of its stiffness."""
    unit, scale = units.torque, 1e3
    middle = float(np.median(one.bend))
    hover = f"%{{y:.4~g}} {unit} at %{{x:.3~g}} m{units.position}"
    traces = []
    for rows, name, color in ((one.rate > 0, "deflection increases", MEASURED), (one.rate <= 0, "deflection "
                                                                                      "decreases", VERMILION)):
        shown = np.flatnonzero(rows)[:: max(1, int(rows.sum()) // _DRAWN_POINTS)]
        traces.append({"type": "scatter", "mode": "markers", "x": numbers(scale * one.bend[shown]),
                       "y": numbers(one.torque[shown]), "name": name, "marker": {"color": color, "size": 3},
                       "hovertemplate": hover})
    ends = np.array([one.bend.min(), one.bend.max()])
    along = float(np.median(one.torque - one.stiffness[0] * (one.bend - middle))) + one.stiffness[0] * (ends - middle)
    traces.append(line(numbers(scale * ends), numbers(along), "stiffness", BLUE, 2, hovertemplate=hover))
    layout = {"title": title(one.joint), "xaxis": axis(f"motor minus link, m{units.position}"),
              "yaxis": axis(f"{units.effort} on the link side of the gear, {unit}")}
    return Figure(traces, layout, f"{units.effort.capitalize()} of {one.joint} over its deflection", 290)


SECTION = Section("flexibility", "Flexible joints", gather)

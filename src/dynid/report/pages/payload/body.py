"""Mass, centre of mass and inertia of the payload with standard errors, and the sources of these errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.payload.data import PayloadData
from dynid.report.section import Section

_SOURCE_WORDS = {"noise": "noise of the loaded logs", "robot": "the robot without load", "gains": "drive gains",
          "friction": "friction that changes with the load", "scale": "the scale", "mounting": "the sensor's mounting"}


def gather(data: PayloadData) -> Mapping[str, Any]:
    found = data.payload
    rows = found.rows()
    inertia = found.central_inertia if found.has_mass else None
    return {
        "found": found, "rows": rows, "inertia": inertia, "frame": found.frame,
        "sources": [(_SOURCE_WORDS[source], found.mass_std_from(source)) for source in found.parts if found.has_mass],
        "findings": [(one.severity, one.text) for one in found.findings]}


SECTION = Section("body", "Payload", gather)

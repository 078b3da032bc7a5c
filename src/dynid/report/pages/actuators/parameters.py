"""Parameters of the actuators with intervals, friction models that were compared, findings and notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.actuators.data import ActuatorData
from dynid.report.section import Section


def gather(data: ActuatorData) -> Mapping[str, Any]:
    found = data.estimate
    return {"rows": found.rows(), "given": [(one.joint, one.name, one.value, one.unit) for one in found.parameters
                                            if one.is_given],
            "comparison": found.comparison, "findings": [one.text for one in found.findings],
            "notes": [one.text for one in found.notes], "error": 1e3 * found.mean_error,
            "linear": 1e3 * found.linear_error}


SECTION = Section("parameters", "Parameters", gather)

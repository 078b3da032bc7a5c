"""A section of the report: the largest torque of every joint."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.report import ReportData, Section


def largest_torques(data: ReportData) -> dict[str, Any]:
    """Values for the template: pairs of a joint's name and its largest absolute torque."""
    measured = np.abs(np.concatenate([samples.tau for samples in data.logs])).max(axis=0)
    return {"rows": list(zip(data.joints, measured, strict=True))}


LARGEST_TORQUES: Section[ReportData] = Section("largest-torques", "Largest torques", largest_torques, """
<table>
<tr><th>joint</th><th>largest torque</th></tr>
{% for joint, torque in rows %}<tr><td>{{ joint }}</td><td>{{ torque | number }}</td></tr>
{% endfor %}</table>
""")

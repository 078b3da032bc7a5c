"""Limits: the largest use of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.excitation import Usage
from dynid.report.pages.motion.data import MotionData, used
from dynid.report.section import Section
from dynid.report.words import JointUnits

_LENGTHS = {"space": "clearance", "support": "inside the support polygon", "height": "above the ground"}


def gather(data: MotionData) -> Mapping[str, Any] | None:
    units = dict(zip(data.joints, data.units, strict=True))
    rows = [{"kind": usage.kind, "where": usage.where, "value": usage.value, "bound": usage.bound, "time": usage.time,
             "unit": unit_of(usage, units.get(usage.where)), "used": used(usage),
             "words": f"{1000 * usage.value:.0f} mm {_LENGTHS[usage.kind]}" if usage.kind in _LENGTHS else "met"}
            for usage in sorted(data.excitation.report.usages, key=lambda u: -u.excess)]
    return {"rows": rows} if rows else None


def unit_of(usage: Usage, units: JointUnits | None) -> str:
    """Return the unit of a limit: that of its joint."""
    if units is None:
        return "m" if usage.kind in _LENGTHS else ""
    return {"velocity": units.velocity, "acceleration": units.acceleration, "jerk": f"{units.position}/s³",
            "torque": units.torque}.get(usage.kind, units.position)


SECTION = Section("limits", "Limits", gather)

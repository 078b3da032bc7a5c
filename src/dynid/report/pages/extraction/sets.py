"""The sets: the conditions, whether each is physically consistent, and the errors of base values and internal
forces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.extraction.data import ExtractionData
from dynid.report.section import Section

_SET_WORDS = {"feasible": "physically consistent", "inertia": "inertia not physically consistent",
          "centres": "centres of mass outside their links",
          "both": "inertia not consistent and centres of mass outside", "other": "violates another condition"}


def gather(data: ExtractionData) -> Mapping[str, Any]:
    compared = data.comparison
    rows = [(one.name, _SET_WORDS[one.reason], one.search, one.distance, len(one.outside),
             compared.torque_error(one.name), float(compared.forces_apart(one.name).max()), one.seconds)
            for one in compared.sets]
    reasons = [(_SET_WORDS[reason], ", ".join(names),
                max(float(compared.forces_apart(name).max()) for name in names))
               for reason, names in compared.by_reason.items()]
    cones = [(one.name, one.cones) for one in compared.sets if one.cones is not None]
    return {"rows": rows, "reasons": reasons, "reference": compared.reference, "cones": cones,
            "why": [(one.name, [v.message for v in one.violations] + list(one.outside)) for one in compared.sets
                    if one.violations or one.outside]}


SECTION = Section("sets", "Extracted sets", gather)

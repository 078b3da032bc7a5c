"""Extraction: origin of the full parameters of method extract, and whether they are physically consistent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section


def gather(data: ReportData) -> Mapping[str, Any] | None:
    facts = data.estimate.diagnostics.get("extraction")
    if facts is None:
        return None
    return {"facts": facts, "why": [one["message"] for one in facts["violations"]] + list(facts["outside_bounds"])}


SECTION = Section("extraction", "Extraction", gather)

"""Section on payloads, for logs recorded with a load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section


def gather(data: ReportData) -> Mapping[str, Any] | None:
    if not data.payloads:
        return None
    from dynid.payloads.controllers import entries  # imported here, because few reports need it
    rows = []
    for one in data.payloads:
        sound = one.has_mass and one.consistent and not any(finding.severity == "fatal" for finding in one.findings)
        rows.append({"found": one, "values": one.rows(),
                     "findings": [finding.text for finding in one.findings],
                     "entries": entries(one) if sound and one.identified.all() else ()})
    return {"rows": rows}


SECTION = Section("payloads", "Payloads", gather)

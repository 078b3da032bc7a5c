"""Table of the robots, with links to their pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.fleet.data import FleetData
from dynid.report.section import Section


def gather(data: FleetData) -> Mapping[str, Any]:
    return {"rows": sorted(data.robots, key=lambda row: not row.words)}


SECTION = Section("robots", "Robots", gather)

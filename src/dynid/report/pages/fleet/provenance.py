"""Section on how to repeat the comparison of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.fleet.data import FleetData
from dynid.report.section import Section


def gather(data: FleetData) -> Mapping[str, Any]:
    return {"settings": data.settings, "command": data.command}


SECTION = Section("provenance", "Provenance", gather)

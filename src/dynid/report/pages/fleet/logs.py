"""Logs that were used, and those that could not be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.fleet.data import FleetData
from dynid.report.section import Section

MAX_LOGS_SHOWN = 1000  # rows of the table; the manifest has all


def gather(data: FleetData) -> Mapping[str, Any]:
    return {"rows": data.logs[:MAX_LOGS_SHOWN], "more": max(len(data.logs) - MAX_LOGS_SHOWN, 0),
            "failures": data.failures}


SECTION = Section("logs", "Logs", gather)

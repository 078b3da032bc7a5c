"""The findings in words: what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.fleet.data import FleetData
from dynid.report.section import Section

MAX_SENTENCES_SHOWN = 30  # sentences


def gather(data: FleetData) -> Mapping[str, Any]:
    differing = [row.name for row in data.parameters if row.differs == "robots"]
    moving = [row.name for row in data.parameters if row.differs == "motions"]
    return {"sentences": data.sentences[:MAX_SENTENCES_SHOWN],
            "more": max(len(data.sentences) - MAX_SENTENCES_SHOWN, 0),
            "out": sum(bool(row.words) for row in data.robots), "count": len(data.robots),
            "differing": differing, "moving": moving, "notes": data.notes, "failed": len(data.failures)}


SECTION = Section("overview", "Differences", gather)

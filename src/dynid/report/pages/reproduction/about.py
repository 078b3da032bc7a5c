"""Assumptions and choices of the reproduction, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.reproduction.data import ReproductionData
from dynid.report.section import Section


def gather(data: ReproductionData) -> Mapping[str, Any]:
    parts = [part.strip() for part in data.further.split("\n\n") if part.strip()]
    return {"parts": [part.removeprefix("- ").split("\n- ") if part.startswith("- ") else part for part in parts],
            "cpu": data.cpu, "command": data.command}


SECTION = Section("about", "Provenance", gather)

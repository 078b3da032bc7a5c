"""The expected conclusions, and whether each holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.reproduction.data import ReproductionData
from dynid.report.section import Section


def gather(data: ReproductionData) -> Mapping[str, Any]:
    return {"failed": [words for words, holds in data.checks.items() if not holds],
            "held": [words for words, holds in data.checks.items() if holds]}


SECTION = Section("checks", "Checks", gather)

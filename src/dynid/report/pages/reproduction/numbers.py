"""Computed values next to the printed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.reproduction.data import ReproductionData
from dynid.report.section import Section


def gather(data: ReproductionData) -> Mapping[str, Any]:
    head, *rows = data.rows
    return {"head": head, "rows": rows}


SECTION = Section("numbers", "Comparison with the published values", gather)

"""Figures, each with a description of the document's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.reproduction.data import ReproductionData
from dynid.report.section import Section


def gather(data: ReproductionData) -> Mapping[str, Any] | None:
    if not data.drawings:
        return None
    return {"drawings": [{"title": one.title, "document": one.document,
                          "figures": [panel.figure(len(one.panels) == 1) for panel in one.panels]}
                         for one in data.drawings]}


SECTION = Section("figures", "Figures", gather)

"""Page on a reproduction: its checks, figures with descriptions of the document's own, and tables next to the
published ones."""

from __future__ import annotations

from dynid.report.pages.reproduction.sections import SECTIONS, ReproductionData
from dynid.report.section import Page
from dynid.report.words import count


def subtitle(data: ReproductionData) -> str:
    """How many checks of the reproduction hold."""
    held = sum(data.checks.values())
    return f"{data.about} {held} of {count(len(data.checks), 'check')} hold"


REPRODUCTION = Page("reproduction", subtitle, SECTIONS)

__all__ = ["REPRODUCTION", "SECTIONS", "ReproductionData"]

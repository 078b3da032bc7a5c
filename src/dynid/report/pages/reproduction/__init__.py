"""Page on a reproduction: its checks, figures with descriptions of the document's own, and tables next to the
published ones."""

from __future__ import annotations

from dynid.report.pages.reproduction import about, checks, figures, numbers
from dynid.report.pages.reproduction.data import ReproductionData
from dynid.report.section import Page, Section
from dynid.report.words import count

SECTIONS: tuple[Section[ReproductionData], ...] = (checks.SECTION, figures.SECTION, numbers.SECTION, about.SECTION)


def subtitle(data: ReproductionData) -> str:
    """How many checks of the reproduction hold."""
    held = sum(data.checks.values())
    return f"{data.about} {held} of {count(len(data.checks), 'check')} hold"


REPRODUCTION = Page("reproduction", subtitle, SECTIONS)

__all__ = ["REPRODUCTION", "SECTIONS", "ReproductionData"]

"""Page on an extraction: the sets of parameters, their physical consistency, torques and internal forces."""

from __future__ import annotations

from dynid.report.pages.extraction.sections import SECTIONS, ExtractionData
from dynid.report.section import Page


def subtitle(data: ExtractionData) -> str:
    """How many of the sets are physically consistent."""
    every = data.comparison.sets
    return f"{sum(one.feasible for one in every)} of {len(every)} extracted sets are physically consistent"


EXTRACTION = Page("extraction", subtitle, SECTIONS)

__all__ = ["EXTRACTION", "SECTIONS", "ExtractionData"]

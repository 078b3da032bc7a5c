"""Page on a payload: its parameters with standard errors, its torques, and the values for controllers."""

from __future__ import annotations

from dynid.report.pages.payload.sections import SECTIONS, PayloadData
from dynid.report.section import Page


def subtitle(data: PayloadData) -> str:
    """The mass with its standard error, and the method."""
    found = data.payload
    return f"mass {found.mass_text}, method '{found.way}'"


PAYLOAD = Page("payload", subtitle, SECTIONS)

__all__ = ["PAYLOAD", "SECTIONS", "PayloadData"]

"""The page of a payload: what it is and how well that is known, its torques, and what to type into controllers."""

from __future__ import annotations

from dynid.report.pages.payload import body, controllers, torques
from dynid.report.pages.payload.data import PayloadData
from dynid.report.section import Page, Section

SECTIONS: tuple[Section[PayloadData], ...] = (body.SECTION, torques.SECTION, controllers.SECTION)


def subtitle(data: PayloadData) -> str:
    """The mass with its deviation, and by which way it was found."""
    found = data.payload
    return f"mass {found.mass_text}, method '{found.way}'"


PAYLOAD = Page("payload", subtitle, SECTIONS)

__all__ = ["PAYLOAD", "SECTIONS", "PayloadData"]

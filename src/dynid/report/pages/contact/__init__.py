"""Page on external contacts: when and where the robot was touched, forces over time, and 3-D arrows at the robot."""

from __future__ import annotations

from dynid.report.pages.contact.sections import SECTIONS, ContactData
from dynid.report.section import Page
from dynid.report.words import count


def subtitle(data: ContactData) -> str:
    """Number of contacts, duration, detection delay and rate of false alarms."""
    rows = data.log.rows
    return (f"{count(len(data.log.contacts), 'contact')} in {rows.t[-1] - rows.t[0]:.4g} s, detection delay "
            f"{1000.0 * data.log.delay:.0f} ms; expected false alarms per hour: {data.alarms:g}")


CONTACT = Page("contact", subtitle, SECTIONS)

__all__ = ["CONTACT", "SECTIONS", "ContactData"]

"""Data of the page on contacts."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.contacts import ContactLog
from dynid.robot import Robot


@dataclass(frozen=True, eq=False)
class ContactData:
    """Data of the page on contacts.

    Attributes:
        log: estimated contacts of a log.
        frame, axes: frame at which wrenches are estimated, and frame of their axes.
        level: detection threshold.
        alarms: accepted false alarms per hour.
        command: command line that made the page.
    """

    title: str
    robot: Robot
    log: ContactLog
    frame: str
    axes: str
    level: float
    alarms: float
    command: str = ""

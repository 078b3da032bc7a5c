"""ContactData: what the page of contacts is made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.contacts import ContactLog
from dynid.robot import Robot


@dataclass(frozen=True, eq=False)
class ContactData:
    """What the page shows. log: what acted along it. frame, axes: where wrenches are given, and in whose axes. level:
    of the alarm; alarms: false ones an hour that it allows. command: that made it."""

    title: str
    robot: Robot
    log: ContactLog
    frame: str
    axes: str
    level: float
    alarms: float
    command: str = ""

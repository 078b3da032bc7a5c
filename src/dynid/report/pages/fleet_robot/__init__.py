"""Page on one robot of a fleet: what differs, its parameters next to the fleet's, and its history."""

from __future__ import annotations

from dynid.report.pages.fleet_robot.sections import SECTIONS, FleetRobotData
from dynid.report.section import Page
from dynid.report.words import count


def subtitle(data: FleetRobotData) -> str:
    """Number of logs, and the dates of the first and last."""
    dated = [date for date in data.dates if date]
    return count(len(data.sources), "log") + (f", {dated[0]} to {dated[-1]}" if dated else "")


FLEET_ROBOT = Page("fleet_robot", subtitle, SECTIONS)

__all__ = ["FLEET_ROBOT", "SECTIONS", "FleetRobotData"]

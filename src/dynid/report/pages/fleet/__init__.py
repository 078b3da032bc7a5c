"""Page on a fleet: which robots differ, in which parameters, since when, and which models can be shared."""

from __future__ import annotations

from dynid.report.pages.fleet.data import FleetData, ParameterRow, RobotRow, Signals
from dynid.report.pages.fleet.sections import SECTIONS
from dynid.report.section import Page
from dynid.report.words import count


def subtitle(data: FleetData) -> str:
    """Number of robots, logs and parameters."""
    return (f"{count(len(data.robots), 'robot')}, {count(len(data.logs), 'log')}, "
            f"{len(data.parameters)} base parameters")


FLEET = Page("fleet", subtitle, SECTIONS)

__all__ = ["FLEET", "SECTIONS", "FleetData", "ParameterRow", "RobotRow", "Signals"]

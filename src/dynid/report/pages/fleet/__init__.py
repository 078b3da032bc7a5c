"""Page on a fleet: which robots differ, in which parameters, since when, and which models can be shared."""

from __future__ import annotations

from dynid.report.pages.fleet import cross_prediction, logs, overview, parameters, provenance, robots, signals
from dynid.report.pages.fleet.data import FleetData, ParameterRow, RobotRow, Signals
from dynid.report.section import Page, Section
from dynid.report.words import count

SECTIONS: tuple[Section[FleetData], ...] = (
    overview.SECTION, cross_prediction.SECTION, signals.SECTION, parameters.SECTION, robots.SECTION, logs.SECTION,
    provenance.SECTION)


def subtitle(data: FleetData) -> str:
    """Number of robots, logs and parameters."""
    return (f"{count(len(data.robots), 'robot')}, {count(len(data.logs), 'log')}, "
            f"{len(data.parameters)} base parameters")


FLEET = Page("fleet", subtitle, SECTIONS)

__all__ = ["FLEET", "SECTIONS", "FleetData", "ParameterRow", "RobotRow", "Signals"]

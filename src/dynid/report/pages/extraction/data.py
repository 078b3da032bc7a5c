"""Data of the page on an extraction."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.robot import Robot
from dynid.validate import SetComparison


@dataclass(frozen=True, eq=False)
class ExtractionData:
    """Data of the page. comparison: the sets on a new motion. command: command line that made the page."""

    title: str
    robot: Robot
    comparison: SetComparison
    command: str = ""

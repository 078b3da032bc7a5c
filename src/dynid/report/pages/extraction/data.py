"""ExtractionData: what the page of an extraction is made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.robot import Robot
from dynid.validate import SetComparison


@dataclass(frozen=True, eq=False)
class ExtractionData:
    """What the page shows. comparison: the sets along a new motion. command: that made it."""

    title: str
    robot: Robot
    comparison: SetComparison
    command: str = ""

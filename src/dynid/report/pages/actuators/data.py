"""Data of the page on identified actuators."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.actuators import ActuatorEstimate


@dataclass(frozen=True, eq=False)
class ActuatorData:
    """The estimate, the title of the page, and the command that made it."""

    title: str
    estimate: ActuatorEstimate
    command: str = ""

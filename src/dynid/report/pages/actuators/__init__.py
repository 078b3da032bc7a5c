"""The page of identified actuators: their parameters, what the data do not determine, and simulated positions."""

from __future__ import annotations

from dynid.report.pages.actuators.sections import SECTIONS, ActuatorData
from dynid.report.section import Page


def subtitle(data: ActuatorData) -> str:
    """The simulation error, the drive law and the friction model."""
    found = data.estimate
    return (f"simulated positions have a mean error of {1e3 * found.mean_error:.3g} mrad; drive law {found.law}, "
            f"friction {found.friction.upper()}")


ACTUATORS = Page("actuators", subtitle, SECTIONS)

__all__ = ["ACTUATORS", "SECTIONS", "ActuatorData"]

"""The sections of a report, in order. A new one is a file and a template of the same name, and a line here."""

from dynid.report.section import Section
from dynid.report.sections import (
    consistency,
    covariance,
    cross,
    expressions,
    logs,
    making,
    parameters,
    residuals,
    simulation,
    skeleton,
    torques,
    verdict,
)

SECTIONS: tuple[Section, ...] = (
    verdict.SECTION,
    torques.SECTION,
    residuals.SECTION,
    parameters.SECTION,
    expressions.SECTION,
    covariance.SECTION,
    logs.SECTION,
    cross.SECTION,
    simulation.SECTION,
    consistency.SECTION,
    skeleton.SECTION,
    making.SECTION,
)

__all__ = ["SECTIONS"]

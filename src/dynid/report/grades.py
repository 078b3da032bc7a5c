"""Grades of relative standard errors, the same on every page."""

from __future__ import annotations

from dynid.report.figure import GREEN, ORANGE, VERMILION

GOOD, POOR = 5.0, 30.0  # percent: deviations below are well known, above hardly
COLORS = {"good": GREEN, "fair": ORANGE, "poor": VERMILION}


def grade(relative: float) -> str:
    """Return the grade of a relative standard error in percent: good, fair or poor."""
    return "good" if relative < GOOD else "fair" if relative < POOR else "poor"

"""Page on a designed motion: joints and limits, expected standard errors, the search, a 3-D preview."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dynid.report.pages.motion import expected, joints, limits, overview, preview, search
from dynid.report.pages.motion.data import MotionData, used
from dynid.report.rendering import write_page
from dynid.report.section import Page, Section
from dynid.report.words import count, seconds


def subtitle(data: MotionData) -> str:
    """Duration, number of joints and number of parameters."""
    found = data.excitation
    return (f"{seconds(found.core.duration)} motion of {count(len(data.joints), 'joint')} for {len(found.base)} base "
            "parameters")


SECTIONS: tuple[Section[MotionData], ...] = (
    overview.SECTION, joints.SECTION, expected.SECTION, preview.SECTION, limits.SECTION, search.SECTION)
MOTION = Page("motion", subtitle, SECTIONS)


def write_motion(data: MotionData, path: str | Path, sections: Iterable[Section[MotionData]] = SECTIONS) -> Path:
    """Write the page to a file atomically; sections as in `dynid.report.write_report`."""
    return write_page(replace(MOTION, sections=tuple(sections)), data, path)


__all__ = ["MOTION", "SECTIONS", "MotionData", "used", "write_motion"]

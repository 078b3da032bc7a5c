"""Page on an identification. A new section is a module and a template of the same name, and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dynid.plugins import usable_plugins
from dynid.report.pages.identification import (
    base_motion,
    consistency,
    covariance,
    cross_validation,
    cutoff,
    essential,
    expressions,
    extraction,
    filtered_rows,
    flexibility,
    friction,
    iterations,
    logs,
    parameters,
    payloads,
    provenance,
    residuals,
    simulation,
    skeleton,
    torques,
    tracking,
    verdict,
)
from dynid.report.pages.identification.data import ReportData
from dynid.report.rendering import rendered_section, write_page
from dynid.report.section import Page, Section
from dynid.report.words import count

SECTIONS: tuple[Section[ReportData], ...] = (
    verdict.SECTION, torques.SECTION, residuals.SECTION, friction.SECTION, flexibility.SECTION, payloads.SECTION,
    parameters.SECTION, essential.SECTION, expressions.SECTION, covariance.SECTION, iterations.SECTION, logs.SECTION,
    tracking.SECTION, cutoff.SECTION, filtered_rows.SECTION, cross_validation.SECTION, simulation.SECTION,
    consistency.SECTION, extraction.SECTION, skeleton.SECTION, base_motion.SECTION, provenance.SECTION)


def subtitle(data: ReportData) -> str:
    """Number of parameters and joints, and the method."""
    return (f"{len(data.estimate.base)} base parameters of {count(len(data.joints), 'joint')}, "
            f"method {data.estimate.method}")


IDENTIFICATION = Page("identification", subtitle, SECTIONS)


def write_report(data: ReportData, path: str | Path, sections: Iterable[Section[ReportData]] | None = None) -> Path:
    """Write the report to a file atomically.

    Args:
        sections: sections in order; `(*SECTIONS, own)` adds one. Default: SECTIONS, then those of plugins. A plugin's
            section that fails is replaced by a sentence with the reason.
    """
    if sections is None:
        names = {section.name for section in SECTIONS}
        added = (section for section in usable_plugins("dynid.report_sections").values()
                 if isinstance(section, Section) and section.name not in names)
        sections = (*SECTIONS, *(rendered_section(section, data) for section in added))
    return write_page(replace(IDENTIFICATION, sections=tuple(sections)), data, path)


__all__ = ["IDENTIFICATION", "SECTIONS", "ReportData", "write_report"]

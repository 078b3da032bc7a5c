"""Page on an identification. A new section needs a module, a template and an entry here, all of one name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from dynid.errors import require_type
from dynid.plugins import usable_plugins
from dynid.report.pages.identification.data import ReportData
from dynid.report.rendering import rendered_section, write_page
from dynid.report.section import Page, Section
from dynid.report.words import count

# The modules of the sections, in the order of the page.
_SECTION_MODULES = (
    "verdict", "torques", "residuals", "friction", "flexibility", "payloads", "parameters", "essential", "expressions",
    "covariance", "iterations", "logs", "tracking", "cutoff", "filtered_rows", "cross_validation", "simulation",
    "consistency", "extraction", "skeleton", "base_motion", "provenance")
SECTIONS: tuple[Section[ReportData], ...] = tuple(
    import_module(f"{__name__}.{name}").SECTION for name in _SECTION_MODULES)


def subtitle(data: ReportData) -> str:
    """Line below the headline: number of parameters and joints, and the method."""
    return (f"{len(data.estimate.base)} base parameters of {count(len(data.joints), 'joint')}, "
            f"method {data.estimate.method}")


IDENTIFICATION = Page("identification", subtitle, SECTIONS)


def write_report(data: ReportData, path: str | Path = "report.html",
                 sections: Iterable[Section[ReportData]] | None = None) -> Path:
    """Write the report to a file atomically.

    Args:
        data, path: data of the report, and the file.
        sections: sections in order; `(*SECTIONS, own)` adds one. Default: SECTIONS, then those of plugins. A plugin's
            section that fails is replaced by a sentence with the reason.
    """
    require_type(data, ReportData, "write_report", "write_report(dynid.report.ReportData('title', estimate, "
                 "dynid.reconstruct(estimate, samples), dynid.verdict(estimate, samples)), 'report.html')")
    if sections is None:
        names = {section.name for section in SECTIONS}
        added = (section for section in usable_plugins("dynid.report_sections").values()
                 if isinstance(section, Section) and section.name not in names)
        sections = (*SECTIONS, *(rendered_section(section, data) for section in added))
    return write_page(replace(IDENTIFICATION, sections=tuple(sections)), data, path)


__all__ = ["IDENTIFICATION", "SECTIONS", "ReportData", "write_report"]

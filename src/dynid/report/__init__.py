"""The report: one HTML file that opens without network. Pages are lists of sections, and users can add their own."""

from dynid.report.figure import Figure
from dynid.report.pages.identification import SECTIONS, ReportData, write_report
from dynid.report.rendering import render, write_page
from dynid.report.section import Page, Section

__all__ = ["SECTIONS", "Figure", "Page", "ReportData", "Section", "render", "write_page", "write_report"]

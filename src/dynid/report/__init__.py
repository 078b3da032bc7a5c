"""The report: one HTML file that opens without network."""

from dynid.report.data import ReportData
from dynid.report.render import render, write_report

__all__ = ["ReportData", "render", "write_report"]

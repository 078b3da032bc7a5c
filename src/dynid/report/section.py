"""Section: one part of the report, a function that gathers what is shown and a template that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dynid.report.data import ReportData


@dataclass(frozen=True)
class Section:
    """name: of its template and its place in the page. gather: what the template shows, or None to leave it out."""

    name: str
    title: str
    gather: Callable[[ReportData], Mapping[str, Any] | None]

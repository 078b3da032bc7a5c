"""Page on a reproduction: its checks, figures with descriptions of the document's own, and tables of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynid.report.drawing import Drawing
from dynid.report.section import Page, Section
from dynid.report.words import count


@dataclass(frozen=True, eq=False)
class ReproductionData:
    """Data of the page on a reproduction.

    Attributes:
        about, further: the first line of the reproduction's description, and the rest of it.
        checks: whether each conclusion holds.
        rows: table of strings, the head first.
        cpu: computing time, s.
        command: command line that made the page.
    """

    title: str
    about: str
    further: str
    checks: Mapping[str, bool]
    rows: Sequence[Sequence[str]]
    drawings: tuple[Drawing, ...]
    cpu: float
    command: str


def _checks(data: ReproductionData) -> Mapping[str, Any]:
    """Section with the expected conclusions, and whether each holds."""
    return {"failed": [words for words, holds in data.checks.items() if not holds],
            "held": [words for words, holds in data.checks.items() if holds]}


def _figures(data: ReproductionData) -> Mapping[str, Any] | None:
    """Figures, each with a description of the document's own figure."""
    if not data.drawings:
        return None
    return {"drawings": [{"title": one.title, "document": one.document,
                          "figures": [panel.figure(len(one.panels) == 1) for panel in one.panels]}
                         for one in data.drawings]}


def _numbers(data: ReproductionData) -> Mapping[str, Any]:
    """Section with computed values next to the printed ones."""
    head, *rows = data.rows
    return {"head": head, "rows": rows}


def _about(data: ReproductionData) -> Mapping[str, Any]:
    """Assumptions and choices of the reproduction, and how to repeat it."""
    parts = [part.strip() for part in data.further.split("\n\n") if part.strip()]
    return {"parts": [part.removeprefix("- ").split("\n- ") if part.startswith("- ") else part for part in parts],
            "cpu": data.cpu, "command": data.command}


def subtitle(data: ReproductionData) -> str:
    """Line below the headline: how many checks of the reproduction hold."""
    held = sum(data.checks.values())
    return f"{data.about} {held} of {count(len(data.checks), 'check')} hold"


REPRODUCTION = Page("reproduction", subtitle, (
    Section("checks", "Checks", _checks),
    Section("figures", "Figures", _figures),
    Section("numbers", "Comparison with the published values", _numbers),
    Section("about", "Provenance", _about)))

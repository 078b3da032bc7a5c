"""Data of the page on a reproduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid.report.drawing import Drawing


@dataclass(frozen=True, eq=False)
class ReproductionData:
    """Data of the page on a reproduction.

    Attributes:
        about, further: the first line of the reproduction's description, and the rest of it.
        checks: whether each conclusion holds.
        rows: table of strings, the head first.
        cpu: time, s.
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

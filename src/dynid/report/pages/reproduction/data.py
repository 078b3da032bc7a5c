"""ReproductionData: what the page of a reproduction is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid.report.drawing import Drawing


@dataclass(frozen=True, eq=False)
class ReproductionData:
    """What the page shows. about: the first line of the reproduction's own text, further: the rest of it. checks:
    sentence -> whether it holds. rows: the head first, every cell a string. cpu: s. command: that made it."""

    title: str
    about: str
    further: str
    checks: Mapping[str, bool]
    rows: Sequence[Sequence[str]]
    drawings: tuple[Drawing, ...]
    cpu: float
    command: str

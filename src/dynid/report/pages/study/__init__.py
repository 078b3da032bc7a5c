"""The page of a Monte Carlo study: who is biased, whose intervals hold, what noise does to each method."""

from __future__ import annotations

from dynid.report.pages.study import levels, overview, parameters, provenance
from dynid.report.pages.study.data import MethodScore, StudyData
from dynid.report.section import Page, Section
from dynid.report.words import count

SECTIONS: tuple[Section[StudyData], ...] = (
    overview.SECTION,
    levels.SECTION,
    parameters.SECTION,
    provenance.SECTION,
)


def subtitle(data: StudyData) -> str:
    """How many logs, noise levels and parameters, and the seed."""
    return (f"{count(data.repetitions, 'simulated log')} at each of {count(len(data.factors), 'noise level')}, "
            f"{len(data.names)} base parameters, seed {data.seed}")


STUDY = Page("study", subtitle, SECTIONS)

__all__ = ["SECTIONS", "STUDY", "MethodScore", "StudyData"]

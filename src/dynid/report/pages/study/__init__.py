"""Page on a Monte Carlo study: bias, coverage of intervals, and the influence of noise on each method."""

from __future__ import annotations

from dynid.report.pages.study.data import MethodScore, StudyData
from dynid.report.pages.study.sections import SECTIONS
from dynid.report.section import Page
from dynid.report.words import count


def subtitle(data: StudyData) -> str:
    """Number of logs, noise levels and parameters, and the seed."""
    return (f"{count(data.repetitions, 'simulated log')} at each of {count(len(data.factors), 'noise level')}, "
            f"{len(data.names)} base parameters, seed {data.seed}")


STUDY = Page("study", subtitle, SECTIONS)

__all__ = ["SECTIONS", "STUDY", "MethodScore", "StudyData"]

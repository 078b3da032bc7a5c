"""Page on a stream: events, parameters over time with bands, and excitation over time."""

from __future__ import annotations

from dynid.report.pages.stream.sections import SECTIONS, Shown, StreamData
from dynid.report.section import Page
from dynid.report.words import count


def subtitle(data: StreamData) -> str:
    """Method, duration, and number of restarts."""
    return (f"{data.method}, {count(data.samples, 'row')} of the regression, {len(data.names)} base parameters, "
            f"{count(len(data.restarts), 'restart')}")


STREAM = Page("stream", subtitle, SECTIONS)

__all__ = ["SECTIONS", "STREAM", "Shown", "StreamData"]

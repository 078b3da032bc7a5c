"""Noise: what more of it does to each method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dynid.report.figure import SERIES, SYMBOLS, Figure, axis, level, line, significant, text
from dynid.report.pages.study.data import MethodScore, StudyData
from dynid.report.section import Section


def gather(data: StudyData) -> Mapping[str, Any] | None:
    if len(data.factors) < 2:
        return None
    groups = tuple(dict.fromkeys(group for score in data.scores for group in score.group_coverage))
    figures = [level_figure(data, "error of the torques, %", lambda score: score.torque_error, type="log"),
               *(level_figure(data, f"{group}: coverage, %", _coverage(group), shapes=[level(95.0)])
                 for group in groups)]
    return {"figures": [figure for figure in figures if figure is not None]}


def _coverage(group: str) -> Callable[[MethodScore], float | None]:
    def percent(score: MethodScore) -> float | None:
        share = score.group_coverage[group]
        return None if share is None else 100.0 * share
    return percent


def level_figure(data: StudyData, title: str, value: Callable[[MethodScore], float | None], *, type: str = "linear",
                 shapes: list[dict[str, Any]] | None = None) -> Figure | None:
    """A value over the factor on the noise, one line a method; None where no method has any."""
    traces = []
    for k, label in enumerate(data.labels):
        found = [(score.factor, value(score)) for score in data.scores if score.label == label]
        points = sorted((x, y) for x, y in found if y is not None)
        if points:
            x, y = [x for x, _ in points], [y for _, y in points]
            traces.append(line(x, significant(y), text(label), SERIES[k % len(SERIES)], mode="lines+markers",
                               marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8}))
    if not traces:
        return None
    layout = {"xaxis": axis("factor on the noise"), "yaxis": axis(title, type=type), "shapes": shapes or []}
    return Figure(traces, layout, f"{title}, over the noise, one line a method", 320)


SECTION = Section("levels", "Noise", gather)

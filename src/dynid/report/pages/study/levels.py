"""Influence of the noise level on each method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dynid.report.figure import SERIES, SYMBOLS, Figure, axis, level, line, log_axis, significant, text
from dynid.report.pages.study.data import MethodScore, StudyData
from dynid.report.section import Section


def gather(data: StudyData) -> Mapping[str, Any] | None:
    if len(data.factors) < 2:
        return None
    groups = tuple(dict.fromkeys(group for score in data.scores for group in score.group_coverage))
    figures = [level_figure(data, "torque error, %", lambda score: score.torque_error),
               *(level_figure(data, f"{group}: coverage, %", _coverage(group), coverage=True) for group in groups)]
    return {"figures": [figure for figure in figures if figure is not None]}


def _coverage(group: str) -> Callable[[MethodScore], float | None]:
    def percent(score: MethodScore) -> float | None:
        share = score.group_coverage[group]
        return None if share is None else 100.0 * share
    return percent


def level_figure(data: StudyData, title: str, value: Callable[[MethodScore], float | None], *,
                 coverage: bool = False) -> Figure | None:
    """Return a value over the noise factor, one line per method, or None if no method has any.

    coverage: percent, on a linear axis with the nominal 95 %; otherwise the axis is logarithmic.
    """
    traces: list[dict[str, Any]] = []
    every: list[float] = []
    for k, label in enumerate(data.labels):
        found = [(score.factor, value(score)) for score in data.scores if score.label == label]
        points = sorted((x, y) for x, y in found if y is not None)
        if points:
            x, y = [x for x, _ in points], [y for _, y in points]
            every += y
            traces.append(line(x, significant(y), text(label), SERIES[k % len(SERIES)], mode="lines+markers",
                               marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8}))
    if not traces:
        return None
    positive = [y for y in every if y > 0]
    own = axis(title, range=[-3, 103]) if coverage or not positive else log_axis(title, min(positive), max(positive))
    layout = {"xaxis": axis("factor on the noise", tickvals=list(data.factors)), "yaxis": own,
              "shapes": [level(95.0)] if coverage else []}
    return Figure(traces, layout, f"{title}, over the noise level, one line per method", 320)


SECTION = Section("levels", "Noise", gather)

"""The page of a study: who is biased, whose intervals hold, what noise does to each method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.files import write_whole
from dynid.report.figure import GREY, SERIES, SYMBOLS, Figure, axis, level, line, significant, text
from dynid.report.render import page
from dynid.report.words import typeset
from dynid.study.result import BIASED, GROUPS, UNBIASED, Score, StudyResult

_PER_NAME = 14  # px a parameter needs on the axis
_LEAST = 1e-3  # smallest |bias| / spread drawn
_SENTENCES = 5  # reasons shown for one method
COVERED = (90.0, 98.0)  # percent, between which a 95 % interval is honest


@dataclass(frozen=True, eq=False)
class StudyData:
    """What the page shows. command: repeats it at the command line."""

    title: str
    result: StudyResult
    command: str = ""


def render_study(result: StudyResult, command: str = "") -> str:
    """The page as the text of one HTML file; nothing in it asks for anything outside."""
    names = dict.fromkeys(one.label for one in result.scores)
    data = StudyData(f"{result.robot}: {', '.join(names)}", result, command)
    return page("study_page.html", data, (("study_overview", "Methods", overview), ("study_levels", "Noise", levels),
                                          ("study_parameters", "Parameters", parameters),
                                          ("study_making", "How it was made", making)))


def write_study(result: StudyResult, path: str | Path, command: str = "") -> Path:
    """Write the page to a file, whole or not at all."""
    words = render_study(result, command)
    with write_whole(Path(path)) as file:
        file.write(words)
    return Path(path)


def overview(data: StudyData) -> Mapping[str, Any]:
    """The table of scores, and why some repetitions gave none."""
    result = data.result
    reasons = []
    for one in data.result.scores:
        sentences = [sentence for _, sentence in one.failures]
        different = list(dict.fromkeys(sentences))
        if sentences:
            shown = [(sentence, sentences.count(sentence)) for sentence in different[:_SENTENCES]]
            reasons.append({"label": one.label, "factor": one.factor, "count": len(sentences), "sentences": shown,
                            "more": len(different) - len(shown)})
    return {"tables": [result.runs_table(), result.parameters_table()], "reasons": reasons, "unbiased": UNBIASED,
            "by_chance": f"{100 * result.unbiased_by_chance:.0f} %", "logs": result.study.repetitions}


def levels(data: StudyData) -> Mapping[str, Any] | None:
    """What more noise does; left out where there is one level."""
    result = data.result
    if len(result.study.noise.factors) < 2:
        return None
    panes: list[tuple[str, Callable[[Score], float | None], str]] = [
        ("error of the torques, %", lambda one: _median(one.torque_error), "log"),
        *((f"{group}: coverage, %", partial(_share, result, group), "linear")
          for group in GROUPS)]
    figures = []
    for title, value, kind in panes:
        traces = []
        for k, label in enumerate(dict.fromkeys(one.label for one in result.scores)):
            found = [(one.factor, value(one)) for one in result.scores if one.label == label]
            points = sorted((x, y) for x, y in found if y is not None)
            if points:
                x, y = [x for x, _ in points], [y for _, y in points]
                traces.append(line(x, significant(y), text(label), SERIES[k % len(SERIES)], mode="lines+markers",
                                   marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8}))
        if traces:
            layout = {"xaxis": axis("factor on the noise"), "yaxis": axis(title, type=kind),
                      "shapes": [level(95.0)] if kind == "linear" else []}
            figures.append(Figure(traces, layout, f"{title}, over the noise, one line a method", 320))
    return {"figures": figures}


def parameters(data: StudyData) -> Mapping[str, Any]:
    """Bias and coverage of every parameter, one pane a noise level."""
    result = data.result
    panes = []
    for factor in result.study.noise.factors:
        scores = [one for one in result.scores if one.factor == factor and len(one.values) > 1]
        rows = [[{"name": name, "unit": typeset(unit), "truth": float(result.truth[k]), "label": one.label,
                  "bias": float(one.bias[k]), "spread": float(one.spread[k]), "stated": float(one.stated[k]),
                  "coverage": 100.0 * float(one.coverage[k])} for one in scores if one.known[k]]
                for k, (name, unit) in enumerate(zip(result.names, result.units, strict=True))]
        panes.append({"label": f"noise x {factor:g}", "bias": bias_figure(result, scores),
                      "coverage": coverage_figure(result, scores), "rows": [row for part in rows for row in part]})
    return {"panes": panes, "labels": [{"label": pane["label"], "source": "", "kind": ""} for pane in panes]}


def bias_figure(result: StudyResult, scores: list[Score]) -> Figure:
    """|bias| in spreads, inertial parameters first."""
    shapes = [level(UNBIASED, GREY, "dot"), level(BIASED)]
    layout = {"yaxis": axis("mean error / spread", type="log"), "shapes": shapes}
    values = [np.maximum(one.bias_over_spread, _LEAST) for one in scores]
    return _dots(result, scores, values, layout, "Mean error of every parameter in spreads, one mark a method")


def coverage_figure(result: StudyResult, scores: list[Score]) -> Figure:
    """How often the stated intervals hold the truth."""
    layout = {"yaxis": axis("coverage of the 95 % intervals, %", range=[-3, 103]),
              "shapes": [level(COVERED[0], GREY, "dot"), level(95.0), level(COVERED[1], GREY, "dot")]}
    return _dots(result, scores, [100.0 * one.coverage for one in scores], layout,
                 "How often the stated 95 % interval of every parameter holds the truth, one mark a method")


def _dots(result: StudyResult, scores: list[Score], values: list[Array], layout: dict[str, Any], label: str) -> Figure:
    order = np.concatenate([np.flatnonzero(result.inertial), np.flatnonzero(~result.inertial)])
    traces = []
    for k, (one, y) in enumerate(zip(scores, values, strict=True)):
        shown = [j for j in order if one.known[j]]
        traces.append({"type": "scatter", "mode": "markers", "name": text(one.label),
                       "x": [text(result.names[j]) for j in shown], "y": significant(y[shown]),
                       "marker": {"color": SERIES[k % len(SERIES)], "symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8},
                       "hovertemplate": "%{x}: %{y}<extra>%{fullData.name}</extra>"})
    x = axis("base parameter, inertial ones first", type="category", tickangle=-90, dtick=1,
             categoryorder="array", categoryarray=[text(result.names[j]) for j in order],
             tickfont={"size": 10 if len(order) > 20 else 12})
    return Figure(traces, {**layout, "xaxis": x}, label, 420, width=_PER_NAME * len(order))


def making(data: StudyData) -> Mapping[str, Any]:
    """What repeats it."""
    return {"settings": data.result.study.as_toml(), "command": data.command}


def _median(x: Array) -> float | None:
    return float(np.median(x)) if len(x) else None


def _share(result: StudyResult, group: str, one: Score) -> float | None:
    found = one.group(result.members(group))
    return None if found is None else 100.0 * found["coverage"]

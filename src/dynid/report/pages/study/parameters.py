"""Parameters: bias and coverage of every one, one pane a noise level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import GREY, SERIES, SYMBOLS, Figure, axis, level, significant, text
from dynid.report.pages.study.data import MethodScore, StudyData
from dynid.report.section import Section
from dynid.report.words import typeset

COVERED = (90.0, 98.0)  # percent, between which a 95 % interval is honest
_PER_NAME = 14  # px a parameter needs on the axis
_LEAST = 1e-3  # smallest |bias| / spread drawn


def gather(data: StudyData) -> Mapping[str, Any]:
    panes = []
    for factor in data.factors:
        scores = [score for score in data.scores if score.factor == factor and score.logs > 1]
        rows = [{"name": name, "unit": typeset(unit), "truth": float(data.truth[k]), "label": score.label,
                 "bias": float(score.bias[k]), "spread": float(score.spread[k]), "stated": float(score.stated[k]),
                 "coverage": 100.0 * float(score.coverage[k])}
                for k, (name, unit) in enumerate(zip(data.names, data.units, strict=True))
                for score in scores if score.known[k]]
        panes.append({"label": f"noise x {factor:g}", "bias": bias_figure(data, scores),
                      "coverage": coverage_figure(data, scores), "rows": rows})
    return {"panes": panes, "labels": [{"label": pane["label"], "source": "", "kind": ""} for pane in panes]}


def bias_figure(data: StudyData, scores: Sequence[MethodScore]) -> Figure:
    """|bias| in spreads, inertial parameters first."""
    layout = {"yaxis": axis("mean error / spread", type="log"),
              "shapes": [level(data.unbiased, GREY, "dot"), level(data.biased)]}
    values = [np.maximum(np.abs(score.bias) / np.maximum(score.spread, 1e-300), _LEAST) for score in scores]
    return _dots(data, scores, values, layout, "Mean error of every parameter in spreads, one mark a method")


def coverage_figure(data: StudyData, scores: Sequence[MethodScore]) -> Figure:
    """How often the stated intervals hold the truth."""
    layout = {"yaxis": axis("coverage of the 95 % intervals, %", range=[-3, 103]),
              "shapes": [level(COVERED[0], GREY, "dot"), level(95.0), level(COVERED[1], GREY, "dot")]}
    return _dots(data, scores, [100.0 * score.coverage for score in scores], layout,
                 "How often the stated 95 % interval of every parameter holds the truth, one mark a method")


def _dots(data: StudyData, scores: Sequence[MethodScore], values: Sequence[Array], layout: dict[str, Any],
          label: str) -> Figure:
    """A mark for every method and parameter known; values (base,) of every score."""
    order = np.concatenate([np.flatnonzero(data.inertial), np.flatnonzero(~data.inertial)])
    traces = []
    for k, (score, y) in enumerate(zip(scores, values, strict=True)):
        shown = [j for j in order if score.known[j]]
        traces.append({"type": "scatter", "mode": "markers", "name": text(score.label),
                       "x": [text(data.names[j]) for j in shown], "y": significant(y[shown]),
                       "marker": {"color": SERIES[k % len(SERIES)], "symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8},
                       "hovertemplate": "%{x}: %{y}<extra>%{fullData.name}</extra>"})
    x = axis("base parameter, inertial ones first", type="category", tickangle=-90, dtick=1,
             categoryorder="array", categoryarray=[text(data.names[j]) for j in order],
             tickfont={"size": 10 if len(order) > 20 else 12})
    return Figure(traces, {**layout, "xaxis": x}, label, 420, width=_PER_NAME * len(order))


SECTION = Section("parameters", "Parameters", gather)

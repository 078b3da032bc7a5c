"""Bias and coverage of every parameter, one panel per noise level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import GREY, SERIES, SYMBOLS, Figure, axis, level, log_axis, significant, text
from dynid.report.pages.study.data import MethodScore, StudyData
from dynid.report.section import Section
from dynid.report.words import typeset

COVERED = (90.0, 98.0)  # percent, between which a 95 % interval is honest
_PER_NAME = 14  # px a parameter needs on the axis
_MIN_DRAWN_RATIO = 1e-3  # smallest |bias| / spread drawn


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
    """Return |bias| relative to the spread, inertial parameters first."""
    values = [np.maximum(np.abs(score.bias) / np.maximum(score.spread, 1e-300), _MIN_DRAWN_RATIO) for score in scores]
    every = np.array([data.unbiased, data.biased, *(x for score, y in zip(scores, values, strict=True)
                                                    for x in y[score.known])])
    layout = {"yaxis": log_axis("mean error / standard deviation", float(every.min()), float(every.max())),
              "shapes": [level(data.unbiased, GREY, "dot"), level(data.biased)]}
    return _dots(data, scores, values, layout, "Mean error of every parameter in standard deviations, one mark per "
                                               "method")


def coverage_figure(data: StudyData, scores: Sequence[MethodScore]) -> Figure:
    """Return how often the stated intervals contain the true value."""
    layout = {"yaxis": axis("coverage of the 95 % intervals, %", range=[-3, 103]),
              "shapes": [level(COVERED[0], GREY, "dot"), level(95.0), level(COVERED[1], GREY, "dot")]}
    return _dots(data, scores, [100.0 * score.coverage for score in scores], layout,
                 "How often the 95 % confidence interval of every parameter contains the true value, one mark per "
                 "method")


def _dots(data: StudyData, scores: Sequence[MethodScore], values: Sequence[Array], layout: dict[str, Any],
          label: str) -> Figure:
    """Return a marker for every method and known parameter; values (base,) of every score."""
    order = np.concatenate([np.flatnonzero(data.inertial), np.flatnonzero(~data.inertial)])
    traces = []
    for k, (score, y) in enumerate(zip(scores, values, strict=True)):
        shown = [(place, j) for place, j in enumerate(order) if score.known[j]]
        # Methods stand side by side around the name's place on the axis.
        aside = 0.6 * ((k + 0.5) / len(scores) - 0.5)
        traces.append({"type": "scatter", "mode": "markers", "name": text(score.label),
                       "x": [round(place + aside, 3) for place, _ in shown],
                       "y": significant(y[[j for _, j in shown]]), "text": [text(data.names[j]) for _, j in shown],
                       "marker": {"color": SERIES[k % len(SERIES)], "symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8},
                       "hovertemplate": "%{text}: %{y}<extra>%{fullData.name}</extra>"})
    x = axis("base parameter, inertial ones first", tickangle=-90 if len(order) > 12 else 0, zeroline=False,
             tickvals=list(range(len(order))), ticktext=[text(data.names[j]) for j in order],
             range=[-0.7, len(order) - 0.3], tickfont={"size": 10 if len(order) > 20 else 12})
    return Figure(traces, {**layout, "xaxis": x}, label, 420, width=_PER_NAME * len(order))


SECTION = Section("parameters", "Parameters", gather)

"""Page on a Monte Carlo study: bias, coverage of intervals, and the influence of noise on each method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.report.figure import GREY, SERIES, SYMBOLS, Figure, axis, level, line, log_axis, significant, text
from dynid.report.section import Page, Section
from dynid.report.words import count, typeset

_MAX_FAILURE_REASONS = 5  # reasons shown for one method
_TEXT_COLUMNS = ("method", "parameters")  # columns without numbers
COVERED = (90.0, 98.0)  # percent: range of coverage in which a 95 % interval is considered correct
_PER_NAME = 14  # px per parameter on the axis
_MIN_DRAWN_RATIO = 1e-3  # smallest |bias| / standard deviation drawn


@dataclass(frozen=True, eq=False)
class MethodScore:
    """One method at one noise level.

    Attributes:
        label, factor: name of the method, and factor on the noise.
        logs: number of logs with an estimate.
        torque_error: percent, median over the logs, or None.
        bias, spread, stated: (base,), mean error, standard deviation over the logs, and mean stated standard error.
        coverage: (base,), share of the logs whose 95 % interval contains the true value.
        known: (base,), whether these four are defined.
        group_coverage: mean coverage by group of parameters, None if undefined.
        failures: one sentence for each log without an estimate.
    """

    label: str
    factor: float
    logs: int
    torque_error: float | None
    bias: Array
    spread: Array
    stated: Array
    coverage: Array
    known: Bools
    group_coverage: Mapping[str, float | None]
    failures: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class StudyData:
    """Data of the page on a Monte Carlo study.

    Attributes:
        names, units, truth, inertial: (base,), the parameters, inertial ones first.
        factors: on the noise.
        scores: every method at every factor.
        tables: rows of cells, the head first.
        unbiased, biased: ratios of mean error and spread below which no bias is detected, and above which it dominates.
        unbiased_by_chance: expected share of parameters below `unbiased` for an unbiased method.
        settings: text of the study's file.
        command: command line that repeats the study.
    """

    title: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    truth: Array
    inertial: Bools
    repetitions: int
    seed: int
    factors: tuple[float, ...]
    scores: tuple[MethodScore, ...]
    tables: Sequence[Sequence[Sequence[str]]]
    unbiased: float
    biased: float
    unbiased_by_chance: float
    settings: str
    command: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(score.label for score in self.scores))


def _overview(data: StudyData) -> Mapping[str, Any]:
    """Tables of scores of the methods, and why some logs gave no estimate."""
    reasons = []
    for score in data.scores:
        different = list(dict.fromkeys(score.failures))
        if different:
            shown = [(sentence, score.failures.count(sentence)) for sentence in different[:_MAX_FAILURE_REASONS]]
            reasons.append({"label": score.label, "factor": score.factor, "count": len(score.failures),
                            "sentences": shown, "more": len(different) - len(shown)})
    return {"tables": data.tables, "words": _TEXT_COLUMNS, "reasons": reasons, "unbiased": data.unbiased,
            "by_chance": f"{100 * data.unbiased_by_chance:.0f} %", "logs": data.repetitions}


def _levels(data: StudyData) -> Mapping[str, Any] | None:
    """Section on the influence of the noise level on each method."""
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


def _parameters(data: StudyData) -> Mapping[str, Any]:
    """Bias and coverage of every parameter, one panel per noise level."""
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
    """Return |bias| relative to the standard deviation over the logs, inertial parameters first."""
    values = [np.maximum(np.abs(score.bias) / np.maximum(score.spread, 1e-300), _MIN_DRAWN_RATIO) for score in scores]
    every = np.array([data.unbiased, data.biased, *(x for score, y in zip(scores, values, strict=True)
                                                    for x in y[score.known])])
    layout = {"yaxis": log_axis("mean error / standard deviation", float(every.min()), float(every.max())),
              "shapes": [level(data.unbiased, GREY, "dot"), level(data.biased)]}
    return _dots(data, scores, values, layout, "Mean error of every parameter in standard deviations, one mark per "
                                               "method")


def coverage_figure(data: StudyData, scores: Sequence[MethodScore]) -> Figure:
    """Return the share of logs in which the stated intervals contain the true value."""
    layout = {"yaxis": axis("coverage of the 95 % intervals, %", range=[-3, 103]),
              "shapes": [level(COVERED[0], GREY, "dot"), level(95.0), level(COVERED[1], GREY, "dot")]}
    return _dots(data, scores, [100.0 * score.coverage for score in scores], layout,
                 "How often the 95 % confidence interval of every parameter contains the true value, one mark per "
                 "method")


def _dots(data: StudyData, scores: Sequence[MethodScore], values: Sequence[Array], layout: dict[str, Any],
          label: str) -> Figure:
    """Return a plot with one marker per method and parameter; values: numbers (base,) to draw, from a score."""
    order = np.concatenate([np.flatnonzero(data.inertial), np.flatnonzero(~data.inertial)])
    traces = []
    for k, (score, y) in enumerate(zip(scores, values, strict=True)):
        shown = [(place, j) for place, j in enumerate(order) if score.known[j]]
        # Markers of several methods are placed around the parameter's position on the axis.
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


SECTIONS: tuple[Section[StudyData], ...] = (
    Section("overview", "Methods", _overview),
    Section("levels", "Noise", _levels),
    Section("parameters", "Parameters", _parameters),
    Section("provenance", "Provenance", lambda data: {"settings": data.settings, "command": data.command}))


def subtitle(data: StudyData) -> str:
    """Number of logs, noise levels and parameters, and the seed."""
    return (f"{count(data.repetitions, 'simulated log')} at each of {count(len(data.factors), 'noise level')}, "
            f"{len(data.names)} base parameters, seed {data.seed}")


STUDY = Page("study", subtitle, SECTIONS)

__all__ = ["SECTIONS", "STUDY", "MethodScore", "StudyData"]

"""Report page of a Monte Carlo study: bias, coverage of intervals, and the influence of noise on each method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import GREY, SERIES, SYMBOLS, Figure, axis, level, line, log_axis, significant, text
from dynid.report.rendering import write_page
from dynid.report.section import Page, Section
from dynid.report.words import count, typeset
from dynid.study.result import BIASED, GROUPS, UNBIASED, Score, StudyResult

_MAX_FAILURE_REASONS = 5  # reasons shown for one method
_TEXT_COLUMNS = ("method", "parameters")  # columns without numbers
COVERED = (90.0, 98.0)  # percent: range of coverage in which a 95 % interval is considered correct
_PER_NAME = 14  # px per parameter on the axis
_MIN_DRAWN_RATIO = 1e-3  # smallest |bias| / standard deviation drawn


@dataclass(frozen=True, eq=False)
class StudyPage:
    """Data of the page on a Monte Carlo study: its result, and the command line that repeats it."""

    result: StudyResult
    command: str = ""

    @property
    def title(self) -> str:
        """Headline of the page: the robot and the methods."""
        return f"{self.result.robot}: {', '.join(self.result.labels)}"


def write_study(result: StudyResult, path: str | Path, command: str = "") -> Path:
    """Write the page to a file atomically; command: command line that repeats the study."""
    return write_page(STUDY, StudyPage(result, command), path)


def _overview(data: StudyPage) -> Mapping[str, Any]:
    """Tables of scores of the methods, and why some logs gave no estimate."""
    result, reasons = data.result, []
    for score in result.scores:
        counts = Counter(sentence for _, sentence in score.failures)
        if counts:
            shown = list(counts.items())[:_MAX_FAILURE_REASONS]
            reasons.append({"label": score.label, "factor": score.factor, "count": len(score.failures),
                            "sentences": shown, "more": len(counts) - len(shown)})
    return {"tables": (result.runs_table(), result.parameters_table()), "words": _TEXT_COLUMNS, "reasons": reasons,
            "unbiased": UNBIASED, "by_chance": f"{100 * result.unbiased_by_chance:.0f} %",
            "logs": result.study.repetitions}


def _levels(data: StudyPage) -> Mapping[str, Any] | None:
    """Section on the influence of the noise level on each method."""
    if len(data.result.study.noise.factors) < 2:
        return None

    def coverage(score: Score, name: str) -> float | None:
        group = score.group(data.result.members(name))
        return None if group is None else 100.0 * group["coverage"]

    def torque_error(score: Score) -> float | None:
        return float(np.median(score.torque_error)) if len(score.torque_error) else None

    figures = [_level_figure(data.result, "torque error, %", torque_error),
               *(_level_figure(data.result, f"{name}: coverage, %", partial(coverage, name=name), coverage=True)
                 for name in GROUPS)]
    return {"figures": [figure for figure in figures if figure is not None]}


def _level_figure(result: StudyResult, title: str, value: Callable[[Score], float | None], *,
                  coverage: bool = False) -> Figure | None:
    """Return a value over the noise factor, one line per method, or None if no method has any.

    coverage: percent, on a linear axis with the nominal 95 %; otherwise the axis is logarithmic.
    """
    traces: list[dict[str, Any]] = []
    every: list[float] = []
    for k, label in enumerate(result.labels):
        found = [(score.factor, value(score)) for score in result.scores if score.label == label]
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
    layout = {"xaxis": axis("factor on the noise", tickvals=list(result.study.noise.factors)), "yaxis": own,
              "shapes": [level(95.0)] if coverage else []}
    return Figure(traces, layout, f"{title}, over the noise level, one line per method", 320)


def _parameters(data: StudyPage) -> Mapping[str, Any]:
    """Bias and coverage of every parameter, one panel per noise level."""
    result, panes = data.result, []
    for factor in result.study.noise.factors:
        scores = [score for score in result.scores if score.factor == factor and len(score.values) > 1]
        rows = [{"name": name, "unit": typeset(unit), "truth": float(result.truth[k]), "label": score.label,
                 "bias": float(score.bias[k]), "spread": float(score.spread[k]), "stated": float(score.stated[k]),
                 "coverage": 100.0 * float(score.coverage[k])}
                for k, (name, unit) in enumerate(zip(result.names, result.units, strict=True))
                for score in scores if score.known[k]]
        panes.append({"label": f"noise x {factor:g}", "bias": _bias_figure(result, scores),
                      "coverage": _coverage_figure(result, scores), "rows": rows})
    return {"panes": panes, "labels": [{"label": pane["label"], "source": "", "kind": ""} for pane in panes]}


def _bias_figure(result: StudyResult, scores: Sequence[Score]) -> Figure:
    """Return |bias| relative to the standard deviation over the logs, inertial parameters first."""
    values = [np.maximum(score.bias_over_spread, _MIN_DRAWN_RATIO) for score in scores]
    every = np.array([UNBIASED, BIASED, *(x for score, y in zip(scores, values, strict=True)
                                                    for x in y[score.known])])
    layout = {"yaxis": log_axis("mean error / standard deviation", float(every.min()), float(every.max())),
              "shapes": [level(UNBIASED, GREY, "dot"), level(BIASED)]}
    return _dots(result, scores, values, layout, "Mean error of every parameter in standard deviations, one mark per "
                                               "method")


def _coverage_figure(result: StudyResult, scores: Sequence[Score]) -> Figure:
    """Return the share of logs in which the stated intervals contain the true value."""
    layout = {"yaxis": axis("coverage of the 95 % intervals, %", range=[-3, 103]),
              "shapes": [level(COVERED[0], GREY, "dot"), level(95.0), level(COVERED[1], GREY, "dot")]}
    return _dots(result, scores, [100.0 * score.coverage for score in scores], layout,
                 "How often the 95 % confidence interval of every parameter contains the true value, one mark per "
                 "method")


def _dots(result: StudyResult, scores: Sequence[Score], values: Sequence[Array], layout: dict[str, Any],
          label: str) -> Figure:
    """Return a plot with one marker per method and parameter; values: drawn numbers (base,) of each score."""
    order = np.concatenate([np.flatnonzero(result.inertial), np.flatnonzero(~result.inertial)])
    traces = []
    for k, (score, y) in enumerate(zip(scores, values, strict=True)):
        shown = [(place, j) for place, j in enumerate(order) if score.known[j]]
        # Markers of several methods are placed around the parameter's position on the axis.
        aside = 0.6 * ((k + 0.5) / len(scores) - 0.5)
        traces.append({"type": "scatter", "mode": "markers", "name": text(score.label),
                       "x": [round(place + aside, 3) for place, _ in shown],
                       "y": significant(y[[j for _, j in shown]]), "text": [text(result.names[j]) for _, j in shown],
                       "marker": {"color": SERIES[k % len(SERIES)], "symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8},
                       "hovertemplate": "%{text}: %{y}<extra>%{fullData.name}</extra>"})
    x = axis("base parameter, inertial ones first", tickangle=-90 if len(order) > 12 else 0, zeroline=False,
             tickvals=list(range(len(order))), ticktext=[text(result.names[j]) for j in order],
             range=[-0.7, len(order) - 0.3], tickfont={"size": 10 if len(order) > 20 else 12})
    return Figure(traces, {**layout, "xaxis": x}, label, 420, width=_PER_NAME * len(order))


def _provenance(data: StudyPage) -> Mapping[str, Any]:
    return {"settings": data.result.study.as_toml(), "command": data.command}


def _subtitle(data: StudyPage) -> str:
    """Line below the headline: number of logs, noise levels and parameters, and the seed."""
    study = data.result.study
    return (f"{count(study.repetitions, 'simulated log')} at each of {count(len(study.noise.factors), 'noise level')}, "
            f"{len(data.result.names)} base parameters, seed {study.seed}")


STUDY = Page("study", _subtitle, (
    Section("overview", "Methods", _overview),
    Section("levels", "Noise", _levels),
    Section("parameters", "Parameters", _parameters),
    Section("provenance", "Provenance", _provenance)))

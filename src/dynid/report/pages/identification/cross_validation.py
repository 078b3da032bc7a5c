"""Section on cross-validation: the model is fitted without a block of time and tested on that block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynid.report.figure import BLUE, GREY, INK, VERMILION, Figure, axis, level, line, log_axis, significant, text
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.validate import CrossValidation


def gather(data: ReportData) -> Mapping[str, Any] | None:
    cross = data.cross_validation
    if cross is None:
        return None
    known = [one[np.isfinite(one)] for one in cross.errors_per_joint.T]
    joints = [{"name": name, "mean": float(one.mean()), "low": float(one.min()), "high": float(one.max())}
              for name, one in zip(cross.joints, known, strict=True) if len(one)]
    blocks = [{"number": block + 1, "where": _short(where, data.log_name), "error": float(error)}
              for block, where, error in zip(cross.blocks, cross.where, cross.errors, strict=True)]
    return {"cross": cross, "joints": joints, "blocks": blocks, "choice": data.estimate.diagnostics.get("choice"),
            "errors": errors_figure(cross, data.log_name), "moves": moves_figure(cross),
            "fit": float(np.nanmean(cross.fit_errors)) if np.isfinite(cross.fit_errors).any() else None}


def _short(where: str, name: Callable[[str], str]) -> str:
    """Return the short names and time spans of the logs of a block of time. where: the texts with full log names."""
    return "; ".join(", ".join([name(source), *rest]) for source, *rest in
                     (one.rsplit(", ", 1) for one in where.split("; ")))


def errors_figure(cross: CrossValidation, name: Callable[[str], str]) -> Figure:
    """Return the relative error on every validation block and on the fitted data. name: short name of a log."""
    x, where = [str(block + 1) for block in cross.blocks], [text(_short(one, name)) for one in cross.where]
    traces = [{"type": "bar", "x": x, "y": significant(cross.errors), "name": "validation", "marker": {"color": BLUE},
               "text": where, "textposition": "none",
               "hovertemplate": "block %{x}, %{text}: %{y:.3~g} %<extra>validation</extra>"},
              {"type": "scatter", "mode": "lines+markers", "x": x, "y": significant(cross.fit_errors), "name": "fitted",
               "line": {"color": GREY, "width": 2}, "marker": {"size": 6},
               "hovertemplate": "without block %{x}: %{y:.3~g} %<extra>fitted</extra>"}]
    layout = {"xaxis": axis("block of time used for validation", type="category"),
              "yaxis": axis("relative error, %", rangemode="tozero"), "shapes": [level(cross.mean, BLUE)]}
    return Figure(traces, layout, "Cross-validation: relative error on each block of time", 290)


def moves_figure(cross: CrossValidation) -> Figure | None:
    """Return a plot of each parameter's standard error from the variation between blocks over its estimated one."""
    if cross.stated is None:
        return None
    good = np.isfinite(cross.stated) & (cross.stated > 0) & np.isfinite(cross.jackknife) & (cross.jackknife > 0)
    if good.sum() < 2:
        return None
    stated, found = cross.stated[good], cross.jackknife[good]
    ends = [min(stated.min(), found.min()) / 1.5, max(stated.max(), found.max()) * 1.5]
    names = [text(name) for name, ok in zip(cross.names, good, strict=True) if ok]
    traces = [line(significant(ends), significant(ends), "equal", GREY, 1, line={"dash": "dash"}, hoverinfo="skip"),
              {"type": "scatter", "mode": "markers", "x": significant(stated), "y": significant(found),
               "name": "parameters", "text": names, "marker": {"size": 7, "color": VERMILION, "opacity": 0.75,
                                                               "line": {"color": INK, "width": 0.5}},
               "hovertemplate": "%{text}: estimated %{x:.2~g}, between blocks %{y:.2~g}<extra></extra>"}]
    low, high = (float(x) for x in ends)
    layout = {"xaxis": log_axis("estimated standard error, SI units", low, high),
              "yaxis": log_axis("between blocks, SI units", low, high)}
    return Figure(traces, layout, "Standard deviation between blocks over the estimated standard error", 290)


SECTION = Section("cross_validation", "Cross-validation", gather)

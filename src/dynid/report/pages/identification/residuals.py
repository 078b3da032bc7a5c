"""Residuals of each joint: over time, histogram, spectrum and autocorrelation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.order_statistics import distinct
from dynid.regression.residual_series import Residuals
from dynid.report.figure import (
    BLUE,
    GREY,
    LIGHT,
    VERMILION,
    Figure,
    axis,
    level,
    line,
    log_axis,
    numbers,
    packed,
    significant,
    thinned_rows,
    with_breaks,
)
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits, inverse, squared
from dynid.signals import power_density
from dynid.validate import JointTests, Whiteness

POINTS = 2000
_HISTOGRAM_BINS = 60  # of the histogram
MIN_SPECTRUM_ROWS = 32  # rows below which a spectrum is not informative
_MAX_FREQUENCIES = 250
_WELCH_ROWS = 4096  # rows of Welch's windows at most


def gather(data: ReportData) -> Mapping[str, Any]:
    own = data.reconstruction
    part = max(own.series, key=lambda series: len(series.t))
    joints = []
    for j, (found, fit, units) in enumerate(zip(data.verdict.tests.joints, own.joints, data.units, strict=True)):
        used = np.concatenate([series.residual[series.keep[:, j], j] for series in own.series])
        figures = [series_figure(part, j, units)]
        if len(used) > 1 and np.ptp(used) > 1e-9 * np.abs(used).max():
            figures.append(histogram_figure(used, units))
            if int(part.keep[:, j].sum()) >= MIN_SPECTRUM_ROWS:
                figures.append(spectrum_figure(part, j, units, data.logs[0].torque_cutoff))
        if found.whiteness is not None:
            figures.append(autocorrelation_figure(found.whiteness))
        joints.append({"name": found.joint, "fit": fit, "unit": units.torque, "white": found.whiteness,
                       "normal": found.normality, "looks": looks(found),
                       "sentences": [note.text for note in found.notes], "figures": figures})
    return {"joints": joints, "source": data.log_name(part.source), "several": len(own.series) > 1}


def looks(found: JointTests) -> str:
    """Return the results of the residual tests of a joint in a few words each."""
    properties = []
    if found.explained_by is not None:
        properties.append(found.explained_by.seen)
    if found.whiteness is not None and found.whiteness.autocorrelated:
        properties.append("autocorrelated")
    if found.normality is not None and found.normality.shape != "normal":
        properties.append(found.normality.title)
    return ", ".join(properties)


def series_figure(part: Residuals, j: int, units: JointUnits) -> Figure:
    """Return the residual over time; unused rows are lighter."""
    t, residual, keep = part.t - part.t[0], part.residual[:, j], part.keep[:, j]
    rows = thinned_rows(np.column_stack([residual, np.where(keep, residual, 0.0)]), POINTS)
    time, shown, kept = with_breaks(t, rows, 3.5 / part.rate, residual, np.where(keep, residual, np.nan))
    x = packed(time)
    hover = f"%{{y:.4~g}} {units.torque} at %{{x:.3f}} s"
    traces = [line(x, packed(kept), "residual", VERMILION, 1, hovertemplate=hover)]
    if not keep.all():
        traces.insert(0, line(x, packed(shown), "not used", LIGHT, 1, hoverinfo="skip"))
    used = residual[keep] if keep.any() else residual  # the axis fits the used rows
    margin = 0.1 * float(np.ptp(used)) or 1e-9
    layout = {"xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]),
              "yaxis": axis(f"residual, {units.torque}",
                            range=numbers([float(used.min()) - margin, float(used.max()) + margin]))}
    return Figure(traces, layout, "Residual over time", 270)


def histogram_figure(used: Array, units: JointUnits) -> Figure:
    """Return the histogram of the residual, with the normal density of the same mean and standard deviation."""
    mean, deviation = float(used.mean()), float(used.std())
    reach = max(4.5 * deviation, 1e-300)
    inside = np.clip(used, mean - reach, mean + reach)  # outliers are counted in the last bars
    count, edges = np.histogram(inside, bins=_HISTOGRAM_BINS)
    centre, width = 0.5 * (edges[1:] + edges[:-1]), float(edges[1] - edges[0])
    density = count / (len(used) * width)
    x = np.linspace(edges[0], edges[-1], 121)
    curve = np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    traces = [{"type": "bar", "x": numbers(centre), "y": numbers(density), "width": width, "name": "residual",
               "marker": {"color": VERMILION, "opacity": 0.55},
               "hovertemplate": f"%{{x:.3~g}} {units.torque}<extra></extra>"},
              line(numbers(x), numbers(curve), "normal", GREY, 2, hoverinfo="skip")]
    layout = {"xaxis": axis(f"residual, {units.torque}"), "bargap": 0,
              "yaxis": axis(f"density, {inverse(units.torque)}", rangemode="tozero")}
    return Figure(traces, layout, "Histogram of the residual", 270)


def spectrum_figure(part: Residuals, j: int, units: JointUnits, cutoff: float | None) -> Figure:
    """Return power spectral densities of torque and residual, corrected for unused rows, which count as zero."""
    keep = part.keep[:, j]
    share = float(keep.mean())
    window = int(np.clip(2 ** int(np.log2(max(len(keep) // 8, 1))), min(64, len(keep)), _WELCH_ROWS))
    mean = part.measured[keep, j].mean()
    both = np.column_stack([part.measured[:, j] - mean, part.residual[:, j]]) * keep[:, None]
    f, power = power_density(both, part.rate, window)
    f, power = f[1:], power[1:] / share
    f, power = _fewer(f, power)
    x = significant(f)
    positive = np.where(power > 0, power, np.nan)
    hover = f"%{{y:.3~g}} {squared(units.torque)}/Hz at %{{x:.3~g}} Hz"
    traces = [line(x, significant(positive[:, 0]), f"{units.effort}", GREY, 2, hovertemplate=hover),
              line(x, significant(positive[:, 1]), "residual", VERMILION, 1.5, hovertemplate=hover)]
    good = positive[np.isfinite(positive)]
    low, high = (float(good.min()), float(good.max())) if len(good) else (1.0, 1.0)
    if cutoff is not None and f[0] < cutoff < f[-1]:
        traces.append(line([cutoff, cutoff], significant([low, high]), "cut-off", BLUE, 1,
                           line={"dash": "dash"}, hovertemplate=f"{cutoff:.4g} Hz"))
    layout = {"xaxis": log_axis("frequency, Hz", float(f[0]), float(f[-1])),
              "yaxis": log_axis(f"power density, {squared(units.torque)}/Hz", low, high)}
    return Figure(traces, layout, "Spectra of the residual and of the torque", 270)


def _fewer(f: Array, power: Array) -> tuple[Array, Array]:
    """Return means over bins of equal width on a logarithmic axis, if there are too many points for a plot."""
    if len(f) <= _MAX_FREQUENCIES:
        return f, power
    edges = distinct(np.geomspace(1, len(f), _MAX_FREQUENCIES).astype(int) - 1)
    counts = np.diff(np.append(edges, len(f)))
    return np.add.reduceat(f, edges) / counts, np.add.reduceat(power, edges, axis=0) / counts[:, None]


def autocorrelation_figure(white: Whiteness) -> Figure:
    """Return the autocorrelation of the residual; for white noise, 95 % of it is inside the dashed lines."""
    x, y = numbers(white.lags, 6), numbers(white.autocorrelation, 4)
    traces = [line(x, y, "residual", VERMILION, 1.5, hovertemplate="%{y:.3f} after %{x:.3~g} s<extra></extra>"),
              line([None], [None], "95 % of white noise", GREY, 1, line={"dash": "dash"})]
    layout = {"xaxis": axis("lag, s", rangemode="tozero"), "yaxis": axis("autocorrelation", range=[-1.05, 1.05]),
              "shapes": [level(white.bound), level(-white.bound)]}
    return Figure(traces, layout, "Autocorrelation of the residual", 270)


SECTION = Section("residuals", "Residuals", gather)

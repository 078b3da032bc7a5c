"""Tables of an estimate: plain text, HTML for notebooks, pandas."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.errors import optional_package
from dynid.estimate.estimate import WELL_DETERMINED, Estimate
from dynid.estimate.uncertainty import CovType
from dynid.html_tables import card, paragraph, table

# Origin of standard errors, as the end of a sentence "standard errors ...".
UNCERTAINTY: dict[CovType, str] = {
    "correlated": "account for the autocorrelation of the residuals",
    "blocks": "come from the variation between blocks of time, intervals from Student's t",
    "independent": "assume independent rows, which underestimates them by an unknown factor",
    "posterior": "combine data and prior",
    "instruments": "account for the spectra of residuals and instruments",
    "innovations": "are those of the Kalman filter, scaled by the size of its innovations"}


def headline(estimate: Estimate) -> str:
    """Return method, number of parameters and torque error of an estimate in one line."""
    facts = estimate.diagnostics
    known = f", {len(estimate.known)} known" if estimate.known else ""
    return (f"{estimate.method}: {len(estimate.values)} base parameters{known}, {counted(estimate)}, relative error "
            f"{facts.relative_error:.2f} %; standard errors {UNCERTAINTY[estimate.cov_type]}")


def counted(estimate: Estimate) -> str:
    """Return the number of well-determined base parameters as text, for the headline of an estimate."""
    return f"{int(estimate.well_determined.sum())} well determined (standard error at most {WELL_DETERMINED:g} %)"


def rows(estimate: Estimate) -> list[tuple[str, str, str, str, str]]:
    """Return name, value, standard error, relative error and expression of base parameters, then known values."""
    found = []
    for name, value, std, relative, known, expression in zip(
            estimate.names, estimate.values, estimate.std, estimate.relative_std, estimate.identified,
            estimate.base.expressions, strict=True):
        share = f"{relative:.1f} %" if np.isfinite(relative) and relative < 1e4 else "-"
        found.append((name, f"{value:.5g}", f"{std:.3g}", share, expression) if known
                     else (name, "not identified", "", "", expression))
    return found + [(name, f"{value:.5g}", "known", "", name) for name, value in estimate.known.items()]


def summary(estimate: Estimate) -> str:
    """Return names, values, standard errors and expressions as text, with the numbers of the fit at the top."""
    table = rows(estimate)
    width = max(len(row[0]) for row in table)
    lines = [headline(estimate), "", f"{'':{width}}  {'value':>12}  {'std error':>11}  {'relative':>8}  expression"]
    lines += [f"{name:{width}}  {value:>12}  {std:>11}  {share:>8}  {expression}"
              for name, value, std, share, expression in table]
    return "\n".join([*lines, *(["", *notes] if (notes := _notes(estimate)) else [])])


def summary_html(estimate: Estimate) -> str:
    """Return the table of an estimate as HTML for notebooks, with units."""
    lines = [(name, value, unit, *rest) for (name, value, *rest), unit in zip(rows(estimate), estimate.base.units,
                                                                              strict=True)]
    shown = table(("", "value", "unit", "std error", "relative", "expression"), lines, words=(0, 2, 5))
    return card(headline(estimate), shown, *(paragraph(note) for note in _notes(estimate)))


def _notes(estimate: Estimate) -> list[str]:
    return [f"Note: {note.text}." for note in estimate.notes]


def to_frame(estimate: Estimate) -> Any:
    """Return a pandas table with one row per base parameter."""
    pd = optional_package("pandas", "pandas")
    low, high = estimate.conf_int().T
    return pd.DataFrame({"value": estimate.values, "std": estimate.std, "relative_std": estimate.relative_std,
                         "low": low, "high": high, "identified": estimate.well_determined, "unit": estimate.base.units,
                         "expression": estimate.base.expressions}, index=pd.Index(estimate.names, name="parameter"))


def plot(estimate: Estimate) -> Any:
    """Return a plotly figure of the base parameters with their 95 % intervals.

    Parameters of one unit share a row. Poorly determined ones are grey.
    """
    scatter = optional_package("plotly.graph_objects", "dynid[plot]").Scatter
    make_subplots = optional_package("plotly.subplots", "dynid[plot]").make_subplots
    units = list(dict.fromkeys(estimate.base.units))
    low, high = estimate.conf_int().T
    made = make_subplots(rows=len(units), cols=1, vertical_spacing=0.25 / max(len(units), 2))
    for row, unit in enumerate(units, 1):
        for chosen, label, colour in ((estimate.well_determined, "well determined", "#0072b2"),
                                      (estimate.poorly_determined, "poorly determined", "#999999")):
            own = [k for k, one in enumerate(estimate.base.units) if one == unit and chosen[k]]
            made.add_trace(scatter(x=[estimate.names[k] for k in own], y=estimate.values[own], mode="markers",
                                   marker={"color": colour}, name=label, legendgroup=label, showlegend=row == 1,
                                   error_y={"type": "data", "array": (high - estimate.values)[own],
                                            "arrayminus": (estimate.values - low)[own]}), row=row, col=1)
        made.update_yaxes(title_text=unit or "1", row=row, col=1)
    made.update_layout(title=headline(estimate), height=160 + 180 * len(units))
    return made

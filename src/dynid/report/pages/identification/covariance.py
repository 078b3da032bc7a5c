"""Section on correlations between parameter estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import DIVERGING, Figure, text
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section

HIGH_CORRELATION = 0.9  # correlation above which only a combination of two parameters is determined
_SHOWN_PAIRS = 10
_PER_NAME = 12  # px per parameter on an axis


def gather(data: ReportData) -> Mapping[str, Any] | None:
    estimate = data.estimate
    shown = np.flatnonzero(estimate.identified & (np.diag(estimate.covariance) > 0))
    if len(shown) < 2:
        return None
    rho = correlation(estimate.covariance[np.ix_(shown, shown)])
    if not np.any(rho[~np.eye(len(shown), dtype=bool)]):
        return None  # an earlier result contains standard errors only
    names = [estimate.names[k] for k in shown]
    upper = np.triu_indices(len(shown), 1)
    order = np.argsort(-np.abs(rho[upper]))[:_SHOWN_PAIRS]
    pairs = [(names[upper[0][k]], names[upper[1][k]], float(rho[upper][k])) for k in order]
    return {"figure": heat_map(rho, names), "pairs": [pair for pair in pairs if abs(pair[2]) > 0.5],
            "close": int(np.sum(np.abs(rho[upper]) > HIGH_CORRELATION)), "threshold": HIGH_CORRELATION}


def correlation(covariance: Array) -> Array:
    """Return the correlation of a covariance (k, k) with a positive diagonal."""
    std = np.sqrt(np.diag(covariance))
    return np.clip(covariance / np.outer(std, std), -1.0, 1.0)


def heat_map(rho: Array, names: list[str]) -> Figure:
    """Return correlations as a heat map."""
    labels = [text(name) for name in names]
    side = int(np.clip(_PER_NAME * len(names), 260, 1100))
    trace = {"type": "heatmap", "x": labels, "y": labels, "z": np.round(rho, 2).tolist(), "zmin": -1, "zmax": 1,
             "colorscale": DIVERGING, "colorbar": {"orientation": "h", "title": {"text": "correlation", "side": "top"},
                                                   "thickness": 12, "len": 0.5, "y": 1.0, "yanchor": "bottom",
                                                   "tickvals": [-1, -0.5, 0, 0.5, 1]},
             "hovertemplate": "%{x} and %{y}: %{z}<extra></extra>", "xgap": 0.5, "ygap": 0.5}
    small = {"size": 9 if len(names) > 40 else 10 if len(names) > 20 else 12}
    layout = {"xaxis": {"tickangle": -90, "tickfont": small, "type": "category", "automargin": True, "dtick": 1,
                        "constrain": "domain"},
              "yaxis": {"tickfont": small, "type": "category", "autorange": "reversed", "automargin": True, "dtick": 1,
                        "scaleanchor": "x", "constrain": "domain"},
              "showlegend": False, "margin": {"l": 60, "r": 10, "t": 70, "b": 60}}
    return Figure([trace], layout, "Correlations between the base parameters", side + 130, side + 70, side + 70)


SECTION = Section("covariance", "Correlation of the parameters", gather)

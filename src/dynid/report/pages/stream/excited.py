"""Standard error of each parameter over time, relative to its final value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.figure import Figure, axis, significant, text
from dynid.report.pages.stream.data import StreamData
from dynid.report.section import Section

_DRAWN_LOOKS = 200
_COLOUR_DECADES = 2.0  # above the smallest deviation at which the colours end


def gather(data: StreamData) -> Mapping[str, Any] | None:
    if len(data.t) < 2:
        return None
    rows = np.unique(np.linspace(0, len(data.t) - 1, min(_DRAWN_LOOKS, len(data.t))).astype(int))
    stds = data.stds[rows]
    least = np.where(np.isfinite(stds), stds, np.inf).min(axis=0)
    known = np.isfinite(least) & (least > 0.0)
    if not known.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        decades = np.clip(np.log10(stds[:, known] / least[known]), 0.0, _COLOUR_DECADES)
    decades = np.where(np.isfinite(decades), decades, _COLOUR_DECADES)
    names = [text(name) for name, own in zip(data.names, known, strict=True) if own]
    trace = {"type": "heatmap", "x": significant(data.t[rows]), "y": names,
             "z": [significant(row) for row in decades.T], "zmin": 0.0, "zmax": _COLOUR_DECADES,
             "colorscale": [[0.0, "#0072b2"], [0.5, "#9ecae1"], [1.0, "#ffffff"]],
             "colorbar": {"title": {"text": "decades"}}}
    layout = {"xaxis": axis("time, s"), "yaxis": {**axis(""), "autorange": "reversed", "dtick": 1}, "showlegend": False}
    return {"figure": Figure([trace], layout, "standard error of each parameter over time, in decades above its "
                                              "smallest",
                             max(240, 90 + 15 * len(names)))}


SECTION = Section("excited", "Excitation over time", gather)

"""The search: the best value over time, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.excitation import ExcitingMotion
from dynid.report.figure import BLUE, Figure, axis, line, numbers, significant, text
from dynid.report.pages.motion.data import MotionData
from dynid.report.section import Section


def gather(data: MotionData) -> Mapping[str, Any]:
    found = data.excitation
    return {"figure": search_figure(found), "starts": found.starts, "seed": found.seed, "elapsed": found.elapsed,
            "interrupted": found.interrupted, "command": data.command}


def search_figure(found: ExcitingMotion) -> Figure | None:
    """Plot the best value of the search against time."""
    if not found.history:
        return None
    t, values = (np.array(column) for column in zip(*found.history, strict=True))
    wide = values.min() > 0 and values.max() > 3.0 * values.min()
    traces = [line(numbers([*t, found.elapsed], 4), significant([*values, values[-1]]), "best so far", BLUE, 2,
                   mode="lines+markers", line={"shape": "hv"}, marker={"size": 6},
                   hovertemplate="%{y:.4~g} after %{x:.1f} s<extra></extra>")]
    layout = {"xaxis": axis("time of the search, s", rangemode="tozero"), "showlegend": False,
              "yaxis": axis(f"best {text(found.criterion)} so far", **({"type": "log"} if wide else {}))}
    return Figure(traces, layout, "The best value of the search over time", 280, widest=760)


SECTION = Section("search", "Search", gather)

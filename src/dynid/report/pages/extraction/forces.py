"""Internal forces: the norm of the force at every joint for all sets (Simionato, fig. 5.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.figure import MEASURED, SERIES, Figure, axis, line, numbers, title
from dynid.report.pages.extraction.data import ExtractionData
from dynid.report.section import Section


def gather(data: ExtractionData) -> Mapping[str, Any]:
    return {"figures": [_figure(data, j) for j in range(data.robot.dof)]}


def _figure(data: ExtractionData, j: int) -> Figure:
    compared, wrenches = data.comparison, data.comparison.wrenches
    x = numbers(compared.motion.t - compared.motion.t[0], 6)
    reasons = {one.name: one.reason for one in compared.sets}
    traces = []
    for k, name in enumerate(wrenches.names):
        first = name == compared.reference
        words = f"{name} ({reasons[name]})" if name in reasons else name
        traces.append(line(x, numbers(wrenches.forces[k][:, j]), words, MEASURED if first else SERIES[k % len(SERIES)],
                           4 if first else 1.4,
                           line={"dash": "solid" if reasons.get(name, "feasible") == "feasible" else "dot"}))
    joint = wrenches.joints[j]
    return Figure(traces, {"title": title(joint), "xaxis": axis("time, s"), "yaxis": axis("force, N")},
                  f"Norm of the force through {joint} for every extracted set", 280)


SECTION = Section("forces", "Reaction forces", gather)

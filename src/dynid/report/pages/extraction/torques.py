"""Torques of every set on a new motion, joint by joint: they coincide (Simionato, fig. 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.figure import MEASURED, SERIES, Figure, axis, line, numbers, title
from dynid.report.pages.extraction.data import ExtractionData
from dynid.report.section import Section
from dynid.report.units import SLIDING, TURNING


def gather(data: ExtractionData) -> Mapping[str, Any]:
    return {"figures": [_figure(data, j) for j in range(data.robot.dof)], "reference": data.comparison.reference}


def _figure(data: ExtractionData, j: int) -> Figure:
    compared, joint = data.comparison, data.robot.joints[j]
    unit = SLIDING if joint.prismatic else TURNING
    x = numbers(compared.motion.t - compared.motion.t[0], 6)
    others = [name for name in compared.torques if name != compared.reference]
    traces = [line(x, numbers(compared.torques[compared.reference][:, j]), compared.reference, MEASURED, 4)]
    traces += [line(x, numbers(compared.torques[name][:, j]), name, SERIES[k % len(SERIES)], 1.2)
               for k, name in enumerate(others)]
    return Figure(traces, {"title": title(joint.name), "xaxis": axis("time, s"),
                           "yaxis": axis(f"{unit.effort}, {unit.torque}")},
                  f"{unit.effort} of {joint.name} of every extracted set", 260)


SECTION = Section("torques", "Torques on a new motion", gather)

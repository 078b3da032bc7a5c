"""Positions of the first log: measured, and simulated in closed loop with the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.figure import BLUE, LIGHT, MEASURED, Figure, axis, line, numbers, title
from dynid.report.pages.actuators.data import ActuatorData
from dynid.report.section import Section
from dynid.report.thin import thinned_rows

_JOINT_POINTS = 2000  # of one joint


def gather(data: ActuatorData) -> Mapping[str, Any]:
    log = data.estimate.logs[0]
    return {"figures": [_figure(data, j, name) for j, name in enumerate(data.estimate.joints)], "log": log.source}


def _figure(data: ActuatorData, j: int, name: str) -> Figure:
    log = data.estimate.logs[0]
    columns = np.column_stack([log.measured[:, j], log.command[:, j], log.simulated[:, j]])
    rows = thinned_rows(columns, _JOINT_POINTS)
    x = numbers(log.t[rows] - log.t[0], 6)
    hover = "%{y:.4~g} rad at %{x:.3f} s"
    traces = [line(x, numbers(columns[rows, k]), words, colour, width, hovertemplate=hover) for k, words, colour, width
              in ((0, "measured", MEASURED, 4), (1, "command", LIGHT, 1.2), (2, "simulated", BLUE, 1.4))]
    error = 1e3 * float(log.mean_error[j])
    return Figure(traces, {"title": title(f"{name}, mean error {error:.3g} mrad"), "xaxis": axis("time, s"),
                           "yaxis": axis("position, rad")},
                  f"Measured, commanded and simulated positions of {name}", 260)


SECTION = Section("positions", "Simulated positions", gather)

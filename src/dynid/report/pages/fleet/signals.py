"""Commanded and measured signals of the robots in the same motion, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.arrays import Array
from dynid.report.figure import SERIES, Figure, axis, line, numbers, text, title
from dynid.report.pages.fleet.data import FleetData, Signals
from dynid.report.section import Section

ALIKE = 1.0  # percent: commanded positions that differ by less are the same


def gather(data: FleetData) -> Mapping[str, Any] | None:
    shown = data.signals
    if shown is None:
        return None
    rows = [(joint, float(shown.position_difference[k]), float(shown.torque_difference[k]))
            for k, joint in enumerate(data.joints)]
    figures = [signal_figure(shown, values, k, joint, name) for k, joint in enumerate(data.joints)
               for values, name in ((shown.position, "commanded position"), (shown.torque, "measured torque"))]
    return {"rows": rows, "figures": figures, "motion": shown.motion, "alike": ALIKE,
            "same": all(position < ALIKE for _, position, _ in rows)}


def signal_figure(shown: Signals, values: Array, joint: int, label: str, name: str) -> Figure:
    """Return one signal (robots, points, dof) of one joint, one line per robot."""
    traces = [line(numbers(shown.t), numbers(values[k, :, joint]), text(robot), SERIES[k % len(SERIES)])
              for k, robot in enumerate(shown.robots)]
    layout = {"title": title(label), "xaxis": axis("time, s"), "yaxis": axis(name)}
    return Figure(traces, layout, f"{name} of {label}, one line per robot", 240)


SECTION = Section("signals", "The same motion on all robots", gather)

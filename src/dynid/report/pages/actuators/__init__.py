"""The page of identified actuators: parameters, undetermined parameters, and simulated positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.actuators import ActuatorEstimate
from dynid.report.figure import BLUE, LIGHT, MEASURED, Figure, axis, line, numbers, thinned_rows, title
from dynid.report.section import Page, Section

_JOINT_POINTS = 2000  # points per joint


@dataclass(frozen=True, eq=False)
class ActuatorData:
    """The estimate, the title of the page, and the command line that made it."""

    title: str
    estimate: ActuatorEstimate
    command: str = ""


def _parameters(data: ActuatorData) -> Mapping[str, Any]:
    """Parameters of the actuators with intervals, friction models that were compared, findings and notes."""
    found = data.estimate
    return {"rows": found.rows(), "comparison": found.comparison, "findings": [one.text for one in found.findings],
            "notes": [one.text for one in found.notes], "error": 1e3 * found.mean_error,
            "linear": 1e3 * found.linear_error, "trivial": 1e3 * found.delayed_command.mean_error,
            "trivial_model": found.delayed_command.text}


def _positions(data: ActuatorData) -> Mapping[str, Any]:
    """Positions of the first log: measured, and simulated in closed loop with the estimate."""
    log = data.estimate.logs[0]
    return {"figures": [_figure(data, j, name) for j, name in enumerate(data.estimate.joints)], "log": log.source}


def _figure(data: ActuatorData, j: int, name: str) -> Figure:
    log = data.estimate.logs[0]
    signals = ((log.measured, "measured", MEASURED, 4.0), (log.command, "command", LIGHT, 1.2),
               (log.simulated, "simulated", BLUE, 1.4))
    shown = [(signal[:, j], words, colour, width) for signal, words, colour, width in signals if signal is not None]
    columns = np.column_stack([one[0] for one in shown])
    rows = thinned_rows(columns, _JOINT_POINTS)
    x = numbers(log.t[rows] - log.t[0], 6)
    hover = "%{y:.4~g} rad at %{x:.3f} s"
    traces = [line(x, numbers(signal[rows]), words, colour, width, hovertemplate=hover)
              for signal, words, colour, width in shown]
    error = 1e3 * float(log.mean_error[j])
    return Figure(traces, {"title": title(f"{name}, mean error {error:.3g} mrad"), "xaxis": axis("time, s"),
                           "yaxis": axis("position, rad")},
                  f"Measured, commanded and simulated positions of {name}", 260)


def subtitle(data: ActuatorData) -> str:
    """Line below the headline: the simulation error, the drive law and the friction model."""
    found = data.estimate
    error = f"not usable: {found.unusable}" if found.unusable else (
        f"simulated positions have a mean error of {1e3 * found.mean_error:.3g} mrad "
        f"({found.delayed_command.text}: {1e3 * found.delayed_command.mean_error:.3g} mrad)")
    return f"{error}; drive law {found.law}, friction {found.friction.upper()}"


ACTUATORS = Page("actuators", subtitle, (
    Section("parameters", "Parameters", _parameters),
    Section("positions", "Simulated positions", _positions)))

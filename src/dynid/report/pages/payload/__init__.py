"""Page on a payload: its parameters with standard errors, its torques, and the values for controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.payloads.controllers import Entry
from dynid.payloads.result import PayloadEstimate
from dynid.recording import Samples
from dynid.report.figure import BLUE, LIGHT, MEASURED, Figure, axis, line, numbers, thinned_rows, title
from dynid.report.section import Page, Section
from dynid.report.words import SLIDING, TURNING
from dynid.robot import Robot

_SOURCE_WORDS = {"noise": "noise of the loaded logs", "robot": "the robot without load", "gains": "drive gains",
          "friction": "friction that changes with the load", "scale": "the scale", "mounting": "the sensor's mounting"}
_JOINT_POINTS = 2000  # points per joint


@dataclass(frozen=True, eq=False)
class PayloadData:
    """Data of the page on a payload.

    Attributes:
        title, robot, payload: headline, the robot, and the estimated payload.
        entries: values to enter into controllers.
        samples: samples of a loaded log.
        without, load: (samples, dof), torques of the unloaded robot and of the payload alone, for this log.
        command: command line that made the page.
    """

    title: str
    robot: Robot
    payload: PayloadEstimate
    entries: tuple[Entry, ...]
    samples: Samples
    without: Array
    load: Array
    command: str = ""


def _body(data: PayloadData) -> Mapping[str, Any]:
    """Mass, centre of mass and inertia of the payload with standard errors, and the sources of these errors."""
    found = data.payload
    rows = found.rows()
    inertia = found.central_inertia if found.has_mass else None
    return {
        "found": found, "rows": rows, "inertia": inertia, "frame": found.frame,
        "sources": [(_SOURCE_WORDS[source], found.mass_std_from(source)) for source in found.parts if found.has_mass],
        "findings": [(one.severity, one.text) for one in found.findings]}


def _torques(data: PayloadData) -> Mapping[str, Any]:
    """Measured torques of the loaded log, and predicted ones without and with the payload, joint by joint."""
    units = [SLIDING if joint.prismatic else TURNING for joint in data.robot.joints]
    return {"figures": [_figure(data, j, name, units[j].effort, units[j].torque)
                        for j, name in enumerate(data.robot.joint_names)], "log": data.samples.source}


def _figure(data: PayloadData, j: int, name: str, effort: str, unit: str) -> Figure:
    log = data.samples
    measured, alone = log.tau[:, j], data.without[:, j]
    whole = alone + data.load[:, j]
    rows = thinned_rows(np.column_stack([measured, alone, whole]), _JOINT_POINTS)
    x = numbers(log.t[rows] - log.t[0], 6)
    hover = f"%{{y:.4~g}} {unit} at %{{x:.3f}} s"
    traces = [line(x, numbers(values[rows]), words, colour, width, hovertemplate=hover) for values, words, colour, width
              in ((measured, "measured", MEASURED, 4), (alone, "robot alone", LIGHT, 1.2),
                  (whole, "with the payload", BLUE, 1.4))]
    return Figure(traces, {"title": title(name), "xaxis": axis("time, s"), "yaxis": axis(f"{effort}, {unit}")},
                  f"Measured {effort} of {name}, and of the model without and with the payload", 260)


def _controllers(data: PayloadData) -> Mapping[str, Any] | None:
    """The payload in the fields, order and units of each manufacturer's controller."""
    return {"entries": data.entries, "frame": data.payload.frame} if data.entries else None


def subtitle(data: PayloadData) -> str:
    """Line below the headline: the mass of the payload with its standard error, and the method."""
    found = data.payload
    return f"mass {found.mass_text}, method '{found.method}'"


PAYLOAD = Page("payload", subtitle, (
    Section("body", "Payload", _body),
    Section("torques", "Torques", _torques),
    Section("controllers", "Values for controllers", _controllers)))

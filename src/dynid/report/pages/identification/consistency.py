"""Physical consistency: mass, centre and moments of every link, active constraints, free motion, internal forces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.order_statistics import distinct
from dynid.report.figure import BLUE, GREEN, INK, MEASURED, ORANGE, VERMILION, Figure, axis, line, numbers, title
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.validate import FreeFall, WrenchComparison

_CURVE_POINTS = 600  # points per curve
_CONDITION_UNITS = {"mass": "kg", "mass-limit": "kg", "not-positive-definite": "kg m²", "triangle": "kg m²",
          "centre-of-mass": "m"}  # unit of a violation by kind


def gather(data: ReportData) -> Mapping[str, Any] | None:
    found = data.physics
    if found is None:
        return None
    forces = found.forces
    return {"physics": found, "facts": data.estimate.diagnostics, "units": _CONDITION_UNITS,
            "has_file": any(link.file_mass is not None for link in found.links),
            "energy": None if found.fall is None else energy_figure(found.fall),
            "forces": [] if forces is None else [force_figure(forces, j) for j in range(len(forces.joints))]}


def energy_figure(fall: FreeFall) -> Figure:
    """Return the energy of the robot in free motion over time."""
    rows = distinct(np.linspace(0, len(fall.t) - 1, _CURVE_POINTS).astype(np.int64))
    x, least = numbers(fall.t[rows], 5), float(fall.potential.min())
    hover = "%{y:.4~g} J at %{x:.2f} s"
    traces = [line(x, numbers(fall.potential[rows] - least), "potential", ORANGE, 1.5, hovertemplate=hover),
              line(x, numbers(fall.kinetic[rows]), "kinetic", GREEN, 1.5, hovertemplate=hover),
              line(x, numbers(fall.energy[rows] - least), "sum", BLUE if fall.stable else VERMILION, 2.5,
                   hovertemplate=hover)]
    layout = {"xaxis": axis("time, s", range=[0.0, max(float(fall.t[-1]), 1e-3)]), "yaxis": axis("energy, J")}
    return Figure(traces, layout, "Energy of the robot in free motion without joint torques", 300)


def force_figure(found: WrenchComparison, j: int) -> Figure:
    """Return the norm of the force at one joint over time, for every set of parameters."""
    rows = distinct(np.linspace(0, len(found.t) - 1, _CURVE_POINTS).astype(np.int64))
    t = found.t - found.t[0]
    x, hover = numbers(t[rows], 7), "%{y:.4~g} N at %{x:.2f} s"
    traces = [line(x, numbers(found.forces[k, rows, j]), name, (MEASURED, BLUE, VERMILION, INK)[k % 4],
                   3 if k == 0 else 1.5, hovertemplate=hover) for k, name in enumerate(found.names)]
    layout = {"title": title(found.joints[j]), "xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]),
              "yaxis": axis("force, N")}
    return Figure(traces, layout, f"Reaction force at {found.joints[j]} over time", 270)


SECTION = Section("consistency", "Physical consistency", gather)

"""Page on an extraction: the sets of parameters, their physical consistency, torques and internal forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynid.report.figure import MEASURED, SERIES, Figure, axis, line, numbers, title
from dynid.report.section import Page, Section
from dynid.report.words import SLIDING, TURNING
from dynid.robot import Robot
from dynid.validate import SetComparison

_SET_WORDS = {"feasible": "physically consistent", "inertia": "inertia not physically consistent",
              "centres": "centres of mass outside their links",
              "both": "inertia not consistent and centres of mass outside", "other": "violates another condition"}


@dataclass(frozen=True, eq=False)
class ExtractionData:
    """Data of the page on an extraction. comparison: parameter sets on a new motion; command: command line."""

    title: str
    robot: Robot
    comparison: SetComparison
    command: str = ""


def _sets(data: ExtractionData) -> Mapping[str, Any]:
    """The sets: conditions, whether each is physically consistent, and errors of base values and internal forces."""
    compared = data.comparison
    rows = [(one.name, _SET_WORDS[one.reason], one.search, one.distance, len(one.outside),
             compared.torque_error(one.name), float(compared.force_differences(one.name).max()), one.seconds)
            for one in compared.sets]
    reasons = [(_SET_WORDS[reason], ", ".join(names),
                max(float(compared.force_differences(name).max()) for name in names))
               for reason, names in compared.by_reason.items()]
    cones = [(one.name, one.cones) for one in compared.sets if one.cones is not None]
    return {"rows": rows, "reasons": reasons, "reference": compared.reference, "cones": cones,
            "why": [(one.name, [v.message for v in one.violations] + list(one.outside)) for one in compared.sets
                    if one.violations or one.outside]}


def _torques(data: ExtractionData) -> Mapping[str, Any]:
    """Torques of every set of parameters on a new motion, joint by joint: the torques coincide (Simionato, fig.
    5.4)."""
    return {"figures": [_torques_figure(data, j) for j in range(data.robot.dof)],
            "reference": data.comparison.reference}


def _torques_figure(data: ExtractionData, j: int) -> Figure:
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


def _forces(data: ExtractionData) -> Mapping[str, Any]:
    """Internal forces: the norm of the force at every joint for all sets of parameters (Simionato, fig. 5.6)."""
    return {"figures": [_forces_figure(data, j) for j in range(data.robot.dof)]}


def _forces_figure(data: ExtractionData, j: int) -> Figure:
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


def subtitle(data: ExtractionData) -> str:
    """Line below the headline: how many of the extracted parameter sets are physically consistent."""
    every = data.comparison.sets
    return f"{sum(one.feasible for one in every)} of {len(every)} extracted sets are physically consistent"


EXTRACTION = Page("extraction", subtitle, (
    Section("sets", "Extracted sets", _sets),
    Section("torques", "Torques on a new motion", _torques),
    Section("forces", "Reaction forces", _forces)))

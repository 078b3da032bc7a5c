"""Can it exist: every link's mass, centre and moments, what holds the fit back, how it falls, forces inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, Violation
from dynid.errors import ModelError
from dynid.model import Model
from dynid.recording import Samples
from dynid.report.data import ReportData
from dynid.report.figure import BLUE, GREY, INK, MEASURED, VERMILION, Figure, axis, line, numbers, text
from dynid.report.section import Section
from dynid.report.words import typeset
from dynid.robot import inertia as ten
from dynid.validate import (
    FreeFall,
    WrenchComparison,
    free_fall,
    positive_inertia_share,
    wrench_comparison,
)

POSTURES = 2000
ROWS = 1500  # of a log along which forces are compared
_POINTS = 600  # of a curve


def gather(data: ReportData) -> Mapping[str, Any] | None:
    model, theta = data.estimate.model, data.estimate.theta
    if theta is None or not isinstance(model, Model) or not all(
            len(model.parameters.bodies.get(name, ())) == 10 for name in model.robot.body_names):
        return None
    found = Consistency(model.parameters, margin=0.0).violations(theta)
    file = file_bodies(model)
    fall = _fall(model, theta)
    facts = data.estimate.diagnostics
    return {"rows": link_rows(model, theta, file, found), "violations": [typeset(one.message) for one in found],
            "others": [typeset(one.message) for one in found if one.link not in model.parameters.bodies],
            "active": facts.get("active"), "facts": facts, "has_file": file is not None,
            "positive": 100.0 * positive_inertia_share(model, theta, samples=POSTURES), "postures": POSTURES,
            "fall": None if fall is None else typeset(fall.sentence), "stable": fall is not None and fall.stable,
            "energy": None if fall is None else energy_figure(fall), **_forces(model, theta, file, data.logs[0])}


def file_bodies(model: Model) -> Array | None:
    """Ten numbers of every body (dof, 10) as the robot's file has them, where it has all."""
    return None if model.robot.bodies_without_inertia else model.robot.inertias


def link_rows(model: Model, theta: Array, file: Array | None, found: tuple[Violation, ...]) -> list[dict[str, Any]]:
    """Mass, centre of mass and principal moments of every link, how far inside the set it is, and what is wrong."""
    rows = []
    for k, name in enumerate(model.robot.body_names):
        numbers_ = theta[model.parameters.bodies[name]]
        mass = float(numbers_[9])
        centre = moments = None
        if mass > 0:
            _, centre, central = ten.to_central(numbers_)
            moments = np.linalg.eigvalsh(central).tolist()
        own = [one for one in found if one.link == name]
        rows.append({"name": name, "mass": mass, "file_mass": None if file is None else float(file[k, 9]),
                     "centre": None if centre is None else centre.tolist(), "moments": moments,
                     "room": room(numbers_), "wrong": [typeset(one.message) for one in own],
                     "off": max((one.amount for one in own), default=0.0)})
    return rows


def room(numbers_: Array) -> float:
    """How far a body is inside the set, in percent: 0 on its border, 100 for a ball.

    The smallest share of the matter's spread that any direction has, against an even third.
    """
    mass = numbers_[9]
    if mass <= 0:
        return float("nan")
    pseudo = ten.pseudo_inertia(numbers_)
    spread = pseudo[:3, :3] - np.outer(pseudo[:3, 3], pseudo[:3, 3]) / mass
    total = float(np.trace(spread))
    return 300.0 * float(np.linalg.eigvalsh(spread)[0]) / total if total > 0 else float("nan")


def _fall(model: Model, theta: Array) -> FreeFall | None:
    try:
        return free_fall(model, theta)
    except ModelError:
        return None  # a term that the simulation does not know


def energy_figure(fall: FreeFall) -> Figure:
    """Energy of the robot let go, over time."""
    rows = np.unique(np.linspace(0, len(fall.t) - 1, _POINTS).astype(np.int64))
    x, least = numbers(fall.t[rows], 5), float(fall.potential.min())
    hover = "%{y:.4~g} J at %{x:.2f} s"
    traces = [line(x, numbers(fall.potential[rows] - least), "potential", MEASURED, 1.5, hovertemplate=hover),
              line(x, numbers(fall.kinetic[rows]), "kinetic", GREY, 1.5, hovertemplate=hover),
              line(x, numbers(fall.energy[rows] - least), "both", BLUE if fall.stable else VERMILION, 2.5,
                   hovertemplate=hover)]
    layout = {"xaxis": axis("time, s", range=[0.0, max(float(fall.t[-1]), 1e-3)]),
              "yaxis": axis("energy, J")}
    return Figure(traces, layout, "Energy of the robot let go without torques", 300)


def _forces(model: Model, theta: Array, file: Array | None, log: Samples) -> dict[str, Any]:
    """Forces inside the links along the log, identified and of the robot's file, where it has one."""
    if file is None:
        return {"forces": [], "force_rows": []}
    nominal = theta.copy()
    for k, name in enumerate(model.robot.body_names):
        nominal[model.parameters.bodies[name]] = file[k]
    rows = np.unique(np.linspace(0, len(log.t) - 1, ROWS).astype(np.int64))
    motion = Samples.of(log.q[rows], log.dq[rows], log.ddq[rows], log.tau[rows], t=log.t[rows], rate=log.rate)
    found = wrench_comparison(model, {"robot's file": nominal, "identified": theta}, motion)
    apart = found.apart("identified", "robot's file")
    return {"forces": [force_figure(found, j) for j in range(model.dof)],
            "force_rows": [{"name": name, "file": float(found.forces[0, :, j].max()),
                            "identified": float(found.forces[1, :, j].max()), "apart": float(apart[j])}
                           for j, name in enumerate(found.joints)]}


def force_figure(found: WrenchComparison, j: int) -> Figure:
    """Norm of the force through one joint over time, for every set."""
    rows = np.unique(np.linspace(0, len(found.t) - 1, _POINTS).astype(np.int64))
    t = found.t - found.t[0]
    x, hover = numbers(t[rows], 7), "%{y:.4~g} N at %{x:.2f} s"
    traces = [line(x, numbers(found.forces[k, rows, j]), name, (MEASURED, BLUE, VERMILION, INK)[k % 4],
                   3 if k == 0 else 1.5, hovertemplate=hover) for k, name in enumerate(found.names)]
    layout = {"title": {"text": f"<b>{text(found.joints[j])}</b>", "x": 0.005, "xanchor": "left", "y": 0.99,
                        "yanchor": "top", "font": {"size": 14}},
              "xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]), "yaxis": axis("force, N")}
    return Figure(traces, layout, f"Force through {found.joints[j]} over time", 270)


SECTION = Section("consistency", "Can it exist", gather)

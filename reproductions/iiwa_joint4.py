"""Ardiani, table C.1, on a virtual KUKA iiwa: joint 4 alone, and an offset above its Coulomb friction.

The log of the thesis is not available. Instead, the physically consistent robot nearest to table 2.5 moves its fourth
joint back and forth, with the friction of table C.1. Its inertias are those of table 2.5, and MX4, which is small in
that table, is essential too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.estimate import Problem, essential
from dynid.excitation.waypoints import quintics_within
from dynid.model import Coulomb, Model, Offset, RigidBodies, Viscous
from dynid.recording import Samples
from dynid.report.drawing import thinned
from dynid.validate import reconstruct, verdict
from reproductions._printed import Comparison, printed
from reproductions.iiwa_offline import EVERY, prepared
from reproductions.online_iiwa import RATE, Machine, machine

JOINT = 3  # from 0
FRICTION = ("Fc4", "Fv4", "Fo4")  # of table C.1, put in
NAMES = {"ZZ1": "ZZ4R", "MX1": "MX4", "MY1": "MY4R", "Fc1": "Fc4", "Fv1": "Fv4", "Fo1": "Fo4"}  # of the joint alone
CURVES = ("position, rad", "velocity, rad/s", "acceleration, rad/s²", "sensed", "five essential parameters and MX4")
WAYS, SHARE, UNSURE, MOST = 24, 0.8, 20.0, 0.5  # there and back; of the top speed; percent; percent of the torque


def joint_alone(made: Machine, theta: np.ndarray, samples: Samples) -> Samples:
    """Return the equations of the fourth joint, minus the torque of the base parameters of the joints after it."""
    base = made.base
    behind = np.array([int(name.rstrip("R")[-1]) > JOINT + 1 for name in base.names])
    columns = made.model.regressor(samples.q, samples.dq, samples.ddq)[:, JOINT][:, base.independent]
    torque = samples.tau[:, JOINT] - columns[:, behind] @ base.reduce(theta)[behind]
    keep, own = samples.keep[:, JOINT], [JOINT]
    return Samples.from_arrays(samples.q[keep][:, own], samples.dq[keep][:, own], samples.ddq[keep][:, own],
                               torque[keep, None], rate=RATE / EVERY)


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    made = machine()
    theta, names = made.theta.copy(), made.model.parameters.names
    table_c1 = printed("000", "C.1")
    for name in FRICTION:
        theta[names.index(name)] = table_c1.value(name, "value")
    points = np.zeros((WAYS + 1, made.model.robot.dof))
    points[:, JOINT] = np.where(np.arange(WAYS + 1) % 2, 1.0, -1.0) * np.random.default_rng(0).uniform(
        0.5, 1.9, WAYS + 1)
    progress("joint 4 moves")
    log = made.record(quintics_within(points, made.limits(SHARE)), seed=1, theta=theta)
    samples = joint_alone(made, theta, prepared(log, filtered=True))
    robot = made.model.robot.only([made.model.robot.joint_names[JOINT]])
    problem = Problem.from_model(Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset())), samples)
    found = essential(problem, threshold=UNSURE, method="ols")
    true = dict(zip(made.base.names, made.base.reduce(theta), strict=True))
    values = {NAMES.get(name, name): (float(value), float(std)) for name, value, std in zip(
        found.estimate.names, found.estimate.values, found.estimate.std, strict=True)}
    met = reconstruct(found.estimate, samples)
    error, said = met.relative_error, verdict(found.estimate, found.problem, reconstruction=met)
    codes = [finding.code for finding in said.findings]
    off = {name: abs(value - true[name]) / std for name, (value, std) in values.items()}
    times, columns = thinned(samples.t, np.hstack([
        samples.q, samples.dq, samples.ddq, samples.tau,
        found.estimate.predict(samples.q, samples.dq, samples.ddq)]), 600)
    compared = Comparison(table_c1)
    for name in ("ZZ4R", "MY4R"):
        value, std = values[name]
        stated = 0.01 * table_c1.value(name, "percent") * abs(table_c1.value(name, "value"))
        compared.compare(name, "value", value, noise=2.0 * float(np.hypot(stated, std)), claimed=False)
    compared.leave_out("friction that is put in", [(name, "value") for name in FRICTION])
    compared.leave_out("the noise of the log is not printed")
    return {"printed": [compared.summary()], "values": values, "true": {name: float(true[name]) for name in values},
            "relative_error": error, "findings": codes,
            "curves": {"t": times, **dict(zip(CURVES, columns, strict=True))}, "checks": {
                "the five parameters of the table are essential": set(table_c1.rows) <= set(values),
                f"the torque error is below {MOST:g} %, as printed": bool(error < MOST)},
            "demonstrations": {
                "each parameter is within three standard errors of the truth": bool(max(off.values()) < 3.0),
                "the verdict states that friction with such an offset would add energy": "driving-friction" in codes}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("parameter", "printed", "%", "ours", "%", "truth")]
    for name, (value, std) in result["values"].items():
        theirs = printed("000", "C.1").rows.get(name, ("", ""))
        rows.append((name, *theirs, f"{value:.4f}", f"{100.0 * std / abs(value):.2f}",
                     f"{result['true'][name]:.4f}"))
    return [*rows, ("relative error, %", "< 0.5", "", f"{result['relative_error']:.2f}", "", "")]

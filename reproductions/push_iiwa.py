"""Pushes of Ardiani (s. 4.9, fig. 4.7, 4.8) on a virtual KUKA iiwa: tracked parameters or an estimated wrench."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.contacts import ExternalWrench
from dynid.estimate import Estimate, Problem, identify
from dynid.online import Exponential, Online
from dynid.recording import Samples
from dynid.recording.sample_preparation import prepare
from dynid.report.drawing import thinned
from dynid.simulation import Reference
from reproductions._pushes import Push, motion, pushed
from reproductions.online_iiwa import Machine, machine, random_points

LOOPS, FORCE = 6, 30.0  # as in the document; N
# Four points of a task in which the axis z7 stays level and the hand moves in a plane that stands upright.
LOOP = np.array([[0.5, 0.7, 0.0, -1.3, 0.0, -0.45, 0.0], [0.5, 1.0, 0.0, -1.0, 0.0, -0.45, 0.0],
                 [-0.5, 1.0, 0.0, -1.0, 0.0, -0.45, 0.0], [-0.5, 0.7, 0.0, -1.3, 0.0, -0.45, 0.0]])
FORGETTING = {"no forgetting": None, "0.9995": Exponential(0.9995), "0.999": Exponential(0.999),
              "0.99": Exponential(0.99)}


def task(made: Machine) -> tuple[Reference, list[float]]:
    """Return the closed path, six times, and the time at which each repetition ends."""
    reference = motion(made, np.vstack([np.tile(LOOP, (LOOPS, 1)), LOOP[:1]]), share=0.3)
    return reference, [reference.duration * (k + 1) / LOOPS for k in range(LOOPS)]


def person(made: Machine, reference: Reference, ends: list[float]) -> list[Push]:
    """Return the forces of a person: downward in the first and the third loop, along z7 in the fifth, as a push every
    half second with slight variations."""
    rng, found = np.random.default_rng(9), list[Push]()
    for loop in (0, 2, 4):
        begin = ends[loop] - reference.duration / LOOPS
        for start in np.arange(begin + 0.1 * (ends[loop] - begin), ends[loop] - 0.1 * (ends[loop] - begin), 0.5):
            q = reference.q[int(start * reference.rate)]
            along = dynamics.frame_pose(made.model.robot, "link7", q)[:3, 2] if loop == 4 else np.array([0, 0, -1.0])
            force = FORCE * (1.0 + 0.2 * rng.normal()) * along + 0.05 * FORCE * rng.normal(size=3)
            found.append(Push("link7", np.array([0.0, 0.0, 0.15]), force, float(start), float(start) + 0.5))
    return found


def tracked(made: Machine, before: Estimate, samples: Samples, forgetting: Any) -> Array:
    """Return the torques (samples, dof) that the model predicts for each sample before its update."""
    online = Online(made.model, prior=before, forgetting=forgetting, base=made.base)
    found = np.empty(samples.tau.shape)
    for k in range(len(samples)):
        motion_now = samples.q[k], samples.dq[k], samples.ddq[k]
        found[k] = online.predict(*(x[None] for x in motion_now))[0]
        online.update(*motion_now, samples.tau[k])
    return found


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    made = machine()
    robot = made.model.robot
    progress("identifying the robot")
    first = made.log(random_points(robot, 1, 20), 1)
    before = identify(Problem.from_model(made.model, prepare(first, cutoff=8.0, slow=0.01), base=made.base),
                      method="wls")
    progress("a person pushes")
    reference, ends = task(made)
    pushes = person(made, reference, ends)
    log = pushed(made, reference, pushes, 5)
    samples = prepare(log, cutoff=8.0, slow=0.0, thin=10)
    loop = np.minimum((samples.t / (reference.duration / LOOPS)).astype(int), LOOPS - 1)
    models = {"fixed model": before.predict(samples.q, samples.dq, samples.ddq)}
    for name, way in FORGETTING.items():
        progress(f"tracking all parameters, {name}")
        models[f"all parameters, {name}"] = tracked(made, before, samples, way)
    progress("the wrench")
    outside = ExternalWrench(before, "link7", free=first)
    rows, _ = outside.of_log(log)
    felt = np.column_stack([np.interp(samples.t, rows.t, column) for column in wrench_torques(outside, rows).T])
    models["fixed model and wrench"] = models["fixed model"] - felt
    pushing = np.isin(loop, (0, 2, 4))
    errors = {name: {"pushed": _errors(samples.tau, tau, pushing), "free": _errors(samples.tau, tau, ~pushing)}
              for name, tau in models.items()}
    return {"errors": errors, "force": _forces(made, pushes, rows), "curves": _curves(samples, models, rows, pushes),
            "checks": _checks(errors)}


def _curves(samples: Samples, models: dict[str, Array], rows: Any, pushes: list[Push]) -> dict[str, Any]:
    """Torques, N m, sensed and by the models that are drawn, and forces, N, found and true, over time."""
    names = ("fixed model", "all parameters, 0.99", "fixed model and wrench")
    t, columns = thinned(samples.t, np.hstack([samples.tau, *(models[name] for name in names)]), 1500)
    dof = samples.tau.shape[1]
    true = np.zeros((len(rows.t), 3))
    for push in pushes:
        true[(rows.t >= push.start) & (rows.t < push.stop)] = push.force
    when, forces = thinned(rows.t, np.hstack([true, rows.wrench[:, :3]]), 1500)
    return {"t": t, "torques": {name: columns[k * dof:(k + 1) * dof] for k, name in enumerate(("sensed", *names))},
            "force_t": when, "force_true": forces[:3], "force_found": forces[3:]}


def wrench_torques(outside: ExternalWrench, rows: Any) -> Array:
    """Joint torques (rows, dof) of the wrenches found, where something touches the robot."""
    jacobian = dynamics.jacobian(outside.robot, outside.frame, rows.torques.q)
    return np.einsum("mij,mi->mj", jacobian, np.where(rows.touched[:, None], rows.wrench, 0.0))


def _errors(tau: Array, model: Array, rows: Array) -> list[float]:
    """Root mean square errors (dof,), N m."""
    return np.sqrt(np.mean((tau - model)[rows] ** 2, axis=0)).tolist()


def _forces(made: Machine, pushes: list[Push], rows: Any) -> dict[str, Any]:
    """Return estimated and true force in the middle of each push (fig. 4.7)."""
    at = [int(np.argmin(np.abs(rows.t - 0.5 * (push.start + push.stop)))) for push in pushes]
    truth = np.vstack([push.at_link(made.model.robot, rows.torques.q[k:k + 1]) for push, k in zip(pushes, at,
                                                                                               strict=True)])
    off = (rows.wrench[at] - truth)
    return {"pushes": len(pushes), "rms_N": float(np.sqrt(np.mean(np.sum(off[:, :3] ** 2, axis=1)))),
            "std_N": float(np.sqrt(np.mean(np.sum(rows.std[at][:, :3] ** 2, axis=1)))),
            "inside_percent": (100.0 * np.mean(np.abs(off) < 2.0 * rows.std[at], axis=0)).tolist()}


def _checks(errors: dict[str, Any]) -> dict[str, bool]:
    total = {name: {when: float(np.linalg.norm(values)) for when, values in one.items()}
             for name, one in errors.items()}
    best = min((name for name in total if name.startswith("all")), key=lambda name: total[name]["pushed"])
    fixed, live, wrench = (total[name] for name in ("fixed model", best, "fixed model and wrench"))
    return {
        f"while a person pushes, the fixed model misses {fixed['pushed']:.2f} N m, the model tracked live "
        f"({best}) {live['pushed']:.2f}": live["pushed"] < fixed["pushed"],
        f"the fixed model with the wrench misses {wrench['pushed']:.2f} N m, less than any model tracked live":
            wrench["pushed"] < live["pushed"]}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("torque missed, N m", *(f"joint {j}" for j in range(1, 8)))]
    for name, one in result["errors"].items():
        rows += [(f"{name}, {when}", *(f"{x:.2f}" for x in one[when])) for when in ("pushed", "free")]
    force = result["force"]
    rows.append((f"force at link7 in {force['pushes']} pushes: off, N", f"{force['rms_N']:.1f}",
                 f"stated {force['std_N']:.1f}", *[""] * 5))
    return rows

"""KUKA LWR4+: fit on one real log, prediction of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import reconstruct
from reproductions._data import data, log

OWN_STUDY = True  # no document prints it
LIMITS = {"fit on file 1": 2.0, "prediction of file 2": 2.2}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.from_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
    progress("reading and preparing: 8 Hz")
    first, second = (prepare(log("kuka_lwr4", robot, f"measurements_{k}.npz"), cutoff=8) for k in (1, 2))
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    problem = Problem.from_model(model, first)
    estimate = identify(problem, method="wls")
    fits = {"fit on file 1": reconstruct(estimate, first), "prediction of file 2": reconstruct(estimate, second)}
    errors = {name: fit.total.relative_error for name, fit in fits.items()}
    inertial = sum(name[0] in "XYZM" for name in estimate.names)
    return {"relative_error": errors, "r2_per_joint": {name: [joint.r2 for joint in fit.joints]
                                                       for name, fit in fits.items()},
            "checks": {"43 inertial base parameters": inertial == 43,
                       **{f"{name} at most {limit} %: {errors[name]:.2f} %": errors[name] <= limit
                          for name, limit in LIMITS.items()}}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("", "relative error, %", "at most", "R2 by joint")]
    for name, limit in LIMITS.items():
        rows.append((name, f"{result['relative_error'][name]:.2f}", f"{limit:.1f}",
                     " ".join(f"{x:.3f}" for x in result["r2_per_joint"][name])))
    return rows

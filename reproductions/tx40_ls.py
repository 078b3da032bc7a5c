"""Staubli TX40: 61 base parameters by least squares on the real log, compared with the reference table."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from reproductions._data import data, log

SLOW = (0.0501, 0.0501, 0.0750, 0.0716, 0.0559, 0.1222)  # rad/s, below which the reference drops a joint's rows
CHECKED = ("ZZ1R", "XX2R", "ZZ2R", "MX2R", "Fv1", "Fv2", "Fv3", "Fv4", "Fv5")


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.from_urdf(data("tx40", "tx40_mdh_modified.urdf"))
    progress("reading and preparing: 100 Hz, decimated twice by 10")
    samples = prepare(log("tx40", robot), cutoff=100, decimate=10, stages=2, slow=SLOW)
    wrist = {"kind": "coupled-wrist", "joints": [5, 6]}
    model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb", "offset"), extra=[wrist]))
    problem = Problem.from_model(model, samples)
    estimates = {name: identify(problem, method=name) for name in ("ols", "wls")}
    values = {method: dict(zip(one.names, one.values.tolist(), strict=True)) for method, one in estimates.items()}
    reference = _reference()
    checks = {"61 base parameters": len(problem.base) == 61}
    for method, one in estimates.items():
        error = one.diagnostics["relative_error"]
        checks[f"relative error of {method} at most 5.4 %: {error:.2f} %"] = error <= 5.4
        for name in CHECKED:
            off = 100.0 * abs(values[method][name] / reference[method][name] - 1.0)
            checks[f"{name} by {method} within 3 % of the reference: off by {off:.2f} %"] = off <= 3.0
    return {"base_parameters": len(problem.base), "values": values, "reference": reference, "checks": checks,
            "relative_error": {method: one.diagnostics["relative_error"] for method, one in estimates.items()},
            "relative_error_per_joint": {method: one.diagnostics["relative_error_per_joint"]
                                         for method, one in estimates.items()}}


def _reference() -> dict[str, dict[str, float]]:
    """Values of the parameters we check, from the reference table, by method."""
    found: dict[str, dict[str, float]] = {"ols": {}, "wls": {}}
    starts = {"ZZ1R": "Izz1", "XX2R": "Ixx2", "ZZ2R": "Izz2", "MX2R": "mx2"}
    starts |= {f"Fv{j}": f"fv{j}" for j in range(1, 6)}
    with open(data("tx40", "TX40_bp_5.csv"), newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            for ours, theirs in starts.items():
                if row and row[0].replace(" ", "").startswith(theirs):
                    found["ols"][ours], found["wls"][ours] = float(row[1]), float(row[3])
    return found


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("parameter", "reference OLS", "ours OLS", "reference WLS", "ours WLS")]
    for name in CHECKED:
        rows.append((name, *(f"{result[source][method][name]:.4f}" for method in ("ols", "wls")
                             for source in ("reference", "values"))))
    rows.append(("relative error, %", "", f"{result['relative_error']['ols']:.2f}", "",
                 f"{result['relative_error']['wls']:.2f}"))
    return rows

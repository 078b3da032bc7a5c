"""EMPS: least squares on the real log (Janot, Gautier, Brunot 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from reproductions._data import log

PUBLISHED = {"M1": (95.1089, 0.5), "Fv1": (203.5034, 1.0), "Fc1": (20.3935, 1.0), "Fo1": (-3.1648, 2.0)}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("emps")
    progress("reading and preparing as the authors do: 100 Hz, decimated by 10")
    samples = prepare(log("emps", robot, "DATA_EMPS.mat"), cutoff=100, decimate=10)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    estimate = identify(Problem.from_model(model, samples), method="ols")
    values = dict(zip(estimate.names, estimate.values.tolist(), strict=True))
    off = {name: 100.0 * abs(values[name] / published - 1.0) for name, (published, _) in PUBLISHED.items()}
    return {"values": values, "deviations": dict(zip(estimate.names, estimate.std.tolist(), strict=True)),
            "published": {name: value for name, (value, _) in PUBLISHED.items()}, "off_percent": off,
            "relative_error": estimate.diagnostics["relative_error"],
            "checks": {f"{name} within {limit:g} % of the published value": off[name] <= limit
                       for name, (_, limit) in PUBLISHED.items()}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("parameter", "published", "ours", "deviation", "off, %")]
    for name, value in result["published"].items():
        rows.append((name, f"{value:.4f}", f"{result['values'][name]:.4f}", f"{result['deviations'][name]:.4f}",
                     f"{result['off_percent'][name]:.2f}"))
    return rows

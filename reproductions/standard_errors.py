"""Standard errors: coverage of 95 % intervals under noise that is correlated in time.

Two methods are compared on the same logs. The first uses the autocorrelation of the residuals, which needs the data
again. The second uses the variation between blocks of time of the compressed regression, with Student's t distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot

OWN_STUDY = True  # no document prints it
LOGS, SECONDS, RATE = 100, 20.0, 100.0
IN_ALL = {"logs": 40}  # the smaller study of `--all`
NOISE = 0.03  # of each joint's torque
COLOURS = {"white": 0.0, "AR(1) 0.9": 0.9, "AR(1) 0.98": 0.98}
METHODS = ("wls", "pc-wls", "irls")
LOW, HIGH = 90.0, 98.0


def motion(rng: np.random.Generator, dof: int) -> tuple[Array, Array, Array]:
    """Return a random Fourier series of five harmonics of 0.1 Hz with speeds up to 1.5 rad/s."""
    a, b = rng.normal(size=(2, dof, 5))
    series = FourierSeries(a, b, rng.uniform(-0.5, 0.5, dof), 10.0)
    top = np.abs(series.at(np.linspace(0.0, 10.0, 1000)).dq).max(axis=0)
    series = FourierSeries(1.5 * a / top[:, None], 1.5 * b / top[:, None], rng.uniform(-0.5, 0.5, dof), 10.0)
    found = series.at(np.arange(int(SECONDS * RATE)) / RATE)
    return found.q, found.dq, found.ddq


def coloured(rng: np.random.Generator, shape: tuple[int, int], memory: float) -> Array:
    """Return autocorrelated noise with a standard deviation of one: an AR(1) process with the coefficient `memory`."""
    news = rng.normal(size=(shape[0] + 500, shape[1])) * np.sqrt(1.0 - memory ** 2)
    for k in range(1, len(news)):
        news[k] += memory * news[k - 1]
    return news[500:]


def run(progress: Callable[[str], None], logs: int = LOGS) -> dict[str, Any]:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, defaults=True))
    base, theta = base_parameters(model), model.parameters.vector(model.parameters.nominal)
    truth = base.reduce(theta)
    held = {(colour, method, way): np.zeros((logs, len(base)), dtype=bool)
            for colour in COLOURS for method in METHODS for way in ("correlated", "blocks")
            if (method, way) != ("irls", "blocks")}  # irls looks at the data in any case
    wide = {key: np.zeros((logs, len(base))) for key in held}
    for k in range(logs):
        progress(f"log {k + 1} of {logs}")
        rng = np.random.default_rng(k)
        q, dq, ddq = motion(rng, model.dof)
        clean = model.inverse_dynamics(theta, q, dq, ddq)
        size = NOISE * np.sqrt(np.mean(clean ** 2, axis=0))
        for colour, memory in COLOURS.items():
            tau = clean + size * coloured(rng, clean.shape, memory)
            whole = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=RATE), base=base,
                                       nominal=theta * 1.05)
            for method in METHODS:
                for way, problem in (("correlated", whole), ("blocks", replace(whole, data=()))):
                    if (colour, method, way) in held:
                        found = identify(problem, method=method)
                        low, high = found.conf_int().T
                        held[colour, method, way][k] = (low <= truth) & (truth <= high)
                        wide[colour, method, way][k] = high - low
    rows = [{"noise": colour, "method": method, "standard_errors": way, "mean": 100.0 * float(x.mean()),
             "worst": 100.0 * float(x.mean(axis=0).min()), "best": 100.0 * float(x.mean(axis=0).max()),
             "width": float(np.median(wide[colour, method, way] / wide[colour, method, "correlated"]))}
            for (colour, method, way), x in held.items()]
    checks = {f"{row['method']}, {row['standard_errors']}, {row['noise']}: {row['mean']:.1f} % of the intervals hold, "
              f"{LOW:g} to {HIGH:g} wanted": LOW <= row["mean"] <= HIGH for row in rows}
    return {"logs": logs, "parameters": len(base), "rows": rows, "checks": checks}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("method", "standard errors from", "noise", "hold, %", "worst parameter", "best", "width"),
            *((row["method"], row["standard_errors"], row["noise"], f"{row['mean']:.1f}", f"{row['worst']:.0f}",
               f"{row['best']:.0f}", f"{row['width']:.2f}") for row in result["rows"])]

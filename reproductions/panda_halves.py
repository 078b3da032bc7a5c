"""Franka Panda: each half of a real log predicts the other half."""

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
LIMIT = 1.4


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.from_urdf(data("panda", "panda_arm.urdf"))
    recording = log("panda", robot)
    middle = recording.t[0] + 0.5 * recording.duration
    progress("preparing both halves by their stamps: 5 Hz")
    halves = [prepare(half, cutoff=5) for half in (recording.between(recording.t[0], middle),
                                                   recording.between(middle, recording.t[-1] + 1.0))]
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    estimates = [identify(Problem.from_model(model, half), method="wls") for half in halves]
    errors = {"first half on second": reconstruct(estimates[0], halves[1]).total.relative_error,
              "second half on first": reconstruct(estimates[1], halves[0]).total.relative_error}
    fits = {"fit of first half": estimates[0].diagnostics["relative_error"],
            "fit of second half": estimates[1].diagnostics["relative_error"]}
    return {"relative_error": errors, "fit": fits,
            "checks": {f"{name} at most {LIMIT} %: {error:.2f} %": error <= LIMIT for name, error in errors.items()}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("", "relative error, %", "at most")]
    rows += [(name, f"{error:.2f}", f"{LIMIT}") for name, error in result["relative_error"].items()]
    return [*rows, *((name, f"{error:.2f}", "") for name, error in result["fit"].items())]

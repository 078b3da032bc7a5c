"""Robots with a free base in MuJoCo: errors and coverage of intervals of each kind of equations.

A quadruped that lifts one foot after the other and a humanoid on two soles follow motions under PD control. MuJoCo
computes contacts and their forces. Encoders, torques, foot sensors, IMU and pose of the base have noise, and the IMU
also has a bias. With 60 or more logs of a robot, means must be within the bounds; with fewer logs, they may exceed the
bounds by twice their standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.floating import floating_base_parameters
from reproductions._walking_truth import compared, floating_log, model_of, truth_of
from reproductions._walking_world import Walker, humanoid_walker, quadruped_walker, world_log

OWN_STUDY = True  # no document prints it
ROBOTS = {"quadruped": quadruped_walker, "humanoid": humanoid_walker}
LOGS = 4  # of each machine: about a minute of a processor
WHOLE_STUDY = 60  # logs of each machine from which on means must be within the bars themselves
DURATION = 8.0  # s of a log
CUTOFFS = {"quadruped": 14.0, "humanoid": 8.0}  # Hz, chosen on seeds below 10
FIRST_SEED = 200  # settings were chosen on others
KINDS = ("wrenches", "base", "projected", "flight")
COVERAGE = (90.0, 98.0)  # percent of 95 % intervals that hold the truth
CHANCE = 2.0  # standard errors over logs by which the mean of fewer logs may be outside
RATIO = 1.5  # largest error of projected equations over that of all rows with measured forces


def run(progress: Callable[[str], None], logs: int = LOGS, duration: float = DURATION, seed: int = FIRST_SEED,
        only: Sequence[str] = tuple(ROBOTS)) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for walker in robots(only):
        inside: dict[str, list[float]] = {kind: [] for kind in KINDS}
        errors: dict[str, list[float]] = {kind: [] for kind in KINDS}
        counts: dict[str, int] = {}
        for number in range(logs):
            progress(f"{walker.name}, log {number + 1} of {logs}")
            standing, hanging = (floating_log(world_log(walker, seed + number, duration=duration, suspended=suspended))
                                 for suspended in (False, True))
            for kind in KINDS:
                one = compared(walker, hanging if kind == "flight" else standing, kind, cutoff=CUTOFFS[walker.name])
                inside[kind].append(100.0 * float(np.mean(one.inside)))
                errors[kind].append(one.prediction_error)
                counts[kind] = len(one.values)
        base = len(floating_base_parameters(model_of(walker), "wrenches"))
        kinds = {kind: {"coverage": float(np.mean(inside[kind])), "coverage_error": _error_of_mean(inside[kind]),
                        "identifiable": counts[kind], "prediction_error": _root_mean_square(errors[kind])}
                 for kind in KINDS}
        ratio, ratio_error = _ratio(errors["projected"], errors["wrenches"])
        found[walker.name] = {"logs": logs, "seed": seed, "base_parameters": base, "parameters": len(truth_of(walker)),
                              "kinds": kinds, "ratio_of_projected": ratio, "ratio_error": ratio_error}
    checks = {}
    chance = CHANCE if logs < WHOLE_STUDY else 0.0
    words = f", or outside by at most twice its standard error over {logs} logs" if chance else ""
    for name, one in found.items():
        for kind, numbers in one["kinds"].items():
            room = chance * numbers["coverage_error"] if chance else 0.0
            checks[f"{name}: 95 % intervals of '{kind}' contain the truth in 90 to 98 % of cases{words}"] = \
                bool(COVERAGE[0] - room <= numbers["coverage"] <= COVERAGE[1] + room)
        checks[f"{name}: the error of 'projected' is at most 1.5 times that of 'wrenches'{words}"] = bool(
            one["ratio_of_projected"] <= RATIO + (chance * one["ratio_error"] if chance else 0.0))
    return {"robots": found, "checks": checks}


def robots(only: Sequence[str]) -> list[Walker]:
    """The machines with these names."""
    for name in only:
        if name not in ROBOTS:
            raise DynidError(f"there is no robot '{name}'; there are {', '.join(ROBOTS)}")
    return [ROBOTS[name]() for name in only]


def _root_mean_square(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _error_of_mean(values: list[float]) -> float:
    """Standard error of the mean over logs."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


def _ratio(first: list[float], second: list[float]) -> tuple[float, float]:
    """Ratio of root-mean-square errors over logs, and its standard error by the jackknife."""
    count, whole = len(first), _root_mean_square(first) / _root_mean_square(second)
    if count < 2:
        return whole, float("inf")
    left_out = [_root_mean_square(first[:k] + first[k + 1:]) / _root_mean_square(second[:k] + second[k + 1:])
                for k in range(count)]
    return whole, float(np.std(left_out) * np.sqrt(count - 1.0))


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("robot", "equations", "base parameters", "coverage, %", "+-", "error on another motion",
             "of that of wrenches")]
    for name, one in result["robots"].items():
        first = one["kinds"]["wrenches"]["prediction_error"]
        rows += [(name, kind, str(numbers["identifiable"]), f"{numbers['coverage']:.1f}",
                  f"{numbers['coverage_error']:.1f}", f"{numbers['prediction_error']:.3g}",
                  f"{numbers['prediction_error'] / first:.2f}")
                 for kind, numbers in one["kinds"].items()]
    return rows

"""Robots with a free base in MuJoCo: each kind of equations beside the truth, with its intervals.

A quadruped that lifts one foot after the other and a humanoid on two soles follow motions under PD control. Contacts
and their forces are MuJoCo's. Encoders, torques, foot sensors, IMU and pose of the base have noise, the IMU also a
bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.floating import floating_base_parameters
from reproductions._walking_truth import compared, floating_log, model_of, truth_of
from reproductions._walking_world import humanoid_walker, quadruped_walker, world_log

OWN_STUDY = True  # no document prints it
LOGS = 4  # of each machine: about a minute of a processor
DURATION = 8.0  # s of a log
CUTOFFS = {"quadruped": 14.0, "humanoid": 8.0}  # Hz, chosen on seeds below 10
FIRST_SEED = 200  # settings were chosen on others
KINDS = ("wrenches", "base", "projected", "flight")
COVERAGE = (90.0, 98.0)  # percent of 95 % intervals that hold the truth
RATIO = 1.5  # largest error of projected equations over that of all rows with measured forces, where feet are lifted


def run(progress: Callable[[str], None], logs: int = LOGS, duration: float = DURATION) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for walker in (quadruped_walker(), humanoid_walker()):
        inside: dict[str, list[float]] = {kind: [] for kind in KINDS}
        errors: dict[str, list[float]] = {kind: [] for kind in KINDS}
        counts: dict[str, int] = {}
        for seed in range(logs):
            progress(f"{walker.name}, log {seed + 1} of {logs}")
            standing = floating_log(world_log(walker, FIRST_SEED + seed, duration=duration))
            hanging = floating_log(world_log(walker, FIRST_SEED + seed, duration=duration, suspended=True))
            for kind in KINDS:
                one = compared(walker, hanging if kind == "flight" else standing, kind, cutoff=CUTOFFS[walker.name])
                inside[kind].append(100.0 * float(np.mean(one.inside)))
                errors[kind].append(one.prediction_error)
                counts[kind] = len(one.values)
        base = len(floating_base_parameters(model_of(walker), "wrenches"))
        kinds = {kind: {"coverage": float(np.mean(inside[kind])), "identifiable": counts[kind],
                        "prediction_error": float(np.sqrt(np.mean(np.square(errors[kind]))))} for kind in KINDS}
        found[walker.name] = {"logs": logs, "base_parameters": base, "parameters": len(truth_of(walker)),
                              "kinds": kinds, "ratio_of_projected": kinds["projected"]["prediction_error"]
                              / kinds["wrenches"]["prediction_error"]}
    checks = {}
    for name, one in found.items():
        for kind, numbers in one["kinds"].items():
            checks[f"{name}: 95 % intervals of '{kind}' hold the truth in 90 to 98 % of cases"] = bool(
                COVERAGE[0] <= numbers["coverage"] <= COVERAGE[1])
        if name == "quadruped":  # the feet of the humanoid stay on the ground: fewer rows remain without their forces
            checks[f"{name}: the error of 'projected' is at most 1.5 times that of 'wrenches'"] = bool(
                one["ratio_of_projected"] <= RATIO)
    return {"robots": found, "checks": checks}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("robot", "equations", "base parameters", "coverage, %", "error on another motion", "of that of wrenches")]
    for name, one in result["robots"].items():
        first = one["kinds"]["wrenches"]["prediction_error"]
        rows += [(name, kind, str(numbers["identifiable"]), f"{numbers['coverage']:.1f}",
                  f"{numbers['prediction_error']:.3g}", f"{numbers['prediction_error'] / first:.2f}")
                 for kind, numbers in one["kinds"].items()]
    return rows

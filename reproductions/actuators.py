"""Actuators without torques: intervals on simulated servos, and the halves of a real quadruped on a stand."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from dynid import Recording, Robot, read
from dynid.actuators import ActuatorEstimate, ActuatorLog, identify_actuators, pendulum
from dynid.actuators.chains import chains_of
from dynid.actuators.estimate import INTERVAL_SIGMAS
from dynid.actuators.laws import PDLaw
from dynid.actuators.problem import ChainLog, ChainProblem
from reproductions._servos import Servo, motions, simulate

OWN_STUDY = True  # no document prints it
LOGS = int(os.environ.get("DYNID_ACTUATOR_LOGS", "2"))  # of each of the thirty cases
IN_ALL = {"logs": 1}  # the smaller study of `--all`
COVERAGE = (90.0, 98.0)  # percent of 95 % intervals that contain the truth
CHANCE = 0.01  # at which a smaller study refuses what holds
FIRST_SEED = int(os.environ.get("DYNID_ACTUATOR_SEED", "100"))
SECONDS = 10.0  # of a log
MASS, LENGTH, ARMATURE = 0.5, 0.15, 0.01  # pendulum, kg and m, and its servo, kg m^2
RATES, MAX_DELAY = (50.0, 100.0, 200.0), 3  # Hz, and samples: each log has its own, drawn at random
# Gains of each law, and those that are given to the identification.
LAWS: dict[str, tuple[dict[str, float], tuple[str, ...]]] = {
    "pd": ({"kp": 8.0, "kd": 0.15}, ("kp", "kd")),
    "pid": ({"kp": 8.0, "ki": 12.0, "kd": 0.15}, ("kp", "ki", "kd")),
    "cascade": ({"kp": 30.0, "kv": 0.3, "ki": 1.5, "kt": 0.9}, ("kp", "kv", "ki")),
    "voltage": ({"kp": 32.0, "gain": 0.0395, "limit": 0.9625, "vin": 12.0, "kt": 1.0, "resistance": 2.0},
                ("kp", "gain", "limit", "vin", "kt")),
    "current": ({"kt": 0.6}, ())}
_BASE = {"coulomb": 0.05, "viscous": 0.05}
_FADE = {"stribeck": 0.04, "stribeck_speed": 0.3}
_M5 = {**_BASE, **_FADE, "load_motor": 0.15, "load_external": 0.05, "stribeck_load_motor": 0.08,
       "stribeck_load_external": 0.05}
FRICTION = {"m1": _BASE, "m2": {**_BASE, **_FADE}, "m3": {**_BASE, "load_motor": 0.12, "load_external": 0.12},
            "m4": {**_BASE, **_FADE, "load_motor": 0.1, "load_external": 0.1, "stribeck_load_motor": 0.08,
                   "stribeck_load_external": 0.08}, "m5": _M5,
            "m6": {**_M5, "quadratic_motor": 0.05, "quadratic_external": 0.05}}


@dataclass(frozen=True)
class Case:
    """A kind of servo: law, friction model, rate in Hz and delay in samples."""

    law: str
    model: str
    rate: float
    samples: float

    @property
    def truth(self) -> dict[str, float]:
        """Values of all parameters by name."""
        found = {"armature": ARMATURE, "delay": self.samples / self.rate, "offset": 0.0, **FRICTION[self.model],
                 **LAWS[self.law][0]}
        return found | {"load": found.get("load_motor", 0.0), "stribeck_load": found.get("stribeck_load_motor", 0.0)}

    @property
    def servo(self) -> Servo:
        return Servo(MASS, LENGTH, ARMATURE, self.law, LAWS[self.law][0], FRICTION[self.model],
                     delay=0.0 if self.law == "current" else self.samples / self.rate)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Parameters that no such log can show: measured currents act without the delay of commands."""
        return ("delay",) if self.law == "current" else ()


def cases_of(logs: int, seed: int) -> list[Case]:
    """Servos of all laws and friction models, `logs` of each, with rates and delays drawn at random."""
    rng = np.random.default_rng(seed)
    return [Case(law, model, float(rng.choice(RATES)), float(rng.integers(0, MAX_DELAY + 1)))
            for law in LAWS for model in FRICTION for _ in range(logs)]


def logs_of(cases: Sequence[Case], seed: int) -> list[Recording]:
    """One log of each case. Those of one rate are simulated side by side."""
    found: dict[int, Recording] = {}
    for rate in sorted({case.rate for case in cases}):
        numbers = [k for k, case in enumerate(cases) if case.rate == rate]
        rows = int(SECONDS * rate)
        commands = motions(len(numbers), rows, rate, [seed, int(rate)])
        positions = simulate([cases[k].servo for k in numbers], commands, rate)
        for k, q, command in zip(numbers, positions, commands, strict=True):
            is_current = cases[k].law == "current"
            log = Recording.from_commands(np.arange(rows) / rate, q[:, None], (q if is_current else command)[:, None],
                                          joints=("joint",))
            found[k] = replace(log, current=command[:, None]) if is_current else log
    return [found[k] for k in range(len(cases))]


def coverage(pairs: Sequence[tuple[Case, Recording]]) -> dict[str, Any]:
    """How many intervals of identified parameters contain the truth, over logs of one law and friction model."""
    inside, unidentified, wrong = [], 0, 0
    for case, log in pairs:
        gains, given = LAWS[case.law]
        truth = case.truth
        found = identify_actuators(pendulum(MASS, LENGTH), log, law=case.law, friction=case.model, diagnose=False,
                                   gains={name: gains[name] for name in given})
        notes = " ".join(note.text for note in found.notes)
        for one in found.parameters:
            if one.is_given:
                continue
            if one.name in case.hidden:
                wrong += one.identified or one.name not in notes
            elif one.interval is None:
                unidentified += 1
            else:
                inside.append((one.name, (one.value - truth[one.name]) / one.std))
    first = pairs[0][0]
    return {"law": first.law, "friction": first.model, "rates": [case.rate for case, _ in pairs],
            "delays": [case.samples for case, _ in pairs], "logs": len(pairs), "intervals": len(inside),
            "inside": _percent_inside(inside) if inside else None, "unidentified": unidentified, "not_named": wrong,
            "errors": inside}


def simulated_error(robot: Robot, estimate: ActuatorEstimate | None, log: Recording) -> float:
    """Mean absolute joint error, mrad, of a log simulated in closed loop; without an estimate, of the nominal file."""
    nominal = {"armature": "Ia", "viscous": "Fv", "coulomb": "Fc"}
    errors = []
    for chain in chains_of(robot):
        names = tuple(robot.joint_names[j] for j in chain.joints)
        tables = [estimate.values(name) if estimate is not None else
                  {"kp": 20.0, "kd": 1.5,
                   **{name: robot.values[f"{symbol}{j + 1}"] for name, symbol in nominal.items()}}
                  for name, j in zip(names, chain.joints, strict=True)]
        one = ChainLog.of(chain, ActuatorLog(log), PDLaw(), 0.1, None)
        residual = ChainProblem(PDLaw(), names, (one,), tuple(tables), ()).residuals(np.zeros(0))
        assert residual is not None
        errors.append(np.abs(residual))
    return 1e3 * float(np.mean(np.hstack(errors)))


def go2_halves(folder: Path) -> list[dict[str, Any]]:
    """Fit on each half of the Go2 log, judged on the other half: mean absolute joint errors, mrad."""
    robot = Robot.load(folder / "go2_fixed.xml")
    whole = read(folder / "traj_0.csv", robot=robot, torque_free=True)
    halves = whole[:len(whole) // 2], whole[len(whole) // 2:]
    rows = []
    for k in (0, 1):
        found = identify_actuators(robot, halves[k], law="pd", gains={"kp": 20.0, "kd": 1.5}, friction="m1",
                                   diagnose=False)
        rows.append({"fitted": ("first", "second")[k], "own": 1e3 * found.mean_error,
                     "error": simulated_error(robot, found, halves[1 - k]),
                     "nominal": simulated_error(robot, None, halves[1 - k]),
                     "findings": [one.text for one in found.findings]})
    return rows


def _percent_inside(errors: Sequence[tuple[str, float]]) -> float:
    """Percent of errors, by name and in standard errors, inside the 95 % interval."""
    return 100.0 * float(np.mean([abs(z) < INTERVAL_SIGMAS for _, z in errors]))


def coverage_bounds(intervals: int, is_whole: bool) -> tuple[float, float]:
    """Percent of the intervals that must contain the truth. A smaller study is refused only if its share would occur
    by chance in less than one of a hundred such studies at the bar."""
    if is_whole:
        return COVERAGE
    low, high = (100.0 * float(binom.ppf(chance, intervals, bar / 100.0)) / intervals
                 for chance, bar in zip((CHANCE, 1.0 - CHANCE), COVERAGE, strict=True))
    return low, high


def run(progress: Callable[[str], None], logs: int = LOGS) -> dict[str, Any]:
    """Coverage of the intervals on simulated servos, and errors of the halves of the Go2 log where it is there."""
    cases = []
    progress("simulating the servos")
    drawn = cases_of(logs, FIRST_SEED)
    pairs = list(zip(drawn, logs_of(drawn, FIRST_SEED), strict=True))
    for law, model in product(LAWS, FRICTION):
        progress(f"{law} law with friction {model.upper()}")
        cases.append(coverage([pair for pair in pairs if (pair[0].law, pair[0].model) == (law, model)]))
    errors = [error for one in cases for error in one["errors"]]
    inside = _percent_inside(errors)
    by_name = {name: _percent_inside([one for one in errors if one[0] == name])
               for name in sorted({name for name, _ in errors})}
    by_law = {law: _percent_inside([error for one in cases if one["law"] == law for error in one["errors"]])
              for law in LAWS}
    for one in cases:
        del one["errors"]
    low, high = coverage_bounds(len(errors), logs >= LOGS)
    checks = {f"{inside:.1f} % of {len(errors)} intervals contain the truth, {low:.3g} to {high:.3g} wanted":
              bool(low <= inside <= high + 1e-9),
              "parameters that no log can show are named in all logs": not any(one["not_named"] for one in cases)}
    folder = Path(os.environ.get("DYNID_DATA", "../shared/data")) / "go2_hanging"
    halves = []
    if folder.exists():
        progress("Go2 on a stand")
        halves = go2_halves(folder)
        checks["either half of the Go2 log is simulated with at most 6 mrad by the fit of the other"] = all(
            row["error"] <= 6.0 for row in halves)
    return {"checks": checks, "cases": cases, "inside": inside, "inside_by_parameter": by_name, "inside_by_law": by_law,
            "halves": halves}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Rows for people: each case, then each half of the real log."""
    rows: list[tuple[str, ...]] = [("case", "logs", "intervals", "result")]
    for one in result["cases"]:
        share = "no interval" if one["inside"] is None else f"{one['inside']:.0f} % contain the truth"
        rows.append((f"{one['law']}, {one['friction'].upper()}", str(one["logs"]), str(one["intervals"]), share))
    for one in result["halves"]:
        rows.append((f"Go2, fitted on the {one['fitted']} half", "1", "", f"{one['error']:.2f} mrad on the other half, "
                     f"nominal {one['nominal']:.1f} mrad"))
    return rows

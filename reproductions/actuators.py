"""Actuators without torques: intervals on simulated servos, and the halves of a real quadruped on a stand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _servos import Servo, motions, simulate

from dynid import Recording, Robot, read
from dynid.actuators import ActuatorEstimate, ActuatorLog, identify_actuators, pendulum
from dynid.actuators.chains import chains_of
from dynid.actuators.laws import PDLaw
from dynid.actuators.problem import ChainLog, ChainProblem

OWN_STUDY = True  # no document prints it
LOGS = int(os.environ.get("DYNID_ACTUATOR_LOGS", "4"))  # of each case; 60 for the whole study
PD_GAINS = {"kp": 8.0, "kd": 0.15}
SERVO = {"kp": 32.0, "gain": 0.0395, "limit": 0.9625, "vin": 12.0, "kt": 1.0, "resistance": 2.0}
_BASE = {"coulomb": 0.05, "viscous": 0.05}
_FADE = {"stribeck": 0.04, "stribeck_speed": 0.3}
_M5 = {**_BASE, **_FADE, "load_motor": 0.15, "load_external": 0.05, "stribeck_load_motor": 0.08,
       "stribeck_load_external": 0.05}
FRICTION = {"m1": _BASE, "m2": {**_BASE, **_FADE}, "m3": {**_BASE, "load_motor": 0.12, "load_external": 0.12},
            "m4": {**_BASE, **_FADE, "load_motor": 0.1, "load_external": 0.1, "stribeck_load_motor": 0.08,
                   "stribeck_load_external": 0.08}, "m5": _M5,
            "m6": {**_M5, "quadratic_motor": 0.05, "quadratic_external": 0.05}}
# Law, its gains, those that are given, friction, rate in Hz, delay in samples.
CASES = (("pd", PD_GAINS, ("kp", "kd"), "m1", 100.0, 1.0), ("pd", PD_GAINS, ("kd",), "m2", 200.0, 0.0),
         ("pd", PD_GAINS, ("kp", "kd"), "m3", 50.0, 3.0),
         ("voltage", SERVO, ("kp", "gain", "limit", "vin"), "m1", 100.0, 2.0),
         ("voltage", SERVO, ("kp", "gain", "limit", "vin", "kt"), "m4", 100.0, 1.0),
         ("voltage", SERVO, ("kp", "gain", "limit", "vin", "kt"), "m5", 100.0, 1.0),
         ("voltage", SERVO, ("kp", "gain", "limit", "vin", "kt"), "m6", 200.0, 2.0))


def coverage(case: tuple[Any, ...], seed: int, logs: int) -> dict[str, Any]:
    """How many intervals of identified parameters contain the truth, over so many logs of one case."""
    law, gains, given, model, rate, samples = case
    delay, rows = samples / rate, int(10 * rate)
    commands = motions(logs, rows, rate, seed)
    servos = [Servo(0.5, 0.15, 0.01, law, gains, FRICTION[model], delay=delay)] * logs
    positions = simulate(servos, commands, rate)
    truth = {"armature": 0.01, "delay": delay, "offset": 0.0, **FRICTION[model], **gains}
    truth |= {"load": truth.get("load_motor", 0.0), "stribeck_load": truth.get("stribeck_load_motor", 0.0)}
    inside = total = unidentified = 0
    for q, command in zip(positions, commands, strict=True):
        log = Recording.from_commands(np.arange(rows) / rate, q[:, None], command[:, None], joints=("joint",))
        found = identify_actuators(pendulum(0.5, 0.15), log, law=law, gains={name: gains[name] for name in given},
                                   friction=model, diagnose=False)
        for one in found.parameters:
            if one.is_given:
                continue
            if one.interval is None:
                unidentified += 1
                continue
            total += 1
            inside += one.interval[0] <= truth[one.name] <= one.interval[1]
    return {"law": law, "friction": model, "rate": rate, "delay": samples, "logs": logs, "intervals": total,
            "inside": 100.0 * inside / max(total, 1), "unidentified": unidentified}


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


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    """Coverage of the intervals on simulated servos, and errors of the halves of the Go2 log where it is there."""
    cases = []
    for k, case in enumerate(CASES):
        progress(f"{case[0]} law with friction {case[3].upper()}")
        cases.append(coverage(case, 100 + k, LOGS))
    total = sum(one["intervals"] for one in cases)
    inside = sum(one["inside"] * one["intervals"] for one in cases) / max(total, 1)
    # 95 % with the spread that so many intervals have, of which those of one log are related.
    low = 90.0 - 200.0 * float(np.sqrt(0.95 * 0.05 / max(LOGS * len(CASES), 1)))
    checks = {f"at least {low:.0f} % of the intervals contain the truth": bool(inside >= low)}
    folder = Path(os.environ.get("DYNID_DATA", "../shared/data")) / "go2_hanging"
    halves = []
    if folder.exists():
        progress("Go2 on a stand")
        halves = go2_halves(folder)
        checks["either half of the Go2 log is simulated with at most 6 mrad by the fit of the other"] = all(
            row["error"] <= 6.0 for row in halves)
    return {"checks": checks, "cases": cases, "inside": inside, "halves": halves}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Rows for people: each case, then each half of the real log."""
    rows: list[tuple[str, ...]] = [("case", "logs", "intervals", "result")]
    for one in result["cases"]:
        rows.append((f"{one['law']}, {one['friction'].upper()}, {one['rate']:g} Hz, delay of {one['delay']:g} samples",
                     str(one["logs"]), str(one["intervals"]), f"{one['inside']:.0f} % contain the truth"))
    for one in result["halves"]:
        rows.append((f"Go2, fitted on the {one['fitted']} half", "1", "", f"{one['error']:.2f} mrad on the other half, "
                     f"nominal {one['nominal']:.1f} mrad"))
    return rows

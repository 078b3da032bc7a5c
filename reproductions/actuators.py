"""Actuators without torque sensors: coverage of intervals in simulation, and prediction of a real quadruped log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from dynid import Recording, Robot, read
from dynid.actuators import ActuatorEstimate, ActuatorLog, identify_actuators, pendulum
from dynid.actuators.chains import robot_chains
from dynid.actuators.estimate import INTERVAL_SIGMAS
from dynid.actuators.laws import PDLaw
from dynid.actuators.problem import ChainLog, ChainProblem
from dynid.errors import DynidError
from reproductions._mujoco_servos import AXES, Machine
from reproductions._servos import Servo, motions, simulate

OWN_STUDY = True  # no document prints it
LOGS = 2  # of each law and friction model, of legs and of arms
IN_ALL = {"logs": 1}  # the smaller study of `--all`
WHOLE_STUDY = 60  # logs from which on the share of intervals must be within the bar itself
COVERAGE = (90.0, 98.0)  # percent of 95 % intervals that contain the truth
CHANCE = 0.01  # at which a smaller study refuses what holds
FIRST_SEED = 100
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
PARTS = (*LAWS, *AXES, "go2")  # of the study


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


def cases_of(law: str, logs: int, seed: int) -> list[Case]:
    """Servos of one law and all friction models, `logs` of each, with rates and delays drawn at random."""
    rng = np.random.default_rng([seed, list(LAWS).index(law)])
    return [Case(law, model, float(rng.choice(RATES)), float(rng.integers(0, MAX_DELAY + 1)))
            for model in FRICTION for _ in range(logs)]


def logs_of(cases: Sequence[Case], seed: int) -> list[Recording]:
    """One log of each case, all of one law. Those of one rate are simulated side by side."""
    found: dict[int, Recording] = {}
    for rate in sorted({case.rate for case in cases}):
        numbers = [k for k, case in enumerate(cases) if case.rate == rate]
        rows = int(SECONDS * rate)
        commands = motions(len(numbers), rows, rate, [seed, int(rate), list(LAWS).index(cases[0].law)])
        positions = simulate([cases[k].servo for k in numbers], commands, rate)
        for k, q, command in zip(numbers, positions, commands, strict=True):
            is_current = cases[k].law == "current"
            log = Recording.from_commands(np.arange(rows) / rate, q[:, None], (q if is_current else command)[:, None],
                                          joints=("joint",))
            found[k] = replace(log, current=command[:, None]) if is_current else log
    return [found[k] for k in range(len(cases))]


def coverage(pairs: Sequence[tuple[Case, Recording]]) -> dict[str, Any]:
    """Return how many intervals of identified parameters contain the true value, over logs of one law and friction
    model."""
    inside, unidentified, wrong = [], 0, 0
    for case, log in pairs:
        gains, given = LAWS[case.law]
        found = identify_actuators(pendulum(MASS, LENGTH), log, law=case.law, friction=case.model, diagnose=False,
                                   gains={name: gains[name] for name in given})
        notes = " ".join(note.text for note in found.notes)
        wrong += sum(one.identified or one.name not in notes for one in found.parameters if one.name in case.hidden)
        errors, missing = interval_errors(found, {"joint": case.truth}, case.hidden)
        inside += errors
        unidentified += missing
    first = pairs[0][0]
    return {"law": first.law, "friction": first.model, "rates": [case.rate for case, _ in pairs],
            "delays": [case.samples for case, _ in pairs], "logs": len(pairs), "intervals": len(inside),
            "inside": _percent_inside(inside) if inside else None, "unidentified": unidentified, "not_named": wrong,
            "errors": inside}


def interval_errors(found: ActuatorEstimate, truth: Mapping[str, Mapping[str, float]], hidden: Sequence[str] = ()) \
        -> tuple[list[tuple[str, float]], int]:
    """Errors of the parameters with an interval, by name and in standard errors, and the number of those without one.

    Args:
        found: the estimate.
        truth: values by joint and name.
        hidden: names that no log can show, which are left out.
    """
    own = [one for one in found.parameters if not one.is_given and one.name not in hidden]
    # A delay that all joints share has one interval, stated at each of them.
    own = [one for one in own if one.name != "delay" or one.joint == own[0].joint]
    errors = [(one.name, (one.value - truth[one.joint][one.name]) / one.std) for one in own if one.interval is not None]
    return errors, len(own) - len(errors)


def chain_coverage(kind: str, logs: int, seed: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return how many intervals of legs or arms contain the true value, with one log of each machine, simulated by
    MuJoCo."""
    inside, unidentified, machines = [], 0, [Machine.from_kind(kind, seed + k) for k in range(logs)]
    for k, machine in enumerate(machines):
        progress(f"{kind} {k + 1} of {logs}")
        found = identify_actuators(machine.robot(), machine.log(seed + k), gains=machine.gains, friction="m1",
                                   diagnose=False)
        errors, missing = interval_errors(found, machine.truth)
        inside += errors
        unidentified += missing
    return {"law": kind, "friction": "m1", "rates": [one.rate for one in machines],
            "delays": [round(one.delay * one.rate) for one in machines], "logs": logs, "intervals": len(inside),
            "inside": _percent_inside(inside) if inside else None, "unidentified": unidentified, "not_named": 0,
            "errors": inside}


def simulated_error(robot: Robot, estimate: ActuatorEstimate | None, log: Recording) -> float:
    """Mean absolute joint error, mrad, of a log simulated in closed loop; without an estimate, of the nominal file."""
    nominal = {"armature": "Ia", "viscous": "Fv", "coulomb": "Fc"}
    errors = []
    for chain in robot_chains(robot):
        names = tuple(robot.joint_names[j] for j in chain.joints)
        tables = [estimate.values(name) if estimate is not None else
                  {"kp": 20.0, "kd": 1.5,
                   **{name: robot.values[f"{symbol}{j + 1}"] for name, symbol in nominal.items()}}
                  for name, j in zip(names, chain.joints, strict=True)]
        one = ChainLog.from_log(chain, ActuatorLog(log), PDLaw(), 0.1, None)
        residual = ChainProblem(PDLaw(), names, (one,), tuple(tables), ()).residuals(np.zeros(0))
        assert residual is not None
        errors.append(np.abs(residual))
    return 1e3 * float(np.mean(np.hstack(errors)))


def go2_halves(folder: Path) -> list[dict[str, Any]]:
    """Return the mean absolute joint errors, mrad, of fits on each half of the Go2 log, tested on the other half."""
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
    """Return the percentage of the intervals that must contain the true value. A reduced study fails only if its share
    would occur with a probability below 1 % at the required coverage."""
    if is_whole:
        return COVERAGE
    low, high = (100.0 * float(binom.ppf(chance, intervals, bar / 100.0)) / intervals
                 for chance, bar in zip((CHANCE, 1.0 - CHANCE), COVERAGE, strict=True))
    return low, high


def covered(what: str, rows: Sequence[dict[str, Any]]) -> dict[str, bool]:
    """Return the check that the intervals of some rows have the required coverage."""
    errors = [error for one in rows for error in one["errors"]]
    inside, logs = _percent_inside(errors), sum(one["logs"] for one in rows)
    low, high = coverage_bounds(len(errors), logs >= WHOLE_STUDY)
    return {f"{what}: {inside:.1f} % of {len(errors)} intervals of {logs} logs contain the truth, {low:.3g} to "
            f"{high:.3g} wanted": bool(low <= inside <= high + 1e-9)}


def run(progress: Callable[[str], None], logs: int = LOGS, seed: int = FIRST_SEED,
        only: Sequence[str] = PARTS) -> dict[str, Any]:
    """Coverage of the intervals on simulated machines, and errors of the halves of the Go2 log if it exists.

    Args:
        progress: is called with what is being done.
        logs: number of logs of each law and friction model, of legs and of arms.
        seed: of the first log.
        only: parts of the study: drive laws, "leg", "arm", "go2".
    """
    unknown = [name for name in only if name not in PARTS]
    if unknown:
        raise DynidError(f"the study has no part '{unknown[0]}'; it has {', '.join(PARTS)}")
    rows: list[dict[str, Any]] = []
    for law in (name for name in LAWS if name in only):
        progress(f"simulating servos with {law} law")
        drawn = cases_of(law, logs, seed)
        pairs = list(zip(drawn, logs_of(drawn, seed), strict=True))
        for model in FRICTION:
            progress(f"{law} law with friction {model.upper()}")
            rows.append(coverage([pair for pair in pairs if pair[0].model == model]))
    servos = list(rows)
    for kind in (name for name in AXES if name in only):
        rows.append(chain_coverage(kind, logs, seed, progress))
    checks = dict[str, bool]()
    groups = {"all servos": servos} if len({one["law"] for one in servos}) > 1 else {}
    for name, group in (groups | {name: [one for one in rows if one["law"] == name] for name in PARTS}).items():
        if any(one["errors"] for one in group):
            checks |= covered(name, group)
    if servos:
        checks["parameters that no log can show are named in all logs"] = not any(one["not_named"] for one in servos)
    errors = [error for one in rows for error in one["errors"]]
    by_name = {name: _percent_inside([one for one in errors if one[0] == name])
               for name in sorted({name for name, _ in errors})}
    by_law = {law: _percent_inside(own) for law in PARTS
              if (own := [error for one in rows if one["law"] == law for error in one["errors"]])}
    for one in rows:
        del one["errors"]
    folder = Path(os.environ.get("DYNID_DATA", "../shared/data")) / "go2_hanging"
    halves = []
    if "go2" in only and folder.exists():
        progress("Go2 on a stand")
        halves = go2_halves(folder)
        checks["either half of the Go2 log is simulated with at most 6 mrad by the fit of the other"] = all(
            row["error"] <= 6.0 for row in halves)
    return {"checks": checks, "seed": seed, "cases": rows, "inside": _percent_inside(errors) if errors else None,
            "inside_by_parameter": by_name, "inside_by_law": by_law, "halves": halves}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table: each case, then each half of the real log."""
    rows: list[tuple[str, ...]] = [("case", "logs", "intervals", "result")]
    for one in result["cases"]:
        share = "no interval" if one["inside"] is None else f"{one['inside']:.0f} % contain the truth"
        rows.append((f"{one['law']}, {one['friction'].upper()}", str(one["logs"]), str(one["intervals"]), share))
    for one in result["halves"]:
        rows.append((f"Go2, fitted on the {one['fitted']} half", "1", "", f"{one['error']:.2f} mrad on the other half, "
                     f"nominal {one['nominal']:.1f} mrad"))
    return rows

"""Actuators from positions and commands: dynid, CMA-ES on rollouts and mujoco.sysid, compared on unseen logs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._actuator_rivals import PACE_POPULATION, CmaFit, fit_by_cma, fit_by_mujoco
from dynid import Recording, Robot, read
from dynid.actuators import ActuatorLog, identify_actuators, pendulum
from dynid.actuators.chains import robot_chains
from dynid.actuators.input_checks import GAP_INTERVALS
from dynid.actuators.laws import drive_law
from dynid.actuators.parameters import FRICTION_MODELS
from dynid.actuators.problem import ChainLog, ChainProblem
from dynid.arrays import Array
from reproductions._servos import Servo, motions, simulate

ROLLOUTS = int(os.environ.get("DYNID_CMA_ROLLOUTS", "10000"))  # of CMA-ES; BAM's users take 10,000, its default is more
LEG_ROLLOUTS = int(os.environ.get("DYNID_CMA_LEG_ROLLOUTS", "2000"))  # of each leg of the quadruped; time is linear
PACE_GENERATIONS = int(os.environ.get("DYNID_PACE_GENERATIONS", "12"))  # at most, of 4096 rollouts each
JUDGE_STEP = 5e-4  # s, of the simulation of logs left out
MASS, LENGTH, RATE, ROWS = 0.5, 0.15, 100.0, 600  # pendulum, kg and m; logs of 6 s as BAM records them
FRICTION = {"m1": {"coulomb": 0.05, "viscous": 0.05},
            "m4": {"coulomb": 0.05, "viscous": 0.05, "stribeck": 0.04, "stribeck_speed": 0.3, "load_motor": 0.1,
                   "load_external": 0.1, "stribeck_load_motor": 0.08, "stribeck_load_external": 0.08}}
PD = {"kp": 8.0, "kd": 0.15}
VOLTAGE = {"kp": 32.0, "gain": 0.0395, "limit": 0.9625, "vin": 12.0, "kt": 1.0, "resistance": 2.0}


def problem_of(robot: Robot, chain: int, log: Recording, law: str, known: dict[str, float], model: str,
               estimated: tuple[str, ...] = (), delay: bool = True) -> ChainProblem:
    """One chain of a robot with the unknowns that dynid estimates too."""
    own, drive = robot_chains(robot)[chain], drive_law(law)
    gap = GAP_INTERVALS * float(np.median(np.diff(log.t)))
    names = tuple(robot.joint_names[j] for j in own.joints)
    fixed = known if delay else {**known, "delay": 0.0}
    problem = ChainProblem(drive, names, (ChainLog.from_log(own, ActuatorLog(log), drive, gap, None),),
                           tuple(fixed for _ in names), ())
    return problem.estimating(("armature", *FRICTION_MODELS[model], "offset", *estimated),
                              shared=("delay",) if delay else ())


def judged(problems: list[ChainProblem], values: list[list[dict[str, float]]]) -> float:
    """Mean absolute error, mrad, of logs left out, simulated in closed loop with the values of each chain's joints."""
    errors = []
    for problem, own in zip(problems, values, strict=True):
        plain = ChainProblem(problem.law, problem.names, problem.logs,
                             tuple({**known, **one} for known, one in zip(problem.known, own, strict=True)), (),
                             JUDGE_STEP)
        residual = plain.residuals(np.zeros(0))
        errors.append(np.full(1, np.inf) if residual is None else np.abs(residual).ravel())
    return 1e3 * float(np.mean(np.concatenate(errors)))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time, s, and result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def compared(robot: Robot, fitted: Recording, left_out: Recording, law: str, known: dict[str, float], model: str,
             estimated: tuple[str, ...] = (), delay: bool = True, rollouts: int = ROLLOUTS) -> dict[str, Any]:
    """CPU times and errors on a log left out, of dynid and of CMA-ES with the same unknowns."""
    chains = range(len(robot_chains(robot)))
    problems = [problem_of(robot, k, fitted, law, known, model, estimated, delay) for k in chains]
    judges = [problem_of(robot, k, left_out, law, known, model, estimated, delay) for k in chains]

    def own() -> Any:
        return identify_actuators(robot, fitted, law=law, gains=known, friction=model, diagnose=False,
                                  delay=None if delay else 0.0)

    own()  # loads the compiled code
    cpu, found = timed(own)
    linear = [[{**{one.name: (one.value if np.isnan(one.linear) else one.linear) for one in found.parameters
                   if one.joint == name}} for name in problem.names] for problem in problems]
    own_values = [[found.values(name) for name in problem.names] for problem in problems]
    targets = [judged([judge], [values]) for judge, values in zip(judges, own_values, strict=True)]
    searches = [fit_by_cma(problem, rollouts, partial(_held_out, judge), target)
                for problem, judge, target in zip(problems, judges, targets, strict=True)]
    best = [problem.values(one.x) for problem, one in zip(problems, searches, strict=True)]
    spent, made = sum(one.cpu for one in searches), sum(one.rollouts for one in searches)
    budget = spent / made * ROLLOUTS * len(problems)
    return {"dynid_cpu_s": cpu, "dynid_mrad": judged(judges, own_values),
            "linear_mrad": judged(judges, linear) if model == "m1" else None,
            "cma_cpu_s": spent, "cma_rollouts": made, "cma_mrad": judged(judges, best),
            "cma_budget_rollouts": ROLLOUTS * len(problems), "cma_budget_cpu_s": budget,
            "cma_budget_is_measured": made >= ROLLOUTS * len(problems), "budget_cpu_ratio": budget / cpu,
            **_until_as_good(searches, cpu)}


def _held_out(judge: ChainProblem, x: Array) -> float:
    """Error of values (unknowns,) on the logs left out, mrad."""
    return judged([judge], [judge.values(x)])


def _until_as_good(searches: Sequence[CmaFit], cpu: float) -> dict[str, Any]:
    """CPU time until CMA-ES was as good as dynid on every chain; chains that never were have all of theirs.

    cpu: CPU time of dynid, s.
    """
    spent = sum(one.cpu if one.as_good_cpu is None else one.as_good_cpu for one in searches)
    made = sum(one.rollouts if one.as_good_rollouts is None else one.as_good_rollouts for one in searches)
    return {"as_good_is_reached": all(one.as_good_cpu is not None for one in searches), "as_good_rollouts": made,
            "as_good_cpu_s": spent, "as_good_cpu_ratio": spent / cpu}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    """Return two simulated servos with a pendulum, and the first half of the Go2 log if it exists."""
    result: dict[str, Any] = {}
    robot = pendulum(MASS, LENGTH)
    commands = motions(2, ROWS, RATE, 77)
    for name, law, known, model, estimated, gains, delay in (
            ("pendulum_pd", "pd", PD, "m1", (), PD, 0.0),
            ("bus_servo", "voltage", {key: value for key, value in VOLTAGE.items() if key != "resistance"}, "m4",
             ("resistance",), VOLTAGE, 1.0)):
        progress(f"{name}: CMA-ES with {ROLLOUTS} rollouts")
        servo = Servo(MASS, LENGTH, 0.01, law, gains, FRICTION[model], delay=delay / RATE)
        logs = [Recording.from_commands(np.arange(ROWS) / RATE, q[:, None], command[:, None], joints=("joint",))
                for q, command in zip(simulate([servo] * 2, commands, RATE), commands, strict=True)]
        result[name] = compared(robot, logs[0], logs[1], law, dict(known), model, estimated, delay > 0)
        if name == "pendulum_pd":
            progress(f"{name}: CMA-ES with populations of {PACE_POPULATION}")
            own, judge = (problem_of(robot, 0, log, law, dict(known), model, estimated, False) for log in logs)
            large = fit_by_cma(own, PACE_POPULATION * PACE_GENERATIONS, partial(_held_out, judge),
                               result[name]["dynid_mrad"], population=PACE_POPULATION)
            result["pace_population"] = {"rollouts": large.rollouts, "cpu_s": large.cpu,
                                         "mrad": _held_out(judge, large.x),
                                         **_until_as_good([large], result[name]["dynid_cpu_s"])}
            progress("mujoco.sysid")
            cpu, found = timed(lambda logs=logs: fit_by_mujoco(logs[0], MASS, LENGTH, PD))
            result["mujoco_sysid"] = None if found is None else {
                "cpu_s": cpu, "mrad": judged([problem_of(robot, 0, logs[1], "pd", PD, "m1", (), False)], [[found]]),
                "cpu_ratio": cpu / result[name]["dynid_cpu_s"]}
    folder = Path(os.environ.get("DYNID_DATA", "../shared/data")) / "go2_hanging"
    if folder.exists():
        progress(f"Go2 on a stand: CMA-ES with {LEG_ROLLOUTS} rollouts a leg")
        go2 = Robot.load(folder / "go2_fixed.xml")
        whole = read(folder / "traj_0.csv", robot=go2, torque_free=True)
        middle = len(whole) // 2
        result["go2"] = compared(go2, whole[:middle], whole[middle:], "pd", {"kp": 20.0, "kd": 1.5}, "m1",
                                 rollouts=LEG_ROLLOUTS)
    rows = [value for value in result.values() if isinstance(value, dict) and "cma_mrad" in value]
    result["smallest_budget_cpu_ratio"] = min(one["budget_cpu_ratio"] for one in rows)
    result["smallest_as_good_cpu_ratio"] = min(one["as_good_cpu_ratio"] for one in rows)
    result["largest_error_ratio"] = max(one["dynid_mrad"] / one["cma_mrad"] for one in rows)
    return result


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Rows for people."""
    rows: list[tuple[str, ...]] = [("log", "method", "CPU s", "error on the log left out, mrad", "CPU ratio")]
    for name, one in result.items():
        if not isinstance(one, dict):
            continue
        if name == "mujoco_sysid":
            rows.append(("pendulum_pd", "mujoco.sysid", f"{one['cpu_s']:.2f}", f"{one['mrad']:.3f}",
                         f"{one['cpu_ratio']:.1f}"))
            continue
        if name == "pace_population":
            rows.append(("pendulum_pd", f"CMA-ES, populations of {PACE_POPULATION}, {_reached(one)}",
                         f"{one['cpu_s']:.1f}", f"{one['mrad']:.3f}", f"{one['as_good_cpu_ratio']:.1f}"))
            continue
        rows.append((name, "dynid", f"{one['dynid_cpu_s']:.2f}", f"{one['dynid_mrad']:.3f}", "1"))
        rows.append((name, f"CMA-ES, {one['cma_rollouts']} rollouts", f"{one['cma_cpu_s']:.1f}",
                     f"{one['cma_mrad']:.3f}", f"{one['cma_cpu_s'] / one['dynid_cpu_s']:.1f}"))
        if not one["cma_budget_is_measured"]:
            rows.append((name, f"CMA-ES, {one['cma_budget_rollouts']} rollouts at the same time each",
                         f"{one['cma_budget_cpu_s']:.1f}", "", f"{one['budget_cpu_ratio']:.1f}"))
        rows.append((name, f"CMA-ES, {_reached(one)}", f"{one['as_good_cpu_s']:.1f}", "",
                     f"{one['as_good_cpu_ratio']:.1f}"))
        if one["linear_mrad"] is not None:
            rows.append((name, "first stage of dynid alone", "", f"{one['linear_mrad']:.3f}", ""))
    return rows


def _reached(one: dict[str, Any]) -> str:
    """Whether and when a search was as good as dynid."""
    return f"{'as good as' if one['as_good_is_reached'] else 'not yet as good as'} dynid after " \
           f"{one['as_good_rollouts']} rollouts"

"""Identify the actuators of a robot from measured and commanded positions, without torques."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.actuators.chains import FINAL_STEPS, Chain, chains_of
from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue, FrictionTrial, SimulatedLog
from dynid.actuators.friction_choice import choose_friction
from dynid.actuators.identifiability import identifiability
from dynid.actuators.input_checks import GAP_INTERVALS, check_log
from dynid.actuators.laws import DriveLaw, drive_law
from dynid.actuators.linear_stage import LinearFit, filtered_logs, linear_fit
from dynid.actuators.parameters import FRICTION_MODELS, MECHANICS, ActuatorParameter
from dynid.actuators.posterior import posterior_of
from dynid.actuators.problem import ActuatorLog, ChainLog, ChainProblem
from dynid.actuators.refinement import Refinement, refine
from dynid.actuators.suspicions import given_values, saturation, unequal_joints
from dynid.arrays import Array, Bools
from dynid.errors import ModelError
from dynid.findings import Finding, Note
from dynid.recording import Recording
from dynid.robot import Robot

Gain = float | Sequence[float] | Mapping[str, float]
_DELAYS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # sampling intervals: delays from which the second stage may start
_OPEN_LOOP_RESTART = 0.5  # s after which a simulation without a position loop starts anew from the measured state
_MAX_STEP_ERROR = 0.03  # of the residuals: error of the simulated positions by the step
ALSO = ("bias", "backlash", "torque_limit", "current_limit", "link_scale", "stribeck_shape")


@dataclass(frozen=True, eq=False)
class _Stage:
    """A chain, the values of its first stage by joint, and the delay with which these simulate best."""

    problem: ChainProblem
    linear: list[LinearFit]
    values: list[dict[str, float]]


def identify_actuators(robot: Robot, logs: Recording | ActuatorLog | Sequence[Recording | ActuatorLog], *,
                       law: str | DriveLaw = "pd", gains: Mapping[str, Gain] | None = None, friction: str = "auto",
                       delay: float | None = None, also: Sequence[str] = (), diagnose: bool = True,
                       tell: Callable[[str], None] = lambda sentence: None) -> ActuatorEstimate:
    """Identify armature, friction, delay and drive parameters of every joint from positions and commands.

    Args:
        robot: robot with known links, fixed at its base; or a `dynid.actuators.pendulum`.
        logs: logs with measured positions `q` and commanded positions `reference`; `ActuatorLog` for gains or a robot
            that hold for one log only.
        law: drive law: "pd", "pid", "cascade", "voltage", "current", or an object with the methods of `DriveLaw`.
        gains: known values of its parameters: one number, one per joint, or a table by joint name. Parameters of the
            law that are not given are estimated.
        friction: "m1" to "m6", or "auto" for the simplest model that none predicts significantly better than.
        delay: delay of the commands, s. Default: estimated, one for each chain of joints.
        also: further parameters to estimate: "bias", "backlash", "torque_limit", "current_limit", "link_scale".
        diagnose: whether to test the given gains, masses and limits against the data.
        tell: is called with a sentence on what is being done.

    Returns:
        The estimate, with intervals for the parameters that the data determine, and statements on the others.
    """
    chosen_law, entries = drive_law(law), _entries(logs)
    if friction not in ("auto", *FRICTION_MODELS):
        raise ModelError(f"there is no friction model '{friction}'; there are auto, {', '.join(FRICTION_MODELS)}",
                         code="unknown-friction")
    wrong = [name for name in also if name not in ALSO]
    if wrong:
        raise ModelError(f"'{wrong[0]}' cannot be estimated in addition; possible are {', '.join(ALSO)}",
                         code="unknown-parameter")
    remarks = [remark for log in entries for remark in check_log(log.recording, log.robot or robot, chosen_law)]
    known = known_values(robot, chosen_law, gains or {}, entries)
    for name in also:
        for table in known:
            table.pop(name, None)
    restart = _OPEN_LOOP_RESTART if chosen_law.name == "current" else None
    tell("first stage: least squares")
    stages = [_first_stage(robot, k, entries, chosen_law, known, also, delay, restart) for k in
              range(len(chains_of(robot)))]
    comparison: tuple[FrictionTrial, ...] = ()
    plain: list[Refinement] | None = None

    def make(model: str, _: Any = None) -> tuple[list[ChainProblem], list[Array]]:
        problems = [_with_friction(stage.problem, model, also, delay) for stage in stages]
        starts = [problem.start(_friction_start(stage, problem, model, None if plain is None else plain[k]))
                  for k, (stage, problem) in enumerate(zip(stages, problems, strict=True))]
        return problems, starts

    if friction == "auto":
        problems, starts = make("m1")
        tell("second stage: closed-loop simulation")
        plain = [refine(problem, start) for problem, start in zip(problems, starts, strict=True)]
        friction, comparison = choose_friction(make, restart, tell)
    problems, starts = make(friction)
    tell("second stage: closed-loop simulation")
    coarse = plain if friction == "m1" and plain is not None else \
        [refine(problem, start, finish=False) for problem, start in zip(problems, starts, strict=True)]
    problems = [_fine_enough(problem, fit) for problem, fit in zip(problems, coarse, strict=True)]
    fits = [refine(problem, fit.x) for problem, fit in zip(problems, coarse, strict=True)]
    return _estimate(robot, entries, chosen_law, friction, stages, problems, fits, comparison, remarks, diagnose, tell)


def _fine_enough(problem: ChainProblem, fit: Refinement) -> ChainProblem:
    """The problem with the longest step whose error is small against the residuals of a fit."""
    finest = replace(problem, step=FINAL_STEPS[-1] / 2).residuals(fit.x)
    if finest is None:
        return problem
    for step in FINAL_STEPS:
        own = replace(problem, step=step).residuals(fit.x)
        if own is not None and np.sqrt(np.mean((own - finest) ** 2)) < _MAX_STEP_ERROR * np.sqrt(np.mean(finest ** 2)):
            return replace(problem, step=step)
    return replace(problem, step=FINAL_STEPS[-1])


def _entries(logs: Recording | ActuatorLog | Sequence[Recording | ActuatorLog]) -> list[ActuatorLog]:
    given = [logs] if isinstance(logs, Recording | ActuatorLog) else list(logs)
    if not given:
        raise ModelError("no log is given", "give at least one log with positions and commands", "no-log")
    return [one if isinstance(one, ActuatorLog) else ActuatorLog(one) for one in given]


def known_values(robot: Robot, law: DriveLaw, gains: Mapping[str, Gain], logs: Sequence[ActuatorLog]) \
        -> list[dict[str, float]]:
    """Given values of the drive law, one table a joint."""
    names = {item.name: item for item in law.parameters}
    for name in (*gains, *(name for log in logs for name in log.gains)):
        if name not in names:
            raise ModelError(f"drive law '{law.name}' has no parameter '{name}'; it has {', '.join(names)}",
                             code="unknown-gain")
    tables: list[dict[str, float]] = [{} for _ in robot.joints]
    for name, value in gains.items():
        if isinstance(value, Mapping):
            each = [value.get(joint) for joint in robot.joint_names]
        else:
            numbers = np.atleast_1d(np.asarray(value, dtype=float))
            if numbers.size not in (1, robot.dof):
                raise ModelError(f"gain {name} has {numbers.size} values for {robot.dof} joints", code="wrong-gain")
            each = np.broadcast_to(numbers.ravel(), (robot.dof,)).tolist()
        for table, one in zip(tables, each, strict=True):
            if one is None:
                continue
            if (not np.isfinite(one) and not (one == np.inf and name.endswith("limit"))) or one < 0:
                raise ModelError(f"gain {name} must be a number that is not negative, got {one}", code="wrong-gain")
            table[name] = float(one)
    needed = [item.name for item in law.parameters if item.name == "kp" and item.name not in law.estimated]
    for name in needed:
        if any(name not in table and any(name not in log.gains for log in logs) for table in tables):
            raise ModelError(f"drive law '{law.name}' needs {name}", f"add --gain {name}=...", "missing-gain")
    if law.name == "voltage" and any(log.recording.voltage is None and "vin" not in {**tables[0], **log.gains}
                                     for log in logs):
        raise ModelError("drive law 'voltage' needs the supply voltage", "add --gain vin=..., or map the logged "
                         "voltage with --set log.supply_voltage=...", "missing-gain")
    return tables


def _first_stage(robot: Robot, k: int, entries: Sequence[ActuatorLog], law: DriveLaw,
                 known: Sequence[Mapping[str, float]], also: Sequence[str], delay: float | None,
                 restart: float | None) -> _Stage:
    """The problem of chain k with its first stage, at the delay with which it simulates best."""
    logs = []
    chain = chains_of(robot)[k]
    for entry in entries:
        own: Chain = chains_of(entry.robot)[k] if entry.robot is not None else chain
        gap = GAP_INTERVALS * float(np.median(np.diff(entry.recording.t)))
        gains = dict(entry.gains)
        if law.name == "voltage" and entry.recording.voltage is not None:
            gains["vin"] = float("nan")  # the logged voltage takes its place
        logs.append(ChainLog.of(own, ActuatorLog(entry.recording, gains), law, gap, restart))
    names = tuple(robot.joint_names[j] for j in chain.joints)
    fixed = {} if delay is None else {"delay": delay}
    tables = tuple({**known[j], **fixed} for j in chain.joints)
    problem = ChainProblem(law, names, tuple(logs), tables, ())
    problem = _with_friction(problem, "m1", also, delay)
    filtered = filtered_logs(problem)
    interval = float(np.median(np.diff(logs[0].signals.t)))
    best: tuple[float, list[LinearFit], list[dict[str, float]]] | None = None
    for late in [delay] if delay is not None else [share * interval for share in _DELAYS]:
        found = linear_fit(problem, filtered, late)
        values = [{**fit.values, "delay": late} for fit in found]
        residual = problem.residuals(problem.start(values))
        cost = np.inf if residual is None else float(np.mean(residual ** 2))
        if best is None or cost < best[0]:
            best = cost, found, values
    assert best is not None
    return _Stage(problem, best[1], best[2])


def _with_friction(problem: ChainProblem, model: str, also: Sequence[str], delay: float | None) -> ChainProblem:
    """The problem with the unknowns of a friction model."""
    drive = [name for name in problem.law.estimated if any(name not in table for table in problem.known)
             and not all(name in log.gains for log in problem.logs)]
    own = {item.name for item in problem.law.parameters}
    more = [name for name in also if name in MECHANICS or name in own]
    return problem.estimating(("armature", *FRICTION_MODELS[model], "offset", *drive, *more),
                              shared=() if delay is not None else ("delay",))


def _friction_start(stage: _Stage, problem: ChainProblem, model: str, plain: Refinement | None) \
        -> list[dict[str, float]]:
    """Values to start a friction model from: the fit of M1 where there is one, with friction shared out."""
    values = stage.problem.values(plain.x) if plain is not None else [dict(one) for one in stage.values]
    for own in values:
        dry = own.get("coulomb", 0.0)
        if "stribeck" in FRICTION_MODELS[model]:
            own |= {"stribeck": 0.3 * dry, "coulomb": 0.85 * dry, "stribeck_speed": MECHANICS["stribeck_speed"].value}
        for name in FRICTION_MODELS[model]:
            if name.startswith(("load", "stribeck_load", "quadratic")):
                own[name] = 0.05
        for limit in ("torque_limit", "current_limit"):
            if any(one.name == limit for one in problem.unknowns):
                own[limit] = _largest_demand(problem, own)
    return values


def _largest_demand(problem: ChainProblem, own: Mapping[str, float]) -> float:
    """Largest output of the law over the logs, from its stiffness: a limit to start from."""
    error = max(float(np.max(np.abs(log.signals.command - log.signals.q))) for log in problem.logs)
    kp = own.get("kp", 1.0) * own.get("kv", 1.0)
    return 0.8 * kp * error


def _estimate(robot: Robot, entries: Sequence[ActuatorLog], law: DriveLaw, friction: str, stages: Sequence[_Stage],
              problems: Sequence[ChainProblem], fits: Sequence[Refinement], comparison: tuple[FrictionTrial, ...],
              remarks: Sequence[str], diagnose: bool, tell: Callable[[str], None]) -> ActuatorEstimate:
    parameters: list[ActuatorValue] = []
    notes = [Note("log", remark) for remark in remarks]
    findings: list[Finding] = []
    determined: list[Bools] = []
    simulated = [np.zeros_like(entry.recording.q) for entry in entries]
    first, count = 0.0, 0
    for stage, problem, fit in zip(stages, problems, fits, strict=True):
        seen = identifiability(problem, fit)
        determined.append(seen.identified)
        notes += seen.notes
        parameters += _values(problem, fit, seen.identified, stage)
        for k, log in enumerate(problem.logs):
            rows = slice(sum(len(one.signals.t) for one in problem.logs[:k]), None)
            simulated[k][:, log.chain.joints] = log.signals.q - fit.residual[rows][:len(log.signals.t)]
        start = stage.problem.residuals(stage.problem.start(stage.values))
        if start is not None:
            first, count = first + float(np.sum(np.abs(start))), count + start.size
        if diagnose:
            tell("testing the given values")
            limits = saturation(problem, fit)
            findings += limits or given_values(problem, fit)
    findings += unequal_joints(parameters)
    notes.append(_scale_note(law, problems[0]))
    order = {joint: j for j, joint in enumerate(robot.joint_names)}
    parameters.sort(key=lambda one: order[one.joint])
    logs = tuple(SimulatedLog(entry.recording.source, entry.recording.t, entry.recording.q, positions,
                              entry.recording.q if entry.recording.reference is None else entry.recording.reference)
                 for entry, positions in zip(entries, simulated, strict=True))
    return ActuatorEstimate(robot.name, robot.joint_names, law.name, friction, tuple(parameters), tuple(notes),
                            tuple(findings), comparison, logs, first / max(count, 1),
                            max(fit.iterations for fit in fits), max(fit.gradient_error for fit in fits),
                            posterior_of(robot, entries, problems, fits, determined, simulated))


def _values(problem: ChainProblem, fit: Refinement, identified: Bools, stage: _Stage) -> list[ActuatorValue]:
    items: dict[str, ActuatorParameter] = {**MECHANICS, **{item.name: item for item in problem.law.parameters}}
    found = []
    for j, joint in enumerate(problem.names):
        for k, one in enumerate(problem.unknowns):
            if one.joint in (-1, j):
                linear = stage.linear[j].values.get(one.name, float("nan"))
                found.append(ActuatorValue(joint, one.name, one.item.unit, float(fit.x[k]),
                                           float(fit.std[k]) if identified[k] else float("nan"), bool(identified[k]),
                                           linear=linear))
        for name, value in problem.known[j].items():
            found.append(ActuatorValue(joint, name, items[name].unit, value, float("nan"), False, True))
    return found


def _scale_note(law: DriveLaw, problem: ChainProblem) -> Note:
    """What sets the scale of all torques, inertias and friction."""
    unknown = {one.name for one in problem.unknowns}
    if unknown & set(law.estimated):
        text = ("No torque was measured: the known masses of the links set the scale of all torques, armatures and "
                "friction. If the masses are wrong by a factor, these are wrong by the same factor.")
    else:
        text = ("No torque was measured: the given gains and the known masses of the links set the scale of all "
                "torques, armatures and friction.")
    return Note("scale", text)

"""Identify the actuators of a robot from measured and commanded positions, without torques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from dynid.actuators.chains import LARGEST_STEP, SIMULATION_STEPS, robot_chains
from dynid.actuators.columns import KP
from dynid.actuators.drive_limits import error_shares
from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue, FrictionTrial, SimulatedLog
from dynid.actuators.friction_choice import JointValues, choose_friction
from dynid.actuators.input_checks import MIN_MOTION, log_entries, still_joints, usable_logs
from dynid.actuators.laws import DriveLaw, drive_law
from dynid.actuators.linear_stage import Stage, chain_problem, first_stage, quick_enough, step_errors, with_friction
from dynid.actuators.parameter_combinations import identifiability
from dynid.actuators.parameters import FRICTION_MODELS, OPTIONAL_PARAMETERS
from dynid.actuators.posterior import actuator_posterior
from dynid.actuators.problem import ActuatorLog, ChainProblem
from dynid.actuators.refinement import Refinement, refine
from dynid.actuators.result_checks import causes, unequal_joints, worse_than_command
from dynid.arrays import Array, Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.findings import Finding, Note
from dynid.progress import ProgressCallback, prefixed, silent
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.threads import one_blas_thread

Gain = float | Sequence[float] | Mapping[str, float]
# s after which a simulation without a position loop restarts, because its errors grow with time. The longest time that
# simulates the motion well is used: each restart adds an initial state to estimate, and many make intervals wrong.
_OPEN_LOOP_RESTARTS = (5.0, 2.0, 1.0, 0.5)
_MAX_OPEN_LOOP_ERROR = 0.3  # RMS error relative to the RMS motion, beyond which a search may end in another minimum
# Largest change of an estimate by the integration step, in standard errors: a 95 % interval then still contains the
# true value in 94.5 % of all cases.
_MAX_STEP_SIGMAS = 0.2
_STRIBECK_SPEEDS = (0.2, 0.05, 0.8)  # rad/s, initial values of the Stribeck speed
_LOAD_SHARES = (0.05, 0.2)  # initial values of friction relative to the load: efficient and inefficient gears
_SEARCHED_STARTS = 3  # initial values with the lowest cost, each refined by a short search
_START_ITERATIONS = 2  # iterations of the short search: the first corrects errors that all initial values share


@one_blas_thread()
def identify_actuators(robot: Robot, logs: Recording | ActuatorLog | Sequence[Recording | ActuatorLog], *,
                       law: str | DriveLaw = "pd", gains: Mapping[str, Gain] | None = None, friction: str = "auto",
                       delay: float | None = None, also: Sequence[str] = (), diagnose: bool = True,
                       progress: ProgressCallback = silent) -> ActuatorEstimate:
    """Identify armature, friction, delay and drive parameters of every joint from positions and commands.

    Args:
        robot: robot with known links, fixed at its base; or a `dynid.actuators.pendulum`.
        logs: logs with measured positions `q` and commanded positions `reference`; an `ActuatorLog` has its own gains
            or robot.
        law: drive law: "pd", "pid", "cascade", "voltage", "current", or an object with the methods of `DriveLaw`.
        gains: known parameters of the drive law: one number, one per joint, or a table by joint name. The other
            parameters are estimated.
        friction: "m1" to "m6", or "auto" for the simplest model that is not significantly worse than any other.
        delay: delay of the commands, s. Default: estimated, one delay for each chain of joints.
        also: further parameters to estimate: "bias", "backlash", "torque_limit", "current_limit", "speed_limit",
            "link_scale".
        diagnose: whether to test the given gains, masses and limits against the data.
        progress: receives progress messages.

    Returns:
        The estimate, with confidence intervals of the parameters that the data determine, and notes on the others.
    """
    chosen_law, entries = drive_law(law), log_entries(logs)
    if friction not in ("auto", *FRICTION_MODELS):
        raise ModelError(f"there is no friction model '{friction}'; there are auto, {', '.join(FRICTION_MODELS)}",
                         code="unknown-friction")
    wrong = [name for name in also if name not in OPTIONAL_PARAMETERS]
    if wrong:
        raise ModelError(f"'{wrong[0]}' is not an optional actuator parameter; optional parameters are "
                         f"{', '.join(OPTIONAL_PARAMETERS)}", code="unknown-parameter")
    entries, remarks = usable_logs(entries, robot, chosen_law)
    known = known_values(robot, chosen_law, gains or {}, entries)
    for name in also:
        for table in known:
            table.pop(name, None)
    still = still_joints([entry.recording for entry in entries])
    moving = [k for k, chain in enumerate(robot_chains(robot)) if not np.isin(chain.joints, still).all()]
    if len(still):
        remarks.append(f"Joints that move by less than {MIN_MOTION:g} rad in every log are fixed at their positions, "
                       f"and their values are not estimated: {', '.join(robot.joint_names[j] for j in still)}.")
    for restart in _OPEN_LOOP_RESTARTS if chosen_law.name == "current" else (None,):
        stages = []
        for k, chain in enumerate(moving, 1):
            progress(f"first stage: least squares, chain {k} of {len(moving)}")
            problem = chain_problem(robot, chain, entries, chosen_law, known, delay, restart, still)
            stages.append(first_stage(with_friction(problem, "m1", also, delay)))
        if restart is None or all(_is_near(stage) for stage in stages):
            break

    def refined(problems: Sequence[ChainProblem], starts: Sequence[Array]) -> list[Refinement]:
        return [refine(problem, start, finish=False,
                       progress=prefixed(progress, f"second stage: simulation, chain {k} of {len(problems)}, "))
                for k, (problem, start) in enumerate(zip(problems, starts, strict=True), 1)]

    comparison: tuple[FrictionTrial, ...] = ()
    uncompared: list[Note] = []
    plain: list[Refinement] | None = None

    def make(model: str) -> list[ChainProblem]:
        return [with_friction(stage.problem, model, also, delay) for stage in stages]

    def start(k: int, problem: ChainProblem, model: str, simpler: JointValues | None = None) -> Array:
        values = stages[k].values if plain is None else stages[k].problem.values(plain[k].x)
        return _friction_start(problem, model, [values] if simpler is None else [values, simpler])

    if friction != "m1":  # richer models start from the solution of M1; from the first stage they end in other minima
        problems = make("m1")
        plain = refined(problems, [start(k, problem, "m1") for k, problem in enumerate(problems)])
        stages = [replace(stage, problem=quick_enough(stage.problem, fit.x)) for stage, fit in
                  zip(stages, plain, strict=True)]
    if friction == "auto":
        friction, comparison, uncompared = choose_friction(make, start, restart, progress)
    problems = make(friction)
    starts = [start(k, problem, friction) for k, problem in enumerate(problems)]
    coarse = plain if friction == "m1" and plain is not None else refined(problems, starts)
    problems = [_fine_enough(quick_enough(problem, fit.x), fit) for problem, fit in zip(problems, coarse, strict=True)]
    # Initial states are estimated again: with states of a coarse step, sensitivities of two step sizes disagree.
    fits = [refine(problem, fit.solution if restart is None else fit.x, share=fit.share,
                   progress=prefixed(progress, f"second stage: simulation, chain {k} of {len(problems)}, "))
            for k, (problem, fit) in enumerate(zip(problems, coarse, strict=True), 1)]
    notes = [*(Note("log", remark) for remark in remarks), *uncompared]
    return _estimate(robot, entries, chosen_law, friction, stages, problems, fits, comparison, notes, diagnose,
                     progress)


def _is_near(stage: Stage) -> bool:
    """Return whether the first-stage estimates simulate every joint well enough as the start of the second stage."""
    problem = stage.problem
    residual = problem.residuals(problem.start(stage.values))
    return residual is not None and bool(np.all(error_shares(problem, residual) < _MAX_OPEN_LOOP_ERROR))


def _fine_enough(problem: ChainProblem, fit: Refinement) -> ChainProblem:
    """Return the problem with the longest integration step whose error changes no estimate noticeably. An error of the
    simulated positions changes the estimates like measurement noise. The error is projected on the sensitivities, and
    the resulting change of each estimate is compared with its standard error."""
    is_free = fit.std > 0.0
    for step, error, _ in step_errors(problem.with_starts(), fit.solution):
        if step <= LARGEST_STEP and np.all(np.abs(fit.changes_by(error)) <= _MAX_STEP_SIGMAS * fit.std, where=is_free):
            return replace(problem, step=step)
    return replace(problem, step=SIMULATION_STEPS[-1])


def known_values(robot: Robot, law: DriveLaw, gains: Mapping[str, Gain], logs: Sequence[ActuatorLog]) \
        -> list[dict[str, float]]:
    """Return the given parameter values of the drive law by name, one table per joint; raise an error for a wrong or
    missing value."""
    names = {item.name: item for item in law.parameters}
    for name in (*gains, *(name for log in logs for name in log.gains)):
        if name not in names:
            raise ModelError(f"drive law '{law.name}' has no parameter '{name}'; its parameters are "
                             f"{', '.join(names)}", code="unknown-gain")
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
                raise ModelError(f"gain {name} must be a non-negative number, got {one}", code="wrong-gain")
            table[name] = float(one)
    is_needed = "kp" in names and "kp" not in law.estimated
    if is_needed and any("kp" not in {**table, **log.gains} for table in tables for log in logs):
        raise ModelError(f"drive law '{law.name}' needs the gain kp", "add --gain kp=...", "missing-gain")
    if law.name == "voltage" and any(log.recording.voltage is None and "vin" not in {**tables[0], **log.gains}
                                     for log in logs):
        raise ModelError("drive law 'voltage' needs the supply voltage", "add --gain vin=..., or map the logged "
                         "voltage with --set log.supply_voltage=...", "missing-gain")
    return tables


def _friction_start(problem: ChainProblem, model: str, bases: Sequence[JointValues]) -> Array:
    """Return initial values (unknowns,) for a friction model, from the solutions of simpler models. The cost has local
    minima in the Stribeck speed and the load-dependent friction. Several initial values are therefore refined by a
    short search, and the best result is returned."""
    names = FRICTION_MODELS[model]
    tried = [(base, speed, share) for base in bases
             for speed in _STRIBECK_SPEEDS[:None if "stribeck" in names and "stribeck" not in base[0] else 1]
             for share in _LOAD_SHARES[:None if {"load", "load_motor"} & set(names) - base[0].keys() else 1]]
    starts: list[tuple[float, Array]] = []
    for base, speed, share in tried:
        values = [_extended(own, model, speed, share) for own in base]
        for own in values:
            for limit in ("torque_limit", "current_limit"):
                if any(one.name == limit for one in problem.unknowns):
                    own[limit] = _largest_demand(problem, own)
        x = problem.start(values)
        residual = problem.residuals(x) if len(tried) > 1 else None
        starts.append((np.inf if residual is None else float(np.mean(residual ** 2)), x))
    starts.sort(key=lambda one: one[0])
    if len(starts) == 1 or not np.isfinite(starts[0][0]):
        return starts[0][1]
    for k, (cost, x) in enumerate(starts[:_SEARCHED_STARTS]):
        with suppress(NotPossibleError):  # a search may reach values at which the simulation diverges
            fit = refine(problem, x, max_iterations=_START_ITERATIONS, finish=False) if np.isfinite(cost) else None
            starts[k] = starts[k] if fit is None else (float(np.mean(fit.residual ** 2)), fit.x)
    return min(starts[:_SEARCHED_STARTS], key=lambda one: one[0])[1]


def _extended(simpler: Mapping[str, float], model: str, speed: float, share: float) -> dict[str, float]:
    """Return the values of a joint, with initial values of the parameters that a simpler friction model lacks. speed:
    initial Stribeck speed, rad/s. share: initial load-dependent friction, relative to the load."""
    own, dry = dict(simpler), simpler.get("coulomb", 0.0)
    if "stribeck" in FRICTION_MODELS[model] and "stribeck" not in own:
        own |= {"stribeck": 0.3 * dry, "coulomb": 0.85 * dry, "stribeck_speed": speed}
    for name in FRICTION_MODELS[model]:
        if name not in own and name.startswith(("load", "stribeck_load", "quadratic")):
            first = share if name.startswith("load") else _LOAD_SHARES[0]
            own[name] = simpler.get(name.removesuffix("_motor").removesuffix("_external"), first)
    return own


def _largest_demand(problem: ChainProblem, own: Mapping[str, float]) -> float:
    """Return the largest torque that the position gain demands in the logs, N m, as an initial torque limit."""
    error = max(float(np.max(np.abs(log.signals.command - log.signals.q))) for log in problem.logs)
    return 0.8 * own.get("kp", 1.0) * own.get("kv", 1.0) * error


def _estimate(robot: Robot, entries: Sequence[ActuatorLog], law: DriveLaw, friction: str, stages: Sequence[Stage],
              problems: Sequence[ChainProblem], fits: Sequence[Refinement], comparison: tuple[FrictionTrial, ...],
              notes: list[Note], diagnose: bool, progress: ProgressCallback) -> ActuatorEstimate:
    parameters: list[ActuatorValue] = []
    findings: list[Finding] = []
    determined: list[Bools] = []
    simulated = [np.tile(np.median(entry.recording.q, axis=0), (len(entry.recording), 1)) for entry in entries]
    first, count = 0.0, 0
    for number, (stage, problem, fit) in enumerate(zip(stages, problems, fits, strict=True), 1):
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
            progress(f"testing the given values, chain {number} of {len(problems)}")
            wrong, untested = causes(problem, fit)
            findings += wrong
            notes += untested
    findings += unequal_joints(parameters)
    notes.append(_scale_note(law, problems[0]))
    order = {joint: j for j, joint in enumerate(robot.joint_names)}
    parameters.sort(key=lambda one: order[one.joint])
    follows = any(np.any(problem.numbers(fit.x, log)[:, KP] != 0.0) for problem, fit in zip(problems, fits, strict=True)
                  for log in problem.logs)
    logs = tuple(SimulatedLog(entry.recording.source, entry.recording.t, entry.recording.q, positions,
                              entry.recording.reference if follows else None)
                 for entry, positions in zip(entries, simulated, strict=True))
    found = ActuatorEstimate(robot.name, robot.joint_names, law.name, friction, tuple(parameters), tuple(notes),
                             tuple(findings), comparison, logs, first / max(count, 1),
                             max(fit.iterations for fit in fits), max(fit.gradient_error for fit in fits))
    posterior = actuator_posterior(robot, entries, problems, fits, determined, simulated)
    worse = worse_than_command(found)
    return replace(found, findings=(*worse, *found.findings), posterior=replace(posterior, unusable=found.unusable))


def _values(problem: ChainProblem, fit: Refinement, identified: Bools, stage: Stage) -> list[ActuatorValue]:
    parameters, nan = [], float("nan")
    for j, joint in enumerate(problem.names):
        for k, one in enumerate(problem.unknowns):
            if one.joint == j or (one.joint < 0 and j not in problem.still):
                linear = stage.linear[j]
                parameters.append(ActuatorValue(joint, one.name, one.item.unit, float(fit.x[k]),
                                                float(fit.std[k]) if identified[k] else nan, bool(identified[k]),
                                                linear=linear.values.get(one.name, nan),
                                                linear_std=linear.std.get(one.name, nan)))
        parameters += [ActuatorValue(joint, name, problem.items[name].unit, value, nan, False, True)
                       for name, value in problem.known[j].items()]
    return parameters


def _scale_note(law: DriveLaw, problem: ChainProblem) -> Note:
    """Return a note on the given values that set the scale of all torques, inertias and friction."""
    unknown = {one.name for one in problem.unknowns}
    if unknown & set(law.estimated):
        text = ("No torque was measured: the known masses of the links set the scale of all torques, armatures and "
                "friction. If the masses are wrong by a factor, all three are wrong by the same factor.")
    else:
        text = ("No torque was measured: the given gains and the known masses of the links set the scale of all "
                "torques, armatures and friction.")
    return Note("scale", text)

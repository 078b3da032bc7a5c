"""Optimal experiments for actuators: commands, gains and masses that give the most Fisher information.

Each candidate recording is simulated in closed loop with nominal values. The sensitivities of the simulated positions
give its Fisher information. Recordings are selected one after the other until the total time is used up. Each time, the
candidate is selected that reduces the volume of the confidence ellipsoid most (D-optimal).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike

from dynid.actuators.chains import Chain, robot_chains
from dynid.actuators.experiment_plan import (
    MAX_RELATIVE_STD,
    PART_KINDS,
    RESIDUAL_STD,
    RESIDUAL_TIME,
    ActuatorExperiment,
    ExperimentPart,
    Room,
    part_command,
)
from dynid.actuators.laws import DriveLaw, drive_law
from dynid.actuators.parameter_combinations import projected, unchanged_directions
from dynid.actuators.parameters import FRICTION_MODELS, MECHANICAL_PARAMETERS
from dynid.actuators.problem import ActuatorLog, ChainLog, ChainProblem
from dynid.actuators.refinement import jacobian, scales
from dynid.arrays import Array
from dynid.dynamics.state import mass_and_bias
from dynid.errors import DynidError, NotPossibleError
from dynid.progress import Progress, ProgressCallback, silent
from dynid.recording import Recording
from dynid.robot import Robot

# Prior standard deviation of a parameter relative to its scale: undetermined parameters stay far beyond
# MAX_RELATIVE_STD.
PRIOR_STD = 1e3
SMALLER_SHARES = (1.0, 0.7, 0.5, 0.35)  # relative amplitudes, tried until the simulated motion is inside the limits
OVERSHOOT_SHARE = 0.05  # share of the range by which simulated positions may leave the commanded range
NAMED_RATIO = 1.25  # a recording separates a parameter if its standard error grows by this factor without the recording
MAX_NAMED_PARAMETERS = 4  # parameters that one sentence names
NOMINAL_ARMATURE_SHARE = 0.3  # assumed armature, as a share of the link's inertia, if none is given
NOMINAL_POSTURES = 20  # random postures in which gravity torques are computed for nominal values
NOMINAL_FRICTION_SHARE = 0.06  # assumed friction, as a share of the largest gravity torque, if none is given
NOMINAL_VALUES = {"stribeck_speed": 0.3, "load": 0.05, "stribeck_load": 0.05, "load_motor": 0.05,
                  "load_external": 0.05, "stribeck_load_motor": 0.05, "stribeck_load_external": 0.05,
                  "quadratic_motor": 0.01, "quadratic_external": 0.01, "delay": 0.005, "bias": 0.0, "offset": 0.0,
                  "backlash": 5e-3, "kt": 1.2, "resistance": 2.7, "vin": 7.4}  # values of a bus servo such as STS3215


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A candidate recording with its Fisher information: one matrix for each joint chain of the robot."""

    part: ExperimentPart
    information: tuple[Array, ...]


def design_actuator_experiment(loads: Mapping[str, Robot] | Robot, law: str | DriveLaw = "pd", *,
                               gains: Mapping[str, Sequence[float]] | None = None,
                               known: Mapping[str, float] | None = None,
                               values: Mapping[str, float] | None = None, friction: str = "m4",
                               lower: ArrayLike | None = None, upper: ArrayLike | None = None,
                               velocity: ArrayLike | None = None, home: ArrayLike | None = None, duration: float = 60.0,
                               part_duration: float = 10.0, rate: float = 100.0, seed: int = 0,
                               is_free: Callable[[Array], bool] | None = None,
                               progress: ProgressCallback = silent) -> ActuatorExperiment:
    """Design recordings that determine the parameters of actuators, within limits.

    Args:
        loads: the robot, or several robots by name of the mounted load, such as pendulums with different masses.
        law: drive law, see `dynid.actuators.laws`.
        gains: settings of the drive that the user can choose, several values each, such as {"kp": [8, 16, 32]}.
        known: parameters that will be given to the identification.
        values: assumed values of unknown parameters; the others have typical values.
        friction: friction model that the experiment shall determine, "m1" to "m6".
        lower, upper: range of the commands (joints,), rad or m. Default: the robot's own limits.
        velocity: speed limits of the commands (joints,), rad/s or m/s. Default: the robot's own limits.
        home: posture (joints,) at which each recording begins and ends. Default: zero, or mid-range if zero is outside.
        duration: total time of all recordings, s.
        part_duration: time of one recording, s.
        rate: rows per second.
        seed: seed of random steps.
        is_free: function that returns whether postures (rows, joints), one after the other, are free of collisions;
            commands and simulated positions must be.
        progress: called with progress messages.

    Returns:
        The recordings, with the standard errors that are expected from them.
    """
    robots = {"": loads} if isinstance(loads, Robot) else dict(loads)
    first = next(iter(robots.values()))
    drive, progress = drive_law(law), Progress.from_callback(progress)
    if friction not in FRICTION_MODELS:
        raise DynidError(f"there is no friction model '{friction}'; there are {', '.join(FRICTION_MODELS)}",
                         code="unknown-friction")
    if not duration >= part_duration > 4.0 or not rate >= 10.0:
        raise DynidError("an experiment needs recordings of more than 4 s each, a total time for at least one "
                         "recording, and a rate of at least 10 Hz; got "
                         f"{part_duration:g} s, {duration:g} s and {rate:g} Hz", code="wrong-duration")
    rooms = _rooms(first, lower, upper, velocity, home)
    settings = _settings(drive, gains or {}, known or {})
    assumed = {**NOMINAL_VALUES, **dict(known or {}), **dict(values or {})}
    # Nominal values are those of the first load for all loads, because they describe the actuators alone.
    designs = {load: _designs(robot, drive, friction, known or {}, settings, assumed)
               for load, robot in robots.items()}
    start = next(iter(designs.values()))
    designs = {load: [replace(one, x=other.x, unchanged=other.unchanged) for one, other in zip(own, start, strict=True)]
               for load, own in designs.items()}
    candidates, notes = list[_Candidate](), list[str]()
    empty = np.zeros(0)
    todo = [ExperimentPart(kind, setting, load, empty, empty) for load in robots for setting in settings
            for kind in PART_KINDS]
    for k, part in enumerate(todo):
        progress(f"simulating {part.title}", k / len(todo))
        candidate = _candidate(designs[part.load], drive, part, rooms, part_duration, rate, seed, is_free)
        if candidate is None:
            notes.append(f"{part.title} is left out, because the simulated motion leaves the limits, collides or is "
                         "unstable")
        else:
            candidates.append(candidate)
    if not candidates:
        raise NotPossibleError("no commanded motion keeps the simulated joints inside their limits and free of "
                               "collisions", "check gains, limits, masses and the home posture (--home)",
                               "no-experiment")
    chosen = _chosen(candidates, max(int(duration / part_duration + 1e-9), 1))
    own = next(iter(designs.values()))
    unknowns = [(one.problem.label(k), item.item.unit) for one in own for k, item in enumerate(one.problem.unknowns)]
    sizes = np.concatenate([one.scale for one in own])
    plan = ActuatorExperiment((), first.joint_names, rate, tuple(name for name, _ in unknowns),
                              tuple(unit for _, unit in unknowns), np.concatenate([one.x for one in own]),
                              _relative_std(chosen) * sizes, sizes, tuple(notes))
    return _with_purposes(plan, chosen, candidates)


@dataclass(frozen=True, eq=False)
class _ChainDesign:
    """Design data of one joint chain.

    Attributes:
        chain, problem: the chain, and its estimation problem without logs.
        x: nominal values of the unknowns (unknowns,).
        unchanged: directions of the scaled unknowns that no data identify (unknowns, m).
    """

    chain: Chain
    problem: ChainProblem
    x: Array
    unchanged: Array

    @property
    def scale(self) -> Array:
        return scales(self.problem, self.x)


def _rooms(robot: Robot, lower: ArrayLike | None, upper: ArrayLike | None, velocity: ArrayLike | None,
           home: ArrayLike | None) -> list[Room]:
    rooms = []
    bounds = {"lower": robot.limit("lower") if lower is None else np.asarray(lower, dtype=float),
              "upper": robot.limit("upper") if upper is None else np.asarray(upper, dtype=float),
              "velocity": robot.limit("velocity") if velocity is None else np.asarray(velocity, dtype=float),
              "home": np.zeros(robot.dof) if home is None else np.asarray(home, dtype=float)}
    for name, array in bounds.items():
        if np.shape(array) != (robot.dof,):
            raise DynidError(f"{name} needs one number for each of the {robot.dof} joints, got shape "
                             f"{np.shape(array)}", code="wrong-limits")
    for j, name in enumerate(robot.joint_names):
        low, high, speed = (float(bounds[key][j]) for key in ("lower", "upper", "velocity"))
        if not (np.isfinite([low, high, speed]).all() and low < high and speed > 0):
            raise DynidError(f"joint '{name}' needs a range and a speed limit for its commands, got {low:g} to "
                             f"{high:g} and {speed:g}", "give both in a file with --limits", "wrong-limits")
        rest = bounds["home"][j] if home is not None else 0.0 if low < 0.0 < high else 0.5 * (low + high)
        if not low <= rest <= high:
            raise DynidError(f"the home position {rest:g} of joint '{name}' is outside its range {low:g} to {high:g}",
                             code="wrong-limits")
        rooms.append(Room(low, high, speed, float(rest)))
    return rooms


def _settings(law: DriveLaw, gains: Mapping[str, Sequence[float]], known: Mapping[str, float]) \
        -> list[dict[str, float]]:
    """Return every combination of the gain values that the user can set, together with the known parameters."""
    own = {item.name for item in law.parameters}
    wrong = [name for name in (*gains, *known) if name not in own and name not in MECHANICAL_PARAMETERS]
    if wrong:
        raise DynidError(f"drive law '{law.name}' has no parameter '{wrong[0]}'; its parameters are "
                         f"{', '.join(sorted(own))}", code="unknown-gain")
    settings: list[dict[str, float]] = [{}]
    for name, values in gains.items():
        if not len(values) or not np.isfinite(values).all():
            raise DynidError(f"the values of the gain {name} must be finite numbers, got {list(values)}",
                             code="wrong-gain")
        settings = [{**one, name: float(value)} for one in settings for value in values]
    return settings


def _designs(robot: Robot, law: DriveLaw, friction: str, known: Mapping[str, float],
             settings: Sequence[Mapping[str, float]], assumed: Mapping[str, float]) -> list[_ChainDesign]:
    """Return the experiment design data of each independent joint chain of a robot."""
    given = set(settings[0])
    wanted = [name for name in law.estimated if name not in known and name not in given]
    missing = next((name for name in wanted if name not in assumed), None)
    if missing is not None:
        raise DynidError(f"the design needs a value of the parameter {missing} of drive law '{law.name}'",
                         f"add --gain {missing}=... if the parameter can be set or is known, or --value {missing}=... "
                         "as a guess", "no-value")
    fixed = {item.name: assumed[item.name] for item in law.parameters
             if item.name not in (*wanted, *known, *given) and item.name in assumed}
    unknown = [name for name in ("armature", *FRICTION_MODELS[friction], "offset", *wanted) if name not in known]
    designs = []
    for chain in robot_chains(robot):
        names = tuple(robot.joint_names[j] for j in chain.joints)
        problem = ChainProblem(law, names, (), tuple({**dict(known), **fixed} for _ in names), ()).estimating(
            unknown, shared=() if "delay" in known else ("delay",))
        x = problem.start(_nominal(chain, assumed))
        designs.append(_ChainDesign(chain, problem, x, unchanged_directions(problem, x, scales(problem, x), settings)))
    return designs


def _nominal(chain: Chain, assumed: Mapping[str, float]) -> list[dict[str, float]]:
    """Return the assumed parameters of each joint by name; missing values follow from the inertia and the gravity
    torques in random postures."""
    n, rows = len(chain.joints), chain.packed()
    rng = np.random.default_rng(0)
    inertia, torque = np.full(n, 1e-5), np.full(n, 1e-2)
    for _ in range(NOMINAL_POSTURES):
        mass, bias = np.zeros((n, n)), np.zeros(n)
        mass_and_bias(chain.tree.parent, chain.tree.gravity, rows, rng.uniform(-1.5, 1.5, n), np.zeros(n), mass, bias)
        inertia, torque = np.maximum(inertia, np.diag(mass)), np.maximum(torque, np.abs(bias))
    dry = NOMINAL_FRICTION_SHARE * torque
    return [{"armature": NOMINAL_ARMATURE_SHARE * float(inertia[j]), "coulomb": float(dry[j]),
             "stribeck": 0.5 * float(dry[j]), "viscous": 0.5 * float(dry[j]), **dict(assumed)} for j in range(n)]


def _candidate(designs: Sequence[_ChainDesign], law: DriveLaw, part: ExperimentPart, rooms: list[Room],
               duration: float, rate: float, seed: int, is_free: Callable[[Array], bool] | None
               ) -> _Candidate | None:
    """Return a candidate recording with its Fisher information; None if its simulation exceeds the limits or collides
    at every amplitude."""
    for share in SMALLER_SHARES:
        t, command = part_command(part.kind, duration, rate, rooms, seed, share)
        if is_free is not None and not is_free(command):
            continue
        positions = command.copy()
        log = ActuatorLog(Recording.from_commands(t, command, command), part.gains)
        matrices = []
        for one in designs:
            ready = replace(one.problem, logs=(ChainLog.from_log(one.chain, log, law, gap=1.0, restart=None),))
            moved = ready.simulate(one.x, ready.logs[0])
            if moved is None or not _is_inside(moved, [rooms[j] for j in one.chain.joints]):
                break
            positions[:, list(one.chain.joints)] = moved
            try:
                slopes = (jacobian(ready, one.x, one.scale) * one.scale).reshape(-1, len(one.x))
            except NotPossibleError:
                break
            weight = min(1.0 / (rate * RESIDUAL_TIME), 1.0) / RESIDUAL_STD ** 2
            matrices.append(projected(weight * slopes.T @ slopes, one.unchanged))
        else:
            if is_free is None or is_free(positions):
                return _Candidate(replace(part, t=t, command=command), tuple(matrices))
    return None


def _is_inside(moved: Array, rooms: Sequence[Room]) -> bool:
    """Return whether simulated positions (rows, joints) are inside the limits, except for a small overshoot."""
    more = [OVERSHOOT_SHARE * (room.high - room.low) for room in rooms]
    return all(room.low - extra <= low and high <= room.high + extra for room, extra, low, high in
               zip(rooms, more, moved.min(axis=0), moved.max(axis=0), strict=True))


def _total(chosen: Sequence[_Candidate]) -> list[Array]:
    """Return the summed Fisher information (unknowns, unknowns) of several recordings for each chain, with a weak prior
    that makes it invertible."""
    total = []
    for k in range(len(chosen[0].information)):
        values, directions = np.linalg.eigh(np.sum([one.information[k] for one in chosen], axis=0))
        total.append((directions * (np.maximum(values, 0.0) + 1.0 / PRIOR_STD ** 2)) @ directions.T)
    return total


def _relative_std(chosen: Sequence[_Candidate]) -> Array:
    """Return the expected standard errors (parameters,) relative to the scales of the parameters."""
    return np.concatenate([np.sqrt(np.diag(np.linalg.inv(matrix))) for matrix in _total(chosen)])


def _chosen(candidates: Sequence[_Candidate], count: int) -> list[_Candidate]:
    """Return `count` different candidates, selected greedily for the largest determinant of the Fisher information."""
    chosen: list[_Candidate] = []
    left = list(candidates)

    def log_determinant(k: int) -> float:
        return float(sum(np.linalg.slogdet(matrix)[1] for matrix in _total([*chosen, left[k]])))

    while left and len(chosen) < count:
        chosen.append(left.pop(max(range(len(left)), key=log_determinant)))
    return chosen


def _with_purposes(plan: ActuatorExperiment, chosen: Sequence[_Candidate],
                   candidates: Sequence[_Candidate]) -> ActuatorExperiment:
    """Return the experiment with the chosen recordings and their purposes: the parameters that each recording
    separates, and the parameters that need several gains or several loads."""
    whole, names = _relative_std(chosen), plan.parameters
    notes = [*plan.notes, *_inseparable_parameters(chosen, names)]
    parts = []
    for k, one in enumerate(chosen):
        without = _relative_std([*chosen[:k], *chosen[k + 1:]]) if len(chosen) > 1 else np.full(len(whole), PRIOR_STD)
        parts.append(replace(one.part, separates=_grown_errors(without / whole, names)))
    gains, load = attrgetter("gains"), attrgetter("load")
    for what, compared, kept in (("one setting of the gains", gains, load), ("one load", load, gains)):
        first = compared(chosen[0].part)
        if all(compared(one.part) == compared(candidates[0].part) for one in candidates):
            continue
        same = [next((other for other in candidates if other.part.kind == one.part.kind
                      and compared(other.part) == first and kept(other.part) == kept(one.part)), one) for one in chosen]
        grown = _grown_errors(_relative_std(same) / whole, names)
        if grown:
            notes.append(f"with {what} only, the expected standard errors would grow: " + ", ".join(
                f"{name} {factor:.2g} times" for name, factor in grown.items()))
    return replace(plan, parts=tuple(parts), notes=tuple(notes))


def _inseparable_parameters(chosen: Sequence[_Candidate], labels: Sequence[str]) -> list[str]:
    """Return sentences on parameters that can change together without changing the motion of the chosen recordings;
    labels: names of all parameters."""
    sentences, start = [], 0
    for matrix in _total(chosen):
        own, start = labels[start:start + len(matrix)], start + len(matrix)
        values, directions = np.linalg.eigh(matrix)
        for value, direction in zip(values, directions.T, strict=True):
            # Parameters that this direction alone leaves undetermined.
            names = [own[k] for k in np.argsort(-np.abs(direction))
                     if abs(direction[k]) > MAX_RELATIVE_STD * np.sqrt(value)]
            if len(names) > 1:
                sentences.append(f"{', '.join(names[:-1])} and {names[-1]} change together without changing the "
                                 "motion; give one of them as a known value (--gain), from a data sheet or a "
                                 "measurement")
    return sentences


def _grown_errors(ratio: Array, names: Sequence[str]) -> dict[str, float]:
    """Return the parameters whose standard errors grow by a factor above NAMED_RATIO, with these factors, the largest
    first; ratio: factors of all parameters (parameters,)."""
    order = np.argsort(-ratio)[:MAX_NAMED_PARAMETERS]
    return {names[k]: float(ratio[k]) for k in order if ratio[k] > NAMED_RATIO}

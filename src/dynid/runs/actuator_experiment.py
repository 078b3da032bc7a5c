"""Actuator experiments from the command line: loads and limits from text, command files and the plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators.chains import pendulum
from dynid.actuators.experiment_plan import ActuatorExperiment, plan_text
from dynid.actuators.experiments import design_actuator_experiment
from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.escape import csv_line
from dynid.excitation import Limits, Workspace, read_limits
from dynid.excitation.limits.limit_check import is_path_free
from dynid.excitation.limits.limits_file import space_notes
from dynid.excitation.limits.motion_limits import MARGIN
from dynid.files import free_paths, write_whole
from dynid.output_fields import array_of, output_fields, record
from dynid.progress import ProgressCallback
from dynid.robot import Robot
from dynid.runs.motion_design import limits_for
from dynid.runs.safe_motion import Safety, careful, checked, unchecked

PENDULUM = "pendulum"  # name in place of a robot: one actuator with a known mass on an arm
PENDULUM_RANGE = 1.5  # rad to each side: nearly horizontal, where gravity is largest, and not over the top
USUAL_SPEED = 5.0  # rad/s: usual limit of bus servos, for a pendulum and for joints without a velocity limit
PLAN_FILE = "plan.md"


@dataclass(frozen=True)
class ExperimentRequest:
    """Request to `design_experiment`.

    Attributes:
        robot: file or name of a robot, or "pendulum".
        law: drive law.
        gains: settings of the drive; a single value is known, several are tried.
        values: assumed values of unknown parameters.
        friction: friction model, "m1" to "m6".
        masses: masses of the pendulum, kg.
        length: length of the pendulum, m.
        arm_mass: mass of its arm, kg.
        limits: file with limits, or None.
        margin: share of the robot's ranges and speeds to keep free, or None for the default.
        safety: safety settings of a robot's motion.
        home: posture in which each part begins and ends, or None.
        duration, part_duration: duration of all parts and of one part, s.
        rate: rows per second.
        seed: seed of random steps.
    """

    robot: str
    law: str
    gains: Mapping[str, Sequence[float]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    friction: str = "m4"
    masses: Sequence[float] = ()
    length: float | None = None
    arm_mass: float = 0.0
    limits: Path | None = None
    margin: float | None = None
    safety: Safety = field(default_factory=Safety)
    home: Sequence[float] | None = None
    duration: float = 60.0
    part_duration: float = 10.0
    rate: float = 100.0
    seed: int = 0


def design_experiment(request: ExperimentRequest, machine: Robot | None,
                      progress: ProgressCallback) -> ActuatorExperiment:
    """Return the requested experiment; machine: the robot, None for a pendulum."""
    if machine is None:
        if not request.masses or request.length is None:
            raise DynidError("a pendulum needs its masses and its length",
                             "add --mass 0.2,0.5 --length 0.15, in kg and m", "wrong-pendulum")
        loads = {f"{mass:g} kg": pendulum(mass, request.length, request.arm_mass) for mass in request.masses}
    else:
        if request.masses or request.length is not None:
            raise DynidError("--mass and --length describe a pendulum; the robot's file describes its own links",
                             f"leave them out, or write {PENDULUM} in place of the robot", "wrong-pendulum")
        loads = {"": machine}
    first = next(iter(loads.values()))
    if machine is None:
        if request.safety.asked:
            raise DynidError("a pendulum has no links that could touch a floor or a box", "leave --floor, --box and "
                             "--radius out", "wrong-pendulum")
        limits = Limits.from_robot(first, margin=MARGIN if request.margin is None else request.margin) \
            if request.limits is None else read_limits(request.limits, first, request.margin, MARGIN)
    else:
        limits, _ = limits_for(first, request.limits, request.margin, request.safety)
    care: tuple[str, ...] = ()
    space = None if machine is None else limits.space
    if machine is not None:
        collisions = "; ".join(filter(None, (checked(limits), unchecked(limits))))
    if machine is not None and request.limits is None:
        # A controller that is to be identified may overshoot, so the ranges are reduced in any case.
        limits, care = careful(replace(limits, space=None), first, request.safety, request.home)
    lower, upper = limits.lower, limits.upper
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, USUAL_SPEED)
    if machine is None:
        lower, upper = np.maximum(lower, -PENDULUM_RANGE), np.minimum(upper, PENDULUM_RANGE)
    several = {name: values for name, values in request.gains.items() if len(values) > 1}
    known = {name: float(values[0]) for name, values in request.gains.items() if len(values) == 1}
    if space is not None:
        refuse_collisions(space, request.home, lower, upper)
    plan = design_actuator_experiment(
        loads, request.law, gains=several, known=known, values=request.values, friction=request.friction, lower=lower,
        upper=upper, velocity=speed, home=request.home, duration=request.duration, part_duration=request.part_duration,
        rate=request.rate, seed=request.seed, progress=progress,
        is_free=None if space is None else partial(is_path_free, space))
    if space is not None:
        plan = replace(plan, notes=(*space_notes(space), *plan.notes), collisions=collisions)
    plan = replace(plan, notes=(*care, *plan.notes))
    if machine is None or np.isfinite(limits.velocity).all():
        return plan
    name = limits.names[int(np.argmin(np.isfinite(limits.velocity)))]
    return replace(plan, notes=(*plan.notes, f"'{name}' has no velocity limit, so {USUAL_SPEED:g} rad/s is used; give "
                                             "another in a file with --limits"))


def refuse_collisions(space: Workspace, home: Sequence[float] | None, lower: Array, upper: Array) -> None:
    """Raise an error if the home posture (dof,) at which every recording begins is not free of collisions; the default
    home posture is zero, or the middle of a range without zero."""
    posture = np.where((lower < 0.0) & (upper > 0.0), 0.0, 0.5 * (lower + upper)) if home is None else np.asarray(home)
    if posture.shape != (space.robot.dof,) or not len(space.names):
        return
    slack = space.slack(posture[None])[0]
    k = int(np.argmin(slack))
    if slack[k] < 0.0:
        raise NotPossibleError(f"the home posture {', '.join(f'{x:.4g}' for x in posture)}, in which every recording "
                               f"begins, is not free: {space.names[k]} by {1000.0 * -slack[k]:.0f} mm",
                               "give another posture with --home", "wrong-home")


def file_names(plan: ActuatorExperiment) -> list[str]:
    """Return the name of each part's command file, such as 01_chirp_kp_16_0.5_kg.csv."""
    return [f"{k:02d}_" + re.sub(r"[^A-Za-z0-9.]+", "_", part.title).strip("_") + ".csv"
            for k, part in enumerate(plan.parts, 1)]


def write_experiment(plan: ActuatorExperiment, folder: Path, force: bool = False) -> dict[str, str]:
    """Write the command files (t, q_NAME ...) and the plan into a folder; return the path of each file by its kind."""
    names = file_names(plan)
    paths = free_paths(folder, {**dict(zip(names, names, strict=True)), "plan": PLAN_FILE}, force)
    for name, part in zip(names, plan.parts, strict=True):
        with write_whole(paths[name]) as file:
            file.write(csv_line(["t", *(f"q_{joint}" for joint in plan.joints)]))
            for row in np.column_stack([part.t, part.command]):
                file.write(",".join(f"{number:.9g}" for number in row) + "\n")
    with write_whole(paths["plan"]) as file:
        file.write(plan_text(plan, names))
    return {what: str(path) for what, path in paths.items()}


_EXPERIMENT_PART = record("ExperimentPart", kind=str, gains=dict[str, float], load=Any, duration=float,
                          separates=dict[str, Any])
_PLANNED_PARAMETER = record("PlannedParameter", name=str, unit=str, assumed=float, standard_error=float | None)


@output_fields(joints=list[str], rate=float, collisions=str, parts=array_of(_EXPERIMENT_PART),
               parameters=array_of(_PLANNED_PARAMETER), not_identified=list[str], notes=list[str])
def experiment_facts(plan: ActuatorExperiment) -> dict[str, Any]:
    """Return the designed experiment as plain data for JSON."""
    return {"joints": list(plan.joints), "rate": plan.rate, "collisions": plan.collisions, "parts": [
        {"kind": part.kind, "gains": dict(part.gains), "load": part.load, "duration": float(part.t[-1]),
         "separates": dict(part.separates)} for part in plan.parts],
        "parameters": [{"name": name, "unit": unit, "assumed": float(value),
                        "standard_error": None if name in plan.not_identified else float(std)}
                       for name, unit, value, std in
                       zip(plan.parameters, plan.units, plan.values, plan.std, strict=True)],
        "not_identified": list(plan.not_identified), "notes": list(plan.notes)}

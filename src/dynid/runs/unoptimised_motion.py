"""Motions without optimisation: random motions, sweeps, motions through given points, and with a fixed tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import (
    Limits,
    Measurement,
    Trajectory,
    Workspace,
    assess,
    coupling_sweep,
    find_collision,
    friction_sweep,
    gravity_sweep,
    inertia_sweep,
    null_space_motion,
    quintics_within,
    random_points,
    random_sines,
    random_spline,
    self_motion,
)
from dynid.excitation.exciting_motion import assess_best, with_accelerations
from dynid.excitation.limits.limits_file import space_notes
from dynid.excitation.random_motions import ranges
from dynid.progress import ProgressCallback, silent
from dynid.quantities import DURATION, check_quantity
from dynid.recording.tabular import Text
from dynid.report.pages.motion import MotionData
from dynid.robot import Robot
from dynid.runs.motion_design import checked_noise, checked_posture, limits_for, motion_data, terms_model
from dynid.runs.safe_motion import Safety, checked, unchecked, with_warnings

Kind = Literal["points", "spline", "sines", "friction", "gravity", "inertia", "coupling", "null-space", "through"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_MOTION_DRAWS = 8  # random motions with a fixed tool, of which the most informative is used
_RANGE_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05)  # parts of the joint ranges that are tried
_CENTRE_DRAWS = 500  # random postures, of which the one farthest from collisions is the centre of a motion
_ONE_WAY = 5.0  # s: shortest time in one direction of a friction sweep


@dataclass(frozen=True, eq=False)
class PlainMotionRequest:
    """Request to `plain_motion`.

    Attributes:
        kind: kind of the motion.
        count: number of random postures.
        through: file with postures (rows, joints), for a motion through given points.
        duration: duration of sines and of motions with a fixed frame, s.
        frame: name of the frame that does not move.
        home: posture (dof,), rad or m, from which sweeps start, and in which the frame is fixed.
        seed: seed of the random numbers.
        friction, rotor, limits, margin, noise, rate, command: as in `MotionRequest`.
        safety: floor, box and radius of the links, as in `MotionRequest`.
    """

    kind: Kind
    count: int = 50
    through: Path | None = None
    duration: float = 20.0
    frame: str | None = None
    home: ArrayLike | None = None
    seed: int = 0
    friction: tuple[str, ...] = ()
    rotor: bool = False
    limits: str | Path | None = None
    margin: float | None = None
    noise: ArrayLike | None = None
    rate: float = 100.0
    command: str = ""
    safety: Safety = field(default_factory=Safety)


def plain_motion(robot: Robot, request: PlainMotionRequest, progress: ProgressCallback = silent) -> MotionData:
    """Return the requested motion, checked against every limit and slowed down if necessary, with the expected standard
    errors, in the form of `design_motion`."""
    check_quantity(DURATION, request.duration, "the duration of a motion")
    limits, margin_note = limits_for(robot, request.limits, request.margin, request.safety)
    if request.home is not None:
        checked_posture(request.home, limits)
    limits, assumed = with_accelerations(limits)
    model = terms_model(robot, request.friction, request.rotor)
    measurement = Measurement(request.rate, checked_noise(request.noise, robot.dof))
    progress("generating the motion")
    posture_note: tuple[str, ...] = ()
    if request.kind == "null-space":
        arc = self_motion(robot, request.frame or robot.body_names[-1], limits, posture=request.home, seed=request.seed)
        if request.home is None:
            posture_note = (f"the tool keeps its pose in the posture {', '.join(f'{x:.4g}' for x in arc.posture)}; "
                            "choose another posture with --home",)
        draws = [null_space_motion(arc, limits, duration=request.duration, seed=request.seed + k)
                 for k in range(_MOTION_DRAWS)]
        draws = [one for one in draws if not collision(one, limits)] or draws  # if all collide, the check says so
        progress("checking the best motion with the tool fixed")
        found = assess_best(model, draws, limits, measurement=measurement, seed=request.seed)
    else:
        trajectory, posture_note = _free_trajectory(request, limits, progress)
        found = assess(model, trajectory, limits, measurement=measurement, seed=request.seed)
    data = motion_data(robot, found, request.noise is not None, request.command)
    notes = (*found.report.unchecked, *space_notes(limits.space), *data.notes, *margin_note, *posture_note,
             *((f"no acceleration limit is given for {', '.join(assumed)}: top speed within 0.3 "
                "s is assumed; give others with --limits",) if assumed else ()),
             *((f"the motion was slowed down to {found.trajectory.duration:.4g} s to respect its limits",)
               if hasattr(found.trajectory, "stretch") else ()))
    return with_warnings(replace(data, notes=notes, checked=checked(limits), unchecked=unchecked(limits)))


def _free_trajectory(request: PlainMotionRequest, limits: Limits,
                     progress: ProgressCallback) -> tuple[Trajectory, tuple[str, ...]]:
    """Return a motion of a kind that does not need the robot's kinematics, within the widest part of the joint ranges
    around the home posture in which it is free of collisions, and a note on this part."""
    if limits.space is None or request.kind in ("points", "through"):  # which respect the workspace, or are given
        return _trajectory(request, limits), ()
    lower, upper = ranges(limits)
    first = ""
    for share, centre in product(_RANGE_SHARES, _free_centres(request, limits.space, lower, upper)):
        half = 0.5 * share * (upper - lower)
        low, high = np.maximum(limits.lower, centre - half), np.minimum(limits.upper, centre + half)
        try:
            trajectory = _trajectory(request, limits if share == 1.0 else replace(limits, lower=low, upper=high))
        except NotPossibleError:
            if not first:
                raise
            continue  # the smaller range is too small for this kind of motion
        touched = collision(trajectory, limits)
        if not touched:
            return trajectory, () if share == 1.0 else (
                f"positions stay within {100 * share:.0f} % of each range around "
                f"{', '.join(f'{x:.3g}' for x in centre)}, because a wider motion is not free: {first}",)
        first = first or touched
        progress(f"within a smaller part of the ranges, because of {touched}")
    raise NotPossibleError(f"no motion of kind '{request.kind}' is free of collisions: {first}",
                           "give another posture with --home, the radius of the links with --radius, or other limits "
                           "with --limits", "limits-exceeded")


def _free_centres(request: PlainMotionRequest, space: Workspace, lower: Array, upper: Array) -> list[Array]:
    """Return postures (dof,) around which a motion is tried: the given home posture, or the middle of the ranges and
    the random posture that is farthest from collisions."""
    if request.home is not None:
        return [np.asarray(request.home, dtype=float)]
    middle = 0.5 * (lower + upper)
    if not len(space.names):
        return [middle]
    draws = np.random.default_rng(request.seed).uniform(lower, upper, (_CENTRE_DRAWS, len(lower)))
    return [middle, draws[int(np.argmax(space.slack(draws).min(axis=1)))]]


def collision(trajectory: Trajectory, limits: Limits) -> str:
    """Return a violation of the workspace by a motion, as text; empty if the motion is free."""
    found = find_collision(trajectory, limits)
    return "" if found is None else str(found)


def _trajectory(request: PlainMotionRequest, limits: Limits) -> Trajectory:
    """Return a motion of a kind that does not need the robot's kinematics."""
    makers: dict[str, Callable[[], Trajectory]] = {
        "points": lambda: random_points(limits, points=request.count, seed=request.seed),
        "spline": lambda: random_spline(limits, points=request.count, seed=request.seed),
        "sines": lambda: random_sines(limits, duration=request.duration, seed=request.seed),
        "friction": lambda: friction_sweep(limits, home=request.home, longest=_ONE_WAY),
        "gravity": lambda: gravity_sweep(limits, seed=request.seed),
        "inertia": lambda: inertia_sweep(limits, home=request.home, seed=request.seed),
        "coupling": lambda: coupling_sweep(limits, home=request.home),
        "through": lambda: _through(request.through, limits)}
    if request.kind not in makers:
        raise DynidError(f"there is no kind of motion '{request.kind}'; there are {', '.join(KINDS)}")
    return makers[request.kind]()


def _through(file: Path | None, limits: Limits) -> Trajectory:
    """Return quintic motions that stop at every row of a table of postures, at the highest speed within the limits."""
    if file is None:
        raise DynidError("a motion through points needs the file of these points, one row per posture",
                         "give it with --through", code="no-points")
    source = Text(file)
    try:
        names = list(source.fields)
        own = [name for name in limits.names if name in names]
        columns = list(limits.names) if len(own) == limits.dof else names
        if len(columns) != limits.dof:
            raise DynidError(f"{file}: has {len(names)} columns for {limits.dof} joints; it needs one per joint, in "
                             "the robot's order or with joint names")
        values = [np.atleast_1d(np.asarray(source.value(name), dtype=float)) for name in columns]
    finally:
        source.close()
    if len({len(column) for column in values}) > 1:
        raise DynidError(f"{file}: its columns have different lengths; give a number for each joint in every row")
    points = np.column_stack(values)
    return quintics_within(points, limits)

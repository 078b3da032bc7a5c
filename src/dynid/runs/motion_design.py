"""Motions for the command line: designed for a robot, or to improve an earlier result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.excitation import (
    ExcitingMotion,
    Family,
    Fourier,
    Limits,
    Measurement,
    PriorKnowledge,
    Search,
    excite,
    magnitudes,
    read_limits,
)
from dynid.excitation.information import NOISE_SHARE, SPEED_POWER, nominal_base_values
from dynid.excitation.limits.limits_file import space_notes, table_limits
from dynid.excitation.limits.motion_limits import MARGIN
from dynid.excitation.search.experiment_design import nominal_values
from dynid.excitation.standing.options import Standing, refuse_without_feet
from dynid.model import FlexibleModel, Model, complete, flexible_joint_model, make_terms
from dynid.output_fields import array_of, map_of, output_fields, record
from dynid.plain import finite
from dynid.progress import Progress, ProgressCallback, silent
from dynid.quantities import TORQUE_NOISE, check_quantity
from dynid.regression import Regression
from dynid.regression.known import Prior
from dynid.report.pages.motion import LowestPoint, MotionData, used
from dynid.robot import Robot
from dynid.runs.models import reduced_robot
from dynid.runs.motion_improvement import improvement_sentence, improvements
from dynid.runs.result_folder import read_result
from dynid.runs.results import REGRESSION, SETTINGS, load
from dynid.runs.safe_motion import Safety, careful, checked, unchecked, with_warnings
from dynid.runs.settings import RunSettings
from dynid.validate.excited_parameters import standard_errors

ROUNDING_SHARE_OF_TORQUE = 1e-6  # share of a joint's torque below which residuals are rounding errors
_UNMEASURED_NOISE = 1e6  # noise of an unmeasured torque, relative to that of the others
_SLOW_SPEED = 0.5  # share of the velocity limit
_GRID_ROWS = 2000
_HALF_DONE_AFTER = 30.0  # s after which a search without a time limit shows half of its progress bar
INTERRUPTED = ("the search was interrupted; this is the best motion found so far",)


@dataclass(frozen=True, eq=False)
class Earlier:
    """An earlier result to improve.

    Attributes:
        estimate: estimate of the result.
        known: compressed logs of the result, weighted so that with `noise` they give the result's standard errors.
        noise: (dof,), torque noise of the future log, N m.
        scale: (base,), magnitudes of the base parameters, to which standard errors are relative.
        silent: joints whose torque is not measured.
    """

    estimate: Estimate
    known: Regression
    noise: Array
    scale: Array
    silent: tuple[str, ...] = ()


def terms_model(robot: Robot, friction: tuple[str, ...], rotor: bool) -> Model:
    """Return the model of a robot with the requested friction and rotors, or by default with the terms of its file."""
    return Model(robot, make_terms(robot, friction=friction, rotor=rotor, defaults=not (friction or rotor)))


@dataclass(frozen=True, eq=False)
class MotionRequest:
    """Request to `design_motion`.

    Attributes:
        friction, rotor: terms of the model; default: those of the robot file.
        limits, margin: limits file, and share of the robot's own ranges, velocities and torques to keep free.
        improve, trust: folder of an earlier result, see `load`.
        criterion: default 'condition', or 'largest' to improve a result.
        noise: standard deviation of the torques, N m, one number or (dof,).
        home, rate, command: first and last posture (dof,); rate of the log, Hz; command line that repeats the design.
        safety: limits of a motion without a limits file.
        standing: feet of a robot with a free base that stand still, see `dynid.trajectories.Standing`.
    """

    friction: tuple[str, ...] = ()
    rotor: bool = False
    limits: str | Path | None = None
    margin: float | None = None
    improve: str | Path | None = None
    criterion: str | None = None
    noise: ArrayLike | None = None
    home: ArrayLike | None = None
    family: Family = field(default_factory=Fourier)
    search: Search = field(default_factory=Search)
    rate: float = 100.0
    command: str = ""
    trust: bool = False
    safety: Safety = field(default_factory=Safety)
    standing: Standing | None = None


def design_motion(robot: Robot, request: MotionRequest, progress: ProgressCallback = silent) -> MotionData:
    """Return the motion that determines the parameters of a robot best, with the data of its page.

    If an earlier result is improved, the motion reduces the largest standard errors of that result most.
    """
    request = replace(request, search=_with_progress(request, Progress.from_callback(progress)))
    if request.standing is not None:
        from dynid.runs.stance_motion import standing_motion

        return standing_motion(robot, request, request.standing)
    refuse_without_feet(robot)
    if request.improve is not None and (request.friction or request.rotor):
        raise DynidError("--improve takes the terms of the earlier result, so remove --friction and --rotor",
                         code="conflicting-options")
    past = None
    if request.improve is not None:
        robot = _mounted_as(robot, Path(request.improve))
        past = earlier(request.improve, request.rate, checked_noise(request.noise, robot.dof), trust=request.trust)
        if past.known.joints[:robot.dof] != robot.joint_names:
            raise DynidError(f"{request.improve} is the result of another robot, with the joints "
                             f"{', '.join(past.known.joints)}; give a result of this robot", code="another-robot")
    limits, margin_note = limits_for(robot, request.limits, request.margin, request.safety)
    home = None if request.home is None else checked_posture(request.home, limits)
    limits, care = careful(limits, robot, request.safety, home, request.limits is not None)
    flexible = None if past is None else flexible_joint_model(past.estimate.model)
    if past is None:
        data = _for_model(robot, limits, request)
    elif flexible is not None:
        data = _for_flexible(robot, limits, request, flexible, past.estimate)
    else:
        data = _for_earlier(robot, limits, request, past)
    found = data.excitation if home is None else data.excitation.from_home(home)
    notes = (*found.report.unchecked, *(INTERRUPTED if found.interrupted else ()), *space_notes(limits.space),
             *speed_notes(found), *data.notes, *care, *margin_note)
    return with_warnings(replace(data, excitation=found, notes=notes, checked=checked(limits),
                                 unchecked=unchecked(limits)))


def _with_progress(request: MotionRequest, progress: Progress) -> Search:
    """Return the search options with callbacks that report the best value and the progress."""
    search = request.search
    name = request.criterion or ("condition" if request.improve is None else "largest standard error")

    def say(after: float, best: float) -> None:
        share = after / search.budget if search.budget else after / (after + _HALF_DONE_AFTER)
        progress(f"best {name} {best:.5g} after {after:.0f} s", share)
        if search.progress is not None:
            search.progress(after, best)

    progress("building the model" if search.budget is None else f"searching for {search.budget:g} s", 0.0)
    return replace(search, progress=say)


def _for_model(robot: Robot, limits: Limits, request: MotionRequest) -> MotionData:
    """Return a motion for the requested terms, with the values of the robot file."""
    model = terms_model(robot, request.friction, request.rotor)
    found = excite(model, limits, family=request.family, criterion=request.criterion or "condition",
                   measurement=Measurement(request.rate, checked_noise(request.noise, robot.dof)),
                   search=request.search)
    return motion_data(robot, found, request.noise is not None, request.command)


def motion_data(robot: Robot, found: ExcitingMotion, noise_given: bool, command: str) -> MotionData:
    """Return the data of a motion's page, with the values of the robot file."""
    notes = () if noise_given else (
        f"expected standard errors assume a torque noise of {100 * NOISE_SHARE:g} % of each joint's typical torque, "
        "since none was given",)
    return MotionData(motion_title(robot), robot, found, nominal_base_values(found.base),
                      nominal_values(found.model), "robot's file", None, notes, command)


def _for_earlier(robot: Robot, limits: Limits, request: MotionRequest, past: Earlier) -> MotionData:
    """Return the motion that adds most information to the logs of an earlier result, for the values of that result."""
    theta = past.estimate.full
    prior = PriorKnowledge(past.known, nominal=theta, scale=past.scale, base=past.known.base)
    found = excite(past.estimate.model, limits, family=request.family, criterion=request.criterion or "largest",
                   measurement=Measurement(request.rate, past.noise), prior=prior, search=request.search)
    values = np.where(past.estimate.identified, past.estimate.values, np.nan)
    notes = (f"the torque of {', '.join(past.silent)} is assumed not to be measured, as in the earlier logs",
             ) if past.silent else ()
    data = MotionData(motion_title(robot), robot, found, values, theta, "earlier result", past.estimate.std, notes,
                      request.command, past.scale)
    return replace(data, notes=(*notes, improvement_sentence(data)))


def _for_flexible(robot: Robot, limits: Limits, request: MotionRequest, model: FlexibleModel,
                  estimate: Estimate) -> MotionData:
    """Return a motion for an earlier result with flexible joints, which are treated as rigid in the search."""
    theta = model.rigid_values(estimate.full)
    found = excite(model, limits, family=request.family, criterion=request.criterion or "condition",
                   measurement=Measurement(request.rate, checked_noise(request.noise, robot.dof)),
                   prior=PriorKnowledge(nominal=theta), search=request.search)
    notes = ("the earlier logs are not included: their equations have flexible joints, those of the search do not",)
    return MotionData(motion_title(robot), robot, found, found.base.matrix @ theta, theta, "earlier result", None,
                      notes, request.command)


def _mounted_as(robot: Robot, folder: Path) -> Robot:
    """Return the robot with the same joints locked, and the same gravity, as in the run of an earlier result."""
    if not (folder / SETTINGS).is_file():
        return robot
    settings = RunSettings.load(folder / SETTINGS)
    if settings.gravity is not None and settings.gravity != "estimate":
        robot = robot.with_gravity(settings.gravity)
    named = {*settings.only, *settings.lock}
    return reduced_robot(robot, settings.only, settings.lock) if named and named <= set(robot.joint_names) else robot


def limits_for(robot: Robot, file: str | Path | None, margin: float | None,
               safety: Safety | None = None) -> tuple[Limits, tuple[str, ...]]:
    """Return the limits of a motion from a limits file, or those of the robot, and a note on the margin to them."""
    safety = safety or Safety()
    if file is not None and safety.asked:
        raise DynidError("--box, --floor and --radius cannot be combined with a limits file", "set inside, table "
                         "and radius under [space] in that file, or leave the file out")
    limits = table_limits(safety.table(), robot, margin, MARGIN) if file is None else read_limits(
        file, robot, margin, MARGIN)
    kept = (f"a margin of {100 * limits.margin:g} % of the robot's velocities and torques, and of its ranges at both "
            "ends, is kept; change it with --margin")
    return limits, (kept,) if limits.margin > 0 else ()


def speed_notes(found: ExcitingMotion) -> tuple[str, ...]:
    """Return sentences on joints whose friction is excited only far below the velocity limit."""
    slow = [f"{name} ({top:.2g} of {limit:.3g})" for name, (top, limit, both) in top_speeds(found).items()
            if np.isfinite(limit) and top < _SLOW_SPEED * limit]
    if not slow:
        return ()
    return (f"friction at high speed is not excited for {', '.join(slow)} rad/s or m/s: a shorter --duration or more "
            "--harmonics reach higher speeds",)


def top_speeds(found: ExcitingMotion) -> dict[str, tuple[float, float, bool]]:
    """Return top speed, velocity limit, and whether the joint moves in both directions, for each joint with friction.

    Both directions must reach at least half of the top speed.
    """
    dq = found.core.at(np.linspace(0.0, found.core.duration, _GRID_ROWS)).dq
    rubs = sorted({p.owner for p in found.model.parameters if p.body is None and p.unit in SPEED_POWER})
    return {found.limits.names[j]: (float(np.abs(dq[:, j]).max()), float(found.limits.velocity[j]),
                                    bool(min(dq[:, j].max(), -dq[:, j].min()) > 0.5 * np.abs(dq[:, j]).max()))
            for j in rubs}


def motion_title(robot: Robot) -> str:
    return f"A motion for {robot.name}"


def checked_posture(home: ArrayLike, limits: Limits) -> Array:
    """Return the home posture; raise an error if it is not within the limits, before the search."""
    posture = np.asarray(home, dtype=float)
    if posture.shape != (limits.dof,) or not np.isfinite(posture).all():
        raise DynidError(f"the home posture must be {limits.dof} finite numbers, one per joint, got {posture.size}",
                         "give --home Q1,Q2,... in rad or m", code="wrong-home")
    limits.reaching(posture).refuse_outside(posture, "home")
    return posture


def checked_noise(noise: ArrayLike | None, dof: int) -> Array | None:
    """Return the standard deviations of the torque noise (dof,), given as one number or one per joint, or None."""
    if noise is None:
        return None
    values = np.atleast_1d(np.asarray(noise, dtype=float))
    if values.shape not in ((1,), (dof,)) or not np.isfinite(values).all() or not (values > 0).all():
        raise DynidError(f"the noise must be one positive number or {dof}, one per joint, got "
                         f"{', '.join(f'{x:g}' for x in values)}", code="wrong-noise")
    for value in values.tolist():
        check_quantity(TORQUE_NOISE, value, "the noise of a torque")
    return np.broadcast_to(values, (dof,)).copy()


def earlier(folder: str | Path, rate: float, noise: Array | None = None, *, trust: bool = False) -> Earlier:
    """Return an earlier result with the compressed regression of its logs, for a future log at `rate` Hz.

    noise (dof,): torque noise; default: as much information per second as in the earlier logs.
    """
    estimate, settings = load(folder, trust=trust)
    path = Path(folder) / REGRESSION
    fold = read_result(Path(folder), lambda place: Regression.load(place / REGRESSION, estimate.model))
    if fold.base.names != estimate.names:
        raise DynidError(f"{path} does not match the parameters in the same folder; identify again with -o")
    rows = np.maximum(np.array(fold.rows, dtype=float), 1.0)
    power = np.sqrt(np.array([factor.power for factor in fold.factors]) / rows)
    spread = np.maximum(np.sqrt(fold.misfits(estimate.values) / rows),
                        ROUNDING_SHARE_OF_TORQUE * np.maximum(power, 1e-6))
    kept = np.flatnonzero(estimate.identified & (estimate.std > 0))
    if len(kept):
        # Rows of a filtered log are not independent, so its standard errors exceed those of the compressed regression.
        r = fold.stack(1.0 / spread).select(kept).r
        if np.abs(np.diag(r)).min() > 0:
            plain = np.sqrt(np.sum(np.linalg.solve(r, np.eye(len(r))) ** 2, axis=1))
            spread = spread * max(1.0, float(np.median(estimate.std[kept] / plain)))
    if noise is None:
        prepared = settings.prepare
        own = prepared.get("rate", rate) / (
            prepared.get("thin", 1) * prepared.get("decimate", 1) ** prepared.get("stages", 1))
        noise = spread * np.sqrt(rate / own)
    scale = magnitudes(fold.base, complete(estimate.model).robot)
    units = np.array(fold.base.units)
    for unit in set(fold.base.units):
        same = estimate.identified & (units == unit)
        if same.any():
            typical = float(np.sqrt(np.mean(estimate.values[same] ** 2)))
            scale[same] = np.maximum(np.abs(estimate.values[same]), max(0.1 * typical, 1e-12))
    silent = np.array(fold.rows) == 0
    if silent.any():  # a joint without torque adds no information
        noise = np.where(silent, _UNMEASURED_NOISE * noise[~silent].max(), noise)
    factors = tuple(replace(factor, r=factor.r * ratio)
                    for factor, ratio in zip(fold.factors, noise / spread, strict=True))
    names = tuple(name for name, yes in zip(fold.joints, silent, strict=True) if yes)
    known = replace(fold, factors=factors, blocks=())
    return Earlier(estimate, _with_prior_information(known, estimate, noise), noise, scale, names)


def _with_prior_information(known: Regression, estimate: Estimate, noise: Array) -> Regression:
    """Return the regression with additional rows for information from a prior or from constraints.

    If a standard error is below half of that from the logs alone, no motion is needed for that parameter.
    """
    alone = standard_errors(known.stack(1.0 / noise).r)
    is_informed = estimate.identified & (estimate.std > 0) & (estimate.std < 0.5 * alone)
    if not is_informed.any():
        return known
    std = estimate.std[is_informed]
    matrix = np.zeros((len(std), len(known.base)))
    matrix[np.arange(len(std)), np.flatnonzero(is_informed)] = np.sqrt(1.0 / std ** 2 - 1.0 / alone[is_informed] ** 2)
    values = matrix @ estimate.values
    if known.prior is None:
        return replace(known, prior=Prior(matrix, values, {}))
    prior = known.prior
    return replace(known, prior=replace(prior, matrix=np.vstack([prior.matrix, matrix]),
                                        values=np.concatenate([prior.values, values])))


_EXPECTED = record("ExpectedParameter", optional=("before",), std=float | None, relative=float | None,
                   unit=str, before=float | None)
_USED_LIMIT = record("UsedLimit", kind=str, where=str, value=float | None, bound=float | None, time=float | None,
                     used=float | None)
_TOP_SPEED = record("TopSpeed", top=float, limit=float | None, both_ways=bool)
_CHECKED_LINK = record("CheckedLink", link=str, checked=list[str], radius=float | None, reason=str)
_IMPROVED = record("ImprovedParameter", name=str, before=float | None, after=float | None, times=float | None)


@output_fields(optional=("improves",), robot=str, checked=str, unchecked=str, warnings=list[str],
               lowest=LowestPoint | None, links=array_of(_CHECKED_LINK), unchanged_contacts=list[str], criterion=str,
               value=float | None,
               condition=float | None, duration=float, seconds=float, starts=int, seed=int, interrupted=bool,
               rate=float, noise=list[float], expected=map_of(_EXPECTED), limits=array_of(_USED_LIMIT), margin=float,
               speeds=map_of(_TOP_SPEED), improves=array_of(_IMPROVED), history=list[list[float | None]],
               notes=list[str])
def motion_facts(data: MotionData) -> dict[str, Any]:
    """Return the motion as the object that `dynid excite --json` prints."""
    found, space = data.excitation, data.excitation.limits.space
    before = [None] * len(found.base) if data.before is None else data.before.tolist()
    return {
        "robot": data.robot.name, "checked": data.checked, "unchecked": data.unchecked, "warnings": list(data.warnings),
        "lowest": None if data.lowest is None else data.lowest.to_dict(),
        "links": [{"link": one.link, "checked": list(one.checked), "radius": finite(one.radius), "reason": one.reason}
                  for one in (() if space is None else space.links)],
        "unchanged_contacts": [] if space is None else list(space.skipped),
        "criterion": found.criterion, "value": finite(found.value),
        "condition": finite(found.condition), "duration": found.trajectory.duration,
        "seconds": found.elapsed, "starts": found.starts, "seed": found.seed, "interrupted": found.interrupted,
        "rate": found.rate, "noise": found.noise.tolist(),
        "expected": {name: {"std": finite(std), "relative": finite(relative), "unit": unit,
                            **({} if data.before is None else {"before": finite(earlier_std)})}
                     for name, std, relative, unit, earlier_std in zip(
                         found.base.names, found.std, data.relative, found.base.units, before, strict=True)},
        "limits": [{"kind": u.kind, "where": u.where, "value": finite(u.value), "bound": finite(u.bound),
                    "time": u.time, "used": used(u)} for u in found.report.usages],
        "margin": found.limits.margin,
        "speeds": {name: {"top": top, "limit": finite(limit), "both_ways": both}
                   for name, (top, limit, both) in top_speeds(found).items()},
        **({} if data.before is None else {"improves": [
            {"name": one.name, "before": one.before, "after": one.after, "times": finite(one.times)}
            for one in improvements(data)]}),
        "history": [list(step) for step in found.history], "notes": list(data.notes)}


NAMED_MOTION = record("NamedMotion", motion_facts, kind=str)  # output of `dynid motion --json`

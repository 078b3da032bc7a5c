"""Motions for the command line: designed for a robot, or to improve an earlier result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.excitation import (
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
from dynid.excitation.exciting_motion import nominal_base_values
from dynid.excitation.limits.limits_file import LimitsTable, limits_of, space_notes
from dynid.model import Model, Parameters, complete, make_terms
from dynid.regression import Regression
from dynid.report.pages.motion import MotionData, used
from dynid.robot import Robot
from dynid.runs.results import REGRESSION, load

_ROUNDING = 1e-6  # share of a joint's torque below which residuals are rounding
_INTERRUPTED = ("the search was interrupted; this is the best motion so far",)


@dataclass(frozen=True, eq=False)
class Earlier:
    """An earlier result to improve. noise (dof,): of the torques of the log to come, N m. known: its logs, weighted so
    that with this noise they give its own deviations. scale (base,): sizes of its parameters, which deviations are
    measured by."""

    estimate: Estimate
    known: Regression
    noise: Array
    scale: Array


def terms_model(robot: Robot, friction: tuple[str, ...], rotor: bool) -> Model:
    """A robot with the friction and rotors asked for, or with the terms of its own file where none is."""
    return Model(robot, make_terms(robot, friction=friction, rotor=rotor, defaults=not (friction or rotor)))


@dataclass(frozen=True, eq=False)
class MotionRequest:
    """What is asked of `design_motion`. friction, rotor: terms of the model, those of the robot's file where none are
    asked for. limits: a file over the robot's own. improve: folder of an earlier result. criterion: 'condition', or
    'largest' to improve a result, unless given. noise: deviation of the torques, N m, one number or (dof,). home:
    posture (dof,) to come from and go back to. rate: of the log to come, Hz. command: repeats it at the command line.
    """

    friction: tuple[str, ...] = ()
    rotor: bool = False
    limits: str | Path | None = None
    improve: str | Path | None = None
    criterion: str | None = None
    noise: ArrayLike | None = None
    home: ArrayLike | None = None
    family: Family = field(default_factory=Fourier)
    search: Search = field(default_factory=Search)
    rate: float = 100.0
    command: str = ""


def design_motion(robot: Robot, request: MotionRequest) -> MotionData:
    """The motion that tells most about a robot, or the one that lowers the largest deviations of an earlier result
    most, with what its page shows."""
    limits = limits_of(LimitsTable(), robot) if request.limits is None else read_limits(request.limits, robot)
    home = None if request.home is None else _posture(request.home, limits)
    designed = _for_model if request.improve is None else _for_earlier
    data = designed(robot, limits, request)
    found = data.excitation if home is None else data.excitation.from_home(home)
    notes = (*found.report.unchecked, *(_INTERRUPTED if found.interrupted else ()), *space_notes(limits, robot),
             *data.notes)
    return replace(data, excitation=found, notes=notes)


def _for_model(robot: Robot, limits: Limits, request: MotionRequest) -> MotionData:
    """A motion for the terms asked for, with the values of the robot's file."""
    model = terms_model(robot, request.friction, request.rotor)
    found = excite(model, limits, family=request.family, criterion=request.criterion or "condition",
                   measurement=Measurement(request.rate, noise_of(request.noise, robot.dof)), search=request.search)
    notes = () if request.noise is not None else (
        "expected deviations are for a torque noise of 1 N m (or N), since none was given",)
    return MotionData(_title(robot), robot, found, nominal_base_values(found.base), known_values(model.parameters),
                      "robot's file", None, notes, request.command)


def _for_earlier(robot: Robot, limits: Limits, request: MotionRequest) -> MotionData:
    """A motion that adds most to the logs of an earlier result, with its values."""
    if request.friction or request.rotor:
        raise DynidError("--improve takes the terms of the earlier result, so leave out --friction and --rotor")
    assert request.improve is not None
    past = earlier(request.improve, request.rate, noise_of(request.noise, robot.dof))
    if past.known.joints != robot.joint_names:
        raise DynidError(f"{request.improve} is a result of another robot, with the joints "
                         f"{', '.join(past.known.joints)}")
    theta = past.estimate.full
    prior = PriorKnowledge(past.known, nominal=theta, scale=past.scale, base=past.known.base)
    found = excite(past.estimate.model, limits, family=request.family, criterion=request.criterion or "largest",
                   measurement=Measurement(request.rate, past.noise), prior=prior, search=request.search)
    values = np.where(past.estimate.identified, past.estimate.values, np.nan)
    return MotionData(_title(robot), robot, found, values, theta, "earlier result", past.estimate.std, (),
                      request.command)


def _title(robot: Robot) -> str:
    return f"A motion for {robot.name}"


def _posture(home: ArrayLike, limits: Limits) -> Array:
    """The home posture, refused before the search rather than after it."""
    posture = np.asarray(home, dtype=float)
    if posture.shape != (limits.dof,) or not np.isfinite(posture).all():
        raise DynidError(f"the home posture must be {limits.dof} finite numbers, one a joint, got {posture.size}")
    outside = (posture < limits.lower) | (posture > limits.upper)
    if outside.any():
        j = int(np.argmax(outside))
        raise DynidError(f"the home posture puts joint '{limits.names[j]}' at {posture[j]:g}, outside its limits "
                         f"{limits.lower[j]:g} to {limits.upper[j]:g}")
    return posture


def noise_of(noise: ArrayLike | None, dof: int) -> Array | None:
    """One number or one a joint, checked."""
    if noise is None:
        return None
    values = np.atleast_1d(np.asarray(noise, dtype=float))
    if values.shape not in ((1,), (dof,)) or not np.isfinite(values).all() or not (values > 0).all():
        raise DynidError(f"the noise must be one number above zero or {dof}, one a joint, got "
                         f"{', '.join(f'{x:g}' for x in values)}")
    return np.broadcast_to(values, (dof,)).copy()


def earlier(folder: str | Path, rate: float, noise: Array | None = None) -> Earlier:
    """An earlier result from its folder, with the fold of its logs, for a log to come at `rate` (Hz).

    noise (dof,): of its torques; without it, a second of that log tells as much as a second of the earlier ones.
    """
    estimate, settings = load(folder)
    path = Path(folder) / REGRESSION
    fold = Regression.load(path, estimate.model)
    if fold.base.names != estimate.names:
        raise DynidError(f"{path} does not fit the parameters beside it; identify it again with -o")
    rows = np.maximum(np.array(fold.rows, dtype=float), 1.0)
    power = np.sqrt(np.array([factor.power for factor in fold.factors]) / rows)
    spread = np.maximum(np.sqrt(fold.misfits(estimate.values) / rows), _ROUNDING * np.maximum(power, 1e-6))
    kept = np.flatnonzero(estimate.identified & (estimate.std > 0))
    if len(kept):
        # Rows of a filtered log are not independent: its deviations are wider than the fold alone says.
        r = fold.stack(1.0 / spread).select(kept).r
        if np.abs(np.diag(r)).min() > 0:
            plain = np.sqrt(np.sum(np.linalg.solve(r, np.eye(len(r))) ** 2, axis=1))
            spread = spread * max(1.0, float(np.median(estimate.std[kept] / plain)))
    if noise is None:
        prepared = settings.prepare
        own = prepared.get("rate", rate) / (prepared.get("thin", 1) * prepared.get("decimate", 1))
        noise = spread * np.sqrt(rate / own)
    factors = tuple(replace(factor, r=factor.r * ratio)
                    for factor, ratio in zip(fold.factors, noise / spread, strict=True))
    known = replace(fold, factors=factors, blocks=())
    scale = magnitudes(fold.base, complete(estimate.model).robot)
    units = np.array(fold.base.units)
    for unit in set(fold.base.units):
        same = estimate.identified & (units == unit)
        if same.any():
            typical = float(np.sqrt(np.mean(estimate.values[same] ** 2)))
            scale[same] = np.maximum(np.abs(estimate.values[same]), max(0.1 * typical, 1e-12))
    return Earlier(estimate, known, noise, scale)


def known_values(parameters: Parameters) -> Array | None:
    """The parameters of the robot's file (parameters,), zero where friction is not known; None without inertias."""
    if any(p.nominal is None for p in parameters if p.body is not None):
        return None
    return np.array([0.0 if p.nominal is None else p.nominal for p in parameters])


def motion_facts(data: MotionData) -> dict[str, Any]:
    """The motion as the object that `dynid excite --json` prints."""
    found = data.excitation
    before = [None] * len(found.base) if data.before is None else data.before.tolist()
    return {
        "robot": data.robot.name, "criterion": found.criterion, "value": _finite(found.value),
        "condition": _finite(found.condition), "duration": found.trajectory.duration,
        "seconds": found.elapsed, "starts": found.starts, "seed": found.seed, "interrupted": found.interrupted,
        "rate": found.rate, "noise": found.noise.tolist(),
        "expected": {name: {"deviation": _finite(std), "relative": _finite(relative), "unit": unit,
                            **({} if data.before is None else {"before": _finite(earlier_std)})}
                     for name, std, relative, unit, earlier_std in zip(
                         found.base.names, found.deviations, data.relative, found.base.units, before, strict=True)},
        "limits": [{"kind": u.kind, "where": u.where, "value": _finite(u.value), "bound": _finite(u.bound),
                    "time": u.time, "used": used(u)} for u in found.report.usages],
        "history": [list(step) for step in found.history], "notes": list(data.notes)}


def _finite(x: float | None) -> float | None:
    return float(x) if x is not None and math.isfinite(x) else None

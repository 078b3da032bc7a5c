"""Motions for the command line: designed for a robot, or to improve an earlier result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.excitation import Limits, excite, magnitudes, read_limits
from dynid.excitation.limits_file import LimitsTable, limits_of, space_notes
from dynid.model import Model, Parameters, complete, make_terms
from dynid.regression import BaseParameters, Regression
from dynid.report.motion import MotionData, used
from dynid.robot import Robot
from dynid.runs.results import REGRESSION, load

Progress = Callable[[float, float], None]

_FAINT = 1e-6  # share of a joint's torque below which residuals are rounding


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


def design_motion(robot: Robot, *, friction: tuple[str, ...] = (), rotor: bool = False,
                  limits: str | Path | None = None, improve: str | Path | None = None, criterion: str | None = None,
                  noise: ArrayLike | None = None, home: ArrayLike | None = None,
                  progress: Progress | None = None, command: str = "", **options: Any) -> MotionData:
    """The motion that tells most, or with `improve` the one that lowers the largest deviations of an earlier result
    most. limits: a file over the robot's own. options: of `excite`."""
    bounds = limits_of(LimitsTable(), robot) if limits is None else read_limits(limits, robot)
    if home is not None:
        options["home"] = _posture(home, bounds)
    notes = space_notes(bounds, robot)
    if improve is None:
        model = terms_model(robot, friction, rotor)
        found = excite(model, bounds, criterion=criterion or "condition", noise=noise_of(noise, robot.dof),
                       progress=progress, **options)
        theta, whose, before = known_values(model.parameters), "robot's file", None
        values = base_values(found.base)
        if noise is None:
            notes = (*notes, "expected deviations are for a torque noise of 1 N m (or N), since none was given")
    else:
        if friction or rotor:
            raise DynidError("--improve takes the terms of the earlier result, so leave out --friction and --rotor")
        past = earlier(improve, options.get("rate", 100.0), noise_of(noise, robot.dof))
        if past.known.joints != robot.joint_names:
            raise DynidError(f"{improve} is a result of another robot, with the joints {', '.join(past.known.joints)}")
        theta, whose, before = past.estimate.full, "earlier result", past.estimate.std
        found = excite(past.estimate.model, bounds, criterion=criterion or "largest", progress=progress,
                       noise=past.noise, scale=past.scale, known=past.known, base=past.known.base, nominal=theta,
                       **options)
        values = np.where(past.estimate.identified, past.estimate.values, np.nan)
    if found.interrupted:
        notes = ("the search was interrupted; this is the best motion so far", *notes)
    return MotionData(f"A motion for {robot.name}", robot, found, values, theta, whose, before,
                      (*found.report.unchecked, *notes), command)


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
    if not path.is_file():
        raise DynidError(f"{folder} holds no {REGRESSION}, which has what its logs told; identify it again with -o")
    fold = Regression.load(path, estimate.model)
    if fold.base.names != estimate.names:
        raise DynidError(f"{path} does not fit the parameters beside it; identify it again with -o")
    rows = np.maximum(np.array(fold.rows, dtype=float), 1.0)
    power = np.sqrt(np.array([factor.power for factor in fold.factors]) / rows)
    spread = np.maximum(np.sqrt(fold.misfits(estimate.values) / rows), _FAINT * np.maximum(power, 1e-6))
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
    known = replace(fold, factors=factors, blocks=(factors,))
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


def base_values(base: BaseParameters) -> Array:
    """Base values of the robot's file (base,), nan where a part of one is not known."""
    nominal = np.array([np.nan if p.nominal is None else p.nominal for p in base.parameters])
    return np.array([row[row != 0] @ nominal[row != 0] for row in base.matrix])


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

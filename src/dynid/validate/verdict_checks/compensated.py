"""Torques without gravity, because a recorder or driver has removed the gravity torque."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem
from dynid.findings import Finding
from dynid.lapack import column_space
from dynid.model import robot_model
from dynid.recording.decimate import decimated
from dynid.regression.factor import sums_without_each, triangular
from dynid.validate.gains import nominal_bodies
from dynid.validate.hypotheses.gravity import estimate_gravity, with_gravity
from dynid.validate.hypotheses.weigh import hypothesis_excerpt, without_gravity
from dynid.validate.thresholds import (
    CARRIED_GRAVITY,
    CERTAIN_STANDARD_ERRORS,
    GRAVITY_TURNED,
    MAX_GRAVITY_LEFT,
    MAX_GRAVITY_PART,
)
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.verdict_checks.exchanged_columns import excerpt_trial, is_unrelated
from dynid.validate.verdict_checks.signals import degrees_for_radians
from dynid.validate.words import joints_listed

_GRAVITY_ROWS = 2000  # rows of the longest log
_GRAVITY_BLOCKS = 8  # contiguous blocks of these rows for the standard error
_MIN_DIRECTION = 1e-3  # ratio to the largest singular value below which a direction of gravity is not excited


@dataclass(frozen=True)
class GravityShare:
    """The share of its nominal gravity torque that a joint's torque contains, for any mounting of the robot.

    Attributes:
        joint: index of the joint, from 0.
        share, std: the share, and its standard error.
        part: RMS of the part of the torque that only gravity explains, over the RMS of the torque about its mean.
        size: the same ratio for nominal gravity in the direction of the robot file.
    """

    joint: int
    share: float
    std: float
    part: float
    size: float


def gravity_removed(case: Case) -> Iterator[Finding]:
    """Report torques without gravity at all joints that nominal gravity loads, unless positions are in degrees, another
    direction of gravity explains more, or the model does not explain the torques without gravity either."""
    if any(True for _ in degrees_for_radians(case)):
        return
    shares = [one for one in gravity_shares(case.problem) if one.size > CARRIED_GRAVITY]
    without = [one for one in shares if one.share < MAX_GRAVITY_LEFT and one.part < MAX_GRAVITY_PART
               and 0.5 - one.share > CERTAIN_STANDARD_ERRORS * one.std]
    if not without or len(without) < len(shares):
        return
    best = estimate_gravity(case.problem, tuple(map(decimated, hypothesis_excerpt(case.problem.data))),
                            prefers_axes=True)
    if not best.is_removed or is_unrelated(case, excerpt_trial(case, without_gravity())):
        return
    x, y, z = best.vector
    doubt = f". One of: this, or gravity acts along ({x:.2f}, {y:.2f}, {z:.2f}) m/s^2; give it with --gravity" \
        if best.is_ambiguous and best.angle > GRAVITY_TURNED else ""
    names = [case.reconstruction.joints[one.joint].name for one in without]
    most = max(one.share for one in without)
    yield suspect("gravity-removed", "gravity removed", joints_listed(names),
                  f"the torque of {joints_listed(names)} contains no gravity (at most {most:.0%} of that of the "
                  "nominal model, in any direction), so the recorder or driver probably removes it: record measured "
                  f"torques{doubt}",
                  severity="fatal", joints=names, evidence={"share": each([one.share for one in without])})


def gravity_shares(problem: Problem) -> tuple[GravityShare, ...]:
    """Return the gravity share of each joint with nominal gravity and a measured torque; empty without nominal bodies.

    tau = sum_k a_k gravity_k + b (nominal torque without gravity) + offset, friction and rotor is fitted for each
    joint, with gravity along x, y and z of the base. |a| is near one for complete torques, zero for removed gravity.
    """
    model = problem.model
    theta, own = nominal_bodies(problem)[0], robot_model(model)
    size = 0.0 if own is None else float(np.linalg.norm(own.robot.gravity))
    if own is None or not problem.data or not np.any(theta) or size == 0.0:
        return ()
    part = max(problem.data, key=len)
    rows = np.linspace(0, len(part) - 1, min(_GRAVITY_ROWS, len(part))).astype(int)
    q, dq, ddq = part.q[rows], part.dq[rows], part.ddq[rows]
    still = np.zeros_like(q)
    gravity = np.stack([with_gravity(own, axis).inverse_dynamics(theta, q, still, still)
                        for axis in size * np.eye(3)], axis=2)
    rest = with_gravity(own, np.zeros(3)).inverse_dynamics(theta, q, dq, ddq)
    found = []
    for j in range(model.dof):
        keep = part.keep[rows, j]
        speed = dq[keep, j]
        columns = np.column_stack([rest[keep, j], np.ones_like(speed), speed, np.sign(speed), ddq[keep, j]])
        one = _share(part.tau[rows[keep], j], gravity[keep, j], columns, np.asarray(own.robot.gravity) / size)
        if one is not None:
            found.append(GravityShare(j, *one))
    return tuple(found)


def _share(tau: Array, gravity: Array, own: Array, down: Array) -> tuple[float, float, float, float] | None:
    """Return the norm of the coefficients of gravity (rows, 3) fitted with the other columns, its jackknife standard
    error over blocks of time, and the relative sizes of two parts of the torque: the part that follows gravity, and the
    part that only gravity along `down` (3,) can explain."""
    own = own[:, np.any(own, axis=0)]
    if len(tau) < 10 * (own.shape[1] + 3) or not np.ptp(tau) > 0 or not np.any(gravity):
        return None
    basis = column_space(own, 1e-9)
    alone = gravity - basis @ (basis.T @ gravity)
    nominal = float(np.linalg.norm(alone @ down))
    power, whole = np.sum(alone ** 2, axis=0), float(np.sum(gravity ** 2))
    alone, power = alone[:, power > 1e-6 * whole], power[power > 1e-6 * whole]
    if not len(power):
        return None
    scale = float(np.sqrt(power.max()))

    def fit(r: Array) -> Array:
        return np.asarray(np.linalg.lstsq(r[:, :-1], r[:, -1], rcond=_MIN_DIRECTION)[0][:len(power)] / scale)

    blocks = np.array_split(np.column_stack([alone / scale, basis, tau]), _GRAVITY_BLOCKS)
    factors = [triangular(block) for block in blocks]
    coefficients = fit(triangular(*factors))
    others = np.array([fit(r) for r in sums_without_each(factors, triangular)])
    spread = np.sum((others - others.mean(axis=0)) ** 2) * (_GRAVITY_BLOCKS - 1) / _GRAVITY_BLOCKS
    unit = np.sqrt(len(tau)) * float(np.std(tau))
    return (float(np.linalg.norm(coefficients)), float(np.sqrt(spread)),
            float(np.linalg.norm(alone @ coefficients)) / unit, nominal / unit)

"""Marks in the plots of a log: gaps, torques at a limit, slow rows, stuck encoders; and the torque at rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.dynamics import gravity
from dynid.recording import Recording
from dynid.recording.preparation.selection import at_limit, found_limits, longer_than, moving_joints, moving_speeds
from dynid.recording.stuck import hanging_positions
from dynid.report.thin import runs
from dynid.robot import Robot
from dynid.studio.tasks.numbers import plain

GAP_INTERVALS = 5.0  # intervals
_MIN_SLOW_TIME = 0.1  # s below which slow motion is a turning point, no stretch
_MIN_REST_TIME = 0.25  # s that every joint stands still
MAX_MARKS = 200  # marks of one kind
# of a joint's largest torque that gravity has to make, for its torque at rest to say something
_MIN_GRAVITY_SHARE = 0.05
# share of gravity in the torque at rest: hardly any, or with the wrong sign
_NO_GRAVITY_SHARE, _WRONG_SIGN_SHARE = 0.25, -0.25


def speeds(recording: Recording) -> Array:
    """Return velocities (samples, dof): as logged, or by differences over a few samples."""
    if recording.dq is not None:
        return recording.dq
    if len(recording) < 3:
        return np.zeros_like(recording.q)
    raw = np.gradient(recording.q, recording.t, axis=0)
    width = max(1, round(0.02 * recording.rate))
    kernel = np.ones(width) / width
    return np.stack([np.convolve(column, kernel, mode="same") for column in raw.T], axis=1)


def marks(recording: Recording, dq: Array) -> list[dict[str, Any]]:
    """Return time intervals with remarks."""
    return [*_gaps(recording), *_saturated(recording), *_hanging(recording), *_slow(recording, dq),
            *_dropped(recording)]


def _mark(kind: str, joint: str | None, start: float, stop: float, sentence: str) -> dict[str, Any]:
    return {"kind": kind, "joint": joint, "start": float(start), "stop": float(stop), "sentence": sentence}


def _gaps(one: Recording) -> list[dict[str, Any]]:
    steps = np.diff(one.t)
    if not len(steps):
        return []
    found = np.flatnonzero(steps > GAP_INTERVALS * np.median(steps))[:MAX_MARKS]
    return [_mark("gap", None, one.t[k], one.t[k + 1], f"no sample for {steps[k]:.3g} s from {one.t[k]:.4g} s on")
            for k in found]


def _stretches(one: Recording, mask: Bools) -> list[tuple[float, float]]:
    return [(float(one.t[a]), float(one.t[b - 1])) for a, b in runs(mask)][:MAX_MARKS]


def _saturated(one: Recording) -> list[dict[str, Any]]:
    lower, upper = found_limits(one.tau, 5)
    hit, made = at_limit(one.tau, lower, upper, 5), []
    for j, name in enumerate(one.joints):
        limit = " and ".join(f"{x:.4g}" for x in (lower[j], upper[j]) if np.isfinite(x))
        made += [_mark("saturation", name, a, b, f"the torque of {name} is at "
                                                 f"its limit of {limit} from "
                                                 f"{a:.4g} to {b:.4g} s: "
                                                 "these rows are not used") for a, b in _stretches(one, hit[:, j])]
    return made


def _hanging(one: Recording) -> list[dict[str, Any]]:
    return [_mark("stuck", one.joints[hang.joint], one.t[hang.start], one.t[hang.stop - 1],
                  f"the position of {one.joints[hang.joint]} does not change from {one.t[hang.start]:.4g} s on while "
                  "the joint probably moves: the encoder may be stuck")
            for hang in hanging_positions(one.t, one.q)[:MAX_MARKS]]


def _slow(one: Recording, dq: Array) -> list[dict[str, Any]]:
    moving = moving_joints(one.q)
    slow, made = moving_speeds(dq, np.ones(dq.shape, dtype=bool)), []
    rows = max(2, round(_MIN_SLOW_TIME * one.rate))
    for j in np.flatnonzero(moving):
        name = one.joints[j]
        made += [_mark("slow", name, a, b, f"{name} hardly moves from {a:.4g} to {b:.4g} s: the sign of Coulomb "
                                           "friction is undefined there, so these rows are not used")
                 for a, b in _stretches(one, longer_than(np.abs(dq[:, j]) < slow[j], rows))]
    return made


def _dropped(one: Recording) -> list[dict[str, Any]]:
    """Return rows that could not be used; their times are unknown, so they are marked at the start of the log."""
    first = float(one.t[0]) if len(one) else 0.0
    return [_mark("dropped", None, first, first, f"row {row.row} is ignored: {row.why}") for row in one.dropped_rows]


def standstill(recording: Recording, dq: Array, robot: Robot) -> dict[str, Any] | None:
    """Compare the torque at rest with the gravity of the nominal model, joint by joint; None without rest or
    inertias. The ratio is near one for correct torques, negative for a wrong sign, and near zero for torques without
    gravity.
    """
    if robot.bodies_without_inertia or robot.followers is not None or not len(recording):
        return None
    slow = np.maximum(moving_speeds(dq, np.ones(dq.shape, dtype=bool)), 1e-4)
    still = longer_than(np.all(np.abs(dq) < slow, axis=1), max(3, round(_MIN_REST_TIME * recording.rate)))
    if not still.any():
        return None
    stretches = runs(still)
    tau = np.array([recording.tau[a:b].mean(axis=0) for a, b in stretches])
    weight = gravity(robot, robot.inertias, np.array([recording.q[a:b].mean(axis=0) for a, b in stretches]))
    joints, said = [], []
    top = np.abs(recording.tau).max(axis=0)
    for j, name in enumerate(recording.joints):
        power = float(weight[:, j] @ weight[:, j])
        loaded = np.sqrt(power / len(weight)) > _MIN_GRAVITY_SHARE * top[j] > 0.0
        share = float(tau[:, j] @ weight[:, j]) / power if loaded else None
        joints.append({"name": name, "torque": plain(tau[:, j].mean()), "gravity": plain(weight[:, j].mean()),
                       "share": share})
        if share is not None and share < _WRONG_SIGN_SHARE:
            said.append(f"the torque of {name} at rest has the opposite sign of gravity: set torque_sign to -1, or "
                        "sign to -1 if its position is reversed too")
        elif share is not None and share < _NO_GRAVITY_SHARE:
            said.append(f"the torque of {name} at rest contains almost no gravity torque: check whether the driver "
                        "removes it")
    sentence = "; ".join(said) or "the torques at rest agree with the weight of the robot"
    return {"seconds": float(sum(recording.t[b - 1] - recording.t[a] for a, b in stretches)), "joints": joints,
            "sentence": sentence, "suspicious": bool(said)}

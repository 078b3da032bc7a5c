"""Faults of the sensors of a robot with a free base, each estimated together with the parameters.

A fault has a small number of unknowns: the gain of a foot sensor, its offset, the position of a foot's frame, or the
mounting of an IMU. Residuals are linear in small unknowns. Their derivatives are computed by preparing the log with the
fault. The part that the robot's parameters explain is removed from derivatives and residuals. The fault that explains
most of the remaining residual is reported if it is significant and relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimate import Estimate, Problem
from dynid.findings import Finding
from dynid.floating.base_signals import FloatingLog
from dynid.floating.contact_checks import contact_findings
from dynid.floating.preparation import WholeBody, expanded
from dynid.floating.whole_body import whole_bodies
from dynid.model import Model, robot_model
from dynid.recording import Samples
from dynid.recording.sample_preparation import on_grid, prepare_gridded
from dynid.robot import Robot

FAULT_ROWS = 1500  # samples of a log at which faults are compared: enough for a few unknowns
FAULT_BLOCKS = 12  # intervals of time whose scores give standard errors in spite of autocorrelation
SIGNIFICANT_FAULT = 5.0  # standard errors of the largest component of a fault
MIN_EXPLAINED = 0.08  # share of the squared residuals that a fault has to explain
LARGEST_SENSOR_BIAS = 0.3  # m/s^2: 30 mg, which calibrated accelerometers do not have
MAX_FAULTS = 3  # largest number of reported faults


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault with a few unknowns.

    Attributes:
        code: code of the finding.
        where: name of the affected frame.
        unit: unit of the unknowns.
        step: step of each unknown for numerical derivatives, in `unit`.
        material: size above which the fault is relevant, in `unit`.
        largest: size above which the linearisation is not valid, in `unit`.
        count: number of unknowns.
        apply: returns the log corrected for a fault of a given size (count,).
        sentence: format of the size as text.
    """

    code: str
    where: str
    unit: str
    step: float
    material: float
    largest: float
    count: int
    apply: Callable[[FloatingLog, Array], FloatingLog]
    sentence: str


def floating_findings(problem: Problem, estimate: Estimate) -> list[Finding]:
    """Return findings on contacts and sensors in the logs of a robot with a free base."""
    found: list[Finding] = []
    bodies = whole_bodies(problem.recordings)
    model = robot_model(problem.model)
    if len(bodies) != len(problem.data) or model is None:
        return found
    for whole, samples in zip(bodies, problem.data, strict=True):
        faults = list(_constant_forces(whole, samples.source))
        if not faults:  # otherwise the missing force dominates the residuals
            faults = list(_turned_imu(whole, samples.source))
            # An IMU that is mounted differently explains its other errors.
            faults += [one for one in sensor_findings(whole, samples, model, estimate)
                       if not (faults and one.code.startswith("imu-"))]
        # A foot whose frame is misplaced also seems to slip.
        misplaced = {one.title.replace(_FAULT_TITLES[one.code], "foot slips")
                     for one in faults if one.code == "foot-frame"}
        found += [one for one in contact_findings(whole, samples) if one.title not in misplaced]
        found += faults
    return found


def _constant_forces(whole: WholeBody, source: str) -> Iterator[Finding]:
    """Yield a finding on each foot sensor with a component that never changes while its other components do."""
    if whole.equations == "projected":
        return  # forces are not used
    for wrench in whole.log.wrenches:
        values = np.asarray(wrench.values)
        # Components in the axes of a foot; an unloaded sensor is constant in all of them.
        still = np.ptp(values, axis=0) == 0.0
        if not np.any(still) or np.all(still):
            continue
        lost = [name for name, is_still in zip(_COMPONENTS, still, strict=False) if is_still]
        other = ("; equations without contact forces do not need it: --set floating.equations=projected"
                 if whole.log.tau is not None and whole.log.contacts else "")
        yield Finding("foot-force-constant", "problem", "warning", f"The {', '.join(lost)} at '{wrench.frame}' has "
                      f"the same value throughout {source}, while the other components change: its column is "
                      "consistent with a missing or wrong signal. Map the right columns with --set "
                      f"'log.foot_force=[...]'{other}.", f"constant force ({wrench.frame})", logs=(source,),
                      evidence={"components": tuple(map(float, np.flatnonzero(still)))})


def _turned_imu(whole: WholeBody, source: str) -> Iterator[Finding]:
    """Yield a finding on a removed accelerometer bias that is too large: the IMU is probably mounted differently."""
    imu = whole.log.imu
    if whole.log.base_motion != "imu" or imu is None or imu.bias is None or imu.bias_std is None:
        return
    bias, std = np.asarray(imu.bias)[3:], np.asarray(imu.bias_std)[3:]
    mean = np.mean(np.asarray(imu.specific_force), axis=0)
    level = bias - mean * float(bias @ mean) / float(mean @ mean)
    size = float(np.linalg.norm(level))
    if size < LARGEST_SENSOR_BIAS or size < SIGNIFICANT_FAULT * float(std.max()):
        return
    turn = np.cross(bias, mean) / float(mean @ mean)
    values = ", ".join(f"{value:.3g}" for value in turn)
    yield Finding("imu-mounting", "problem", "warning", f"The horizontal bias of the specific force of {source} is "
                  f"{size:.2g} m/s^2, more than sensors usually have: consistent with axes that are rotated by "
                  f"({values}) rad from the frame '{imu.frame}'. The estimate corrects the bias but not the rotation: "
                  f"{_REMEDIES['imu-mounting']}.", f"{_FAULT_TITLES['imu-mounting']} ({imu.frame})", logs=(source,),
                  evidence={"values": tuple(map(float, turn)), "bias": size})


def sensor_findings(whole: WholeBody, samples: Samples, model: Model, estimate: Estimate) -> list[Finding]:
    """Return findings on foot sensors, foot frames and the IMU of one log."""
    rows = np.linspace(0, len(samples) - 1, min(FAULT_ROWS, len(samples))).astype(int)
    theta = estimate.full
    residual, noise, keep = _residuals(samples, model, theta, rows)
    weight = np.where(keep, 1.0 / noise, 0.0)
    place = np.broadcast_to(samples.t[rows, None], keep.shape)[keep]
    regressor = _mixed(samples, rows, model.regressor(*(getattr(samples, name)[rows] for name in ("q", "dq", "ddq"))))
    columns = (regressor[:, :, estimate.base.independent] * weight[:, :, None])[keep]
    known, _ = np.linalg.qr(columns)
    r = (residual * weight)[keep]
    r -= known @ (known.T @ r)
    found: list[Finding] = []
    derivatives: dict[Fault, Array] = {}
    for fault in _faults(whole):
        with suppress(DynidError):
            derivatives[fault] = _derivative(whole, samples, model, theta, rows, fault, residual, weight, keep)
    for _ in range(MAX_FAULTS):
        tried = [one for one in (_tested(fault, own, known, r, place) for fault, own in derivatives.items())
                 if one is not None and np.abs(one.values).max() <= one.fault.largest]
        best = max(tried, key=lambda one: one.explained, default=None)
        if best is None or best.explained < MIN_EXPLAINED or best.significance < SIGNIFICANT_FAULT or \
                np.abs(best.values).max() < best.fault.material:
            break
        found.append(_finding(best, samples.source))
        extra = derivatives.pop(best.fault)
        known, _ = np.linalg.qr(np.column_stack([known, extra - known @ (known.T @ extra)]))
        r = r - known @ (known.T @ r)
    return found


@dataclass(frozen=True, eq=False)
class _Tested:
    """An estimated fault: sizes, standard errors, and the share of the squared residuals that it explains."""

    fault: Fault
    values: Array
    std: Array
    explained: float

    @property
    def significance(self) -> float:
        return float(np.max(np.abs(self.values) / self.std))


def _mixed(samples: Samples, rows: Array, values: Array) -> Array:
    """Return rows of the equations: values (rows, joints, ...) multiplied by the mixing matrices of the samples."""
    if samples.mixing is None:
        return values
    flat = values.reshape(len(rows), values.shape[1], -1)
    return np.asarray((samples.mixing[rows] @ flat).reshape(values.shape))


def _residuals(samples: Samples, model: Model, theta: Array, rows: Array) -> tuple[Array, Array, Array]:
    """Return residuals (rows, 6 + n), their standard deviations (6 + n,), and the mask of used equations."""
    motion = (getattr(samples, name)[rows] for name in ("q", "dq", "ddq"))
    left = _mixed(samples, rows, (samples.tau[rows] - model.inverse_dynamics(theta, *motion))[:, :, None])[:, :, 0]
    keep = samples.keep[rows]
    noise = np.array([np.sqrt(np.mean(left[keep[:, j], j] ** 2)) if np.any(keep[:, j]) else 1.0
                      for j in range(left.shape[1])])
    return left, np.maximum(noise, 1e-9 * max(1.0, float(noise.max()))), keep


def _derivative(whole: WholeBody, samples: Samples, model: Model, theta: Array, rows: Array, fault: Fault,
                residual: Array, weight: Array, keep: Array) -> Array:
    """Return the change of the weighted residuals (equations, count) by each unknown of a fault."""
    columns = []
    for k in range(fault.count):
        size = np.zeros(fault.count)
        size[k] = fault.step
        log = fault.apply(whole.log, size)
        recording = expanded(_robot_with(whole.robot, fault, size), log, whole.equations, noise=whole.noise,
                             guard=whole.guard)
        changed = prepare_gridded(on_grid(recording, samples.preparation, spectrum=False), samples.preparation)
        left, _, _ = _residuals(changed, model, theta, rows)
        columns.append(((left - residual) * weight)[keep] / fault.step)
    return np.column_stack(columns)


def _robot_with(robot: Robot, fault: Fault, size: Array) -> Robot:
    """Return the robot with the frame of a fault moved, for faults of frames."""
    if fault.code not in ("foot-frame", "imu-mounting", "imu-place"):
        return robot
    named = robot.frame(fault.where)
    pose = named.pose.copy()
    if fault.code == "imu-mounting":
        half = 0.5 * size
        pose[:3, :3] = pose[:3, :3] @ dynamics.rotations(np.array([[*half, np.sqrt(1.0 - half @ half)]]))[0]
    else:
        pose[:3, 3] = pose[:3, 3] + pose[:3, :3] @ size
    moved = replace(named, pose=pose)
    others = tuple(one for one in robot.frames if one.name != named.name)
    return replace(robot, frames=(moved, *others))


def _tested(fault: Fault, derivative: Array, known: Array, r: Array, place: Array) -> _Tested | None:
    """Return a fault estimated together with the robot's parameters; None if the parameters alone explain as much."""
    own = derivative - known @ (known.T @ derivative)
    size = np.linalg.norm(derivative, axis=0)
    if np.any(size == 0.0) or np.linalg.cond(own / size) > 1e6:
        return None
    inverse = np.linalg.inv(own.T @ own)
    values = -inverse @ (own.T @ r)
    left = r + own @ values
    edges = np.linspace(place.min(), place.max() + 1e-9, FAULT_BLOCKS + 1)
    which = np.searchsorted(edges, place, side="right") - 1
    scores = np.array([own[which == k].T @ left[which == k] for k in range(FAULT_BLOCKS)])
    covariance = inverse @ (scores.T @ scores) @ inverse * FAULT_BLOCKS / (FAULT_BLOCKS - 1)
    total = float(r @ r)
    explained = 1.0 - float(left @ left) / total if total > 0.0 else 0.0
    return _Tested(fault, values, np.sqrt(np.maximum(np.diag(covariance), 1e-300)), explained)


def _faults(whole: WholeBody) -> Iterator[Fault]:
    """Yield the faults that are tested on a log."""
    log = whole.log
    if whole.equations in ("wrenches", "base", "flight"):
        feet = {contact.frame for contact in log.contacts}
        for k, wrench in enumerate(log.wrenches):
            mean = float(np.mean(np.linalg.norm(np.asarray(wrench.values)[:, :3], axis=1))) or 1.0
            if len(log.wrenches) > 1 or log.tau is not None:
                yield Fault("foot-gain", wrench.frame, "", 0.01, 0.03, 0.5, 1, _scaled(k), "a gain of {gain:.3f}")
            yield Fault("foot-offset", wrench.frame, "N", 0.01 * mean, 0.03 * mean, 2.0 * mean, 3, _offset(k),
                        "an offset of the force of ({values}) N")
            if wrench.frame in feet or len(log.wrenches) > 1:
                yield _misplaced("foot-frame", wrench.frame, 0.005, 0.1)
    else:
        yield from (_misplaced("foot-frame", contact.frame, 0.005, 0.1) for contact in log.contacts)
    frames = {one.name for one in whole.robot.frames}
    if log.base_motion == "imu" and log.imu is not None and log.imu.frame in frames:
        yield Fault("imu-mounting", log.imu.frame, "rad", 1e-3, 0.015, 0.4, 3, _same,
                    "axes that are rotated by ({values}) rad from the frame")
        yield _misplaced("imu-place", log.imu.frame, 0.02, 0.5)
        yield Fault("imu-bias", log.imu.frame, "m/s^2", 1e-2, 0.1, 1.0, 3, _accelerometer_bias,
                    "a constant error of the specific force of ({values}) m/s^2")


def _misplaced(code: str, frame: str, material: float, largest: float) -> Fault:
    """Return the fault of a sensor or foot that is not at the position of its frame; both sizes in m."""
    return Fault(code, frame, "m", 1e-3, material, largest, 3, _same,
                 "a position that is ({values}) m away from the frame")


def _same(log: FloatingLog, size: Array) -> FloatingLog:
    return log


def _with_wrench(log: FloatingLog, k: int, values: Array) -> FloatingLog:
    return replace(log, wrenches=tuple(replace(one, values=values) if i == k else one
                                       for i, one in enumerate(log.wrenches)))


def _scaled(k: int) -> Callable[[FloatingLog, Array], FloatingLog]:
    """Return a correction that divides the forces of sensor k by one plus the excess gain."""
    return lambda log, size: _with_wrench(log, k, np.asarray(log.wrenches[k].values) * (1.0 - size[0]))


def _offset(k: int) -> Callable[[FloatingLog, Array], FloatingLog]:
    """Return a correction that subtracts an offset from the force of sensor k."""
    def without(log: FloatingLog, size: Array) -> FloatingLog:
        values = np.array(log.wrenches[k].values, dtype=float)
        values[:, :3] -= size
        return _with_wrench(log, k, values)
    return without


def _accelerometer_bias(log: FloatingLog, size: Array) -> FloatingLog:
    assert log.imu is not None
    before = np.zeros(6) if log.imu.bias is None else np.asarray(log.imu.bias)
    return replace(log, imu=replace(log.imu, bias=before + np.concatenate([np.zeros(3), size])))


_COMPONENTS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
_FAULT_TITLES = {"foot-gain": "gain of a foot sensor", "foot-offset": "offset of a foot sensor",
                 "foot-frame": "foot frame", "imu-mounting": "IMU mounting", "imu-place": "IMU place",
                 "imu-bias": "IMU bias"}
_REMEDIES = {"foot-gain": "calibrate the sensor with a known load, or scale its columns",
             "foot-offset": "zero the sensor while the foot is in the air",
             "foot-frame": "correct the frame of the foot, or name another with --set 'log.feet=[...]'",
             "imu-mounting": "correct the axes of the frame of the IMU, or name another with --set log.imu_frame=...",
             "imu-place": "correct the position of the frame of the IMU, or name another with --set log.imu_frame=...",
             "imu-bias": "log the orientation of the base too, from which the bias is estimated"}


def _finding(best: _Tested, source: str) -> Finding:
    fault = best.fault
    values = ", ".join(f"{value:.3g}" for value in best.values)
    words = fault.sentence.format(values=values, gain=1.0 + float(best.values[0]))
    text = (f"The data of {source} are consistent with {words} at '{fault.where}' (standard error "
            f"{', '.join(f'{value:.2g}' for value in best.std)}{' ' + fault.unit if fault.unit else ''}), which "
            f"explains {100 * best.explained:.0f} % of the squared residuals: {_REMEDIES[fault.code]}.")
    return Finding(fault.code, "problem", "warning", text, f"{_FAULT_TITLES[fault.code]} ({fault.where})",
                   logs=(source,),
                   evidence={"values": tuple(map(float, best.values)), "std": tuple(map(float, best.std)),
                             "explained": best.explained})

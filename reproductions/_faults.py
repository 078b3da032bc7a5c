"""Faults that are added to logs, each with the findings that name it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.model import Model, Payload
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.robot import inertia as ten
from reproductions._faulty_machines import Machine, RealMachine, far_off

Rng = np.random.Generator
REAL_LOAD_SHARE = 0.5  # of the variation of the torque that feels it most: the load that is added to a real log
SAME_MOTION = 0.5  # of the spread of the positions: logs that differ by less are of the same motion


@dataclass(frozen=True, eq=False)
class Put:
    """A fault that was added to a log.

    Attributes:
        log: log to identify from.
        other: log to test the result on, or None.
        joints: indices of the joints that a finding has to name; None if joints do not matter.
        robot: robot of the file that the user gives, if it differs from the machine.
        bare: whether the robot file has no inertias.
        cutoff: cut-off that the user specifies, Hz.
    """

    log: Recording
    other: Recording | None = None
    joints: tuple[int, ...] | None = None
    robot: Robot | None = None
    bare: bool = False
    cutoff: float | None = None


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault. codes: findings that name it, none for a healthy log; also: further findings that are not wrong."""

    name: str
    codes: tuple[str, ...]
    put: Callable[[Any, Rng], Put | None]
    also: tuple[str, ...] = ()
    by_choice: bool = False  # friction that a run which chooses its terms models: no finding is right there


def _some(rng: Rng, dof: int, count: int) -> tuple[int, ...]:
    return tuple(sorted(int(j) for j in rng.choice(dof, size=count, replace=False)))


def _scaled(log: Recording, factor: Array) -> Recording:
    return replace(log, tau=log.tau * factor)


def _with(dof: int, joints: tuple[int, ...], values: Array | float) -> Array:
    factor = np.ones(dof)
    factor[list(joints)] = values
    return factor


def signs(log: Recording, rng: Rng, count: int) -> Put | None:
    dof = log.dof
    if count > dof or (count == dof and count == 2):
        return None
    joints = _some(rng, dof, count)
    return Put(_scaled(log, _with(dof, joints, -1.0)), joints=joints)


def opposite_axis(log: Recording, rng: Rng) -> Put:
    """Count one joint in the direction opposite to the axis of the robot file: its positions and its torques."""
    joints = _some(rng, log.dof, 1)
    sign = _with(log.dof, joints, -1.0)
    return Put(replace(_scaled(log, sign), q=log.q * sign, dq=None if log.dq is None else log.dq * sign), joints=joints)


def scales(log: Recording, rng: Rng, count: int, sizes: tuple[float, ...] = (0.6, 0.75, 1.3, 1.6)) -> Put | None:
    if log.dof < count + 2:
        return None
    # Joints near the base: those of a wrist share too little with the others for their torque's scale to show.
    joints = _some(rng, max((log.dof + 1) // 2, count), count)
    values = rng.choice(sizes, size=count, replace=count > len(sizes))
    return Put(_scaled(log, _with(log.dof, joints, values)), joints=joints)


def counts(log: Recording, rng: Rng) -> Put:
    return Put(_scaled(log, rng.uniform(30.0, 400.0, log.dof)))


def rate(log: Recording, rng: Rng) -> Put:
    factor = float(rng.choice([0.5, 2.0]))
    return Put(replace(log, t=log.t[0] + (log.t - log.t[0]) * factor, dq=None))


def gear(log: Recording, rng: Rng) -> Put:
    [j] = _some(rng, (log.dof + 1) // 2, 1)
    factor = _with(log.dof, (j,), 1.25)
    return Put(replace(log, q=log.q / factor, tau=log.tau * factor, dq=None), joints=(j,))


def swapped_torques(log: Recording, rng: Rng) -> Put | None:
    if log.dof < 2:
        return None
    j = int(rng.integers(0, log.dof - 1))
    order = np.arange(log.dof)
    order[[j, j + 1]] = order[[j + 1, j]]
    return Put(replace(log, tau=np.ascontiguousarray(log.tau[:, order])), joints=(j, j + 1))


def swapped_positions(log: Recording, rng: Rng) -> Put | None:
    if log.dof < 2:
        return None
    j = int(rng.integers(0, log.dof - 1))
    order = np.arange(log.dof)
    order[[j, j + 1]] = order[[j + 1, j]]
    return Put(replace(log, q=np.ascontiguousarray(log.q[:, order]), dq=None), joints=(j, j + 1))


def delayed(log: Recording, rng: Rng) -> Put:
    late = float(rng.uniform(0.012, 0.03))
    tau = np.column_stack([np.interp(log.t - late, log.t, log.tau[:, j]) for j in range(log.dof)])
    return Put(replace(log, tau=tau))


def stuck(log: Recording, rng: Rng) -> Put:
    j, start = int(rng.integers(0, log.dof)), float(rng.uniform(0.2, 0.7)) * (log.t[-1] - log.t[0]) + log.t[0]
    hangs = (log.t >= start) & (log.t < start + 1.0)
    q = log.q.copy()
    q[hangs, j] = q[np.argmax(hangs), j]
    return Put(replace(log, q=q, dq=None), joints=(j,))


def saturated(log: Recording, rng: Rng) -> Put:
    j = int(rng.integers(0, log.dof))
    top = 0.65 * float(np.abs(log.tau[:, j]).max())
    tau = log.tau.copy()
    tau[:, j] = np.clip(tau[:, j], -top, top)
    return Put(replace(log, tau=tau), joints=(j,))


def coloured(log: Recording, rng: Rng) -> Put:
    from scipy.signal import lfilter

    news = rng.normal(size=log.tau.shape)
    noise = lfilter([np.sqrt(1.0 - 0.95 ** 2)], [1.0, -0.95], news, axis=0)
    return Put(replace(log, tau=log.tau + 0.005 * np.sqrt(np.mean(log.tau ** 2, axis=0)) * noise))


def noisy(log: Recording, rng: Rng) -> Put:
    """Return a log with white noise of 4e-4 rad or m on all positions."""
    return Put(replace(log, q=log.q + 4e-4 * rng.normal(size=log.q.shape), dq=None))


# -- faults of the machine ----------------------------------------------------------------------------

def _speed(log: Recording) -> Array:
    from scipy.signal import butter, sosfiltfilt

    rate = log.rate
    return np.asarray(sosfiltfilt(butter(4, min(15.0, 0.4 * rate), fs=rate, output="sos"),
                                  np.gradient(log.q, 1.0 / rate, axis=0), axis=0))


def drift(machine: Machine, rng: Rng) -> Put:
    log, dq = machine.record(), None
    joints = _some(rng, machine.dof, max(1, machine.dof // 2))
    dq, tau = _speed(log), log.tau.copy()
    course = 0.45 * (1.0 - np.exp(-2.0 * (log.t - log.t[0]) / (log.t[-1] - log.t[0]))) / (1.0 - np.exp(-2.0))
    for j in joints:
        fv, fc = machine.theta[machine.index("Fv", j)], machine.theta[machine.index("Fc", j)]
        tau[:, j] -= course * (fv * dq[:, j] + fc * np.tanh(dq[:, j] / 0.01))
    return Put(replace(log, tau=tau), joints=joints)


def stribeck(machine: Machine, rng: Rng) -> Put:
    log = machine.record()
    dq, tau, joints = _speed(log), log.tau.copy(), _some(rng, machine.dof, max(1, machine.dof // 3))
    for j in joints:
        fc = machine.theta[machine.index("Fc", j)]
        top = float(np.abs(dq[:, j]).max())
        tau[:, j] += fc * np.tanh(dq[:, j] / 0.01) * np.exp(-(dq[:, j] / (0.12 * top)) ** 2)
    return Put(replace(log, tau=tau), joints=joints)


def asymmetric(machine: Machine, rng: Rng) -> Put:
    log = machine.record()
    dq, tau, joints = _speed(log), log.tau.copy(), _some(rng, machine.dof, max(1, machine.dof // 3))
    for j in joints:
        fv, fc = machine.theta[machine.index("Fv", j)], machine.theta[machine.index("Fc", j)]
        tau[:, j] += 0.8 * np.where(dq[:, j] > 0, 1.0, 0.0) * (fv * dq[:, j] + fc * np.tanh(dq[:, j] / 0.01))
    return Put(replace(log, tau=tau), joints=joints)


def backlash(machine: Machine, rng: Rng) -> Put:
    """Return a log with backlash: the motor crosses the gap at every reversal before the link follows.

    The encoder is on the motor."""
    log = machine.record()
    j = int(rng.integers(0, machine.dof))
    dq, q = _speed(log)[:, j], log.q.copy()
    gap = 0.02  # rad
    side, through = np.where(dq >= 0, 1.0, -1.0), int(0.02 * log.rate)
    smooth = np.convolve(np.pad(side, (through, through), mode="edge"), np.ones(2 * through + 1) / (2 * through + 1),
                         mode="valid")
    q[:, j] += 0.5 * gap * smooth
    return Put(replace(log, q=q), joints=(j,))


def coupled(machine: Machine, rng: Rng) -> Put:
    """Return a log of a coupled wrist: motor j + 1 also turns with joint j, so that its rotor and friction load both
    joints."""
    log = machine.record()
    j = int(rng.integers(0, machine.dof - 1))
    k = j + 1
    dq = _speed(log)
    ddq = np.gradient(dq, 1.0 / log.rate, axis=0)
    fv, fc = (machine.theta[machine.index(name, k)] for name in ("Fv", "Fc"))
    ia = machine.theta[machine.index("Ia", k)]

    def motor(speed: Array, acceleration: Array) -> Array:
        return ia * acceleration + fv * speed + fc * np.tanh(speed / 0.01)

    both = motor(dq[:, j] + dq[:, k], ddq[:, j] + ddq[:, k])
    tau = log.tau.copy()
    tau[:, k] += both - motor(dq[:, k], ddq[:, k])
    tau[:, j] += both
    return Put(replace(log, tau=tau), joints=(j, k))


def payload_theta(machine: Machine, rng: Rng, share: float = 0.12) -> Array:
    """Return the parameters of a machine with a load on its last body; the load is a share of the mass of the
    machine."""
    last = machine.model.robot.body_names[-1]
    own = {p.name[:-len(str(machine.dof))]: i for i, p in enumerate(machine.model.parameters) if p.body == last}
    whole = sum(machine.theta[i] for i, p in enumerate(machine.model.parameters) if p.name.startswith("M")
                and p.name[1:].isdigit())
    mass, centre = share * whole, 0.12 * rng.normal(size=3) / np.sqrt(3.0) + np.array([0.05, 0.0, 0.08])
    theta = machine.theta.copy()
    x, y, z = centre
    about = mass * (np.eye(3) * (centre @ centre) - np.outer(centre, centre)) + np.eye(3) * 0.4 * mass * 0.05 ** 2
    for name, value in (("XX", about[0, 0]), ("XY", about[0, 1]), ("XZ", about[0, 2]), ("YY", about[1, 1]),
                        ("YZ", about[1, 2]), ("ZZ", about[2, 2]), ("MX", mass * x), ("MY", mass * y),
                        ("MZ", mass * z), ("M", mass)):
        theta[own[name]] += value
    return theta


def payload_here(machine: Machine, rng: Rng) -> Put | None:
    if not np.any(machine.model.robot.gravity):
        return None
    return Put(machine.changed(payload_theta(machine, rng)).record())


def tool(machine: Machine, rng: Rng) -> Put:
    """Return a log of a robot with a tool that its file does not contain."""
    return Put(machine.changed(payload_theta(machine, rng, 0.02)).record())


def payload_in_mid_log(machine: Machine | RealMachine, rng: Rng) -> Put | None:
    """Return a log in which the robot picks up a load; for a real log, the torques of the load are added."""
    robot = machine.robot if isinstance(machine, RealMachine) else machine.model.robot
    if not np.any(robot.gravity):
        return None
    log = machine.record()
    dq = _speed(log)
    ddq, at = np.gradient(dq, 1.0 / log.rate, axis=0), int(rng.uniform(0.3, 0.7) * len(log.t))
    if isinstance(machine, RealMachine):
        load = ten.from_central(1.0, [0.05, 0.0, 0.08], 1e-3 * np.eye(3))
        more = Model(robot, (Payload(robot.body_names[-1]),)).inverse_dynamics(load, log.q, dq, ddq)
        felt = np.sqrt(np.mean(more ** 2, axis=0)) / np.maximum(np.std(log.tau, axis=0), 1e-12)
        more *= REAL_LOAD_SHARE / float(felt.max())
    else:
        more = machine.model.inverse_dynamics(payload_theta(machine, rng) - machine.theta, log.q, dq, ddq)
    return Put(replace(log, tau=log.tau + np.where(np.arange(len(log.t))[:, None] >= at, more, 0.0)))


def exchanged(machine: Machine | RealMachine, rng: Rng, *, both: bool = False) -> Put | None:
    """Return a log with the torques of another log of the same machine, and the validation log with its own torques;
    None if both logs have the same motion."""
    logs = machine.record(), machine.record(1, source="other")
    rows = min(len(log.t) for log in logs)
    log, other = (log[:rows] for log in logs)
    if np.std(log.q - other.q) < SAME_MOTION * np.std(log.q - log.q.mean(axis=0)):
        return None
    return Put(replace(log, tau=other.tau), replace(other, tau=log.tau) if both else None)


def amperes(log: Recording, rng: Rng) -> Put:
    """Return a log with motor currents in place of torques; gear ratio times torque constant is 4 to 15 N m/A."""
    return Put(_scaled(log, 1.0 / rng.uniform(4.0, 15.0, log.dof)))


def bare(put: Put | None) -> Put | None:
    """Return the same fault for a robot whose file has no inertias."""
    return None if put is None else replace(put, bare=True)


def payload_there(machine: Machine, rng: Rng) -> Put:
    loaded = machine.changed(payload_theta(machine, rng)).record(1, source="other")
    return Put(machine.record(), loaded)


def overfit(machine: Machine, rng: Rng) -> Put:
    """Return a short, small and slow motion for the fit and the usual motion for the test."""
    weak = machine.record(speed=0.8, size=0.4)
    rows = slice(0, int(6.0 * weak.rate))
    return Put(replace(weak, t=weak.t[rows], q=weak.q[rows], tau=weak.tau[rows]), machine.record(1, source="other"))


def another_machine(machine: Machine, rng: Rng) -> Put:
    theta = machine.theta.copy()
    for body in dict.fromkeys(p.body for p in machine.model.parameters if p.body is not None):
        own = [i for i, p in enumerate(machine.model.parameters) if p.body == body]
        theta[own] *= np.exp(0.12 * rng.normal())
    for i, p in enumerate(machine.model.parameters):
        if p.body is None:
            theta[i] *= np.exp(0.35 * rng.normal())
    return Put(machine.record(), machine.changed(theta).record(1, source="other"))


def mounted(machine: Machine | RealMachine, mirrored: bool) -> Put | None:
    """Return a log of a robot with another mounting than in its file: gravity along x, or upside down.

    For a real machine, the file is changed instead."""
    robot = machine.robot if isinstance(machine, RealMachine) else machine.model.robot
    own = robot.gravity
    size = float(np.linalg.norm(own))
    if size == 0.0:
        return None
    down = own / size
    side = size * (np.array([1.0, 0.0, 0.0]) if abs(down[0]) < 0.5 else np.array([0.0, 1.0, 0.0]))
    if isinstance(machine, RealMachine):
        return Put(machine.record(), robot=robot.with_gravity(-own if mirrored else side))
    return Put(machine.record(gravity=-own if mirrored else side))


def on_log(change: Callable[[Recording, Rng], Put | None]) -> Callable[[Machine | RealMachine, Rng], Put | None]:
    return lambda machine, rng: change(machine.record(), rng)


DELAY = ("residual-follows-delay",)
FRICTION_SHAPES = ("residual-follows-low-speed", "residual-follows-speed-squared", "residual-follows-asymmetry")
SCALES = ("drive-gain", "torque-unit", "scales-undecidable")  # torques of a robot without inertias in its file
UNRELATED = ("torques-unrelated", "torques-exchanged")
HEALTHY_CONDITIONS = (
    Fault("healthy, white noise", (), on_log(lambda log, rng: Put(log))),
    Fault("healthy, autocorrelated noise", (), on_log(coloured)),
    Fault("healthy, noisy encoders", (), on_log(noisy)),
    Fault("healthy, second log", (), lambda m, rng: Put(m.record(), m.record(1, source="other"))),
    Fault("healthy, noise of 0.1 %", (), lambda m, rng: Put(m.record(noise=1e-3))),
    Fault("healthy, noise of 10 %", (), lambda m, rng: Put(m.record(noise=0.1))),
    Fault("healthy, 14-bit encoders", (), lambda m, rng: Put(m.record(bits=14))),
    Fault("healthy, logged at 50 Hz", (), lambda m, rng: Put(m.record(thin=5))),
    Fault("healthy, with a tool", (), tool, ("payload",)),
    Fault("healthy, file 50 % off", (), lambda m, rng: Put(m.record(), robot=far_off(m.model.robot, rng, 0.5))),
    Fault("healthy, no inertias in the file", (), lambda m, rng: Put(m.record(), bare=True)),
)
FAULTS = (
    *HEALTHY_CONDITIONS,
    Fault("sign of one joint", ("torque-sign",), on_log(lambda log, rng: signs(log, rng, 1))),
    Fault("signs of two joints", ("torque-sign",), on_log(lambda log, rng: signs(log, rng, 2))),
    Fault("signs of all joints", ("torque-sign",), on_log(lambda log, rng: signs(log, rng, log.dof))),
    Fault("scale of one joint", ("drive-gain",), on_log(lambda log, rng: scales(log, rng, 1))),
    Fault("scale of one joint, no inertias", SCALES, on_log(lambda log, rng: bare(scales(log, rng, 1)))),
    Fault("gain of 2", ("drive-gain",), on_log(lambda log, rng: scales(log, rng, 1, (2.0,)))),
    Fault("scales of three joints", ("drive-gain",), on_log(lambda log, rng: scales(log, rng, 3))),
    Fault("torques in mN m", ("torque-unit",), on_log(lambda log, rng: Put(_scaled(log, np.full(log.dof, 1e3))))),
    Fault("torques in mN m, no inertias", ("torque-unit",), on_log(
        lambda log, rng: Put(_scaled(log, np.full(log.dof, 1e3)), bare=True))),
    Fault("torques in raw counts", ("torque-unit",), on_log(counts)),
    Fault("torques in raw counts, no inertias", SCALES, on_log(lambda log, rng: bare(counts(log, rng)))),
    Fault("torques in amperes", ("torque-unit",), on_log(amperes), ("drive-gain",)),
    Fault("torques in amperes, no inertias", SCALES, on_log(lambda log, rng: bare(amperes(log, rng)))),
    Fault("positions in degrees", ("degrees-for-radians",), on_log(
        lambda log, rng: Put(replace(log, q=np.rad2deg(log.q), dq=None)))),
    Fault("rate wrong by two", ("time-scale",), on_log(rate), ("velocity-beyond-limits",)),
    Fault("gear ratio 1.25", ("gear-ratio",), on_log(gear)),
    Fault("swapped torques", ("torques-swapped",), on_log(swapped_torques)),
    Fault("swapped positions", ("positions-swapped",), on_log(swapped_positions), ("position-beyond-limits",)),
    Fault("torques of another log", UNRELATED, exchanged),
    Fault("torques of two logs exchanged", UNRELATED, lambda m, rng: exchanged(m, rng, both=True)),
    Fault("delay", DELAY, on_log(delayed)),
    Fault("stuck encoder, 1 s", ("encoder-stuck",), on_log(stuck)),
    Fault("saturated torque", ("torque-saturated",), on_log(saturated)),
    Fault("drifting friction", ("residual-follows-drift",), drift),
    Fault("Stribeck friction", FRICTION_SHAPES, stribeck, by_choice=True),
    Fault("asymmetric friction", ("residual-follows-asymmetry",), asymmetric, by_choice=True),
    Fault("backlash", ("residual-follows-backlash",), backlash),
    Fault("coupled drives", ("residual-follows-neighbour-motion",), coupled),
    Fault("payload on the log", ("payload",), payload_here),
    Fault("payload in mid-log", ("load-changed",), payload_in_mid_log),
    Fault("payload on the other log", ("load-changed",), payload_there),
    Fault("overfit, faster motion", ("overfit",), overfit, ("badly-conditioned",)),
    Fault("another machine", ("another-machine",), another_machine),
    Fault("mounted sideways", ("gravity-direction",), lambda m, rng: mounted(m, False)),
    Fault("mounted sideways, no inertias", ("gravity-direction",), lambda m, rng: bare(mounted(m, False))),
    Fault("mounted upside down", ("gravity-direction",), lambda m, rng: mounted(m, True)),
    Fault("cut-off far too high", ("cutoff-too-high",), on_log(
        lambda log, rng: Put(noisy(log, rng).log, cutoff=0.2 * log.rate))),
    Fault("axis of one joint reversed", ("position-sign",), on_log(opposite_axis), ("position-beyond-limits",)),
)

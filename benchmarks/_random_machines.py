"""Random arms with known random friction, logs of several lengths for the fit, and another motion for the test.

A condition makes all of them machines or logs of one difficult kind, see `CONDITIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.excitation import FourierSeries
from dynid.model import DataContext, Model, make_terms, term_from_table
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.robot import inertia as ten

RATE = 200.0  # Hz
TEST_SECONDS = 20.0
PERIOD, HARMONICS = 10.0, 5  # s of the motion's first harmonic, and how many there are: a band of 0.5 Hz
SPEED = 2.0  # rad/s, the greatest
SHARES = {"Fv": 0.08, "Fc": 0.12, "Fo": 0.03}  # of the bodies' torque: friction at the greatest speed
ENCODER = 2.0 * np.pi / 2 ** 17  # rad, of one count at the joint
FRICTION = ("plain", "stribeck", "load", "curve", "asymmetric")  # one of these on each joint, "plain" on half of all
PLAIN_SHARE = 0.5
ROTOR_SHARE = 0.6  # of the machines, whose torque is that of the motors
EXTRA = (0.3, 1.0)  # size of what is beyond plain friction, as a share of Coulomb friction
CONDITIONS = {
    "cable": "torques that depend on each joint's position, as of cables and hoses",
    "spring": "a linear spring at each joint",
    "balanced": "a spring balancer at the second joint that takes nine tenths of its gravity torque in one posture",
    "drift": "friction that falls by three tenths while the fitted log is recorded, as of a warm-up",
    "link-side": "torques without friction and rotors, as of sensors behind the gears",
    "low-rate": "40 rows a second",
    "quantised": "torques rounded to a thirtieth of their peak",
    "slow": "a sixth of the speed",
    "resting": "one joint at rest",
    "one-way": "one joint that does not turn back",
    "tilted": "a base tilted by two degrees",
}
POSITION_SHARE = 0.1  # of a joint's weight torque: amplitude of a cable or a spring
BALANCED_SHARE = 0.9  # of the gravity torque with all other joints at rest
DRIFT_SHARE = 0.3  # of friction at the start of the fitted log
LOW_RATE_STEP = 5  # rows of RATE in one of a log of low rate
TORQUE_STEPS = 30.0  # in the peak of a quantised torque
SLOW_SHARE = 1.0 / 6.0  # of the speed
ONE_WAY_SPEED = 1.2  # rad/s, added to a motion that is shrunk to its tenth
TILT = np.deg2rad(2.0)  # rad


@dataclass(frozen=True, eq=False)
class RandomMachine:
    """A machine and what is known of it.

    Attributes:
        robot: its kinematics, without inertias.
        friction: kind on each joint.
        has_rotor: whether its torques are those of motors with rotors.
        fitted, tested: logs of different motions.
    """

    robot: Robot
    friction: tuple[str, ...]
    has_rotor: bool
    fitted: Recording
    tested: Recording


def random_machine(seed: int, seconds: float, condition: str = "") -> RandomMachine:
    """Return one machine; the same seed gives the same machine and test log for any length of the fitted log.

    condition: one of CONDITIONS, or none.
    """
    rng = np.random.default_rng([seed, 28])
    dof = int(rng.integers(2, 7))
    rows = [(rng.choice([0.0, 0.5, -0.5]) * np.pi, rng.uniform(0.0, 0.4) if j else 0.0, rng.uniform(-np.pi, np.pi),
             rng.uniform(-0.2, 0.3)) for j in range(dof)]
    bare = Robot.from_mdh(rows, name=f"random{seed}")
    bodies = [_body(rng, 8.0 * 0.6 ** j) for j in range(dof)]
    full = Robot.from_mdh(rows, name=bare.name, inertias=bodies)
    has_rotor = bool(rng.uniform() < ROTOR_SHARE) and condition != "link-side"
    kinds = tuple("plain" if rng.uniform() < PLAIN_SHARE else str(rng.choice(FRICTION[1:])) for _ in range(dof))
    noise, draws = 10.0 ** rng.uniform(-2.3, -1.5), rng.uniform(size=(dof, 3))
    test = _motion(rng, dof, TEST_SECONDS)
    fit = _motion(np.random.default_rng([seed, 29]), dof, seconds)
    if condition == "tilted":
        full = full.with_gravity((9.81 * np.sin(TILT), 0.0, -9.81 * np.cos(TILT)))
    test, fit = (_changed_motion(one, condition) for one in (test, fit))
    arm = _Arm(full, kinds, has_rotor, draws, condition)
    size = np.sqrt(np.mean(arm.torques(test) ** 2, axis=0))
    logs = []
    for k, motion in enumerate((fit, test)):
        tau = arm.torques(motion, DRIFT_SHARE if condition == "drift" and not k else 0.0)
        own = np.random.default_rng([seed, 30, k])
        q = ENCODER * np.round(motion[0] / ENCODER)
        tau = tau + noise * size * own.normal(size=tau.shape)
        if condition == "quantised":
            step = np.abs(tau).max(axis=0) / TORQUE_STEPS
            tau = step * np.round(tau / step)
        every = LOW_RATE_STEP if condition == "low-rate" else 1
        logs.append(Recording(np.arange(len(q))[::every] / RATE, q[::every], tau[::every], joints=bare.joint_names,
                              source=f"{bare.name} {('fitted', 'tested')[k]}"))
    return RandomMachine(bare, kinds, has_rotor, *logs)


def _changed_motion(motion: tuple[Array, Array, Array], condition: str) -> tuple[Array, Array, Array]:
    """Return a motion as the condition has it."""
    q, dq, ddq = (np.array(one) for one in motion)
    t = np.arange(len(q)) / RATE
    if condition == "slow":  # the same path, of which less is passed
        row = np.arange(len(q))
        q, dq, ddq = (np.column_stack([np.interp(SLOW_SHARE * row, row, column) for column in one.T]) * SLOW_SHARE ** k
                      for k, one in enumerate((q, dq, ddq)))
    elif condition == "resting":
        q[:, -1], dq[:, -1], ddq[:, -1] = q[0, -1], 0.0, 0.0
    elif condition == "one-way":
        q[:, -1], dq[:, -1], ddq[:, -1] = (0.1 * q[:, -1] + ONE_WAY_SPEED * t, 0.1 * dq[:, -1] + ONE_WAY_SPEED,
                                           0.1 * ddq[:, -1])
    return q, dq, ddq


def _body(rng: np.random.Generator, mass: float) -> Array:
    mass *= rng.uniform(0.5, 1.5)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    second = axes @ np.diag(mass * rng.uniform(0.02, 0.15, 3) ** 2) @ axes.T  # second moments: any body has some
    return ten.from_central(mass, rng.uniform(-0.15, 0.15, 3), np.trace(second) * np.eye(3) - second)


def _motion(rng: np.random.Generator, dof: int, seconds: float) -> tuple[Array, Array, Array]:
    a, b = rng.normal(size=(2, dof, HARMONICS))
    t = np.arange(round(seconds * RATE)) / RATE
    top = np.abs(FourierSeries(a, b, np.zeros(dof), PERIOD).at(np.arange(0.0, PERIOD, 0.01)).dq).max(axis=0)
    scale = (SPEED * rng.uniform(0.5, 1.0, dof) / top)[:, None]
    count = max(1, int(np.ceil(seconds / PERIOD)))
    series = [FourierSeries(a * scale, b * scale, rng.uniform(-1.0, 1.0, dof), PERIOD)]
    if count == 1:
        found = series[0].at(t)
        return found.q, found.dq, found.ddq
    # Longer motions do not repeat: the harmonics' frequencies are not multiples of one another.
    w = 2.0 * np.pi / PERIOD * (np.arange(1, HARMONICS + 1) + rng.uniform(-0.3, 0.3, HARMONICS))
    phase, q0 = rng.uniform(0, 2 * np.pi, (dof, HARMONICS)), rng.uniform(-1.0, 1.0, dof)
    size = np.hypot(a, b) * scale
    angle = t[:, None, None] * w + phase
    return (q0 + np.sum(size / w * np.sin(angle), axis=2), np.sum(size * np.cos(angle), axis=2),
            -np.sum(size * w * np.sin(angle), axis=2))


@dataclass(frozen=True, eq=False)
class _Arm:
    """True properties of a machine: robot with inertias, kinds of friction, random numbers (dof, 3), and condition."""

    robot: Robot
    kinds: tuple[str, ...]
    has_rotor: bool
    draws: Array
    condition: str

    def torques(self, motion: tuple[Array, Array, Array], drift: float = 0.0) -> Array:
        """Return the true torques (samples, dof) of a motion, with friction that falls by a share `drift`."""
        robot, draws = self.robot, self.draws
        model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=self.has_rotor))
        theta = np.array([0.0 if item.nominal is None or item.body is None else item.nominal
                          for item in model.parameters])
        weight = np.array([9.81 * sum(body.inertia[9] for body in robot.bodies[j:]) * 0.15 for j in range(robot.dof)])
        bodies = theta.copy()
        for k, item in enumerate(model.parameters):
            if item.body is None and item.symbol in SHARES:
                theta[k] = SHARES[item.symbol] * weight[item.owner] / (SPEED if item.symbol == "Fv" else 1.0)
            elif item.body is None:
                theta[k] = 0.05 * weight[item.owner] * (0.3 + draws[item.owner, 2])  # kg m^2 of the rotor
        found = np.array(model.inverse_dynamics(theta, *motion))
        for j, kind in enumerate(self.kinds):
            size = (EXTRA[0] + (EXTRA[1] - EXTRA[0]) * draws[j, 0]) * SHARES["Fc"] * weight[j]
            found[:, j] += _extra(model, theta, kind, size, draws[j, 1], j, motion)
        if not self.condition:
            return found
        rigid = np.array(model.inverse_dynamics(bodies, *motion))
        if self.condition == "link-side":
            return rigid
        fall = drift * np.exp(-np.arange(len(found)) / (0.4 * len(found)))
        return found + fall[:, None] * (found - rigid) + self._beyond(model, bodies, weight, motion[0])

    def _beyond(self, model: Model, bodies: Array, weight: Array, q: Array) -> Array:
        """Return the torques (samples, dof) that the condition adds."""
        if self.condition == "cable":
            phases = 2.0 * np.pi * self.draws
            return np.asarray(POSITION_SHARE * weight * (np.sin(q + phases[:, 0]) + 0.5 * np.sin(2.0 * q
                                                                                                 + phases[:, 1])))
        if self.condition == "spring":
            return np.asarray(POSITION_SHARE * weight * (q - 2.0 * self.draws[:, 0] + 1.0))
        found, still = np.zeros_like(q), np.zeros_like(q)
        if self.condition == "balanced":
            posture = still.copy()
            posture[:, 1] = q[:, 1]
            found[:, 1] = -BALANCED_SHARE * model.inverse_dynamics(bodies, posture, still, still)[:, 1]
        return found


def _extra(model: Model, theta: Array, kind: str, size: float, draw: float, j: int,
           motion: tuple[Array, Array, Array]) -> Array:
    dq = motion[1][:, j]
    if kind == "stribeck":  # falls with speed
        return np.asarray(size * np.sign(dq) * np.exp(-np.abs(dq) / (0.02 + 0.1 * draw) / SPEED))
    if kind == "curve":  # rises with speed and levels off
        return np.asarray(2.0 * size * np.tanh(dq / (SPEED * (0.05 + 0.2 * draw))))
    if kind == "asymmetric":
        return np.asarray(size * np.maximum(dq, 0.0) / SPEED)
    if kind == "load":
        table: dict[str, Any] = {"kind": "load", "joints": [j + 1]}
        part = Model(model.robot, (term_from_table(table),)).bind(DataContext(bodies=model.body_numbers(theta)))
        return np.asarray(part.inverse_dynamics([0.05 + 0.15 * draw], *motion)[:, j])
    return np.zeros(len(dq))

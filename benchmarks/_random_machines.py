"""Random arms with random friction whose truth is known, logs of some length to fit, and another motion to predict."""

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


def random_machine(seed: int, seconds: float) -> RandomMachine:
    """Return one machine; the same seed gives the same machine and test log for any length of the fitted log."""
    rng = np.random.default_rng([seed, 28])
    dof = int(rng.integers(2, 7))
    rows = [(rng.choice([0.0, 0.5, -0.5]) * np.pi, rng.uniform(0.0, 0.4) if j else 0.0, rng.uniform(-np.pi, np.pi),
             rng.uniform(-0.2, 0.3)) for j in range(dof)]
    bare = Robot.from_mdh(rows, name=f"random{seed}")
    bodies = [_body(rng, 8.0 * 0.6 ** j) for j in range(dof)]
    full = Robot.from_mdh(rows, name=bare.name, inertias=bodies)
    has_rotor = bool(rng.uniform() < ROTOR_SHARE)
    kinds = tuple("plain" if rng.uniform() < PLAIN_SHARE else str(rng.choice(FRICTION[1:])) for _ in range(dof))
    noise, draws = 10.0 ** rng.uniform(-2.3, -1.5), rng.uniform(size=(dof, 3))
    test = _motion(rng, dof, TEST_SECONDS)
    fit = _motion(np.random.default_rng([seed, 29]), dof, seconds)
    logs = []
    for k, motion in enumerate((fit, test)):
        tau = _torques(full, kinds, has_rotor, draws, motion)
        own = np.random.default_rng([seed, 30, k])
        size = np.sqrt(np.mean(_torques(full, kinds, has_rotor, draws, test) ** 2, axis=0))
        q = ENCODER * np.round(motion[0] / ENCODER)
        logs.append(Recording(np.arange(len(q)) / RATE, q, tau + noise * size * own.normal(size=tau.shape),
                              joints=bare.joint_names, source=f"{bare.name} {('fitted', 'tested')[k]}"))
    return RandomMachine(bare, kinds, has_rotor, *logs)


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


def _torques(robot: Robot, kinds: tuple[str, ...], has_rotor: bool, draws: Array,
             motion: tuple[Array, Array, Array]) -> Array:
    """Return the true torques (samples, dof) of a motion."""
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=has_rotor))
    theta = np.array([0.0 if item.nominal is None or item.body is None else item.nominal for item in model.parameters])
    weight = np.array([9.81 * sum(body.inertia[9] for body in robot.bodies[j:]) * 0.15 for j in range(robot.dof)])
    for k, item in enumerate(model.parameters):
        if item.body is None and item.symbol in SHARES:
            theta[k] = SHARES[item.symbol] * weight[item.owner] / (SPEED if item.symbol == "Fv" else 1.0)
        elif item.body is None:
            theta[k] = 0.05 * weight[item.owner] * (0.3 + draws[item.owner, 2])  # kg m^2 of the rotor
    found = np.array(model.inverse_dynamics(theta, *motion))
    for j, kind in enumerate(kinds):
        size = (EXTRA[0] + (EXTRA[1] - EXTRA[0]) * draws[j, 0]) * SHARES["Fc"] * weight[j]
        found[:, j] += _extra(model, theta, kind, size, draws[j, 1], j, motion)
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

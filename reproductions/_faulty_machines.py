"""Virtual machines for tests of the verdict: robots, their true parameters, and recordings as a user has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dynid.arrays import Array
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.simulation import ComputedTorque, Reference, VirtualRobot, joint_inertia
from reproductions._data import data

RATE, PERIOD, PERIODS = 250.0, 10.0, 2
NOISE = 0.01  # of each joint's torque, white
FRICTION = ("viscous", "coulomb", "offset")
ROUGH = 0.15  # how far the bodies of the machine are from those of the robot's file
_MOTIONS = 8  # random ones, of which the best conditioned is taken
THINNEST = 1e-3  # of the largest eigenvalue of a body's scaled pseudo-inertia: files have bodies that cannot exist
LIGHTEST = 0.01  # kg: of a body that a file gives no mass


def planar(links: int) -> Robot:
    """Return an arm with equal links and parallel axes in a vertical plane."""
    lengths, masses = np.linspace(0.5, 0.3, links), np.linspace(6.0, 1.5, links)
    own = masses * lengths ** 2
    zero = np.zeros(links)
    inertias = np.column_stack([0.02 * own, zero, zero, own / 3.0, zero, own / 3.0, masses * lengths / 2.0, zero,
                                zero, masses])
    rows = [(0.0, 0.0 if i == 0 else float(lengths[i - 1]), 0.0, 0.0) for i in range(links)]
    return Robot.from_mdh(rows, name=f"planar{links}", gravity=(0.0, -9.81, 0.0), inertias=inertias)


def _urdf(name: str) -> Callable[[], Robot]:
    return lambda: Robot.from_urdf(data("models", name))


# Settings were chosen on the first group; the numbers of the second are reported apart.
CHOSEN_ON: Mapping[str, Callable[[], Robot]] = {
    "arm3r": lambda: Robot.builtin("arm3r"), "puma560": lambda: Robot.builtin("puma560"),
    "kuka-lwr4": lambda: Robot.builtin("kuka-lwr4"), "planar4": lambda: planar(4)}
JUDGED_ON: Mapping[str, Callable[[], Robot]] = {
    "ur10": lambda: Robot.builtin("ur10"), "franka-panda": lambda: Robot.builtin("franka-panda"),
    "planar5": lambda: planar(5), "ur5": _urdf("ur5_robot.urdf"),
    "iiwa14": lambda: Robot.builtin("kuka-iiwa14")}


@dataclass(frozen=True, eq=False)
class Machine:
    """A robot with its true parameters theta (parameters,). nominal: parameters of the robot file, without friction;
    fast: speed relative to the usual one; torque (dof,): RMS of its usual torque."""

    name: str
    model: Model
    theta: Array
    torque: Array
    seed: int

    @property
    def dof(self) -> int:
        return self.model.dof

    def changed(self, theta: Array) -> Machine:
        return replace(self, theta=theta)

    def index(self, kind: str, joint: int) -> int:
        """Return the index of a parameter by kind and joint (from 0)."""
        return self.model.parameters.index(f"{kind}{joint + 1}")

    def record(self, motion: int = 0, *, speed: float = 1.0, size: float = 1.0, gravity: Array | None = None,
               source: str = "log", noise: float = NOISE, bits: int = 18, thin: int = 1) -> Recording:
        """Return a log of the machine under a computed-torque law.

        Args:
            motion: which of its exciting motions.
            speed, size: factors on the speed and amplitude of the motion.
            gravity: (3,), m/s^2: how the machine is really mounted; by default as its file states.
            source: name of the log.
            noise: standard deviation of the torque noise, as a share of each joint's torque.
            bits: of the encoders, per turn or per 2 pi m.
            thin: one row in so many is logged.
        """
        plant = self.model if gravity is None else Model(self.model.robot.with_gravity(gravity), self.model.terms)
        reference = exciting(self.name, self.seed + 100 * motion, speed, size)
        robot = VirtualRobot(plant, self.theta, ComputedTorque(plant, self.theta, 900.0, 60.0), smooth="stick",
                             encoder=2.0 * np.pi / 2 ** bits, torque_noise=noise * self.torque, thin=thin)
        made = robot.record(reference, seed=self.seed + 7 * motion)
        return replace(made, reference=None, reference_velocity=None, source=source)


@dataclass(frozen=True, eq=False)
class RealMachine:
    """A real machine for added faults: a log, another log of it, and its robot."""

    log: Recording
    other: Recording
    robot: Robot

    def record(self, motion: int = 0, *, source: str = "log") -> Recording:
        """Return the log of the fit or the other log."""
        return replace(self.other, source=source) if motion else self.log


@cache
def robot_of(name: str) -> Robot:
    return (CHOSEN_ON | JUDGED_ON)[name]()


def model_of(robot: Robot) -> Model:
    return Model(robot, make_terms(robot, friction=FRICTION, rotor=True))


@cache
def exciting(name: str, seed: int, speed: float = 1.0, size: float = 1.0) -> Reference:
    """Return the random Fourier motion with the smallest condition number, of several inside the limits of the
    robot."""
    robot, rng = robot_of(name), np.random.default_rng(seed)
    model, base = model_of(robot), base_parameters(model_of(robot))
    lower, upper = np.maximum(robot.limit("lower"), -1.6), np.minimum(robot.limit("upper"), 1.6)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    fastest = np.minimum(robot.limit("velocity"), 2.0)
    best: tuple[float, FourierSeries] | None = None
    for _ in range(_MOTIONS):
        a, b = rng.normal(size=(2, robot.dof, 5))
        t = np.linspace(0.0, PERIOD, 400)
        found = FourierSeries(a, b, np.zeros(robot.dof), PERIOD).at(t)
        scale = np.minimum(0.85 * half / np.abs(found.q).max(axis=0), 0.85 * fastest / np.abs(found.dq).max(axis=0))
        series = FourierSeries(a * scale[:, None], b * scale[:, None], middle, PERIOD)
        motion = series.at(t[::4])
        y = model.regressor(motion.q, motion.dq, motion.ddq)[:, :, base.independent].reshape(-1, len(base))
        condition = float(np.linalg.cond(y / np.linalg.norm(y, axis=0)))
        if best is None or condition < best[0]:
            best = (condition, series)
    assert best is not None
    chosen = FourierSeries(size * best[1].a, size * best[1].b, middle, PERIOD)
    grid = np.arange(int(PERIOD * PERIODS * RATE)) / RATE
    found = chosen.at(speed * grid)
    return Reference(found.q, speed * found.dq, speed ** 2 * found.ddq, RATE)


def physical(numbers: Array) -> Array:
    """Return the ten parameters (10,) of a physically consistent body near the given ones: the eigenvalues of its
    pseudo-inertia, in units of its mass and size, are raised to a small share of the largest one."""
    pseudo = ten.pseudo_inertia(numbers)
    pseudo[3, 3] = max(pseudo[3, 3], LIGHTEST)
    size = np.sqrt(max(float(np.trace(pseudo[:3, :3])), 1e-12) / pseudo[3, 3])
    units = np.array([size, size, size, 1.0])
    values, vectors = np.linalg.eigh(pseudo / np.outer(units, units))
    raised = vectors * np.maximum(values, THINNEST * values[-1]) @ vectors.T
    return np.asarray(ten.from_pseudo_inertia(raised * np.outer(units, units)))


def machine(name: str, seed: int) -> Machine:
    """Return a machine of a type, with bodies close to those of the robot file, rotors and friction. A physically
    inconsistent body of the file is replaced by a consistent one (`physical`)."""
    robot, rng = robot_of(name), np.random.default_rng(1000 + seed)
    model = model_of(robot)
    reference = exciting(name, seed)
    theta = np.array([0.0 if p.nominal is None else p.nominal for p in model.parameters])
    for body in dict.fromkeys(p.body for p in model.parameters if p.body is not None):
        own = [i for i, p in enumerate(model.parameters) if p.body == body]
        theta[own] *= np.exp(ROUGH * rng.normal())
        theta[own] = theta[own] if ten.can_exist(theta[own]) else physical(theta[own])
    inertia = joint_inertia(model, theta, reference.q[::50])
    rows = slice(None, None, 20)
    motion = (reference.q[rows], reference.dq[rows], reference.ddq[rows])
    for j in range(robot.dof):
        theta[model.parameters.index(f"Ia{j + 1}")] = 0.3 * inertia[j]
    rigid = np.sqrt(np.mean(model.inverse_dynamics(theta, *motion) ** 2, axis=0))
    for j in range(robot.dof):
        speed = float(np.sqrt(np.mean(reference.dq[:, j] ** 2)))
        theta[model.parameters.index(f"Fc{j + 1}")] = rng.uniform(0.1, 0.25) * rigid[j]
        theta[model.parameters.index(f"Fv{j + 1}")] = rng.uniform(0.1, 0.25) * rigid[j] / speed
        theta[model.parameters.index(f"Fo{j + 1}")] = 0.02 * rng.normal() * rigid[j]
    torque = np.sqrt(np.mean(model.inverse_dynamics(theta, *motion) ** 2, axis=0))
    return Machine(name, model, theta, torque, seed)


def bare(robot: Robot) -> Robot:
    """Return the robot without inertias in its file."""
    return replace(robot, bodies=tuple(replace(body, inertia=None) for body in robot.bodies))


def far_off(robot: Robot, rng: np.random.Generator, spread: float) -> Robot:
    """Return the robot with wrong inertias in its file: an individual factor for every body."""
    return replace(robot, bodies=tuple(
        body if body.inertia is None else replace(body, inertia=body.inertia * np.exp(spread * rng.normal()))
        for body in robot.bodies))

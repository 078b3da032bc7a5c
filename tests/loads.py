"""A virtual arm of seven joints with and without known loads, as prepared logs, for tests of payloads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.signal import butter, sosfilt

from dynid.arrays import Array
from dynid.consistency import Consistency, nearest
from dynid.excitation import FourierSeries
from dynid.model import Coulomb, Model, Offset, RigidBodies, Viscous
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.robot import inertia as ten

FRAME, MASS, CENTRE = "tool", 4.092, np.array([0.01, -0.02, 0.017])
INERTIA = np.diag([0.0054, 0.0054, 0.01])
LOAD = ten.from_central(MASS, CENTRE, INERTIA)
GAINS = np.array([13.0, 14.5, 9.0, 9.5, 7.2, 6.1, 5.0])  # N m/A, of the drives
_NOISE = np.array([1.0, 1.2, 0.6, 0.7, 0.3, 0.3, 0.2])  # N m


@dataclass(frozen=True, eq=False)
class Arm:
    """A model and its true parameters, without load."""

    model: Model
    theta: Array

    def loaded(self, numbers: Array, frame: str = FRAME) -> Array:
        """True parameters with a load of ten numbers on a frame."""
        place = self.model.robot.frame(frame)
        theta = self.theta.copy()
        theta[self.model.parameters.bodies[self.model.robot.bodies[place.body].name]] += (
            ten.change_frame(place.pose) @ numbers)
        return theta

    def recording(self, seed: int, theta: Array | None = None, *, noise: float = 1.0, seconds: float = 20.0,
                  rate: float = 100.0, motion: int | None = None) -> Recording:
        """A log under torque noise, half of it slow; motion: the seed of the motion, where that is another."""
        rng, way = np.random.default_rng(seed), np.random.default_rng(seed if motion is None else motion)
        a, b = 0.25 * way.normal(size=(2, 7, 5))
        t = np.arange(0.0, seconds, 1.0 / rate)
        along = FourierSeries(a, b, np.array([0, 0.5, 0, -1.2, 0, 0.8, 0]), seconds).at(t)
        tau = self.model.inverse_dynamics(self.theta if theta is None else theta, along.q, along.dq, along.ddq)
        slow = sosfilt(butter(1, 1.0, fs=rate, output="sos"), rng.normal(size=(len(t) + 500, 7)), axis=0)[500:]
        wrong = 0.5 * _NOISE * noise * (slow / slow.std(axis=0) + rng.normal(size=tau.shape))
        return Recording(t, along.q, tau + wrong, joints=self.model.joint_names, source=f"log {seed}")

    def stream(self, seed: int, theta: Array | None = None, *, seconds: float = 60.0, noise: float = 1.0,
               rate: float = 100.0, change: tuple[float, Array] | None = None) -> Recording:
        """A motion that never repeats, slows down and stops now and then. change: the time, s, and the parameters from
        then on."""
        rng, t = np.random.default_rng(seed), np.arange(0.0, seconds, 1.0 / rate)
        pace = 0.9 + 0.9 * np.sin(2.0 * np.pi * t / rng.uniform(40, 90) + rng.uniform(0, 6)) \
            + 0.3 * np.sin(2.0 * np.pi * t / rng.uniform(13, 25))
        along = sosfilt(butter(2, 1.0, fs=rate, output="sos"), np.cumsum(np.clip(pace, 0.0, 1.5)) / rate)
        speed, phase = rng.uniform(0.05, 0.4, (7, 5)), rng.uniform(0, 6.28, (7, 5))
        size = 0.25 * rng.normal(size=(7, 5))
        q = np.array([0, 0.5, 0, -1.2, 0, 0.8, 0]) + np.stack(
            [np.sin(2.0 * np.pi * np.outer(along, speed[j]) + phase[j]) @ size[j] for j in range(7)], axis=1)
        dq = np.gradient(q, 1.0 / rate, axis=0)
        motion = q, dq, np.gradient(dq, 1.0 / rate, axis=0)
        tau = self.model.inverse_dynamics(self.theta if theta is None else theta, *motion)
        if change is not None:
            tau = np.where((t < change[0])[:, None], tau, self.model.inverse_dynamics(change[1], *motion))
        slow = sosfilt(butter(1, 1.0, fs=rate, output="sos"), rng.normal(size=(len(t) + 500, 7)), axis=0)[500:]
        tau += 0.5 * _NOISE * noise * (slow / slow.std(axis=0) + rng.normal(size=tau.shape))
        return Recording(t, q, tau, joints=self.model.joint_names, source=f"stream {seed}")

    def log(self, seed: int, theta: Array | None = None, **options: float) -> Samples:
        return prepare(self.recording(seed, theta, **options), cutoff=8.0)


@cache
def arm() -> Arm:
    robot = Robot.builtin("kuka-iiwa14")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset()))
    return Arm(model, nearest(Consistency(model.parameters), model.parameters.nominal).theta)


def controller_targets(log: Recording, seed: int) -> Recording:
    """Targets of a controller whose bodies are 5 % off and whose friction has a Stribeck peak that no column has."""
    machine, rng = arm(), np.random.default_rng(seed)
    bodies = np.array([p.kind.group == "body" for p in machine.model.parameters])
    theta = np.where(bodies, machine.theta * (1.0 + 0.05 * rng.normal(size=len(bodies))), 0.0)
    dq = np.gradient(log.q, log.t, axis=0)
    torque = machine.model.inverse_dynamics(theta, log.q, dq, np.gradient(dq, log.t, axis=0))
    friction = rng.uniform(0.05, 0.3, 7) * (np.tanh(dq / 0.03) * (1.0 + 0.5 * np.exp(-(dq / 0.1) ** 2)) + 0.3 * dq)
    current = torque / GAINS + friction + 0.02 * rng.normal(size=dq.shape)
    return replace(log, dq=dq, target_torque=torque, target_current=current)

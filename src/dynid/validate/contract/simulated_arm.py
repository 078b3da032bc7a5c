"""A small simulated arm and its logs, on which every method is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem
from dynid.model import Model, RigidBodies, Stribeck, complete, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot, inertia
from dynid.simulation import PD, Reference, VirtualRobot

RATE = 100.0  # Hz: sampling rate of the logs; the motion contains frequencies up to 2 Hz
SECONDS = 3.0  # s: length of each log
CUTOFF = 8.0  # Hz: low-pass cut-off of positions and torques
POSITION_NOISE, TORQUE_NOISE = 1e-4, 0.05  # rad and N m: standard deviations
LENGTHS = (0.4, 0.25)  # m: lengths of the links
MASSES = (4.0, 2.0)  # kg
CENTRES = ((-0.2, 0.02, 0.01), (-0.12, 0.01, -0.02))  # m: centres of mass in the links' frames
INERTIAS = ((0.02, 0.06, 0.07), (0.01, 0.02, 0.025))  # kg m^2: moments of inertia about the centres of mass
GAINS = ((320.0, 25.0), (24.0, 1.9))  # N m/rad and N m s/rad: controller gains of each joint
VISCOUS, COULOMB, STRIBECK = 0.5, 0.8, -0.4  # N m s/rad and N m


@dataclass(frozen=True, eq=False)
class Arm:
    """A planar arm with one or two joints in a vertical plane, and its simulated logs.

    Attributes:
        model: rigid bodies and friction.
        theta: true values of the standard parameters (parameters,), SI units.
        law: the control law of the simulation.
        recordings: the simulated logs.
        samples: the same logs, prepared for regression.
    """

    model: Model
    theta: Array
    law: PD
    recordings: tuple[Recording, ...]
    samples: tuple[Samples, ...]

    def problem(self, **options: Any) -> Problem:
        """Return the identification problem of the arm's logs; options of `Problem.from_model`."""
        return Problem.from_model(self.model, self.samples, recordings=self.recordings, controller=self.law,
                                  nominal=self.theta, **options)

    def reordered(self, order: Sequence[int]) -> Arm:
        """Return the same arm with its logs in another order."""
        return replace(self, recordings=tuple(self.recordings[k] for k in order),
                       samples=tuple(self.samples[k] for k in order))

    def with_torques(self, factor: float, constant: float = 0.0) -> Arm:
        """Return the same arm with `factor` times the measured torques, plus a constant in N m."""
        def changed(tau: Array) -> Array:
            return factor * tau + constant
        return replace(self, recordings=tuple(replace(one, tau=changed(one.tau)) for one in self.recordings),
                       samples=tuple(replace(one, tau=changed(one.tau), raw_tau=None if one.raw_tau is None
                                             else changed(one.raw_tau)) for one in self.samples))


@cache
def arm(joints: int = 2, *, length: float = 1.0, force: float = 1.0, still: bool = False, shape: bool = False) -> Arm:
    """Simulate the arm along two motions.

    Args:
        joints: 1 or 2.
        length: length unit in metres; geometry, gravity, torques and parameters are in this unit.
        force: mass unit in kilograms.
        still: whether the last joint is at rest.
        shape: whether the model has Stribeck friction with an unknown shape parameter.
    """
    model, theta = _model(joints, length, force, shape)
    kp, kd = force * length ** 2 * np.array(GAINS[:joints]).T
    law = PD(kp=kp, kd=kd)
    noise = force * length ** 2 * TORQUE_NOISE
    machine = VirtualRobot(model, theta, law, position_noise=POSITION_NOISE, torque_noise=noise)
    recordings = tuple(_still_log(machine, seed) if still else machine.record(_reference(seed, joints), seed=seed)
                       for seed in range(2))
    return Arm(model, theta, law, recordings, tuple(prepare(log, cutoff=CUTOFF) for log in recordings))


@cache
def noise_free_arm(shape: bool = False) -> Arm:
    """Return the arm with torques that its parameters explain to the last digit."""
    noisy = arm(shape=shape)
    recordings, samples = [], []
    for seed in range(2):
        log = VirtualRobot(noisy.model, noisy.theta, noisy.law).record(_reference(seed, 2), seed=seed)
        dq = np.gradient(log.q, 1.0 / RATE, axis=0)
        ddq = np.gradient(dq, 1.0 / RATE, axis=0)
        tau = noisy.model.inverse_dynamics(noisy.theta, log.q, dq, ddq)
        recordings.append(replace(log, tau=tau))
        samples.append(Samples.from_arrays(log.q, dq, ddq, tau, rate=RATE))
    return replace(noisy, recordings=tuple(recordings), samples=tuple(samples))


def _model(joints: int, length: float, force: float, shape: bool) -> tuple[Model, Array]:
    """Return the model of the arm and its true parameters."""
    bodies = inertia.from_central(force * np.array(MASSES), length * np.array(CENTRES),
                                  force * length ** 2 * np.array([np.diag(row) for row in INERTIAS]))
    robot = Robot.from_dh([(0.0, length * a, 0.0, 0.0) for a in LENGTHS[:joints]], name="contract",
                          inertias=bodies[:joints], gravity=(0.0, -9.81 * length, 0.0))
    terms = (RigidBodies(), Stribeck(free=("delta", "alpha"))) if shape \
        else make_terms(robot, friction=("viscous", "coulomb"))
    model = Model(robot, terms)
    friction = {"Fv": VISCOUS, "Fc": COULOMB, "Fsc": STRIBECK}
    torque = force * length ** 2
    theta = [torque * friction.get(item.symbol, 0.0) if item.nominal is None else item.nominal
             for item in model.parameters]
    return model, np.array(theta)


def _reference(seed: int, joints: int) -> Reference:
    """Return a periodic motion of five harmonics, which starts at rest in position zero."""
    t = np.arange(round(SECONDS * RATE)) / RATE
    phase = np.outer(t, 2.0 * np.pi / SECONDS * np.arange(1, 6))
    sines, cosines = 0.3 * np.random.default_rng(seed).normal(size=(2, 5, 2)) / np.sqrt([[1], [2], [3], [4], [5]])
    q = np.sin(phase) @ sines + (np.cos(phase) - 1.0) @ cosines
    return Reference.from_arrays(np.ascontiguousarray(q[:, :joints]), rate=RATE)


def _still_log(machine: VirtualRobot, seed: int) -> Recording:
    """Return a log in which the last joint is at rest, except for the noise of its encoder."""
    reference, rng = _reference(seed, machine.model.dof), np.random.default_rng(seed)
    q, dq, ddq = (np.array(x) for x in (reference.q, reference.dq, reference.ddq))
    q[:, -1] = dq[:, -1] = ddq[:, -1] = 0.0
    tau = complete(machine.model).inverse_dynamics(machine.theta, q, dq, ddq)
    return Recording(reference.t, q + POSITION_NOISE * rng.normal(size=q.shape),
                     tau + np.asarray(machine.torque_noise) * rng.normal(size=q.shape), reference=q,
                     reference_velocity=dq, joints=complete(machine.model).joint_names,
                     source=f"still joint, seed {seed}")

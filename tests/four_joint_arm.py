"""A virtual arm of four joints with inertias between 0.064 and 7 kg m^2 and its control law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.robot import BASE, Body, Joint, Robot
from dynid.robot import inertia as ten
from dynid.simulation import PD, Reference, VirtualRobot, joint_inertia

_TURN = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
_PLACES = ((np.eye(3), (0, 0, 0.3)), (_TURN, (0.1, 0, 0.2)), (np.eye(3), (0.5, 0, 0)), (_TURN.T, (0.4, 0, 0)))
_LINKS = ((20.0, (0.02, 0.01, 0.1), (0.4, 0.4, 0.3)), (12.0, (0.25, 0.02, 0.03), (0.05, 0.5, 0.5)),
          (6.0, (0.2, 0.01, -0.02), (0.03, 0.15, 0.15)), (2.5, (0.06, 0.03, 0.01), (0.03, 0.03, 0.0528)))
_FRICTION = {"Fv": (8.0, 8.0, 3.0, 0.3), "Fc": (6.0, 6.0, 2.5, 0.4)}
RAW = {"method": "none", "torque_cutoff": "none", "slow": 0.0}


@dataclass(frozen=True, eq=False)
class Machine:
    """The model of the arm, its true parameters (parameters,), its control law and its reference."""

    model: Model
    theta: Array
    law: PD
    reference: Reference

    def log(self, *, position_noise: float, seed: int) -> Recording:
        return VirtualRobot(self.model, self.theta, self.law, position_noise=position_noise,
                            torque_noise=[1.0, 1.0, 0.5, 0.1]).record(self.reference, seed=seed)

    def problem(self, log: Recording, **filters: object) -> Problem:
        return Problem.from_model(self.model, prepare(log, **filters), recordings=log, controller=self.law)


def machine(omega: float = 25.0, seconds: float = 12.0) -> Machine:
    """omega: rad/s, of each joint's loop, damped by 0.8."""
    joints = []
    for k, (turn, place) in enumerate(_PLACES):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = turn, place
        joints.append(Joint(f"joint{k + 1}", "revolute", k - 1 if k else BASE, before=pose, lower=-3.0, upper=3.0,
                            velocity=5.0, acceleration=50.0, effort=1000.0))
    bodies = tuple(Body(f"link{k + 1}", ten.from_central(np.array([mass]), np.array([com]),
                                                         np.array([np.diag(inertia)]))[0])
                   for k, (mass, com, inertia) in enumerate(_LINKS))
    robot = Robot("four", tuple(joints), bodies, gravity=np.array([0, 0, -9.81]), source="tests")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([parameter.nominal or 0.0 for parameter in model.parameters])
    for symbol, values in _FRICTION.items():
        for j, value in enumerate(values):
            theta[model.parameters.index(f"{symbol}{j + 1}")] = value
    rng, t = np.random.default_rng(0), np.arange(int(seconds * 1000)) / 1000.0
    w = 4.0 * np.pi / seconds * np.arange(1, 6)
    a, b = 0.25 * rng.normal(size=(2, 5, 4))
    reference = Reference.from_arrays(np.sin(np.outer(t, w)) @ a + (np.cos(np.outer(t, w)) - 1.0) @ b, rate=1000.0)
    inertia = np.atleast_2d(joint_inertia(model, theta, reference.q)).max(axis=0)
    return Machine(model, theta, PD(kp=inertia * omega ** 2, kd=1.6 * inertia * omega), reference)

"""Friction from load: columns against the formula, forward against inverse dynamics, recovery, dissipation."""

from __future__ import annotations

import numpy as np
import pytest
from robots import random_robot

from dynid import dynamics
from dynid.estimate import Problem, identify
from dynid.model import LoadFriction, Model, RigidBodies, RotorInertia, Sign, make_terms
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.simulation import PD, Reference, simulate


def _values(model, **given):
    return np.array([given.get(p.symbol, p.nominal or 0.0) for p in model.parameters])


def _motion(dof, seed=0, samples=5000, rate=200.0):
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / rate
    q, dq, ddq = np.zeros((3, samples, dof))
    for j in range(dof):
        for k in range(1, 6):
            w, phase, size = 2 * np.pi * k / 8.0, rng.uniform(0, 2 * np.pi), rng.normal() / k
            q[:, j] += size * np.sin(w * t + phase)
            dq[:, j] += size * w * np.cos(w * t + phase)
            ddq[:, j] -= size * w * w * np.sin(w * t + phase)
    return q, dq, ddq


@pytest.mark.parametrize("apart", [False, True])
def test_torque_is_a_share_of_that_of_the_bodies(apart):
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, (RigidBodies(), RotorInertia(), LoadFriction(separate=apart)))
    theta = _values(model, Ia=0.3, Fl=0.1, Flm=0.1, Flg=0.04)
    q, dq, ddq = (x[::50] for x in _motion(7))
    bodies = dynamics.inverse_dynamics(robot, model.body_numbers(theta), q, dq, ddq)
    factor = np.where(bodies * dq > 0, 0.1, 0.04) if apart else 0.1
    expected = bodies + 0.3 * ddq + factor * np.abs(bodies) * np.sign(dq)
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), expected, rtol=1e-12, atol=1e-12)


def test_forward_dynamics_undo_inverse_dynamics():
    robot = random_robot(np.random.default_rng(3), 4)
    model = Model(robot, (RigidBodies(), RotorInertia(), LoadFriction(sign=Sign("tanh", 0.1))))
    theta = _values(model, Ia=0.05)
    theta[[p.symbol == "Fl" for p in model.parameters]] = 0.5, 0.1, 0.4, 0.3
    q, dq, ddq = np.random.default_rng(4).normal(size=(3, 20, 4))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    np.testing.assert_allclose(model.forward_dynamics(theta, q, dq, tau), ddq, atol=1e-8)


@pytest.mark.parametrize("smooth", [None, "stick"])
def test_a_simulation_gives_back_its_own_torques(smooth):
    robot = Robot.builtin("arm3r")
    model = Model(robot, (RigidBodies(), RotorInertia(), LoadFriction(separate=True, sign=Sign("tanh", 0.05))))
    theta = _values(model, Ia=0.2, Flm=0.2, Flg=0.1)
    t = np.arange(1000) / 1000.0
    reference = Reference(*(np.outer(x, np.ones(robot.dof)) for x in (
        np.sin(4 * t), 4 * np.cos(4 * t), -16 * np.sin(4 * t))), 1000.0)
    motion = simulate(model, theta, PD(np.full(robot.dof, 400.0), np.full(robot.dof, 40.0)), reference, smooth=smooth)
    np.testing.assert_allclose(model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq), motion.tau, atol=1e-7)


def test_a_fall_never_gains_energy():
    robot = Robot.builtin("arm3r")
    model = Model(robot, (RigidBodies(), RotorInertia(), LoadFriction()))
    theta = _values(model, Ia=0.1, Fl=0.3)
    still = Reference(*np.zeros((3, 2000, robot.dof)), 1000.0)
    start = np.zeros((2, robot.dof))
    start[0] = 0.7
    motion = simulate(model, theta, PD(np.zeros(robot.dof), np.zeros(robot.dof)), still, start=start)
    kinetic = 0.5 * np.einsum("si,sij,sj->s", motion.dq, model.inertia_matrix(theta, motion.q), motion.dq)
    gravity = dynamics.gravity(robot, model.body_numbers(theta), motion.q)
    # Work of gravity by the trapezoidal rule: what it takes from the potential energy, to 1e-4 of it at 1 kHz.
    power = np.einsum("si,si->s", gravity, motion.dq)
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1])) / 1000.0])
    energy = kinetic + work
    assert np.all(np.diff(energy) <= 1e-5 * np.abs(work).max())
    assert energy[-1] < -1e-3 * np.abs(work).max()


def test_factors_are_recovered_within_two_deviations():
    """Twelve logs of a KUKA LWR4+ with noise: every factor, without nominal values of the bodies."""
    robot = Robot.builtin("kuka-lwr4")
    true = Model(robot, make_terms(robot, friction=["viscous", "coulomb", "load"]))
    theta = _values(true, Fv=2.0, Fc=3.0)
    loaded = np.array([p.symbol == "Fl" for p in true.parameters])
    theta[loaded] = 0.12, 0.08, 0.1, 0.06, 0.3, 0.2, 0.2
    off = []
    for seed in range(6):
        q, dq, ddq = _motion(7, seed)
        tau = true.inverse_dynamics(theta, q, dq, ddq) + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
        estimate = identify(Problem.from_model(true, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), method="wls")
        places = [estimate.names.index(p.name) for p in true.parameters if p.symbol == "Fl"]
        off += list((estimate.values[places] - theta[loaded]) / estimate.std[places])
        assert np.all((estimate.values[places] >= 0.0) & (estimate.values[places] <= 0.5))
    assert np.mean(np.abs(off) <= 2.0) >= 0.9


def test_rotors_take_no_part_in_the_load():
    """Torques cannot tell a rotor's inertia from its link's: with links as in the robot's file the factors come out."""
    robot = Robot.builtin("arm3r")
    true = Model(robot, make_terms(robot, rotor=True, friction=["viscous", "coulomb", "load"]))
    theta, off = _values(true, Ia=0.5, Fv=0.5, Fc=0.5, Fl=0.1), []
    for seed in range(4):
        q, dq, ddq = _motion(robot.dof, seed)
        tau = true.inverse_dynamics(theta, q, dq, ddq) + 0.1 * np.random.default_rng(seed).normal(size=q.shape)
        estimate = identify(Problem.from_model(true, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), method="wls")
        places = [estimate.names.index(p.name) for p in true.parameters if p.symbol == "Fl"]
        off += list((estimate.values[places] - 0.1) / estimate.std[places])
    assert np.mean(np.abs(off) <= 2.0) >= 0.8, np.round(off, 1)


def test_a_joint_without_load_keeps_within_bounds():
    """Joints that carry nothing tell nothing of it: the factor stays in [0, 0.5], and its deviation says so."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=["viscous", "coulomb", "load"]))
    theta = _values(model, Fv=0.5, Fc=0.5, Fl=0.0)
    q, dq, ddq = _motion(robot.dof, 2)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 2.0 * np.random.default_rng(1).normal(size=q.shape)
    for method in ("wls", "pc-wls"):
        estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), method=method)
        places = [estimate.names.index(p.name) for p in model.parameters if p.symbol == "Fl"]
        assert np.all((estimate.values[places] >= -1e-9) & (estimate.values[places] <= 0.5 + 1e-9))

"""Friction over velocity, as an estimate has it and as the data show it."""

from __future__ import annotations

import numpy as np

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.validate import reconstruct
from dynid.validate.friction_shape import friction_shapes


def test_the_curve_is_the_friction_and_the_data_stand_about_it():
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=["viscous", "coulomb", "offset", "load"]))
    values = {"Fv": 0.5, "Fc": 0.8, "Fo": 0.2, "Fl": 0.1}
    theta = np.array([values.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    t = np.arange(4000)[:, None] / 200
    rate = 2 * np.pi * np.array([0.3, 0.43, 0.59])
    q, dq, ddq = np.sin(rate * t), rate * np.cos(rate * t), -rate ** 2 * np.sin(rate * t)
    inside = []
    for seed in range(4):
        tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * np.random.default_rng(seed).normal(size=q.shape)
        samples = Samples.from_arrays(q, dq, ddq, tau, rate=200.0)
        shapes = friction_shapes(reconstruct(identify(Problem.from_model(model, samples), method="wls"), samples))
        assert [shape.joint for shape in shapes] == list(robot.joint_names)
        for shape in shapes:
            truth = 0.5 * shape.velocity + 0.8 * np.sign(shape.velocity)
            inside += list(np.abs(shape.torque - truth) <= 2.0 * shape.std)
            np.testing.assert_allclose(shape.medians, 0.5 * shape.centres + 0.8 * np.sign(shape.centres), atol=0.06)
            assert np.all((shape.low <= shape.medians) & (shape.medians <= shape.high))
    assert np.mean(inside) > 0.85


def test_a_model_without_friction_has_none_to_show():
    robot = Robot.builtin("arm3r")
    q = np.random.default_rng(0).normal(size=(300, 3))
    samples = Samples.from_arrays(q, q, q, q, rate=100.0)
    assert friction_shapes(reconstruct(identify(Model(robot), samples, method="wls"), samples)) == ()

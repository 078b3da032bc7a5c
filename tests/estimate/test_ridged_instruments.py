"""Instruments and parameters that only a ridge tells apart."""

from __future__ import annotations

import numpy as np
from refusals import refused

from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot


def test_a_full_curve_is_refused_by_name():
    robot, rng = Robot.builtin("arm3r"), np.random.default_rng(0)
    t = np.arange(2000)[:, None] / 100
    rate = 2 * np.pi * np.array([0.3, 0.43, 0.59])
    q, dq, ddq = np.sin(rate * t), rate * np.cos(rate * t), -rate ** 2 * np.sin(rate * t)
    plain = Model(robot, make_terms(robot, friction=["viscous", "coulomb"]))
    theta = [{"Fv": 0.5, "Fc": 0.5}.get(item.symbol, item.nominal or 0.0) for item in plain.parameters]
    tau = plain.inverse_dynamics(theta, q, dq, ddq) + 0.02 * rng.normal(size=q.shape)
    samples = Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    with refused(NotPossibleError, "no-instruments", "'iv'"):
        identify(Problem.from_model(Model(robot, make_terms(robot, friction=["curve", "offset"])), samples),
                 method="iv")

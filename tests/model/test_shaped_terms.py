"""Springs and friction by formula: against energies and formulas, and recovered from noisy data."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.model import (
    Cable,
    Counterbalance,
    ExponentialStribeck,
    GasSpring,
    Model,
    PolynomialFriction,
    PolynomialSpring,
    RigidBodies,
    RippleTorque,
    make_terms,
)
from dynid.recording import Samples
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")


def test_a_gas_spring_gives_the_slope_of_its_energy():
    """By differences of the potential -(Fg L + Kg (longest L - L^2 / 2)) of a push F(L)."""
    term, q = GasSpring(2, base=0.4, link=0.25, zero=0.3), np.linspace(-2.0, 2.0, 9)
    motion = np.column_stack([q, q, q])
    force, stiffness = 300.0, 800.0
    columns = {k: values for _, k, values in term.entries(ROBOT, motion, motion, motion)}

    def potential(angle):
        length = np.sqrt(0.4 ** 2 + 0.25 ** 2 - 2 * 0.4 * 0.25 * np.cos(angle - 0.3))
        return -(force * length + stiffness * (0.65 * length - 0.5 * length ** 2))

    expected = (potential(q + 1e-6) - potential(q - 1e-6)) / 2e-6
    np.testing.assert_allclose(force * columns[0] + stiffness * columns[1], expected, rtol=1e-6, atol=1e-6)


def test_a_counterbalance_gives_the_slope_of_its_energy():
    term, q = Counterbalance(1, base=0.3, link=0.5, zero=-0.2, slack=0.1), np.linspace(-2.5, 2.5, 9)
    motion = np.column_stack([q, q, q])
    ((_, _, column),) = term.entries(ROBOT, motion, motion, motion)

    def potential(angle):
        return 0.5 * (np.sqrt(0.3 ** 2 + 0.5 ** 2 - 0.3 * np.cos(angle + 0.2)) - 0.1) ** 2

    np.testing.assert_allclose(column, (potential(q + 1e-6) - potential(q - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-9)


def test_friction_by_formula():
    v = np.array([-2.0, -0.1, 0.05, 0.4, 1.5])
    motion = np.column_stack([v, v, v])
    falling = [column for _, k, column in ExponentialStribeck(vs=0.2, power=1.5, joints=(2,)).entries(
        ROBOT, motion, motion, motion)]
    expected = (2.0 + 1.5 * np.exp(-(np.abs(v) / 0.2) ** 1.5)) * np.sign(v) + 0.3 * v
    np.testing.assert_allclose(np.array([2.0, 3.5, 0.3]) @ falling, expected, rtol=1e-12)
    powers = [column for _, k, column in PolynomialFriction(degree=2, joints=(1,)).entries(ROBOT, *[motion] * 3)]
    np.testing.assert_allclose(np.array([1.0, 0.5, 0.2]) @ powers, (1.0 + 0.5 * np.abs(v) + 0.2 * v ** 2) * np.sign(v))


VALUES = {"K1_": 4.0, "K2_": -1.0, "K3_": 2.0, "Fg": 200.0, "Kg": 300.0, "Kc": 150.0, "Fp0_": 0.8, "Fp1_": 0.3,
          "Fp2_": 0.2, "Fp3_": 0.05, "Fc": 0.6, "Fs": 1.2, "Fv": 0.4, "Rc5_": 0.3, "Rs5_": -0.2, "Rc9_": 0.1,
          "Rs9_": 0.2, "Cc1_": 0.2, "Cs1_": 0.3, "Cc2_": -0.2, "Cs2_": 0.4, "Fvp": 0.5, "Fvn": 0.8, "Fcp": 0.4,
          "Fcn": 0.7}


@pytest.mark.parametrize("extra", [
    (PolynomialSpring(3), ), (GasSpring(3, 0.4, 0.25, zero=0.3), ), (Counterbalance(3, 0.3, 0.5, slack=0.1), ),
    (PolynomialFriction(), ), (ExponentialStribeck(vs=0.3), ), (RippleTorque((5.0, 9.0), joints=(1, 3)), ),
    (Cable(joints=(3,)), ), make_terms(ROBOT, friction=["asymmetric-viscous", "asymmetric-coulomb"])[1:]],
    ids=lambda terms: terms[0].kind)
def test_a_known_truth_is_recovered_within_two_deviations(extra):
    model = Model(ROBOT, (RigidBodies(), *extra))
    theta = np.array([VALUES.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        t = np.arange(4000) / 200.0
        q, dq, ddq = np.zeros((3, len(t), 3))
        for j in range(3):
            for k in range(1, 7):
                w, phase, size = 2 * np.pi * k / 10.0, rng.uniform(0, 2 * np.pi), 1.5 * rng.normal() / k
                q[:, j] += size * np.sin(w * t + phase)
                dq[:, j] += size * w * np.cos(w * t + phase)
                ddq[:, j] -= size * w * w * np.sin(w * t + phase)
        tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
        problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0))
        estimate = identify(problem, method="wls")
        own = [k for k, c in enumerate(problem.base.independent) if model.parameters.items[c].body is None]
        assert own
        off += list((estimate.values[own] - problem.base.reduce(theta)[own]) / estimate.std[own])
    assert np.mean(np.abs(off) <= 2.0) >= 0.85, np.round(off, 1)


def test_the_fall_of_friction_is_found_by_separable_least_squares():
    model = Model(ROBOT, (RigidBodies(), ExponentialStribeck(vs=0.1, free=("vs",))))
    true = Model(ROBOT, (RigidBodies(), ExponentialStribeck(vs=0.25)))
    theta = np.array([{"Fc": 0.8, "Fs": 1.6, "Fv": 0.3}.get(p.symbol, p.nominal or 0.0) for p in true.parameters])
    rng, t = np.random.default_rng(1), np.arange(8000)[:, None] / 200
    rate = 2 * np.pi * np.array([0.11, 0.17, 0.23])
    q = np.sin(rate * t) + 0.3 * np.sin(2.7 * rate * t)
    dq = rate * np.cos(rate * t) + 0.81 * rate * np.cos(2.7 * rate * t)
    ddq = -rate ** 2 * np.sin(rate * t) - 0.81 * 2.7 * rate ** 2 * np.sin(2.7 * rate * t)
    tau = true.inverse_dynamics(theta, q, dq, ddq) + 0.02 * rng.normal(size=q.shape)
    found = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)),
                     method="sls").diagnostics["shape"]
    for j in range(3):
        assert abs(found[f"vs{j + 1}"]["value"] - 0.25) <= 3.0 * found[f"vs{j + 1}"]["std"]
        assert found[f"vs{j + 1}"]["std"] < 0.05


def test_what_cannot_be_is_refused():
    for wrong in (lambda: PolynomialSpring(1, degree=0), lambda: PolynomialFriction(degree=10),
                  lambda: ExponentialStribeck(free=("delta",)), lambda: RippleTorque(()),
                  lambda: RippleTorque((2.0, 2.0)),
                  lambda: Model(ROBOT, (GasSpring(1, 0.3, 0.3),)),
                  lambda: Model(ROBOT, (Counterbalance(1, 0.3, -1.0),)),
                  lambda: Model(Robot.builtin("emps"), (GasSpring(1, 0.3, 0.2),))):
        with pytest.raises(ModelError):
            wrong()

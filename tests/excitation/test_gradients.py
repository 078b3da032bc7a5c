"""Gradients: how terms change with the motion against differences; information against the fold."""

from __future__ import annotations

import numpy as np
import pytest
from robots import random_robot

from dynid.arrays import Array
from dynid.excitation import Information, magnitudes
from dynid.model import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    Model,
    Offset,
    Payload,
    RigidBodies,
    RotorInertia,
    Scara,
    Sign,
    Spring,
    Stribeck,
    Viscous,
    complete,
    make_terms,
)
from dynid.model.term import Entries
from dynid.model.terms import joint_parameter
from dynid.recording import Samples
from dynid.regression import TorqueEquations, base_parameters, fold
from dynid.regression.equations import Layout
from dynid.robot import Robot


class Cubic:
    """A term that has no rule of its own."""

    def parameters(self, robot: Robot):
        return (joint_parameter(robot, "K3", 0, "N m/rad^3"),)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        yield 0, 0, q[:, 0] ** 3 * dq[:, 1]


TERMS = {
    "rigid": [RigidBodies()], "payload": [RigidBodies(), Payload("tool")], "rotor": [RotorInertia()],
    "viscous": [Viscous()], "coulomb": [Coulomb(sign=Sign("tanh", 0.3))], "arctan": [Coulomb(sign=Sign("arctan", 0.3))],
    "offset": [Offset()], "asymmetric coulomb": [AsymmetricCoulomb(sign=Sign("tanh", 0.3))],
    "asymmetric viscous": [AsymmetricViscous()], "spring": [Spring(2, 0.3)],
    "stribeck": [Stribeck(delta=2.0, alpha=1.7, Kv=3.0)], "own": [Cubic()],
}


@pytest.mark.parametrize("name", TERMS)
def test_sensitivity_of_each_term(name: str) -> None:
    rng = np.random.default_rng(3)
    assert_sensitivity(Model(random_robot(rng, 4), tuple(TERMS[name])), rng)


@pytest.mark.parametrize("name", ["barrett-wam", "staubli-tx40"])
def test_sensitivity_behind_couplings(name: str) -> None:
    robot = Robot.builtin(name)
    assert_sensitivity(Model(robot, make_terms(robot, defaults=True)).with_smooth_signs(0.4), np.random.default_rng(4))


def test_sensitivity_of_a_users_model() -> None:
    assert_sensitivity(Scara(Sign("tanh", 0.5)), np.random.default_rng(5))


def assert_sensitivity(model, rng: np.random.Generator) -> None:
    base = base_parameters(model)
    info = Information.from_model(model, base)
    motion = rng.normal(size=(3, 6, model.dof))
    weights = rng.normal(size=(info.layout.rows, 6))
    rows = info.layout.place[info.layout.place >= 0]

    def total(x: Array) -> Array:
        return np.sum((weights * info.entries(*x))[rows], axis=0)

    ours = complete(model).pull_back(*motion, info.layout.place, weights)
    for which in range(3):
        for j in range(model.dof):
            step = np.zeros_like(motion)
            step[which, :, j] = 1e-5
            slope = (total(motion + step) - total(motion - step)) / 2e-5
            np.testing.assert_allclose(ours[which, :, j], slope, atol=1e-6 * (1 + np.abs(slope).max()))


def test_information_is_the_folds() -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    rng = np.random.default_rng(8)
    q, dq, ddq = rng.normal(size=(3, 120, 3))
    noise = np.array([0.5, 1.0, 2.0])
    y = model.regressor(q, dq, ddq)[:, :, base.independent] / noise[:, None]
    info = Information.from_model(model, base, noise=noise, scale=magnitudes(base))
    scaled = y.reshape(-1, len(base)) * magnitudes(base)
    np.testing.assert_allclose(info.matrix(info.entries(q, dq, ddq)), scaled.T @ scaled, rtol=1e-9, atol=1e-9)
    covariance = np.linalg.inv(y.reshape(-1, len(base)).T @ y.reshape(-1, len(base)))
    np.testing.assert_allclose(info.standard_errors(q, dq, ddq), np.sqrt(np.diag(covariance)), rtol=1e-6)
    # What a log told already is added.
    log = fold(TorqueEquations.from_model(model, Samples.from_arrays(q[:60], dq[:60], ddq[:60], np.zeros((60, 3))),
                                          base))
    more = Information.from_model(model, base, noise=noise, known=log)
    np.testing.assert_allclose(more.standard_errors(q[60:], dq[60:], ddq[60:]), np.sqrt(np.diag(covariance)), rtol=1e-5)


def test_layout_is_shared_with_the_fold() -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot)
    base = base_parameters(model)
    assert Information.from_model(model, base).layout.rows == Layout.from_model(model, base).rows

"""Gradients: the adjoint of the regressor against Pinocchio and differences, every criterion against differences."""

from __future__ import annotations

import numpy as np
import pytest
from robots import random_robot, to_pinocchio

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.adjoint import adjoint_kernel
from dynid.dynamics.tree import tree_of
from dynid.excitation import CRITERIA, Criterion, Information, magnitudes
from dynid.excitation.constraints import TorqueLimit
from dynid.excitation.criteria import Spectrum
from dynid.excitation.trajectory import fourier_functions
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
from dynid.regression import base_parameters, fold
from dynid.regression.fold import Layout
from dynid.robot import Robot


@pytest.mark.parametrize("seed", range(5))
def test_adjoint_of_inverse_dynamics_is_pinocchios(seed: int) -> None:
    import pinocchio as pin

    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5)
    n = robot.dof
    q, dq, ddq = rng.normal(size=(3, 3, n))
    model = to_pinocchio(robot)
    data = model.createData()
    place = np.arange(10 * n * n).reshape(n, 10 * n)
    for j in range(n):
        weights = np.zeros((10 * n * n, 3))
        weights[place[j]] = robot.inertias.ravel()[:, None]  # the sum of weights times entries is then tau_j
        out = np.zeros((3, 3, n))
        adjoint_kernel(*tree_of(robot), q, dq, ddq, place, weights, out, 0, 3)
        for sample in range(3):
            by_q, by_dq, by_ddq = pin.computeRNEADerivatives(model, data, q[sample], dq[sample], ddq[sample])
            by_ddq = np.triu(by_ddq) + np.triu(by_ddq, 1).T
            for ours, theirs in zip(out[:, sample], (by_q, by_dq, by_ddq), strict=True):
                np.testing.assert_allclose(ours, theirs[j], atol=1e-9 * (1 + np.abs(theirs).max()))


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
    info = Information.of(model, base)
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


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("order", [None, 8.0])
def test_gradient_of_each_criterion_by_coefficients(name: str, order: float | None) -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, defaults=True)).with_smooth_signs(0.1)
    base = base_parameters(model)
    rng = np.random.default_rng(6)
    info = Information.of(model, base, noise=rng.uniform(0.5, 2.0, 3), scale=rng.uniform(0.5, 2.0, len(base)))
    functions = fourier_functions(np.linspace(0, 5.0, 200), 5, 5.0)
    criterion = Criterion(name)
    x, d = 0.8 * rng.normal(size=(3, 11)), rng.normal(size=(3, 11))

    def value(x: Array) -> float:
        q, dq, ddq = np.ascontiguousarray(functions[:3] @ x.T)
        return criterion(info.matrix(info.entries(q, dq, ddq)), order)[0]

    q, dq, ddq = np.ascontiguousarray(functions[:3] @ x.T)
    entries = info.entries(q, dq, ddq)
    _, by_matrix = criterion(info.matrix(entries), order)
    slope = info.slope(q, dq, ddq, entries, by_matrix)
    ours = sum(float(np.sum((slope[k].T @ functions[k]) * d)) for k in range(3))
    h = 2e-4  # Richardson: fourth order
    rough, fine = ((value(x + s * d) - value(x - s * d)) / (2 * s) for s in (2 * h, h))
    assert ours == pytest.approx((4 * fine - rough) / 3, rel=1e-6)


def test_criteria_are_what_they_say() -> None:
    rng = np.random.default_rng(7)
    w = rng.normal(size=(40, 6)) * np.array([1, 2, 3, 4, 5, 6.0])
    a = w.T @ w
    assert Criterion("condition")(a)[0] == pytest.approx(np.linalg.cond(w))
    assert Criterion("frobenius")(a)[0] == pytest.approx(np.sqrt(np.trace(a) * np.trace(np.linalg.inv(a))))
    s = np.linalg.svd(w, compute_uv=False)
    assert Criterion("condition+", 2.5)(a)[0] == pytest.approx(np.linalg.cond(w) + 2.5 / s[-1])
    assert Criterion("d")(a)[0] == pytest.approx(-np.linalg.slogdet(a)[1] / 6)
    assert Criterion("a")(a)[0] == pytest.approx(np.sqrt(np.trace(np.linalg.inv(a)) / 6))
    assert Criterion("largest")(a)[0] == pytest.approx(np.sqrt(np.diag(np.linalg.inv(a)).max()))
    hadamard = np.log(np.prod(np.diag(a)) / np.linalg.det(a)) / 6
    assert Criterion("hadamard")(a)[0] == pytest.approx(hadamard)
    assert Criterion("hadamard")(np.diag([1.0, 5.0, 9.0]))[0] == pytest.approx(0.0, abs=1e-12)
    for name in ("condition", "condition+", "largest"):  # stand-ins come from above
        values = [Criterion(name)(a, p)[0] for p in (1, 4, 16, 256)]
        assert values == sorted(values, reverse=True)
        assert values[-1] == pytest.approx(Criterion(name)(a)[0], rel=0.02)
    assert Spectrum.of(np.diag([0.0, 1.0])).values[0] > 0  # nothing excited is very bad, not a division by zero


def test_information_is_the_folds() -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    rng = np.random.default_rng(8)
    q, dq, ddq = rng.normal(size=(3, 120, 3))
    noise = np.array([0.5, 1.0, 2.0])
    y = model.regressor(q, dq, ddq)[:, :, base.independent] / noise[:, None]
    info = Information.of(model, base, noise=noise, scale=magnitudes(base))
    scaled = y.reshape(-1, len(base)) * magnitudes(base)
    np.testing.assert_allclose(info.matrix(info.entries(q, dq, ddq)), scaled.T @ scaled, rtol=1e-9, atol=1e-9)
    covariance = np.linalg.inv(y.reshape(-1, len(base)).T @ y.reshape(-1, len(base)))
    np.testing.assert_allclose(info.deviations(q, dq, ddq), np.sqrt(np.diag(covariance)), rtol=1e-6)
    # What a log told already is added.
    log = fold(model, Samples.of(q[:60], dq[:60], ddq[:60], np.zeros((60, 3))), base=base)
    more = Information.of(model, base, noise=noise, known=log)
    np.testing.assert_allclose(more.deviations(q[60:], dq[60:], ddq[60:]), np.sqrt(np.diag(covariance)), rtol=1e-5)


def test_gradient_of_torques() -> None:
    rng = np.random.default_rng(9)
    robot = random_robot(rng, 4)
    model = Model(robot)
    base = base_parameters(model)
    q, dq, ddq = rng.normal(size=(3, 8, 4))
    limit = TorqueLimit(Information.of(model, base), base.reduce(robot.inertias.ravel()), np.array([1.0, 2, 3, 4]),
                        robot.joint_names)
    torques = dynamics.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(limit.torques(q, dq, ddq), torques, atol=1e-8 * np.abs(torques).max())
    columns = np.arange(8)
    slope = limit.gradient(q, dq, ddq, columns)
    for which in range(3):
        for j in range(4):
            step = np.zeros((3, 8, 4))
            step[which, :, j] = 1e-6
            up, down = limit.values(*(np.array([q, dq, ddq]) + step)), limit.values(*(np.array([q, dq, ddq]) - step))
            expected = ((up - down) / 2e-6)[np.arange(8), columns]
            np.testing.assert_allclose(slope[:, which, j], expected, atol=1e-5 * (1 + np.abs(expected).max()))


def test_layout_is_shared_with_the_fold() -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot)
    base = base_parameters(model)
    assert Information.of(model, base).layout.rows == Layout.of(model, base).rows

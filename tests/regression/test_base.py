"""Base parameters: what they must do for every motion, and the closed-form rules beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refused
from robots import random_robot

from dynid.errors import ModelError
from dynid.model import DifferentialDrive, Model, Scara, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.symbolic import closed_form_base


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_base_parameters_give_the_same_torque_and_are_as_many_as_the_rank(seed, dof):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, dof)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb"), rotor=True))
    base = base_parameters(model)
    q, dq, ddq = rng.normal(size=(3, 40 + 12 * dof, dof))
    y = model.regressor(q, dq, ddq)
    theta = rng.normal(size=len(model.parameters))
    tau = y @ theta
    assert np.allclose(y[:, :, base.independent] @ base.reduce(theta), tau, rtol=1e-9, atol=1e-9)
    assert np.allclose(y @ base.expand(base.reduce(theta)), tau, rtol=1e-9, atol=1e-9)
    flat = y.reshape(-1, y.shape[2])
    singular = np.linalg.svd(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-12), compute_uv=False)
    assert len(base) == np.sum(singular > 1e-9 * singular[0])


@given(st.integers(0, 10**6), st.integers(1, 6))
@example(15653, 2)  # an independent column whose entries in the null space are rounding
@settings(max_examples=15, deadline=None)
def test_singular_values_find_the_same(seed, dof):
    robot = random_robot(np.random.default_rng(seed), dof)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb"), rotor=True))
    base, other = base_parameters(model), base_parameters(model, by="svd")
    np.testing.assert_array_equal(base.independent, other.independent)
    np.testing.assert_allclose(base.matrix, other.matrix, rtol=1e-9, atol=1e-9)


def test_singular_values_in_another_order_and_a_wrong_way():
    model = Model(Robot.builtin("kuka-lwr4"))
    order = ("M", "MX MY MZ", "XX XY XZ YY YZ ZZ")
    base, other = (base_parameters(model, order, by=by) for by in ("qr", "svd"))
    assert base.names == other.names
    np.testing.assert_allclose(base.matrix, other.matrix, rtol=1e-10, atol=1e-12)
    with refused(ModelError, "unknown-algorithm", "qr", "svd"):
        base_parameters(model, by="lu")


@given(st.integers(0, 10**6), st.integers(2, 7), st.booleans())
@settings(max_examples=25, deadline=None)
def test_closed_form_rules_agree_on_random_arms(seed, dof, upright):
    """Same count and the same space of combinations; on upright gravity also the same grouping."""
    rng = np.random.default_rng(seed)
    rows = [(0.0 if i == 0 else rng.choice([-np.pi / 2, np.pi / 2, rng.uniform(0.3, 1.2)]),
             0.0 if i == 0 else rng.uniform(-0.5, 0.5), 0.0, rng.uniform(-0.5, 0.5)) for i in range(dof)]
    robot = Robot.from_mdh(rows, name="arm")
    if not upright:
        robot = robot.with_gravity(rng.normal(size=3) * 5)
    rules, numbers = closed_form_base(robot), base_parameters(Model(robot))
    assert np.array_equal(rules.independent, numbers.independent)
    assert np.allclose(rules.matrix, numbers.matrix, atol=1e-8)


def test_closed_form_rules_for_parallel_first_axes():
    """A SCARA: three vertical axes, so only ZZ and the first moments of the later links show."""
    robot = Robot.from_mdh([(0, 0, 0, 0.3), (0, 0.5, 0, 0), (0, 0.4, 0, 0.1)], name="scara")
    rules, numbers = closed_form_base(robot), base_parameters(Model(robot))
    assert rules.expressions == ("ZZ1 + 0.25 M2 + 0.25 M3", "ZZ2 + 0.16 M3", "MX2 + 0.4 M3", "MY2", "ZZ3", "MX3", "MY3")
    assert rules.expressions == numbers.expressions


def test_priority_decides_which_parameters_stay():
    robot = Robot.builtin("puma560")
    own, heavy = base_parameters(Model(robot)), base_parameters(Model(robot), ["M", "MX MY MZ"])
    assert len(own) == len(heavy) == 36
    masses = [heavy.parameters.names[c].rstrip("0123456789") == "M" for c in heavy.independent]
    assert masses == sorted(masses, reverse=True) and any(masses)
    theta = np.random.default_rng(0).normal(size=60)
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 5, 6))
    y = Model(robot).regressor(q, dq, ddq)
    assert np.allclose(y[:, :, heavy.independent] @ heavy.reduce(theta), y @ theta)
    with refused(ModelError, "wrong-priority", "60"):
        base_parameters(Model(robot), [0, 1, 2])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
def test_reduction_is_stable_against_scale(scale):
    """The same arm a thousand times smaller, or with links of a millimetre behind links of ten metres."""
    rows = [(0, 0, 0, 0), (np.pi / 2, 0, 0, 0), (0, 0.4 * scale, 0, 0.1 * scale), (-np.pi / 2, 0.001, 0, 0.3 * scale),
            (np.pi / 2, 0, 0, 0), (-np.pi / 2, 0, 0, 0.002)]
    robot = Robot.from_mdh(rows, name="arm")
    rules, numbers = closed_form_base(robot), base_parameters(Model(robot))
    assert np.array_equal(rules.independent, numbers.independent)
    assert np.allclose(rules.matrix, numbers.matrix, rtol=1e-6, atol=1e-9 * max(scale, 1.0) ** 2)


def test_models_of_ones_own_reduce_too():
    assert len(base_parameters(Scara())) == 8
    assert base_parameters(Scara()).expressions == Scara().parameters.names
    assert len(base_parameters(DifferentialDrive())) == 8


def test_the_seed_does_not_matter():
    model = Model(Robot.builtin("franka-panda"))
    first, second = base_parameters(model, seed=0), base_parameters(model, seed=1)
    assert first.expressions == second.expressions and len(first) == 43


def test_refusals():
    with refused(ModelError, "joint-not-revolute"):
        closed_form_base(Robot.builtin("emps"))
    with refused(ModelError, "frame-not-on-joint"):
        closed_form_base(Robot.builtin("kuka-lwr4"))
    broken = replace(Robot.builtin("kuka-iiwa14"))

    class Wrong:
        dof = 7
        parameters = Model(broken).parameters

        def regressor(self, q, dq, ddq):
            return np.full((len(q), 7, 70), np.nan)

    with refused(ModelError, "not-finite", "XX1"):
        base_parameters(Wrong())

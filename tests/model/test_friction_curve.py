"""Friction as a curve over velocity: shapes against formulas, dissipation, and what it takes from the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Coulomb, FrictionCurve, Model, RigidBodies, RotorInertia, Stribeck, Viscous, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.simulation import PD, Reference, simulate


def test_the_columns_are_the_steps_of_the_formula():
    robot = Robot.builtin("arm3r")
    term = FrictionCurve(widths=(0.01, 0.1), speed=2.0)
    v = np.linspace(-3.0, 3.0, 41)
    columns = term.columns(robot, 1, v)
    np.testing.assert_allclose(columns, [v, np.sign(v), np.tanh(v / 0.02), np.tanh(v / 0.2)], atol=1e-15)


def test_a_spline_goes_through_its_points():
    robot = Robot.builtin("arm3r")
    term = FrictionCurve("spline", widths=(0.1, 0.5, 1.0), speed=2.0)
    heights = np.array([0.3, 4.0, 2.0, 2.5, 3.0])  # viscous, then at 0, 0.2, 1 and 2 rad/s
    v = np.array([1e-9, 0.2, 0.6, 1.0, 2.0, 5.0, -0.6])
    expected = 0.3 * v + np.array([4.0, 2.0, 2.25, 2.5, 3.0, 3.0, -2.25])
    np.testing.assert_allclose(heights @ term.columns(robot, 0, v), expected, atol=1e-7)


@given(st.integers(0, 10**6), st.sampled_from(["steps", "spline"]))
@settings(max_examples=25, deadline=None)
def test_coefficients_not_below_zero_dissipate(seed, shape):
    rng = np.random.default_rng(seed)
    robot = Robot.builtin("arm3r")
    term = FrictionCurve(shape, speed=float(rng.uniform(0.1, 5.0)))
    count = len(term.parameters(robot)) // robot.dof
    values = rng.exponential(size=count) * rng.integers(0, 2, count)
    v = np.concatenate([np.geomspace(1e-6, 50.0, 200), -np.geomspace(1e-6, 50.0, 200)])
    power = v * (values @ term.columns(robot, 0, v))
    assert power.min() >= 0.0
    if shape == "steps":
        assert np.all(np.diff(values @ term.columns(robot, 0, np.sort(v))) >= -1e-12)


def test_every_shape_is_a_base_parameter_of_its_own():
    robot = Robot.builtin("arm3r")
    for shape in ("steps", "spline"):
        model = Model(robot, (RigidBodies(), RotorInertia(), FrictionCurve(shape)))
        base = base_parameters(model)
        assert all(name in base.names for name in model.parameters.names if name.startswith("F"))


def test_what_cannot_be_is_refused():
    for wrong in ({"shape": "bumps"}, {"widths": (0.3, 0.1)}, {"widths": (0.0,)}, {"ridge": -1.0}):
        with pytest.raises(ModelError):
            FrictionCurve(**wrong)
    with refused(ModelError, "wrong-count"):
        Model(Robot.builtin("arm3r"), (FrictionCurve(speed=(1.0, 2.0)),)).regressor(*np.zeros((3, 1, 2)))
    with refused(ModelError, "repeated-parameter"):
        Model(Robot.builtin("arm3r"), (Viscous(), FrictionCurve()))


def _samples(model, theta, seed, noise, amplitude=1.0):
    """A motion of many speeds with white noise on the torques."""
    rng = np.random.default_rng(seed)
    t = np.arange(6000) / 200.0
    q, dq, ddq = np.zeros((3, len(t), model.dof))
    for j in range(model.dof):
        for k in range(1, 6):
            w, phase, size = 2 * np.pi * k / 10.0, rng.uniform(0, 2 * np.pi), amplitude * rng.normal() / k
            q[:, j] += size * np.sin(w * t + phase)
            dq[:, j] += size * w * np.cos(w * t + phase)
            ddq[:, j] -= size * w * w * np.sin(w * t + phase)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + noise * rng.normal(size=q.shape)
    return Samples.from_arrays(q, dq, ddq, tau, rate=200.0)


def test_the_curve_of_stribeck_free_friction_is_recovered_within_its_band():
    """Truth: tanh steps that are not among the curve's own widths. The band is that of the sum of columns."""
    robot = Robot.builtin("arm3r")
    true = Model(robot, (RigidBodies(), FrictionCurve(widths=(0.02, 0.2), speed=1.5)))
    rng = np.random.default_rng(0)
    theta = np.where([p.kind.group == "friction" for p in true.parameters], rng.uniform(0.5, 2.0, len(true.parameters)),
                     [p.nominal or 0.0 for p in true.parameters])
    model = Model(robot, (RigidBodies(), FrictionCurve()))
    inside = []
    for seed in range(4):
        samples = _samples(true, theta, seed, 0.05)
        estimate = identify(Problem.from_model(model, samples), method="wls")
        term = estimate.model.terms[1]
        assert np.allclose(term.speed, np.abs(samples.dq).max(axis=0))
        for j in range(robot.dof):
            own = [k for k, c in enumerate(estimate.base.independent)
                   if estimate.base.parameters.items[c].kind.group == "friction"
                   and estimate.base.parameters.items[c].owner == j]
            assert np.all(estimate.values[own] >= 0.0)
            v = np.array([0.02, 0.05, 0.1, 0.3, 0.8]) * np.abs(samples.dq[:, j]).max()
            columns = term.columns(robot, j, v)
            band = np.sqrt(np.einsum("cs,cd,ds->s", columns, estimate.covariance[np.ix_(own, own)], columns))
            there = [c for c, p in enumerate(true.parameters) if p.owner == j and p.kind.group == "friction"]
            off = estimate.values[own] @ columns - theta[there] @ true.terms[1].columns(robot, j, v)
            inside += list(np.abs(off) <= 2.0 * band)
    assert np.mean(inside) >= 0.9


def test_an_estimate_keeps_the_speeds_it_was_made_with(tmp_path):
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=["curve", "load", "offset"]))
    theta = np.where([p.kind.group == "friction" for p in model.parameters], 0.2,
                     [p.nominal or 0.0 for p in model.parameters])
    samples = _samples(model, theta, 1, 0.01)
    estimate = identify(model, samples, method="wls")
    estimate.save(tmp_path / "estimate.npz")
    again = Estimate.load(tmp_path / "estimate.npz", model)
    motion = np.random.default_rng(0).normal(size=(3, 5, robot.dof))
    assert np.array_equal(again.predict(*motion), estimate.predict(*motion))
    assert again.score(samples) == pytest.approx(estimate.score(samples), rel=1e-12)


def test_a_simulated_curve_gives_back_its_own_torques():
    robot = Robot.builtin("arm3r")
    model = Model(robot, (RigidBodies(), RotorInertia(), FrictionCurve(widths=(0.1, 0.3), speed=2.0)))
    theta = np.where([p.kind.group == "friction" for p in model.parameters], 0.3,
                     [0.2 if p.symbol == "Ia" else p.nominal or 0.0 for p in model.parameters])
    theta[[p.symbol == "Fc" for p in model.parameters]] = 0.0
    t = np.arange(1000) / 1000.0
    reference = Reference(*(np.outer(x, np.ones(robot.dof)) for x in (
        np.sin(4 * t), 4 * np.cos(4 * t), -16 * np.sin(4 * t))), 1000.0)
    motion = simulate(model, theta, PD(np.full(robot.dof, 400.0), np.full(robot.dof, 40.0)), reference)
    np.testing.assert_allclose(model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq), motion.tau, atol=1e-8)


def test_narrow_steps_do_not_upset_the_integrator():
    """Steps a thousand times narrower than the step of the integrator allows: no chatter, energy falls."""
    robot = Robot.builtin("arm3r").with_gravity((0.0, 0.0, 0.0))
    model = Model(robot, (RigidBodies(), FrictionCurve(speed=1.0)))
    theta = np.where([p.kind.group == "friction" for p in model.parameters], 1.0,
                     [p.nominal or 0.0 for p in model.parameters])
    start = np.zeros((2, robot.dof))
    start[1] = 1.0
    still = Reference(*np.zeros((3, 500, robot.dof)), 1000.0)
    motion = simulate(model, theta, PD(np.zeros(robot.dof), np.zeros(robot.dof)), still, start=start)
    matrices = model.inertia_matrix(theta, motion.q)
    energy = 0.5 * np.einsum("si,sij,sj->s", motion.dq, matrices, motion.dq)
    assert np.all(np.diff(energy) <= 1e-12 + 1e-9 * energy[0])
    assert energy[-1] < 1e-4 * energy[0]


def test_bounds_hold_in_every_linear_method():
    """Truth without dry friction and noise that asks for some below zero."""
    robot = Robot.builtin("arm3r")
    true = Model(robot, (RigidBodies(), Viscous(), Coulomb()))
    theta = np.array([{"Fv": 0.01, "Fc": -0.05}.get(p.symbol, p.nominal or 0.0) for p in true.parameters])
    samples = _samples(true, theta, 3, 0.02)
    model = Model(robot, (RigidBodies(), FrictionCurve()))
    for method in ("ols", "wls", "irls", "pc-wls", "pc-ridge", "tls"):
        estimate = identify(Problem.from_model(model, samples), method=method)
        friction = [k for k, c in enumerate(estimate.base.independent)
                    if estimate.base.parameters.items[c].kind.group == "friction"]
        assert estimate.values[friction].min() >= -1e-9, method
        assert np.all(estimate.std[friction] > 0)


def test_a_spline_shows_stribeck_friction():
    robot = Robot.builtin("arm3r")
    true = Model(robot, (RigidBodies(), Stribeck(delta=10.0, alpha=1.0, Kv=1000.0)))
    values = {"Fc": 3.0, "Fsc": -0.8, "Fv": 0.2, "Fo": 0.0, "Fnl": 0.0}
    theta = np.array([values.get(p.symbol, p.nominal or 0.0) for p in true.parameters])
    samples = _samples(true, theta, 5, 0.05)
    errors = {}
    for shape in ("steps", "spline"):
        estimate = identify(Problem.from_model(Model(robot, (RigidBodies(), FrictionCurve(shape))), samples),
                            method="wls")
        errors[shape] = estimate.diagnostics.relative_error
    assert errors["spline"] < 0.9 * errors["steps"]


@pytest.mark.parametrize("shape", ["steps", "spline"])
def test_a_curve_can_be_written_as_code(shape):
    from dynid.symbolic import generate

    robot = Robot.builtin("arm3r")
    model = Model(robot, (RigidBodies(), FrictionCurve(shape, speed=2.0)))
    theta = np.array([0.3 if p.kind.group == "friction" else p.nominal or 0.0 for p in model.parameters])
    program = generate(model, ["inverse_dynamics"], parameters="fixed", values=theta)
    space: dict = {}
    exec(program.python(), space)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, robot.dof))
    ours = np.ravel(space["inverse_dynamics"](q, dq, ddq))
    np.testing.assert_allclose(ours, model.inverse_dynamics(theta, q, dq, ddq), rtol=1e-9)

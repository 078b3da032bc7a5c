"""The pull toward a nominal model: the closed form, its two ends, and when it helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, low_passed, motion
from refusals import refused

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.estimate.ridge_regression import parameter_scales
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot

RULE = "one-standard-error"
DEVIATIONS = np.array([0.3, 0.2, 0.05])


def noisy(seed: int, wrong: float, *, seconds: float = 10.0, noise: float = 1.0) -> tuple[Problem, Array, Array]:
    """A problem whose nominal values are wrong by that share, its true base values, and parameter scales."""
    model, theta = arm()
    rng = np.random.default_rng(seed)
    clean = motion(model, theta, seconds=seconds, seed=seed)
    tau = clean.tau + low_passed(rng, clean.tau.shape, noise * DEVIATIONS, 10.0, 200.0)
    scales = parameter_scales(model.parameters, theta)
    nominal = theta + wrong * scales * rng.normal(size=len(theta))
    base = base_parameters(model)
    problem = Problem.from_model(model, Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0), base=base,
                                 nominal=nominal)
    return problem, base.reduce(theta), scales


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e4])
def test_it_is_the_closed_form(strength: float) -> None:
    problem, _, _ = noisy(0, 0.2)
    estimate = identify(problem, method="ridge", strength=strength)
    nominal = problem.nominal
    assert nominal is not None and estimate.theta is not None
    scales = parameter_scales(problem.model.parameters, nominal)
    samples, weights = problem.data[0], np.array(estimate.diagnostics["weights"])
    y = (problem.model.regressor(samples.q, samples.dq, samples.ddq) * weights[:, None]).reshape(-1, len(nominal))
    tau = (samples.tau * weights).ravel()
    tall = np.vstack([y, np.sqrt(strength) * np.diag(1 / scales)])
    expected = np.linalg.lstsq(tall, np.append(tau, np.sqrt(strength) * nominal / scales))[0]
    np.testing.assert_allclose((estimate.theta - expected) / scales, 0.0, atol=1e-8)
    np.testing.assert_allclose(estimate.values, problem.base.reduce(expected), atol=1e-8)
    assert estimate.diagnostics["strength"] == strength


def test_strong_it_is_the_nominal_model_and_weak_it_is_weighted_least_squares() -> None:
    problem, _, scales = noisy(1, 0.2)
    strong, weak = identify(problem, method="ridge", strength=1e14), identify(problem, method="ridge", strength=1e-9)
    np.testing.assert_allclose(strong.theta / scales, problem.nominal / scales, atol=1e-6)
    np.testing.assert_allclose(weak.values, identify(problem, method="wls").values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("wrong", "rule"), [(0.05, RULE), (0.3, RULE), (0.3, "minimum")])
def test_a_decent_nominal_model_helps_and_deviations_count_the_bias(wrong: float, rule: str) -> None:
    off, pulled, plain, seen = [], [], [], []
    for seed in range(20):
        problem, truth, scales = noisy(seed, wrong)
        size = np.abs(problem.base.matrix) @ scales
        estimate = identify(problem, method="ridge", rule=rule)
        off.append((estimate.values - truth) / estimate.std)
        pulled.append((estimate.values - truth) / size)
        plain.append((identify(problem, method="wls").values - truth) / size)
        seen.append(estimate.uncertainty.facts["nominal_wrong_by"])
    assert np.mean(np.square(pulled)) < 0.25 * np.mean(np.square(plain))
    assert np.mean(np.abs(off) < 3.0) > 0.95
    assert np.median(seen) == pytest.approx(wrong, rel=0.3)


def test_deviations_count_that_friction_errs_more_than_bodies() -> None:
    """Nominal bodies right, nominal friction off by half: intervals of friction hold as often as they say."""
    held = []
    for seed in range(20):
        problem, truth, scales = noisy(seed, 0.0)
        model, rng = problem.model, np.random.default_rng(seed)
        free = np.array([item.body is None for item in model.parameters])
        nominal = problem.nominal + np.where(free, 0.5 * scales * rng.normal(size=len(scales)), 0.0)
        estimate = identify(Problem.from_model(model, problem.data, base=problem.base, nominal=nominal), method="ridge")
        low, high = estimate.conf_int().T
        held.append(((low <= truth) & (truth <= high))[[name.startswith("F") for name in estimate.names]])
    assert np.mean(held) > 0.9


def test_scales_do_not_mix_units() -> None:
    """A rotor of a sliding joint, in kilograms, says nothing of the size of one in kg m^2."""
    robot = Robot.from_dh([(0.0, 0.2, 0.0, 0.0, "revolute"), (0.0, 0.0, 0.1, 0.0, "prismatic")], name="two")
    model = Model(robot, make_terms(robot, ("viscous",), rotor=True))
    nominal = np.ones(len(model.parameters))
    for name, value in {"Ia1": 0.02, "Ia2": 40.0, "Fv1": 0.3, "Fv2": 200.0}.items():
        nominal[model.parameters.index(name)] = value
    scales = parameter_scales(model.parameters, nominal)
    for name in ("Ia1", "Ia2", "Fv1", "Fv2"):
        assert scales[model.parameters.index(name)] == pytest.approx(nominal[model.parameters.index(name)])


@pytest.mark.parametrize(("rule", "most"), [("one-standard-error", 1.4), ("minimum", 1.15)])
def test_a_useless_nominal_model_does_little_harm(rule: str, most: float) -> None:
    pulled, plain = [], []
    for seed in range(10):
        problem, truth, scales = noisy(seed, 3.0, noise=0.1)
        size = np.abs(problem.base.matrix) @ scales
        pulled.append((identify(problem, method="ridge", rule=rule).values - truth) / size)
        plain.append((identify(problem, method="wls").values - truth) / size)
    assert np.linalg.norm(pulled) < most * np.linalg.norm(plain)


def test_strength_is_the_one_that_predicts_left_out_blocks_best() -> None:
    problem, _, _ = noisy(2, 0.2)
    best = identify(problem, method="ridge", rule="minimum")
    facts = best.diagnostics
    assert facts["strength"] == facts["strengths"][int(np.argmin(facts["left_out_error"]))]
    assert facts["left_out_blocks"] == 10
    cautious = identify(problem, method="ridge")
    assert cautious.diagnostics["strength"] >= facts["strength"]
    # By hand for one strength: weighted error over blocks left out in turn.
    k = int(np.argmin(facts["left_out_error"]))
    weights = np.array(facts["weights"])
    errors = []
    for block in range(10):
        rest = Problem(problem.model, problem.regression.without(block), nominal=problem.nominal)
        scales = parameter_scales(problem.model.parameters, problem.nominal)
        stacked = rest.regression.stack(weights)
        tall = np.vstack([stacked.r @ problem.base.matrix, np.sqrt(facts["strengths"][k]) * np.diag(1 / scales)])
        right = np.append(stacked.rho, np.sqrt(facts["strengths"][k]) * problem.nominal / scales)
        left = problem.regression.only(block).stack(weights)
        errors.append(left.misfit(problem.base.reduce(np.linalg.lstsq(tall, right)[0])) / left.rows)
    assert facts["left_out_error"][k] == pytest.approx(np.sqrt(np.mean(errors)), rel=1e-6)


def test_what_the_motion_does_not_excite_stays_nominal() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0)
    q, dq, ddq = (x.copy() for x in (clean.q, clean.dq, clean.ddq))
    q[:, :2], dq[:, :2], ddq[:, :2] = 0.3, 0.0, 0.0
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    nominal = theta * 1.2
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0), nominal=nominal)
    estimate = identify(problem, method="ridge", strength=1.0)
    assert estimate.theta is not None
    still = model.parameters.index("Fv1")
    assert estimate.theta[still] == pytest.approx(nominal[still], rel=1e-9)
    assert not estimate.identified[estimate.names.index("Fv1")]
    moved = model.parameters.index("Fv3")
    assert estimate.theta[moved] == pytest.approx(theta[moved], rel=0.05)


def test_scales_are_above_zero_and_follow_the_body() -> None:
    model, theta = arm()
    scales = parameter_scales(model.parameters, theta)
    assert np.all(scales > 0)
    body = next(iter(model.parameters.bodies.values()))
    mass, trace = theta[body[9]], theta[body[[0, 3, 5]]].sum()
    np.testing.assert_allclose(scales[body[:6]], trace / 2, rtol=1e-12)
    np.testing.assert_allclose(scales[body[6:9]], np.sqrt(trace * mass / 2), rtol=1e-12)
    assert scales[body[9]] == mass
    assert np.all(parameter_scales(model.parameters, np.zeros(len(theta))) == 1.0)


def test_wrong_calls_are_refused() -> None:
    problem, _, _ = noisy(3, 0.1, seconds=2.0)
    with refused(ModelError, "unknown-rule", "best"):
        identify(problem, method="ridge", rule="best")
    with refused(ModelError, "bad-strength", "ridge"):
        identify(problem, method="ridge", strength=-1.0)
    robot = Robot.builtin("arm3r")
    bare = Model(replace(robot, bodies=tuple(replace(body, inertia=None) for body in robot.bodies)))
    q = np.random.default_rng(0).normal(size=(100, 3))
    with refused(ModelError, "no-nominal-values"):
        identify(Problem.from_model(bare, Samples.from_arrays(q, q, q, q)), method="ridge")
    single = Problem.from_model(problem.model, problem.data, nominal=problem.nominal, blocks=1)
    with refused(NotPossibleError, "too-few-blocks"):
        identify(single, method="ridge")


def test_friction_without_a_nominal_value_is_pulled_to_zero() -> None:
    """Offsets that nobody knows: found where the data show them, small where these say little."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, ("viscous", "coulomb", "offset")))
    theta = np.array([{"Fv": 0.4, "Fc": 0.5, "Fo": 0.3}.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    rng = np.random.default_rng(0)
    t = np.arange(2000)[:, None] / 100
    angle = 2 * np.pi * np.array([0.3, 0.43, 0.59]) * t
    rate = 2 * np.pi * np.array([0.3, 0.43, 0.59])
    q, dq, ddq = np.sin(angle), rate * np.cos(angle), -rate ** 2 * np.sin(angle)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
    estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0)), method="ridge")
    friction = [p.kind.group in ("friction", "offset") for p in model.parameters]
    assert estimate.theta is not None
    np.testing.assert_allclose(estimate.theta[friction], theta[friction], atol=0.05)
    strong = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0)), method="ridge",
                      strength=1e12)
    assert strong.theta is not None
    given = [p.nominal or 0.0 for p in model.parameters]
    np.testing.assert_allclose(strong.theta, given, atol=1e-3)

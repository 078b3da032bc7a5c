"""The maximum a posteriori estimate: believable nominal bodies, the minimum of the posterior, contradicting data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, low_passed, motion
from refusals import refused

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Model, make_terms
from dynid.model.parameters import Parameter, Parameters
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.robot.check import robot_reach
from dynid.robot.nominal import nominal_bodies
from dynid.robot.robot import Shape

DEVIATIONS = np.array([0.3, 0.2, 0.05])


def noisy(seed: int, *, gains: Array | float = 1.0, seconds: float = 10.0) -> tuple[Problem, Array, Array]:
    """Return a problem of an arm whose file has no inertias, its true parameters, and clean torques."""
    model, theta = arm()
    rng = np.random.default_rng(seed)
    clean = motion(model, theta, seconds=seconds, seed=seed)
    tau = clean.tau * gains + low_passed(rng, clean.tau.shape, DEVIATIONS, 10.0, 200.0)
    bare = Model(replace(model.robot, bodies=tuple(replace(body, inertia=None) for body in model.robot.bodies)),
                 model.terms)
    samples = Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0)
    return Problem.from_model(bare, samples), theta, clean.tau * gains


def largest_half_axis(estimate: Estimate) -> float:
    """Return the largest half-axis of the homogeneous ellipsoids of all bodies, m."""
    assert estimate.theta is not None
    found = 0.0
    for columns in estimate.model.parameters.bodies.values():
        mass, _, central = ten.to_central(estimate.theta[columns])
        spread = 0.5 * np.trace(central) * np.eye(3) - central
        found = max(found, float(np.sqrt(5.0 * np.linalg.eigvalsh(spread)[-1] / mass)))
    return found


# -- nominal bodies ------------------------------------------------------------------------------------
def test_nominal_body_of_shapes_is_that_of_the_solids() -> None:
    """A box and a sphere of equal density: mean and covariance of points drawn in both."""
    model, _ = arm()
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn * np.sign(np.linalg.det(turn)), (0.1, -0.2, 0.3)
    shapes = (Shape("box", (0.2, 0.1, 0.4), pose), Shape("sphere", (0.15,), np.eye(4)))
    body = replace(model.robot.bodies[1], inertia=None, shapes=shapes)
    robot = replace(model.robot, bodies=(model.robot.bodies[0], body, model.robot.bodies[2]))
    bodies = nominal_bodies(robot)
    rng = np.random.default_rng(0)
    box = rng.uniform(-0.5, 0.5, size=(400_000, 3)) * (0.2, 0.1, 0.4) @ pose[:3, :3].T + pose[:3, 3]
    volumes = np.array([0.2 * 0.1 * 0.4, 4.0 / 3.0 * np.pi * 0.15 ** 3])
    ball = rng.normal(size=(int(len(box) * volumes[1] / volumes[0]), 3))
    ball *= 0.15 * (rng.uniform(size=len(ball)) ** (1.0 / 3.0) / np.linalg.norm(ball, axis=1))[:, None]
    points = np.vstack([box, ball])
    found = bodies.matrices[body.name] / bodies.matrices[body.name][3, 3]
    centre = found[:3, 3]
    np.testing.assert_allclose(centre, points.mean(axis=0), atol=2e-3)
    radius = 0.05 * robot_reach(robot)
    np.testing.assert_allclose(found[:3, :3] - np.outer(centre, centre) - 1e-2 * radius ** 2 * np.eye(3),
                               np.cov(points.T), atol=2e-4)
    assert bodies.sources[body.name] == "shapes"


def test_nominal_body_between_joints_is_a_rod() -> None:
    robot = Robot.from_mdh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.3, 0.0, 0.0)], name="chain")
    bodies = nominal_bodies(robot)
    assert bodies.reach == pytest.approx(1.3)  # the last link is as long as the longest other
    first = bodies.matrices[robot.body_names[0]]
    radius = 0.05 * 1.3
    along = 0.5 ** 2 / 12.0 + 0.25 ** 2 + 0.5 * radius ** 2
    np.testing.assert_allclose(first / first[3, 3], [[along, 0, 0, 0.25], [0, 0.5 * radius ** 2, 0, 0],
                                                     [0, 0, 0.5 * radius ** 2, 0], [0.25, 0, 0, 1.0]], atol=1e-12)
    assert not bodies.has_mass and set(bodies.sources.values()) == {"joints"}


@pytest.mark.parametrize(("change", "words"), [
    (lambda numbers: numbers * np.r_[[1e6] * 6, [1.0] * 4], "half-axis"),
    (lambda numbers: numbers * np.r_[[1.0] * 9, 0.0], "mass is 0 kg"),
    (lambda numbers: -numbers, "mass is -"),
    (lambda numbers: numbers * np.r_[[-1.0] * 6, [1.0] * 4], "not physically consistent"),
])
def test_unbelievable_inertia_of_a_file_is_not_nominal(change: object, words: str) -> None:
    robot = Robot.load("kuka-lwr4")
    good = nominal_bodies(Robot.load("arm3r"))
    assert set(good.sources.values()) == {"file"} and good.has_mass and not good.reasons
    model, theta = arm()
    name = model.robot.body_names[1]
    given = {body: theta[columns] for body, columns in model.parameters.bodies.items()}
    bodies = nominal_bodies(model.robot, {**given, name: change(given[name])})  # type: ignore[operator]
    assert words in bodies.reasons[name] and bodies.sources[name] == "joints"
    assert np.linalg.eigvalsh(bodies.matrices[name])[0] > 0.0
    assert 0.05 < bodies.matrices[name][3, 3] / given[name][9] < 20.0 and robot_reach(robot) > 0.5


# -- the estimate --------------------------------------------------------------------------------------
def test_bodies_without_a_file_are_plausible_and_predict_like_least_squares() -> None:
    for seed in range(3):
        problem, theta, _ = noisy(seed)
        estimate = identify(problem, method="map")
        free = identify(problem, method="wls")
        mass = sum(estimate[name] for name in estimate.model.parameters.names if name.startswith("M")
                   and name[1:].isdigit())
        truth = sum(value for name, value in zip(estimate.model.parameters.names, theta, strict=True)
                    if name.startswith("M") and name[1:].isdigit())
        other = motion(*arm(), seconds=10.0, seed=100 + seed)
        errors = [np.linalg.norm(one.predict(other.q, other.dq, other.ddq) - other.tau) for one in (estimate, free)]
        assert estimate.diagnostics["consistent"] and estimate.diagnostics["inconsistency"] == 0.0
        assert errors[0] < 1.1 * errors[1]
        assert 1.0 / 3.0 < mass / truth < 3.0
        assert largest_half_axis(estimate) < 0.75 * robot_reach(estimate.model.robot)  # type: ignore[attr-defined]


def test_intervals_hold_the_truth_without_inertias_of_a_file() -> None:
    """One standard error of every identified base parameter, over some logs; truth from the simulation."""
    off = []
    for seed in range(12):
        problem, theta, _ = noisy(10 + seed)
        estimate = identify(problem, method="map")
        determined = estimate.well_determined
        off.append(((estimate.values - problem.base.reduce(theta)) / estimate.std)[determined])
    every = np.concatenate(off)
    assert np.mean(np.abs(every) < 2.0) > 0.9
    assert 0.6 < np.sqrt(np.mean(every ** 2)) < 1.3


def test_strength_is_given_or_refused() -> None:
    problem, *_ = noisy(0)
    assert identify(problem, method="map", strength=100.0).diagnostics["strength"] == 100.0
    with refused(ModelError, "bad-strength"):
        identify(problem, method="map", strength=-1.0)
    with refused(ModelError, "bad-inconsistency"):
        identify(problem, method="map", inconsistency=-0.1)


def test_a_very_strong_prior_gives_the_nominal_robot_and_a_free_deviation_least_squares() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0, seed=3)
    rng = np.random.default_rng(3)
    tau = clean.tau + low_passed(rng, clean.tau.shape, DEVIATIONS, 10.0, 200.0)
    wrong = theta.copy()
    for columns in model.parameters.bodies.values():
        wrong[columns] *= 1.3
    problem = Problem.from_model(model, Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0),
                                 nominal=wrong)
    strong = identify(problem, method="map", strength=1e9, inconsistency=0.0)
    assert strong.theta is not None
    for columns in model.parameters.bodies.values():
        np.testing.assert_allclose(strong.theta[columns][9], wrong[columns][9], rtol=2e-3)
    free, least = identify(problem, method="map", inconsistency=1e4), identify(problem, method="wls")
    assert free.theta is None and not free.diagnostics["consistent"]
    assert free.diagnostics.relative_error == pytest.approx(least.diagnostics.relative_error, rel=2e-3)


def test_data_that_contradict_every_consistent_robot_are_predicted_without_the_constraint() -> None:
    """The torque of one joint has the wrong sign: no physically consistent robot has these torques."""
    problem, _, torque = noisy(5, gains=np.array([1.0, -1.0, 1.0]))
    estimate, bound = identify(problem, method="map"), identify(problem, method="map", inconsistency=0.0)
    free = identify(problem, method="wls")
    log = problem.data[0]

    def error(one: Estimate) -> float:
        return float(np.linalg.norm(one.predict(log.q, log.dq, log.ddq) - torque) / np.linalg.norm(torque))

    assert estimate.diagnostics["inconsistency"] > 0.0 and estimate.theta is None
    assert error(bound) > 1.5 * error(free)
    assert error(estimate) < 1.1 * error(free)


def test_joints_without_unknown_bodies_have_an_estimate() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0, seed=4)
    friction = Model(model.robot, make_terms(model.robot, defaults=True)[1:])
    own = np.array([value for item, value in zip(model.parameters, theta, strict=True) if item.body is None])
    tau = friction.inverse_dynamics(own, clean.q, clean.dq, clean.ddq)
    tau += low_passed(np.random.default_rng(4), tau.shape, 0.1 * DEVIATIONS, 10.0, 200.0)
    estimate = identify(friction, Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0), method="map")
    np.testing.assert_allclose(estimate.values, own, atol=6.0 * float(estimate.std.max()))


class Spring:
    """A model without a robot: one joint with a mass and a spring."""

    dof = 1
    parameters = Parameters((Parameter("m", "kg", 0, "a"), Parameter("k", "N/m", 0, "a")))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return np.stack([ddq, q], axis=2)


def test_a_model_without_a_robot_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(3, 200, 1))
    with refused(ModelError, "model-without-robot"):
        identify(Spring(), Samples.from_arrays(*x, 2.0 * x[2] + x[0], rate=100.0), method="map")

"""The pull of pc-ridge on friction: to its nominal values or to zero, as the data say, and stated in its deviations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.estimate.friction_regularisation import friction_penalty
from dynid.estimate.linear import joint_weights
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.robot import inertia as ten

ROBOT = Robot.builtin("arm3r")
MODEL = Model(ROBOT, make_terms(ROBOT, ("viscous", "coulomb")))
FRICTION = MODEL.parameters.of_group("friction")
TRUE = {"Fv": 0.05, "Fc": 0.4}
SEEDS = range(16)


def noisy(seed: int, nominal: Mapping[str, float], noise: float = 0.5) -> tuple[Problem, Array]:
    """A slow noisy motion, with a nominal model of right bodies and this friction, and the true parameters."""
    rng = np.random.default_rng(seed)
    given = np.array([item.nominal or 0.0 for item in MODEL.parameters])
    off = [np.exp(0.2 * rng.normal()) for _ in MODEL.parameters]
    truth = np.array([TRUE.get(item.symbol, 0.0) * share if own else value for item, value, share, own
                      in zip(MODEL.parameters, given, off, FRICTION, strict=True)])
    values = np.array([nominal.get(item.symbol, 0.0) if own else value
                       for item, value, own in zip(MODEL.parameters, given, FRICTION, strict=True)])
    t = np.arange(800)[:, None] / 50.0
    rate = np.array([0.5, 0.7, 0.9])
    q, dq, ddq = np.sin(rate * t + 1.0), rate * np.cos(rate * t + 1.0), -rate ** 2 * np.sin(rate * t + 1.0)
    tau = MODEL.inverse_dynamics(truth, q, dq, ddq) + noise * rng.normal(size=q.shape)
    return Problem.from_model(MODEL, Samples.from_arrays(q, dq, ddq, tau, rate=50.0), nominal=values), truth


@pytest.mark.parametrize("nominal", [TRUE, pytest.param({}, marks=pytest.mark.slow)], ids=["nominal", "zero"])
def test_uncertain_friction_is_pulled_and_its_deviations_hold(nominal: Mapping[str, float]) -> None:
    """Viscous friction that noise hides errs by less than without a pull, and two deviations hold."""
    errors, held = [], []
    for seed in SEEDS:
        problem, truth = noisy(seed, nominal)
        pulled, free = identify(problem, method="pc-ridge"), identify(problem, method="pc-wls")
        errors.append([np.sum((one.full - truth)[FRICTION] ** 2) for one in (pulled, free)])
        off = (pulled.values - problem.base.reduce(truth)) / pulled.std
        held.append(np.abs(off[FRICTION[problem.base.independent]]) < 2.0)
        assert set(pulled.diagnostics["friction_wrong_by"]) == {"Fv", "Fc"}
    ours, without = np.sqrt(np.mean(errors, axis=0))
    assert ours < (0.5 if nominal else 0.95) * without
    assert np.mean(held) > 0.9


def test_values_of_a_file_give_way_to_zero_where_the_data_are_against_them() -> None:
    """Friction of another machine in the robot's file, twenty times too large, and right ones, which stay."""
    for seed in SEEDS[:4]:
        wrong = identify(noisy(seed, {"Fv": 20.0 * TRUE["Fv"], "Fc": 20.0 * TRUE["Fc"]})[0], method="pc-ridge")
        assert wrong.diagnostics["friction_to_zero"] == ["Fv", "Fc"]
        right = identify(noisy(seed, TRUE)[0], method="pc-ridge")
        assert right.diagnostics["friction_to_zero"] == []


def test_the_pull_is_weak_where_the_data_tell() -> None:
    """Hardly any noise: the estimate is that of the data, whatever the nominal values."""
    problem, truth = noisy(0, {"Fv": 1.0, "Fc": 0.0}, noise=0.001)
    found = identify(problem, method="pc-ridge").full[FRICTION]
    np.testing.assert_allclose(found, truth[FRICTION], atol=0.003)


def test_known_friction_and_friction_with_a_ridge_are_not_pulled() -> None:
    model = Model(ROBOT, make_terms(ROBOT, ("viscous", "coulomb", "load")))
    problem = Problem.from_model(model, noisy(0, TRUE)[0].data, known={"Fv1": (0.05, 0.01), "Fv2": 0.05})
    bodies = {name: ten.pseudo_inertia(np.array([model.parameters.items[c].nominal for c in places]))
              for name, places in model.parameters.bodies.items()}
    pull = friction_penalty(problem, problem.regression.stack(joint_weights(problem.regression), prior=False), bodies)
    ridged = {item.name for item in model.parameters if item.ridge > 0.0}
    names = {model.parameters.names[c] for c in np.flatnonzero(np.any(pull.rows != 0.0, axis=0))}
    assert names == {name for name in model.parameters.names if name.startswith("F")} - ridged - {"Fv1", "Fv2"}


def test_ridge_takes_a_body_without_size() -> None:
    """A carriage known by its mass alone has no size to be stretched in."""
    robot = Robot.builtin("emps")
    model = Model(robot, make_terms(robot, ("viscous", "coulomb", "offset")))
    t = np.arange(2000) / 100.0
    q, dq, ddq = (np.column_stack([x]) for x in (np.sin(t), np.cos(t), -np.sin(t)))
    theta = np.array([{"Fv": 200.0, "Fc": 20.0, "Fo": 3.0}.get(item.symbol, item.nominal or 0.0)
                      for item in model.parameters])
    tau = model.inverse_dynamics(theta, q, dq, ddq) + np.random.default_rng(0).normal(size=q.shape)
    estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0)), method="ridge")
    np.testing.assert_allclose(estimate.values, estimate.base.reduce(theta), atol=0.5)
    assert np.all(np.isfinite(estimate.std)) and np.all(estimate.std > 0)

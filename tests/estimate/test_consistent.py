"""The consistent methods: simulated arms with known truth, and the real logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from consistency.problems import arm_problem, random_body

from dynid.consistency import Consistency
from dynid.consistency.prior import entropic_fits, nominal_model
from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.recording.prepare import prepare
from dynid.recording.read import read
from dynid.robot import Robot
from dynid.robot import inertia as ten

Data = Callable[..., Path]
MAPPINGS = Path(__file__).parents[2] / "reproductions" / "mappings"
FRICTION = ("viscous", "coulomb", "offset")


def arm(seed: int = 0, noise: float = 0.3, samples: int = 200) -> tuple[Problem, np.ndarray]:
    """A problem of a four-link arm with white noise, and its true parameters."""
    model, theta, base, _ = arm_problem(4, seed)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-3, 3, (samples, 4))
    dq, ddq = rng.normal(size=(samples, 4)), 2.0 * rng.normal(size=(samples, 4))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau = tau + noise * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Problem.of(model, Samples.of(q, dq, ddq, tau, rate=100.0), base=base), theta


@pytest.mark.parametrize("name", ["pc-ols", "pc-wls", "pc-ridge"])
def test_full_parameters_are_consistent_and_agree_with_the_base_values(name: str) -> None:
    problem, _ = arm()
    estimate = identify(problem, name)
    assert estimate.theta is not None
    np.testing.assert_allclose(problem.base.reduce(estimate.theta), estimate.values, atol=1e-12)
    assert Consistency(problem.model.parameters, margin=0.0).violations(estimate.theta) == ()
    assert estimate.diagnostics["consistent"]
    assert np.isfinite(estimate.covariance).all()
    assert np.linalg.eigvalsh(estimate.covariance).min() > -1e-9 * np.trace(estimate.covariance)


def test_active_conditions_are_said_and_deviations_shrink() -> None:
    problem, _ = arm(seed=2, samples=60)
    free, bound = identify(problem, "wls"), identify(problem, "pc-wls")
    assert bound.diagnostics["active"]
    assert "projected" in bound.diagnostics["deviation"]
    assert np.trace(bound.covariance) < np.trace(free.covariance)
    assert bound.diagnostics["relative_error"] >= free.diagnostics["relative_error"] - 1e-9


def test_nothing_active_leaves_the_estimate_as_it_was() -> None:
    problem, _ = arm(noise=1e-3, samples=500)
    free, bound = identify(problem, "wls"), identify(problem, "pc-wls")
    assert bound.diagnostics["active"] == []
    np.testing.assert_allclose(bound.values, free.values, atol=1e-3 * np.abs(free.values).max())
    np.testing.assert_allclose(bound.std, free.std, rtol=1e-6)


def test_no_other_consistent_way_fits_better() -> None:
    problem, _ = arm(seed=1, samples=60)
    best = identify(problem, "pc-wls")
    for name in ("pc-points", "pc-sqp", "pc-logchol"):
        other = identify(problem, name)
        if other.diagnostics["smallest_eigenvalue"] >= 1e-8:
            assert other.diagnostics["excess_misfit"] >= best.diagnostics["excess_misfit"] - 1e-6, name
    boxed, virtual = identify(problem, "pc-box"), identify(problem, "pc-virtual")
    assert boxed.diagnostics["excess_misfit"] <= best.diagnostics["excess_misfit"] + 1e-6
    for loose in (boxed, virtual):
        assert loose.diagnostics["consistent"] == (not loose.diagnostics["violations"])


def test_reduction_ends_at_a_possible_model_that_fits_worse() -> None:
    problem, _ = arm(seed=1, samples=60)
    best, reduced = identify(problem, "pc-wls"), identify(problem, "pc-reduce")
    assert reduced.diagnostics["consistent"]
    assert reduced.diagnostics["excess_misfit"] >= best.diagnostics["excess_misfit"]


def test_limits_reach_the_methods() -> None:
    problem, _ = arm(seed=3)
    body = next(iter(problem.model.parameters.bodies))
    estimate = identify(problem, "pc-wls", {"masses": [{"bodies": [body], "equal": 2.5}, {"high": 30.0}],
                                            "centres": {body: {"low": [-0.1] * 3, "high": [0.1] * 3}}})
    mass, com, _ = ten.to_central(estimate.full[problem.model.parameters.bodies[body]])
    assert mass == pytest.approx(2.5, abs=1e-6)
    assert np.abs(com).max() <= 0.1 + 1e-9
    with pytest.raises(ModelError, match="keys.*it takes"):
        identify(problem, "pc-wls", {"masses": [{"weight": 3}]})
    with pytest.raises(ModelError, match="no collision primitives"):
        identify(problem, "pc-wls", {"shapes": True})


def test_evidence_trusts_a_good_nominal_model_more_than_a_bad_one() -> None:
    model, theta, base, _ = arm_problem(4, 5)
    rng = np.random.default_rng(0)
    chosen = []
    for scale in (0.03, 1.0):
        near = theta.copy()
        for columns in model.parameters.bodies.values():
            move = np.eye(4) + scale * np.vstack([rng.normal(size=(3, 4)) * 0.5, np.zeros(4)])
            near[columns] = ten.from_pseudo_inertia(move @ ten.pseudo_inertia(theta[columns]) @ move.T)
        t = np.arange(400) / 50.0
        q = np.sin(np.outer(t, [0.5, 0.7, 0.9, 1.1]))
        dq, ddq = np.gradient(q, 1 / 50.0, axis=0), np.gradient(np.gradient(q, 1 / 50.0, axis=0), 1 / 50.0, axis=0)
        tau = model.inverse_dynamics(theta, q, dq, ddq)
        tau = tau + 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
        problem = Problem.of(model, Samples.of(q, dq, ddq, tau, rate=50.0), base=base, nominal=near)
        estimate = identify(problem, "pc-ridge")
        chosen.append(estimate.diagnostics["strength"])
        fast = (q, 2 * dq, 4 * ddq)
        truth = model.inverse_dynamics(theta, *fast)
        errors = [np.linalg.norm(model.inverse_dynamics(e, *fast) - truth)
                  for e in (estimate.full, near, identify(problem, "wls").full)]
        assert errors[0] <= max(1.2 * min(errors[1:]), 0.05 * errors[1])
    assert chosen[0] > 10 * chosen[1]


def test_the_evidence_of_one_body_agrees_with_integration() -> None:
    """A single mass seen through noise: the Laplace evidence against numerical integration over the ten numbers."""
    from consistency.problems import bodies
    rng = np.random.default_rng(1)
    consistency = Consistency(bodies(1), margin=0.0)
    numbers = random_body(rng)
    nominal = nominal_model(consistency, numbers)
    matrix = np.diag(1.0 / np.maximum(np.abs(numbers), 0.05)) * 8.0
    rho = matrix @ numbers + rng.normal(size=10)
    fits = entropic_fits(consistency, matrix, rho, nominal, [10.0, 50.0])
    # Importance sampling from the Wishart prior itself (dof 2 s + n + 1, scale P0 / (2 s)).
    from scipy.stats import wishart
    logs = []
    for found in fits:
        s = found.strength
        draws = wishart(df=2 * s + 5, scale=nominal.matrices[0] / (2 * s)).rvs(60000, random_state=rng)
        misfit = np.sum((ten.from_pseudo_inertia(draws) @ matrix.T - rho) ** 2, axis=1)
        logs.append(np.log(np.mean(np.exp(-0.5 * misfit))))
    assert fits[0].strength == 50.0
    assert fits[0].evidence - fits[1].evidence == pytest.approx(logs[0] - logs[1], abs=0.35)


def test_wrong_options_are_refused() -> None:
    problem, _ = arm()
    for options, words in (({"metric": "manhattan"}, "entropic"), ({"strength": -1.0}, "above zero")):
        with pytest.raises(ModelError, match=words):
            identify(problem, "pc-ridge", options)
    with pytest.raises(ModelError, match="'central', 'nominal'"):
        identify(problem, "pc-wls", {"fill_with": "sand"})
    with pytest.raises(ModelError, match="saved fold"):
        identify(replace(problem, samples=()), "pc-ridge")


# -- real logs ------------------------------------------------------------------------------------
def relative(estimate: Estimate, samples: Samples) -> float:
    wrong = (estimate.predict(samples.q, samples.dq, samples.ddq) - samples.tau)[samples.keep]
    return 100.0 * float(np.linalg.norm(wrong) / np.linalg.norm(samples.tau[samples.keep]))


def between(samples: Samples, start: float, stop: float) -> Samples:
    rows = slice(int(start * len(samples)), int(stop * len(samples)))
    return replace(samples, t=samples.t[rows], q=samples.q[rows], dq=samples.dq[rows], ddq=samples.ddq[rows],
                   tau=samples.tau[rows], keep=samples.keep[rows], segments=np.array([[0, rows.stop - rows.start]]))


@pytest.fixture(scope="module")
def kuka(data: Data) -> tuple[Model, Samples, Samples]:
    robot = Robot.load(data("kuka_lwr4", "kuka_lwr4.urdf"))
    logs = [prepare(read(data("kuka_lwr4", f"measurements_{k}.npz"), MAPPINGS / "kuka_lwr4.toml"), cutoff=8.0,
                    torque_cutoff=8.0) for k in (1, 2)]
    return Model(robot, make_terms(robot, friction=FRICTION)), logs[0], logs[1]


def test_kuka_prior_by_evidence(kuka: tuple[Model, Samples, Samples]) -> None:
    model, first, second = kuka
    problem = Problem.of(model, first)
    free, bound, pulled = (identify(problem, name) for name in ("wls", "pc-wls", "pc-ridge"))
    assert bound.diagnostics["relative_error"] < free.diagnostics["relative_error"] + 0.45
    assert 1.0 <= pulled.diagnostics["strength"] <= 100.0
    assert relative(pulled, second) < 3.0
    masses = pulled.full[[columns[9] for columns in model.parameters.bodies.values()]]
    assert masses.min() > 0.1 and masses.max() < 6.0 and masses.sum() == pytest.approx(15.0, abs=3.0)


def test_kuka_prior_predicts_where_least_squares_does_not(kuka: tuple[Model, Samples, Samples]) -> None:
    """Fitted on the middle of the log, tried on its ends, which accelerate harder."""
    model, first, _ = kuka
    problem = Problem.of(model, between(first, 0.2, 0.8))
    free, pulled = identify(problem, "wls"), identify(problem, "pc-ridge")
    for part in (between(first, 0.0, 0.2), between(first, 0.8, 1.0)):
        assert relative(pulled, part) < 4.0
    assert relative(pulled, between(first, 0.0, 0.2)) < 0.7 * relative(free, between(first, 0.0, 0.2))


def test_panda_prior_does_not_hurt(data: Data) -> None:
    robot = Robot.load(data("panda", "panda_arm.urdf"))
    samples = prepare(read(data("panda"), MAPPINGS / "panda.toml"), cutoff=5.0, torque_cutoff=5.0)
    model = Model(robot, make_terms(robot, friction=FRICTION))
    for train, rest in (((0.0, 0.5), (0.5, 1.0)), ((0.5, 1.0), (0.0, 0.5))):
        estimate = identify(Problem.of(model, between(samples, *train)), "pc-ridge")
        assert relative(estimate, between(samples, *rest)) <= 1.5
    whole = Problem.of(model, samples)
    free, bound = identify(whole, "wls"), identify(whole, "pc-wls")
    assert bound.diagnostics["relative_error"] < free.diagnostics["relative_error"] + 0.3
    assert bound.diagnostics["active"]

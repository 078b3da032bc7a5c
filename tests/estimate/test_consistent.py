"""The consistent methods: simulated arms with known truth, and the real logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from consistency.problems import arm_problem, random_body
from refusals import refused

from dynid.consistency import Consistency
from dynid.consistency.prior import entropic_fits, nominal_model
from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.linear import joint_weights
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.model.friction_curve import ViscousDifference
from dynid.recording import Recording, Samples
from dynid.recording.log_reading import read
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.validate import cross_validate, reconstruct

Data = Callable[..., Path]
MAPPINGS = Path(__file__).parents[2] / "reproductions" / "mappings"
FRICTION = ("viscous", "coulomb", "offset")
WRIST = {"kind": "coupled-wrist", "joints": [5, 6]}
SLOW = (0.0501, 0.0501, 0.0750, 0.0716, 0.0559, 0.1222)  # rad/s, below which the reference drops a joint's rows


def arm(seed: int = 0, noise: float = 0.3, samples: int = 200) -> tuple[Problem, np.ndarray]:
    """A problem of a four-link arm with white noise, and its true parameters."""
    model, theta, base, _ = arm_problem(4, seed)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-3, 3, (samples, 4))
    dq, ddq = rng.normal(size=(samples, 4)), 2.0 * rng.normal(size=(samples, 4))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau = tau + noise * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0), base=base), theta


@pytest.mark.parametrize("name", ["pc-ols", "pc-wls", "pc-ridge"])
def test_full_parameters_are_consistent_and_agree_with_the_base_values(name: str) -> None:
    problem, _ = arm()
    estimate = identify(problem, method=name)
    assert estimate.theta is not None
    np.testing.assert_allclose(problem.base.reduce(estimate.theta), estimate.values, atol=1e-12)
    assert Consistency(problem.model.parameters, margin=0.0).violations(estimate.theta) == ()
    assert estimate.diagnostics["consistent"]
    assert np.isfinite(estimate.covariance).all()
    assert np.linalg.eigvalsh(estimate.covariance).min() > -1e-9 * np.trace(estimate.covariance)


def test_active_conditions_are_said_and_deviations_shrink() -> None:
    problem, _ = arm(seed=2, samples=60)
    free, bound = identify(problem, method="wls"), identify(problem, method="pc-wls")
    assert bound.diagnostics["active"]
    assert "constraints" in bound.diagnostics["standard_errors"]
    assert np.all(bound.std <= (1.0 + 1e-9) * free.std)  # conditions only take away
    assert np.trace(bound.covariance) < np.trace(free.covariance)
    assert bound.diagnostics["relative_error"] >= free.diagnostics["relative_error"] - 1e-9


def test_stated_deviations_hold_where_friction_is_too_small_to_see() -> None:
    """Half of such friction comes out negative without conditions; held at zero, it is no better known than before."""
    held: dict[bool, list[bool]] = {True: [], False: []}
    for seed in range(30):
        model, theta, base, _ = arm_problem(4, seed)
        friction = [k for k, parameter in enumerate(model.parameters) if parameter.body is None]
        theta[friction] = 0.02
        rng = np.random.default_rng(seed)
        q, dq, ddq = rng.uniform(-3, 3, (60, 4)), rng.normal(size=(60, 4)), 2.0 * rng.normal(size=(60, 4))
        tau = model.inverse_dynamics(theta, q, dq, ddq)
        tau += 0.3 * tau.std(axis=0) * rng.normal(size=tau.shape)
        estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0), base=base),
                            method="pc-wls")
        inside = np.abs(estimate.values - base.reduce(theta)) <= 1.96 * estimate.std
        for one, column in zip(inside, base.independent, strict=True):
            held[column in friction].append(bool(one))
    assert np.mean(held[True]) > 0.93 and np.mean(held[False]) > 0.93


def test_nothing_active_leaves_the_estimate_as_it_was() -> None:
    problem, _ = arm(noise=1e-3, samples=500)
    free, bound = identify(problem, method="wls"), identify(problem, method="pc-wls")
    assert bound.diagnostics["active"] == []
    np.testing.assert_allclose(bound.values, free.values, atol=1e-3 * np.abs(free.values).max())
    np.testing.assert_allclose(bound.std, free.std, rtol=1e-6)


def test_no_other_consistent_way_fits_better() -> None:
    problem, _ = arm(seed=1, samples=60)
    best = identify(problem, method="pc-wls")
    for name in ("pc-points", "pc-sqp", "pc-logchol"):
        other = identify(problem, method=name)
        if other.diagnostics["smallest_eigenvalue"] >= 1e-8:
            assert other.diagnostics["excess_misfit"] >= best.diagnostics["excess_misfit"] - 1e-6, name
    boxed, virtual = identify(problem, method="pc-box"), identify(problem, method="pc-virtual")
    assert boxed.diagnostics["excess_misfit"] <= best.diagnostics["excess_misfit"] + 1e-6
    for loose in (boxed, virtual):
        assert loose.diagnostics["consistent"] == (not loose.diagnostics["violations"])


def test_reduction_ends_at_a_possible_model_that_fits_worse() -> None:
    problem, _ = arm(seed=1, samples=60)
    best, reduced = identify(problem, method="pc-wls"), identify(problem, method="pc-reduce")
    assert reduced.diagnostics["consistent"]
    assert reduced.diagnostics["excess_misfit"] >= best.diagnostics["excess_misfit"]


def test_limits_reach_the_methods() -> None:
    problem, _ = arm(seed=3)
    body = next(iter(problem.model.parameters.bodies))
    masses, box = [{"bodies": [body], "equal": 2.5}, {"high": 30.0}], {"low": [-0.1] * 3, "high": [0.1] * 3}
    estimate = identify(problem, method="pc-wls", masses=masses, centres={body: box})
    mass, com, _ = ten.to_central(estimate.full[problem.model.parameters.bodies[body]])
    assert mass == pytest.approx(2.5, abs=1e-6)
    assert np.abs(com).max() <= 0.1 + 1e-9
    with refused(ModelError, "bad-model", "mass", "weight"):
        identify(problem, method="pc-wls", masses=[{"weight": 3}])
    with refused(ModelError, "no-collision-shapes"):
        identify(problem, method="pc-wls", shapes=True)


def near_and_seen(seed: int, scale: float) -> tuple[Problem, np.ndarray]:
    """A slow noisy motion of a random arm, with a nominal model whose links are moved and bent by about `scale`."""
    model, theta, base, _ = arm_problem(4, seed)
    rng = np.random.default_rng([seed, round(100 * scale)])
    near = theta.copy()
    for columns in model.parameters.bodies.values():
        move = np.eye(4) + scale * np.vstack([rng.normal(size=(3, 4)) * 0.5, np.zeros(4)])
        near[columns] = ten.from_pseudo_inertia(move @ ten.pseudo_inertia(theta[columns]) @ move.T)
    t = np.arange(400) / 50.0
    q = np.sin(np.outer(t, [0.5, 0.7, 0.9, 1.1]))
    dq, ddq = np.gradient(q, 1 / 50.0, axis=0), np.gradient(np.gradient(q, 1 / 50.0, axis=0), 1 / 50.0, axis=0)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau = tau + 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=50.0), base=base, nominal=near), theta


def off(problem: Problem, truth: np.ndarray, theta: np.ndarray, speed: float) -> float:
    """Error of theta's torques against the true ones, percent, with the problem's motion `speed` times faster."""
    samples = problem.data[0]
    motion = samples.q, speed * samples.dq, speed ** 2 * samples.ddq
    right = problem.model.inverse_dynamics(truth, *motion)
    return 100.0 * float(np.linalg.norm(problem.model.inverse_dynamics(theta, *motion) - right) / np.linalg.norm(right))


@pytest.mark.slow
def test_a_prior_by_evidence_pays_over_many_robots() -> None:
    """A prior is a bet: it may lose on one robot, not over many. On motions twice as fast as those seen, its mean
    square error must be far below that of least squares and of the nominal model; with a nominal model that is all
    wrong, the data must win: on the motion seen no worse than least squares, and a weaker pull than from a good one."""
    fast, seen, good = [], [], []
    for seed in range(5, 11):
        problem, truth = near_and_seen(seed, 0.1)
        pulled, free = identify(problem, method="pc-ridge"), identify(problem, method="wls")
        assert problem.nominal is not None
        fast.append([off(problem, truth, one, 2.0) for one in (pulled.full, free.full, problem.nominal)])
        good.append(pulled.diagnostics["strength"])
    prior, least_squares, nominal = np.sqrt(np.mean(np.square(fast), axis=0))
    assert prior < 0.5 * least_squares and prior < 0.1 * nominal
    for seed, strength in zip(range(5, 11), good, strict=True):
        problem, truth = near_and_seen(seed, 1.0)
        pulled, free = identify(problem, method="pc-ridge"), identify(problem, method="wls")
        assert pulled.diagnostics["strength"] < 0.3 * strength
        seen.append([off(problem, truth, one, 1.0) for one in (pulled.full, free.full)])
        assert off(problem, truth, pulled.full, 2.0) < 0.05 * off(problem, truth, problem.nominal, 2.0)
    prior, least_squares = np.sqrt(np.mean(np.square(seen), axis=0))
    assert prior < 1.1 * least_squares


def test_a_nominal_model_far_off_does_not_stall_the_search() -> None:
    """Links twice as heavy and ten times as flat as the true ones: filling must keep the fit, the weakest prior too."""
    problem, _ = near_and_seen(7, 1.0)
    consistency = Consistency(problem.model.parameters)
    weighted = problem.regression.stack(joint_weights(problem.regression))
    least = problem.regression.stack(joint_weights(problem.regression)).misfit(identify(problem, method="wls").values)
    filled = identify(problem, method="pc-wls", fill_with="nominal")
    assert weighted.misfit(filled.values) <= 1.011 * least * (1 + filled.diagnostics["excess_misfit"])
    *_, weakest = entropic_fits(consistency, weighted.r @ problem.base.matrix, weighted.rho,
                                nominal_model(consistency, problem.nominal), [1e5, 1.0, 1e-5])
    assert weighted.misfit(problem.base.reduce(weakest.theta)) < 1.01 * least


def test_the_evidence_of_one_body_agrees_with_integration() -> None:
    """A single mass seen through noise: the Laplace evidence against numerical integration over the ten numbers."""
    from consistency.problems import bodies
    rng = np.random.default_rng(1)
    consistency = Consistency(bodies(1), margin=0.0)
    numbers = random_body(rng)
    nominal = nominal_model(consistency, numbers)
    matrix = np.diag(1.0 / np.maximum(np.abs(numbers), 0.05)) * 8.0
    rho = matrix @ numbers + rng.normal(size=10)
    fits = list(entropic_fits(consistency, matrix, rho, nominal, [10.0, 50.0]))
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
    for options, words in (({"metric": "manhattan"}, ("unknown-metric", "'entropic'")),
                           ({"strength": -1.0}, ("bad-strength", "-1.0"))):
        with refused(ModelError, *words):
            identify(problem, method="pc-ridge", **options)
    with refused(ModelError, "unknown-fill", "central", "nominal"):
        identify(problem, method="pc-wls", fill_with="sand")
    with refused(ModelError, "needs-data"):
        identify(replace(problem, data=()), method="pc-ridge")


# -- real logs ------------------------------------------------------------------------------------
def relative(estimate: Estimate, samples: Samples) -> float:
    return reconstruct(estimate, samples).total.relative_error


def halves(recording: Recording) -> tuple[Recording, Recording]:
    middle = recording.t[0] + 0.5 * recording.duration
    return recording.between(recording.t[0], middle), recording.between(middle, recording.t[-1] + 1.0)


def between(recording: Recording, start: float, stop: float) -> Samples:
    """A part of a log, in shares of it, prepared on its own."""
    first, length = recording.t[0], recording.duration
    return prepare(recording.between(first + start * length, first + stop * length), cutoff=8)


@pytest.fixture(scope="module")
def real(data: Data) -> Callable[[str], tuple[Model, Recording]]:
    """Model and log by name."""
    def find(name: str) -> tuple[Model, Recording]:
        urdf, log, more = {
            "tx40": ("tx40_mdh_modified.urdf", (), {"rotor": True, "extra": [WRIST]}),
            "kuka_lwr4": ("kuka_lwr4.urdf", ("measurements_1.npz",), {}), "panda": ("panda_arm.urdf", (), {})}[name]
        robot = Robot.load(data(name, urdf))
        return (Model(robot, make_terms(robot, friction=FRICTION, **more)),
                read(data(name, *log), MAPPINGS / f"{name}.toml", robot))
    return find


def nominal_mass(model: Model) -> float:
    return float(model.robot.inertias[:, 9].sum())


SETTINGS = {"tx40": {"cutoff": 100, "decimate": 10, "stages": 2, "slow": SLOW}, "kuka_lwr4": {"cutoff": 8},
            "panda": {"cutoff": 5}}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_consistency_costs_little_on_real_logs(real: Callable[[str], tuple[Model, Recording]], name: str) -> None:
    model, recording = real(name)
    problem = Problem.from_model(model, prepare(recording, **SETTINGS[name]))
    for free, bound in (("wls", "pc-wls"), ("ols", "pc-ols")):
        least, found = identify(problem, method=free), identify(problem, method=bound)
        assert found.diagnostics["relative_error"] < least.diagnostics["relative_error"] + 0.3
        assert found.diagnostics["active"]
        assert Consistency(model.parameters, margin=0.0).violations(found.full) == ()
        # Links stay of sensible size, though the very best fit lets masses grow without end.
        mass = sum(found.full[columns[9]] for columns in model.parameters.bodies.values())
        assert 0.7 * nominal_mass(model) < mass < 1.5 * nominal_mass(model)


def test_every_part_of_a_real_log_can_be_fitted(real: Callable[[str], tuple[Model, Recording]]) -> None:
    """With rotors many of the Panda's bodies touch their borders, where cone solvers lose their digits."""
    model, recording = real("panda")
    samples = prepare(recording, cutoff=5)
    for friction, method in ((FRICTION[:2], "pc-wls"), (FRICTION, "pc-ols")):
        problem = Problem.from_model(Model(model.robot, make_terms(model.robot, friction=friction, rotor=True)),
                                     samples)
        free, bound = (cross_validate(problem, name) for name in (method.removeprefix("pc-"), method))
        assert np.all(bound.fit_errors > free.fit_errors) and np.all(bound.fit_errors < free.fit_errors + 0.3)


def test_kuka_prior_by_evidence(real: Callable[[str], tuple[Model, Recording]], data: Data) -> None:
    model, first = real("kuka_lwr4")
    second = prepare(read(data("kuka_lwr4", "measurements_2.npz"), MAPPINGS / "kuka_lwr4.toml", model.robot), cutoff=8)
    pulled = identify(Problem.from_model(model, prepare(first, cutoff=8)), method="pc-ridge")
    assert 1.0 <= pulled.diagnostics["strength"] <= 100.0
    assert relative(pulled, second) < 3.0
    masses = pulled.full[[columns[9] for columns in model.parameters.bodies.values()]]
    assert masses.min() > 0.1 and masses.max() < 6.0 and masses.sum() == pytest.approx(15.0, abs=3.0)


def test_kuka_prior_predicts_where_least_squares_does_not(real: Callable[[str], tuple[Model, Recording]]) -> None:
    """Fitted on the middle of the log, tried on its ends, which accelerate harder."""
    model, first = real("kuka_lwr4")
    problem = Problem.from_model(model, between(first, 0.2, 0.8))
    free, pulled = identify(problem, method="wls"), identify(problem, method="pc-ridge")
    for part in (between(first, 0.0, 0.2), between(first, 0.8, 1.0)):
        assert relative(pulled, part) < 4.0
    assert relative(pulled, between(first, 0.0, 0.2)) < 0.7 * relative(free, between(first, 0.0, 0.2))


def test_panda_prior_does_not_hurt(real: Callable[[str], tuple[Model, Recording]]) -> None:
    model, recording = real("panda")
    first, second = (prepare(half, cutoff=5) for half in halves(recording))
    for train, rest in ((first, second), (second, first)):
        assert relative(identify(Problem.from_model(model, train), method="pc-ridge"), rest) <= 1.5


@pytest.mark.parametrize("method", ["pc-wls", "pc-ridge"])
def test_viscous_friction_of_neither_direction_adds_energy(method: str) -> None:
    """Torques of a joint whose friction drives it backward are fitted by wls; the consistent methods refuse that."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, (*make_terms(robot, ("viscous", "coulomb")), ViscousDifference()))
    names = model.parameters.names
    theta = np.array([0.0 if item.nominal is None else item.nominal for item in model.parameters])
    for j in (1, 2, 3):
        theta[[names.index(f"Fv{j}"), names.index(f"Fvd{j}"), names.index(f"Fc{j}")]] = 1.0, 1.5 if j == 2 else 0.3, 0.5
    t = np.arange(0.0, 8.0, 0.01)
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 3, 5))
    along = FourierSeries(0.4 * a, 0.4 * b, np.zeros(3), 8.0).at(t)
    tau = model.inverse_dynamics(theta, along.q, along.dq, along.ddq)
    tau += 0.02 * rng.normal(size=tau.shape)
    problem = Problem.from_model(model, Samples.from_arrays(along.q, along.dq, along.ddq, tau, rate=100.0),
                                 nominal=theta)
    plain, found = identify(problem, method="wls"), identify(problem, method=method)
    place = plain.names.index("Fvd2")
    assert plain.values[place] > 1.3 * plain.values[plain.names.index("Fv2")]
    for j in (1, 2, 3):
        assert abs(found.full[names.index(f"Fvd{j}")]) <= (1.0 + 1e-6) * found.full[names.index(f"Fv{j}")]
    assert abs(found.full[names.index("Fvd1")] - 0.3) < 0.05


def test_a_useless_nominal_model_widens_no_interval_of_pc_ridge() -> None:
    """With bodies off by a factor of e in either direction, the mean variance of pc-ridge is not above that of
    wls; with the strength of greatest evidence they are 1.7 times as large for the second of the two."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, ("viscous", "coulomb")))
    theta = np.array([0.3 if item.nominal is None else item.nominal for item in model.parameters])
    rng, t = np.random.default_rng(11), np.arange(0.0, 8.0, 0.01)
    a, b = rng.normal(size=(2, 3, 5))
    along = FourierSeries(0.4 * a, 0.4 * b, np.zeros(3), 8.0).at(t)
    tau = model.inverse_dynamics(theta, along.q, along.dq, along.ddq) + 0.005 * rng.normal(size=(len(t), 3))
    samples = Samples.from_arrays(along.q, along.dq, along.ddq, tau, rate=100.0)
    for signs in ((1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)):
        wrong = theta.copy()
        for sign, places in zip(signs, model.parameters.bodies.values(), strict=True):
            turn = np.diag([np.exp(0.5 * sign), np.exp(-0.5 * sign), 1.0, 1.0])
            wrong[places] = np.exp(sign) * ten.from_pseudo_inertia(turn @ ten.pseudo_inertia(theta[places]) @ turn.T)
        problem = Problem.from_model(model, samples, nominal=wrong)
        ratio = identify(problem, method="pc-ridge").std / identify(problem, method="wls").std
        assert np.mean(ratio ** 2) < 1.1

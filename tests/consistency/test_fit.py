"""Constrained regression against cvxpy and known optima; filling of what motion leaves open."""

from __future__ import annotations

import numpy as np
import pytest
from consistency.problems import arm_problem, oracle
from refusals import refused
from scipy import sparse

from dynid.consistency import Box, Consistency, Ellipsoid, MassLimit, fit
from dynid.consistency.barrier import Barrier
from dynid.consistency.central import fill_by_barrier
from dynid.consistency.fit import Fit
from dynid.consistency.interior import interior_point, scales
from dynid.consistency.newton import minimise
from dynid.consistency.program import SparseColumns, optimality_gap, solve_program
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.estimate.consistent import problem_consistency
from dynid.recording import Samples
from dynid.regression import Stacked
from dynid.robot import inertia as ten


def solved(links: int, seed: int, **options) -> tuple[Fit, Consistency, Stacked, np.ndarray]:
    model, _, base, regression = arm_problem(links, seed)
    stacked = regression.stack()
    consistency = Consistency(model.parameters, **options)
    return fit(consistency, base, stacked), consistency, stacked, stacked.r @ base.matrix


@pytest.mark.parametrize("iterations", [6, 9, 12, 200])
def test_a_solver_that_stops_early_is_off_by_no_more_than_it_proves(iterations: int) -> None:
    model, _, base, regression = arm_problem(4, 2)
    stacked, consistency = regression.stack(), Consistency(model.parameters)
    matrix, scale = stacked.r @ base.matrix, scales(consistency, stacked.r @ base.matrix)
    found = solve_program(consistency.blocks, matrix, stacked.rho, scale, size=np.sqrt(stacked.rest),
                          settings={"max_iter": iterations})
    gap = optimality_gap(consistency.blocks, matrix, stacked.rho, found, scale)
    least = oracle(consistency, matrix, stacked.rho)
    assert gap >= 1.0 - least / float(np.sum((matrix @ found.theta - stacked.rho) ** 2)) - 1e-8
    if iterations == 200:
        assert found.solved and gap < 1e-6


@pytest.mark.parametrize("links, seed", [(1, 0), (2, 1), (4, 2), (7, 3)])
@pytest.mark.parametrize("form", ["pseudo", "spatial"])
def test_the_optimum_is_cvxpys(links: int, seed: int, form: str) -> None:
    best, consistency, stacked, matrix = solved(links, seed, form=form)
    least = oracle(consistency, matrix, stacked.rho) + stacked.rest
    assert best.misfit == pytest.approx(least, rel=1e-6)
    assert consistency.smallest_eigenvalue(best.theta) >= consistency.margin * (1 - 1e-9)
    assert consistency.slack(best.theta) >= 0
    assert best.misfit >= stacked.rest * (1 - 1e-12)


@pytest.mark.parametrize("links, seed", [(1, 0), (2, 1), (3, 4), (4, 2), (5, 7), (7, 3)])
def test_the_estimate_is_above_cvxpys_optimum_by_what_it_says(links: int, seed: int) -> None:
    """What is given up for links of sensible size is said, and at most a hundredth."""
    model, _, _, regression = arm_problem(links, seed)
    problem = Problem(model, regression)
    estimate = identify(problem, method="pc-wls")
    stacked = regression.stack(np.array(estimate.diagnostics.weights))
    least = oracle(problem_consistency(problem), stacked.r @ problem.base.matrix, stacked.rho) + stacked.rest
    above = stacked.misfit(estimate.values) / least - 1.0
    assert above == pytest.approx(estimate.diagnostics["given_up"], abs=3e-6)
    assert above < 0.0101


def test_limits_hold_and_cost_what_cvxpy_says() -> None:
    model, theta, base, regression = arm_problem(4, 5)
    stacked = regression.stack()
    names = list(model.parameters.bodies)
    com = ten.to_central(theta[model.parameters.bodies[names[1]]])[1]
    consistency = Consistency(model.parameters, centres={names[1]: Box(com - 0.01, com + 0.02)},
                              masses=(MassLimit(4.0, 4.0, (names[2],)), MassLimit(high=12.0)))
    best = fit(consistency, base, stacked)
    least = oracle(consistency, stacked.r @ base.matrix, stacked.rho) + stacked.rest
    assert best.misfit == pytest.approx(least, rel=1e-6)
    assert best.theta[consistency.bodies[names[2]][9]] == pytest.approx(4.0, abs=1e-6)
    assert consistency.violations(best.theta, 1e-6) == ()
    free = fit(Consistency(model.parameters), base, stacked)
    assert best.misfit >= free.misfit * (1 - 1e-9)


def test_feasible_data_cost_nothing_and_nothing_is_active() -> None:
    model, _, base, regression = arm_problem(3, 0, samples=500, noise=1e-4)
    stacked = regression.stack()
    best = fit(Consistency(model.parameters), base, stacked)
    assert best.excess < 1e-6 and best.active == ()
    np.testing.assert_allclose(best.beta, np.linalg.solve(stacked.r, stacked.rho), atol=1e-4)


def test_grams_and_newton_millimetres_give_the_same_robot() -> None:
    """Torques a thousand times larger and masses in grams: the same fit, scaled."""
    model, _, base, regression = arm_problem(3, 1)
    stacked = regression.stack()
    consistency = Consistency(model.parameters, margin=0.0)
    best = fit(consistency, base, stacked)
    scaled = Stacked(stacked.r, stacked.rho * 1e-3, stacked.rest * 1e-6, stacked.rows)
    small = fit(consistency, base, scaled)
    assert small.misfit * 1e6 == pytest.approx(best.misfit, rel=1e-5)


def test_contradictions_are_named_by_the_fit() -> None:
    model, _, base, regression = arm_problem(2)
    consistency = Consistency(model.parameters, masses=(MassLimit(low=9.0), MassLimit(high=2.0)))
    with refused(NotPossibleError, "conditions-contradict", "9", "2"):
        fit(consistency, base, regression.stack())


@pytest.mark.parametrize("with_nominal", [False, True])
def test_filling_keeps_the_fit_and_moves_inside(with_nominal: bool) -> None:
    model, theta, base, regression = arm_problem(5, 7)
    stacked = regression.stack()
    consistency = Consistency(model.parameters)
    best = fit(consistency, base, stacked)
    nominal = consistency.matrices(theta) if with_nominal else None
    full, _ = fill_by_barrier(consistency, stacked.r @ base.matrix, stacked.rho, best.theta,
                              tolerance=1e-4 * best.misfit, nominal=nominal)
    assert stacked.misfit(base.reduce(full)) <= best.misfit * (1 + 1.01e-4)
    assert consistency.smallest_eigenvalue(full) > consistency.margin
    mass = [full[c[9]] for c in consistency.bodies.values()]
    assert 0 < min(mass) and max(mass) < 200


def test_filling_with_the_truth_gives_the_truth_back() -> None:
    """Without noise and with the true robot as nominal model, filling must find it."""
    model, theta, base, regression = arm_problem(3, 2, samples=300, noise=1e-6)
    stacked = regression.stack()
    consistency = Consistency(model.parameters)
    best = fit(consistency, base, stacked)
    full, _ = fill_by_barrier(consistency, stacked.r @ base.matrix, stacked.rho, best.theta,
                              tolerance=1e-3 * best.misfit, nominal=consistency.matrices(theta))
    np.testing.assert_allclose(full, theta, rtol=1e-2, atol=3e-3)  # the limit on the whole mass pulls a little


def test_barrier_derivatives_are_those_of_its_value() -> None:
    model, theta, _, _ = arm_problem(2, 3)
    name = next(iter(model.parameters.bodies))
    com = ten.to_central(theta[model.parameters.bodies[name]])[1]
    consistency = Consistency(model.parameters, centres={name: Ellipsoid(com + 0.01, [0.1, 0.2, 0.3])})
    rng = np.random.default_rng(0)
    pull = np.array([a @ a.T for a in rng.normal(size=(2, 4, 4))])
    barrier = Barrier(consistency, pull, np.array([0.7, 1.3]), 0.4)
    gradient, hessian = barrier.derivatives(theta)
    step = 1e-6
    for k in range(len(theta)):
        move = np.zeros(len(theta))
        move[k] = step
        slope = (barrier.value(theta + move) - barrier.value(theta - move)) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        bend = (barrier.derivatives(theta + move)[0] - barrier.derivatives(theta - move)[0]) / (2 * step)
        np.testing.assert_allclose(hessian[k], bend, rtol=1e-4, atol=1e-4 * np.abs(bend).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_has_no_slope_left(seed: int) -> None:
    """From a start far away, with an equality, an ellipsoid and a pull to bodies that are all wrong."""
    model, theta, base, regression = arm_problem(3, seed)
    first, second, _ = model.parameters.bodies
    rng = np.random.default_rng(seed)
    com = ten.to_central(theta[model.parameters.bodies[first]])[1]
    consistency = Consistency(model.parameters, centres={first: Ellipsoid(com + 0.02, [0.1, 0.2, 0.3])},
                              masses=(MassLimit(3.0, 3.0, (second,)),))
    flat = np.array([10.0 ** rng.uniform(-2, 2) * np.diag([1e-4, 1e-3, 1e-2, 1.0]) for _ in range(3)])
    barrier = Barrier(consistency, np.linalg.inv(flat), np.array([1e-3, 1.0, 10.0]), 1e-3)
    stacked = regression.stack()
    matrix = stacked.r @ base.matrix
    found = minimise(matrix, stacked.rho, barrier, interior_point(consistency))
    gradient, hessian = barrier.derivatives(found)
    gradient += matrix.T @ (matrix @ found - stacked.rho)
    hessian += matrix.T @ matrix
    keep = np.ones(len(theta), dtype=bool)
    keep[model.parameters.bodies[second][9]] = False  # the mass that is given
    left = gradient[keep] @ np.linalg.solve(hessian[np.ix_(keep, keep)], gradient[keep])
    assert 0 <= left < 1e-8
    assert found[~keep] == pytest.approx(3.0, abs=1e-9) and consistency.slack(found) > -1e-9


@pytest.mark.parametrize("seed", range(3))
def test_filling_never_costs_more_than_it_may(seed: int) -> None:
    model, _, base, regression = arm_problem(4, seed, samples=30)
    stacked = regression.stack()
    consistency = Consistency(model.parameters)
    best = fit(consistency, base, stacked)
    flat = np.tile(np.diag([1e-4, 1e-3, 1e-2, 50.0]), (4, 1, 1))
    for nominal in (None, flat):
        full, _ = fill_by_barrier(consistency, stacked.r @ base.matrix, stacked.rho, best.theta,
                                  tolerance=1e-5 * best.misfit, nominal=nominal)
        assert stacked.misfit(base.reduce(full)) <= best.misfit * (1 + 1.0001e-5)
        assert consistency.slack(full) >= 0


# -- trouble: a sentence that names what contradicts what, never a silent bad answer -----------------
def trouble(units: float = 1.0, nominal: float = 1.0) -> Problem:
    """Torques in other units than N m, a nominal model in other units than kg."""
    model, theta, base, _ = arm_problem(3)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-3, 3, (200, 3)), rng.normal(size=(200, 3)), 2.0 * rng.normal(size=(200, 3))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.1 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Problem.from_model(model, Samples.from_arrays(q, dq, ddq, units * tau, rate=100.0), base=base,
                              nominal=nominal * theta)


@pytest.mark.parametrize("method", ["pc-ols", "pc-wls", "pc-ridge"])
@pytest.mark.parametrize("options, words", [
    ({"masses": [{"bodies": ["link1"], "equal": 2500.0}, {"high": 1000.0}]},
     ("conditions-contradict", "'link1'", "2500 kg", "1000 kg")),
    ({"masses": [{"equal": 15000.0}, {"high": 1000.0}]},
     ("conditions-contradict", "15000 kg", "1000 kg")),
    ({"masses": [{"equal": 5.0}, {"bodies": ["link1"], "equal": 6.0}]},
     ("conditions-contradict", "5 kg", "'link1'", "6 kg")),
    ({"masses": [{"low": 50.0}, {"bodies": ["link1"], "high": 6.0}, {"bodies": ["link2", "link3"], "high": 6.0}]},
     ("conditions-contradict", "50 kg", "'link1'", "6 kg", "'link2'", "'link3'")),
    ({"masses": [{"equal": 5.0}, {"bodies": ["link1", "link2"], "equal": 5.0}]},
     ("conditions-without-interior", "'link3'", "5 kg")),
    ({"masses": [{"bodies": ["link1"], "equal": 0.0}]}, ("conditions-without-interior", "'link1'", "0 kg")),
    ({"centres": {"link1": {"low": [0.0, 0.0, 0.0], "high": [0.1, 0.1, 0.0]}}},
     ("conditions-without-interior", "'link1'")),
    ({"margin": 1.0, "masses": [{"bodies": ["link1"], "high": 0.5}]}, ("conditions-contradict", "'link1'", "0.5 kg")),
])
def test_limits_that_contradict_each_other_are_named(method: str, options: dict, words: tuple[str, ...]) -> None:
    with refused(NotPossibleError, *words):
        identify(trouble(), method=method, **options)


@pytest.mark.parametrize("method", ["pc-wls", "pc-ridge"])
@pytest.mark.parametrize("units", [1e3, 1e6])
def test_torques_in_millinewtons_are_refused(method: str, units: float) -> None:
    with refused(NotPossibleError, "robot-too-heavy", "1000"):
        identify(trouble(units=units), method=method)


@pytest.mark.parametrize("method", ["pc-wls", "pc-ridge"])
def test_a_nominal_model_in_grams_is_refused(method: str) -> None:
    with refused(NotPossibleError, "nominal-too-heavy", "1000"):
        identify(trouble(nominal=1e3), method=method)


def test_limits_in_millimetres_are_refused() -> None:
    with refused(ModelError, "limit-too-far", "link1"):
        identify(trouble(), method="pc-wls", centres={"link1": {"low": [900.0] * 3, "high": [1000.0] * 3}})


@pytest.mark.parametrize("units", [1e-3, 1e-1, 1.0, 10.0])
def test_the_scale_of_the_data_does_not_matter(units: float) -> None:
    """The same robot, lighter or heavier as a whole: the same relative error, and consistent."""
    plain, scaled = (identify(trouble(units=x), method="pc-wls", fill_with="central") for x in (1.0, units))
    assert scaled.diagnostics["relative_error"] == pytest.approx(plain.diagnostics["relative_error"], rel=1e-2)
    assert Consistency(scaled.model.parameters, margin=0.0).violations(scaled.full) == ()


def test_without_a_greatest_mass_there_is_no_set() -> None:
    model, _, _, _ = arm_problem(2)
    for heaviest in (np.inf, np.nan):
        with refused(ModelError, "wrong-mass-limit"):
            interior_point(Consistency(model.parameters, heaviest=heaviest))


def test_a_sparse_matrix_has_the_columns_that_scipy_makes() -> None:
    rng = np.random.default_rng(5)
    dense = rng.normal(size=(6, 5)) * (rng.random((6, 5)) < 0.4)
    dense[:, 2] = 0.0  # a column without an entry
    rows, columns = np.nonzero(dense)
    mixed = rng.permutation(len(rows))
    own = SparseColumns.from_entries(dense[rows, columns][mixed], rows[mixed], columns[mixed], (6, 5))
    other = sparse.csc_matrix(dense)
    for name in ("data", "indices", "indptr", "shape", "nnz"):
        np.testing.assert_array_equal(getattr(own, name), getattr(other, name))

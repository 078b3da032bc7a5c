"""Essential parameters: what is left out by deviation and by F-test, against dense fits of the same columns."""

from __future__ import annotations

import numpy as np
import pytest
from motions import arm, low_passed, motion
from refusals import refused
from scipy import stats

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, essential, identify
from dynid.estimate.linear import joint_weights
from dynid.model import Coulomb, Model, Offset, Parameter, Parameters, RigidBodies, Stribeck, Viscous
from dynid.recording import Samples
from dynid.recording.sample_preparation import prepare
from dynid.regression import Stacked
from dynid.robot import Robot
from dynid.simulation import Poles, Reference, VirtualRobot


class Ten:
    """One joint, ten columns made of products of q, dq and ddq."""

    dof = 1
    parameters = Parameters(tuple(Parameter(f"p{k}", "1", 0, "joint1") for k in range(10)))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        parts = [q, dq, ddq, q * dq, q * ddq, dq * ddq, q ** 2, dq ** 2, ddq ** 2, np.ones_like(q)]
        return np.stack(parts, axis=-1)


TRUE = np.array([3.0, 0.0, -2.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.2])


def ten(seed: int = 0, rows: int = 400, noise: float = 1.0) -> Problem:
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.normal(size=(3, rows, 1))
    tau = Ten().regressor(q, dq, ddq) @ TRUE + noise * rng.normal(size=(rows, 1))
    return Problem.from_model(Ten(), Samples.from_arrays(q, dq, ddq, tau, rate=100.0))


def test_parameters_that_are_not_there_go_and_the_others_stay() -> None:
    for criterion in ("standard-error", "f-test"):
        found = essential(ten(), criterion=criterion)
        present = {f"p{k}" for k in np.flatnonzero(TRUE)}
        assert present <= set(found.kept)
        assert len(found.kept) <= len(present) + 1
        assert set(found.kept) | {removal.name for removal in found.removed} == set(Ten().parameters.names)
        assert found.error_after >= found.error_before
        assert found.error_after == pytest.approx(found.error_before, rel=0.02)
        assert found.estimate.names == found.kept


def test_the_reduced_estimate_is_a_dense_fit_of_the_kept_columns() -> None:
    problem = ten()
    found = essential(problem)
    samples = problem.data[0]
    kept = [int(name[1:]) for name in found.kept]
    x = Ten().regressor(samples.q, samples.dq, samples.ddq)[:, 0, kept]
    beta = np.linalg.lstsq(x, samples.tau[:, 0])[0]
    np.testing.assert_allclose(found.estimate.values, beta, rtol=1e-9)
    error = 100 * np.linalg.norm(samples.tau[:, 0] - x @ beta) / np.linalg.norm(samples.tau)
    assert found.error_after == pytest.approx(error, rel=1e-9)
    assert found.error_before == pytest.approx(identify(problem, method="wls").diagnostics["relative_error"], rel=1e-9)
    np.testing.assert_allclose(found.estimate.predict(samples.q, samples.dq, samples.ddq)[:, 0], x @ beta, atol=1e-9)


def test_statistics_are_those_of_the_document() -> None:
    """Ardiani, eq. 1.35 by hand, with all rows."""
    problem = ten()
    found = essential(problem, criterion="f-test", alpha=0.01, rows="all")
    samples = problem.data[0]
    x, tau = Ten().regressor(samples.q, samples.dq, samples.ddq)[:, 0], samples.tau[:, 0]

    def misfit(columns: list[int]) -> float:
        return float(np.sum((tau - x[:, columns] @ np.linalg.lstsq(x[:, columns], tau)[0]) ** 2))

    whole, left = misfit(list(range(10))), list(range(10))
    for removal in found.removed:
        left.remove(int(removal.name[1:]))
        f = (misfit(left) - whole) / whole * (len(tau) - 10) / (10 - len(left))
        assert removal.statistic == pytest.approx(f, rel=1e-6)
        assert f < stats.f.ppf(0.99, 10 - len(left), len(tau) - 10)
    assert len(left) == len(found.kept)


def test_the_largest_relative_deviation_goes_first() -> None:
    problem = ten()
    first = essential(problem).removed[0]
    estimate = identify(problem, method="wls")
    assert first.name == estimate.names[int(np.argmax(estimate.relative_std))]
    assert first.relative_std == pytest.approx(estimate.relative_std.max(), rel=1e-6)
    kept = essential(problem, threshold=5.0).kept
    assert set(kept) < set(essential(problem, threshold=50.0).kept)


def test_correlated_rows_count_for_what_they_are_worth() -> None:
    """Filtered noise: with all rows as independent the F-test keeps parameters that are noise."""
    model, theta = arm()
    theta = theta.copy()
    base = Problem.from_model(model, motion(model, theta, seconds=2.0)).base
    gone = [model.parameters.index(name) for name in ("Fo1", "Fo2", "Fo3", "Fv1", "Fv2", "Fv3")]
    theta[gone] = 0.0
    rng = np.random.default_rng(0)
    wrong = {"effective": 0, "all": 0}
    for seed in range(10):
        noise = low_passed(rng, (2000, 3), np.array([0.03, 0.02, 0.005]), 3.0, 200.0)
        problem = Problem.from_model(model, motion(model, theta, noise, seconds=10.0, seed=seed), base=base)
        for rows in wrong:
            kept = essential(problem, criterion="f-test", rows=rows).kept
            wrong[rows] += sum(model.parameters.names[k] in kept for k in gone)
    assert wrong["effective"] < 0.15 * 60
    assert wrong["all"] > 2 * wrong["effective"] + 6


def test_unexcited_parameters_go_before_all_others() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0)
    q, dq, ddq = (x.copy() for x in (clean.q, clean.dq, clean.ddq))
    q[:, 0], dq[:, 0], ddq[:, 0] = 0.3, 0.0, 0.0
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0))
    known = identify(problem, method="wls").identified
    unknown = [problem.base.names[c] for c in np.flatnonzero(~known)]
    found = essential(problem)
    assert [removal.name for removal in found.removed[:len(unknown)]] == unknown
    assert all(np.isinf(removal.relative_std) for removal in found.removed[:len(unknown)])
    assert found.estimate.identified.all()


def test_without_noise_nothing_goes_and_weights_can_be_given() -> None:
    problem = ten(noise=0.0)
    found = essential(problem, threshold=30.0)
    assert {f"p{k}" for k in np.flatnonzero(TRUE)} <= set(found.kept)
    noisy = ten()
    weights = 3.0 * joint_weights(noisy.regression)
    assert essential(noisy, weights=weights).kept == essential(noisy).kept


def test_a_saved_fold_is_enough() -> None:
    problem = ten()
    alone = Problem(problem.model, problem.regression)
    assert set(essential(alone).kept) == set(essential(problem).kept)


def test_wrong_calls_are_refused() -> None:
    problem = ten()
    with refused(ModelError, "unknown-criterion", "size"):
        essential(problem, criterion="size")
    with refused(ModelError, "unknown-rows", "some"):
        essential(problem, rows="some")
    with refused(ModelError, "bad-threshold", "0", "1"):
        essential(problem, alpha=1.5)
    samples = ten(rows=100, noise=0.0).data[0]
    drifting = Samples.from_arrays(samples.q, samples.dq, samples.ddq,
                                   samples.tau + np.linspace(-9.0, 9.0, 100)[:, None])
    with refused(NotPossibleError, "too-few-rows", "10"):
        essential(Problem.from_model(Ten(), drifting), criterion="f-test")


# -- other rules, other methods ----------------------------------------------------------------------
def test_the_ratio_of_deviations_ends_below_what_was_asked() -> None:
    problem = ten()
    for ratio in (10.0, 30.0):
        found = essential(problem, criterion="ratio", threshold=ratio)
        relative = found.estimate.relative_std
        assert relative.max() < 1.1 * ratio * relative.min()  # by the reduced model's own noise
        assert found.removed[-1].relative_std > ratio * relative.min() / 1.1
    whole = identify(problem, method="wls")
    poor = {name for name, x in zip(whole.names, whole.relative_std, strict=True) if x > 10 * whole.relative_std.min()}
    assert {one.name for one in essential(problem, criterion="smallest").removed} == poor


def test_little_torque_by_the_diagonal_of_r_and_by_singular_values() -> None:
    """Columns times their values, dense, by scipy's QR with pivoting and numpy's singular values."""
    from scipy.linalg import qr

    problem = ten()
    samples, values = problem.data[0], identify(problem, method="wls").values
    columns = Ten().regressor(samples.q, samples.dq, samples.ddq)[:, 0] * values
    triangle, order = qr(columns, mode="economic", pivoting=True)[1:]
    size = np.abs(np.diag(triangle))
    found = essential(problem, criterion="r", threshold=5.0)
    assert [one.name for one in found.removed] == [f"p{k}" for k in order[size < 0.05 * size[0]][::-1]]
    assert 0 < len(found.removed) < 9
    singular = np.linalg.svd(columns, compute_uv=False)
    by_values = essential(problem, criterion="singular", threshold=5.0)
    assert len(by_values.kept) == int(np.sum(singular >= 0.05 * singular[0]))


def test_what_a_normal_distribution_leaves_is_what_least_squares_leave() -> None:
    """White noise: the covariance is that of the columns, so both views of a fit without some of them agree."""
    from dynid.estimate.reduction import FoldedView, NormalView

    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 6))
    tau = x @ np.array([2.0, 0.1, -1.0, 0.0, 0.3, 0.5]) + rng.normal(size=300)
    r = np.linalg.qr(np.column_stack([x, tau]), mode="r")
    stacked = Stacked.from_matrix(r, 300)
    variance = stacked.rest / 294.0
    inverse = np.linalg.inv(x.T @ x)
    folded = FoldedView(stacked, variance * (x.T @ x), stacked.rest, 294.0)
    normal = NormalView(np.linalg.lstsq(x, tau)[0], variance * inverse)
    for kept in ([0, 2, 4], [0, 1, 2, 3, 4, 5], [1]):
        ours, theirs = folded(np.array(kept)), normal(np.array(kept))
        np.testing.assert_allclose(ours.values, theirs.values, atol=1e-12)
        np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-10)
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-9, abs=1e-9)


def test_on_data_not_seen_nothing_is_lost_by_what_is_not_there() -> None:
    model, theta = arm()
    theta = theta.copy()
    gone = [model.parameters.index(name) for name in ("Fo1", "Fo2", "Fo3")]
    theta[gone] = 0.0
    noise = low_passed(np.random.default_rng(0), (4000, 3), np.array([0.03, 0.02, 0.005]), 20.0, 200.0)
    problem = Problem.from_model(model, motion(model, theta, noise, seconds=20.0))
    found = essential(problem, unseen=True)
    assert {"Fo1", "Fo2", "Fo3"} <= {one.name for one in found.removed}
    assert found.unseen is not None and found.unseen[1] < 1.01 * found.unseen[0]
    rough = essential(problem, criterion="smallest", threshold=2.0, unseen=True)
    assert rough.unseen is not None and rough.unseen[1] > 1.2 * rough.unseen[0]  # what matters is missed
    assert found.full.diagnostics.relative_error == found.error_before


@pytest.mark.parametrize("criterion", ["standard-error", "f-test"])
def test_instruments_keep_what_is_there(criterion: str) -> None:
    """A virtual SCARA whose offsets are zero: iv leaves out these, and gives the rest within their deviations."""
    robot = Robot.builtin("scara2")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset()))
    theta = np.array([p.nominal if p.nominal is not None else 0.0 for p in model.parameters])
    law = Poles([1.0, 10.0], 1.0)
    t = np.arange(4000) / 200.0
    q = np.column_stack([3 * np.sin(0.6 * t) + 4 * np.sin(1.5 * t + 0.4) - 4 * np.sin(0.4),
                         1.5 * np.sin(1.1 * t) + 0.8 * np.sin(2.7 * t)])
    log = VirtualRobot(model, theta, law, encoder=2 * np.pi / 40000, torque_noise=[0.5, 0.05]).record(
        Reference.from_arrays(q, rate=200.0), seed=1)
    problem = Problem.from_model(model, prepare(log, cutoff=20, decimate=20, slow=0.0), recordings=log, controller=law)
    found = essential(problem, method="iv", criterion=criterion)
    assert {"Fo1", "Fo2"} <= {one.name for one in found.removed}
    assert found.estimate.method == "iv" and found.estimate.names == found.kept
    truth = dict(zip(problem.base.names, problem.base.reduce(theta), strict=True))
    true = np.array([truth[name] for name in found.kept])
    large = {name for name in truth if abs(truth[name]) > 0.05 * max(map(abs, truth.values()))}
    assert large <= set(found.kept)
    assert np.all(np.abs(found.estimate.values - true) < 4.0 * found.estimate.std)
    if criterion == "standard-error":
        assert found.estimate.relative_std.max() <= 30.0


def test_shapes_are_held_where_a_method_finds_them() -> None:
    """Stribeck friction whose power law is not there: its column goes, the shape found stays in the model."""
    free = Model(Robot.builtin("emps"), (RigidBodies(), Stribeck(free=("delta",))))
    truth = Model(Robot.builtin("emps"), (RigidBodies(), Stribeck(delta=8.0)))
    values = {"M1": 1.0, "Fc1": 3.0, "Fsc1": -1.2, "Fv1": 0.5}
    theta = np.array([values.get(name, 0.0) for name in truth.parameters.names])
    speeds = np.geomspace(0.01, 3.0, 14)
    window = np.hanning(80)
    there_and_back = np.repeat(np.ravel(np.column_stack([speeds, -speeds])), 200)
    dq = np.convolve(there_and_back, window / window.sum(), "same")[:, None]
    q, ddq = np.cumsum(dq, axis=0) / 200.0, np.gradient(dq, 1 / 200.0, axis=0)
    tau = truth.inverse_dynamics(theta, q, dq, ddq)
    tau = tau + low_passed(np.random.default_rng(0), tau.shape, 0.02, 20.0, 200.0)
    found = essential(Problem.from_model(free, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), method="sls",
                      unseen=True)
    assert found.estimate.method == "sls" and set(values) <= set(found.kept)
    assert "Fnl1" in {one.name for one in found.removed} or "Fo1" in {one.name for one in found.removed}
    assert found.estimate.diagnostics["shape"]["delta1"]["value"] == pytest.approx(8.0, rel=0.1)
    assert found.unseen is not None and found.unseen[1] < 1.02 * found.unseen[0]


def test_bodies_that_can_exist_have_all_their_parameters() -> None:
    model, theta = arm()
    problem = Problem.from_model(model, motion(model, theta, 0.01, seconds=5.0))
    with refused(ModelError, "needs-all-parameters", "pc-wls"):
        essential(problem, method="pc-wls")


def test_essential_values_drawn_to_a_nominal_model_in_the_null_space() -> None:
    """The essential values are kept, and no other vector that has them is nearer to the nominal model."""
    model, theta = arm()
    rng = np.random.default_rng(0)
    problem = Problem.from_model(model, motion(model, theta, 0.5 * rng.normal(size=(2000, 3)), seconds=10.0))
    found = essential(problem, threshold=10.0)
    assert 0 < len(found.removed) < len(problem.base)
    drawings = theta * rng.uniform(0.9, 1.1, len(theta))
    full = found.toward(drawings)
    rows = [problem.base.names.index(name) for name in found.kept]
    kept = dict(zip(found.estimate.names, found.estimate.values, strict=True))
    np.testing.assert_allclose(problem.base.matrix[rows] @ full, [kept[name] for name in found.kept], rtol=1e-9)
    scale = np.ones(len(theta))
    for columns in model.parameters.bodies.values():
        scale[columns] = [0.01] * 6 + [0.1] * 3 + [1.0]
    free = np.eye(len(theta)) - np.linalg.pinv(problem.base.matrix[rows]) @ problem.base.matrix[rows]
    least = np.linalg.norm((full - drawings) / scale)
    for _ in range(20):
        other = full + free @ (0.01 * rng.normal(size=len(theta)) * scale)
        assert np.linalg.norm((other - drawings) / scale) >= least * (1.0 - 1e-9)

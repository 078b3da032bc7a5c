"""The fold against a direct QR of the whole matrix, in any split and order, and all that factors can do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import arm, fourier, motion
from refusals import refused

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.model import Parameter, Parameters, Scara
from dynid.recording import Decimation, Samples
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.regression import BaseParameters, Factor, Regression, TorqueEquations, base_parameters, fold
from dynid.regression.derived import Mixed, Weighted
from dynid.regression.equations import Layout


class Given:
    """A model of one joint whose regressor is a stored matrix: q holds the row numbers."""

    dof = 1

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.parameters = Parameters(tuple(Parameter(f"p{k}", "1", 0, "joint1") for k in range(matrix.shape[1])))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return self.matrix[q[:, 0].astype(int)][:, None, :]


def everything(model: Given) -> BaseParameters:
    count = len(model.parameters)
    return BaseParameters(model.parameters, np.arange(count), np.eye(count))


def badly_conditioned(rng: np.random.Generator, rows: int, columns: int, condition: float) -> Array:
    left, _ = np.linalg.qr(rng.normal(size=(rows, columns)))
    right, _ = np.linalg.qr(rng.normal(size=(columns, columns)))
    return left * np.geomspace(1.0, 1.0 / condition, columns) @ right.T


def triangle(matrix: Array) -> Array:
    r = np.linalg.qr(matrix, mode="r")
    return r * np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]


def rows_of(matrix: Array, tau: Array, rows: Array) -> Samples:
    q = rows[:, None].astype(float)
    return Samples.from_arrays(q, np.zeros_like(q), np.zeros_like(q), tau[rows, None])


def assert_factor(factor: Factor, matrix: Array, tolerance: float = 1e-12) -> None:
    """R'R is matrix' matrix. A joint's own columns may depend on each other, and then R itself is not unique."""
    gram = matrix.T @ matrix
    assert np.allclose(factor.r, np.triu(factor.r), atol=0) and np.all(np.diag(factor.r) >= 0)
    assert np.abs(factor.r.T @ factor.r - gram).max() <= tolerance * np.abs(gram).max()


def assert_same(first: Regression, second: Regression, tolerance: float = 1e-12) -> None:
    for a, b in zip(first.factors, second.factors, strict=True):
        np.testing.assert_array_equal(a.columns, b.columns)
        assert a.rows == b.rows
        assert_factor(a, b.r, tolerance)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cuts=st.lists(st.integers(1, 2999), max_size=7), columns=st.integers(2, 12))
def test_factor_is_that_of_a_direct_qr_in_any_split_and_order(seed: int, cuts: list[int], columns: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = badly_conditioned(rng, 3000, columns, 1e6)
    tau = matrix @ rng.normal(size=columns) + 1e-3 * rng.normal(size=3000)
    model = Given(matrix)
    base = everything(model)
    order = rng.permutation(3000)
    parts = [rows_of(matrix, tau, part) for part in np.split(order, sorted(set(cuts)))]
    shuffled = TorqueEquations.from_model(model, [parts[k] for k in rng.permutation(len(parts))], base)
    whole = fold(shuffled, blocks=int(rng.integers(1, 5)))
    direct = triangle(np.column_stack([matrix, tau]))
    assert np.linalg.norm(whole.factors[0].r - direct) <= 1e-10 * np.linalg.norm(direct)
    assert whole.rows == (3000,)


def test_coefficients_survive_condition_1e6_through_the_fold() -> None:
    rng = np.random.default_rng(3)
    matrix = badly_conditioned(rng, 5000, 10, 1e6)
    beta = rng.normal(size=10)
    model = Given(matrix)
    rows = rows_of(matrix, matrix @ beta, np.arange(5000))
    stacked = fold(TorqueEquations.from_model(model, rows, everything(model))).stack()
    np.testing.assert_allclose(np.linalg.solve(stacked.r, stacked.rho), beta, rtol=1e-8)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_sum_is_associative_and_commutes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, tau = rng.normal(size=(600, 5)), rng.normal(size=600)
    model = Given(matrix)
    base = everything(model)
    a, b, c = (fold(TorqueEquations.from_model(model, rows_of(matrix, tau, rows), base), blocks=2)
               for rows in np.split(np.arange(600), [150, 200]))
    assert_same((a + b) + c, a + (b + c))
    assert_same(a + b, b + a)
    assert_same(a + b + c, fold(TorqueEquations.from_model(model, rows_of(matrix, tau, np.arange(600)), base)))


def test_regressions_of_different_models_do_not_add() -> None:
    model, theta = arm()
    samples = motion(model, theta, seconds=2.0)
    other = fold(TorqueEquations.from_model(model, samples, base_parameters(model, ["M", "MX MY MZ"])))
    with refused(ModelError, "different-models"):
        fold(TorqueEquations.from_model(model, samples)) + other


def test_blocks_add_up_and_leaving_one_out_is_the_rest() -> None:
    model, theta = arm()
    rng = np.random.default_rng(0)
    samples = motion(model, theta, rng.normal(size=(2000, 3)), seconds=10.0)
    regression = fold(TorqueEquations.from_model(model, samples), blocks=5)
    assert len(regression.blocks) == 5
    total = regression.only(0)
    for k in range(1, 5):
        total = total + regression.only(k)
    assert_same(total, regression)
    left_out = Samples.from_arrays(*(np.delete(x, np.s_[400:800], axis=0)
                                     for x in (samples.q, samples.dq, samples.ddq, samples.tau)))
    assert_same(regression.without(1), fold(TorqueEquations.from_model(model, left_out)))
    with refused(ModelError, "no-block-left"):
        regression.only(0).without(0)


def test_joint_factor_sees_its_own_columns_only_and_they_reproduce_the_dense_problem() -> None:
    model, theta = arm()
    rng = np.random.default_rng(1)
    samples = motion(model, theta, rng.normal(size=(1000, 3)), seconds=5.0)
    base = base_parameters(model)
    regression = fold(TorqueEquations.from_model(model, samples, base))
    dense = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.independent]
    for j, factor in enumerate(regression.factors):
        unseen = np.setdiff1d(np.arange(len(base)), factor.columns)
        assert not dense[:, j, unseen].any()
        assert_factor(factor, np.column_stack([dense[:, j, factor.columns], samples.tau[:, j]]))
    assert len(regression.factors[2].columns) < len(regression.factors[0].columns)
    weights = np.array([1.0, 3.0, 0.2])
    tall = (dense * weights[:, None]).reshape(-1, len(base))
    right = (samples.tau * weights).ravel()
    stacked = regression.stack(weights)
    expected, rest, *_ = np.linalg.lstsq(tall, right)
    np.testing.assert_allclose(np.linalg.solve(stacked.r, stacked.rho), expected, rtol=1e-9)
    assert stacked.rest == pytest.approx(rest[0], rel=1e-10)
    assert stacked.misfit(expected * 1.1) == pytest.approx(np.sum((right - tall @ expected * 1.1) ** 2), rel=1e-10)
    error = 100 * np.linalg.norm(samples.tau - dense @ expected) / np.linalg.norm(samples.tau)
    assert regression.relative_error(expected) == pytest.approx(error, rel=1e-10)


def test_rows_that_are_not_kept_do_not_count() -> None:
    model, theta = arm()
    rng = np.random.default_rng(2)
    samples = motion(model, theta, rng.normal(size=(800, 3)), seconds=4.0)
    keep = rng.random((800, 3)) < 0.6
    base = base_parameters(model)
    some = Samples(samples.t, samples.q, samples.dq, samples.ddq, samples.tau, keep, samples.segments, samples.rate)
    regression = fold(TorqueEquations.from_model(model, some, base))
    dense = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.independent]
    for j, factor in enumerate(regression.factors):
        assert_factor(factor, np.column_stack([dense[keep[:, j], j][:, factor.columns], samples.tau[keep[:, j], j]]))
        assert factor.rows == keep[:, j].sum()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter_to_the_last_bit(threads: int) -> None:
    model, theta = arm()
    samples = motion(model, theta, seconds=200.0)
    equations = TorqueEquations.from_model(model, samples)
    one, more = fold(equations, threads=1), fold(equations, threads=threads)
    for a, b in zip(one.factors, more.factors, strict=True):
        np.testing.assert_array_equal(a.r, b.r)


@pytest.mark.parametrize("stages", [1, 2])
def test_decimated_fold_is_the_fold_of_decimated_columns(stages: int) -> None:
    model, theta = arm()
    rng = np.random.default_rng(4)
    plain = motion(model, theta, rng.normal(size=(4000, 3)), seconds=20.0)
    decimation = Decimation(4, stages=stages)
    segments = np.array([[0, 1500], [1503, 4000]])
    keep = rng.random((4000, 3)) < 0.8
    samples = Samples(plain.t, plain.q, plain.dq, plain.ddq, plain.tau, keep, segments, plain.rate, decimation)
    base = base_parameters(model)
    regression = fold(TorqueEquations.from_model(model, samples, base), blocks=7)
    dense = model.regressor(plain.q, plain.dq, plain.ddq)[:, :, base.independent]
    columns, tau = decimate_columns(dense, decimation, segments), decimate_columns(plain.tau, decimation, segments)
    kept = keep[decimated_rows(segments, decimation)]
    for j, factor in enumerate(regression.factors):
        assert_factor(factor, np.column_stack([columns[kept[:, j], j][:, factor.columns], tau[kept[:, j], j]]))


def test_a_stream_is_read_once_and_in_order() -> None:
    model, theta = arm()
    whole = motion(model, theta, seconds=20.0)
    asked: list[int] = []

    def stream():
        for k in range(4):
            asked.append(k)
            rows = slice(1000 * k, 1000 * (k + 1))
            yield Samples.from_arrays(whole.q[rows], whole.dq[rows], whole.ddq[rows], whole.tau[rows], source=f"log{k}")

    regression = fold(TorqueEquations.from_model(model, stream()))
    assert asked == [0, 1, 2, 3]
    assert regression.sources == ("log0", "log1", "log2", "log3")
    assert_same(regression, fold(TorqueEquations.from_model(model, whole)), 1e-11)


def test_progress_counts_every_row() -> None:
    model, theta = arm()
    done: list[int] = []
    fold(TorqueEquations.from_model(model, motion(model, theta, seconds=10.0)), progress=done.append)
    assert sum(done) == 2000


def test_a_model_of_ones_own_folds() -> None:
    model = Scara()
    q, dq, ddq = fourier(2, seconds=5.0)
    theta = np.array([3.5, 0.05, 0.5, 0.06, 0.12, 0.005, 0.013, 0.137])
    samples = Samples.from_arrays(q, dq, ddq, model.inverse_dynamics(theta, q, dq, ddq))
    regression = fold(TorqueEquations.from_model(model, samples))
    stacked = regression.stack()
    np.testing.assert_allclose(np.linalg.solve(stacked.r, stacked.rho), theta, rtol=1e-9)


def test_mixed_equations_are_sums_of_the_joints_own() -> None:
    model, theta = arm()
    rng = np.random.default_rng(5)
    samples = motion(model, theta, rng.normal(size=(800, 3)), seconds=4.0)
    keep = rng.random((800, 3)) < 0.9
    samples = Samples(samples.t, samples.q, samples.dq, samples.ddq, samples.tau, keep, samples.segments, samples.rate)
    base = base_parameters(model)
    mix = np.array([[1.0, 0.5, -0.2], [0.0, 2.0, 0.3], [0.0, 0.0, 0.7]])
    regression = fold(Mixed(TorqueEquations.from_model(model, samples, base), mix))
    common = keep.all(axis=1)
    dense = np.einsum("ij,sjc->sic", mix, model.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.independent])
    tau = samples.tau @ mix.T
    assert regression.rows == (common.sum(),) * 3
    for j, factor in enumerate(regression.factors):
        assert_factor(factor, np.column_stack([dense[common, j][:, factor.columns], tau[common, j]]))
        assert not dense[:, j, np.setdiff1d(np.arange(len(base)), factor.columns)].any()


def test_reweighted_rows_are_multiplied_by_what_their_residual_says() -> None:
    model, theta = arm()
    rng = np.random.default_rng(6)
    samples = motion(model, theta, rng.normal(size=(800, 3)), seconds=4.0)
    base = base_parameters(model)
    beta = base.reduce(theta)
    columns = [factor.columns for factor in fold(TorqueEquations.from_model(model, samples, base)).factors]

    def weight(j: int, rows: Array) -> Array:
        return np.exp(-np.abs(rows[-1] - beta[columns[j]] @ rows[:-1]))

    regression = fold(Weighted(TorqueEquations.from_model(model, samples, base), weight))
    dense = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.independent]
    weights = np.exp(-np.abs(samples.tau - dense @ beta))
    for j, factor in enumerate(regression.factors):
        assert_factor(factor, weights[:, j, None] * np.column_stack([dense[:, j, factor.columns], samples.tau[:, j]]))


def test_equations_with_the_columns_of_another_gravity_are_their_own_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    model, theta = arm()
    other = replace(model, robot=model.robot.with_gravity((4.0, 5.0, -6.0)))
    samples = (motion(model, theta, seconds=1.0),)
    base = base_parameters(other)
    layout, own = Layout.from_model(model, base), TorqueEquations(other, samples, base)
    [piece] = own.pieces()
    expected = own.rows(piece).entries
    monkeypatch.setattr(Layout, "from_model", None)  # the columns are not searched again
    found = TorqueEquations.from_layout(layout, other, samples)
    assert found.layout.model is other and np.array_equal(found.rows(piece).entries, expected)


def test_selecting_parameters_is_folding_fewer_columns() -> None:
    rng = np.random.default_rng(7)
    matrix, tau = rng.normal(size=(500, 6)), rng.normal(size=500)
    model = Given(matrix)
    kept = np.array([0, 2, 5])
    regression = fold(TorqueEquations.from_model(model, rows_of(matrix, tau, np.arange(500)), everything(model)),
                      blocks=3)
    reduced = regression.select(kept)
    direct = triangle(np.column_stack([matrix[:, kept], tau]))
    np.testing.assert_allclose(reduced.factors[0].r, direct, atol=1e-11)
    np.testing.assert_allclose(reduced.only(1).factors[0].r, regression.only(1).select(kept).factors[0].r)
    assert reduced.base.names == ("p0", "p2", "p5")
    stacked = regression.stack().select(kept)
    np.testing.assert_allclose(np.linalg.solve(stacked.r, stacked.rho), np.linalg.lstsq(matrix[:, kept], tau)[0])
    assert stacked.rest == pytest.approx(direct[-1, -1] ** 2, rel=1e-11)


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    model, theta = arm()
    regression = fold(TorqueEquations.from_model(model, motion(model, theta, seconds=3.0)), blocks=4)
    regression.save(tmp_path / "regression.npz")
    loaded = Regression.load(tmp_path / "regression.npz", model)
    assert loaded.base.expressions == regression.base.expressions
    assert loaded.joints == regression.joints and loaded.sources == regression.sources
    assert_same(loaded, regression)
    for k in range(4):
        np.testing.assert_array_equal(loaded.only(k).factors[1].r, regression.only(k).factors[1].r)
    with refused(ModelError, "other-model"):
        Regression.load(tmp_path / "regression.npz", Scara())
    (tmp_path / "broken.npz").write_bytes(b"not a file of arrays")
    with refused(RecordingError, "no-saved-regression"):
        Regression.load(tmp_path / "broken.npz", model)


def test_samples_of_another_robot_and_no_samples_are_refused() -> None:
    model, _ = arm()
    q, dq, ddq = fourier(2, seconds=1.0)
    with refused(ModelError, "joint-count", "2", "3"):
        fold(TorqueEquations.from_model(model, Samples.from_arrays(q, dq, ddq, q)))
    with refused(NotPossibleError, "no-samples"):
        fold(TorqueEquations.from_model(model, []))


def test_fewer_rows_than_columns_fold_too() -> None:
    rng = np.random.default_rng(8)
    matrix, tau = rng.normal(size=(3, 6)), rng.normal(size=3)
    model = Given(matrix)
    regression = fold(TorqueEquations.from_model(model, rows_of(matrix, tau, np.arange(3)), everything(model)),
                      blocks=1)
    factor: Factor = regression.factors[0]
    assert factor.r.shape == (7, 7) and np.abs(factor.r[3:]).max() < 1e-14
    whole = np.column_stack([matrix, tau])
    np.testing.assert_allclose(factor.r.T @ factor.r, whole.T @ whole, atol=1e-12)


def test_prior_rows_weigh_as_the_noise_of_all_joints() -> None:
    """Without weights, prior rows in units of their standard deviation are multiplied by that of the residuals."""
    model, theta = arm()
    samples = motion(model, theta, 0.3 * np.random.default_rng(4).normal(size=(600, 3)), seconds=3.0)
    base = base_parameters(model)
    found = fold(TorqueEquations.from_model(model, samples, base)).prior_weight(None)
    dense = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.independent].reshape(-1, len(base))
    squares = float(np.linalg.lstsq(dense, samples.tau.reshape(-1), rcond=None)[1][0])
    assert found == pytest.approx(np.sqrt(squares / (3 * 600 - len(base))), rel=1e-9)

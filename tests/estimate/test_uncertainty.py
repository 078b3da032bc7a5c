"""Uncertainty on demand: values first, the covariance at first use, by name where one is asked for."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from threading import Thread

import numpy as np
import pytest
from motions import fourier, low_passed
from passes import counted_passes
from refusals import refused

from dynid.arrays import Array, Ints
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.estimate.block_cross_validation import cross_validate_blocks
from dynid.estimate.covariance import naive_covariance
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.motion_errors import motion_shift
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model
from dynid.recording import Samples
from dynid.recording.sample_preparation import prepare
from dynid.regression import TorqueEquations
from dynid.regression.derived import CachedEquations
from dynid.robot import Robot
from reproductions._machines import Machine


@cache
def problem() -> Problem:
    """Three joints with noise that is correlated in time."""
    model = Model(Robot.builtin("arm3r"))
    q, dq, ddq = fourier(3)
    noise = low_passed(np.random.default_rng(5), q.shape, 0.02, 5.0, 200.0)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq) + noise
    return Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0))


@pytest.mark.parametrize("method", ["ols", "wls", "tls", "ridge"])
def test_values_alone_look_at_no_residual(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("the data were gone through for a covariance that nobody asked for")

    whole = problem()
    monkeypatch.setattr("dynid.estimate.covariance.correlation", refuse)
    found = identify(whole, method=method)
    assert np.all(np.isfinite(found.values)) and "relative error" in repr(found)
    with pytest.raises(AssertionError, match="nobody asked for"):
        assert found.std is not None


def test_it_is_computed_once_and_shared_by_copies() -> None:
    count = []

    def compute(cov_type: object) -> Uncertainty:
        count.append(cov_type)
        return Uncertainty(np.eye(15), "independent")

    found = replace(identify(problem(), method="wls"), uncertainty_of=OnDemand(compute))
    copy = replace(found, method="other").with_provenance(logs=1)
    assert copy.covariance is found.covariance and copy.std is not None and count == [None]
    changed = found.with_covariance(4.0 * found.covariance)
    assert np.allclose(changed.std, 2.0 * found.std) and changed.cov_type == "independent" and count == [None]


def test_threads_get_the_same_result() -> None:
    found, seen = identify(problem(), method="wls"), list[object]()
    threads = [Thread(target=lambda: seen.append(found.covariance)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(seen) == 4 and all(one is found.covariance for one in seen)


def test_a_pickled_estimate_holds_the_result_and_no_data() -> None:
    found = identify(problem(), method="wls").uncertainty_of
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again().covariance, found().covariance) and again().cov_type == "correlated"
    assert len(pickle.dumps(found)) < 40_000  # 15 x 15 numbers and the autocovariances of 3 joints


def test_cov_type_by_name() -> None:
    whole = problem()
    by = {name: identify(whole, method="wls", cov_type=name) for name in ("correlated", "blocks", "independent")}
    assert all(found.cov_type == name for name, found in by.items())
    assert 1.0 < by["blocks"].uncertainty.degrees_of_freedom < len(whole.regression.blocks) - 1
    # Without the data the best way is by blocks; with one block, of independent rows.
    saved = identify(replace(whole, data=()), method="wls")
    assert np.allclose(by["blocks"].covariance, saved.covariance, rtol=1e-12) and saved.cov_type == "blocks"
    weights = joint_weights(whole.regression)
    textbook = naive_covariance(whole.regression, solve(whole.regression, whole.regression.stack(weights)), weights)
    assert np.allclose(by["independent"].covariance, textbook, rtol=1e-12)
    assert np.median(by["correlated"].std / by["independent"].std) > 2.0
    constrained = identify(whole, method="pc-wls", cov_type="independent")
    assert np.array_equal(constrained.values, identify(whole, method="pc-wls").values)


def test_a_way_that_is_not_possible_is_refused_in_a_sentence() -> None:
    whole = problem()
    with refused(NotPossibleError, "cov-type-needs-data", "correlated"):
        identify(replace(whole, data=()), method="wls", cov_type="correlated")
    with refused(NotPossibleError, "too-few-blocks", "blocks", "5"):
        identify(replace(whole, regression=whole.regression.joined(2), data=()), method="wls", cov_type="blocks")
    with refused(NotPossibleError, "cov-type-not-possible"):
        identify(whole, method="irls", cov_type="independent")
    with refused(NotPossibleError, "cov-type-not-possible"):
        identify(whole, method="pc-ridge", cov_type="independent")
    with refused(ModelError, "unknown-cov-type", "HC3", "cov_type"):
        identify(whole, method="wls", cov_type="HC3")  # type: ignore[arg-type]


def test_a_shift_by_the_motion_counts_only_where_it_is_known() -> None:
    whole = problem()
    solution = solve(whole.regression, whole.regression.stack())
    assert motion_shift(whole, solution, np.ones(3)) is None  # there is no log behind the samples
    assert identify(whole, method="ols").notes == ()


@pytest.mark.parametrize("method", ["pc-wls", "pc-ridge"])
def test_fits_that_only_predict_go_over_no_data(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = problem()
    found = identify(whole, method=method)
    again = cross_validate_blocks(whole, method, estimate=None)
    assert found.refit is not None and found.theta is not None
    # On all data the fit is the estimate itself.
    assert np.allclose(found.refit(whole.regression), found.theta, rtol=1e-5, atol=1e-7)

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("cross-validation went over the data")

    monkeypatch.setattr(Model, "fill", refuse)
    quick = cross_validate_blocks(whole, method, estimate=found)
    assert np.allclose(quick.errors, again.errors, rtol=0.02)  # these keep strength and noise of all data
    assert all(fit.values.shape == found.values.shape and fit.refit is None for fit in quick.fits)


def test_a_covariance_goes_over_the_data_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise of the positions added; rows as they are were kept, and unseen motion is a difference of torques."""
    machine = Machine.from_name("arm3r")
    log = machine.record(0, closed=True)
    whole = Problem.from_model(machine.model, prepare(log), base=machine.base, recordings=log)
    samples, entries = sum(map(len, whole.data)), int(np.sum(whole.equations.layout.place >= 0))
    filled, plain = list[float](), Model.fill

    def count(self: Model, q: Array, dq: Array, ddq: Array, place: Ints, out: Array,
              memory: Array | None = None) -> None:
        filled.append(len(q) * np.sum(place >= 0) / entries)
        plain(self, q, dq, ddq, place, out, memory)

    monkeypatch.setattr(Model, "fill", count)
    found = identify(whole, method="wls")
    assert sum(filled) == 0.0 and found.cov_type == "correlated"
    assert "noise-in-motion" in {note.code for note in found.notes}  # the shift by the motion is in it
    assert 0.9 < sum(filled) / samples < 1.2


def test_rows_are_kept_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = problem()
    plain = TorqueEquations.from_model(whole.model, whole.data, whole.base)
    [piece] = plain.pieces()
    kept = CachedEquations.from_equations(plain)
    assert np.array_equal(kept.rows(piece).entries, plain.rows(piece).entries)
    with counted_passes() as passes:
        for part in piece.parts(100):
            assert np.array_equal(kept.rows(part).entries, kept.rows(piece).entries[:, part.rows.start:part.rows.stop])
    assert passes.total == 0
    assert kept.layout is plain.layout and kept.pieces() == plain.pieces()
    monkeypatch.setattr("dynid.regression.derived.KEPT_BYTES", 1000)
    assert CachedEquations.from_equations(plain) is plain

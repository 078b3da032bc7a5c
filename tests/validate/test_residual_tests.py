"""Residual tests on noise of known colour, and on terms left out of the model on purpose."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.signal import butter, lfilter, sosfiltfilt

from dynid.estimate import identify
from dynid.model import (
    AsymmetricCoulomb,
    Coulomb,
    Model,
    Offset,
    RigidBodies,
    RotorInertia,
    Spring,
    Viscous,
    make_terms,
)
from dynid.recording import Decimation
from dynid.regression.autocorrelation import lag_products
from dynid.regression.residual_series import Residuals
from dynid.robot import Robot
from dynid.validate import reconstruct, residual_tests
from dynid.validate.candidates import REPORTED_CANDIDATES, _coefficient_variances, fit_candidates
from dynid.validate.residual_statistics import autocorrelation, filter_memory, normality, whiteness
from dynid.validate.sampled_rows import SampledRows


def series(x: np.ndarray, keep: np.ndarray | None = None) -> tuple[Residuals, ...]:
    """Residuals of one joint that are x."""
    x = x[:, None]
    return (Residuals(np.arange(len(x)) / 100.0, x, np.zeros_like(x),
                      np.ones(x.shape, dtype=bool) if keep is None else keep[:, None], 100.0, "made up"),)


def direct_autocorrelation(x: np.ndarray, keep: np.ndarray, reach: int) -> np.ndarray:
    """By its definition, pair by pair."""
    centred = np.where(keep, x - x[keep].mean(), 0.0)
    found = []
    for k in range(reach + 1):
        both = keep[:len(x) - k] & keep[k:]
        found.append(np.sum(centred[:len(x) - k] * centred[k:]) / both.sum())
    return np.array(found) / found[0]


def test_autocorrelation_and_statistic_by_definition():
    rng = np.random.default_rng(0)
    x = lfilter([1.0], [1.0, -0.6], rng.normal(size=3000))
    keep = rng.random(3000) > 0.1
    rho = direct_autocorrelation(x, keep, 20)
    np.testing.assert_allclose(autocorrelation(series(x, keep), 0, 20), rho, atol=1e-12)
    found = whiteness(series(x, keep), 0, step=1)
    n = keep.sum()
    assert found.statistic == pytest.approx(n * (n + 2) * np.sum(rho[1:] ** 2 / (n - np.arange(1, 21))), rel=1e-9)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, 20), abs=1e-300)
    assert found.bound == pytest.approx(1.96 / np.sqrt(n))


def test_white_noise_is_called_white():
    p = [whiteness(series(np.random.default_rng(seed).normal(size=2000)), 0, step=1).p_value for seed in range(60)]
    # p is uniform for white noise: Kolmogorov's test, and no more than a few below 5 %.
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    assert np.mean(np.array(p) < 0.05) < 0.15


@pytest.mark.parametrize("phi", [0.5, 0.8, 0.95])
def test_first_order_noise_is_predictable_by_phi_squared(phi):
    x = lfilter([1.0], [1.0, -phi], np.random.default_rng(1).normal(size=40000))
    found = whiteness(series(x), 0, step=1)
    assert found.predictable == pytest.approx(phi ** 2, abs=0.03)
    assert found.p_value < 1e-12 and found.autocorrelated == (phi ** 2 > 0.5)
    # n_eff / n = (1 - phi) / (1 + phi) for the mean of a first-order process.
    assert found.effective / 40000 == pytest.approx((1 - phi) / (1 + phi), rel=0.25)


def test_a_filters_own_memory_is_no_colour(simulate):
    log = simulate("arm3r", rows=6000, noise=0.0)
    noise = np.random.default_rng(2).normal(size=log.samples.tau.shape)
    sos = butter(4, 10.0, fs=log.samples.rate, output="sos")
    samples = replace(log.samples, tau=log.samples.tau + 0.05 * sosfiltfilt(sos, noise, axis=0))
    told = replace(samples, settings={"cutoff": 10.0, "torque_cutoff": "same"})
    _, estimate = log.fitted()
    assert filter_memory(told) == 13 and filter_memory(samples) == 1
    for joint in residual_tests(reconstruct(estimate, told)).joints:
        assert joint.whiteness.predictable < 0.15 and not joint.whiteness.autocorrelated
    for joint in residual_tests(reconstruct(estimate, samples)).joints:  # nobody said there was a filter
        assert joint.whiteness.autocorrelated
    assert filter_memory(replace(samples, decimation=Decimation(10))) == 1


def test_normality_has_scipys_moments():
    x = np.random.default_rng(4).standard_t(3, size=5000)
    found = normality(series(x), 0)
    assert found.skewness == pytest.approx(stats.skew(x)) and found.kurtosis == pytest.approx(stats.kurtosis(x))
    assert found.shape == "outliers"
    assert normality(series(np.random.default_rng(5).normal(size=5000)), 0).shape == "normal"
    assert normality(series(np.sign(np.sin(np.arange(5000) / 50.0)) + 0.01), 0).shape == "two-humps"


BIG = {"Fv1": 0.3, "Fv2": 0.8, "Fv3": 0.3, "Fc1": 0.6, "Fc2": 1.5, "Fc3": 0.6}


@pytest.mark.parametrize(("friction", "missing", "candidate"), [
    (("viscous", "offset"), "Fc", "velocity-sign"), (("coulomb", "offset"), "Fv", "velocity")])
def test_a_missing_friction_term_is_named_and_sized(simulate, friction, missing, candidate):
    log = simulate("arm3r", changes=BIG)
    robot = Robot.builtin("arm3r")
    _, estimate = log.fitted(model=Model(robot, make_terms(robot, friction=friction)))
    for joint in residual_tests(reconstruct(estimate, log.samples)).joints:
        assert joint.explained_by.candidate == candidate
        assert joint.notes[0].code == f"residual-follows-{candidate}"
        assert joint.explained_by.coefficient == pytest.approx(BIG[f"{missing}{joint.joint[-1]}"], rel=0.1)


@pytest.mark.parametrize(("share", "is_named"), [(0.3, True), (3.0, False)])
def test_a_candidate_larger_than_the_torque_is_none(simulate, share, is_named):
    """The model has a smooth Coulomb friction, and the residual is a multiple of what this lacks of the sign."""
    log = simulate("arm3r", changes=BIG)
    rows = residual_tests(reconstruct(log.fitted()[1], log.samples)).rows
    sign, smooth = rows.signs[:, 2], np.tanh(rows.dq[:, 2] / 0.02)
    basis = np.column_stack([smooth, rows.dq[:, 2], np.ones(len(smooth))])
    lacks = sign - basis @ np.linalg.lstsq(basis, sign, rcond=None)[0]
    measured = rows.measured.copy()
    residual = np.zeros_like(measured)
    residual[:, 2] = share * np.std(measured[:, 2]) * lacks
    changed = replace(rows, columns=(*rows.columns[:2], basis), residual=residual, predicted=measured - residual)
    found = {fit.candidate for fit in fit_candidates(changed, 2, log.model.robot.joint_names, True)}
    assert ("velocity-sign" in found) is is_named


def test_share_and_coefficient_are_those_of_the_added_column(simulate):
    log = simulate("arm3r", rows=1500, changes=BIG)
    robot = Robot.builtin("arm3r")
    _, estimate = log.fitted(model=Model(robot, make_terms(robot, friction=("viscous", "offset"))))
    joint = residual_tests(reconstruct(estimate, log.samples)).joints[2]
    s, base = log.samples, estimate.base
    own = estimate.model.regressor(s.q, s.dq, s.ddq)[:, 2][:, base.independent]
    residual = s.tau[:, 2] - own @ estimate.values
    without = np.linalg.lstsq(own, residual, rcond=None)
    column = np.sign(s.dq[:, 2])
    full = np.column_stack([own, column])
    solution = np.linalg.lstsq(full, residual, rcond=None)[0]
    before = np.sum((residual - own @ without[0]) ** 2)
    after = np.sum((residual - full @ solution) ** 2)
    assert joint.explained_by.share == pytest.approx((before - after) / np.sum(residual ** 2), rel=1e-6)
    assert joint.explained_by.coefficient == pytest.approx(solution[-1], rel=1e-6)
    assert joint.explained_by.coefficient == pytest.approx(0.6, rel=0.05)


def test_missing_offset_rotor_spring_and_coupling(simulate):
    robot = Robot.builtin("arm3r")
    usual = make_terms(robot, friction=("viscous", "coulomb", "offset"))

    def first(log, model, joint):
        return residual_tests(reconstruct(log.fitted(model=model)[1], log.samples)).joints[joint].explained_by

    log = simulate("arm3r", changes={"Fo1": 0.8})
    assert first(log, Model(robot, make_terms(robot, friction=("viscous", "coulomb"))), 0).candidate == "offset"

    log = simulate("arm3r", noise=0.005)
    more = log.with_torque(log.samples.tau + log.samples.ddq * [0.0, 0.0, 0.3])
    found = first(more, Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset())), 2)
    assert found.candidate == "acceleration" and found.coefficient == pytest.approx(0.3, rel=0.1)
    with_rotor = Model(robot, (*usual, RotorInertia()))
    assert first(more, with_rotor, 2) is None

    spring = log.with_torque(log.samples.tau + 6.0 * log.samples.q * [0.0, 1.0, 0.0])
    found = first(spring, Model(robot, usual), 1)
    assert found.candidate == "position" and found.coefficient is None  # several columns
    assert first(spring, Model(robot, (*usual, Spring(2))), 1) is None

    coupled = log.with_torque(log.samples.tau + 0.8 * np.sign(log.samples.dq[:, [1, 0, 0]]) * [1.0, 0.0, 0.0])
    found = first(coupled, Model(robot, usual), 0)
    assert (found.candidate, found.neighbour) == ("neighbour-motion", robot.joint_names[1])


def test_delay_is_measured_in_milliseconds(simulate):
    log = simulate("arm3r", noise=0.002, changes={f"Fc{j}": 0.0 for j in (1, 2, 3)})
    late = log.with_torque(np.roll(log.samples.tau, 4, axis=0))  # 20 ms at 200 Hz
    inside = replace(late.samples, segments=np.array([[10, len(late.samples)]]))
    _, estimate = replace(late, samples=inside).fitted("ols")
    found = residual_tests(reconstruct(estimate, inside)).joints[2].follows
    delay = next(f for f in found if f.candidate == "delay")
    # The fit takes up a part of the delay, so the column left over measures it to a few tens of percent.
    assert delay.coefficient == pytest.approx(-0.02, rel=0.5)


def test_load_dependent_friction_is_told_from_coulomb(simulate):
    log = simulate("arm3r", noise=0.005)
    tau = log.samples.tau + 0.3 * np.abs(log.samples.tau) * np.sign(log.samples.dq) * [0.0, 1.0, 0.0]
    _, estimate = log.with_torque(tau).fitted()
    found = residual_tests(reconstruct(estimate, replace(log.samples, tau=tau))).joints[1].explained_by
    assert found.candidate == "load" and found.coefficient == pytest.approx(0.3, rel=0.15)


def test_a_complete_model_has_nothing_to_say(simulate):
    for noise in (0.02, 0.0):
        log = simulate("kuka-lwr4", noise=noise)
        tests = residual_tests(reconstruct(log.fitted()[1], log.samples))
        assert tests.notes == ()
        assert all(joint.explained_by is None for joint in tests.joints)
    robot = Robot.builtin("arm3r")
    log = simulate("arm3r")
    _, estimate = log.fitted(model=Model(robot, (RigidBodies(), Viscous(), AsymmetricCoulomb())))
    assert residual_tests(reconstruct(estimate, log.samples)).notes == ()  # Fcp and Fcn span sign and offset


def test_decimated_candidates_go_through_the_same_filter(simulate):
    log = simulate("arm3r", changes=BIG)
    samples = replace(log.samples, decimation=Decimation(10))
    robot = Robot.builtin("arm3r")
    _, estimate = replace(log, samples=samples).fitted(model=Model(robot, make_terms(robot, ("viscous", "offset"))))
    for joint in residual_tests(reconstruct(estimate, samples)).joints:
        assert joint.explained_by.candidate == "velocity-sign" and joint.explained_by.share > 0.5


def test_json_is_finite_also_with_hardly_any_rows(simulate):
    log = simulate("arm3r", rows=400)
    keep = log.samples.keep.copy()
    keep[:, 1] = False
    keep[20:, 2] = False
    _, estimate = log.fitted()
    tests = residual_tests(reconstruct(estimate, replace(log.samples, keep=keep)))
    assert tests.joints[1].whiteness is None and tests.joints[2].normality is None
    json.dumps(tests.to_dict(), allow_nan=False)


@pytest.mark.parametrize("memory", [0.0, 0.9, 0.98])
def test_the_standard_error_of_a_candidate_is_the_spread_of_its_coefficient(memory: float) -> None:
    """Of 200 draws of noise, on slow columns of a model and a candidate that is fast, or as slow as they are."""
    rng, rows = np.random.default_rng(21), 1500
    t = np.arange(rows) / rows
    slow = np.stack([wave(2.0 * np.pi * k * t) for k in (1, 2, 3, 5) for wave in (np.sin, np.cos)], axis=1)
    basis = np.linalg.qr(slow)[0]
    for frequency in (4.0, 40.0):
        candidate = np.sin(2.0 * np.pi * frequency * t + 0.4)
        direction = candidate - basis @ (basis.T @ candidate)
        direction = direction[:, None] / np.linalg.norm(direction)
        coefficients, remainders = [], []
        for _ in range(200):
            noise = lfilter([1.0], [1.0, -memory], rng.normal(size=rows + 500))[-rows:]
            rest = noise - basis @ (basis.T @ noise)
            along = direction.T @ rest
            coefficients.append(float(along[0]))
            remainders.append(rest - direction @ along)
        variances = _coefficient_variances([direction[:, 0]] * len(remainders), remainders, lag_products(basis.T))
        assert np.sqrt(np.mean(variances)) == pytest.approx(np.std(coefficients), rel=0.2)


def test_tests_of_another_estimate_of_the_same_rows_are_the_same_as_new_ones(simulate):
    """A constrained and a free fit of a log with a missing term: what does not depend on the estimate is shared."""
    log = simulate("arm3r", noise=0.02)
    few = Model(log.model.robot, [term for term in log.model.terms if not isinstance(term, Coulomb)])
    problem, free = log.fitted(model=few)
    constrained = identify(problem, method="pc-wls")
    one, other = (reconstruct(estimate, log.samples) for estimate in (constrained, free))
    first, anew = residual_tests(one), residual_tests(other)
    shared = residual_tests(other, earlier=(one, first))
    assert any(joint.explained_by is not None for joint in anew.joints)
    for now, then, before in zip(shared.joints, anew.joints, first.joints, strict=True):
        assert [fit.candidate for fit in now.follows] == [fit.candidate for fit in then.follows]
        for k, (a, b) in enumerate(zip(now.follows, then.follows, strict=True)):
            assert (a.neighbour, a.rivals) == (b.neighbour, b.rivals)
            errors = ("strength", "std") if k < REPORTED_CANDIDATES or a.candidate == "delay" else ()
            for name in ("share", "torque", "left_out", "blocks", "of_own", *errors):
                assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-6, abs=1e-9), name
        assert (now.explained_by is None) == (then.explained_by is None)
        assert now.follows[0].share != pytest.approx(before.follows[0].share, rel=1e-9)  # the estimates differ
    name = anew.joints[1].joint
    some = residual_tests(other, only=[name], earlier=(one, first)).joints
    assert [joint.whiteness is not None for joint in some] == [joint.joint == name for joint in some]
    # Another model has other columns: nothing is shared, and the numbers are those of the new tests.
    whole = reconstruct(log.fitted()[1], log.samples)
    assert [joint.to_dict() for joint in residual_tests(whole, earlier=(one, first)).joints] == [
        joint.to_dict() for joint in residual_tests(whole).joints]


def test_columns_that_are_rounding_span_nothing() -> None:
    rng, m = np.random.default_rng(6), 200
    zero = np.zeros((m, 1))
    columns, noise = rng.normal(size=(m, 2)), rng.normal(size=(m, 1))

    def rows(columns: np.ndarray) -> SampledRows:
        return SampledRows(*[zero] * 7, np.zeros(m), (columns,), noise, zero, np.ones((m, 1), dtype=bool))

    more = np.column_stack([columns, 1e-15 * rng.normal(size=m), columns.sum(axis=1)])
    plain, rounded = (rows(own).spans[0] for own in (columns, more))
    assert plain is not None and rounded is not None
    assert np.allclose(plain @ plain.T, rounded @ rounded.T, atol=1e-12)

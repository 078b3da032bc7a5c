"""Known parameters: kept exactly, worth what they say, and contradicted where they are wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, motion
from refusals import refused
from robots import random_robot

from dynid.errors import ModelError
from dynid.estimate import Problem, identify, methods
from dynid.model import Model, RigidBodies, RotorInertia, Viscous
from dynid.recording import Samples
from dynid.regression import Regression, TorqueEquations, base_parameters, fold
from dynid.regression.known import Prior
from dynid.validate import reconstruct, verdict

LINEAR = ("ols", "wls", "irls", "tls", "ml")
CONSISTENT = ("pc-ols", "pc-wls", "pc-ridge", "pc-points", "pc-sqp", "pc-virtual", "pc-logchol", "pc-reduce", "pc-box")


def sliding_arm(noise: float = 0.2, seed: int = 0) -> tuple[Model, np.ndarray, Samples]:
    """A tree whose last joint slides, so that the mass it carries shows in the torques by itself."""
    rng = np.random.default_rng(seed)
    while True:
        robot = random_robot(rng, 3)
        if robot.joints[-1].prismatic:
            break
    model = Model(robot, (RigidBodies(), RotorInertia(), Viscous()))
    theta = np.concatenate([np.append(robot.inertias[j], [0.3, 0.5]) for j in range(3)])
    q, dq, ddq = (rng.normal(size=(1500, 3)) for _ in range(3))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    return model, theta, Samples.from_arrays(q, dq, ddq, tau + noise * rng.normal(size=tau.shape), rate=100.0)


@pytest.mark.parametrize("method", LINEAR)
def test_a_known_value_is_kept_and_the_others_are_surer(method: str) -> None:
    model, theta = arm()
    samples = motion(model, theta, 0.3 * np.random.default_rng(1).normal(size=(1000, 3)), seconds=5.0)
    value = float(theta[model.parameters.index("Fv2")])
    free, told = (identify(model, samples, method=method, known=known) for known in (None, {"Fv2": value}))
    assert told.known == {"Fv2": value} and "Fv2" not in told.names
    assert told.full[model.parameters.index("Fv2")] == value
    std = dict(zip(free.names, free.std, strict=True))
    ratio = np.array([now / std[name] for name, now in zip(told.names, told.std, strict=True)])
    assert np.all(ratio < 1.02) and ratio[told.names.index("Fc2")] < 0.9
    assert np.all(np.abs(told.values - told.base.reduce(theta)) < 5.0 * told.std)


def test_least_squares_with_a_known_mass_is_the_dense_one() -> None:
    model, theta, samples = sliding_arm()
    mass = model.parameters.index("M3")
    told = identify(model, samples, method="ols", known={"M3": float(theta[mass])})
    y = model.regressor(samples.q, samples.dq, samples.ddq)
    right = (samples.tau - y[:, :, mass] * theta[mass]).ravel()
    columns = y[:, :, told.base.independent].reshape(len(right), -1)
    np.testing.assert_allclose(told.values, np.linalg.lstsq(columns, right)[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(told.predict(samples.q, samples.dq, samples.ddq), y @ told.full, atol=1e-8)
    power = float(np.sum(samples.tau ** 2))
    error = 100 * np.linalg.norm(right - columns @ told.values) / np.sqrt(power)
    assert told.diagnostics.relative_error == pytest.approx(error, rel=1e-9)
    assert reconstruct(told, samples).relative_error == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("method", ["wls", "irls", "pc-wls"])
def test_a_known_mass_is_kept_and_makes_the_rotor_beside_it_surer(method: str) -> None:
    model, theta, samples = sliding_arm(noise=1.0)
    mass = float(theta[model.parameters.index("M3")])
    free, told = (identify(model, samples, method=method, known=known) for known in (None, {"M3": mass}))
    assert "M3" in free.names and told.full[model.parameters.index("M3")] == mass
    before = dict(zip(free.names, free.std, strict=True))
    ratio = {name: now / before[name] for name, now in zip(told.names, told.std, strict=True) if name in before}
    assert max(ratio.values()) < 1.002 and ratio["Ia3"] < 0.995


@pytest.mark.parametrize("method", CONSISTENT)
def test_consistent_methods_keep_a_known_mass(method: str) -> None:
    model, theta = arm()
    nominal = model.parameters.nominal
    samples = motion(model, theta, 0.05 * np.random.default_rng(2).normal(size=(1000, 3)), seconds=5.0)
    mass = float(theta[model.parameters.index("M2")])
    problem = Problem.from_model(model, samples, known={"M2": mass}, nominal=nominal)
    told = identify(problem, method=method)
    assert told.theta is not None and told.theta[model.parameters.index("M2")] == mass
    np.testing.assert_allclose(told.values, told.base.reduce(told.theta), rtol=1e-12, atol=1e-12)
    if method not in ("pc-box", "pc-points", "pc-virtual"):  # those promise less than bodies that can exist
        assert told.diagnostics["consistent"]


def test_a_value_with_a_deviation_is_one_more_measurement() -> None:
    """Of a parameter that torques show by itself: the mean of both, weighted by their variances."""
    model, theta = arm()
    noise = np.random.default_rng(3).normal(size=(4000, 3))
    samples = motion(model, theta, 0.3 * noise, seconds=20.0)
    place = model.parameters.index("Fv3")
    free = identify(model, samples, method="wls")
    k = free.names.index("Fv3")
    guess = float(theta[place]) + 2.0 * float(free.std[k])
    for share in (0.3, 1.0, 3.0):
        std = share * float(free.std[k])
        told = identify(model, samples, method="wls", known={"Fv3": (guess, std)})
        both = (free.values[k] / free.std[k] ** 2 + guess / std ** 2) / (1 / free.std[k] ** 2 + 1 / std ** 2)
        assert told.values[k] == pytest.approx(both, rel=0.02)
        assert told.std[k] == pytest.approx((1 / free.std[k] ** 2 + 1 / std ** 2) ** -0.5, rel=0.05)
    certain, exact = (identify(model, samples, method="ols", known={"Fv3": known}) for known in ((guess, 1e-9), guess))
    others = [name for name in exact.names if name != "Fv3"]
    one, two = (dict(zip(x.names, x.values, strict=True)) for x in (certain, exact))
    np.testing.assert_allclose([one[n] for n in others], [two[n] for n in others], rtol=1e-6, atol=1e-8)


def test_a_saved_fold_can_be_told_afterwards(tmp_path) -> None:
    model, theta = arm()
    samples = motion(model, theta, 0.1 * np.random.default_rng(4).normal(size=(1000, 3)), seconds=5.0)
    known = {"Fv1": float(theta[model.parameters.index("Fv1")]), "M3": 2.0, "Fc2": (1.0, 0.1)}
    plain = fold(TorqueEquations.from_model(model, samples))
    plain.save(tmp_path / "fold.npz")
    later = Regression.load(tmp_path / "fold.npz", model).given(known)
    before = Problem.from_model(model, samples, known=known)
    assert later.base.expressions == before.base.expressions
    a, b = (identify(one, method="wls") for one in (replace(before, data=(), regression=later),
                                                     replace(before, data=())))
    np.testing.assert_allclose(a.values, b.values, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(a.std, b.std, rtol=1e-6)
    later.save(tmp_path / "told.npz")
    again = Regression.load(tmp_path / "told.npz", model)
    assert again.base.known == later.base.known and again.prior is not None


@pytest.mark.parametrize("method", ["wls", "pc-wls"])
def test_values_given_one_after_another_are_those_given_at_once(method: str, tmp_path) -> None:
    """Whether the first are values with standard deviations, or equations of another strength, and after saving too."""
    model, theta = arm()
    samples = motion(model, theta, 0.1 * np.random.default_rng(4).normal(size=(1000, 3)), seconds=5.0)
    problem = Problem.from_model(model, samples)
    tolerance = 1e-5 if method == "pc-wls" else 1e-8  # a cone solver, or linear algebra

    def known(regression: Regression) -> np.ndarray:
        regression.save(tmp_path / "fold.npz")
        loaded = Regression.load(tmp_path / "fold.npz", model)
        found = [identify(replace(problem, data=(), regression=one), method=method) for one in (regression, loaded)]
        np.testing.assert_allclose(found[0].values, found[1].values, rtol=tolerance, atol=1e-8)
        return np.concatenate([found[0].values, found[0].std])

    plain = problem.regression
    at_once = plain.given({"Fc2": (2.0, 0.01), "Fv3": (0.5, 0.02), "Fv1": 0.7, "M3": 2.0})
    later = plain.given({"Fc2": (2.0, 0.01)}).given({"Fv1": 0.7, "Fv3": (0.5, 0.02), "M3": 2.0})
    # Two equations of standard parameters, such as those of an earlier estimate, with half of their weight in the
    # strength: Fc2 = 2 +- 0.01, in a sum with Fv1 = 0.7, and Fv1 = 9 +- 0.01, which the exact value replaces.
    rows = np.zeros((2, len(model.parameters)))
    rows[0, model.parameters.index("Fc2")], rows[:, model.parameters.index("Fv1")] = 50.0, 50.0
    facts = Prior.from_facts(plain.base, rows, np.array([50.0 * 2.7, 50.0 * 9.0]))
    of_facts = replace(plain, prior=replace(facts, strength=2.0)).given({"Fv1": 0.7, "Fv3": (0.5, 0.02), "M3": 2.0})
    same, count = known(at_once), len(at_once.base)
    np.testing.assert_allclose(known(later), same, rtol=tolerance, atol=1e-9)
    np.testing.assert_allclose(known(of_facts)[:count], same[:count], rtol=tolerance, atol=1e-9)
    with refused(ModelError, "known-twice"):
        later.given({"Fc2": 1.0})


def test_what_contradicts_the_torques_is_named() -> None:
    model, theta = arm()
    samples = motion(model, theta, 0.1 * np.random.default_rng(5).normal(size=(2000, 3)), seconds=10.0)
    right, wrong = float(theta[model.parameters.index("Fv2")]), 0.5 * float(theta[model.parameters.index("Fv2")])
    for value, codes in ((right, set()), (wrong, {"known-contradicted"})):
        problem = Problem.from_model(model, samples, known={"Fv2": value})
        estimate = identify(problem, method="wls")
        findings = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples)).findings
        found = [finding for finding in findings if finding.code.startswith("known-")]
        assert {finding.code for finding in found} == codes
        assert all(finding.parameters == ("Fv2",) for finding in found)


def test_a_mass_that_no_robot_can_have_beside_its_torques_is_named() -> None:
    model, theta = arm()
    samples = motion(model, theta, 0.02 * np.random.default_rng(6).normal(size=(2000, 3)), seconds=10.0)
    place = model.parameters.index("M3")
    assert "M3" not in base_parameters(model).names  # torques alone do not show it
    for value, codes in ((float(theta[place]), set()), (0.02 * float(theta[place]), {"known-not-consistent"})):
        problem = Problem.from_model(model, samples, known={"M3": value})
        estimate = identify(problem, method="pc-wls")
        findings = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples)).findings
        assert {finding.code for finding in findings if finding.code.startswith("known-")} == codes


def test_what_cannot_be_known_is_refused() -> None:
    model, theta = arm()
    samples = motion(model, theta, seconds=2.0)
    for name, value, match in (("M9", 1.0, ("bad-model", "'M9'")), ("M3", np.nan, ("bad-model", "'M3'", "nan")),
                               ("M3", (1.0, -1.0), ("bad-model", "'M3'", "-1.0"))):
        with refused(ModelError, *match):
            Problem.from_model(model, samples, known={name: value})
    problem = Problem.from_model(model, samples, known={"M3": 1.0})
    with refused(ModelError, "known-twice"):
        problem.regression.given({"M3": 2.0})
    with refused(ModelError, "data-given-twice"):
        identify(problem, known={"M3": 1.0})
    assert set(LINEAR) | set(CONSISTENT) <= set(methods())

"""Predictions no better than zero torque, or than the mean, are named; others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.validate import cross_validate, reconstruct, verdict
from dynid.validate.verdict_checks.transfer import blocks_worse_than_nothing, negative_r2


@pytest.fixture(scope="module")
def fitted(simulate):
    log = simulate("arm3r", source="own.csv")
    problem, estimate = log.fitted()
    return log, problem, estimate, simulate("arm3r", seed=5, source="other.csv")


def test_a_log_that_is_predicted_has_no_finding(fitted):
    _, _, estimate, other = fitted
    assert list(negative_r2(reconstruct(estimate, other.samples))) == []


def test_inverted_torques_are_worse_than_zero_and_the_sign_is_what_to_look_at(fitted):
    _, problem, estimate, other = fitted
    fit = reconstruct(estimate, other.with_torque(-other.samples.tau).samples)
    [said] = negative_r2(fit)
    assert said.code == "worse-than-zero" and said.logs == ("other.csv",) and "sign" in said.text
    assert said.evidence["relative_error"] == pytest.approx((200.0,), abs=2.0)  # tau against minus tau
    found = verdict(estimate, problem, validation=[fit])
    assert "worse-than-zero" in [one.code for one in found.findings] and not found.good


def test_only_the_joints_that_are_worse_are_named(fitted):
    _, _, estimate, other = fitted
    names = reconstruct(estimate, other.samples).names
    weakest = int(np.argmin([fit.torque_rms for fit in reconstruct(estimate, other.samples).joints]))
    factor = np.ones(3)
    factor[weakest] = -1.0
    [said] = negative_r2(reconstruct(estimate, other.with_torque(other.samples.tau * factor).samples))
    assert said.code == "worse-than-zero" and said.joints == (names[weakest],)
    assert said.evidence["relative_error"] == pytest.approx((200.0,), abs=2.0)


def test_worse_than_the_mean_is_told_from_worse_than_zero(fitted):
    """Torques far from zero that hardly vary: an error of a few percent says nothing of their variation."""
    _, _, estimate, other = fitted
    hat = estimate.predict(other.samples.q, other.samples.dq, other.samples.ddq)
    level = 20.0 * np.sqrt(np.mean(hat ** 2, axis=0))
    shifted = other.with_torque(hat + 0.5 * level).samples  # off by a constant
    assert [one.code for one in negative_r2(reconstruct(estimate, shifted))] == ["worse-than-mean"]


def test_blocks_of_time_worse_than_zero_are_named(fitted):
    log, problem, estimate, _ = fitted
    cross = cross_validate(problem, "wls", estimate=estimate)
    assert list(blocks_worse_than_nothing(cross)) == []
    errors = cross.errors.copy()
    errors[[2, 5]] = 150.0, 5.7e6
    bad = replace(cross, errors=errors)
    [said] = blocks_worse_than_nothing(bad)
    assert said.code == "worse-than-zero" and said.evidence["block"] == (3.0, 6.0)
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples), cross=bad)
    assert "worse-than-zero" in [one.code for one in found.findings]

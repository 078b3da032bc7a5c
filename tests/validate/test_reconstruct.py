"""Reconstruction against the definitions, computed from the regressor with numpy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.recording import Decimation
from dynid.recording.decimate import decimate_columns
from dynid.validate import reconstruct


def test_numbers_are_the_definitions(simulate):
    log = simulate("arm3r", rows=700)
    keep = np.random.default_rng(3).random(log.samples.q.shape) > 0.2
    samples = replace(log.samples, keep=keep)
    _, estimate = log.fitted()
    found = reconstruct(estimate, samples)
    hat = log.model.regressor(samples.q, samples.dq, samples.ddq) @ estimate.full
    for j, fit in enumerate(found.joints):
        tau, own = samples.tau[keep[:, j], j], hat[keep[:, j], j]
        assert fit.rows == keep[:, j].sum()
        assert fit.relative_error == pytest.approx(100 * np.linalg.norm(tau - own) / np.linalg.norm(tau), rel=1e-9)
        assert fit.rms == pytest.approx(np.sqrt(np.mean((tau - own) ** 2)), rel=1e-9)
        assert fit.r2 == pytest.approx(1 - np.sum((tau - own) ** 2) / np.sum((tau - tau.mean()) ** 2), rel=1e-9)
        nrmse = np.linalg.norm(tau - own) / np.linalg.norm(tau - tau.mean())
        assert fit.fitness == pytest.approx(100 * (1 - nrmse), rel=1e-9)
        assert fit.to_dict()["fitness"] == fit.fitness
        assert fit.slope == pytest.approx(float(np.linalg.lstsq(own[:, None], tau, rcond=None)[0][0]), rel=1e-9)
    error = np.where(keep, samples.tau - hat, 0.0)
    assert found.relative_error == pytest.approx(
        100 * np.linalg.norm(error) / np.linalg.norm(np.where(keep, samples.tau, 0.0)), rel=1e-9)
    mean = [samples.tau[keep[:, j], j].mean() for j in range(3)]
    variation = np.sum(np.where(keep, samples.tau - mean, 0.0) ** 2)
    assert found.total.r2 == pytest.approx(1 - np.sum(error ** 2) / variation, rel=1e-9)


def test_agrees_with_the_fold(simulate):
    problem, estimate = simulate("arm3r", rows=700).fitted()
    found = reconstruct(estimate, problem.data)
    assert found.relative_error == pytest.approx(problem.regression.relative_error(estimate.values), rel=1e-9)
    np.testing.assert_allclose(found.relative_error_per_joint, problem.regression.relative_errors(estimate.values),
                               rtol=1e-8)


def test_decimated_rows_are_those_of_regression(simulate):
    log = simulate("arm3r", rows=2000)
    _, estimate = log.fitted()
    decimation, segments = Decimation(5), np.array([[0, 900], [1000, 2000]])
    samples = replace(log.samples, decimation=decimation, segments=segments)
    found = reconstruct(estimate, samples)
    hat = log.model.regressor(samples.q, samples.dq, samples.ddq) @ estimate.full
    tau, hat = (decimate_columns(x, decimation, segments) for x in (samples.tau, hat))
    np.testing.assert_allclose(found.series[0].residual, tau - hat, atol=1e-10)
    assert found.relative_error == pytest.approx(100 * np.linalg.norm(tau - hat) / np.linalg.norm(tau), rel=1e-8)


def test_several_logs_are_one_longer_log(simulate):
    log, other = simulate("arm3r", rows=600), simulate("arm3r", rows=900, seed=4, source="other")
    _, estimate = log.fitted()
    both = reconstruct(estimate, [log.samples, other.samples])
    one, two = reconstruct(estimate, log.samples), reconstruct(estimate, other.samples)
    for a, b, c in zip(both.joints, one.joints, two.joints, strict=True):
        assert a.rows == b.rows + c.rows
        assert a.rms ** 2 * a.rows == pytest.approx(b.rms ** 2 * b.rows + c.rms ** 2 * c.rows, rel=1e-9)
    assert both.source == "simulated, other" and both.names == ("joint1", "joint2", "joint3")


def test_undefined_is_none_in_json_and_never_nan(simulate):
    log = simulate("arm3r", rows=500)
    _, estimate = log.fitted()
    tau = log.samples.tau.copy()
    tau[:, 0], tau[:, 1] = 0.0, 2.5
    keep = log.samples.keep.copy()
    keep[:, 2] = False
    found = reconstruct(estimate, replace(log.samples, tau=tau, keep=keep))
    silent, constant, empty = found.joints
    assert silent.relative_error is None and silent.r2 is None and silent.rms > 0
    assert constant.r2 is None and constant.relative_error > 0
    assert empty.rows == 0 and empty.rms is None and empty.slope is None
    assert np.isnan(found.relative_error_per_joint[0])
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert text["relative_error_per_joint"][0] is None and text["joints"][1]["name"] == "joint2"


def test_refusals(simulate):
    log = simulate("arm3r", rows=500)
    _, estimate = log.fitted()
    with refused(ModelError, "joints-do-not-fit", "1", "3"):
        reconstruct(estimate, simulate("emps", rows=50).samples)
    with refused(NotPossibleError, "no-samples"):
        reconstruct(estimate, replace(log.samples, segments=np.zeros((0, 2), dtype=np.int64)))

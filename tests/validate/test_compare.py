"""Two estimates side by side: same base, another base, another model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.validate import compare, reconstruct


def test_independent_logs_of_one_robot_agree_to_their_deviations(simulate):
    apart = []
    for seed in (0, 10, 20, 30):
        a, b = (simulate("arm3r", seed=seed + k).fitted()[1] for k in (0, 5))
        found = compare(a, b)
        np.testing.assert_allclose(found.difference, b.values - a.values)
        np.testing.assert_allclose(found.z_scores, (b.values - a.values) / np.sqrt(a.std ** 2 + b.std ** 2))
        apart.append(found.z_scores)
        assert found.only_a == found.only_b == ()
    assert np.sqrt(np.mean(np.square(apart))) == pytest.approx(1.0, abs=0.35)


def test_a_changed_parameter_is_the_one_that_differs(simulate):
    _, a = simulate("arm3r").fitted()
    _, b = simulate("arm3r", seed=7, changes={"Fc2": 0.5}).fitted()
    found = compare(a, b)
    assert found.different == ("Fc2",)
    assert found.difference[found.names.index("Fc2")] == pytest.approx(0.5 - 0.1523, abs=0.05)
    line = next(line for line in found.table().splitlines() if line.startswith("Fc2"))
    assert line.endswith("*")


def test_values_are_carried_over_to_another_grouping(simulate):
    log = simulate("arm3r")
    other = base_parameters(log.model, ["M", "MX MY MZ"])
    usual = base_parameters(log.model)
    assert other.expressions != usual.expressions
    a = identify(Problem.from_model(log.model, log.samples, base=usual), method="ols")
    b = identify(Problem.from_model(log.model, log.samples, base=other), method="ols")
    found = compare(a, b, log.samples)
    # The same fit said in other words: values and deviations must come out the same.
    np.testing.assert_allclose(found.values_b, a.values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.std_b, a.std, rtol=1e-4)
    assert found.agreement[0] < 1e-6 and found.names == a.names and found.only_b == ()


def test_another_model_shares_what_has_the_same_expression(simulate):
    log = simulate("arm3r")
    robot = Robot.builtin("arm3r")
    _, a = log.fitted()
    _, b = log.fitted(model=Model(robot, make_terms(robot, friction=("viscous", "coulomb"))))
    found = compare(a, b, [log.samples])
    assert found.only_a == ("Fo1", "Fo2", "Fo3") and found.only_b == ()
    first, second = found.predictions[0]
    assert second.relative_error > first.relative_error == pytest.approx(
        reconstruct(a, log.samples).relative_error)
    s = log.samples
    gap = b.predict(s.q, s.dq, s.ddq) - a.predict(s.q, s.dq, s.ddq)
    assert found.agreement[0] == pytest.approx(100 * np.linalg.norm(gap) / np.linalg.norm(s.tau), rel=1e-6)
    assert "only in wls: Fo1, Fo2, Fo3" in found.table() and "simulated: relative error" in found.table()
    json.dumps(found.to_dict(), allow_nan=False)


def test_what_one_of_them_does_not_know_is_not_compared(simulate):
    _, a = simulate("arm3r").fitted()
    _, b = simulate("arm3r", frozen=(2,)).fitted()
    found = compare(a, b)
    assert set(found.only_a) == {"Fv3", "Fc3"} and "Fv3" not in found.names
    exact = simulate("arm3r", noise=0.0).fitted()[1]
    json.dumps(compare(exact, exact).to_dict(), allow_nan=False)


def test_other_robots_are_refused(simulate):
    with refused(ModelError, "bad-model", "3 and 1 joints"):
        compare(simulate("arm3r").fitted()[1], simulate("emps").fitted()[1])

"""Base parameters by rule, as text and as numbers."""

from __future__ import annotations

import numpy as np

from dynid.model import Model
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.symbolic import base_forms


def test_base_parameters_by_rule_are_as_many_as_published():
    """Their expressions, table B.2 of Ardiani, are a check of `dynid reproduce code-generation`."""
    assert len(base_forms(Robot.builtin("kuka-iiwa14")).kept) == 43


def test_text_and_numbers_are_one():
    """The printed expressions, computed with the arm's lengths, are the numerical base parameters."""
    rows = [(0.0, 0.0, 0.0, 0.3), (np.pi / 2, 0.2, 0.4, 0.1), (0.7, -0.3, 0.0, 0.25), (-np.pi / 2, 0.1, 0.0, 0.0)]
    robot = Robot.from_mdh(rows, name="arm")
    forms, numbers = base_forms(robot), base_parameters(Model(robot))
    theta = np.random.default_rng(0).normal(size=40)
    known = dict(zip(Model(robot).parameters.names, theta, strict=True))
    known |= {f"{'abd'[k % 3]}{k // 3 + 1}": value for k, value in enumerate(forms.lengths)}
    found = []
    for text in forms.expressions():
        python = text.replace("^", "**").replace("+ ", "+").replace("- ", "-")
        python = python.replace(" +", "+").replace(" -", "-").replace(" ", "*")
        found.append(eval(python, {}, known))
    np.testing.assert_allclose(found, numbers.reduce(theta), atol=1e-9)
    np.testing.assert_allclose(forms.base().matrix, numbers.matrix, atol=1e-9)

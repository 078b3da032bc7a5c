"""Base parameters by rule, as text and as numbers."""

from __future__ import annotations

import numpy as np

from dynid.model import Model
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.symbolic import base_forms

# Ardiani, table B.2, of the KUKA LBR iiwa; a product's lengths stand before it here.
TABLE = """
    ZZ1 + YY2
    XX2 - YY2 + YY3 + 2 d3 MZ3 + d3^2 (M3 + M4 + M5 + M6 + M7)
    ZZ2 + YY3 + 2 d3 MZ3 + d3^2 (M3 + M4 + M5 + M6 + M7)
    MY2 - MZ3 - d3 (M3 + M4 + M5 + M6 + M7)
    XX3 - YY3 + YY4
    ZZ3 + YY4
    MY3 - MZ4
    XX4 - YY4 + YY5 + 2 d5 MZ5 + d5^2 (M5 + M6 + M7)
    ZZ4 + YY5 + 2 d5 MZ5 + d5^2 (M5 + M6 + M7)
    MY4 + MZ5 + d5 (M5 + M6 + M7)
    XX5 - YY5 + YY6
    ZZ5 + YY6
    MY5 + MZ6
    XX6 - YY6 + YY7
    ZZ6 + YY7
    MY6 - MZ7
    XX7 - YY7"""


def test_the_rules_print_as_the_published_table():
    forms = base_forms(Robot.builtin("kuka-iiwa14"))
    regrouped = [text for text in forms.expressions() if " " in text]
    assert len(forms.kept) == 43 and regrouped == [line.strip() for line in TABLE.strip().splitlines()]


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

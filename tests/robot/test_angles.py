"""Angles and axes of files: what stands for an exact one and what does not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from robots import random_inertia

from dynid.model import Model
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.robot.pose import exact_angle, exact_axis
from dynid.robot.urdf import read_urdf

MEANT = {"1.5708": math.pi / 2, "-1.5708": -math.pi / 2, "1.57": math.pi / 2, "1.5707": math.pi / 2,
         "1.570796": math.pi / 2, "1.57079632679": math.pi / 2, "3.14": math.pi, "3.1415": math.pi, "3.1416": math.pi,
         "3.14159265359": math.pi, "0.7854": math.pi / 4, "0.785": math.pi / 4, "2.3562": 3 * math.pi / 4,
         "1.0472": math.pi / 3, "1.047": math.pi / 3, "0.5236": math.pi / 6, "0.523": math.pi / 6,
         "6.2832": 2 * math.pi, "3.6732e-06": 0.0, "-6.1e-17": 0.0}
AS_PRINTED = ["0", "1.6", "1.5", "1.5718", "1.57081632", "1.5697", "3.1", "0.8", "1.05", "0.2618", "1.309", "0.291",
              "0.001", "0.0001", "0.649262481663582", "-0.207"]


@pytest.mark.parametrize("printed", MEANT)
def test_rounded_and_cut_off_angles_are_the_exact_ones(printed: str) -> None:
    assert exact_angle(float(printed)) == pytest.approx(MEANT[printed], abs=1e-15)


@pytest.mark.parametrize("printed", AS_PRINTED)
def test_other_angles_stay_as_printed(printed: str) -> None:
    assert exact_angle(float(printed)) == float(printed)


@pytest.mark.parametrize(("printed", "meant"), [
    ((0, 0, 2), (0, 0, 1)), ((0, 1e-9, -1), (0, 0, -1)), ((1, 0, 3.67e-6), (1, 0, 0)),
    ((0.7071, 0, -0.7071), (math.sqrt(0.5), 0, -math.sqrt(0.5))), ((0, 0.866, 0.5), (0, math.sqrt(0.75), 0.5)),
    ((0, 0.6, 0.8), (0, 0.6, 0.8)), ((0.001, 0, 1), (0.001 / math.hypot(0.001, 1), 0, 1 / math.hypot(0.001, 1)))])
def test_axes(printed: tuple[float, ...], meant: tuple[float, ...]) -> None:
    np.testing.assert_allclose(exact_axis(printed), meant, rtol=0, atol=1e-15)


def arm(right: str) -> str:
    """Six joints with right angles between them, printed as `right`."""
    turns = [f"0 0 {right}", f"{right} 0 0", "0 0 0", f"-{right} 0 0", f"{right} 0 0", f"-{right} 0 {right}"]
    joints = "".join(
        f'<joint name="j{i + 1}" type="continuous"><origin xyz="{0.1 * i} 0 0.3" rpy="{turn}"/><parent link="l{i}"/>'
        f'<child link="l{i + 1}"/><axis xyz="0 0 1"/></joint>' for i, turn in enumerate(turns))
    return f'<robot name="arm">{"".join(f"<link name={chr(34)}l{i}{chr(34)}/>" for i in range(7))}{joints}</robot>'


@pytest.mark.parametrize("right", ["1.57", "1.5708", "1.570796", "1.57079632679"])
def test_base_parameters_of_a_rounded_file_are_those_of_the_exact_one(right: str) -> None:
    exact, rounded = read_urdf(arm(repr(math.pi / 2))), read_urdf(arm(right))
    base, found = base_parameters(Model(exact)), base_parameters(Model(rounded))
    assert found.expressions == base.expressions and found.names == base.names
    assert exact.warnings == () and len(rounded.warnings) == 1
    assert rounded.warnings[0].startswith("6 ") and "j1, j2, j4, j5, j6" in rounded.warnings[0]


def test_a_table_with_rounded_angles(tmp_path: Path) -> None:
    rows = "".join(f"[[joint]]\nalpha = {alpha}\nd = 0.2\nr = 0.1\n" for alpha in ("0", "1.5708", "-1.5708"))
    (tmp_path / "arm.toml").write_text(f'convention = "mdh"\n{rows}')
    robot = Robot.load(tmp_path / "arm.toml")
    exact = Robot.from_mdh([(0, 0.2, 0, 0.1), (math.pi / 2, 0.2, 0, 0.1), (-math.pi / 2, 0.2, 0, 0.1)])
    for ours, theirs in zip(robot.joints, exact.joints, strict=True):
        np.testing.assert_array_equal(ours.before, theirs.before)
    assert len(robot.warnings) == 1 and "joint2, joint3" in robot.warnings[0]


@pytest.mark.parametrize("robot", ["franka-panda", "puma560", "ur10", "kuka-iiwa14"])
def test_printed_expressions_compute_the_base_values(robot: str) -> None:
    """A text such as 'ZZ1 + 0.25 M2' evaluated by itself."""
    rng = np.random.default_rng(3)
    model = Model(Robot.builtin(robot))
    base = base_parameters(model)
    theta = np.concatenate([random_inertia(rng) for _ in range(model.dof)])
    values = dict(zip(model.parameters.names, theta, strict=True))
    for text, expected in zip(base.expressions, base.reduce(theta), strict=True):
        total, sign, factor = 0.0, 1.0, 1.0
        for word in text.split():
            if word in "+-":
                sign, factor = (1.0 if word == "+" else -1.0), 1.0
            elif word in values:
                total += sign * factor * values[word]
            else:
                factor = float(word)
        assert total == pytest.approx(expected, rel=1e-9)

"""DH and modified DH chains against the matrix products their conventions are defined by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refused
from robots import body_poses, frame_pose, random_inertia, random_pose

from dynid.errors import RobotError
from dynid.robot import Robot
from dynid.robot.dh import from_dh, from_mdh


def rot(axis: str, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    pose = np.eye(4)
    i, j = {"x": (1, 2), "z": (0, 1)}[axis]
    pose[i, i], pose[i, j], pose[j, i], pose[j, j] = c, -s, s, c
    return pose


def trans(axis: str, length: float) -> np.ndarray:
    pose = np.eye(4)
    pose["xyz".index(axis), 3] = length
    return pose


def random_rows(rng: np.random.Generator, n: int) -> list[tuple[float, float, float, float, str]]:
    kinds = rng.choice(["revolute", "continuous", "prismatic"], n)
    numbers = rng.uniform(-2, 2, (n, 4))
    numbers[rng.random((n, 4)) < 0.3] = 0.0
    return [(*map(float, row), str(kind)) for row, kind in zip(numbers, kinds, strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_standard_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, q, base, tool = random_rows(rng, 5), rng.uniform(-3, 3, 5), random_pose(rng), random_pose(rng)
    robot = from_dh(rows, base=base, tool=tool)
    pose = base
    for i, (alpha, a, d, theta, kind) in enumerate(rows):
        slide, turn = (q[i], 0.0) if kind == "prismatic" else (0.0, q[i])
        pose = pose @ rot("z", theta + turn) @ trans("z", d + slide) @ trans("x", a) @ rot("x", alpha)
        np.testing.assert_allclose(body_poses(robot, q)[i], pose, atol=1e-13)
        assert robot.joints[i].kind == kind
    np.testing.assert_allclose(frame_pose(robot, "tool", q), pose @ tool, atol=1e-13)
    assert robot.serial


@pytest.mark.parametrize("seed", range(6))
def test_modified_chain(seed: int) -> None:
    """Ardiani, eq. 1.2, entry by entry; Craig's names for the same table give the same robot."""
    rng = np.random.default_rng(seed)
    rows, q, base = random_rows(rng, 5), rng.uniform(-3, 3, 5), random_pose(rng)
    robot = from_mdh(rows, base=base)
    craig = from_mdh([{"alpha": al, "a": d, "theta": th, "d": r, "kind": k} for al, d, th, r, k in rows],
                     notation="craig", base=base)
    pose = base
    for i, (alpha, d, theta, r, kind) in enumerate(rows):
        theta, r = (theta, r + q[i]) if kind == "prismatic" else (theta + q[i], r)
        ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
        pose = pose @ np.array([[ct, -st, 0, d], [ca * st, ca * ct, -sa, -r * sa],
                                [sa * st, sa * ct, ca, r * ca], [0, 0, 0, 1]])
        np.testing.assert_allclose(body_poses(robot, q)[i], pose, atol=1e-13)
    np.testing.assert_array_equal(body_poses(craig, q), body_poses(robot, q))


def test_right_angles_are_exact() -> None:
    robot = from_dh([(np.pi / 2, 0, 0, 0), (-np.pi / 2, 0, 0, np.pi)])
    for joint in robot.joints:
        assert set(np.abs(joint.after[:3, :3]).ravel()) <= {0.0, 1.0}


def test_mappings_names_limits_and_inertias() -> None:
    rng = np.random.default_rng(0)
    ten = random_inertia(rng)
    robot = Robot.from_dh([{"alpha": 0, "a": 1, "d": 0}, {"alpha": 0, "a": 0, "theta": 0.5, "kind": "prismatic"}],
                          name="two", joints=["p", "q"], links=["P", "Q"], inertias=[ten, None],
                          limits={"lower": [-1, -2], "velocity": [3, np.inf]}, gravity=(0, 9.81, 0),
                          terms=[{"kind": "viscous"}], values={"Fv1": 0.1}, source="a table")
    assert (robot.name, robot.joint_names, robot.body_names) == ("two", ("p", "q"), ("P", "Q"))
    assert robot.limit("lower").tolist() == [-1, -2] and robot.limit("velocity").tolist() == [3, np.inf]
    assert robot.limit("upper").tolist() == [np.inf, np.inf]
    np.testing.assert_array_equal(robot.bodies[0].inertia, ten)
    assert robot.bodies_without_inertia == ("Q",)
    assert robot.terms == ({"kind": "viscous"},) and robot.values == {"Fv1": 0.1} and robot.source == "a table"
    assert robot.gravity.tolist() == [0, 9.81, 0]
    assert Robot.from_mdh([(0, 0, 0, 0)]).joint_names == ("joint1",)


GOOD = (0.0, 0.0, 0.0, 0.0)
BAD: dict[str, tuple[Callable[..., Robot], Any, dict[str, Any], str]] = {
    "short": (from_dh, [GOOD, (0, 0, 0)], {}, ("bad-robot", "'robot'", "DH row 2", "3 entries")),
    "long": (from_dh, [(0, 0, 0, 0, "revolute", 1)], {}, ("bad-robot", "DH row 1", "6 entries")),
    "key": (from_dh, [{"alpha": 0, "a": 0, "d": 0, "beta": 0}], {}, ("bad-robot", "DH row 1", "'beta'")),
    "Craig's key": (from_mdh, [{"alpha": 0, "a": 0, "d": 0}], {}, ("bad-robot", "'a'", "'craig'")),
    "Khalil's key": (from_dh, [{"alpha": 0, "r": 0, "d": 0}], {}, ("bad-robot", "'r'", "Khalil")),
    "missing": (from_dh, [{"alpha": 0, "d": 0}], {}, ("bad-robot", "DH row 1", "'a'")),
    "missing theta": (from_dh, [{"alpha": 0, "a": 0, "d": 0, "kind": "prismatic"}], {},
                      ("bad-robot", "DH row 1", "'theta'")),
    "nan": (from_dh, [GOOD, (0, float("nan"), 0, 0)], {}, ("bad-robot", "'a'", "'robot'", "DH row 2")),
    "word": (from_mdh, [(0, "long", 0, 0)], {}, ("bad-robot", "'d'", "'robot'", "DH row 1", "'long'")),
    "kind": (from_dh, [(0, 0, 0, 0, "screw")], {}, ("bad-robot", "DH row 1", "'screw'")),
    "number for a row": (from_dh, [3.0], {}, ("bad-robot", "DH row 1")),
    "text for rows": (from_dh, "rows", {}, ("bad-robot", "DH", "got str")),
    "none": (from_dh, [], {}, ("no-moving-joint", "'robot'")),
    "notation": (from_mdh, [GOOD], {"notation": "paul"}, ("bad-robot", "'khalil'", "'craig'", "'paul'")),
    "option": (from_dh, [GOOD], {"limit": 1}, ("bad-robot", "'limit'")),
    "names": (from_dh, [GOOD], {"joints": ["a", "b"]}, ("bad-robot", "1 DH rows", "2 joint names")),
    "same names": (from_dh, [GOOD, GOOD], {"joints": ["a", "a"]}, ("duplicate-name", "'a'")),
    "inertias": (from_dh, [GOOD], {"inertias": []}, ("bad-robot", "inertias", "0 links")),
    "nine numbers": (from_dh, [GOOD], {"inertias": [[0.0] * 9]}, ("bad-robot", "'link1'", "got 9")),
    "inertia nan": (from_dh, [GOOD], {"inertias": [[np.nan] * 10]}, ("bad-robot", "entry 1", "'link1'")),
    "limit name": (from_dh, [GOOD], {"limits": {"speed": [1]}}, ("bad-robot", "'speed'")),
    "limit count": (from_dh, [GOOD], {"limits": {"lower": [1, 2]}}, ("bad-robot", "'lower'", "1 joints")),
    "limit nan": (from_dh, [GOOD], {"limits": {"lower": [np.nan]}}, ("bad-robot", "'lower'", "'joint1'")),
    "limits turned": (from_dh, [GOOD], {"limits": {"lower": [1], "upper": [0]}},
                      ("bad-robot", "'joint1'", "1.0", "0.0")),
    "base shape": (from_dh, [GOOD], {"base": np.eye(3)}, ("bad-pose", "base", "'robot'", "4 x 4")),
    "base scaled": (from_dh, [GOOD], {"base": 2 * np.eye(4)}, ("bad-pose", "base", "'robot'")),
    "mirrored tool": (from_dh, [GOOD], {"tool": np.diag([1, 1, -1, 1])}, ("bad-pose", "tool", "'robot'")),
    "tool of words": (from_dh, [GOOD], {"tool": [["a"] * 4] * 4}, ("bad-pose", "tool", "'robot'")),
    "gravity": (from_dh, [GOOD], {"gravity": [0, 0]}, ("bad-gravity", "gravity", "'robot'")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_give_one_sentence(case: str) -> None:
    make, rows, options, message = BAD[case]
    with refused(RobotError, *message) as caught:
        make(rows, **options)
    assert "\n" not in str(caught.value)

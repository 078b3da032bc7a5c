"""The check of a motion: what happens between the samples counts too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.excitation import FourierSeries, HalfSpace, Limits, Workspace, check_limits
from dynid.robot import Robot


def test_check_sees_what_happens_between_samples() -> None:
    none = np.full(1, np.inf)
    bounds = Limits(lower=-none, upper=none, velocity=none, acceleration=none, jerk=none, torque=none, names=("a",))
    swing = FourierSeries([[0.0] * 7 + [2 * np.pi * 8 / 5]], [[0.0] * 8], [0.0], 5.0)  # sin(2 pi 8 t / 5), peak 1
    for points in (41, 57, 200):  # 41 points meet zeros only
        report = check_limits(swing, replace(bounds, upper=[0.98]), points=points)
        assert not report.ok
        assert report.violated[0].kind == "position" and report.violated[0].bound == pytest.approx(0.98)
    assert check_limits(swing, replace(bounds, lower=[-1.001], upper=[1.001]), points=5000).ok


def test_check_adds_the_way_between_samples_to_distances() -> None:
    robot = Robot.builtin("arm3r")
    wall = Workspace.of(robot, radius=0.02, planes=[HalfSpace((-1.0, 0, 0), -0.3, "wall")])
    bounds = Limits.of(robot, space=wall, torque=np.inf)
    swing = FourierSeries(np.array([[1.0], [0.5], [0.3]]), np.zeros((3, 1)), np.zeros(3), 4.0)
    coarse = {u.where: u.value for u in check_limits(swing, bounds, points=150).usages if u.kind == "space"}
    fine = {u.where: u.value for u in check_limits(swing, bounds, points=40000).usages if u.kind == "space"}
    assert coarse.keys() == fine.keys() and any("wall" in name for name in fine)
    for name in fine:
        assert coarse[name] <= fine[name] + 1e-9

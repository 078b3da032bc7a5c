"""The page of a motion: complete, self-contained, and its lines are those of the motion."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from robots import body_poses

from dynid.excitation import Fourier, HalfSpace, Limits, Search, Workspace, sphere
from dynid.report import render
from dynid.report.pages.motion import MOTION, MotionData, expected_figure, joints, limits, preview, search_figure
from dynid.report.rendering import plotly_script
from dynid.robot import BASE, Robot
from dynid.runs.motion_design import MotionRequest, design_motion


@pytest.fixture(scope="module")
def motion() -> MotionData:
    """A short motion of the 3R arm with the way from and to home."""
    return design_motion(Robot.builtin("arm3r"), MotionRequest(
        family=Fourier(6.0, 3), search=Search(budget=None, rounds=1), noise=0.02, home=np.zeros(3),
        command="dynid excite arm3r -o m.csv"))


def test_page_is_complete_and_self_contained(motion: MotionData) -> None:
    text = render(MOTION, motion).replace(plotly_script(), "")
    names = ["overview", "joints", "expected", "preview", "limits", "search"]
    assert re.findall(r'<section id="(\w+)"', text) == names
    assert re.findall(r'href="#(\w+)"', text) == names
    assert not re.search(r"https?://|url\(|@import|\ssrc=", text) and "default-src 'none'" in text
    figures = [json.loads(found) for found in re.findall(r'<script type="application/json">(.*?)</script>', text)]
    assert len(figures) == 3 + 3  # a joint each, deviations, preview, search
    shown = re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", shown)
    assert "dynid excite arm3r -o m.csv" in shown and "arm3r moves for 6 s" in shown


def test_lines_of_a_joint_are_the_motion_inside_its_limits(motion: MotionData) -> None:
    shown = joints.gather(motion)
    found, theta = motion.excitation, motion.theta
    assert shown["approach"] and theta is not None and len(shown["figures"]) == 3
    for j, figure in enumerate(shown["figures"]):
        t = np.array(figure.data[0]["x"])
        exact = found.trajectory.at(t)
        tau = found.model.regressor(*map(np.ascontiguousarray, exact[:3])) @ theta
        for trace, signal in zip(figure.data, (exact.q, exact.dq, exact.ddq, tau), strict=True):
            near = np.abs(np.array(trace["y"]) - signal[:, j]) < 2e-3 * np.abs(signal[:, j]).max()
            assert near.mean() > 0.99  # all but where dry friction jumps between two instants
        levels = {shape["y0"] for shape in figure.layout["shapes"] if shape["type"] == "line"}
        assert {found.limits.lower[j], found.limits.upper[j], found.limits.velocity[j]} <= levels
        grey = [shape for shape in figure.layout["shapes"] if shape["type"] == "rect"]
        assert [round(grey[0]["x1"], 9), round(grey[1]["x0"], 9)] == [round(x, 9) for x in motion.core]


def test_bars_are_the_expected_deviations(motion: MotionData) -> None:
    figure = expected_figure(motion)
    assert figure is not None and figure.layout["yaxis"]["type"] == "log"
    # Against scipy-free algebra: sigma (X'X)^-1 of the stacked base regressor over the log to come.
    found = motion.excitation
    t = np.linspace(0.0, 6.0, 600, endpoint=False)
    state = found.core.at(t)
    y = found.model.regressor(state.q, state.dq, state.ddq)[:, :, found.base.independent].reshape(-1, len(found.base))
    std = 0.02 * np.sqrt(np.diag(np.linalg.inv(y.T @ y)))
    bars = dict(zip(figure.data[-1]["x"], figure.data[-1]["y"], strict=True))
    for name, value, sigma in zip(found.base.names, motion.values, std, strict=True):
        assert bars[name] == pytest.approx(100 * sigma / abs(value), rel=2e-3)
    earlier = replace(motion, before=2.0 * found.std)
    both = expected_figure(earlier)
    assert both is not None
    assert np.allclose(np.array(both.data[0]["y"]) / np.array(both.data[1]["y"]), 2.0, rtol=2e-3)
    assert expected_figure(replace(motion, values=np.full_like(motion.values, np.nan))) is None


def test_preview_moves_through_the_motion(motion: MotionData) -> None:
    figure = preview.gather(motion)["figure"]
    assert len(figure.frames) == 60 == len(figure.layout["sliders"][0]["steps"])
    times = np.linspace(0.0, motion.excitation.trajectory.duration, 60)
    for k in (0, 17, 59):
        poses = body_poses(motion.robot, motion.excitation.trajectory.at(times[k]).q[0])
        lines = figure.frames[k]["data"][0]
        drawn = {(x, y, z) for x, y, z in zip(lines["x"], lines["y"], lines["z"], strict=True) if x is not None}
        for pose in poses:
            assert min(np.linalg.norm(np.array(point) - pose[:3, 3]) for point in drawn) < 1e-3
    buttons = figure.layout["updatemenus"][0]["buttons"]
    assert [button["method"] for button in buttons] == ["animate", "animate"]


def test_surroundings_and_distances_are_shown(motion: MotionData) -> None:
    robot = motion.robot
    space = Workspace.from_robot(robot, planes=[HalfSpace(np.array([0.0, 0.0, 1.0]), -0.5, "floor")], radius=0.02,
                     obstacles=[sphere(BASE, [0.5, 0.5, 0.5], 0.1, "<b>lamp</b>")])
    found = replace(motion.excitation, limits=Limits.from_robot(robot, space=space))
    data = replace(motion, excitation=found)
    figure = preview.gather(data)["figure"]
    names = [trace["name"] for trace in figure.data]
    assert "floor" in names and "&lt;b&gt;lamp&lt;/b&gt;" in names
    reach = figure.layout["scene"]["zaxis"]["range"]
    assert reach[0] < -0.5 and reach[1] > 0.5
    rows = [row for row in limits(motion)["rows"] if row["kind"] != "space"]
    assert [row["used"] for row in rows] == sorted((row["used"] for row in rows), reverse=True)
    assert {row["kind"] for row in rows} == {"position", "velocity", "acceleration"}
    assert all(row["unit"] == {"position": "rad", "velocity": "rad/s", "acceleration": "rad/s²"}[row["kind"]]
               for row in rows)


def test_history_is_a_staircase_down(motion: MotionData) -> None:
    figure = search_figure(motion.excitation)
    assert figure is not None
    y = figure.data[0]["y"]
    assert y == sorted(y, reverse=True)
    assert y[-1] == pytest.approx(motion.excitation.value, rel=1e-3)
    assert search_figure(replace(motion.excitation, history=())) is None

"""`dynid motion`: every kind is written, inside its limits, and can be looked at."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.excitation import read_trajectory
from dynid.robot import Robot
from dynid.runs.unoptimised_motion import KINDS


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("null-space", "through")])
def test_every_kind(dynid, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    shown = dynid("motion", "arm3r", kind, "-o", "m.csv", "--points", "8", "--friction", "viscous", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert said["kind"] == kind and all(use["used"] is None or use["used"] <= 100.0 + 1e-6 for use in said["limits"])
    written = read_trajectory("m.csv", Robot.builtin("arm3r").joint_names)
    assert written.duration == pytest.approx(said["duration"], abs=0.02)


def test_through_points_of_a_file_with_its_page(dynid, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    points = np.array([[0.0, 0.0, 0.0], [0.5, -0.4, 0.3], [-0.2, 0.1, 0.6]])
    np.savetxt("points.csv", points, delimiter=",", header="joint1,joint2,joint3", comments="")
    shown = dynid("motion", "arm3r", "through", "--through", "points.csv", "-o", "m.npz", "--report", "m.html")
    assert shown.code == 0, shown.err
    assert "not optimised" in (tmp_path / "m.html").read_text()
    found = read_trajectory("m.npz", Robot.builtin("arm3r").joint_names)
    q = found.q
    assert max(np.abs(q - point).max(axis=1).min() for point in points) < 0.001


@pytest.mark.parametrize(("arguments", "error"), [
    (("through",), "no-points"),
    (("null-space",), "not-redundant"),
    (("points", "--home", "1,2"), "wrong-home"),
])
def test_bad_calls(dynid, tmp_path, monkeypatch, arguments, error):
    monkeypatch.chdir(tmp_path)
    shown = dynid("motion", "arm3r", *arguments, "-o", "m.csv")
    assert shown.code in (1, 2) and shown.error == error and not (tmp_path / "m.csv").exists()

"""The package in examples/plugin, installed into a folder of its own, and packages that are faulty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example was installed into."""
    folder = tmp_path_factory.mktemp("plugin")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-index", "--no-build-isolation", "--target", folder, PLUGIN], check=True, capture_output=True)
    return folder


def dynid(folder: Path, *arguments: object, code: int = 0) -> str:
    """The output of a command with the packages in this folder installed; of both channels where it fails."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-m", "dynid", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def test_everything_passes_the_contracts(installed: Path) -> None:
    found = json.loads(dynid(installed, "plugins", "--check", "--json"))["plugins"]
    assert {one["group"] for one in found} == {"dynid.robots", "dynid.terms", "dynid.methods", "dynid.presets",
                                               "dynid.report_sections"}
    assert [one["problem"] for one in found] == [None] * len(found)


def test_lists_name_what_it_adds(installed: Path) -> None:
    assert "equal-power" in json.loads(dynid(installed, "methods", "--json"))["methods"]
    assert "example-recorder" in json.loads(dynid(installed, "presets", "--json"))["presets"]
    assert "example-arm" in {one["name"] for one in json.loads(dynid(installed, "robots", "--json"))["robots"]}


def test_a_run_uses_robot_term_method_preset_and_section(installed: Path, tmp_path: Path) -> None:
    """A log of known truth in the recorder's units; the drag that was put in is found."""
    script = tmp_path / "record.py"
    script.write_text("""
import sys
import numpy as np
import dynid

robot = dynid.Robot.load("example-arm")
model = dynid.Model(robot, dynid.make_terms(robot, friction=["viscous", "air-drag"]))
t = np.arange(0, 20, 0.005)[:, None]
w, phase = np.array([[1.7, 2.3]]), np.array([[0.0, 1.0]])
q = 0.9 * np.sin(w * t) + 0.4 * np.sin(2.6 * w * t + phase)
dq = 0.9 * w * np.cos(w * t) + 0.4 * 2.6 * w * np.cos(2.6 * w * t + phase)
ddq = -0.9 * w**2 * np.sin(w * t) - 0.4 * (2.6 * w)**2 * np.sin(2.6 * w * t + phase)
theta = np.hstack([robot.inertias, [[0.2, 0.05], [0.1, 0.03]]]).ravel()
tau = model.inverse_dynamics(theta, q, dq, ddq) + np.random.default_rng(1).normal(0, 0.01, q.shape)
np.savetxt(sys.argv[1], np.hstack([1000 * t, np.degrees(q), tau]), delimiter=",", comments="",
           header="t_ms,angle_0,angle_1,tau_0,tau_1")
""", encoding="utf-8")
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, script, tmp_path / "log.csv"], check=True, env={**os.environ, "PYTHONPATH": path})
    found = json.loads(dynid(installed, "identify", "example-arm", tmp_path / "log.csv", "--friction",
                             "viscous,air-drag", "--method", "equal-power", "-o", tmp_path / "result", "--json"))
    for name, truth in (("Cd1", 0.05), ("Cd2", 0.03)):
        one = found["parameters"][name]
        assert abs(one["value"] - truth) < 4 * one["std"] and one["std"] < 0.1 * truth
    assert found["method"] == "equal-power"
    assert "Largest torques" in (tmp_path / "result" / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A folder with a package whose modules cannot be imported."""
    info = tmp_path / "broken_arms-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-arms\nVersion: 2.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[dynid.methods]\nnone-such = broken_arms:method\n[dynid.report_sections]\nodd = broken_arms:section\n",
        encoding="utf-8")
    (tmp_path / "broken_arms.py").write_text("raise RuntimeError('no licence')", encoding="utf-8")
    return tmp_path


def test_a_faulty_package_is_named_where_it_is_asked_for_and_stops_nothing_else(faulty: Path) -> None:
    said = dynid(faulty, "plugins", "--json", code=1)
    assert "broken-arms 2.0" in said and "no licence" in said
    assert "none-such" not in json.loads(dynid(faulty, "methods", "--json"))["methods"]
    t = np.arange(0.0, 4.0, 0.01)
    rows = np.column_stack([t, *(np.sin((k + 1) * t) for k in range(6))])
    np.savetxt(faulty / "log.csv", rows, delimiter=",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    said = dynid(faulty, "identify", "arm3r", faulty / "log.csv", "--method", "none-such", code=2)
    assert "Traceback" not in said and "broken-arms 2.0" in said

"""Calls that cannot work end in one sentence and exit code 1 or 2, never in a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dynid.consistency import Violation
from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.consistency_check import Check


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good log of arm3r and one at rest; settings that are not UTF-8."""
    folder = tmp_path_factory.mktemp("logs")
    model = Model(Robot.builtin("arm3r"))
    t, w = np.arange(1000) / 200, 2 * np.pi * np.array([0.3, 0.5, 0.7])
    q, dq = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, -w**2 * q)
    write_csv(Recording(t, q, tau, joints=model.robot.joint_names), folder / "log.csv")
    write_csv(Recording(t, 0 * q, tau, joints=model.robot.joint_names), folder / "still.csv")
    (folder / "run.toml").write_bytes(b'robot = "arm3r"\nlogs = ["log.csv"]\n# \xe9\n')
    return folder


@pytest.mark.parametrize("arguments", [
    ("arm3r", "log.csv", "--set", "prepare.rate=1e9"), ("arm3r", "log.csv", "--set", "prepare.cutoff=many"),
    ("arm3r", "log.csv", "--method", "ridge", "--set", "options.strength=many"),
    ("arm3r", "log.csv", "--method", "ridge", "--set", "options.strength=[1, 2]"),
    ("arm3r", "log.csv", "--method", "irls", "--set", "options.iterations=2.5"),
    ("arm3r", "log.csv", "--method", "irls", "--set", "options.loss=3"),
    ("arm3r", "log.csv", "--method", "pc-wls", "--set", "options.shapes=1"),
    ("arm3r", "still.csv"), ("run.toml",), ("arm3r", "x" * 5000 + ".csv"), ("x" * 5000,),
    ("x" * 5000 + ".urdf", "log.csv"), ("y/" * 3000 + "run.toml",)], ids=lambda given: " ".join(given)[-60:])
def test_a_call_that_cannot_work_is_a_sentence(dynid, logs, monkeypatch, arguments):
    monkeypatch.chdir(logs)
    found = dynid("identify", *arguments)
    assert found.code in (1, 2) and found.err.startswith("Error: ") and found.err.count("\n") == 1
    assert len(found.err) < 3000 and not found.out


def test_numbers_that_are_not_finite_are_null_in_json():
    found = Check("x", "x", False, (Violation("link", "mass", "too much", np.inf),)).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False))["problems"][0]["violation"] is None


@pytest.mark.parametrize("moment", ["typer", "numpy", "numba"])
def test_an_interrupt_while_modules_are_loaded_is_quiet(logs, moment):
    script = ("import sys, os, signal\n"
              "class Interrupt:\n"
              "    def find_spec(self, name, path=None, target=None):\n"
              f"        if name == {moment!r}:\n"
              "            sys.meta_path.remove(self)\n"
              "            os.kill(os.getpid(), signal.SIGINT)\n"
              "sys.meta_path.insert(0, Interrupt())\n"
              "sys.argv = ['dynid', 'identify', 'arm3r', 'log.csv']\n"
              "import dynid.__main__\n"
              "dynid.__main__.main()\n")
    found = subprocess.run([sys.executable, "-c", script], cwd=logs, capture_output=True, text=True)
    assert found.returncode == 130 and found.stderr == "Stopped.\n"

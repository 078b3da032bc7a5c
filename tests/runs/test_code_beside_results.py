"""The identified model as source files in the folder of its result."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import one_arm
import pytest
from refusals import refused

from dynid.cli.main import main
from dynid.errors import DynidError
from dynid.runs import RunSettings, run
from dynid.runs.result_folder import check, manifest
from dynid.runs.results import load, save

MOTION = np.random.default_rng(0).normal(size=(3, 5, 1))


@pytest.fixture
def settings(tmp_path):
    return {**one_arm.written(tmp_path), "simulation": {"run": False}, "output": {"code": ["c", "python"]}}


def test_code_lies_beside_the_urdf_and_says_the_same(settings, tmp_path):
    found, folder = run(RunSettings.from_values(settings)), tmp_path / "out"
    written = save(found, folder, report=False)
    assert {"robot", "code_c", "code_python"} <= set(written)
    assert {"robot.urdf", "one_arm.h", "one_arm.py"} <= set(manifest(folder))
    check(folder)
    names: dict = {}
    exec((folder / "one_arm.py").read_text(), names)
    (torque,) = names["inverse_dynamics"](*MOTION)
    np.testing.assert_allclose(torque, found.estimate.predict(*MOTION), rtol=1e-12)
    assert "an identification by pc-wls" in (folder / "one_arm.h").read_text()
    assert load(folder)[1].output.code == ("c", "python")  # repeated, a run writes it again
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is not None:
        text = '#include "one_arm.h"\nint main(void) { return one_arm_self_test() > 1e-12; }\n'
        (tmp_path / "main.c").write_text(text)
        subprocess.run([compiler, "-std=c99", "-Iout", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
        assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


def test_old_code_goes_with_its_result_and_files_of_the_users_stay(settings, tmp_path):
    found, folder = run(RunSettings.from_values(settings)), tmp_path / "out"
    save(found, folder, report=False)
    plain = run(RunSettings.from_values({**settings, "output": {}}))
    assert "code_c" not in save(plain, folder, force=True, report=False)
    assert not (folder / "one_arm.h").exists()
    (folder / "one_arm.h").write_text("mine")
    written = save(found, folder, force=True)
    assert (folder / "one_arm.h").read_text() == "mine" and "code_c" not in written and "code_python" in written
    assert "one_arm.h is not written" in Path(written["report"]).read_text()


def test_from_the_command_line(settings, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = ["identify", settings["robot"], *settings["logs"], "--method", "ols", "--no-simulation", "--code", "c"]
    with pytest.raises(SystemExit) as left:
        main([*call, "-o", "out", "--json"])
    assert not left.value.code
    assert json.loads(capfd.readouterr().out)["outputs"]["code_c"] == "out/one_arm.h"
    with pytest.raises(SystemExit) as left:
        main(call)
    assert left.value.code and "-o FOLDER" in capfd.readouterr().err


def test_unknown_languages_are_refused_before_the_work(settings):
    with refused(DynidError, "wrong-setting", "output.code", "'julia'"):
        RunSettings.from_values({**settings, "output": {"code": ["fortran"]}})


def test_a_result_without_code_does_not_load_the_generator():
    text = "import sys, dynid.runs.results; sys.exit('dynid.symbolic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0

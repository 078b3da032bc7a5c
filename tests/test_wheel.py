"""The wheel alone, installed into a folder of its own and used outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_MEGABYTES = 4.0  # of the wheel; the largest part is the script of the figures


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend that pip uses."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-index", "--no-build-isolation", "-w", folder, ROOT], check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-index", "--target", folder, wheel], check=True, capture_output=True)
    return folder


def dynid(folder: Path, place: Path, *arguments: object) -> str:
    """Output of a command that is run in `place` with the package in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-m", "dynid", *map(str, arguments)], capture_output=True, text=True,
                          cwd=place, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_all_that_commands_read_and_no_more(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("dynid/py.typed", "dynid/report/static/plotly.min.js.gz", "dynid/report/static/plotly.LICENSE",
                 "dynid/robot/builtin/arm3r.toml", "dynid/studio/page/index.html", "dynid/scripts/benchmarks/run.py",
                 "dynid/scripts/reproductions/tables/000.toml"):
        assert part in names, part
    assert not [name for name in names if name.startswith("tests/") or "__pycache__" in name or name.endswith(".nbc")]
    assert wheel.stat().st_size < MAX_MEGABYTES * 1e6


@pytest.mark.slow
def test_commands_work_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    where = json.loads(subprocess.run([sys.executable, "-c", "import dynid, json; print(json.dumps(dynid.__file__))"],
                                      capture_output=True, text=True, check=True, cwd=tmp_path,
                                      env={**os.environ, "PYTHONPATH": str(installed)}).stdout)
    assert Path(where).is_relative_to(installed)
    assert "run" in json.loads(dynid(installed, tmp_path, "bench", "--json"))["benchmarks"]
    listed = json.loads(dynid(installed, tmp_path, "reproduce", "--json"))
    assert listed
    found = json.loads(dynid(installed, tmp_path, "inspect", "arm3r", "--json"))
    assert found["dof"] == 3

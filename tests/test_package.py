"""The package: its public names, its version, and what is said of both."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from refusals import refused

import dynid
from dynid.errors import DynidError, optional_package

ROOT = Path(__file__).resolve().parents[1]


def test_the_sdist_has_all_that_tests_read() -> None:
    """Every tracked file is below one of the included places; hatchling adds pyproject.toml, README and LICENSE."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    included = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    known = {*included["sdist"]["include"], "pyproject.toml", "README.md", "LICENSE", ".gitignore", ".ci"}
    assert {line.split("/")[0] for line in tracked.stdout.splitlines()} <= known


def test_every_public_name_loads():
    for name in dynid.__all__:
        assert getattr(dynid, name) is not None
        assert name in dir(dynid)


@pytest.mark.parametrize("namespace", ["terms", "controllers", "trajectories", "literature"])
def test_every_name_of_a_namespace_loads_and_is_not_at_the_top(namespace):
    place = getattr(dynid, namespace)
    assert namespace in dir(dynid)
    assert all(getattr(place, name) is not None for name in place.__all__)
    assert not set(place.__all__) & set(dynid.__all__)


def test_the_top_has_few_names():
    assert len(dynid.__all__) <= 60


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(dynid.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom)
            for alias in node.names if node.module != "dynid"}
    assert seen == dynid._MODULES


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Robbot'"):
        _ = dynid.Robbot


def test_no_public_name_hides_a_room():
    rooms = {path.stem for path in Path(dynid.__file__).parent.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not rooms & set(dynid.__all__)


def test_every_method_is_documented():
    page = (ROOT / "docs" / "methods.md").read_text()
    ours = [name for name in dynid.methods() if name != "equal-power"]  # the example of that page
    assert [name for name in ours if f"**{name}**" not in page] == []


def test_links_of_the_readme_lead_somewhere():
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text()):
            assert "://" in target or (ROOT / target).exists(), f"{page}: {target}"


def test_the_robot_file_of_the_documentation_loads(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "robots.md").read_text(), flags=re.DOTALL)
    path = tmp_path / "two-links.toml"
    path.write_text(text)
    assert dynid.Robot.load(path).joint_names == ("shoulder", "elbow")


def test_version_stands_in_one_place_and_is_cited():
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    assert f"\nversion: {dynid.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {dynid.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line) for line in lines)
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    names = {re.match(r"[A-Za-z0-9_-]+", one).group().lower().replace("_", "-") for one in wanted} - {"dynid"}
    assert names <= pinned


def test_a_package_that_is_not_installed_is_named_with_the_extra_that_brings_it(monkeypatch):
    for name in ("plotly", "plotly.subplots"):  # also where another test has imported it
        monkeypatch.setitem(sys.modules, name, None)
    with refused(DynidError, "missing-package", "plotly", "dynid[plot]"):
        optional_package("plotly.subplots", "dynid[plot]")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_states_the_size_of_the_downloads_once_and_shows_their_progress(tmp_path):
    said = subprocess.run(["make", "-n", "demo", f"VENV={tmp_path / 'new'}"], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout
    assert len(re.findall(r"about \d+ MB of packages", said)) == 1
    assert said.index("MB of packages") < said.index("pip")
    installs = [line for line in said.splitlines() if " install " in line]
    assert installs and all("--progress-bar" in line and "--quiet" not in line for line in installs)

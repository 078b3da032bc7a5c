"""The package: its public names, its version, and the example in the README."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import dynid

ROOT = Path(__file__).resolve().parents[1]


def test_every_public_name_loads():
    for name in dynid.__all__:
        assert getattr(dynid, name) is not None
        assert name in dir(dynid)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(dynid.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom)
            for alias in node.names}
    assert seen == dynid._MODULES


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Robbot'"):
        _ = dynid.Robbot


def test_the_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "91 parameters, 64 combinations" in capsys.readouterr().out
    assert names["columns"].shape == (1000, 7, 91)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_the_examples_of_the_documentation_run(page):
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(example, page.name, "exec"), {})


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

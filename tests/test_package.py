"""The package: its public names, its version, and what README and documentation show."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.cli.main import main
from dynid.recording.write import write_csv

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


def test_no_public_name_hides_a_room():
    rooms = {path.stem for path in Path(dynid.__file__).parent.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not rooms & set(dynid.__all__)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with what the README and the documentation work on: the tutorial's arm and its logs, and the logs that
    the demonstration leaves behind."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(ROOT / "docs" / "example", folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path("make_logs.py", run_name="__main__")
        robot = dynid.Robot.builtin("kuka-lwr4")
        model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb", "offset")))
        for seed, name in enumerate(("exciting", "other")):
            a, b = 0.4 * np.random.default_rng(seed).normal(size=(2, robot.dof, 5))
            t = np.arange(0.0, 20.0, 0.005)
            motion = dynid.FourierSeries(a, b, np.zeros(robot.dof), 20.0).at(t)
            tau = model.inverse_dynamics(model.parameters.nominal, motion.q, motion.dq, motion.ddq)
            write_csv(dynid.Recording(t, motion.q, tau, joints=robot.joint_names), Path("dynid-demo") / f"{name}.csv")
    return folder


@pytest.fixture
def at_desk(desk, monkeypatch):
    monkeypatch.chdir(desk)
    monkeypatch.syspath_prepend(desk)


def test_the_example_of_the_readme_runs(at_desk, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "All 64 base parameters are identified" in capsys.readouterr().out
    assert names["estimate"].diagnostics["rank"] == 64


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_the_examples_of_the_documentation_run(page, at_desk):
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(example, page.name, "exec"), {"__name__": "__main__"})


def test_the_commands_of_the_tutorial_run(at_desk, capsys):
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), flags=re.DOTALL)
    calls = [line.split()[1:] for block in blocks for line in block.splitlines() if line.startswith("dynid ")]
    assert len(calls) > 5
    for call in calls:
        with pytest.raises(SystemExit) as end:
            main(call)
        assert end.value.code == (1 if call == ["check", "arm.urdf"] else 0), capsys.readouterr().err
    assert (Path("second") / "robot.urdf").exists()


def test_the_run_file_of_the_tutorial_is_the_one_of_the_example():
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), flags=re.DOTALL)
    assert text == (ROOT / "docs" / "example" / "run.toml").read_text()


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

"""Files for other machines (workflows, container, conda) agree with the project's own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def steps(path: Path) -> list[dict[str, Any]]:
    """All steps of a workflow."""
    return [step for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_exists(path: Path) -> None:
    """Make targets, commands and extras; rights are named, and actions have a version."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["permissions"]["contents"] == "read"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    from dynid.cli.main import COMMANDS
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert re.search(r"@(v\d+|release/v\d+)$", step["uses"])
            continue
        for target in re.findall(r"\bmake ([\w-]+)", step["run"]):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
        for command in re.findall(r"^\s*dynid ([\w-]+)", step["run"], flags=re.MULTILINE):
            assert command in COMMANDS
        for extra in re.findall(r"(?:dynid|\.)\[([\w,]+)\]", step["run"]):
            assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_matrix_covers_the_versions_that_are_promised() -> None:
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["quick"]["strategy"]
    promised = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert matrix["matrix"]["python"] == promised


def test_the_conda_recipe_has_the_dependencies_and_the_version() -> None:
    import dynid
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(text)
    wanted = {re.sub(r"\s", "", one) for one in recipe["requirements"]["run"]} - {"python>=3.11"}
    assert wanted == set(PROJECT["dependencies"])
    assert recipe["context"]["version"] == dynid.__version__


def test_the_container_copies_what_exists() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (.+)$", text, flags=re.MULTILINE):
        assert all((ROOT / part).exists() for part in line.split()[:-1]), line

"""Robots of ROS packages and of the package robot_descriptions, which is replaced by a folder of the same layout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from refusals import refused

from dynid.errors import RobotError
from dynid.robot import Robot

URDF = """<robot name="one-link"><link name="base"/><link name="link"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 0 1"/></joint></robot>"""
ADDRESS = "package://one_description/urdf/one.urdf"


def write_package(folder: Path) -> None:
    """A ROS package with one robot."""
    (folder / "urdf").mkdir(parents=True)
    (folder / "urdf" / "one.urdf").write_text(URDF, encoding="utf-8")


@pytest.fixture(autouse=True)
def no_workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.mark.parametrize(("variable", "value", "place"), [
    ("ROS_PACKAGE_PATH", "ws/src", "ws/src/one_description"),
    ("ROS_PACKAGE_PATH", "ws/src/one_description", "ws/src/one_description"),
    ("AMENT_PREFIX_PATH", "install", "install/share/one_description"),
    (None, None, "one_description"),  # beside the current folder
])
def test_a_package_address_is_found(variable: str | None, value: str | None, place: str, tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path / place)
    if variable is not None and value is not None:
        monkeypatch.setenv(variable, str(tmp_path / value))
    assert Robot.load(ADDRESS).joint_names == ("hinge",)


@pytest.mark.parametrize("address", [ADDRESS, "package://one_description", "package://one_description/../a.urdf"])
def test_an_address_without_file_is_refused(address: str) -> None:
    with refused(RobotError, "package-not-found", "one_description"):
        Robot.load(address)


def test_a_name_of_robot_descriptions_is_loaded_from_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "robot_descriptions"
    write_package(tmp_path / "cache" / "one")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "one_description.py").write_text(
        f"URDF_PATH = {str(tmp_path / 'cache' / 'one' / 'urdf' / 'one.urdf')!r}", encoding="utf-8")
    (package / "odd_description.py").write_text("raise OSError('no network')", encoding="utf-8")
    for name in [name for name in sys.modules if name.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert Robot.load("one_description").joint_names == ("hinge",)
    with refused(RobotError, "description-not-found", "two_description"):
        Robot.load("two_description")
    with refused(RobotError, "description-not-found", "no network"):
        Robot.load("odd_description")
    for name in [name for name in sys.modules if name.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)


def test_without_the_package_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with refused(RobotError, "description-not-found", "pip install robot_descriptions"):
        Robot.load("panda_description")

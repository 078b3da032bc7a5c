"""Robot files beyond any machine are refused in a short sentence, soon and in little memory."""

from __future__ import annotations

import resource

import pytest
from refusals import refused

from dynid.errors import NotPossibleError, RobotError
from dynid.kernel_store import Kernel
from dynid.robot import Robot
from dynid.runs.consistency_check import inspect_robot


def chain(count: int, name: str = "chain", mass: str = "1") -> str:
    links = "".join(f"""<link name="l{i}"><inertial><mass value="{mass}"/>
        <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
        <joint name="j{i}" type="continuous"><origin xyz="0 0 0.1" rpy="1.5 0 0.3"/><parent link="l{i - 1}"/>
        <child link="l{i}"/></joint>""" for i in range(1, count + 1))
    return f'<robot name="{name}"><link name="l0"/>{links}</robot>'


def test_a_name_of_millions_of_characters(tmp_path):
    (tmp_path / "arm.urdf").write_text(chain(1, "x" * 4_000_000))
    (tmp_path / "arm.toml").write_text(f'name = "{"x" * 4_000_000}"\nconvention = "dh"\n'
                                       "[[joint]]\nalpha = 0\na = 0\nd = 0\n")
    for file in ("arm.urdf", "arm.toml"):
        with refused(RobotError, "name-too-long", "4000000", file) as problem:
            Robot.load(tmp_path / file)
        assert len(str(problem.value)) < 500


def test_a_file_larger_than_any_robot(tmp_path):
    for file in ("arm.urdf", "arm.toml"):
        with (tmp_path / file).open("wb") as to:
            to.truncate(50 << 20)
        with refused(RobotError, "unreadable-file", "32 MB", file):
            Robot.load(tmp_path / file)


@pytest.mark.parametrize("mass", ["1e308", "1e200", "2e9"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_mass_that_overflows(tmp_path, mass):
    (tmp_path / "arm.toml").write_text(f'''convention = "dh"\n[[joint]]\nalpha = 0\na = 0\nd = 0
inertia = {{mass = {mass}, com = [0.1, 0, 0], about_com = [1, 0, 0, 1, 0, 1]}}''')
    with refused(RobotError, "bad-robot", "'l1'"):
        Robot.load(chain(1, mass=mass))
    with refused(RobotError, "bad-robot" if mass == "2e9" else "not-toml", "arm.toml"):
        Robot.load(tmp_path / "arm.toml")


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "9" * 400, "x = " + "9" * 5000, "x = 1" + "0" * 30])
def test_toml_that_no_parser_likes(tmp_path, text):
    (tmp_path / "arm.toml").write_text(text)
    with refused(RobotError, "not-toml"):
        Robot.load(tmp_path / "arm.toml")


def test_three_hundred_joints_are_told_at_once(monkeypatch):
    monkeypatch.setattr(Kernel, "__call__", lambda *_: pytest.fail("the work has begun"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused(NotPossibleError, "not-possible", "300 moving joints"):
        inspect_robot(Robot.from_urdf(chain(300)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000

"""What the verdict on a file's own inertias finds, with numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robots import random_robot

from dynid.robot import Body, InertiaProblem, Robot, inertia_problems
from dynid.robot import inertia as ten
from dynid.robot.check import absurd_inertias
from dynid.robot.dh import from_dh
from dynid.robot.urdf import read_urdf


def problems_of(mass: float, com: tuple[float, float, float], moments: tuple[float, float, float]
                ) -> tuple[InertiaProblem, ...]:
    """Problems of a one-link robot with these numbers about its centre of mass."""
    numbers = ten.from_central(mass, com, np.diag(moments))
    return inertia_problems(from_dh([(0, 0, 0, 0)], inertias=[numbers]))


def test_a_good_body_has_none() -> None:
    assert problems_of(2.0, (0.1, 0, 0), (0.1, 0.2, 0.25)) == ()


@pytest.mark.parametrize("name", ["delta", "four-bar", "emps"])
def test_other_units_are_absurd_in_robots_of_closed_chains_and_single_joints(name: str) -> None:
    """The file of a single joint shows no size; the reach of closed chains is that of their tree."""
    robot = Robot.builtin(name)
    assert absurd_inertias(robot) == ()
    rows = np.array([ten.from_central(1.0, [0.1, 0, 0], np.diag([0.03, 0.04, 0.05]))] * robot.dof)
    assert absurd_inertias(robot.with_inertias(rows)) == ()
    rows[:, :6] *= 1e6  # kg mm^2
    assert {one.kind for one in absurd_inertias(robot.with_inertias(rows))} == {"size"}
    rows[:, :6] /= 1e6
    rows[:, 6:9] *= 1e3  # mm
    assert "size" in {one.kind for one in absurd_inertias(robot.with_inertias(rows))}


def test_random_bodies_have_none() -> None:
    rng = np.random.default_rng(0)
    assert all(inertia_problems(random_robot(rng, 5)) == () for _ in range(10))


def test_mass() -> None:
    (problem,) = problems_of(-2.0, (0.1, 0, 0), (0.1, 0.2, 0.25))
    assert (problem.link, problem.kind, problem.violation) == ("link1", "mass", 2.0)
    assert problem.message == "link 'link1' has the negative mass -2 kg"
    (problem,) = problems_of(0.0, (0, 0, 0), (0, 0, 0))
    assert (problem.kind, problem.violation) == ("mass", 0.0)
    assert [p.kind for p in problems_of(0.0, (0, 0, 0), (0.1, 0.1, 0.1))] == ["mass", "not-positive-definite"]


def test_not_positive_definite() -> None:
    problems = problems_of(2.0, (0.1, 0.2, 0.3), (-0.05, 0.2, 0.15))
    assert [p.kind for p in problems] == ["not-positive-definite", "triangle"]
    assert problems[0].violation == pytest.approx(0.05)
    assert "-0.05, 0.15, 0.2" in problems[0].message
    point = problems_of(2.0, (0.1, 0, 0), (0, 0, 0))
    assert [p.kind for p in point] == ["not-positive-definite"] and point[0].violation == pytest.approx(0, abs=1e-15)


def test_triangle_inequality() -> None:
    (problem,) = problems_of(2.0, (0, 0, 0.3), (0.1, 0.2, 0.35))
    assert problem.kind == "triangle" and problem.violation == pytest.approx(0.05)
    assert "'link1'" in problem.message and "0.05" in problem.message
    assert problems_of(2.0, (0, 0, 0), (0.1, 0.2, 0.3)) == ()  # a flat plate


def test_missing() -> None:
    problems = inertia_problems(from_dh([(0, 0, 0, 0), (0, 0, 0, 0)]))
    assert [(p.link, p.kind) for p in problems] == [("link1", "missing"), ("link2", "missing")]


def boxed(shape: str, origin: str, com: str) -> Robot:
    """An arm link and a hand fixed to it 1 m further; both with one collision shape; the hand's com is given."""
    inertia = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
    return read_urdf(f"""<robot name="r"><link name="base"/>
      <link name="arm"><inertial><mass value="1"/>{inertia}</inertial>
        <collision><geometry><sphere radius="0.2"/></geometry></collision></link>
      <link name="hand"><inertial><origin xyz="{com}"/><mass value="1"/>{inertia}</inertial>
        <collision>{origin}<geometry>{shape}</geometry></collision></link>
      <joint name="j" type="revolute"><parent link="base"/><child link="arm"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="f" type="fixed"><origin xyz="1 0 0" rpy="0.3 0.2 0.1"/><parent link="arm"/><child link="hand"/>
      </joint></robot>""")


QUARTER = '<origin rpy="0 1.5707963267948966 0" xyz="0 0 0"/>'  # its z axis along the link's x


@pytest.mark.parametrize(("shape", "origin", "com", "distance"), [
    ('<box size="0.2 0.4 0.6"/>', "", "0.1 0.2 0.3", 0.0),
    ('<box size="0.2 0.4 0.6"/>', "", "0.13 0.24 0.3", 0.05),
    ('<box size="0.2 0.4 0.6"/>', '<origin xyz="1 0 0"/>', "0 0 0", 0.9),
    ('<box size="0.2 0.4 0.6"/>', QUARTER, "0.35 0 0", 0.05),
    ('<sphere radius="0.1"/>', "", "0 0.15 0", 0.05),
    ('<cylinder radius="0.1" length="1"/>', "", "0 0.15 0.5", 0.05),
    ('<cylinder radius="0.1" length="1"/>', QUARTER, "0.55 0 0", 0.05),
    ('<cylinder radius="0.1" length="1"/>', QUARTER, "0 0.1 0.15", 0.05),
    ('<capsule radius="0.1" length="1"/>', "", "0 0 0.65", 0.05),
    ('<box size="0.2 0.4 0.6"/>', "", "0.1005 0 0", 0.0),  # half a millimetre: rounding
    ('<mesh filename="hand.stl"/>', "", "9 9 9", 0.0),
])
def test_centre_of_mass_outside_its_collision_box(shape: str, origin: str, com: str, distance: float) -> None:
    problems = inertia_problems(boxed(shape, origin, com))
    if distance == 0:
        assert problems == ()
    else:
        (problem,) = problems
        assert (problem.link, problem.kind) == ("hand", "centre-of-mass")
        assert problem.violation == pytest.approx(distance, abs=1e-12)
        assert "'hand'" in problem.message and "\n" not in problem.message


def test_links_are_judged_one_by_one() -> None:
    """A bad hand hides in a merged body; the verdict still names the hand. An empty tool frame is no fault."""
    robot = boxed('<sphere radius="0.2"/>', "", "0 0 0")
    body = robot.bodies[0]
    bad = replace(body.parts[1], inertia=ten.from_central(1.0, [0, 0, 0], np.diag([0.1, 0.1, 0.5])))
    empty = replace(body.parts[1], link="tip", inertia=np.zeros(10))
    merged: Body = replace(body, parts=(body.parts[0], bad, empty))
    (problem,) = inertia_problems(replace(robot, bodies=(merged,)))
    assert (problem.link, problem.kind) == ("hand", "triangle")
    assert problem.violation == pytest.approx(0.3)


def test_verdict_on_real_files(data: Callable[..., Path]) -> None:
    """FloBaRoID's identified LWR has seven links whose largest moment exceeds the sum of the others."""
    problems = inertia_problems(read_urdf(data("kuka_lwr4", "kuka_lwr4_identified.urdf")))
    assert [p.link for p in problems if p.kind == "triangle"] == [f"lwr_{i}_link" for i in range(1, 8)]
    assert [p.link for p in problems if p.kind == "centre-of-mass"] == ["lwr_7_link"]
    assert inertia_problems(read_urdf(data("models", "ur10_robot.urdf"))) == ()

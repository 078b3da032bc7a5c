"""Workspace: distances and their gradients, capsules around shapes, and geometry without sense."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from robots import gripper, random_robot

from dynid.errors import DynidError
from dynid.excitation import Capsule, HalfSpace, Workspace, box, inside_box, sphere
from dynid.excitation.limits.limit_check import is_path_free
from dynid.excitation.limits.limits_file import SpaceTable, space_notes, table_workspace
from dynid.excitation.limits.workspace import capsule_around, represent_links
from dynid.robot import BASE, Body, Robot, Shape
from dynid.robot.pose import from_xyz_rpy


def space(seed: int = 0) -> Workspace:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, prismatic=0.2)
    own = [Capsule(i, rng.normal(size=3) * 0.2, rng.normal(size=3) * 0.2, 0.05, f"part {i}") for i in range(4)]
    own.append(sphere(3, [0.1, 0, 0], 0.1, "ball"))
    return Workspace.from_robot(robot, spheres=own, obstacles=[box((1.0, 0.5, 0.2), (1.1, 0.7, 0.9), "post")],
                    planes=[HalfSpace((0.1, 0.2, 1.0), -2.0, "table")])


def test_distances_are_the_smallest_between_points_of_the_capsules() -> None:
    place = space()
    q = np.random.default_rng(1).normal(size=(12, 4))
    slack = place.slack(q)
    ends = place.ends(q)
    u = np.linspace(0, 1, 401)[:, None]
    for i in range(12):
        for k, (p, r) in enumerate(place.pairs):
            one = ends[i, p, 0] + u * (ends[i, p, 1] - ends[i, p, 0])
            two = ends[i, r, 0] + u * (ends[i, r, 1] - ends[i, r, 0])
            brute = np.linalg.norm(one[:, None] - two[None], axis=2).min()
            assert slack[i, k] == pytest.approx(brute - place.capsules[p].radius - place.capsules[r].radius, abs=2e-3)
        for k, (w, p, end) in enumerate(place.sides):
            plane = place.planes[w]
            brute = ends[i, p, end] @ plane.normal - plane.offset - place.capsules[p].radius
            assert slack[i, len(place.pairs) + k] == pytest.approx(brute, abs=1e-12)


def test_gradient_of_distances() -> None:
    place = space(2)
    rng = np.random.default_rng(3)
    count = len(place.names)
    q = rng.normal(size=(count, 4))
    columns = np.arange(count)
    slope = place.gradient(q, columns)
    for j in range(4):
        step = np.zeros_like(q)
        step[:, j] = 1e-6
        expected = (place.slack(q + step) - place.slack(q - step))[columns, columns] / 2e-6
        np.testing.assert_allclose(slope[:, j], expected, atol=1e-5)


def test_capsules_hold_the_shapes_they_are_fitted_to() -> None:
    rng = np.random.default_rng(4)
    pose = np.eye(4)
    pose[:3, 3] = 0.1, 0.2, 0.3
    for shape in (Shape("box", (0.1, 0.5, 0.2), pose), Shape("cylinder", (0.1, 0.4), pose),
                  Shape("sphere", (0.2,), pose)):
        capsule = capsule_around(shape, 0)
        points = rng.uniform(-0.5, 0.5, (2000, 3))
        if shape.kind == "box":
            points *= shape.size
        elif shape.kind == "cylinder":
            points = points[np.hypot(points[:, 0], points[:, 1]) <= 0.5] * [0.2, 0.2, 0.4]
        else:
            points = points[np.linalg.norm(points, axis=1) <= 0.5] * 0.4
        points = points + pose[:3, 3]
        along = capsule.b - capsule.a
        u = np.clip((points - capsule.a) @ along / max(along @ along, 1e-12), 0, 1)
        assert np.linalg.norm(points - capsule.a - u[:, None] * along, axis=1).max() <= capsule.radius + 1e-12


def test_collision_geometry_of_a_urdf_is_used() -> None:
    robot = random_robot(np.random.default_rng(5), 3, prismatic=0.0, branch=0.0)
    bodies = tuple(Body(b.name, b.inertia, (Shape("cylinder", (0.03, 0.2), np.eye(4), b.name),)) for b in robot.bodies)
    place = Workspace.from_robot(replace(robot, bodies=bodies))
    assert {c.name for c in place.capsules if c.body != BASE} == {"link1", "link2", "link3"}
    assert all(link.checked[0] == "shapes" for link in place.links)
    assert all(abs(a - b) > 1 for a, b in place.pairs)  # neighbours may touch
    assert len(represent_links(robot, 0.02)[0]) >= 3


def test_space_without_sense() -> None:
    robot = Robot.builtin("arm3r")
    for make, match in (
            (lambda: HalfSpace((0, 0, 0), 1.0, "floor"), ("bad-call", "'floor'", "normal")),
            (lambda: sphere(0, (0, 0, 0), -1.0, "ball"), ("bad-call", "'ball'", "radius")),
            (lambda: Workspace.from_robot(robot, spheres=[sphere(7, (0, 0, 0), 0.1, "ball")]),
             ("bad-call", "'ball'", "body 7")),
            (lambda: inside_box((0, 0, 0), (1, 1, -1)), ("bad-call", "'workspace'"))):
        assert isinstance(make, Callable)
        with refused(DynidError, *match):
            make()
    assert Workspace.from_robot(robot).capsules and BASE == -1


def arm(shapes: str = "", tool: str = "", forearm: str = "") -> str:
    """Return a URDF of an arm: a vertical joint, a shoulder 0.1 m high, an upper arm of 0.5 m, a forearm of 0.4 m."""
    mass = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    joint = ('<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="{4}"/><axis xyz="{5}"/>'
             '<limit lower="-3" upper="3" velocity="2" effort="100"/></joint>')
    return (f'<robot name="arm"><link name="base"/><link name="column">{mass}</link>'
            f'<link name="upper">{mass}{shapes}</link><link name="fore">{mass}{forearm}</link><link name="tool">{tool}'
            "</link>"
            + joint.format("turn", "revolute", "base", "column", "0 0 0.1", "0 0 1")
            + joint.format("lift", "revolute", "column", "upper", "0 0 0", "0 1 0")
            + joint.format("elbow", "revolute", "upper", "fore", "0 0 0.5", "0 1 0")
            + joint.format("mount", "fixed", "fore", "tool", "0 0 0.4", "0 0 1") + "</robot>")


def written(tmp_path: Path, text: str) -> Robot:
    file = tmp_path / "arm_description" / "urdf" / "arm.urdf"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return Robot.load(file)


def collision(shape: str, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    return f'<collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{shape}</geometry></collision>'


def ends_of(place: Workspace, name: str) -> list[list[float]]:
    return [[round(float(x), 6) for x in (c.a[2], c.b[2], c.radius)] for c in place.capsules if c.name == name]


def test_one_shape_does_not_replace_the_bodies_of_other_links() -> None:
    for tool in ("", collision('<box size="0.01 0.01 0.01"/>')):
        place = Workspace.from_robot(Robot.from_urdf(arm(tool=tool)))
        checks = {link.link: link for link in place.links}
        assert all("capsule" in link.checked for link in checks.values()) and set(checks) == {"column", "upper", "fore"}
        assert ("shapes" in checks["fore"].checked) == bool(tool)
        assert checks["upper"].radius == pytest.approx(0.05 * 0.9)  # 5 % of upper arm and forearm
        assert ends_of(place, "upper") == [[0.0, 0.5, 0.045]] and [0.0, 0.4, 0.045] in ends_of(place, "fore")
    assert {c.radius for c in Workspace.from_robot(Robot.from_urdf(arm()), radius=0.02).capsules} == {0.02}


def test_shapes_that_leave_a_gap_between_the_joints_are_completed_by_a_capsule() -> None:
    whole = arm(collision('<cylinder radius="0.05" length="0.5"/>', "0 0 0.25"))
    part = arm(collision('<cylinder radius="0.05" length="0.1"/>', "0.03 0 0.05"))
    place = Workspace.from_robot(Robot.from_urdf(whole), radius=0.04)
    assert place.links[1].checked == ("shapes",) and place.links[1].radius is None
    place = Workspace.from_robot(Robot.from_urdf(part), radius=0.04)
    assert place.links[1].checked == ("shapes", "capsule") and "gap" in place.links[1].reason
    assert [0.15, 0.5, 0.04] in ends_of(place, "upper")


@pytest.mark.parametrize("name", ["package://arm_description/meshes/link.stl", "../meshes/link.stl",
                                  "package://arm_description/meshes/link.obj", "../meshes/link.obj"])
def test_meshes_are_checked_by_their_convex_hulls(tmp_path: Path, name: str) -> None:
    trimesh = pytest.importorskip("trimesh")
    robot = written(tmp_path, arm(collision(f'<mesh filename="{name}" scale="0.001 0.001 0.001"/>', "0 0.1 0.2",
                                            "0.3 -0.4 0.5")))
    mesh = trimesh.creation.box((80.0, 60.0, 500.0))
    mesh.apply_translation([10.0, -20.0, 30.0])
    folder = tmp_path / "arm_description" / "meshes"
    folder.mkdir()
    assert Workspace.from_robot(robot).links[1].checked == ("capsule",)
    mesh.export(folder / Path(name).name)
    place = Workspace.from_robot(robot)
    assert place.links[1].checked == ("hull",)
    capsule = next(c for c in place.capsules if c.name == "upper")
    points = mesh.vertices * 1e-3 @ from_xyz_rpy((0, 0.1, 0.2), (0.3, -0.4, 0.5))[:3, :3].T + (0, 0.1, 0.2)
    along = capsule.b - capsule.a
    u = np.clip((points - capsule.a) @ along / (along @ along), 0, 1)
    assert np.linalg.norm(points - capsule.a - u[:, None] * along, axis=1).max() <= capsule.radius * (1 + 1e-6)
    assert capsule.radius < 1.05 * 0.5 * np.hypot(0.08, 0.06)  # along the mesh, not across


@pytest.mark.parametrize(("attributes", "content", "words"), [
    ('filename="none.stl"', None, "'none.stl' does not exist"),
    ('filename="package://../../a.stl"', None, "does not exist"),
    ('filename="a.stl" scale="1 x 1"', b"", "scale of mesh 'a.stl'"),
    ('filename="a.stl"', b"solid", "mesh 'a.stl' contains no triangles"),
    ('filename="a.glb"', b"glTF", "'a.glb' has an unknown format"),
    ('filename="a\x7f.stl"', None, "does not exist")])
def test_a_mesh_that_cannot_be_read_makes_its_link_a_capsule_with_the_reason(
        tmp_path: Path, attributes: str, content: bytes | None, words: str) -> None:
    robot = written(tmp_path, arm(collision(f"<mesh {attributes}/>")))
    if content is not None:
        (tmp_path / "arm_description" / "urdf" / attributes.split('"')[1]).write_bytes(content)
    link = Workspace.from_robot(robot).links[1]
    assert link.checked == ("capsule",) and words in link.reason and link.is_unread
    assert any("none.stl" in note or words in note for note in space_notes(Workspace.from_robot(robot)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_mesh_is_not_opened(tmp_path: Path) -> None:
    robot = written(tmp_path, arm(collision('<mesh filename="a.stl"/>')))
    os.mkfifo(tmp_path / "arm_description" / "urdf" / "a.stl")
    assert "does not exist" in Workspace.from_robot(robot).links[1].reason


def test_an_end_that_keeps_its_height_is_not_checked_but_every_other_end_is() -> None:
    robot = Robot.from_urdf(arm())
    for height in (0.09, 0.3):  # the shoulder is 0.1 m high and 0.045 m thick: it touches both tables
        place = Workspace.from_robot(robot, planes=[HalfSpace((0, 0, 1), height, "table")])
        checked = {(place.capsules[p].name, end) for _, p, end in place.sides}
        assert checked == {("upper", 1), ("fore", 0), ("fore", 1)}
        assert set(place.skipped) >= {f"{name} in half-space 'table'" for name in ("column", "upper")}
    # No posture is above a table that is higher than the arm can reach, so all its ends are still limits.
    place = Workspace.from_robot(robot, planes=[HalfSpace((0, 0, 1), 2.0, "table")])
    assert len(place.sides) == 3 and (place.slack(np.zeros((1, 3))) < 0).any()
    # The same holds for an obstacle which the upper arm touches in every posture.
    place = Workspace.from_robot(robot, obstacles=[sphere(BASE, (0, 0, 0.3), 0.25, "stone")])
    assert any("stone" in name for name in place.names)


def test_links_that_are_fixed_to_another_link_are_part_of_its_body() -> None:
    robot = Robot.from_urdf(arm()).lock({"elbow": 1.2})
    place = Workspace.from_robot(robot)
    corner, tip = np.array([0.0, 0.0, 0.5]), np.array([0.4 * np.sin(1.2), 0.0, 0.5 + 0.4 * np.cos(1.2)])
    ends = [np.array([c.a, c.b]) for c in place.capsules if c.name == "upper"]
    for a, b in ((np.zeros(3), corner), (corner, tip)):
        assert any(np.allclose(end, [a, b], atol=1e-9) for end in ends)


def test_a_table_is_perpendicular_to_gravity() -> None:
    down = np.array([3.0, -2.0, -8.0])
    robot = Robot.from_urdf(arm()).with_gravity(down)
    place = table_workspace(SpaceTable(table=-0.3), robot)
    assert place.planes[0].normal == pytest.approx(-down / np.linalg.norm(down)) and place.has_floor
    assert place.planes[0].offset == pytest.approx(-0.3)
    assert not Workspace.from_robot(robot, planes=[HalfSpace((1, 0, 0), -2.0, "wall")]).has_floor


def test_dependent_bodies_are_checked_with_their_derivatives() -> None:
    robot = Robot.from_urdf(gripper(3))
    assert robot.followers is not None
    place = Workspace.from_robot(robot, planes=[HalfSpace((0.3, 0.1, 1.0), -5.0, "table")], radius=1e-3)
    names = {link.link for link in place.links}
    assert names == {*robot.body_names, *robot.followers.names}
    rng = np.random.default_rng(5)
    columns = np.arange(len(place.pairs), len(place.names))
    assert {place.capsules[p].name for _, p, _ in place.sides} >= set(robot.followers.names)
    q = rng.uniform(-0.5, 0.5, (len(columns), robot.dof))
    slope = place.gradient(q, columns)
    for j in range(robot.dof):
        step = np.zeros_like(q)
        step[:, j] = 1e-6
        expected = (place.slack(q + step) - place.slack(q - step))[np.arange(len(q)), columns] / 2e-6
        np.testing.assert_allclose(slope[:, j], expected, atol=1e-6)


def test_a_path_between_free_postures_is_refused_if_it_crosses_an_obstacle() -> None:
    robot = Robot.from_urdf(arm())
    post = Capsule(BASE, np.array([0.8, 0.0, -1.0]), np.array([0.8, 0.0, 2.0]), 0.02, "post")
    place = Workspace.from_robot(robot, obstacles=[post], radius=0.02)
    q = np.array([[-0.3, 1.5, 0.0], [0.3, 1.5, 0.0]])
    assert (place.slack(q) > 0).all() and not is_path_free(place, q)
    assert is_path_free(place, q[[0, 0]]) and is_path_free(place, np.array([[-0.3, 1.5, 0.0], [-0.9, 1.5, 0.0]]))

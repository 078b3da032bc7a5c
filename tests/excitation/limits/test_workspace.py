"""Workspace: distances and their gradients, capsules around shapes, and geometry without sense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from robots import random_robot

from dynid.errors import DynidError
from dynid.excitation import Capsule, HalfSpace, Workspace, box, inside_box, sphere
from dynid.excitation.limits.workspace import capsule_around, represent_links
from dynid.robot import BASE, Body, Robot, Shape


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

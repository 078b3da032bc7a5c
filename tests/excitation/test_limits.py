"""Limits: distances and their gradients, the dense check, and sentences where limits exclude each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from robots import random_robot

from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import Capsule, FourierSeries, HalfSpace, Limits, Space, box, check, excite, inside_box, sphere
from dynid.excitation.qp import solve_qp
from dynid.excitation.space import fitted, skeleton
from dynid.model import Model
from dynid.robot import BASE, Body, Robot, Shape


def space(seed: int = 0) -> Space:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, prismatic=0.2)
    own = [Capsule(i, rng.normal(size=3) * 0.2, rng.normal(size=3) * 0.2, 0.05, f"part {i}") for i in range(4)]
    own.append(sphere(3, [0.1, 0, 0], 0.1, "ball"))
    return Space.of(robot, spheres=own, obstacles=[box((1.0, 0.5, 0.2), (1.1, 0.7, 0.9), "post")],
                    planes=[HalfSpace((0.1, 0.2, 1.0), -2.0, "table")])


def test_distances_are_the_smallest_between_points_of_the_capsules() -> None:
    place = space()
    q = np.random.default_rng(1).normal(size=(12, 4))
    slack = place.slack(q)
    ends, _ = place.ends(q)
    u = np.linspace(0, 1, 401)[:, None]
    for i in range(12):
        for k, (p, r) in enumerate(place.pairs):
            one = ends[i, p, 0] + u * (ends[i, p, 1] - ends[i, p, 0])
            two = ends[i, r, 0] + u * (ends[i, r, 1] - ends[i, r, 0])
            brute = np.linalg.norm(one[:, None] - two[None], axis=2).min()
            assert slack[i, k] == pytest.approx(brute - place.capsules[p].radius - place.capsules[r].radius, abs=2e-3)
        for k, (w, p) in enumerate(place.sides):
            plane = place.planes[w]
            brute = (ends[i, p] @ plane.normal).min() - plane.offset - place.capsules[p].radius
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
        capsule = fitted(shape, 0)
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
    place = Space.of(replace(robot, bodies=bodies))
    assert [c.name for c in place.capsules] == ["link1", "link2", "link3"]
    assert all(abs(a - b) > 1 for a, b in place.pairs)  # neighbours may touch
    assert len(skeleton(robot, 0.02)) >= 3


def test_check_sees_what_happens_between_samples() -> None:
    none = np.full(1, np.inf)
    bounds = Limits(lower=-none, upper=none, velocity=none, acceleration=none, jerk=none, torque=none, names=("a",))
    swing = FourierSeries([[0.0] * 7 + [2 * np.pi * 8 / 5]], [[0.0] * 8], [0.0], 5.0)  # sin(2 pi 8 t / 5), peak 1
    for points in (41, 57, 200):  # 41 points meet zeros only
        report = check(swing, replace(bounds, upper=[0.98]), points=points)
        assert not report.ok
        assert report.violated[0].kind == "position" and report.violated[0].bound == pytest.approx(0.98)
    assert check(swing, replace(bounds, lower=[-1.001], upper=[1.001]), points=5000).ok


def test_check_adds_the_way_between_samples_to_distances() -> None:
    robot = Robot.builtin("arm3r")
    wall = Space.of(robot, radius=0.02, planes=[HalfSpace((-1.0, 0, 0), -0.3, "wall")])
    bounds = Limits.of(robot, space=wall, torque=np.inf)
    swing = FourierSeries(np.array([[1.0], [0.5], [0.3]]), np.zeros((3, 1)), np.zeros(3), 4.0)
    coarse = {u.where: u.value for u in check(swing, bounds, points=150).usages if u.kind == "space"}
    fine = {u.where: u.value for u in check(swing, bounds, points=40000).usages if u.kind == "space"}
    assert coarse.keys() == fine.keys() and any("wall" in name for name in fine)
    for name in fine:
        assert coarse[name] <= fine[name] + 1e-9


def test_quadratic_programmes_against_the_conditions_of_optimality() -> None:
    rng = np.random.default_rng(6)
    for n, m in ((3, 5), (12, 40), (30, 100)):
        a = rng.normal(size=(n, n))
        H, g = a @ a.T + np.eye(n), 5 * rng.normal(size=n)
        rows, bounds = rng.normal(size=(m, n)), rng.uniform(0.0, 0.5, m)
        x, solved = solve_qp(H, g, rows, bounds, 1e-10, 1000)
        assert solved and (rows @ x - bounds).max() < 1e-8
        active = bounds - rows @ x < 1e-7
        multipliers, *_ = np.linalg.lstsq(rows[active].T, -(H @ x + g), rcond=None)
        assert multipliers.min() > -1e-7
        np.testing.assert_allclose(rows[active].T @ multipliers, -(H @ x + g), atol=1e-6)
    _, solved = solve_qp(np.eye(1), np.zeros(1), np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]), 1e-10, 100)
    assert not solved  # x <= -1 and x >= 1


# -- limits that exclude each other ----------------------------------------------------------------
ARM = "arm3r"


def contradiction(match: str, kind: str = "fourier", error: type[DynidError] = NotPossibleError,
                  **given: object) -> None:
    options = {k: given.pop(k) for k in ("duration", "harmonics") if k in given}
    robot = Robot.builtin(ARM)
    with pytest.raises(error, match=match):
        excite(Model(robot), Limits.of(robot, **given), kind=kind, budget=None, rounds=1, **options)


def test_too_short_for_the_way() -> None:
    contradiction("no bspline motion takes joint 'joint1' from -2.5 to 2.5 in 2 s inside its velocity limit 2.175:",
                  "bspline", start=[-2.5, 0, 0], end=[2.5, 0, 0], duration=2.0)


def test_bandwidth_below_the_period() -> None:
    contradiction("leaves no harmonic of a period of 4 s", bandwidth=0.1, duration=4.0)


def test_first_posture_in_the_wall() -> None:
    robot = Robot.builtin(ARM)
    wall = Space.of(robot, radius=0.02, planes=[HalfSpace((-1.0, 0, 0), -0.1, "wall")])
    contradiction("first posture already violates a limit, .* in half-space 'wall'", start=[0.0, 0.0, 0.0], space=wall)


def test_nowhere_to_be() -> None:
    robot = Robot.builtin(ARM)
    planes = inside_box((-0.02, -0.02, -5.0), (0.02, 0.02, 5.0), "chimney")
    tight = Space.of(robot, radius=0.03, planes=planes)
    tight = replace(tight, sides=np.array([(w, p) for w in range(len(planes)) for p in range(len(tight.capsules))]))
    contradiction("no posture inside the joints' ranges was found .* 'chimney", space=tight)


def test_gravity_alone_is_too_much() -> None:
    contradiction("no posture .* the torque limit 1e-06 of joint", torque=1e-6, lower=[-0.1, 0.2, 0.2],
                  upper=[0.1, 0.3, 0.3])


def test_nothing_bounds_a_joint() -> None:
    contradiction("joint 'joint1' has neither a range nor a limit", error=DynidError, lower=-np.inf, upper=np.inf,
                  velocity=np.inf, acceleration=np.inf)


@pytest.mark.parametrize(("given", "match"), [
    ({"velocity": [1.0, 0.0, 1.0]}, "velocity limit of joint 'joint2' must be above zero"),
    ({"lower": [0.0, 1.0, 0.0], "upper": [1.0, 0.5, 1.0]}, "joint 'joint2' cannot move between 1 and 0.5"),
    ({"start": [9.0, 0.0, 0.0]}, "start posture puts joint 'joint1' at 9"),
    ({"bandwidth": 0.0}, "bandwidth must be above zero"),
    ({"speed": 1.0}, "no limit 'speed'"),
])
def test_limits_without_sense(given: dict, match: str) -> None:
    with pytest.raises(DynidError, match=match):
        Limits.of(Robot.builtin(ARM), **given)


def test_space_without_sense() -> None:
    robot = Robot.builtin(ARM)
    for make, match in (
            (lambda: HalfSpace((0, 0, 0), 1.0, "floor"), "half-space 'floor' needs a normal"),
            (lambda: sphere(0, (0, 0, 0), -1.0, "ball"), "capsule 'ball' needs a radius"),
            (lambda: Space.of(robot, spheres=[sphere(7, (0, 0, 0), 0.1, "ball")]), "capsule 'ball' is on body 7"),
            (lambda: inside_box((0, 0, 0), (1, 1, -1)), "box 'workspace' needs three lower numbers")):
        assert isinstance(make, Callable)
        with pytest.raises(DynidError, match=match):
            make()
    assert Space.of(robot).capsules and BASE == -1

"""The built-in robots against the files and tables their numbers come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from robots import frame_pose, to_pinocchio

from dynid.robot import Robot, builtin_names, inertia_problems
from dynid.robot import inertia as ten
from dynid.robot.urdf import read_urdf


def reference(data: Callable[..., Path], robot: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(data("models", "reference_parameters.json").read_text())[robot]
    return table


def torques(robot: Robot, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    model = to_pinocchio(robot)
    return np.asarray(pin.rnea(model, model.createData(), q, dq, ddq))


def assert_same_torques(ours: Robot, theirs: Robot, shift: np.ndarray | float = 0.0, rtol: float = 1e-9) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, dq, ddq = rng.uniform(-3, 3, (3, ours.dof))
        np.testing.assert_allclose(torques(ours, q, dq, ddq), torques(theirs, q + shift, dq, ddq), rtol=rtol, atol=rtol)


def test_every_file_is_whole() -> None:
    for name in builtin_names():
        robot = Robot.builtin(name)
        assert not robot.bodies_without_inertia and robot.terms
        known = {f"{stem}{j}" for stem in ("Ia", "Fv", "Fc", "Fo", "Iam", "Fvm", "Fcm", "Fom") for j in range(1, 8)}
        assert set(robot.values) <= known
        if robot.followers is not None:  # a closed chain
            assert not robot.followers.tree.bodies_without_inertia
            continue
        assert robot.serial
        model = to_pinocchio(robot)
        assert model.nv == robot.dof


def test_panda_is_the_urdf_of_the_same_numbers(data: Callable[..., Path]) -> None:
    robot, urdf = Robot.builtin("franka-panda"), read_urdf(data("panda", "panda_arm.urdf"))
    q = np.random.default_rng(0).uniform(-2, 2, 7)
    np.testing.assert_allclose(frame_pose(robot, "tool", q), frame_pose(urdf, "panda_link8", q), atol=1e-11)
    assert_same_torques(robot, urdf, rtol=1e-7)
    table = reference(data, "panda_gaz2019")
    mass, com, central = ten.to_central(robot.inertias)
    np.testing.assert_allclose(mass, table["m"])
    np.testing.assert_allclose(com, table["com"])
    np.testing.assert_allclose(ten.entries(central), table["I_com"], atol=1e-15)
    # The file's position and speed limits are wider; Simionato, table 3.3, has the same as the documentation.
    np.testing.assert_allclose(robot.limit("upper")[:3], [2.8973, 1.7628, 2.8973])
    np.testing.assert_allclose(robot.limit("velocity")[:3], 2.1750)
    np.testing.assert_allclose(robot.limit("acceleration")[:3], [15, 7.5, 10])
    np.testing.assert_allclose(robot.limit("effort"), urdf.limit("effort"))
    assert urdf.limit("acceleration").tolist() == [15, 7.5, 12.5, 12.5, 15, 20, 20]


def test_ur10_is_the_urdf_in_dh_frames(data: Callable[..., Path]) -> None:
    robot, urdf = Robot.builtin("ur10"), read_urdf(data("models", "ur10_robot.urdf"))
    q = np.random.default_rng(0).uniform(-3, 3, 6)
    np.testing.assert_allclose(frame_pose(robot, "wrist_3_link", q), frame_pose(urdf, "tool0", q), atol=1e-10)
    assert_same_torques(robot, urdf, rtol=1e-8)
    assert robot.joint_names == urdf.joint_names and robot.body_names == urdf.body_names
    for which in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_allclose(robot.limit(which), urdf.limit(which), rtol=1e-10)
    assert not inertia_problems(robot)


def test_tx40_is_the_urdf_with_the_offsets_of_its_controller(data: Callable[..., Path]) -> None:
    robot, urdf = Robot.builtin("staubli-tx40"), read_urdf(data("tx40", "tx40_mdh_modified.urdf"))
    q = np.random.default_rng(0).uniform(-2, 2, 6)
    shift = np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    for link, theirs in zip(robot.body_names, urdf.body_names, strict=True):
        np.testing.assert_allclose(frame_pose(robot, link, q), frame_pose(urdf, theirs, q + shift), atol=1e-10)
    table = reference(data, "tx40_birdy_simulation_truth")
    np.testing.assert_allclose(robot.inertias[:, :6], table["I_dh"])
    np.testing.assert_allclose(robot.inertias[:, 6:9], table["first_moment"])
    np.testing.assert_allclose(robot.inertias[:, 9], table["m"])
    for stem in ("Ia", "Fv", "Fc"):
        np.testing.assert_allclose([robot.values[f"{stem}{j}"] for j in range(1, 7)], table[stem])
    assert robot.terms[-1] == {"kind": "coupled-wrist", "joints": [5, 6]}
    assert not inertia_problems(robot)


def test_puma_has_both_directions_of_friction_and_its_table(data: Callable[..., Path]) -> None:
    robot, table = Robot.builtin("puma560"), reference(data, "puma560_armstrong1986")
    gear = np.array(table["G"])
    value = {stem: np.array([robot.values[f"{stem}{j}"] for j in range(1, 7)]) for stem in ("Ia", "Fv", "Fc", "Fo")}
    np.testing.assert_allclose(value["Ia"], gear**2 * table["Jm"], rtol=1e-5)
    np.testing.assert_allclose(value["Fv"], gear**2 * table["B"], rtol=1e-5)
    both = np.abs(gear)[:, None] * np.array(table["Tc"])
    ours = np.stack([value["Fo"] + value["Fc"], value["Fo"] - value["Fc"]], axis=1)
    np.testing.assert_allclose(ours, both, rtol=1e-4)
    pose = np.eye(4)
    for alpha, a, d in zip(table["alpha"], table["a"], table["d"], strict=True):
        c, s = np.cos(alpha), np.sin(alpha)
        pose = pose @ np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, d], [0, 0, 0, 1]])
    np.testing.assert_allclose(frame_pose(robot, "link6", np.zeros(6)), pose, atol=1e-12)
    mass, com, central = ten.to_central(robot.inertias[1:])
    np.testing.assert_allclose(mass, table["m"][1:])
    np.testing.assert_allclose(com, table["r"][1:])
    np.testing.assert_allclose(ten.entries(central), np.array(table["I"])[1:, [0, 3, 5, 1, 4, 2]], atol=1e-15)


def test_lwr_stands_as_its_urdf_does(data: Callable[..., Path]) -> None:
    """Same chain: shoulder 0.4 m from elbow, elbow 0.39 m from wrist; the URDF's base is elsewhere."""
    robot, urdf = Robot.builtin("kuka-lwr4"), read_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
    q = np.random.default_rng(0).uniform(-1, 1, 7)
    shoulder, elbow, wrist = (frame_pose(robot, f"link{i}", q)[:3, 3] for i in (1, 3, 5))
    assert np.linalg.norm(elbow - shoulder) == pytest.approx(0.4)
    assert np.linalg.norm(wrist - elbow) == pytest.approx(0.39)
    theirs = [frame_pose(urdf, f"lwr_{i}_link", q)[:3, 3] for i in (2, 4, 6)]
    assert np.linalg.norm(theirs[1] - theirs[0]) == pytest.approx(0.4, abs=1e-6)
    assert np.linalg.norm(theirs[2] - theirs[1]) == pytest.approx(0.39, abs=1e-6)


def test_iiwa_reaches_what_its_data_sheet_says() -> None:
    """Upright, the flange of an iiwa 14 stands 0.36 + 0.42 + 0.40 + 0.126 m above the floor."""
    robot = Robot.builtin("kuka-iiwa14")
    np.testing.assert_allclose(frame_pose(robot, "tool", np.zeros(7))[:3, 3], [0, 0, 1.306], atol=1e-12)


def test_wam_reaches_what_its_maker_says() -> None:
    """Upright, the wrist plate stands 0.55 + 0.30 + 0.06 m above the shoulder."""
    robot = Robot.builtin("barrett-wam")
    np.testing.assert_allclose(frame_pose(robot, "link7", np.zeros(7))[:3, 3], [0, 0, 0.91], atol=1e-12)
    assert not inertia_problems(robot)
    coupling = np.array(robot.terms[-1]["coupling"])
    assert coupling.shape == (7, 7)
    np.testing.assert_allclose(coupling[1:3, 1:3], [[1, -1], [-1 / 1.68, -1 / 1.68]])


def test_scara_follows_its_closed_form() -> None:
    """Janot, Vandanjon, Gautier, eq. 53 with the parameters of table 1."""
    robot = Robot.builtin("scara2")
    zz1, zz2, lmx, lmy = 3.44, 0.062, 0.121, 0.007
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, (v1, v2), (a1, a2) = rng.uniform(-3, 3, 2), rng.uniform(-3, 3, 2), rng.uniform(-3, 3, 2)
        c, s = np.cos(q[1]), np.sin(q[1])
        first = (zz1 * a1 + zz2 * (a1 + a2) + lmx * ((2 * a1 + a2) * c - v2 * (2 * v1 + v2) * s)
                 + lmy * (-(2 * a1 + a2) * s - v2 * (2 * v1 + v2) * c))
        second = zz2 * (a1 + a2) + lmx * (a1 * c + v1**2 * s) + lmy * (v1**2 * c - a1 * s)
        tau = torques(robot, q, np.array([v1, v2]), np.array([a1, a2]))
        np.testing.assert_allclose(tau, [first, second], rtol=1e-12)
    assert not inertia_problems(robot)


def test_emps_is_a_mass_on_a_level_rail(data: Callable[..., Path]) -> None:
    robot, table = Robot.builtin("emps"), reference(data, "emps")
    tau = torques(robot, np.array([0.1]), np.array([0.2]), np.array([2.0]))
    np.testing.assert_allclose(tau, [2.0 * table["M"]], rtol=1e-12)
    assert robot.values == {"Fv1": table["Fv"], "Fc1": table["Fc"], "Fo1": table["offset"]}


def test_limits_are_those_of_the_sources() -> None:
    """Barrett's manual D1001, table 6 (rad); KUKA's axis table (degrees, degrees/s, N m); Wang, Chen 1991 (degrees);
    Simionato, tables 3.3 and 3.5 (rad, rad/s, rad/s^2)."""
    three, lwr = Robot.builtin("arm3r"), Robot.builtin("kuka-lwr4")
    np.testing.assert_allclose(three.limit("upper"), [2.8973, 1.7628, 2.8973])
    np.testing.assert_allclose(three.limit("velocity"), 2.1750)
    np.testing.assert_allclose(three.limit("acceleration"), [15, 7.5, 10])
    np.testing.assert_allclose(lwr.limit("upper"), [2.9670, 2.0943, 2.9670, 2.0943, 2.9670, 2.0943, 2.9670])
    np.testing.assert_allclose(lwr.limit("velocity"), [1.7453, 1.9199, 1.7453, 2.2689, 2.2689, 3.1416, 3.1416])
    np.testing.assert_allclose(lwr.limit("acceleration"), 5.236)
    wam, iiwa, puma = (Robot.builtin(name) for name in ("barrett-wam", "kuka-iiwa14", "puma560"))
    np.testing.assert_allclose(wam.limit("upper"), [2.6, 2.0, 2.8, 3.1, 1.24, 1.6, 3.0])
    np.testing.assert_allclose(wam.limit("lower"), [-2.6, -2.0, -2.8, -0.9, -4.76, -1.6, -3.0])
    np.testing.assert_allclose(np.rad2deg(iiwa.limit("upper")), [170, 120, 170, 120, 170, 120, 175])
    np.testing.assert_allclose(np.rad2deg(iiwa.limit("velocity")), [85, 85, 100, 75, 130, 135, 135])
    np.testing.assert_allclose(iiwa.limit("effort"), [320, 320, 176, 176, 110, 40, 40])
    np.testing.assert_allclose(np.rad2deg(puma.limit("lower")), [-160, -45, -225, -110, -100, -266])
    np.testing.assert_allclose(np.rad2deg(puma.limit("upper")), [160, 225, 45, 170, 100, 266])

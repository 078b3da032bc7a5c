"""Mimic joints against Pinocchio's own treatment of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from motions import fourier
from refusals import refused
from robots import gripper, random_inertia

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.estimate import Problem, identify
from dynid.model import Model, RotorInertia, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.robot.write_mjcf import to_mjcf
from dynid.robot.write_urdf import urdf_with_inertias


def states(rng: np.random.Generator, dof: int = 3, count: int = 6) -> Any:
    return rng.normal(size=(3, count, dof))


FOLLOW = {"left": ("right", -1.5, 0.01), "knuckle": ("right", -3.0, 0.02), "thumb": ("wrist", 0.5, -0.2)}


def twin_torques(text: str, names: tuple[str, ...], q: Array, dq: Array, ddq: Array,
                 follow: dict[str, tuple[str, float, float]] = FOLLOW) -> Array:
    """Pinocchio's with every joint free, moved as the followers move; what they take adds to whom they follow."""
    model = pin.buildModelFromXML(text)
    data, found = model.createData(), []
    couple, start = np.zeros((model.nv, len(names))), np.zeros(model.nv)
    for name in list(model.names)[1:]:
        other, multiplier, offset = follow.get(name, (name, 1.0, 0.0))
        row = model.joints[model.getJointId(name)].idx_v
        couple[row, names.index(other)], start[row] = multiplier, offset
    for row in range(len(q)):
        found.append(couple.T @ pin.rnea(model, data, couple @ q[row] + start, couple @ dq[row], couple @ ddq[row]))
    return np.array(found)


def test_pinocchios_own_mimic_joints() -> None:
    """It knows them without chains, and behind the joint they follow."""
    chained, direct = '<mimic joint="left" multiplier="2"/>', '<mimic joint="right" multiplier="-3" offset="0.02"/>'
    text = gripper().replace(chained, direct).replace('"left"', '"z_left"')
    model, robot = pin.buildModelFromXML(text, True), Robot.from_urdf(text)
    assert model.nv == robot.dof == 3
    order = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    theta, data = Model(robot).parameters.nominal, model.createData()
    for q, dq, ddq in np.random.default_rng(5).normal(size=(5, 3, 3)):
        theirs = pin.rnea(model, data, *(row[np.argsort(order)] for row in (q, dq, ddq)))[order]
        np.testing.assert_allclose(Model(robot).inverse_dynamics(theta, q, dq, ddq), theirs, atol=1e-10)


def test_torques_regressor_and_inertia_matrix_are_pinocchios() -> None:
    text, rng = gripper(), np.random.default_rng(1)
    robot = Robot.from_urdf(text)
    assert robot.joint_names == ("arm", "wrist", "right") and robot.followers is not None
    assert set(robot.followers.names) == {"l4", "l5", "l6"} and robot.warnings == ()
    model = Model(robot)
    theta = model.parameters.vector(model.parameters.nominal)
    assert len(theta) == 60
    q, dq, ddq = states(rng)
    theirs = twin_torques(text, robot.joint_names, q, dq, ddq)
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), theirs, atol=1e-10)
    np.testing.assert_allclose(model.regressor(q, dq, ddq) @ theta, theirs, atol=1e-10)
    still = np.zeros_like(q)
    for k, unit in enumerate(np.eye(3)):
        column = (twin_torques(text, robot.joint_names, q, still, still + unit)
                  - twin_torques(text, robot.joint_names, q, still, still))
        np.testing.assert_allclose(model.inertia_matrix(theta, q)[:, :, k], column, atol=1e-10)
    upside = robot.with_gravity((0.0, 0.0, 9.81))
    both = Model(upside).inverse_dynamics(theta, q, still, still) + model.inverse_dynamics(theta, q, still, still)
    np.testing.assert_allclose(both, 0.0, atol=1e-12)


def test_a_log_of_the_free_joints_identifies_what_follows() -> None:
    robot = Robot.from_urdf(gripper())
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    truth = np.array([0.3 if one.nominal is None else one.nominal for one in model.parameters])
    q, dq, ddq = fourier(3, seconds=20.0)
    tau = model.inverse_dynamics(truth, q, dq, ddq) + 1e-4 * np.random.default_rng(0).normal(size=q.shape)
    found = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), method="wls")
    assert np.all(np.abs(found.values - base_parameters(model).reduce(truth)) < 5 * found.std)
    assert any(name.endswith(("4", "4R", "5", "5R", "6", "6R")) for name in found.names)
    full = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), method="pc-wls")
    np.testing.assert_allclose(full.predict(q, dq, ddq), tau, atol=2e-3)


def test_files_that_are_written_move_the_same(tmp_path: Path) -> None:
    text, rng = gripper(), np.random.default_rng(2)
    robot = Robot.from_urdf(text)
    model = Model(robot)
    theta = np.concatenate([random_inertia(rng) for _ in range(6)])
    q, dq, ddq = states(rng)
    ours = model.inverse_dynamics(theta, q, dq, ddq)
    written = urdf_with_inertias(text, robot, theta.reshape(6, 10))
    np.testing.assert_allclose(twin_torques(written, robot.joint_names, q, dq, ddq), ours, atol=1e-9)
    machine = mujoco.MjModel.from_xml_string(to_mjcf(robot, theta.reshape(6, 10)))
    assert machine.neq == 3 and machine.nv == 6
    machine.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, following = mujoco.MjData(machine), robot.followers
    assert following is not None
    order = [machine.joint(name).dofadr[0] for name in following.tree.joint_names]
    for row in range(len(q)):
        for target, value in ((data.qpos, following.coupling @ q[row] + following.offset),
                              (data.qvel, following.coupling @ dq[row]), (data.qacc, following.coupling @ ddq[row])):
            target[order] = value
        mujoco.mj_inverse(machine, data)
        np.testing.assert_allclose(following.coupling.T @ data.qfrc_inverse[order], ours[row], atol=1e-9)


@pytest.mark.parametrize("at", [{"right": 0.02}, {"arm": 0.4}, {"knuckle": 0.1}, {"wrist": 0.3, "right": 0.02}])
def test_locked_joints_take_those_that_follow_along(at: dict[str, float]) -> None:
    text, rng = gripper(), np.random.default_rng(3)
    robot = Robot.from_urdf(text)
    part = robot.lock(at)
    model = Model(part)
    q, dq, ddq = states(rng, part.dof)
    theta = model.parameters.vector(model.parameters.nominal)
    full = np.zeros((3, len(q), 3))
    for k, values in enumerate((q, dq, ddq)):
        full[k][:, [robot.joint_index(name) for name in part.joint_names]] = values
    for name, position in at.items():
        if name in robot.joint_names:
            full[0][:, robot.joint_index(name)] = position
    follow = {**FOLLOW, **({"knuckle": ("right", 0.0, at["knuckle"])} if "knuckle" in at else {})}
    kept = [robot.joint_index(name) for name in part.joint_names]
    theirs = twin_torques(text, robot.joint_names, *full, follow)[:, kept]
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), theirs, atol=1e-9)
    again = urdf_with_inertias(text, part, np.array([*(body.inertia for body in part.bodies)]))
    assert Robot.from_urdf(again).joint_names == part.joint_names


def chain(*inside: str) -> str:
    """Links one after the other, joints a, b, .. with these elements in them."""
    joints = "".join(f'<joint name="{"abc"[i]}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>'
                     f'<axis xyz="0 0 1"/>{one}</joint>' for i, one in enumerate(inside))
    links = "".join(f'<link name="l{i}"/>' for i in range(len(inside) + 1))
    return f'<robot name="r">{links}{joints}</robot>'


def test_a_follower_that_carries_a_free_joint_moves_it() -> None:
    """left follows right and carries wrist, which moves by itself."""
    links, rng = ("l0", "l1", "l2", "l3"), np.random.default_rng(6)
    inertias = "".join(_link(name, random_inertia(rng)) for name in links[1:])
    mimic = '<mimic joint="right" multiplier="-1.5" offset="0.3"/>'
    limit = '<limit lower="-9" upper="9" velocity="9" effort="9"/>'
    joints = "".join(
        f'<joint name="{name}" type="revolute">{limit}<parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0.1 0.2 {0.1 * i}" rpy="0.4 {0.3 * i} 0.2"/><axis xyz="0 0 1"/>{inside}</joint>'
        for i, (name, inside) in enumerate((("right", ""), ("left", mimic), ("wrist", ""))))
    text = f'<robot name="r"><link name="l0"/>{inertias}{joints}</robot>'
    robot = Robot.from_urdf(text)
    assert robot.joint_names == ("right", "wrist") and robot.warnings == () and robot.locked == {}
    model = Model(robot)
    q, dq, ddq = states(rng, 2)
    theirs = twin_torques(text, robot.joint_names, q, dq, ddq, {"left": ("right", -1.5, 0.3)})
    theta = model.parameters.nominal
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), theirs, atol=1e-10)
    np.testing.assert_allclose(model.regressor(q, dq, ddq) @ theta, theirs, atol=1e-10)
    np.testing.assert_allclose(dynamics.inverse_dynamics(robot, None, q, dq, ddq), theirs, atol=1e-10)
    np.testing.assert_allclose(model.forward_dynamics(theta, q, dq, theirs), ddq, atol=1e-8)


def _link(name: str, numbers: Array) -> str:
    mass, com, full = ten.to_mujoco(numbers)
    xx, yy, zz, xy, xz, yz = full
    return (f'<link name="{name}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{mass}"/>'
            f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/></inertial></link>')


@pytest.mark.parametrize(("mimic", "message"), [
    ('<mimic joint="nobody"/>', ("bad-robot", "'nobody'")),
    ("<mimic/>", ("bad-robot", "<mimic>", "'b'")),
    ('<mimic joint="b"/>', ("bad-robot", "'b' mimics 'b'")),
    ('<mimic joint="a" multiplier="x"/>', ("not-a-number", "'multiplier'", '"x"')),
])
def test_refusals(mimic: str, message: tuple[str, ...]) -> None:
    with refused(RobotError, *message):
        Robot.from_urdf(chain("", mimic))


def test_terms_of_joints_know_only_the_free_ones() -> None:
    robot = Robot.from_urdf(gripper())
    model = Model(robot, (*make_terms(robot, friction=("coulomb",)), RotorInertia()))
    assert [one.name for one in model.parameters if one.body is None] == ["Fc1", "Ia1", "Fc2", "Ia2", "Fc3", "Ia3"]

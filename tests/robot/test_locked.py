"""Locked joints against Pinocchio's reduced models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import exact_text, random_inertia, random_robot, to_pinocchio

from dynid import dynamics
from dynid.errors import RobotError
from dynid.model import Model, Payload, RigidBodies
from dynid.robot import BASE, Robot
from dynid.robot.pose import from_xyz_rpy, to_rpy
from dynid.robot.write_urdf import urdf_with_inertias


def reduced(model: Any, positions: dict[str, float]) -> Any:
    start = pin.neutral(model)
    for name, position in positions.items():
        joint = model.joints[model.getJointId(name)]
        start[joint.idx_q:joint.idx_q + joint.nq] = ([position] if joint.nq == 1
                                                     else [np.cos(position), np.sin(position)])
    return pin.buildReducedModel(model, [model.getJointId(name) for name in positions], start)


def torques(model: Any, names: tuple[str, ...], q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Pinocchio's (samples, joints), joints by name."""
    data, places = model.createData(), [model.joints[model.getJointId(name)] for name in names]
    speeds, found = [joint.idx_v for joint in places], []
    for row in range(len(q)):
        configuration, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for joint, angle in zip(places, q[row], strict=True):
            configuration[joint.idx_q:joint.idx_q + joint.nq] = ([angle] if joint.nq == 1
                                                                 else [np.cos(angle), np.sin(angle)])
        v[speeds], a[speeds] = dq[row], ddq[row]
        found.append(pin.rnea(model, data, configuration, v, a)[speeds])
    return np.array(found)


@pytest.mark.parametrize("file", ["models/kinova_jaco.urdf", "panda/panda_arm.urdf", "models/ur5_robot.urdf"])
def test_files_with_locked_joints(data: Callable[..., Path], file: str, tmp_path: Path) -> None:
    path, rng = data(*file.split("/")), np.random.default_rng(0)
    whole = Robot.load(path)
    names = [whole.joint_names[i] for i in (1, 2, whole.dof - 1)]
    positions = dict(zip(names, (0.4, -0.7, 0.02), strict=True))
    robot = whole.lock(positions)
    assert robot.joint_names == tuple(name for name in whole.joint_names if name not in positions)
    assert robot.locked == positions and robot.source_joints == whole.joint_names
    twin = reduced(pin.buildModelFromXML(exact_text(path.read_text())), positions)
    q, dq, ddq = rng.normal(size=(3, 8, robot.dof))
    twin.gravity.linear = robot.gravity
    ours = dynamics.inverse_dynamics(robot, robot.inertias, q, dq, ddq)
    np.testing.assert_allclose(ours, torques(twin, robot.joint_names, q, dq, ddq), atol=1e-10)
    inertias = np.array([random_inertia(rng) for _ in range(robot.dof)])
    said: list[str] = []
    text = urdf_with_inertias(path.read_text(), robot, inertias, add_note=said.append)
    written = pin.buildModelFromXML(exact_text(text))
    assert sorted(list(written.names)[1:]) == sorted(robot.joint_names)
    ours = dynamics.inverse_dynamics(robot, inertias, q, dq, ddq)
    np.testing.assert_allclose(ours, torques(written, robot.joint_names, q, dq, ddq), atol=1e-9)
    assert sum("is fixed at" in one for one in said) == 3


@pytest.mark.parametrize("seed", range(10))
def test_random_trees_with_locked_joints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = random_robot(rng, 7)
    positions = {name: float(rng.normal()) for name in rng.choice(whole.joint_names, 3, replace=False)}
    robot = whole.lock(positions)
    full = np.zeros((3, 5, 7))
    kept = [whole.joint_index(name) for name in robot.joint_names]
    full[:, :, kept] = rng.normal(size=(3, 5, 4))
    for name, position in positions.items():
        full[0, :, whole.joint_index(name)] = position
    ours = dynamics.inverse_dynamics(robot, robot.inertias, *np.ascontiguousarray(full[:, :, kept]))
    model = to_pinocchio(whole)
    np.testing.assert_allclose(ours, [pin.rnea(model, model.createData(), *row)[kept]
                                      - (model.armature * row[2])[kept] for row in full.transpose(1, 0, 2)], atol=1e-9)
    for frame in robot.frames:
        assert frame.body == BASE or frame.body < robot.dof


def test_values_and_terms_follow_their_joints() -> None:
    robot = Robot.builtin("puma560")
    less = robot.lock({robot.joint_names[1]: 0.3})
    assert less.values["Ia2"] == robot.values["Ia3"] and "Ia6" not in less.values
    assert [term["kind"] for term in less.terms] == [term["kind"] for term in robot.terms]


def test_only() -> None:
    robot = Robot.builtin("kuka-iiwa14")
    few = robot.only(robot.joint_names[:3], {robot.joint_names[4]: 0.5})
    assert few.joint_names == robot.joint_names[:3]
    assert few.locked == {robot.joint_names[i]: 0.5 if i == 4 else 0.0 for i in range(3, 7)}
    assert few.bodies[2].inertia is not None and few.bodies[2].inertia[9] == pytest.approx(robot.inertias[2:, 9].sum())


def test_roll_pitch_yaw_there_and_back() -> None:
    rng = np.random.default_rng(0)
    for rpy in [*rng.uniform(-3, 3, (20, 3)), (0.3, np.pi / 2, 0.4), (0.3, -np.pi / 2, -2.0)]:
        pose = from_xyz_rpy((0, 0, 0), rpy)
        np.testing.assert_allclose(from_xyz_rpy((0, 0, 0), to_rpy(pose)), pose, atol=1e-12)


def test_refusals() -> None:
    robot = Robot.builtin("kuka-iiwa14")
    with refused(RobotError, "unknown-joint", "finger"):
        robot.lock({"finger": 0.0})
    with refused(RobotError, "bad-lock"):
        robot.lock({robot.joint_names[0]: float("nan")})
    with refused(RobotError, "no-moving-joint", "'kuka-iiwa14'"):
        robot.lock(dict.fromkeys(robot.joint_names, 0.0))
    with refused(RobotError, "motors-coupled"):
        Robot.builtin("barrett-wam").lock({Robot.builtin("barrett-wam").joint_names[0]: 0.0})


def test_a_payload_on_what_a_locked_joint_moved_stays_there() -> None:
    whole = Robot.builtin("kuka-iiwa14")
    name, rng = whole.joint_names[6], np.random.default_rng(4)
    part, load = whole.lock({name: 0.7}), random_inertia(rng)
    payload = Payload(whole.body_names[6], nominal=load)
    q, dq, ddq = rng.normal(size=(3, 6, 7))
    q[:, 6], dq[:, 6], ddq[:, 6] = 0.7, 0.0, 0.0
    expected, found = (Model(robot, (RigidBodies(), payload)) for robot in (whole, part))
    ours = found.inverse_dynamics(found.parameters.nominal, q[:, :6], dq[:, :6], ddq[:, :6])
    theirs = expected.inverse_dynamics(expected.parameters.nominal, q, dq, ddq)[:, :6]
    np.testing.assert_allclose(ours, theirs, atol=1e-9)

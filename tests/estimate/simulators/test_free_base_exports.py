"""Exports of a robot with a free base keep the free joint: torques of the files in MuJoCo and Pinocchio."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from robots import gripper, random_inertia
from walkers import configurations, quadruped, to_mujoco

from dynid import dynamics
from dynid.estimate import Estimate
from dynid.estimate.estimate import Diagnostics
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot

FLOATING = ('<link name="world"/><link name="l0"><inertial><origin xyz="0.1 0 -0.05"/><mass value="4"/><inertia '
            'ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0.01" iyz="0"/></inertial></link><joint name="free" '
            'type="floating"><parent link="world"/><child link="l0"/></joint>')


def written(kind: str, folder: Path) -> Path:
    """A URDF or an MJCF with a free joint."""
    if kind == "mjcf":
        (folder / "dog.xml").write_text(quadruped())
        return folder / "dog.xml"
    text = re.sub(r"<mimic[^>]*/>", "", gripper().replace('<link name="l0"/>', FLOATING))
    (folder / "arm.urdf").write_text(text)
    return folder / "arm.urdf"


@pytest.mark.parametrize(("kind", "target"), [("mjcf", "mjcf"), ("urdf", "urdf"), ("urdf", "mjcf")])
def test_free_joint_and_torques_stay(kind: str, target: str, tmp_path: Path) -> None:
    robot = Robot.load(written(kind, tmp_path))
    model, rng = Model(robot, make_terms(robot, friction=("viscous",))), np.random.default_rng(1)
    theta = rng.uniform(0.1, 0.5, len(model.parameters))
    for places in model.parameters.bodies.values():
        theta[places] = random_inertia(rng)
    base = base_parameters(model)
    estimate = Estimate("pc-wls", model, base, base.reduce(theta), np.ones(len(base), bool),
                        OnDemand.known(Uncertainty(np.eye(len(base)), "independent")), theta,
                        diagnostics=Diagnostics(0.0, [], [], len(base), [], []))
    path = tmp_path / f"identified.{'xml' if target == 'mjcf' else 'urdf'}"
    estimate.export(path, target)
    inertias = np.array([theta[model.parameters.bodies[body.name]] if body.name in model.parameters.bodies
                         else np.zeros(10) for body in robot.bodies])
    expected_robot = robot.with_inertias(inertias)
    q, v, a, _ = configurations(robot, 3, seed=2)
    expected = dynamics.inverse_dynamics(expected_robot, None, q, v, a)
    again = Robot.load(path)
    assert again.has_free_base and again.joint_names[6:] == robot.joint_names[6:]
    np.testing.assert_allclose(dynamics.inverse_dynamics(again, None, q, v, a), expected, rtol=1e-6, atol=1e-6)
    world = mujoco.MjModel.from_xml_path(str(path))
    assert world.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE and world.nv == robot.dof
    check_mujoco(world, robot, q, v, a, expected)
    if target == "urdf":
        whole = pin.buildModelFromUrdf(str(path))
        assert whole.joints[1].shortname() == "JointModelFreeFlyer" and whole.nv == robot.dof
    else:
        whole = pin.buildModelFromMJCF(str(path))
        assert whole.joints[1].shortname() == "JointModelFreeFlyer"
    order = np.concatenate([np.arange(6), [whole.idx_vs[whole.getJointId(name)] for name in robot.joint_names[6:]]])
    scratch = whole.createData()
    for s in range(len(q)):
        turned, moved, changed = np.zeros(whole.nq), np.zeros(whole.nv), np.zeros(whole.nv)
        turned[:7], moved[order], changed[order] = q[s, :7], v[s], a[s]
        for k, name in enumerate(robot.joint_names[6:]):
            place, width = whole.idx_qs[whole.getJointId(name)], whole.nqs[whole.getJointId(name)]
            turned[place:place + width] = q[s, 7 + k] if width == 1 else [np.cos(q[s, 7 + k]), np.sin(q[s, 7 + k])]
        found = pin.rnea(whole, scratch, turned, moved, changed)[order]
        np.testing.assert_allclose(found, expected[s], rtol=1e-6, atol=1e-6 * np.abs(expected[s]).max())


def check_mujoco(world, robot, q, v, a, expected) -> None:
    """MuJoCo's inverse dynamics of the rigid bodies alone are the expected torques."""
    world.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    world.dof_damping[:] = 0.0
    world.dof_armature[:] = 0.0
    state = mujoco.MjData(world)
    for s in range(len(q)):
        turn = dynamics.rotations(q[s:s + 1, 3:7])[0]
        state.qpos[:], state.qvel[:], state.qacc[:] = to_mujoco(q[s], v[s], a[s], turn)
        mujoco.mj_inverse(world, state)
        found = state.qfrc_inverse.copy()
        found[:3] = turn.T @ found[:3]
        np.testing.assert_allclose(found, expected[s], rtol=1e-6, atol=1e-6 * np.abs(expected[s]).max())

"""The regressor block by block, against Pinocchio's and against the regressor of the whole motion."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import gripper, random_robot, to_pinocchio
from walkers import configurations, free_pinocchio, humanoid, quadruped

from dynid import dynamics
from dynid.errors import ModelError
from dynid.robot import Robot
from dynid.robot import inertia as ten


@pytest.mark.parametrize("text", [quadruped(), humanoid()], ids=["quadruped", "humanoid"])
def test_columns_are_those_of_pinocchio(text):
    robot = Robot.load(text)
    model = free_pinocchio(robot)
    scratch, (q, v, a, _) = model.createData(), configurations(robot, 70, seed=5)
    found = np.concatenate([block.copy() for block in dynamics.regressor_blocks(robot, q, v, a)])
    assert found.shape == (70, robot.dof, 10 * robot.dof)
    for s in (0, 63, 64, 69):
        theirs = pin.computeJointTorqueRegressor(model, scratch, q[s], v[s], a[s])
        scale = np.abs(theirs).max()
        for body in range(5, robot.dof):
            after = np.eye(4) if body == 5 else robot.joints[body].after
            # Columns of theirs times their parameters of a unit of ours.
            units = np.array([ten.to_pinocchio(ten.change_frame(after) @ unit) for unit in np.eye(10)]).T
            expected = theirs[:, 10 * (body - 5):10 * (body - 4)] @ units
            assert np.abs(found[s, :, 10 * body:10 * body + 10] - expected).max() < 1e-12 * scale


def test_configurations_give_the_regressor_of_the_motion_in_root_axes():
    """Also with quaternions that are rounded, and in a batch; those that are no rotation are refused."""
    robot = Robot.load(quadruped())
    q, v, a, _ = configurations(robot, 70, seed=6)
    rounded = q.copy()
    rounded[:, 3:7] *= 1.0 + 5e-4
    expected = dynamics.regressor(robot, *dynamics.root_motion(robot, q, v, a))
    scale = np.abs(expected).max()
    for given in (q, rounded):
        blocks = np.concatenate([block.copy() for block in dynamics.regressor_blocks(robot, given, v, a)])
        assert np.abs(blocks - expected).max() < 1e-13 * scale
        assert np.abs(dynamics.regressor(robot, given, v, a) - expected).max() < 1e-13 * scale
    with refused(ModelError, "not-unit-quaternion"):
        next(dynamics.regressor_blocks(robot, np.hstack([q[:, :3], 2.0 * q[:, 3:7], q[:, 7:]]), v, a))


def test_configurations_of_a_free_base_with_dependent_joints():
    base = '<link name="world"/><joint name="free" type="floating"><parent link="world"/><child link="l0"/></joint>'
    robot = Robot.from_urdf(gripper().replace('<link name="l0"/>', base + (
        '<link name="l0"><inertial><mass value="4"/><inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link>")))
    q, v, a, _ = configurations(robot, 9, seed=7)
    found = np.concatenate([block.copy() for block in dynamics.regressor_blocks(robot, q, v, a, samples=4)])
    expected = dynamics.regressor(robot, *dynamics.root_motion(robot, q, v, a))
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("samples", [1, 7, 64, 200])
def test_blocks_of_any_size_are_the_whole_regressor(samples):
    robot = random_robot(np.random.default_rng(2), 6, prismatic=0.3, branch=0.4)
    motion = np.random.default_rng(3).normal(size=(3, 130, 6))
    blocks = [block.copy() for block in dynamics.regressor_blocks(robot, *motion, samples=samples)]
    assert [len(block) for block in blocks[:-1]] == [min(samples, 130)] * (len(blocks) - 1)
    assert np.array_equal(np.concatenate(blocks), dynamics.regressor(robot, *motion))
    model = to_pinocchio(robot)
    torque = pin.rnea(model, model.createData(), motion[0, 129], motion[1, 129], motion[2, 129])
    assert np.allclose(blocks[-1][-1] @ robot.inertias.ravel(), torque, rtol=1e-11, atol=1e-11)


def test_blocks_of_a_robot_with_dependent_joints():
    robot = Robot.from_urdf(gripper())
    motion = np.random.default_rng(4).normal(size=(3, 100, robot.dof))
    found = np.concatenate([block.copy() for block in dynamics.regressor_blocks(robot, *motion, samples=33)])
    assert np.array_equal(found, dynamics.regressor(robot, *motion))


def test_a_block_cannot_be_changed_and_bad_sizes_are_refused():
    robot = random_robot(np.random.default_rng(2), 3)
    motion = np.zeros((3, 4, 3))
    block = next(dynamics.regressor_blocks(robot, *motion))
    with pytest.raises(ValueError, match="read-only"):
        block[0] = 1.0
    with refused(ModelError, "block-samples"):
        next(dynamics.regressor_blocks(robot, *motion, samples=0))
    with refused(ModelError, "wrong-shape"):
        next(dynamics.regressor_blocks(robot, *np.zeros((3, 4, 2))))

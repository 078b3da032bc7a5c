"""Robots as MJCF: MuJoCo compiles them and its inverse dynamics are ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest
from refusals import refused
from robots import random_robot

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.robot import Robot, builtin_names, inertia_problems
from dynid.robot import inertia as ten
from dynid.robot.dh import from_dh
from dynid.robot.write_mjcf import to_mjcf


def compiled(text: str) -> Any:
    return mujoco.MjModel.from_xml_string(text)


def torques(model: Any, q: Array, dq: Array, ddq: Array, robot: Robot) -> Array:
    """Without limits and dry friction, which MuJoCo treats as soft constraints."""
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    places = [model.joint(name).dofadr[0] for name in robot.joint_names]
    found = []
    for angles, v, a in zip(q, dq, ddq, strict=True):
        data.qpos[places], data.qvel[places], data.qacc[places] = angles, v, a
        mujoco.mj_inverse(model, data)
        found.append(data.qfrc_inverse[places].copy())
    return np.array(found)


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_move_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(1, 9)))
    rotors, viscous, dry = rng.uniform(0.01, 0.5, (3, robot.dof))
    values = {f"{kind}{j + 1}": x for kind, column in (("Ia", rotors), ("Fv", viscous), ("Fc", dry))
              for j, x in enumerate(column)}
    model = compiled(to_mjcf(robot, values=values))
    q, dq, ddq = rng.normal(size=(3, 10, robot.dof))
    ours = dynamics.inverse_dynamics(robot, None, q, dq, ddq) + rotors * ddq + viscous * dq
    assert np.abs(torques(model, q, dq, ddq, robot) - ours).max() < 1e-9
    for j, joint in enumerate(robot.joints):
        theirs = model.joint(joint.name)
        assert model.dof_frictionloss[theirs.dofadr[0]] == pytest.approx(dry[j], rel=1e-12)
        limited = joint.kind != "continuous"
        assert bool(model.jnt_limited[theirs.id]) is limited
        assert not limited or model.jnt_range[theirs.id].tolist() == [joint.lower, joint.upper]


@pytest.mark.parametrize("name", [name for name in builtin_names() if Robot.builtin(name).followers is None])
def test_built_in_robots_are_refused_where_mujoco_refuses_them(name: str) -> None:
    robot = Robot.builtin(name)
    if any(problem.kind != "centre-of-mass" for problem in inertia_problems(robot)):
        with refused(NotPossibleError, "not-consistent"):
            to_mjcf(robot)
        with pytest.raises(ValueError, match="inertia"):
            compiled(to_mjcf(robot, unchecked=True))
        return
    model = compiled(to_mjcf(robot, values={}))
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 10, robot.dof))
    ours = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    assert np.abs(torques(model, q, dq, ddq, robot) - ours).max() < 1e-9


def test_a_robot_without_inertias_is_refused() -> None:
    with refused(RobotError, "no-inertia", "'link1'"):
        to_mjcf(from_dh([(0, 0, 0, 0)]))


def test_other_inertias_and_the_robots_own_values() -> None:
    rng = np.random.default_rng(5)
    robot, other = replace(random_robot(rng, 3), values={"Fv1": 0.5, "Fc2": -1.0, "Ia3": 0.0}), random_robot(rng, 3)
    notes: list[str] = []
    model = compiled(to_mjcf(robot, other.inertias, add_note=notes.append))
    q, dq, ddq = rng.normal(size=(3, 10, 3))
    ours = dynamics.inverse_dynamics(robot, other.inertias, q, dq, ddq) + 0.5 * dq * [1, 0, 0]
    assert np.abs(torques(model, q, dq, ddq, robot) - ours).max() < 1e-9
    assert notes == ["Fc2 of joint 'joint2' is -1: negative values are not written"]


def test_ranges_with_one_end_or_none() -> None:
    robot = random_robot(np.random.default_rng(0), 3, prismatic=0.0)
    joints = [replace(joint, kind="revolute", lower=lower, upper=upper) for joint, (lower, upper) in
              zip(robot.joints, ((-np.inf, 1.0), (0.5, 0.5), (-np.inf, np.inf)), strict=True)]
    model = compiled(to_mjcf(replace(robot, joints=tuple(joints))))
    assert model.jnt_limited.tolist() == [1, 0, 0]
    assert model.jnt_range[0].tolist() == [-1e10, 1.0]


def test_names_are_quoted() -> None:
    robot = from_dh([(0, 0, 0, 0)], joints=['a"<&>'], inertias=[ten.from_central(1.0, [0, 0, 0], np.eye(3))])
    assert compiled(to_mjcf(replace(robot, name="r & 'd'"))).joint('a"<&>').id == 0


def test_bodies_that_cannot_exist_are_refused() -> None:
    robot = random_robot(np.random.default_rng(0), 2)
    bad = robot.inertias.copy()
    bad[1, 9] = -1.0
    with refused(NotPossibleError, "not-consistent", "'link2'"):
        to_mjcf(robot, bad)
    assert 'mass="-1.0"' in to_mjcf(robot, bad, unchecked=True)
    with refused(RobotError, "no-mass", "'link1'"):
        to_mjcf(robot, np.eye(10)[[6, 6]], unchecked=True)
    with refused(ModelError, "bad-inertias", "2 x 10"):
        to_mjcf(robot, bad[:1])


def test_inertias_are_written_as_principal_moments_with_all_digits() -> None:
    """MuJoCo's own diagonalisation is exact to 1e-7 only in some versions; a link it refuses keeps its matrix."""
    for body in random_robot(np.random.default_rng(3), 6).bodies:
        found = ten.to_mujoco_attributes(body.inertia)
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, found["quat"])
        axes = turn.reshape(3, 3)
        _, _, central = ten.to_central(body.inertia)
        np.testing.assert_allclose(axes * found["diaginertia"] @ axes.T, central, rtol=0.0,
                                   atol=1e-15 * np.abs(central).max() * 10)
    assert "quat" not in ten.to_mujoco_attributes([0.1, 0, 0, 0.2, 0, 0.2, 0, 0, 0, 1.0])
    negative = [-0.1, 0.01, 0, 0.2, 0, 0.2, 0, 0, 0, 1.0]
    assert set(ten.to_mujoco_attributes(negative)) == {"pos", "mass", "fullinertia"}

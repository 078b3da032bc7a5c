"""Forces from outside: inverse and forward dynamics against Pinocchio's, and the simulation of a pushed machine."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import random_pose, random_robot, to_pinocchio

from dynid import dynamics
from dynid.dynamics import Wrench
from dynid.errors import ModelError, RobotError
from dynid.robot import Frame, Robot


def pushed(seed: int, dof: int = 7) -> tuple[Robot, list[Wrench], np.ndarray]:
    """A random tree with frames, three wrenches in different axes, and times."""
    from dataclasses import replace

    rng = np.random.default_rng(seed)
    robot = random_robot(rng, dof)
    frames = tuple(Frame(f"place{k}", k, random_pose(rng)) for k in (1, 4, 6))
    robot = replace(robot, frames=(*robot.frames, *frames))
    times, t = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 20)
    values = rng.normal(size=(5, 6))
    return robot, [Wrench("place1", rng.normal(size=6)), Wrench("place4", values, times, axes="place4"),
                   Wrench("place6", lambda at: at * np.arange(6.0), axes="place1")], t


def pinocchio_forces(robot: Robot, wrenches: list[Wrench], model: pin.Model, data: pin.Data, q: np.ndarray,
                     t: float) -> pin.StdVec_Force:
    """The same wrenches as forces on Pinocchio's joints, each in its own frame."""
    pin.forwardKinematics(model, data, q)
    found = [pin.Force.Zero() for _ in range(model.njoints)]
    for one in wrenches:
        place = robot.frame(one.frame)
        pose = dynamics.frame_pose(robot, one.frame, _own(model, robot, q))
        turn = np.eye(3) if one.axes is None else dynamics.frame_pose(robot, one.axes, _own(model, robot, q))[:3, :3]
        value = one.at(np.array([t]))[0]
        at_place = pin.SE3(np.eye(3), pose[:3, 3]).act(pin.Force(turn @ value[:3], turn @ value[3:]))
        joint = model.getJointId(robot.joint_names[place.body])
        found[joint] += data.oMi[joint].actInv(at_place)
    forces = pin.StdVec_Force()
    forces.extend(found)
    return forces


def _own(model: pin.Model, robot: Robot, q: np.ndarray) -> np.ndarray:
    """Positions as dynid has them: an unlimited joint of Pinocchio is a cosine and a sine."""
    found = np.zeros(robot.dof)
    for i, name in enumerate(robot.joint_names):
        joint = model.joints[model.getJointId(name)]
        part = q[joint.idx_q:joint.idx_q + joint.nq]
        found[i] = part[0] if joint.nq == 1 else np.arctan2(part[1], part[0])
    return found


@pytest.mark.parametrize("seed", range(4))
def test_inverse_and_forward_dynamics_are_pinocchios(seed: int) -> None:
    robot, wrenches, t = pushed(seed)
    model = to_pinocchio(robot)
    data, rng = model.createData(), np.random.default_rng(100 + seed)
    postures = np.array([pin.randomConfiguration(model, np.full(model.nq, -1.0), np.full(model.nq, 1.0)) for _ in t])
    q = np.array([_own(model, robot, one) for one in postures])
    dq, ddq = rng.normal(size=(2, len(t), robot.dof))
    order = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    inverse, forward = np.zeros((2, len(t), robot.dof))
    for k, posture in enumerate(postures):
        v, a = np.zeros((2, model.nv))
        v[order], a[order] = dq[k], ddq[k]
        forces = pinocchio_forces(robot, wrenches, model, data, posture, t[k])
        inverse[k] = pin.rnea(model, data, posture, v, a, forces)[order]
        forward[k] = pin.aba(model, data, posture, v, a, forces)[order]
    ours = dynamics.inverse_dynamics(robot, None, q, dq, ddq, wrenches=wrenches, t=t)
    assert np.abs(ours - inverse).max() < 1e-10 * np.abs(inverse).max()
    found = dynamics.forward_dynamics(robot, None, q, dq, ddq, wrenches=wrenches, t=t)
    assert np.abs(found - forward).max() < 1e-10 * np.abs(forward).max()


def test_times_are_straight_lines_and_nothing_beyond_them() -> None:
    push = Wrench("link1", [[0.0] * 6, [2.0] * 6], [1.0, 2.0])
    assert push.at(np.array([0.5, 1.0, 1.5, 2.0, 2.1]))[:, 0].tolist() == [0.0, 0.0, 1.0, 2.0, 0.0]
    assert Wrench("link1", np.arange(6)).at(None, 3).shape == (3, 6)


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    robot = Robot.builtin("scara2")
    still = np.zeros((2, 2))
    with refused(RobotError, "unknown-frame", "hand"):
        dynamics.wrench_torques(robot, [Wrench("hand", np.zeros(6))], still)
    with refused(ModelError, "wrong-wrench"):
        dynamics.wrench_torques(robot, [Wrench("link2", np.zeros(3))], still)
    with refused(ModelError, "wrench-without-times"):
        dynamics.wrench_torques(robot, [Wrench("link2", lambda t: np.zeros(6))], still)
    with refused(ModelError, "wrong-wrench-times"):
        Wrench("link2", np.zeros((2, 6)), [1.0, 1.0]).at(np.zeros(1))

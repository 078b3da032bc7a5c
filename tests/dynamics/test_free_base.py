"""Dynamics of robots with a free base against Pinocchio's JointModelFreeFlyer and MuJoCo's freejoint."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import gripper
from walkers import configurations, free_pinocchio, free_tree, humanoid, quadruped, to_mujoco

from dynid import dynamics
from dynid.errors import ModelError
from dynid.model import Model
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.simulation import simulate_floating

TREES = {f"tree{seed}": (seed, dof) for seed, dof in enumerate((1, 2, 5, 9, 14))}
FLOATING = ('<link name="world"/><link name="l0"><inertial><origin xyz="0.1 0 -0.05"/><mass value="4"/><inertia '
            'ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0.01" iyz="0"/></inertial></link><joint name="free" '
            'type="floating"><parent link="world"/><child link="l0"/></joint>')


def arm(mimics: bool = False) -> Robot:
    """An arm with a gripper on a free base, from URDF."""
    text = gripper().replace('<link name="l0"/>', FLOATING)
    return Robot.from_urdf(text if mimics else re.sub(r"<mimic[^>]*/>", "", text))


def machine(name: str, data) -> Robot:
    if name in TREES:
        return free_tree(*TREES[name])
    if name == "go2":
        return Robot.load(data("go2_hanging", "go2.xml"))
    return arm() if name == "arm" else Robot.load(quadruped() if name == "quadruped" else humanoid())


def close(ours, theirs, tolerance=1e-10):
    assert np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300) < tolerance


@pytest.mark.parametrize("name", [*TREES, "go2", "quadruped", "humanoid", "arm"])
def test_agrees_with_pinocchio(name, data):
    robot = machine(name, data)
    model = free_pinocchio(robot)
    scratch = model.createData()
    q, v, a, tau = configurations(robot, 4, seed=3)
    y, torque = dynamics.regressor(robot, q, v, a), dynamics.inverse_dynamics(robot, None, q, v, a)
    mass, weight, fast = (dynamics.inertia_matrix(robot, None, q), dynamics.gravity(robot, None, q),
                          dynamics.coriolis(robot, None, q, v))
    acceleration = dynamics.forward_dynamics(robot, None, q, v, tau)
    kinetic, potential = dynamics.kinetic_energy(robot, None, q, v), dynamics.potential_energy(robot, None, q)
    momentum, frame = dynamics.total_momentum(robot, None, q, v), robot.frames[-1].name
    pose, rates = dynamics.frame_pose(robot, frame, q), dynamics.jacobian(robot, frame, q)
    assert len(Model(robot).parameters) == 10 * (robot.dof - 5)
    for s in range(len(q)):
        expected = pin.rnea(model, scratch, q[s], v[s], a[s])
        close(torque[s], expected)
        close(y[s] @ robot.inertias.ravel(), expected)
        rest = pin.computeGeneralizedGravity(model, scratch, q[s])
        close(weight[s], rest)
        close(fast[s], pin.rnea(model, scratch, q[s], v[s], 0 * v[s]) - rest)
        columns = [pin.rnea(model, scratch, q[s], 0 * v[s], unit) - rest for unit in np.eye(robot.dof)]
        close(mass[s], np.array(columns).T)
        close(acceleration[s], pin.aba(model, scratch, q[s], v[s], tau[s]))
        close(kinetic[s], pin.computeKineticEnergy(model, scratch, q[s], v[s]))
        close(potential[s], pin.computePotentialEnergy(model, scratch, q[s]))
        close(momentum[s], np.array(pin.computeCentroidalMomentum(model, scratch, q[s], v[s])))
        pin.framesForwardKinematics(model, scratch, q[s])
        number = model.getFrameId(f"frame {frame}")
        close(pose[s], scratch.oMf[number].homogeneous)
        close(rates[s], pin.computeFrameJacobian(model, scratch, q[s], number, pin.LOCAL_WORLD_ALIGNED))


def without_geoms(path: Path) -> str:
    """An MJCF file without its meshes, as MuJoCo can load it."""
    return re.sub(r"<geom [^>]*/>|<asset>.*?</asset>", "", path.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("name", ["go2", "quadruped", "humanoid"])
def test_agrees_with_mujoco(name, data):
    text = {"quadruped": quadruped(), "humanoid": humanoid()}.get(name) or without_geoms(
        data("go2_hanging", "go2.xml"))
    robot, model = Robot.load(text), mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:], model.dof_armature[:], model.dof_frictionloss[:] = 0.0, 0.0, 0.0
    scratch = mujoco.MjData(model)
    q, v, a, _ = configurations(robot, 5, spread=0.7)
    torque = dynamics.inverse_dynamics(robot, None, q, v, a)
    turns = dynamics.rotations(q[:, 3:7])
    for s in range(len(q)):
        scratch.qpos[:], scratch.qvel[:], scratch.qacc[:] = to_mujoco(q[s], v[s], a[s], turns[s])
        mujoco.mj_inverse(model, scratch)
        expected = scratch.qfrc_inverse.copy()
        expected[:3] = turns[s].T @ expected[:3]
        close(torque[s], expected)


def test_wrenches_act_on_the_base_and_the_joints():
    robot = Robot.load(quadruped())
    model = free_pinocchio(robot)
    scratch = model.createData()
    q, v, a, _ = configurations(robot, 3)
    push = np.array([3.0, -2.0, 11.0, 0.1, 0.2, -0.3])
    frame = robot.frames[-1].name
    both = [dynamics.inverse_dynamics(robot, None, q, v, a, wrenches=wrenches)
            for wrenches in ((), (dynamics.Wrench(frame, push),))]
    for s in range(len(q)):
        rates = pin.computeFrameJacobian(model, scratch, q[s], model.getFrameId(f"frame {frame}"),
                                         pin.LOCAL_WORLD_ALIGNED)
        close(both[0][s] - both[1][s], rates.T @ push)


def test_mimic_joints_on_a_free_base():
    """Torques of the own joints are those of the whole tree, summed by how its joints follow."""
    robot, whole = arm(mimics=True), arm()
    tree = robot.followers.tree
    model = free_pinocchio(tree)
    assert tree.joint_names == whole.joint_names
    q, v, a, _ = configurations(robot, 3)
    coupling, offset = robot.followers.coupling, robot.followers.offset
    numbers = np.vstack([robot.inertias, tree.inertias[list(robot.followers.bodies)]])
    ours = dynamics.inverse_dynamics(robot, numbers, q, v, a)
    for s in range(len(q)):
        position = np.concatenate([q[s, :7], (coupling[:, 6:] @ q[s, 7:] + offset)[6:]])
        close(ours[s], coupling.T @ pin.rnea(model, model.createData(), position, coupling @ v[s], coupling @ a[s]))


def test_energy_and_momentum_in_free_flight():
    """A tumbling humanoid keeps its energy to 1e-6 and its angular momentum over five seconds."""
    robot = Robot.load(humanoid())
    q, v, _, _ = configurations(robot, 1, spread=0.3)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7])
    flight = simulate_floating(robot, q[0], v[0] * 0.5, duration=5.0)
    at = slice(None, None, 500)
    energy = dynamics.kinetic_energy(robot, None, flight.q, flight.v) + dynamics.potential_energy(robot, None, flight.q)
    moving = dynamics.kinetic_energy(robot, None, flight.q[at], flight.v[at]).max()
    assert np.ptp(energy) / moving < 1e-6
    momentum = dynamics.total_momentum(robot, None, flight.q[at], flight.v[at])
    assert np.ptp(momentum[:, 3:], axis=0).max() < 1e-6 * np.abs(momentum[:, 3:]).max()
    weight = robot.inertias[:, 9].sum() * np.asarray(robot.gravity)
    close(momentum[:, :3], momentum[0, :3] + flight.t[at, None] * weight, 1e-9)
    assert np.abs(np.linalg.norm(flight.q[:, 3:7], axis=1) - 1.0).max() < 1e-12


def test_motion_in_root_axes_gives_the_same_forces():
    robot = free_tree(7, 6)
    q, v, a, _ = configurations(robot, 200)
    reduced = dynamics.root_motion(robot, q, v, a)
    close(dynamics.inverse_dynamics(robot, None, *reduced), dynamics.inverse_dynamics(robot, None, q, v, a))
    close(Model(robot).regressor(*reduced) @ robot.inertias[5:].ravel(),
          dynamics.inverse_dynamics(robot, None, q, v, a))
    close(Model(robot).regressor(*(one[0] for one in reduced)), Model(robot).regressor(*reduced)[0])


def test_quaternions_and_rotations_are_inverse():
    q, *_ = configurations(free_tree(0, 1), 50)
    turns = dynamics.rotations(q[:, 3:7])
    close(np.abs(np.einsum("si,si->s", dynamics.quaternions(turns), q[:, 3:7])), np.ones(50))
    close(turns @ turns.transpose(0, 2, 1), np.broadcast_to(np.eye(3), turns.shape))


def test_bad_configurations_are_refused():
    robot = free_tree(0, 2)
    q, v, a, _ = configurations(robot, 3)
    with refused(ModelError, "not-unit-quaternion", "sample 0"):
        dynamics.regressor(robot, q * 2.0, v, a)
    with refused(ModelError, "wrong-shape", "(samples, 9)"):
        dynamics.regressor(robot, q[:, :-2], v, a)
    with refused(ModelError, "wrong-shape"):
        dynamics.gravity(robot, None, v)
    with refused(ModelError, "fixed-base"):
        dynamics.total_momentum(robot.with_fixed_base(), None, q[:, 7:], v[:, 6:])
    with refused(ModelError, "not-free-base"):
        simulate_floating(robot.with_fixed_base(), q[0], v[0], duration=0.1)


def test_fixed_and_free_are_inverse():
    robot = free_tree(3, 5)
    again = robot.with_fixed_base().with_free_base()
    q, v, a, _ = configurations(robot, 3)
    close(dynamics.inverse_dynamics(again, None, q, v, a), dynamics.inverse_dynamics(robot, None, q, v, a))
    assert [body.name for body in again.bodies] == [body.name for body in robot.bodies]
    assert ten.NAMES[0] + "6" == Model(robot).parameters.names[0]

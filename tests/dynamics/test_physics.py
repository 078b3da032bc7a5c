"""Every kernel against Pinocchio, and against the laws that tie them together."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robots import exact_text, frame_pose, random_robot, to_pinocchio

from dynid import dynamics
from dynid.errors import ModelError, NotPossibleError
from dynid.robot import Robot
from dynid.robot import inertia as ten

URDFS = [("kuka_lwr4", "kuka_lwr4.urdf"), ("kuka_lwr4", "kuka_lwr4_centroepiaggio.urdf"),
         ("kuka_lwr4", "kuka_lwr4_cogimon.urdf"), ("kuka_lwr4", "kuka_lwr4_gaz.urdf"),
         ("kuka_lwr4", "kuka_lwr4_identified.urdf"), ("models", "kinova_jaco.urdf"), ("models", "ur10_robot.urdf"),
         ("models", "ur5_robot.urdf"), ("models", "xarm7.urdf"), ("panda", "panda_arm.urdf"),
         ("tx40", "tx40_mdh_modified.urdf")]


def close(ours, theirs, tolerance=1e-10):
    """Relative to the largest entry: joints differ by orders of magnitude, rounding follows the largest."""
    scale = max(np.abs(theirs).max(), 1e-300)
    assert np.abs(ours - theirs).max() / scale < tolerance


def against_pinocchio(robot: Robot, rng, *, samples: int = 7, frames: bool = True, inertias=None) -> None:
    model = to_pinocchio(robot if inertias is None else robot.with_inertias(inertias))
    data, n = model.createData(), robot.dof
    q, dq, ddq, tau = rng.normal(size=(4, samples, n)) * 2.0
    position = np.empty(n)
    y, torque = dynamics.regressor(robot, q, dq, ddq), dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    mass, weight = dynamics.inertia_matrix(robot, None, q), dynamics.gravity(robot, None, q)
    model.armature = rng.uniform(0.01, 0.1, n)  # one URDF has a last link without inertia: singular but for its rotor
    acceleration = dynamics.forward_dynamics(robot, None, q, dq, tau, rotor=model.armature)
    fast = dynamics.coriolis(robot, None, q, dq)
    kinetic, potential = dynamics.kinetic_energy(robot, None, q, dq), dynamics.potential_energy(robot, None, q)
    poses = dynamics.forward_kinematics(robot, q)
    for s in range(samples):
        position = q[s]
        expected = pin.rnea(model, data, position, dq[s], ddq[s]) - model.armature * ddq[s]
        close(torque[s], expected)
        close(y[s] @ robot.inertias.ravel(), expected)
        g = pin.computeGeneralizedGravity(model, data, position)
        # Column by column: pin.crba takes a joint's subtree to be contiguous, which a random tree's is not.
        columns = [pin.rnea(model, data, position, 0 * q[s], unit) - g for unit in np.eye(n)]
        close(mass[s], np.array(columns) - np.diag(model.armature))
        close(weight[s], g)
        close(fast[s] + g, pin.rnea(model, data, position, dq[s], 0 * dq[s]))
        close(acceleration[s], pin.aba(model, data, position, dq[s], tau[s]))
        rotors = 0.5 * np.sum(model.armature * dq[s] ** 2)
        close(kinetic[s], np.array(pin.computeKineticEnergy(model, data, position, dq[s])) - rotors)
        close(potential[s], np.array(pin.computePotentialEnergy(model, data, position)))
        if frames:
            for i, body in enumerate(robot.bodies):
                pin.framesForwardKinematics(model, data, position)
                frame = model.getFrameId(body.name, pin.FrameType.BODY)
                close(poses[s, i], data.oMf[frame].homogeneous)
                close(dynamics.jacobian(robot, body.name, q)[s], pin.computeFrameJacobian(
                    model, data, position, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).reshape(6, n))


@pytest.mark.parametrize("path", URDFS, ids=lambda p: p[1])
def test_every_urdf_against_pinocchio(data, path):
    robot = Robot.from_urdf(data(*path))
    against_pinocchio(robot, np.random.default_rng(0))


@given(st.integers(0, 10**6), st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_random_trees_against_pinocchio(seed, dof):
    rng = np.random.default_rng(seed)
    against_pinocchio(random_robot(rng, dof), rng, samples=2)


@pytest.mark.parametrize("path", [("panda", "panda_arm.urdf"), ("models", "xarm7.urdf")], ids=lambda p: p[1])
def test_regressor_column_by_column_against_pinocchio(data, path):
    robot = Robot.from_urdf(data(*path))
    model = pin.buildModelFromXML(exact_text(data(*path).read_text()))
    order = [model.getJointId(name) - 1 for name in robot.joint_names]
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, robot.dof))
    theirs = pin.computeJointTorqueRegressor(model, model.createData(), *(x[np.argsort(order)] for x in (q, dq, ddq)))
    ours = dynamics.regressor(robot, q, dq, ddq).reshape(robot.dof, robot.dof, 10)
    close(ten.to_pinocchio(ours), theirs.reshape(robot.dof, robot.dof, 10)[order][:, order])


@pytest.mark.parametrize("path", [("models", "ur10_robot.urdf"), ("panda", "panda_arm.urdf")], ids=lambda p: p[1])
def test_forward_dynamics_against_mujoco(data, path):
    import mujoco

    robot = Robot.from_urdf(data(*path))
    spec = mujoco.MjSpec()
    spec.compiler.inertiafromgeom = 0
    parents = []
    for joint, body in zip(robot.joints, robot.bodies, strict=True):
        carrier = spec.worldbody if joint.parent < 0 else parents[joint.parent]
        place = joint.before @ joint.after
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, place[:3, :3].ravel())
        mass, com, full = ten.to_mujoco(body.inertia)
        child = carrier.add_body(name=body.name, pos=place[:3, 3], quat=quat, mass=float(mass), ipos=com,
                                 fullinertia=full, explicitinertial=True)
        child.add_joint(name=joint.name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.after[2, :3])
        parents.append(child)
    model = spec.compile()
    model.opt.gravity[:] = robot.gravity
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    state = mujoco.MjData(model)
    for q, dq, tau in zip(*np.random.default_rng(2).normal(size=(3, 5, robot.dof)), strict=True):
        state.qpos[:], state.qvel[:], state.qfrc_applied[:] = q, dq, tau
        mujoco.mj_forward(model, state)
        close(dynamics.forward_dynamics(robot, None, q, dq, tau), state.qacc, 1e-9)


@given(st.integers(0, 10**6), st.integers(1, 7))
@settings(max_examples=20, deadline=None)
def test_laws(seed, dof):
    """tau = Y theta, T = dq' M dq / 2, power is the rate of energy, wrenches hold torques, forward undoes inverse."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, dof)
    q, dq, ddq = rng.normal(size=(3, 4, dof))
    tau = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    close(dynamics.regressor(robot, q, dq, ddq) @ robot.inertias.ravel(), tau, 1e-11)
    mass = dynamics.inertia_matrix(robot, None, q)
    close(dynamics.kinetic_energy(robot, None, q, dq), 0.5 * np.einsum("si,sij,sj->s", dq, mass, dq), 1e-11)
    bias = dynamics.coriolis(robot, None, q, dq) + dynamics.gravity(robot, None, q)
    close(np.einsum("sij,sj->si", mass, ddq) + bias, tau, 1e-11)
    close(dynamics.forward_dynamics(robot, None, q, dq, tau), ddq, 1e-11 * np.linalg.cond(mass).max())
    wrench = dynamics.link_wrenches(robot, None, q, dq, ddq)
    along = [2 if joint.prismatic else 5 for joint in robot.joints]
    close(wrench[:, np.arange(dof), along], tau, 1e-11)

    def energy(h):  # along q(t + h) with constant acceleration
        position, velocity = q + h * dq + 0.5 * h * h * ddq, dq + h * ddq
        potential = dynamics.potential_energy(robot, None, position)
        return dynamics.kinetic_energy(robot, None, position, velocity) + potential

    h = 1e-3  # fourth-order central difference
    rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    close(np.sum(tau * dq, axis=1), rate, 1e-6)


def test_link_wrench_is_the_force_on_a_hanging_chain():
    """Two pendulums at rest: each joint carries all the weight below it, and no moment."""
    rod = ten.from_central(2.0, [0, 0, -0.5], np.diag([0.1, 0.1, 0.01]))
    turn = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])  # joint z along world y
    from dynid.robot import Body, Joint
    drop = np.eye(4)
    drop[2, 3] = -1.0
    robot = Robot("chain", (Joint("a", "revolute", -1, turn, turn.T), Joint("b", "revolute", 0, drop @ turn, turn.T)),
                  (Body("A", rod), Body("B", rod)))
    wrench = dynamics.link_wrenches(robot, None, np.zeros(2), np.zeros(2), np.zeros(2))
    assert np.allclose(np.linalg.norm(wrench[:, :3], axis=1), [4 * 9.81, 2 * 9.81])
    assert np.allclose(wrench[:, 3:], 0)


def test_a_single_sample_equals_the_batch_and_threads_do_not_matter():
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 6)
    q, dq, ddq = rng.normal(size=(3, 9000, 6))  # enough for two threads
    batch = dynamics.regressor(robot, q, dq, ddq, threads=1)
    assert np.array_equal(batch, dynamics.regressor(robot, q, dq, ddq, threads=2))
    assert np.array_equal(batch[7], dynamics.regressor(robot, q[7], dq[7], ddq[7]))
    out = np.empty_like(batch)
    assert dynamics.regressor(robot, q, dq, ddq, out=out) is out
    assert np.array_equal(out, batch)


@pytest.mark.parametrize(("dof", "branch"), [(1, 0.0), (7, 0.0), (9, 0.6), (63, 0.1), (70, 0.1)])
def test_regressor_of_one_sample_by_one_call(dof, branch):
    """Bodies as lanes, on any tree; 64 and more joints do not fit a tile. Any kind of array or list is a sample."""
    rng = np.random.default_rng(dof)
    robot = random_robot(rng, dof, branch=branch)
    q, dq, ddq = rng.normal(size=(3, dof))
    y = dynamics.regressor(robot, q[None], dq[None], ddq[None])[0]
    close(dynamics.regressor(robot, q, dq, ddq), y, 1e-14)
    strided = np.stack([q, dq, ddq], axis=1)
    close(dynamics.regressor(robot, *strided.T), y, 1e-14)
    close(dynamics.regressor(robot, q.tolist(), dq.tolist(), ddq.tolist()), y, 1e-14)
    whole = np.arange(dof)
    assert np.array_equal(dynamics.regressor(robot, whole, whole, whole), dynamics.regressor(robot, *[whole * 1.0] * 3))


def test_pose_of_a_frame_is_the_product_of_the_joints_poses():
    rng = np.random.default_rng(6)
    robot = random_robot(rng, 5)
    q = rng.normal(size=(3, 5))
    poses = dynamics.frame_pose(robot, "tool", q)
    close(poses, np.array([frame_pose(robot, "tool", row) for row in q]))
    assert np.array_equal(dynamics.frame_pose(robot, "tool", q[1]), poses[1])
    assert np.array_equal(dynamics.frame_pose(robot, robot.base, q), np.broadcast_to(np.eye(4), (3, 4, 4)))


def test_sine_and_cosine_hold_for_any_angle():
    robot = Robot.from_mdh([{"alpha": 0.0, "d": 0.0, "theta": 0.0, "r": 0.0}], name="wheel")
    angles = np.concatenate([np.linspace(-10, 10, 4001), np.logspace(1, 9, 500), -np.logspace(1, 9, 500)])
    pose = dynamics.forward_kinematics(robot, angles[:, None])[:, 0]
    assert np.abs(pose[:, 0, 0] - np.cos(angles)).max() < 3e-16
    assert np.abs(pose[:, 1, 0] - np.sin(angles)).max() < 3e-16


def test_long_chain_against_pinocchio():
    rng = np.random.default_rng(4)
    against_pinocchio(random_robot(rng, 50, branch=0.2), rng, samples=1, frames=False)


def test_refusals_name_what_is_wrong():
    robot = random_robot(np.random.default_rng(5), 3)
    q = np.zeros((4, 3))
    bad = q.copy()
    bad[2, 1] = np.nan
    with refused(ModelError, "wrong-shape", "3", "dq"):
        dynamics.regressor(robot, q, np.zeros((4, 2)), q)
    with refused(ModelError, "not-finite", "joint2", "2", "ddq"):
        dynamics.regressor(robot, q, q, bad)
    with refused(ModelError, "wrong-shape", "3", "2", "dq"):
        dynamics.regressor(robot, q[0], np.zeros(2), q[0])
    with refused(ModelError, "not-finite", "joint2", "0", "ddq"):
        dynamics.regressor(robot, q[0], q[0], bad[2])
    with refused(ModelError, "not-numbers"):
        dynamics.regressor(robot, ["a", "b", "c"], q[0], q[0])
    with refused(ModelError, "sample-count", "3", "4", "dq"):
        dynamics.inverse_dynamics(robot, None, q, q[:3], q)
    with refused(ModelError, "wrong-inertia-count", "3", "20"):
        dynamics.inertia_matrix(robot, np.zeros((2, 10)), q)
    with refused(ModelError, "wrong-output-array"):
        dynamics.regressor(robot, q, q, q, out=np.empty((4, 3, 29)))
    with refused(NotPossibleError, "inertia-singular", "0"):
        dynamics.forward_dynamics(robot, 0 * robot.inertias, q, q, q)
    with refused(ModelError, "thread-count", "1"):
        dynamics.regressor(robot, q, q, q, threads=0)

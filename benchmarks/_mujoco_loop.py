"""Torques and regressor of a closed chain by a Python loop over MuJoCo, as a user would write it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.following import TreeMotion
from dynid.model import Model
from dynid.robot import Robot
from dynid.robot.write_mjcf import to_mjcf


class Loop(NamedTuple):
    """CPU time per sample (us) of a loop with all joint positions given, and the relative difference from dynid."""

    us: float
    difference: float


class _Chain:
    """MuJoCo's model of a closed chain, and the indices of the robot's joints in it."""

    def __init__(self, robot: Robot) -> None:
        import mujoco

        followers = robot.followers
        assert followers is not None
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(robot, values={}))
        self.data, self.dof = mujoco.MjData(self.model), robot.dof
        self.order = [self.model.joint(name).dofadr[0] for name in followers.tree.joint_names]
        self.own = [self.order[i] for i in followers.free]
        self.following = [self.order[followers.tree.joint_index(name)] for name in followers.following]
        names = [followers.tree.body_names[i] for i in (*followers.free, *followers.bodies)
                 if not followers.tree.bodies[i].virtual]
        self.bodies = [self.model.body(name).id for name in names]

    def at(self, motion: TreeMotion, t: int) -> tuple[Array, Array]:
        """Accelerations of all joints in MuJoCo's order, and how these move with the robot's own (nv, dof)."""
        import mujoco

        data, n = self.data, self.model.nv
        moved, rates = np.zeros(n), np.zeros((n, self.dof))
        data.qpos[self.order], data.qvel[self.order], moved[self.order] = motion.q[t], motion.dq[t], motion.ddq[t]
        mujoco.mj_forward(self.model, data)
        rows = data.efc_type[:data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        jacobian = data.efc_J.reshape(data.nefc, n)[rows]
        rates[self.own] = np.eye(self.dof)
        rates[self.following] = -np.linalg.solve(jacobian[:, self.following], jacobian[:, self.own])
        return moved, rates


def loop_torques(robot: Robot, motion: TreeMotion, samples: int) -> Loop:
    """Return the torques alone, which are a single column of a regressor."""
    import mujoco

    chain = _Chain(robot)
    inertia, torques = np.zeros((chain.model.nv, chain.model.nv)), np.zeros((samples, robot.dof))
    start = time.process_time()
    for t in range(samples):
        moved, rates = chain.at(motion, t)
        mujoco.mj_fullM(chain.model, chain.data, inertia)
        torques[t] = rates.T @ (inertia @ moved + chain.data.qfrc_bias)
    spent = 1e6 * (time.process_time() - start) / samples
    return Loop(spent, _apart(torques, dynamics.inverse_dynamics(robot, None, *_own(robot, motion, samples))))


def loop_regressor(robot: Robot, motion: TreeMotion, samples: int) -> Loop:
    """Return the regressor: for every body the Jacobian times the 6 x 10 matrix of its motion, because MuJoCo has no
    regressor."""
    import mujoco

    chain = _Chain(robot)
    model, data, n = chain.model, chain.data, chain.model.nv
    found = np.zeros((samples, robot.dof, 10 * len(chain.bodies)))
    moving, turning, velocity, acceleration = np.zeros((3, n)), np.zeros((3, n)), np.zeros(6), np.zeros(6)
    start = time.process_time()
    for t in range(samples):
        moved, rates = chain.at(motion, t)
        data.qacc[:] = moved
        mujoco.mj_rnePostConstraint(model, data)
        for k, body in enumerate(chain.bodies):
            mujoco.mj_jacBody(model, data, moving, turning, body)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 1)
            mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, acceleration, 1)
            turn = data.xmat[body].reshape(3, 3).T
            force, moment = _body_regressor(velocity[:3], acceleration[:3], acceleration[3:])
            found[t, :, 10 * k:10 * k + 10] = (turn @ moving @ rates).T @ force + (turn @ turning @ rates).T @ moment
    spent = 1e6 * (time.process_time() - start) / samples
    return Loop(spent, _apart(found, Model(robot).regressor(*_own(robot, motion, samples))))


def _body_regressor(w: Array, e: Array, a: Array) -> tuple[Array, Array]:
    """Return the force and moment (3, 10) of a body by its ten inertial parameters; w: angular velocity, e: angular
    acceleration, a: acceleration of the origin."""
    force, moment = np.zeros((3, 10)), np.zeros((3, 10))
    turn = _skew(w)
    force[:, 6:9] = _skew(e) + turn @ turn
    force[:, 9] = a
    moment[:, :6] = _by_inertia(e) + turn @ _by_inertia(w)
    moment[:, 6:9] = -_skew(a)
    return force, moment


def _skew(v: Array) -> Array:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _by_inertia(v: Array) -> Array:
    """Matrix (3, 6) that gives J v from XX XY XZ YY YZ ZZ."""
    x, y, z = v
    return np.array([[x, y, z, 0.0, 0.0, 0.0], [0.0, x, 0.0, y, z, 0.0], [0.0, 0.0, x, 0.0, y, z]])


def _own(robot: Robot, motion: TreeMotion, samples: int) -> list[Any]:
    assert robot.followers is not None
    return [x[:samples][:, robot.followers.free] for x in motion[:3]]


def _apart(theirs: Array, ours: Array) -> float:
    return float(np.abs(theirs - ours).max() / np.abs(ours).max())

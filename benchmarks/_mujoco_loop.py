"""Torques of a closed chain by a Python loop over MuJoCo's matrices, as people write it."""

from __future__ import annotations

import time

import numpy as np

from dynid import dynamics
from dynid.dynamics.following import TreeMotion
from dynid.robot import Robot
from dynid.robot.write_mjcf import to_mjcf


def loop_torques(robot: Robot, motion: TreeMotion, samples: int) -> tuple[float, float]:
    """CPU time a sample (us) of torques alone, a single column of a regressor, where all joints are known already; and
    how far they are from ours, relative."""
    import mujoco

    followers = robot.followers
    assert followers is not None
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, values={}))
    data, n = mujoco.MjData(model), model.nv
    order = [model.joint(name).dofadr[0] for name in followers.tree.joint_names]
    own = [order[i] for i in followers.free]
    following = [order[followers.tree.joint_index(name)] for name in followers.following]
    inertia, torques = np.zeros((n, n)), np.zeros((samples, robot.dof))
    rates, moved = np.zeros((n, robot.dof)), np.zeros(n)
    start = time.process_time()
    for t in range(samples):
        data.qpos[order], data.qvel[order], moved[order] = motion.q[t], motion.dq[t], motion.ddq[t]
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, inertia)
        rows = data.efc_type[:data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        jacobian = data.efc_J.reshape(data.nefc, n)[rows]
        rates[own] = np.eye(robot.dof)
        rates[following] = -np.linalg.solve(jacobian[:, following], jacobian[:, own])
        torques[t] = rates.T @ (inertia @ moved + data.qfrc_bias)
    spent = 1e6 * (time.process_time() - start) / samples
    ours = followers.free
    mine = dynamics.inverse_dynamics(robot, None, *(x[:samples][:, ours] for x in motion[:3]))
    return spent, float(np.abs(torques - mine).max() / np.abs(mine).max())

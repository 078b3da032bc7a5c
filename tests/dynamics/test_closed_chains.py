"""Closed chains against MuJoCo's inertia matrix, bias and constraint Jacobian, and against what physics keeps."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from chains import CHAINS, chain
from refusals import refused

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.following import closed_chain, closes, random_postures, tree_motion
from dynid.errors import NotPossibleError, RobotError
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Body, Frame, Joint, Robot
from dynid.robot.loops import Closure, closed
from dynid.robot.pose import translation
from dynid.robot.write_mjcf import to_mjcf


def motions(robot: Robot, count: int = 20, seed: int = 3) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    begin = closed_chain(robot).begin[:robot.dof]
    q = begin + 0.4 * (random_postures(robot, 2 * count, rng) - begin)
    return q[closes(robot, q)][:count], *rng.normal(size=(2, count, robot.dof))


class Oracle:
    """MuJoCo's matrices of the tree of a closed chain, with its own constraint Jacobian."""

    def __init__(self, robot: Robot) -> None:
        followers = robot.followers
        assert followers is not None
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(robot, values={}))
        self.data = mujoco.MjData(self.model)
        self.order = [self.model.joint(name).dofadr[0] for name in followers.tree.joint_names]
        self.own, self.dof = list(followers.free), robot.dof
        self.following = [followers.tree.joint_index(name) for name in followers.following]

    def at(self, q: Array, dq: Array) -> tuple[Array, Array, Array, Array]:
        """Inertia matrix, bias, constraint Jacobian and violation at all joints of the tree."""
        data, n = self.data, self.model.nv
        data.qpos[self.order], data.qvel[self.order] = q, dq
        mujoco.mj_forward(self.model, data)
        inertia = np.zeros((n, n))
        mujoco.mj_fullM(self.model, data, inertia)
        rows = data.efc_type[:data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        jacobian = data.efc_J.reshape(data.nefc, n) if not mujoco.mj_isSparse(self.model) else None
        assert jacobian is not None
        return (inertia[np.ix_(self.order, self.order)], data.qfrc_bias[self.order].copy(),
                jacobian[rows][:, self.order], data.efc_pos[:data.nefc][rows])


@pytest.mark.parametrize("name", CHAINS)
def test_matrices_are_mujocos(name: str) -> None:
    robot = chain(name)
    oracle, (q, dq, ddq) = Oracle(robot), motions(robot)
    whole = tree_motion(robot, q, dq, ddq)
    torques = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    inertia = dynamics.inertia_matrix(robot, None, q)
    model = Model(robot)
    theta = model.parameters.nominal
    for t in range(len(q)):
        mass, bias, jacobian, apart = oracle.at(whole.q[t], whole.dq[t])
        np.testing.assert_allclose(apart, 0.0, atol=1e-10)
        rates = np.zeros((len(mass), robot.dof))
        rates[oracle.own] = np.eye(robot.dof)
        follow, own = jacobian[:, oracle.following], jacobian[:, oracle.own]
        rates[oracle.following] = -np.linalg.lstsq(follow, own, rcond=1e-9)[0]
        scale = np.abs(rates).max()
        np.testing.assert_allclose(whole.rates[t], rates, atol=1e-10 * scale)
        np.testing.assert_allclose(inertia[t], rates.T @ mass @ rates, atol=1e-10 * np.abs(inertia[t]).max())
        theirs = rates.T @ (mass @ whole.ddq[t] + bias)
        np.testing.assert_allclose(torques[t], theirs, atol=1e-10 * np.abs(theirs).max())
        assert np.linalg.eigvalsh(inertia[t]).min() > 0.0
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), torques, atol=1e-10 * np.abs(torques).max())
    np.testing.assert_allclose(model.regressor(q, dq, ddq) @ theta, torques, atol=1e-10 * np.abs(torques).max())
    np.testing.assert_allclose(dynamics.forward_dynamics(robot, None, q, dq, torques), ddq, atol=1e-7)


@pytest.mark.parametrize("name", CHAINS)
def test_velocities_and_accelerations_are_slopes(name: str) -> None:
    robot = chain(name)
    begin, t = closed_chain(robot).begin[:robot.dof], np.arange(1600) * 2.5e-4
    phase, speed = np.arange(robot.dof), 2.0 + np.arange(robot.dof)
    q = begin + 0.05 * np.sin(np.outer(t, speed) + phase)
    dq = 0.05 * speed * np.cos(np.outer(t, speed) + phase)
    whole = tree_motion(robot, q, dq, -0.05 * speed ** 2 * np.sin(np.outer(t, speed) + phase))

    def slope(x: Array) -> Array:
        return (8.0 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / 3e-3

    np.testing.assert_allclose(slope(whole.q), whole.dq[2:-2], atol=1e-9 * max(1.0, np.abs(whole.dq).max()))
    np.testing.assert_allclose(slope(whole.dq), whole.ddq[2:-2], atol=1e-8 * max(1.0, np.abs(whole.ddq).max()))


@pytest.mark.parametrize(("name", "count"), [("four-bar", 8), ("delta", 34)])
def test_base_parameters_are_as_many_as_known(name: str, count: int) -> None:
    model = Model(Robot.builtin(name))
    base = base_parameters(model)
    assert len(base) == count
    q, dq, ddq = motions(model.robot, seed=8)
    torque = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    found = model.inverse_dynamics(base.expand(base.reduce(model.parameters.nominal)), q, dq, ddq)
    np.testing.assert_allclose(found, torque, atol=1e-9 * np.abs(torque).max())


def test_a_parallelogram_has_three_base_parameters() -> None:
    """Crank and rocker alike, coupler parallel to the ground: only sums show."""
    robot = Robot.builtin("palletiser")
    assert robot.followers is not None and robot.followers.carrying
    tree = Robot("p", tuple(Joint(name, "revolute", parent, translation(x, 0.0, 0.0)) for name, parent, x in
                            (("crank", -1, 0.0), ("coupler", 0, 0.3), ("rocker", -1, 0.6))),
                 tuple(Body(name, np.array([0.01, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0, 1.0])) for name in "abc"),
                 gravity=np.array([0.0, -9.81, 0.0]))
    pin = Closure("pin", "axis", Frame("", 1, translation(0.6, 0.0, 0.0)), Frame("", 2, translation(0.3, 0.0, 0.0)))
    robot = closed(tree, [pin], ["coupler", "rocker"], {"crank": 1.2, "coupler": -1.2, "rocker": 1.2})
    assert len(base_parameters(Model(robot))) == 3
    assert closed_chain(robot).repeated == {"pin": 3}
    # Flat, its crank and coupler may go on either way: the sample where both meet is named, in motions short and long.
    for count in (60, 900):
        q = np.linspace(1.2, -0.2, count)[:, None]
        flat = int(np.flatnonzero(q[:, 0] < 0.0)[0])
        with refused(NotPossibleError, "loop-not-solvable", "'pin'", "'p'", "sample", "crank") as found:
            dynamics.inertia_matrix(robot, None, q)
        assert 0 <= flat - int(str(found.value).split("in sample ")[1].split(",")[0]) <= max(2, count // 30)


def test_wrenches_balance() -> None:
    """The wrench through a driven joint has its torque as third moment, and joints that follow carry none."""
    robot = Robot.builtin("palletiser")
    q, dq, ddq = motions(robot, 5)
    wrenches = dynamics.link_wrenches(robot, None, q, dq, ddq)
    torques = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    np.testing.assert_allclose(wrenches[:, :robot.dof, 5], torques, atol=1e-9 * np.abs(torques).max())
    np.testing.assert_allclose(wrenches[:, robot.dof:, 5], 0.0, atol=1e-9 * np.abs(torques).max())
    # Whatever the loops do, the ground carries the weight of all at rest.
    still = np.zeros_like(q)
    rest = dynamics.link_wrenches(robot, None, q, still, still)
    assert robot.followers is not None
    weight = 9.81 * sum(float(body.inertia[9]) for body in robot.followers.tree.bodies if body.inertia is not None)
    np.testing.assert_allclose(rest[:, 0, 2], weight, rtol=1e-9)


@pytest.mark.parametrize("name", ["delta", "four-bar", "palletiser"])
@pytest.mark.parametrize(("seconds", "step"), [(0.05, 5e-4), pytest.param(5.0, 5e-4, marks=pytest.mark.slow)])
def test_free_fall_keeps_energy(name: str, seconds: float, step: float) -> None:
    """From near its posture; springs pull a machine with limits back there, so that it does not fall through a posture
    in which its branches meet."""
    robot = Robot.builtin(name)
    begin = closed_chain(robot).begin[:robot.dof]
    model = Model(robot)
    theta, stiffness = model.parameters.nominal, np.where(np.isfinite(robot.limit("upper")), 400.0, 0.0)
    hold = dynamics.gravity(robot, None, begin) * (stiffness > 0.0)
    q, dq = begin + 0.02, 0.1 * np.ones(robot.dof)

    def energy(q: Array, dq: Array) -> float:
        both = dynamics.kinetic_energy(robot, None, q, dq) + dynamics.potential_energy(robot, None, q)
        return float(both + 0.5 * np.sum(stiffness * (q - begin) ** 2) - hold @ (q - begin))

    def rate(q: Array, dq: Array) -> tuple[Array, Array]:
        return dq, model.forward_dynamics(theta, q, dq, hold - stiffness * (q - begin))

    first, moved = energy(q, dq), 0.0
    for _ in range(int(seconds / step)):
        a = rate(q, dq)
        b = rate(q + 0.5 * step * a[0], dq + 0.5 * step * a[1])
        c = rate(q + 0.5 * step * b[0], dq + 0.5 * step * b[1])
        d = rate(q + step * c[0], dq + step * c[1])
        q = q + step / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
        dq = dq + step / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
        moved = max(moved, float(dynamics.kinetic_energy(robot, None, q, dq)))
    assert abs(energy(q, dq) - first) < 1e-6 * max(abs(first), moved)


def test_locked_joints_of_a_chain_stay_and_the_rest_moves_as_before() -> None:
    robot = Robot.builtin("palletiser")
    part = robot.lock({"lever": 0.2})
    assert part.joint_names == ("turn", "lower-arm", "wrist")
    q, dq, ddq = motions(part, 6)
    full = [np.insert(x, 2, at, axis=1) for x, at in ((q, 0.2), (dq, 0.0), (ddq, 0.0))]
    theirs = dynamics.inverse_dynamics(robot, None, *full)[:, [0, 1, 3]]
    np.testing.assert_allclose(dynamics.inverse_dynamics(part, None, q, dq, ddq), theirs, atol=1e-9)
    with refused(RobotError, "joint-is-dependent", "elbow"):
        robot.lock({"elbow": 0.0})


def test_troubles_are_named() -> None:
    robot = Robot.builtin("four-bar")
    assert robot.followers is not None and robot.followers.loops is not None
    crank, *others = robot.followers.tree.joints
    longer = (crank, replace(others[0], before=translation(0.45, 0.0, 0.0)), others[1])
    robot = closed(replace(robot.followers.tree, joints=longer), robot.followers.loops.closures, ["coupler", "rocker"],
                   {"crank": 1.0, "coupler": -1.0, "rocker": 1.4})
    far = np.array([[1.0], [1.5], [3.1]])
    with refused(NotPossibleError, "loop-not-solvable", "pin", "four-bar", "2", "3.1"):
        dynamics.inverse_dynamics(robot, None, far, far, far)
    assert closes(robot, far).tolist() == [True, True, False]
    robot = Robot.builtin("delta")
    followers = robot.followers
    assert followers is not None and followers.loops is not None
    tree, (one, two, three) = followers.tree, followers.loops.closures
    posture = dict(zip(tree.joint_names, followers.loops.posture, strict=True))
    with refused(RobotError, "loop-undetermined", "swing3"):
        closed_chain(closed(tree, [one, two], followers.following, posture))
    with refused(RobotError, "loop-without-freedom"):
        clamp = replace(one, name="clamp", kind="rigid")
        closed_chain(closed(tree, [one, two, three, clamp], followers.following, posture))
    with refused(RobotError, "loop-not-closed", "ball1"):
        short = replace(one, first=replace(one.first, pose=translation(0.01, 0.0, 0.0)))
        closed_chain(closed(tree, [short, two, three], followers.following, posture))
    with refused(RobotError, "loop-without-closures"):
        closed(tree, [], followers.following)
    assert len(make_terms(robot)) > 0

"""Laws with a model of the machine: PD beside the inertia matrix, a tool in space, and its impedance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from scipy.optimize import least_squares

from dynid import dynamics
from dynid.dynamics import Wrench
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, RigidBodies, make_terms
from dynid.robot import Robot
from dynid.simulation import CompensatedPD, ComputedTorque, Impedance, Reference, TaskSpace, simulate

RATE = 500.0
START = np.array([0.3, 0.5, -0.2, -1.2, 0.4, 0.9, 0.1])


@pytest.fixture(scope="module")
def arm() -> Model:
    return Model(Robot.builtin("kuka-lwr4"), (RigidBodies(),))


def nominal(model: Model) -> np.ndarray:
    return model.parameters.vector(model.parameters.nominal)


def standing(q: np.ndarray, seconds: float) -> Reference:
    rows = np.tile(q, (round(seconds * RATE), 1))
    return Reference(rows, np.zeros_like(rows), np.zeros_like(rows), RATE)


def line(model: Model, frame: str, seconds: float, reach: np.ndarray) -> tuple[Reference, np.ndarray, np.ndarray]:
    """Joints that bring a frame along a straight line with a quintic of time, found by scipy; the line's points, and
    its start."""
    t = np.arange(round(seconds * RATE)) / RATE
    s = t / seconds
    share = 10 * s ** 3 - 15 * s ** 4 + 6 * s ** 5
    start = dynamics.frame_pose(model.robot, frame, START)
    points, q = start[:3, 3] + np.outer(share, reach), [START]
    for point in points[1:]:
        def off(x: np.ndarray, point: np.ndarray = point, near: np.ndarray = q[-1]) -> np.ndarray:
            pose = dynamics.frame_pose(model.robot, frame, x)
            return np.concatenate([pose[:3, 3] - point, (pose[:3, :3] - start[:3, :3]).ravel(), 1e-6 * (x - near)])
        q.append(least_squares(off, q[-1], xtol=1e-14, ftol=1e-14, gtol=1e-14).x)
    return Reference.from_arrays(np.array(q), rate=RATE), points, start


def test_pd_beside_the_inertia_matrix_is_its_formula() -> None:
    """Sousa, eq. 4.16, in compiled code and as a function."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb"), rotor=True))
    theta = np.array([0.02 if p.nominal is None else p.nominal for p in model.parameters])
    believed = 1.1 * theta
    t = np.arange(800) / RATE
    reference = Reference.from_arrays(0.4 * np.sin(np.outer(t, [2.0, 3.0, 4.0])), rate=RATE)
    kp, kd = np.array([40.0, 60.0, 8.0]), np.array([3.0, 5.0, 0.6])
    bodies = Model(robot, (RigidBodies(),))
    own = dict(zip(model.parameters.names, believed, strict=True))
    numbers = np.array([own[name] for name in bodies.parameters.names])
    rotors = np.diag([own[f"Ia{j}"] for j in (1, 2, 3)])

    def law(_: float, q, dq, qr, dqr, ddqr):
        return bodies.inverse_dynamics(numbers, q, dq, ddqr) + rotors @ ddqr + kp * (qr - q) + kd * (dqr - dq)

    compiled = simulate(model, theta, CompensatedPD(model, believed, kp, kd), reference)
    plain = simulate(model, theta, law, reference)
    np.testing.assert_allclose(compiled.q, plain.q, atol=1e-9)
    np.testing.assert_allclose(compiled.tau, plain.tau, atol=1e-6)


def test_with_the_true_model_and_unit_inertia_both_laws_are_one() -> None:
    """A joint of inertia one: the feedback through the inertia matrix is the one beside it."""
    body = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.2, 0.0, 0.0, 1.0]])
    robot = Robot.from_mdh([(0.0, 0.0, 0.0, 0.0)], name="one", inertias=body)
    model = Model(robot, (RigidBodies(),))
    theta = nominal(model)
    reference = Reference.from_arrays(0.5 * np.sin(2.0 * np.arange(500) / RATE)[:, None], rate=RATE)
    start = np.array([[0.3], [0.0]])
    one, two = (simulate(model, theta, kind(model, theta, 100.0, 20.0), reference, start=start)
                for kind in (ComputedTorque, CompensatedPD))
    np.testing.assert_allclose(one.q, two.q, atol=1e-10)


def test_the_tool_follows_a_line(arm: Model) -> None:
    """Seven joints, true model: the tool stays on the line to the integrator's accuracy, its turn too."""
    frame, theta = arm.robot.body_names[-1], nominal(arm)
    reference, points, start = line(arm, frame, 0.4, np.array([0.04, -0.06, 0.02]))
    found = simulate(arm, theta, TaskSpace(arm, theta, frame, 400.0, 40.0), reference)
    poses = dynamics.frame_pose(arm.robot, frame, found.q)
    assert np.abs(poses[:, :3, 3] - points).max() < 1e-4
    np.testing.assert_allclose(poses[-1, :3, :3], start[:3, :3], atol=1e-4)


def test_the_tool_comes_back_as_a_double_integrator(arm: Model) -> None:
    """Off by some centimetres at the start, position and its error fall as kp and kd say (Sousa, eq. 2.34)."""
    frame, theta = arm.robot.body_names[-1], nominal(arm)
    kp, kd = 100.0, 20.0
    start = np.array([START + 0.02 * np.array([1, -1, 1, 1, 0, 0, 0]), np.zeros(7)])
    found = simulate(arm, theta, TaskSpace(arm, theta, frame, kp, kd, task="position"), standing(START, 1.0),
                     start=start)
    off = (dynamics.frame_pose(arm.robot, frame, found.q)[:, :3, 3]
           - dynamics.frame_pose(arm.robot, frame, START)[:3, 3])
    fall = (1.0 + 10.0 * found.t) * np.exp(-10.0 * found.t)  # both poles at 10 rad/s
    np.testing.assert_allclose(off, np.outer(fall, off[0]), atol=2e-4)


@pytest.mark.parametrize("task", ["position", "pose"])
def test_a_force_moves_the_tool_by_the_inverse_stiffness(arm: Model, task: str) -> None:
    """At rest under a constant force: x - xr = K^-1 F, in every axis, whatever the free joint does."""
    frame, theta = arm.robot.body_names[-1], nominal(arm)
    stiff = np.array([2000.0, 1000.0, 4000.0])
    turning = np.full(3, 2.0)  # N m/rad: the wrist is light, and a sampled loop holds no stiff spring on it
    kp = stiff if task == "position" else np.append(stiff, turning)
    kd = 0.1 * stiff if task == "position" else np.append(0.1 * stiff, 0.05 * np.ones(3))
    force = np.array([20.0, -10.0, 15.0])
    law = Impedance(arm, theta, frame, kp, kd, task=task)
    push = Wrench(frame, np.append(force, np.zeros(3)))
    found = simulate(arm, theta, law, standing(START, 3.0), wrenches=[push])
    moved = (dynamics.frame_pose(arm.robot, frame, found.q[-1])[:3, 3]
             - dynamics.frame_pose(arm.robot, frame, START)[:3, 3])
    assert np.abs(found.dq[-1]).max() < 1e-3  # rad/s
    np.testing.assert_allclose(moved, force / stiff, rtol=2e-3)


def test_the_tools_velocity_and_drift_are_those_of_pinocchio(data: Callable[..., Path]) -> None:
    path = data("models", "ur10_robot.urdf")
    model, oracle = Model(Robot.from_urdf(path), (RigidBodies(),)), pin.buildModelFromUrdf(str(path))
    own, at, aligned = oracle.createData(), oracle.getFrameId("tool0"), pin.LOCAL_WORLD_ALIGNED
    law, rng = TaskSpace(model, nominal(model), "tool0", 1.0, 1.0), np.random.default_rng(0)
    for _ in range(5):
        q, dq = rng.uniform(-1.5, 1.5, (2, 6))
        tool = law.tool(q, dq)
        np.testing.assert_allclose(tool.jacobian, pin.computeFrameJacobian(oracle, own, q, at, aligned), atol=1e-10)
        pin.forwardKinematics(oracle, own, q, dq, np.zeros(6))
        pin.updateFramePlacements(oracle, own)
        drift = pin.getFrameClassicalAcceleration(oracle, own, at, aligned).vector
        np.testing.assert_allclose(tool.drift, drift, atol=1e-7)


def test_what_cannot_be_is_said(arm: Model) -> None:
    frame, theta = arm.robot.body_names[-1], nominal(arm)
    three = Model(Robot.builtin("arm3r"), (RigidBodies(),))
    with refused(ModelError, "too-few-joints", "3"):
        TaskSpace(three, nominal(three), three.robot.body_names[-1], 1.0, 1.0)
    with refused(ModelError, "unknown-task"):
        TaskSpace(arm, theta, frame, 1.0, 1.0, task="turn")
    with refused(NotPossibleError, "singular-posture"):
        TaskSpace(arm, theta, frame, 1.0, 1.0)(0.0, *np.zeros((5, 7)))

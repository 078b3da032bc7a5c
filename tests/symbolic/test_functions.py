"""Generated functions against Pinocchio, dynid's kernels and the laws that tie them together."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import EVERY_FUNCTION, close, every_term, plain, some_values, stribeck
from robots import frame_pose, gripper, random_robot, to_pinocchio

from dynid import dynamics
from dynid.model import Model, RigidBodies
from dynid.robot import Robot
from dynid.symbolic import OF_FRAME, Program, generate

BUILTIN = ["arm3r", "barrett-wam", "emps", "franka-panda", "kuka-iiwa14", "kuka-lwr4", "puma560", "scara2",
           "staubli-tx40", "ur10"]


def motion(rng: np.random.Generator, dof: int) -> tuple[np.ndarray, ...]:
    return tuple(rng.normal(size=(4, 6, dof)) * 1.5)


def against_model(program: Program, model: Model, theta: np.ndarray, rng: np.random.Generator) -> None:
    """Everything a program gives, against the model's own kernels and against itself."""
    q, dq, ddq, tau = motion(rng, model.dof)
    p = np.tile(program.numbers_of(theta), (len(q), 1))
    torque = program("inverse_dynamics", q=q, dq=dq, ddq=ddq, p=p)
    close(torque, model.inverse_dynamics(theta, q, dq, ddq))
    close(np.einsum("sjp,sp->sj", program("regressor", q=q, dq=dq, ddq=ddq), p), torque)
    mass = program("inertia", q=q, p=p)
    close(mass, model.inertia_matrix(theta, q))
    weight, fast = program("gravity", q=q, p=p), program("coriolis", q=q, dq=dq, p=p)
    rest = program("friction", q=q, dq=dq, p=p)
    close(np.einsum("sij,sj->si", mass, ddq) + weight + fast + rest, torque)
    matrix = program("coriolis_matrix", q=q, dq=dq, p=p)
    assert np.abs(np.einsum("sij,sj->si", matrix, dq) - fast).max() < 1e-12 * np.abs(torque).max()
    momentum, beta = program("momentum", q=q, dq=dq, p=p)
    close(momentum, np.einsum("sij,sj->si", mass, dq))
    assert np.abs(beta + weight - np.einsum("sji,sj->si", matrix, dq)).max() < 1e-12 * np.abs(torque).max()
    energy = program("energy", q=q, dq=dq, p=p)
    close(energy[:, 0], 0.5 * np.einsum("si,sij,sj->s", dq, mass, dq))
    found = program("forward_dynamics", q=q, dq=dq, tau=tau, p=p)
    pull = np.einsum("sij,sj->si", mass, found) + weight + fast + rest
    assert np.abs(pull - tau).max() < 1e-10 * max(np.abs(torque).max(), 1.0)
    h = 1e-5  # dM/dt = C + C', and gravity is the slope of the potential energy
    slope = (program("inertia", q=q + h * dq, p=p) - program("inertia", q=q - h * dq, p=p)) / (2.0 * h)
    assert np.abs(slope - matrix - np.swapaxes(matrix, 1, 2)).max() < 1e-7 * max(np.abs(slope).max(), 1.0)
    for j in range(model.dof):
        step = h * np.eye(model.dof)[j]
        up, down = (program("energy", q=q + sign * step, dq=dq, p=p)[:, 1] for sign in (1.0, -1.0))
        assert np.abs((up - down) / (2.0 * h) - weight[:, j]).max() < 1e-6 * max(np.abs(weight).max(), 1.0)


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_robots_against_pinocchio(name):
    robot, rng = Robot.builtin(name), np.random.default_rng(1)
    theta = robot.inertias.copy()
    theta[theta[:, 9] == 0.0] = [0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1.0]  # Pinocchio returns NaN for massless links
    program = generate(robot, ["inverse_dynamics", "gravity"])
    machine = to_pinocchio(robot.with_inertias(theta))
    data = machine.createData()
    q, dq, ddq, _ = motion(rng, robot.dof)
    p = program.numbers_of(theta.ravel())
    for s in range(len(q)):
        close(program("inverse_dynamics", q=q[s], dq=dq[s], ddq=ddq[s], p=p),
              pin.rnea(machine, data, q[s], dq[s], ddq[s]))
        weight = pin.computeGeneralizedGravity(machine, data, q[s])
        if np.abs(weight).max() > 0.0:
            close(program("gravity", q=q[s], p=p), weight)


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_robots_with_their_terms(name):
    robot, rng = Robot.builtin(name), np.random.default_rng(2)
    model = plain(robot)
    against_model(generate(model, EVERY_FUNCTION), model, some_values(model, rng), rng)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2 ** 31), dof=st.integers(2, 6))
def test_random_trees_with_every_term(seed, dof):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, dof)
    model = every_term(robot) if seed % 2 else stribeck(robot)
    against_model(generate(model, EVERY_FUNCTION), model, some_values(model, rng), rng)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2 ** 31), dof=st.integers(1, 7))
def test_random_trees_against_pinocchio(seed, dof):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, dof)
    frame = robot.body_names[int(rng.integers(dof))]
    program = generate(robot, ["inverse_dynamics", *OF_FRAME], parameters="fixed", frame=frame)
    machine = to_pinocchio(robot)
    data = machine.createData()
    q, dq, ddq, _ = motion(rng, dof)
    for s in range(len(q)):
        close(program("inverse_dynamics", q=q[s], dq=dq[s], ddq=ddq[s]), pin.rnea(machine, data, q[s], dq[s], ddq[s]),
              1e-11)
        rotation, place = program("kinematics", q=q[s])
        expected = frame_pose(robot, frame, q[s])
        np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-12)
        np.testing.assert_allclose(place, expected[:3, 3], atol=1e-12)
        close(program("jacobian", q=q[s]), dynamics.jacobian(robot, frame, q[s]))


def test_joints_that_follow_others():
    """A gripper's mimic joints: the torques, inertia and energy of all that moves, as the model has them."""
    robot, rng = Robot.from_urdf(gripper()), np.random.default_rng(3)
    assert robot.followers is not None
    model = Model(robot, (RigidBodies(),))
    theta = model.parameters.nominal
    assert theta is not None
    against_model(generate(model, EVERY_FUNCTION), model, theta, rng)


def test_as_many_numbers_as_base_parameters():
    from dynid.regression.base import base_parameters
    for name in BUILTIN:
        model = plain(Robot.builtin(name))
        assert len(generate(model, ["gravity"]).numbers) == len(base_parameters(model))


def test_operations_are_what_they_were():
    """Multiplications and additions: a change that costs operations is seen here. The bars of other generators are
    517, 540 and 463 for the torques, 285 for the inertia matrix and 978 for the regressor."""
    count = {name: {one: ops.total for one, ops in generate(
        Robot.builtin(name), ["inverse_dynamics", "inertia", "regressor", "gravity"]).ops.items()}
        for name in ("kuka-lwr4", "barrett-wam", "puma560", "arm3r")}
    assert {name: each["inverse_dynamics"] for name, each in count.items()} == {
        "kuka-lwr4": 515, "barrett-wam": 535, "puma560": 460, "arm3r": 152}
    assert {name: each["inertia"] for name, each in count.items()} == {
        "kuka-lwr4": 274, "barrett-wam": 318, "puma560": 267, "arm3r": 49}
    assert count["kuka-lwr4"]["regressor"] == 976 and count["kuka-lwr4"]["gravity"] == 82

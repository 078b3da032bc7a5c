"""Bodies that are left out of the parameters: virtual ones without columns, held ones with the torque they are known
for; and loads on bodies that follow."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from refusals import refused

from dynid import dynamics
from dynid.dynamics.following import closed_chain, random_postures
from dynid.errors import RobotError
from dynid.estimate import Problem, identify
from dynid.model import Model, Payload, RigidBodies, make_terms
from dynid.online import Online
from dynid.payloads.estimation import payload
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.regression.known import fixed_inertia_values
from dynid.robot import Robot
from dynid.robot.inertia import NAMES
from dynid.robot.write_mjcf import to_mjcf
from dynid.simulation import ComputedTorque, Reference, VirtualRobot
from dynid.symbolic import generate

WRIST = '''<mujoco model="wrist"><compiler angle="radian"/><worldbody>
<body name="arm" pos="0 0 0.3"><inertial pos="0.1 0 0.02" mass="2" diaginertia="0.02 0.03 0.04"/>
<joint name="shoulder" axis="0 1 0"/>
<body name="hand" pos="0.4 0 0"><inertial pos="0.05 0.01 0.03" mass="1.2" diaginertia="0.004 0.003 0.002"/>
<joint name="roll" axis="1 0 0"/><joint name="pitch" axis="0 1 0" pos="0.02 0 0"/><joint name="yaw" axis="0 0 1"/>
</body></body></worldbody></mujoco>'''


def states(robot: Robot, count: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (random_postures(robot, count, rng), *rng.normal(size=(2, count, robot.dof)))


def test_bodies_between_the_joints_of_an_mjcf_body_have_no_parameters() -> None:
    robot = Robot.from_mjcf(WRIST)
    model = Model(robot)
    assert [body.virtual for body in robot.bodies] == [False, True, True, False]
    assert list(model.parameters.bodies) == ["arm", "hand"]
    assert model.parameters.names[10:] == tuple(f"{name}4" for name in NAMES)
    q, dq, ddq = states(robot)
    theta, oracle = model.parameters.nominal, mujoco.MjModel.from_xml_string(WRIST)
    data, torque = mujoco.MjData(oracle), np.empty(q.shape)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(oracle, data)
        torque[k] = data.qfrc_inverse
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), torque, atol=1e-10)
    np.testing.assert_allclose(model.regressor(q, dq, ddq) @ theta, torque, atol=1e-10)
    np.testing.assert_allclose(model.regressor(q[0], dq[0], ddq[0]) @ theta, torque[0], atol=1e-10)
    np.testing.assert_allclose(model.inertia_matrix(theta, q), dynamics.inertia_matrix(robot, None, q), atol=1e-12)
    noisy = torque + 1e-3 * np.random.default_rng(2).normal(size=torque.shape)
    for method in ("ols", "pc-wls"):
        estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, noisy), blocks=1), method=method)
        np.testing.assert_allclose(estimate.predict(q, dq, ddq), torque, atol=2e-3)
    estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, noisy)), method="ridge")
    again = Robot.from_mjcf(to_mjcf(robot, model.body_numbers(estimate.full), unchecked=True))
    np.testing.assert_allclose(dynamics.inverse_dynamics(again, None, q, dq, ddq), estimate.predict(q, dq, ddq),
                               atol=1e-9 * np.abs(torque).max())


def test_code_of_a_model_with_virtual_bodies() -> None:
    robot = Robot.from_mjcf(WRIST)
    model = Model(robot)
    theta, (q, dq, ddq) = model.parameters.nominal, states(robot, 20)
    torque = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    for parameters in ("fixed", "base"):
        program = generate(model, ("inverse_dynamics",), parameters=parameters, values=theta)
        given = {"p": np.tile(program.numbers_of(theta), (len(q), 1))} if parameters == "base" else {}
        found = program("inverse_dynamics", q=q, dq=dq, ddq=ddq, **given)
        np.testing.assert_allclose(found, torque, atol=1e-12)


def test_slopes_of_the_regressor_without_virtual_bodies() -> None:
    robot = Robot.from_mjcf(WRIST)
    model = Model(robot)
    q, dq, ddq = states(robot, 5)
    place = np.arange(model.structure.size, dtype=np.int64).reshape(model.structure.shape)
    weights = np.random.default_rng(1).normal(size=(place.size, 5))

    def total(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        return np.einsum("sjc,jcs->s", model.regressor(q, dq, ddq), weights.reshape(*place.shape, 5))

    found = model.pull_back(q, dq, ddq, place, weights)
    for which in range(3):
        for j in range(robot.dof):
            moved = [np.array(x) for x in (q, dq, ddq)]
            moved[which][:, j] += 1e-6
            back = [np.array(x) for x in (q, dq, ddq)]
            back[which][:, j] -= 1e-6
            np.testing.assert_allclose(found[which, :, j], (total(*moved) - total(*back)) / 2e-6, atol=2e-6)


@pytest.mark.parametrize(("name", "links"), [("four-bar", ("coupler-bar",)), ("four-bar", ("crank-bar", "rocker-bar")),
                                             ("arm3r", ("link2",)), ("palletiser", ("forearm", "lower-link"))])
def test_held_bodies_add_their_known_torque(name: str, links: tuple[str, ...]) -> None:
    """What is left is identified as well as if the held bodies were not there: torques less theirs are those of a robot
    whose held bodies weigh nothing."""
    plain = Robot.builtin(name)
    robot = plain.with_fixed_inertias(links)
    model = Model(robot)
    known = fixed_inertia_values(model)
    assert len(known) == 10 * len(links)
    theta = model.parameters.nominal
    q, dq, ddq = states(robot)
    torque = model.inverse_dynamics(theta, q, dq, ddq)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, torque), blocks=1)
    estimate = identify(problem, method="ols")
    assert estimate.known == known or set(estimate.known) == set(known)
    np.testing.assert_allclose(estimate.predict(q, dq, ddq), torque, atol=1e-9 * np.abs(torque).max())
    assert not set(known) & {model.parameters.names[c] for c in problem.base.independent}
    # Columns of the others alone, and the torque of the held ones by inverse dynamics.
    others = [k for k, one in enumerate(model.parameters.names) if one not in known]
    held = np.where(np.isin(model.parameters.names, list(known)), theta, 0.0)
    alone = np.linalg.matrix_rank(model.regressor(q, dq, ddq).reshape(-1, len(theta))[:, others], tol=1e-8)
    assert len(problem.base) == alone <= len(base_parameters(Model(plain)))
    rest = torque - model.inverse_dynamics(held, q, dq, ddq)
    y = model.regressor(q, dq, ddq).reshape(-1, len(theta))[:, problem.base.independent]
    np.testing.assert_allclose(estimate.values, np.linalg.lstsq(y, rest.ravel(), rcond=None)[0],
                               atol=1e-7 * np.abs(estimate.values).max())


def test_what_cannot_be_held_is_said(tmp_path: Path) -> None:
    with refused(RobotError, "unknown-body", "nose", "crank-bar"):
        Robot.builtin("four-bar").with_fixed_inertias(["nose"])
    file = tmp_path / "r.toml"
    file.write_text('convention = "tree"\n[[joint]]\nname = "a"\nfixed_inertia = true\n')
    with refused(RobotError, "missing-inertia"):
        Robot.load(file)
    file.write_text('convention = "tree"\n[[joint]]\nname = "a"\nfixed_inertia = true\n'
                    'inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0.1, 0, 0, 0.1, 0, 0.1]}\n')
    assert Robot.load(file).bodies[0].fixed_inertia


@pytest.mark.parametrize(("name", "frame", "shown"), [
    ("palletiser", "hand-plate", "ZZ MX MY M"),  # it stays level and turns with the column
    ("delta", "tool", "M"),  # it moves without turning
    ("four-bar", "rocker-bar", "ZZ MX MY")])  # it turns about one axis that stands
def test_a_load_on_a_body_that_follows_is_simulated_and_found(name: str, frame: str, shown: str) -> None:
    robot = Robot.builtin(name)
    assert robot.frame(frame).body >= robot.dof
    load = np.array([0.03, 0.002, -0.001, 0.04, 0.003, 0.05, 0.1, 0.05, -0.06, 2.0])
    model = Model(robot, (*make_terms(robot), Payload(frame, label="P", nominal=load)))
    theta = np.array([one.nominal for one in model.parameters], dtype=float)
    begin, t = closed_chain(robot).begin[:robot.dof], np.arange(1500)[:, None] / 1000.0
    w = 2 * np.pi * (1.0 + 0.37 * np.arange(robot.dof))
    reference = Reference.from_arrays(begin + 0.2 * np.sin(w * t) + 0.1 * np.sin(2.3 * w * t), rate=1000.0)
    machine = VirtualRobot(model, theta, ComputedTorque(model, theta, 900.0, 60.0), smooth=1e-3)
    motion = machine.run(reference)
    # The equations hold with the load's own columns, which come from the regressor and not from the simulation.
    inside = slice(5, -5)
    bodies = Model(robot, (RigidBodies(), Payload(frame, label="P", nominal=load)))
    q, dq, ddq = (x[inside] for x in (motion.q, motion.dq, motion.ddq))
    rigid = bodies.inverse_dynamics(bodies.parameters.nominal, q, dq, ddq)
    samples = Samples.from_arrays(q, dq, ddq, rigid)
    known = Model(robot)
    estimate = identify(Problem.from_model(known, Samples.from_arrays(*states(robot, 400, 3), known.inverse_dynamics(
        known.parameters.nominal, *states(robot, 400, 3))), blocks=1), method="ols")
    assert np.abs(motion.q - reference.q).max() < 0.05
    found = payload(estimate, samples, frame, consistent=False, friction=False, method="residual")
    seen = found.identified
    assert [one for one, yes in zip(NAMES, seen, strict=True) if yes] == shown.split()
    np.testing.assert_allclose(found.free[seen], load[seen], atol=1e-5 * np.abs(load).max())
    pushed = model.inverse_dynamics(theta, q, dq, ddq)
    np.testing.assert_allclose(motion.tau[inside], pushed, atol=2e-2 * np.abs(pushed).max())


def test_a_stream_does_not_look_for_held_bodies() -> None:
    robot = Robot.builtin("four-bar").with_fixed_inertias(["coupler-bar"])
    model = Model(robot)
    q, dq, ddq = states(robot, 400)
    torque = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    online = Online(model, noise=1.0, forgetting=None)
    online.update(q, dq, ddq, torque)
    batch = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, torque), blocks=1), method="ols")
    assert online.base.names == batch.base.names and dict(online.base.known) == fixed_inertia_values(model)
    np.testing.assert_allclose(online.values, batch.values, atol=1e-8 * np.abs(batch.values).max())

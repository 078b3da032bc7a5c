"""Closed chains whose encoders sit on other joints than their motors: positions converted to the own joints, and the
same parameters from any choice of measured joints on one motion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.arrays import Array
from dynid.dynamics.following import closed_chain, tree_motion
from dynid.dynamics.measured import own_positions
from dynid.errors import NotPossibleError, RecordingError, RobotError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.recording.log_reading import read
from dynid.recording.measured import recording_from_joints
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Body, Joint, Robot
from dynid.robot.followers import Mimic, followed
from dynid.robot.pose import translation
from dynid.simulation import ComputedTorque, Reference, VirtualRobot

CHOICES = {"four-bar": (("rocker",), ("coupler",), ("crank", "rocker"), ("coupler", "rocker")),
           "delta": (("elbow1", "elbow2", "elbow3"), ("motor1", "motor2", "elbow3"),
                     ("motor1", "motor2", "motor3", "swing1", "swing2")),
           "palletiser": (("turn", "lower-arm", "elbow", "wrist"), ("turn", "tie", "drag", "hand", "wrist"))}


def swing(robot: Robot, count: int = 2000, size: float = 0.3) -> tuple[Array, Array, Array]:
    """A smooth motion (count, dof) at 1 kHz about the posture of the loops, with its exact derivatives."""
    begin, t = closed_chain(robot).begin[:robot.dof], np.arange(count) / 1000.0
    rng = np.random.default_rng(5)
    w, phase = 2 * np.pi * np.arange(1, 7)[:, None] * np.array([0.5, 0.53, 0.47, 0.51])[:robot.dof], rng.uniform(
        0, 2 * np.pi, (6, robot.dof))
    at = w[None] * t[:, None, None] + phase
    return (begin + size / 6 * np.sin(at).sum(axis=1), size / 6 * (w * np.cos(at)).sum(axis=1),
            -size / 6 * (w ** 2 * np.sin(at)).sum(axis=1))


def of_tree(robot: Robot, names: tuple[str, ...], q: Array) -> Array:
    assert robot.followers is not None
    return tree_motion(robot, q).q[:, [robot.followers.tree.joint_index(name) for name in names]]


@pytest.mark.parametrize(("name", "measured"), [(name, one) for name, some in CHOICES.items() for one in some])
def test_the_same_parameters_from_any_measured_joints(name: str, measured: tuple[str, ...]) -> None:
    """Positions of the measured joints give the own ones to rounding, and these the same parameters and torques."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot))
    q, dq, ddq = swing(robot)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    t = np.arange(len(q)) / 1000.0
    log = recording_from_joints(robot.measuring(measured), t, of_tree(robot, measured, q), tau)
    np.testing.assert_allclose(log.q, q, atol=1e-10)
    assert log.joints == robot.joint_names and log.measured == robot.measuring(measured).measured
    assert any("converted to" in note for note in log.notes)
    first, second = (identify(Problem.from_model(model, Samples.from_arrays(one, dq, ddq, tau), blocks=1), method="ols")
                     for one in (q, log.q))
    scale = np.abs(first.values).max()
    np.testing.assert_allclose(second.values, first.values, atol=1e-9 * scale)
    found = second.predict(q, dq, ddq)
    np.testing.assert_allclose(found, tau, atol=1e-7 * np.abs(tau).max())


def test_rates_and_misfit_are_those_of_differences() -> None:
    robot = Robot.builtin("four-bar").measuring(["coupler", "rocker"])
    q, *_ = swing(robot, 50)
    step = 1e-6
    found = own_positions(robot, of_tree(robot, robot.measured, q))
    ahead, behind = (of_tree(robot, robot.measured, q + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(found.rates[:, :, 0], (ahead - behind) / (2 * step), atol=1e-8)
    # Encoders that disagree: least squares, whose normal equations are rates' misfit = 0.
    off = np.random.default_rng(0).normal(size=(50, 2)) * 1e-3
    noisy = own_positions(robot, of_tree(robot, robot.measured, q) + off)
    np.testing.assert_allclose(np.einsum("ska,sk->sa", noisy.rates, noisy.misfit), 0.0, atol=1e-11)
    assert np.abs(noisy.q - q).max() < 3e-3


def geared() -> Robot:
    inertia = np.array([0.02, 0.0, 0.0, 0.03, 0.0, 0.05, 0.2, 0.1, 0.0, 1.5])
    tree = Robot("geared", tuple(Joint(name, "revolute", parent, translation(x, 0.0, 0.0)) for name, parent, x in
                                 (("motor", -1, 0.0), ("output", 0, 0.3))),
                 (Body("a", inertia), Body("b", inertia)), gravity=np.array([0.0, -9.81, 0.0]))
    return followed(tree, {"output": Mimic("motor", 0.02, 0.3)})


def test_a_gear_measured_at_its_output() -> None:
    robot = geared().measuring(["output"])
    q = np.linspace(-30.0, 40.0, 9)[:, None]
    log = recording_from_joints(robot, np.arange(9.0), {"output": 0.02 * q[:, 0] + 0.3}, {"motor": np.ones(9)})
    np.testing.assert_allclose(log.q, q, atol=1e-11)
    assert geared().measuring(["motor"]).measured == ()


def test_torques_of_another_driven_joint() -> None:
    """A rocker that is driven in place of the crank: by power, tau_crank dq_crank = tau_rocker dq_rocker."""
    robot = Robot.builtin("four-bar").measuring([], ["rocker"])
    q, dq, _ = swing(robot, 40)
    log = recording_from_joints(robot, np.arange(40.0), q, {"rocker": np.full(40, 3.0)})
    ahead, behind = (of_tree(robot, ("rocker",), q + sign * 1e-6 * dq) for sign in (1, -1))
    np.testing.assert_allclose(log.tau * dq, 3.0 * (ahead - behind) / 2e-6, atol=1e-6)
    assert any("crank has no motor" in note for note in log.notes)


def test_a_joint_without_a_motor_has_the_torque_zero(tmp_path: Path) -> None:
    """Of a plain arm: its log has no torque of the elbow, whose equation still counts."""
    robot = Robot.builtin("arm3r").measuring([], [Robot.builtin("arm3r").joint_names[k] for k in (0, 2)])
    q = np.random.default_rng(0).normal(size=(40, 3))
    tau = q[:, [0, 2]] + 1.0
    log = recording_from_joints(robot, np.arange(40.0) / 100, q, tau)
    np.testing.assert_array_equal(log.tau, np.column_stack([tau[:, 0], np.zeros(40), tau[:, 1]]))
    names = robot.joint_names
    rows = ["time," + ",".join([f"position_{one}" for one in names] + [f"torque_{names[k]}" for k in (0, 2)])]
    rows += [",".join(repr(float(x)) for x in (k / 100, *q[k], *tau[k])) for k in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    again = read(tmp_path / "log.csv", robot=robot)
    np.testing.assert_array_equal(again.tau, log.tau)
    np.testing.assert_array_equal(again.q, q)
    assert again.unmeasured == () and any("has no motor" in note for note in again.notes)


def test_files_of_measured_joints(tmp_path: Path) -> None:
    """A virtual four-bar with its encoder on the rocker: the log holds the rocker, and reads as the crank."""
    text = (Path(__file__).parents[2] / "src/dynid/robot/builtin/four-bar.toml").read_text()
    file = tmp_path / "bar.toml"
    file.write_text(text.replace('link = "rocker-bar"\nxyz', 'link = "rocker-bar"\nmeasured = true\nxyz'))
    robot = Robot.load(file)
    assert robot.measured == ("rocker",) and robot.driven == ()
    model = Model(robot, make_terms(robot))
    theta = model.parameters.nominal
    q, dq, ddq = swing(robot, 400)
    machine = VirtualRobot(model, theta, ComputedTorque(model, theta, 900.0, 60.0), position_noise=1e-5)
    log = machine.record(Reference(q, dq, ddq, 1000.0), seed=3)
    assert log.measured == ("rocker",) and 1e-6 < np.std(log.q - of_own(machine, q, dq, ddq)) < 1e-4
    for path in (write_csv(log, tmp_path / "log.csv"), write_npz(log, tmp_path / "log.npz")):
        again = read(path, robot=robot)
        np.testing.assert_allclose(again.q, log.q, atol=1e-12)
        np.testing.assert_allclose(again.tau, log.tau, atol=1e-12)
        np.testing.assert_allclose(again.reference, q, atol=1e-12)
        assert any("measured at rocker" in note for note in again.notes)
    header = (tmp_path / "log.csv").read_text().splitlines()[0]
    assert "position_rocker" in header and "torque_crank" in header and "position_crank" not in header.replace(
        "reference_position_crank", "")
    pieces = read(tmp_path / "log.csv", robot=robot, at_once=37)
    np.testing.assert_allclose(pieces.q, log.q, atol=1e-9)
    named = read(tmp_path / "log.csv", robot=robot, time="time", position=["position_rocker"],
                 torque=["torque_crank"])
    np.testing.assert_allclose(named.q, log.q, atol=1e-12)
    with refused(RecordingError, "no-column", "own.csv", "rocker"):
        read(write_csv(replace(log, measured=(), measured_position=None), tmp_path / "own.csv"), robot=robot)


def of_own(machine: VirtualRobot, q: Array, dq: Array, ddq: Array) -> Array:
    return machine.run(Reference(q, dq, ddq, 1000.0)).q


def test_what_cannot_be_is_said() -> None:
    robot = Robot.builtin("four-bar")
    with refused(RobotError, "no-joint", "'nose'"):
        robot.measuring(["nose"])
    with refused(RobotError, "joints-undetermined"):
        Robot.builtin("palletiser").measuring(["turn", "elbow", "wrist"])
    with refused(NotPossibleError, "not-possible", "motor1, motor2, motor3"):
        own_positions(Robot.builtin("delta").measuring(["swing1", "swing2", "swing3"]), np.zeros((1, 3)))
    rocker = robot.measuring(["rocker"])
    turning = np.linspace(1.0, 6.0, 400)[:, None]
    with refused(NotPossibleError, "not-possible", "rocker", "'four-bar'", "crank"):
        own_positions(rocker, of_tree(rocker, ("rocker",), turning))
    beyond = of_tree(rocker, ("rocker",), turning[:5]) + np.array([[0.0], [0.0], [0.0], [2.0], [0.0]])
    with refused(NotPossibleError, "not-possible", "sample 3"):
        own_positions(rocker, beyond)

"""A simulated machine under forces from outside: energy, compiled and plain loops, and the virtual robot's log."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import dynamics
from dynid.dynamics import Wrench
from dynid.model import LoadFriction, Model, RigidBodies, RotorInertia, Viscous
from dynid.robot import Robot
from dynid.simulation import PD, Flexible, Reference, VirtualRobot, simulate

ROBOT = Robot.builtin("kuka-iiwa14")
MODEL = Model(ROBOT, (RigidBodies(), RotorInertia(), Viscous()))
THETA = np.array([0.5 if p.name[:2] in ("Fv", "Ia") else p.nominal for p in MODEL.parameters], dtype=float)
PUSHES = (Wrench("link4", lambda t: np.array([20.0, 0, 0, 0, 0, 1.0]) * np.sin(9.0 * t)),
          Wrench("link7", [0.0, 10.0, -5.0, 0.5, 0.0, 0.0], axes="link6"))


def reference(seconds: float = 0.5) -> Reference:
    t = np.arange(int(seconds * 1000)) / 1000.0
    q = np.array([0.1, 0.5, -0.2, -1.0, 0.3, 0.6, 0.2]) * (1.0 - np.cos(3.0 * t))[:, None]
    return Reference.from_arrays(q, rate=1000.0)


@pytest.mark.parametrize("step", [None, 2.5e-4, "adaptive"])
def test_the_inverse_model_less_the_wrenches_gives_the_torques_back(step) -> None:
    motion = simulate(MODEL, THETA, PD(2000.0, 80.0), reference(), wrenches=PUSHES, step=step)
    without = MODEL.inverse_dynamics(THETA, motion.q, motion.dq, motion.ddq)
    felt = dynamics.wrench_torques(ROBOT, PUSHES, motion.q, motion.t)
    assert np.abs(felt).max() > 5.0
    assert np.abs(without - felt - motion.tau).max() < 1e-10 * np.abs(motion.tau).max()


def test_integrators_agree_on_a_pushed_motion() -> None:
    coarse, fine = (simulate(MODEL, THETA, PD(2000.0, 80.0), reference(), wrenches=PUSHES, step=step)
                    for step in (5e-4, "adaptive"))
    assert np.abs(coarse.q - fine.q).max() < 1e-8


def test_the_plain_loop_moves_as_the_compiled_one() -> None:
    ref = reference(0.05)

    def law(t, q, dq, qr, dqr, ddqr):
        return 2000.0 * (qr - q) + 80.0 * (dqr - dq)

    class Plain:
        """The model without its elements, so that it runs through its own methods."""

        robot, dof, parameters, regressor = ROBOT, MODEL.dof, MODEL.parameters, staticmethod(MODEL.regressor)
        forward_dynamics = staticmethod(MODEL.forward_dynamics)

    compiled = simulate(MODEL, THETA, PD(2000.0, 80.0), ref, wrenches=PUSHES)
    for model, controller in ((MODEL, law), (Plain(), PD(2000.0, 80.0))):
        plain = simulate(model, THETA, controller, ref, wrenches=PUSHES)
        assert np.abs(plain.q - compiled.q).max() < 1e-12
        assert np.abs(plain.tau - compiled.tau).max() < 1e-8


def test_friction_from_load_feels_what_is_pushed() -> None:
    model = Model(ROBOT, (RigidBodies(), RotorInertia(), LoadFriction()))
    theta = np.array([0.5 if p.name[:2] == "Ia" else 0.1 if p.name[0] == "F" else p.nominal for p in model.parameters])
    push = (Wrench("link7", [0.0, 0.0, -100.0, 0.0, 0.0, 0.0]),)
    motion = simulate(model, theta, PD(2000.0, 80.0), reference(), wrenches=push, smooth=0.01)
    bodies = dynamics.inverse_dynamics(ROBOT, model.body_numbers(theta), motion.q, motion.dq, motion.ddq,
                                       wrenches=push, t=motion.t)
    lost = motion.tau - bodies - 0.5 * motion.ddq
    fast = (np.abs(motion.dq) > 0.1) & (np.abs(bodies) > 1.0)
    assert fast.sum() > 100
    assert np.abs(lost[fast] / bodies[fast]) == pytest.approx(0.1, rel=1e-6)


def test_a_held_flexible_joint_bends_by_what_pushes_it() -> None:
    """A robot that holds still: the spring of each joint bends by J' F over its stiffness."""
    still = Reference.from_arrays(np.tile([0.0, 0.4, 0.0, -1.2, 0.0, 0.8, 0.0], (3000, 1)), rate=1000.0)
    push = (Wrench("link7", [30.0, 0.0, 0.0, 0.0, 0.0, 0.0]),)
    bends = Flexible(stiffness=2e4, damping=60.0, rotor=0.5)
    found = [simulate(MODEL, THETA, PD(4e3, 300.0), still, wrenches=w, flexible=bends) for w in ((), push)]
    bent = [one.motors[0, -1] - one.q[-1] for one in found]
    felt = dynamics.wrench_torques(ROBOT, push, found[1].q[-1])
    turned = dynamics.gravity(ROBOT, MODEL.body_numbers(THETA), found[1].q[-1]) - dynamics.gravity(
        ROBOT, MODEL.body_numbers(THETA), found[0].q[-1])
    assert np.abs(2e4 * (bent[1] - bent[0]) - (turned - felt)).max() < 1e-3 * np.abs(felt).max()


def test_the_virtual_robot_logs_the_torques_of_a_push() -> None:
    clean, pushed = (VirtualRobot(MODEL, THETA, PD(2e3, 80.0), wrenches=w).record(reference())
                     for w in ((), (Wrench("link4", [0, 0, 30.0, 0, 0, 0]),)))
    felt = dynamics.wrench_torques(ROBOT, [Wrench("link4", [0, 0, 30.0, 0, 0, 0])], pushed.q[-1])
    assert pushed.tau[-1] - clean.tau[-1] == pytest.approx(-felt, abs=0.05 * np.abs(felt).max())

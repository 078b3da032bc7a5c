"""Flexible joints: rows against the equations written out, names, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_arm import ROBOT, flexible_arm
from refusals import refused

from dynid.errors import ModelError
from dynid.model import FlexibleModel, FrictionCurve, Model, RigidBodies, RotorInertia, complete, make_terms
from dynid.regression import base_parameters


def _state(dof: int, rows: int = 7) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(1).normal(size=(3, rows, dof)))


def test_rows_are_those_of_the_equations() -> None:
    """tau = Y theta + f_l + Jm ddth + f_m and tau = Jm ddth + f_m + K (th - q) + Ko + D (dth - dq) + Ks dth."""
    model, theta = flexible_arm(skew=True, Ks=0.7, Ko=0.3)
    state = _state(6)
    (q, dq, ddq), (th, dth, ddth) = ([x[:, part] for x in state] for part in (slice(3), slice(3, 6)))
    motor = 0.2 * ddth + 0.5 * dth + 0.4 * np.sign(dth)
    spring = 1000.0 * (th - q) + 0.3 + 2.0 * (dth - dq) + 0.7 * dth
    links = model.links.inverse_dynamics(theta[:len(model.links.parameters)], q, dq, ddq)
    expected = np.hstack([links + motor, motor + spring])
    np.testing.assert_allclose(model.inverse_dynamics(theta, *state), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.regressor(*state) @ theta, expected, rtol=1e-11, atol=1e-10)
    assert not model.regressor(*state)[:, ~model.structure].any()
    joints, columns = np.nonzero(model.structure)
    place = np.full(model.structure.shape, -1)
    place[joints, columns] = np.arange(len(joints))
    out = np.empty((len(joints), len(q)))
    model.fill(*state, place, out)
    np.testing.assert_allclose(out.T, model.regressor(*state)[:, joints, columns])


def test_the_machine_it_describes_moves_by_the_same_equations() -> None:
    """Accelerations from equal torques in both equations: those of link and motor alone."""
    model, theta = flexible_arm()
    q, dq, _ = (x[:1] for x in _state(6))
    tau = np.array([[0.5, -1.0, 0.2]])
    found = complete(model).forward_dynamics(theta, q, dq, np.hstack([tau, tau]))
    own = theta[:len(model.links.parameters)]
    spring = 1000.0 * (q[:, 3:] - q[:, :3]) + 2.0 * (dq[:, 3:] - dq[:, :3])
    motor = (tau - 0.5 * dq[:, 3:] - 0.4 * np.sign(dq[:, 3:]) - spring) / 0.2
    np.testing.assert_allclose(found[:, 3:], motor, rtol=1e-9)
    np.testing.assert_allclose(found[:, :3], model.links.forward_dynamics(own, q[:, :3], dq[:, :3], spring), rtol=1e-9)


def test_every_number_of_a_flexible_joint_is_a_base_parameter_of_its_own() -> None:
    model, _ = flexible_arm(skew=True)
    own = {f"{symbol}{j}" for symbol in ("K", "D", "Ko", "Ks", "Jm", "Fvm", "Fcm") for j in (1, 2, 3)}
    assert own <= set(base_parameters(model).names)
    assert model.joint_names[3:] == ("joint1 motor", "joint2 motor", "joint3 motor")
    assert model.same_torque == ((0, 3), (1, 4), (2, 5))


def test_some_joints_may_be_rigid() -> None:
    links = Model(ROBOT, (RigidBodies(), RotorInertia(joints=(1, 3))))
    model = FlexibleModel(links, joints=("joint2",), motor_friction=("viscous",))
    assert model.dof == 4 and model.bending == (1,)
    assert model.parameters.names[-5:] == ("Jm2", "Fvm2", "K2", "D2", "Ko2")
    assert {"Ia1", "Ia3", "Ia2"} <= set(model.rigid.parameters.names)


def test_as_rigid_the_motors_sit_on_the_links() -> None:
    """With th = q both sides turn alike, and the first equation is that of the rigid robot."""
    model, theta = flexible_arm()
    q, dq, ddq = _state(3)
    both = model.inverse_dynamics(theta, *(np.hstack([x, x]) for x in (q, dq, ddq)))
    np.testing.assert_allclose(model.rigid.inverse_dynamics(model.rigid_values(theta), q, dq, ddq), both[:, :3],
                               rtol=1e-12)


@pytest.mark.parametrize(("terms", "friction", "message"), [
    ((RigidBodies(), RotorInertia()), ("viscous",), ("bad-model", "Jm", "'rotor'")),
    ((RigidBodies(), FrictionCurve()), ("viscous",), ("bad-model", "'curve'")),
    (make_terms(ROBOT, friction=["dahl"]), ("viscous",), ("bad-model", "'dahl'")),
    ((RigidBodies(),), ("vicous",), ("bad-model", "'vicous'")),
])
def test_what_cannot_be_is_refused(terms, friction, message) -> None:
    with refused(ModelError, *message):
        FlexibleModel(Model(ROBOT, terms), motor_friction=friction)

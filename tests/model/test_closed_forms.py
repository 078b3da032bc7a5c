"""The SCARA's closed form against its tree; the differential drive against Newton's law and its energy."""

from __future__ import annotations

import numpy as np
from refusals import refused

from dynid.errors import ModelError
from dynid.model import DifferentialDrive, Model, Scara, make_terms
from dynid.robot import Robot


def test_scara_closed_form_equals_its_tree():
    robot = Robot.builtin("scara2")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = dict(zip(model.parameters.names, model.parameters.vector(model.parameters.nominal), strict=True))
    length = 0.5
    base = [theta["ZZ1"] + theta["M2"] * length ** 2, theta["Fv1"], theta["Fc1"], theta["ZZ2"], length * theta["MX2"],
            length * theta["MY2"], theta["Fv2"], theta["Fc2"]]
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 20, 2))
    scara = Scara()
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    assert np.allclose(scara.inverse_dynamics(base, q, dq, ddq), tau, rtol=1e-12)
    assert np.allclose(scara.inertia_matrix(base, q), model.inertia_matrix(theta, q), rtol=1e-12)
    assert np.allclose(scara.forward_dynamics(base, q, dq, tau), ddq)
    assert scara.regressor(q[0], dq[0], ddq[0]).shape == (2, 8)


def test_differential_drive_obeys_newton():
    """Forces and moment about the centre of mass (Ardiani, eq. E.9) with ideal wheels (E.11), solved numerically."""
    m, inertia, wheel, friction, R, L, bx, by = 63.14, 2.97, 7.854e-3, 0.02, 0.1, 0.43, 0.019, 0.013
    theta = DifferentialDrive.from_physical(m, inertia, wheel, friction, R, L, bx, by)
    drive = DifferentialDrive()
    for v, w, dv, dw in np.random.default_rng(1).normal(size=(10, 4)):
        # Centre of mass: v_G = v - by w along x, u_G = bx w along y, in axes that turn with w.
        ax = dv - by * dw - w * (bx * w)
        ay = bx * dw + w * (v - by * w)
        # Forces of the wheels along x; the sideways force acts on the axle, bx behind the centre of mass.
        # m ax = Fr + Fl, Iz dw = (L/2 + by) Fr - (L/2 - by) Fl - bx m ay.
        forces = np.linalg.solve([[1, 1], [L / 2 + by, -(L / 2 - by)]], [m * ax, inertia * dw + bx * m * ay])
        speeds, rates = np.array([v + w * L / 2, v - w * L / 2]) / R, np.array([dv + dw * L / 2, dv - dw * L / 2]) / R
        torque = R * forces + wheel * rates + friction * speeds
        assert np.allclose(drive.inverse_dynamics(theta, np.zeros(2), [v, w], [dv, dw]), torque, rtol=1e-9)
        assert np.allclose(drive.forward_dynamics(theta, np.zeros(2), np.array([v, w]), torque), [dv, dw])


def test_differential_drive_in_wheel_angles_is_the_same_robot():
    R, L = 0.1, 0.43
    theta = DifferentialDrive.from_physical(63.14, 2.97, 7.854e-3, 0.02, R, L, 0.019, 0.013)
    body, wheels = DifferentialDrive(), DifferentialDrive((R, L))
    dq, ddq, tau = np.random.default_rng(2).normal(size=(3, 20, 2))
    v, w = (dq[:, 0] + dq[:, 1]) * R / 2, (dq[:, 0] - dq[:, 1]) * R / L
    dv, dw = (ddq[:, 0] + ddq[:, 1]) * R / 2, (ddq[:, 0] - ddq[:, 1]) * R / L
    same = body.regressor(dq, np.column_stack([v, w]), np.column_stack([dv, dw]))
    assert np.allclose(wheels.regressor(dq, dq, ddq), same, rtol=1e-12)
    assert np.allclose(wheels.inverse_dynamics(theta, dq, dq, wheels.forward_dynamics(theta, dq, dq, tau)), tau)
    inertia = wheels.inertia_matrix(theta, np.zeros(2))
    assert np.allclose(inertia, inertia.T, rtol=1e-12) and np.all(np.linalg.eigvalsh(inertia) > 0)


def test_differential_drive_keeps_its_energy():
    """Power of the wheels = rate of kinetic energy of body and wheels + viscous loss, along a simulated motion."""
    m, inertia, wheel, friction, R, L, bx, by = 63.14, 2.97, 7.854e-3, 0.2, 0.1, 0.43, 0.019, -0.013
    drive = DifferentialDrive((R, L))
    theta = drive.from_physical(m, inertia, wheel, friction, R, L, bx, by)

    def energy(rates):
        v, w = (rates[0] + rates[1]) * R / 2, (rates[0] - rates[1]) * R / L
        return 0.5 * (m * ((v - by * w) ** 2 + (bx * w) ** 2) + inertia * w ** 2 + wheel * np.sum(rates ** 2))

    for rates, tau in np.random.default_rng(3).normal(size=(10, 2, 2)) * [[20.0], [5.0]]:
        step = 1e-6 * drive.forward_dynamics(theta, np.zeros(2), rates, tau)
        rate = (energy(rates + step) - energy(rates - step)) / 2e-6
        assert np.isclose(tau @ rates, rate + friction * np.sum(rates ** 2), rtol=1e-6)


def test_differential_drive_refuses_impossible_wheels():
    with refused(ModelError, "wrong-wheels"):
        DifferentialDrive((0.1, 0.0))

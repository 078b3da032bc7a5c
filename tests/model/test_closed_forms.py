"""The SCARA's closed form against its tree; the differential drive against Newton's law."""

from __future__ import annotations

import numpy as np

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

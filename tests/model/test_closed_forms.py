"""The SCARA's closed form against its tree; the differential drive against Newton's law and its energy."""

from __future__ import annotations

import numpy as np
from refusals import refused

from dynid.errors import ModelError
from dynid.model import DifferentialDrive, MobileBase, Model, Scara, make_terms
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


def test_disturbances_of_slip_and_forces_obey_newton():
    """Forces and moment about the centre of mass with slipping wheels and a push, solved numerically."""
    base = MobileBase(m=63.14, inertia=2.97, wheel_inertia=7.854e-3, friction=0.2, radius=0.1, track=0.43, bx=0.019,
                      by=0.013)
    R, L, drive, theta = base.radius, base.track, DifferentialDrive(), base.theta
    for v, w, dv, dw, us, dus, sr, sl, dsr, dsl, fx, fy, ex, ey, turn in np.random.default_rng(4).normal(size=(10, 15)):
        # Acceleration of the centre of mass at (bx, by), in axes that turn with w.
        ax = dv - base.by * dw - w * (us + base.bx * w)
        ay = dus + base.bx * dw + w * (v - base.by * w)
        # Ahead: wheels and push. Sideways: the axle gives what the push does not. Moments are about the centre of mass.
        axle = base.m * ay - fy
        moment = base.inertia * dw - (-base.bx * axle + (ex - base.bx) * fy - (ey - base.by) * fx + turn)
        forces = np.linalg.solve([[1, 1], [L / 2 + base.by, -(L / 2 - base.by)]], [base.m * ax - fx, moment])
        speeds = (np.array([v + w * L / 2, v - w * L / 2]) - (sr, sl)) / R
        rates = (np.array([dv + dw * L / 2, dv - dw * L / 2]) - (dsr, dsl)) / R
        torque = R * forces + base.wheel_inertia * rates + base.friction * speeds
        delta = base.disturbance(w, slip=[sr, sl], slip_rate=[dsr, dsl], side_slip=us, side_slip_rate=dus,
                                 force=[fx, fy], point=[ex, ey], moment=turn)
        found = drive.forward_dynamics(theta, np.zeros(2), np.array([v, w]), torque + base.wheel_torques(delta))
        assert np.allclose(found, [dv, dw])


def test_slip_of_one_wheel_turns_the_body():
    drive = DifferentialDrive((0.1, 0.43))
    assert np.allclose(drive.body_speeds([[2.0, 2.0]]), [[0.2, 0.0]], atol=1e-15)
    assert np.allclose(drive.body_speeds([[2.0, 2.0]], [[-0.05, 0.0]]), [[0.175, -0.05 / 0.43]])
    with refused(ModelError, "wheels-needed"):
        DifferentialDrive().body_speeds([[2.0, 2.0]], [[-0.05, 0.0]])


def test_a_pose_needs_a_rate():
    with refused(ModelError, "wrong-rate"):
        DifferentialDrive().pose([[2.0, 2.0]], 0.0)

"""Parts of the reproduction of the mobile robot."""

from __future__ import annotations

import numpy as np

from dynid.model import DifferentialDrive
from reproductions import mobile_robot


def test_balanced_model_is_the_drive_with_its_mass_between_the_wheels():
    centred = {**mobile_robot.ROBOT, "by": 0.0}
    theta = DifferentialDrive.from_physical(**centred, friction=0.2)
    balanced = mobile_robot.Balanced(mobile_robot.DRIVE)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 20, 2))
    tau = mobile_robot.DRIVE.inverse_dynamics(theta, q, dq, ddq)
    assert np.allclose(balanced.regressor(q, dq, ddq) @ theta[:6], tau, rtol=1e-12)
    assert np.allclose(balanced.forward_dynamics(theta[:6], q[0], dq[0], tau[0]), ddq[0])


def test_reference_is_one_motion_from_rest():
    reference = mobile_robot.motion()
    assert np.allclose(np.gradient(reference.q, 1 / reference.rate, axis=0)[1:-1], reference.dq[1:-1], atol=1e-3)
    assert np.allclose(np.gradient(reference.dq, 1 / reference.rate, axis=0)[1:-1], reference.ddq[1:-1], atol=1e-3)
    assert np.all(np.abs(reference.dq[0]) < 0.01)

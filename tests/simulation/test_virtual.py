"""The virtual robot: what is written into its logs, and that a seed repeats it."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError
from dynid.model import Coulomb, Model, RigidBodies, RotorInertia, Viscous
from dynid.robot import Robot
from dynid.simulation import PD, Reference, Ripple, VirtualRobot

ROBOT = Robot.builtin("scara2")
MODEL = Model(ROBOT, (RigidBodies(), RotorInertia(), Viscous(), Coulomb()))
THETA = np.array([0.5 if p.name.startswith("Ia") else p.nominal for p in MODEL.parameters], dtype=float)
LAW = PD(400.0, 60.0)


def reference(seconds: float = 2.0, rate: float = 1000.0) -> Reference:
    t = np.arange(int(seconds * rate)) / rate
    return Reference.from_arrays(np.column_stack([0.5 - 0.5 * np.cos(2 * t), 0.3 * np.sin(3 * t) ** 2]), rate=rate)


def test_a_seed_repeats_the_log_and_another_does_not() -> None:
    robot = VirtualRobot(MODEL, THETA, LAW, encoder=1e-4, torque_noise=0.1, position_noise=1e-5, jitter=1e-5)
    one, same, other = (robot.record(reference(), seed=s) for s in (3, 3, 4))
    assert np.array_equal(one.q, same.q) and np.array_equal(one.tau, same.tau)
    assert not np.array_equal(one.tau, other.tau)
    assert one.reference is not None and np.array_equal(one.reference, reference().q)
    assert one.joints == ROBOT.joint_names


def test_encoder_counts_and_torque_noise_are_as_asked() -> None:
    clean = VirtualRobot(MODEL, THETA, LAW).record(reference())
    rough = VirtualRobot(MODEL, THETA, LAW, encoder=[1e-3, 2e-3], torque_noise=[0.5, 0.1]).record(reference(), seed=1)
    counts = rough.q / [1e-3, 2e-3]
    assert np.abs(counts - np.round(counts)).max() < 1e-9
    assert np.abs(rough.q - clean.q).max() < 2.5e-3
    # The controller saw the steps too; what is left after its own reaction is the sensor's noise.
    quiet = VirtualRobot(MODEL, THETA, LAW, encoder=[1e-3, 2e-3]).record(reference(), seed=1)
    assert (rough.tau - quiet.tau).std(axis=0) == pytest.approx([0.5, 0.1], rel=0.05)


def test_noise_by_its_ratio_to_the_signal() -> None:
    """30 and 40 dB below the mean square of the logged signal, per joint; the loop does not see it."""
    clean = VirtualRobot(MODEL, THETA, LAW).record(reference())
    rough = VirtualRobot(MODEL, THETA, LAW, position_snr=30.0, torque_snr=[30.0, 40.0]).record(reference(), seed=1)
    for noisy, signal, ratio in ((rough.q, clean.q, [30.0, 30.0]), (rough.tau, clean.tau, [30.0, 40.0])):
        found = 10.0 * np.log10(np.mean(signal ** 2, axis=0) / np.mean((noisy - signal) ** 2, axis=0))
        assert found == pytest.approx(ratio, abs=0.4)
    with refused(ModelError, "wrong-count"):
        VirtualRobot(MODEL, THETA, LAW, torque_snr=[1.0, 2.0, 3.0]).record(reference())


def test_encoder_steps_travel_round_the_loop_into_the_torque() -> None:
    still = Reference.from_arrays(np.full((500, 2), 0.12345), rate=1000.0)
    step = VirtualRobot(MODEL, THETA, LAW, encoder=1e-3, speed="difference").record(still)
    assert np.abs(step.tau[1:]).max() >= 0.99 * 400.0 * 0.00045
    smooth = VirtualRobot(MODEL, THETA, LAW, encoder=1e-3, speed="difference", speed_cutoff=20.0)
    moving = reference()
    rough = VirtualRobot(MODEL, THETA, LAW, encoder=1e-3, speed="difference").record(moving)
    assert np.diff(smooth.record(moving).tau, axis=0).std() < 0.5 * np.diff(rough.tau, axis=0).std()


def test_delay_thinning_and_ripple() -> None:
    plain = VirtualRobot(MODEL, THETA, LAW).record(reference())
    late = VirtualRobot(MODEL, THETA, LAW, delay=0.005).record(reference())
    assert np.abs(late.tau[105:1900] - plain.tau[100:1895]).max() < 1e-6 * np.abs(plain.tau).max()
    assert np.array_equal(late.q, plain.q)
    thin = VirtualRobot(MODEL, THETA, LAW, thin=5).record(reference())
    assert np.array_equal(thin.q, plain.q[::5]) and thin.rate == pytest.approx(200.0)
    rippled = VirtualRobot(MODEL, THETA, LAW, ripple=Ripple(0.5, 30.0)).record(reference())
    assert 0.1 < np.abs(rippled.tau - plain.tau).max() < 2.0
    with refused(ModelError, "unknown-velocity-feedback", "true", "difference", "exact"):
        VirtualRobot(MODEL, THETA, LAW, speed="exact").record(reference())


def test_clean_logs_obey_the_model() -> None:
    """Torque at a row is the mean about its tick: central differences of the positions then obey the inverse model."""
    model = Model(ROBOT, (RigidBodies(), RotorInertia(), Viscous()))
    theta = np.array([0.5 if p.name.startswith("Ia") else p.nominal for p in model.parameters], dtype=float)
    log = VirtualRobot(model, theta, LAW).record(reference())
    dq = np.gradient(log.q, 1e-3, axis=0)
    ddq = np.zeros_like(log.q)
    ddq[1:-1] = (log.q[2:] - 2 * log.q[1:-1] + log.q[:-2]) * 1e6
    tau = model.inverse_dynamics(theta, log.q, dq, ddq)
    inside = slice(100, -100)
    assert np.linalg.norm((tau - log.tau)[inside]) < 1e-3 * np.linalg.norm(log.tau[inside])

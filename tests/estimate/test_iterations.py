"""Steps that estimates keep: against what they say of themselves elsewhere, and in files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.closed_loop.start import unit_links
from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.simulation import Poles, Reference, VirtualRobot

MODEL = Model(Robot.builtin("scara2"), (RigidBodies(), Viscous(), Coulomb()))
THETA = np.array([p.nominal for p in MODEL.parameters], dtype=float)
BASE = base_parameters(MODEL)


def problem(method: str = "") -> Problem:
    """A filter, which takes each row of the log, has half of it."""
    return recorded(1500 if method == "ekf" else 3000)


@cache
def recorded(rows: int) -> Problem:
    t = np.arange(rows) / 200.0
    q = np.column_stack([2 * np.sin(0.9 * t) + np.sin(1.9 * t + 0.4), 1.5 * np.sin(1.3 * t) + 0.8 * np.sin(2.7 * t)])
    law = Poles([8.0, 12.0])
    log = VirtualRobot(MODEL, THETA, law, encoder=2 * np.pi / 40000, torque_noise=[0.5, 0.05]).record(
        Reference.from_arrays(q, rate=200.0), seed=1)
    return Problem.from_model(MODEL, prepare(log, cutoff=20, decimate=10, slow=0.0), base=BASE, recordings=log,
                              controller=law)


@cache
def found(method: str) -> Estimate:
    return identify(problem(method), method=method, **({"passes": 2} if method == "ekf" else {}))


@pytest.mark.parametrize("method", ["iv", "pc-iv", "didim", "pc-didim", pytest.param("ekf", marks=pytest.mark.slow)])
def test_steps_end_at_the_estimate(method: str) -> None:
    estimate = found(method)
    steps = estimate.iterations
    assert np.array_equal(steps[-1].values, estimate.values)
    errors = [problem(method).regression.relative_errors(one.values) for one in steps]
    assert np.allclose([one.relative_error_per_joint for one in steps], errors)
    assert [one.number for one in steps] == sorted(one.number for one in steps)
    assert steps[-1].number == estimate.diagnostics["iterations"]
    motions = [one.motion for one in steps if one.motion is not None]
    assert motions and steps[-1].motion is not None
    data = problem(method).as_logged()[0] if method == "ekf" else problem(method).data[0]
    rows = np.searchsorted(data.t, motions[-1].t - 1e-9)
    assert np.array_equal(motions[-1].measured, data.q[rows]) and motions[-1].q.shape == (len(rows), 2)


@pytest.mark.parametrize("method", ["iv", "didim"])
def test_the_last_simulated_motion_is_the_measured_one_and_not_the_reference(method: str) -> None:
    first, last = (found(method).iterations[k].motion for k in (0, -1))
    assert first is not None and last is not None and last.from_reference is not None
    # A virtual machine with the true law: what is left is the encoder's step in derivatives.
    assert np.all(last.errors[0] < 0.1) and np.all(last.errors[1] < 1.0)
    assert np.all(last.from_reference[0] > 20.0) and last.tracking_error < 0.01 * first.tracking_error
    shown = 100.0 * np.linalg.norm(last.q - last.measured, axis=0) / np.linalg.norm(
        last.measured - last.measured.mean(axis=0), axis=0)
    assert np.all(shown < 3.0)  # the first rows, before the start is forgotten, are in the curves alone
    assert last.torque_error is not None and np.all(last.torque_error < 15.0)


def test_deviations_of_a_filter_shrink_over_a_pass() -> None:
    steps = found("ekf").iterations
    assert len(steps) == 40 and steps[19].number == 1.0 and steps[19].motion is not None
    early, late = steps[1].std, steps[19].std
    assert early is not None and late is not None and np.all(late < early)
    assert np.allclose(found("ekf").std, steps[-1].std)


@pytest.mark.parametrize("method", ["iv", "ekf", "wls"])
def test_a_file_keeps_the_steps(method: str, tmp_path: Path) -> None:
    estimate = identify(problem(), method="wls") if method == "wls" else found(method)
    estimate.save(tmp_path / "estimate.npz")
    again = Estimate.load(tmp_path / "estimate.npz", MODEL)
    assert len(again.iterations) == len(estimate.iterations)
    for one, other in zip(estimate.iterations, again.iterations, strict=True):
        assert one.to_dict(BASE.names) == other.to_dict(BASE.names)
        if one.motion is not None and other.motion is not None:
            assert np.allclose(one.motion.q, other.motion.q, rtol=1e-6, atol=1e-6)
    assert (tmp_path / "estimate.npz").stat().st_size < 100_000


def test_the_second_regular_start_leads_to_the_same_and_its_inertia_matrix_is_regular() -> None:
    other = identify(problem(), method="iv", start="regular-links")
    assert np.all(np.abs(other.values - found("iv").values) < 0.1 * found("iv").std)
    robot = Robot.builtin("kuka-lwr4")
    links = Model(robot, (RigidBodies(),))
    postures = np.random.default_rng(0).uniform(-3.0, 3.0, (50, robot.dof))
    # ZZ of a link about its own axis is an inertia of one along the sum of the axes that turn it.
    matrices = links.inertia_matrix(unit_links(robot), postures)
    assert np.allclose(matrices[:, -1, -1], 1.0) and np.all(np.linalg.eigvalsh(matrices) > 1e-3)
    assert np.all(np.diagonal(matrices, axis1=1, axis2=2) >= 1.0 - 1e-12)
    assert np.allclose(np.linalg.det(matrices), 1.0)  # unit triangular Jacobians

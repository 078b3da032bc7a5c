"""The simulated loop of a carriage whose motion, parameters and references are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.signal import lsim

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem
from dynid.estimate.closed_loop.loop import at_samples, friction_sign_unclear, make_loop, tracking
from dynid.estimate.closed_loop.start import first_run
from dynid.estimate.direct import torque_slopes
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.simulation import Cascade, Poles, Reference, Simulation, VirtualRobot

ROBOT = Robot.builtin("emps")
MODEL = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb", "offset")))
THETA = np.array([{"M1": 95.0, "Fv1": 200.0, "Fc1": 20.0, "Fo1": 8.0}.get(p.name, 0.0) for p in MODEL.parameters])
LAW = Cascade(30.0, 4000.0)


@cache
def recording(law: Cascade = LAW) -> Recording:
    t = np.arange(4000) / 500.0
    path = Reference.from_arrays((0.12 * np.sin(1.7 * t) + 0.05 * np.sin(4.1 * t))[:, None], rate=500.0)
    return VirtualRobot(MODEL, THETA, law).record(path)


def problem(log: Recording, law: Cascade | Poles | None) -> Problem:
    samples = prepare(log, cutoff=40, slow=0.0)
    return Problem.from_model(MODEL, samples, recordings=log, controller=law)


def test_the_true_parameters_follow_the_log() -> None:
    loop = make_loop(problem(recording(), LAW), "iv")
    assert tracking(loop.logs, loop.run(THETA).motions) < 0.02
    assert not loop.logs[0].from_positions
    assert loop.apparent_inertia is not None and loop.apparent_inertia[0] == pytest.approx(95.0, rel=0.5)


def test_far_from_the_apparent_inertia_the_gains_that_follow_the_log_better_are_kept() -> None:
    loop = make_loop(problem(recording(), LAW), "iv")
    near, far = loop.run(THETA), loop.run(40.0 * THETA)
    assert near.law_of == loop.machine_law and far.law_of == loop.rescaled_law
    heavy = loop.rescaled_law(40.0 * THETA).law(1)
    assert heavy is not None and loop.apparent_inertia is not None
    assert heavy.kd[0] / LAW.law(1).kd[0] == pytest.approx(40.0 * 95.0 / loop.apparent_inertia[0], rel=1e-9)


def test_a_reference_from_positions_carries_the_torque_of_the_robot() -> None:
    """Friction and the offset make a loop without integral lag; a reference that knows their torque does not."""
    log = replace(recording(), reference=None, reference_velocity=None)
    loop = make_loop(problem(log, Poles(30.0)), "didim")
    assert loop.logs[0].from_positions
    samples = loop.logs[0].samples
    off = [np.abs(run(THETA).motions[0].q - samples.q)[samples.t > 1.0].max()
           for run in (loop.run, loop.run_following)]
    assert off[1] < 1e-4 and off[0] > 10.0 * off[1]


def test_gains_need_the_reference_they_followed() -> None:
    log = replace(recording(), reference=None, reference_velocity=None)
    with pytest.raises(ModelError) as error:
        make_loop(problem(log, LAW), "iv")
    assert error.value.code == "no-reference"


def test_a_robot_that_cannot_move_is_refused() -> None:
    loop = make_loop(problem(recording(), LAW), "iv")
    with pytest.raises(NotPossibleError) as error:
        loop.run(-THETA)
    assert error.value.code == "inertia-not-positive"


def test_the_regular_start_has_unit_inertia_and_the_machines_poles() -> None:
    """q / qr = 1 / (s^2 / w^2 + 2 z s / w + 1) for known poles: the unit mass follows that, by scipy."""
    data = problem(recording(), Poles(6.0, 0.8))
    loop = make_loop(data, "iv", step=2e-4)
    motion = first_run(data, loop, "regular").motions[0]
    reference = loop.logs[0].reference
    _, q, _ = lsim(([36.0], [1.0, 9.6, 36.0]), reference.q[:, 0], reference.t)
    # The first tick starts with the reference's velocity, the transfer function at rest: compare once that is over.
    settled = motion.t > reference.t[1000]
    assert np.abs(motion.q[settled, 0] - np.interp(motion.t[settled], reference.t, q)).max() < 2e-3 * np.ptp(q)


def test_slopes_of_a_stiff_loop_are_the_regressor() -> None:
    """A motion that no parameter moves leaves M = 1; in a soft loop it takes a part of each parameter with it."""
    found = {}
    for stiffness in (1.0, 20.0):
        law = Cascade(30.0 * stiffness, 4000.0 * stiffness)
        data = problem(recording(law), law)
        loop = make_loop(data, "didim", step=2e-4)
        run = loop.run_following(THETA)
        samples = [replace(run.motions[0], tau=loop.logs[0].samples.tau)]
        sizes = 1e-3 * np.abs(data.base.reduce(THETA))
        found[stiffness] = torque_slopes(data, loop, run.law_of, THETA, samples, np.ones(1), sizes)
    scale = np.abs(problem(recording(), LAW).base.reduce(THETA))
    soft, stiff = (np.abs(m * scale / scale[:, None] - np.eye(len(m))).max() for m in found.values())
    assert stiff < 0.05 and stiff < 0.5 * soft


def test_a_motion_at_the_rows_of_samples() -> None:
    t = np.arange(1001) / 1000.0
    q, dq, ddq = np.sin(3.0 * t)[:, None], 3.0 * np.cos(3.0 * t)[:, None], -9.0 * np.sin(3.0 * t)[:, None]
    motion = Simulation(t, q, dq, ddq, q, q, 1000.0)
    samples = prepare(Recording(t[::5], q[::5], q[::5]), method="none", torque_cutoff="none", slow=0.0)
    there = at_samples(samples, motion)
    assert np.allclose(there.q[:, 0], np.sin(3.0 * samples.t), atol=1e-12)
    assert np.allclose(there.ddq[1:-1, 0], -9.0 * np.sin(3.0 * samples.t[1:-1]), atol=1e-4)


def test_dry_friction_of_a_sum_of_speeds_has_no_sign_where_they_cancel() -> None:
    dq = np.array([[1.0, -1.0], [1.0, 1.0], [0.002, 0.5], [0.5, 0.002]])
    unclear = friction_sign_unclear(np.array([[1.0, 0.0], [1.0, 1.0]]), np.zeros(2), [dq])
    # Joint 1 feels both elements, joint 2 only the sum.
    assert unclear.tolist() == [[True, True], [False, False], [True, False], [False, False]]

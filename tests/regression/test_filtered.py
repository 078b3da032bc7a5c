"""Filtered rows against rows of accelerations, closed forms and the truth of noiseless motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from filtered_logs import simulated
from refusals import refused

from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.estimate import Problem, identify
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.regression import fold, prepared_equations

KINDS = ["kernel", "power", "energy"]


@pytest.mark.parametrize("kind", KINDS)
def test_noiseless_motions_give_the_truth(kind):
    """As far as the sign of a filtered velocity is that of the true one."""
    model, theta, log = simulated("arm3r")
    problem = Problem.from_model(model, prepare(log, equations=kind, cutoff=16.0))
    found, truth = identify(problem, method="ols"), problem.base.reduce(theta)
    moved = problem.torques.regression.relative_error(found.values)
    assert np.abs(found.values - truth).max() < 0.02 * np.abs(truth).max() and moved < 0.2
    assert problem.filtered == kind and problem.regression.dof == (3 if kind == "kernel" else 1)


@pytest.mark.parametrize("name", ["arm3r", "scara2"])
def test_rows_of_momentum_and_of_accelerations_agree(name):
    """With one filter on both sides they give the same parameters to three digits, noise and all."""
    model, _, log = simulated(name, positions=2e-5, torques=0.02, seconds=15.0)
    samples = prepare(log, equations="kernel", kernel_window=0.15)
    signals, whole = samples.filtered, np.array([[0, len(samples)]])
    equations = prepared_equations(model, samples)
    ddq = signals.filter.motion.applied(log.q, samples.rate, whole, 2)
    y = model.regressor(signals.q, signals.dq, ddq)[:, :, equations.base.independent]
    kernel = signals.filter.kernel
    filtered = kernel.applied(y.reshape(len(y), -1), samples.rate, whole).reshape(y.shape)
    tau = kernel.applied(signals.tau, samples.rate, whole)
    rows = [equations.rows(piece) for piece in equations.pieces()]
    at = np.concatenate([np.array(piece.rows) for piece in equations.pieces()])
    keep = np.concatenate([one.keep for one in rows])
    stacked = [filtered[at][keep], tau[at][keep]]
    ours = identify(Problem.from_model(model, samples), method="ols").values
    theirs = np.linalg.lstsq(*stacked, rcond=None)[0]
    assert np.abs(ours - theirs).max() < 1e-3 * np.abs(theirs).max()
    deviations = identify(Problem.from_model(model, samples), method="ols").std
    assert np.abs((ours - theirs) / deviations).max() < 0.2


def test_a_slider_in_closed_form():
    """EMPS' row is g'' on the position: M, Fv and Fc by two kernels in a row, written out."""
    model, theta, log = simulated("emps", seconds=10.0)
    samples = prepare(log, equations="kernel", kernel_window=0.1, slow=0.0)
    equations, filter_ = prepared_equations(model, samples), samples.filtered.filter
    piece = equations.pieces()[0]
    rows = equations.rows(piece)
    motion = filter_.motion
    velocity = np.convolve(log.q[:, 0], motion.taps(1000.0, 1), mode="valid")
    first = len(motion.taps(1000.0)) - 1 - round(motion.delay_s * 1000.0)
    k = len(piece.rows) // 2
    newest = piece.rows[k] + filter_.late - first
    window = slice(newest, newest - len(filter_.taps), -1)
    expected = [filter_.rates @ velocity[window], filter_.taps @ velocity[window],
                filter_.taps @ np.sign(velocity[window]), filter_.taps.sum(),
                filter_.taps @ log.tau[newest + first:newest + first - len(filter_.taps):-1, 0]]
    np.testing.assert_allclose(rows.joint(0)[:, k], expected, rtol=1e-9, atol=1e-9)
    assert theta[model.parameters.index("M1")] > 0


def test_energy_of_a_slider_is_its_kinetic_energy():
    model, _, log = simulated("emps", seconds=10.0)
    samples = prepare(log, equations="energy", kernel_window=0.2)
    equations, signals = prepared_equations(model, samples), samples.filtered
    piece = equations.pieces()[0]
    rows = equations.rows(piece)
    v = signals.dq[:, 0]
    k = len(piece.rows) // 2
    part = slice(piece.rows[k] - signals.filter.before, piece.rows[k] + signals.filter.late + 1)
    kinetic = 0.5 * (v[part][-1] ** 2 - v[part][0] ** 2)
    found = rows.joint(0)[:, k]
    work = np.trapezoid(v[part] * signals.tau[part, 0], dx=1e-3)
    dry, viscous = np.trapezoid(np.abs(v[part]), dx=1e-3), np.trapezoid(v[part] ** 2, dx=1e-3)
    np.testing.assert_allclose(found / found[-1] * work, [kinetic, viscous, dry, np.trapezoid(v[part], dx=1e-3), work],
                               rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_is_taken_off(kind):
    model, theta, log = simulated("arm3r", seconds=10.0)
    known = {name: float(theta[model.parameters.index(name)]) for name in ("Fv2", "Fc1", "Fo3")}
    samples = prepare(log, equations=kind, cutoff=16.0)
    free, told = (identify(Problem.from_model(model, samples, known=one), method="ols") for one in (None, known))
    assert set(free.names) - set(told.names) == set(known)
    shared = [free.names.index(name) for name in told.names]
    assert np.abs(free.values[shared] - told.values).max() < 0.02 * np.abs(free.values).max()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_cross_gaps_or_saturated_torques(kind):
    model, theta, log = simulated("arm3r", seconds=16.0)
    there = np.ones(len(log), dtype=bool)
    there[6000:6400] = False
    tau = log.tau.copy()
    tau[10_000:10_200, 1] = 400.0  # clipped, and nonsense: a row that sees it would be far off
    broken = Recording(t=log.t[there], q=log.q[there], tau=tau[there], joints=log.joints)
    samples = prepare(broken, equations=kind, cutoff=8.0, saturation=400.0)
    problem = Problem.from_model(model, samples)
    found, truth = identify(problem, method="ols"), problem.base.reduce(theta)
    assert np.abs(found.values - truth).max() < 0.03 * np.abs(truth).max()


def test_pieces_and_threads_do_not_change_the_fold():
    model, _, log = simulated("arm3r", positions=1e-5, torques=0.02, seconds=12.0)
    for kind in KINDS:
        equations = prepared_equations(model, prepare(log, equations=kind, cutoff=16.0))
        one, two = (fold(equations, blocks=blocks, threads=threads) for blocks, threads in ((1, 1), (7, 2)))
        assert one.rows == two.rows
        for a, b in zip(one.factors, two.factors, strict=True):
            np.testing.assert_allclose(a.r.T @ a.r, b.r.T @ b.r, rtol=1e-8, atol=1e-8 * np.abs(a.r.T @ a.r).max())


def test_unmeasured_joints_have_kernels_but_no_power():
    model, _, log = simulated("arm3r", seconds=8.0)
    silent = replace(log, unmeasured=("joint3",))
    assert Problem.from_model(model, prepare(silent, equations="kernel", cutoff=8.0)).regression.rows[2] == 0
    with refused(NotPossibleError, "torque-not-measured", "joint3"):
        prepare(silent, equations="power", cutoff=8.0)


def test_what_does_not_go_together_is_refused():
    model, _, log = simulated("arm3r", seconds=8.0)
    with refused(RecordingError, "wrong-setting", "'kernel'", "'thin'"):
        prepare(log, equations="kernel", thin=4)
    with refused(RecordingError, "wrong-setting", "'equations'", "'work'"):
        prepare(log, equations="work")
    with refused(NotPossibleError, "no-kernel"):
        prepare(log, equations="energy", suppress=50.0, cutoff=8.0)
    with refused(NotPossibleError, "window-too-short"):
        prepare(log, equations="kernel", suppress=3.0, kernel_window=0.1)
    with refused(NotPossibleError, "window-too-short", "0.003", "3"):
        prepare(log, equations="kernel", kernel_window=0.003)
    with refused(NotPossibleError, "log-too-short", "9 s"):
        prepare(log, equations="kernel", kernel_window=9.0, cutoff=8.0)
    with refused(ModelError, "different-equations"):
        Problem.from_model(model, [prepare(log, cutoff=8.0), prepare(log, equations="kernel", cutoff=8.0)])


def test_a_window_or_a_cut_off_say_the_same():
    _, _, log = simulated("arm3r", seconds=8.0)
    by_cutoff = prepare(log, equations="kernel", cutoff=10.0)
    window = by_cutoff.filtered.filter.window
    by_window = prepare(log, equations="kernel", kernel_window=window)
    assert by_window.settings["cutoff"] == pytest.approx(10.0, rel=1e-4)
    again = prepare(log, **by_cutoff.settings)
    assert np.array_equal(again.filtered.dq, by_cutoff.filtered.dq) and again.settings == by_cutoff.settings

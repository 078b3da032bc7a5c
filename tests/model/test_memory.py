"""Terms that need times or the order of samples: delay and Dahl friction, against known truths and simulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from refusals import refused

from dynid.datasets.identifiable import DataFacts, bind_to_data
from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Dahl, Delay, Hysteresis, LuGreFriction, Model, RigidBodies, RotorInertia, Viscous, make_terms
from dynid.model.term import MotionSegment
from dynid.recording import Samples
from dynid.recording.samples import Decimation
from dynid.regression import TorqueEquations, base_parameters, fold
from dynid.regression.equations import memory_states
from dynid.regression.residual_series import residuals
from dynid.robot import Robot
from dynid.simulation import PD, LuGre, Reference, TorqueDriven, simulate
from dynid.simulation.simulation import simulate_windows
from dynid.validate import reconstruct

ROBOT = Robot.builtin("arm3r")


def _sines(t, seed=0, dof=3):
    """q, dq, ddq (samples, dof) of sums of sines at times t."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = np.zeros((3, len(t), dof))
    for j in range(dof):
        for k in range(1, 6):
            w, phase, size = 2 * np.pi * k / 10.0, rng.uniform(0, 2 * np.pi), 1.5 * rng.normal() / k
            q[:, j] += size * np.sin(w * t + phase)
            dq[:, j] += size * w * np.cos(w * t + phase)
            ddq[:, j] -= size * w * w * np.sin(w * t + phase)
    return q, dq, ddq


def test_delays_of_each_joint_are_recovered_within_two_deviations():
    """Torques logged 4, 12 and -7 ms late beside the positions, no friction that jumps."""
    true, late = Model(ROBOT, make_terms(ROBOT, friction=["viscous"])), np.array([0.004, 0.012, -0.007])
    theta = np.array([0.8 if p.symbol == "Fv" else p.nominal or 0.0 for p in true.parameters])
    model = Model(ROBOT, (*true.terms, Delay()))
    t, off = np.arange(4000) / 200.0, []
    for seed in range(5):
        q, dq, ddq = _sines(t, seed)
        tau = np.column_stack([true.inverse_dynamics(theta, *_sines(t - late[j], seed))[:, j] for j in range(3)])
        tau += 0.02 * np.random.default_rng(seed).normal(size=tau.shape)
        estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, t=t, rate=200.0)),
                            method="wls")
        places = [estimate.names.index(f"D{j + 1}") for j in range(3)]
        off += list((estimate.values[places] - late) / estimate.std[places])
    assert np.mean(np.abs(off) <= 2.0) >= 0.85


def test_a_saved_delay_predicts_the_same(tmp_path):
    model = Model(ROBOT, (RigidBodies(), Viscous(), Delay(joints=(2,))))
    theta = np.array([{"Fv": 0.8}.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    t = np.arange(2000) / 100.0
    q, dq, ddq = _sines(t)
    tau = model.inverse_dynamics(theta, *_sines(t - 0.01)) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    samples = Samples.from_arrays(q, dq, ddq, tau, t=t, rate=100.0)
    estimate = identify(Problem.from_model(model, samples), method="wls")
    estimate.save(tmp_path / "estimate.npz")
    again = Estimate.load(tmp_path / "estimate.npz", model)
    assert again.score(samples) == pytest.approx(estimate.score(samples), rel=1e-12)
    np.testing.assert_array_equal(again.residuals(samples)[0].predicted, estimate.residuals(samples)[0].predicted)


def test_without_times_a_delay_adds_nothing():
    model = Model(ROBOT, (RigidBodies(), Delay()))
    theta = np.array([1.0 if p.symbol == "D" else p.nominal or 0.0 for p in model.parameters])
    q, dq, ddq = _sines(np.arange(20) / 10.0)
    bodies = Model(ROBOT)
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq),
                               bodies.inverse_dynamics([p.nominal for p in bodies.parameters], q, dq, ddq))
    assert not np.any(model.regressor(q, dq, ddq)[:, :, [p.symbol == "D" for p in model.parameters]])
    assert {"D1", "D2", "D3"} <= set(base_parameters(model).names)


def test_pieces_do_not_change_what_is_remembered():
    """The fold cuts logs into pieces of 1024 rows, with decimation into others: the columns are those of the whole."""
    model = Model(ROBOT, (RigidBodies(), Dahl(reach=0.3)))
    t = np.arange(5000) / 200.0
    q, dq, ddq = _sines(t)
    whole = model.memory(MotionSegment(t, q, dq, ddq))
    samples = Samples.from_arrays(q, dq, ddq, np.zeros_like(q), t=t, rate=200.0)
    y = model.regressor(q, dq, ddq, memory=whole)[:, :, base_parameters(model).independent]
    for decimation in (None, Decimation(5)):
        regression = fold(TorqueEquations.from_model(model, replace(samples, decimation=decimation)), threads=2)
        if decimation is None:
            for j, factor in enumerate(regression.factors):
                own = factor.r[:, :-1]
                np.testing.assert_allclose(own.T @ own, y[:, j, factor.columns].T @ y[:, j, factor.columns], rtol=1e-8,
                                           atol=1e-6)
    again = residuals(TorqueEquations.from_model(model, samples), np.ones(len(base_parameters(model))))[0]
    np.testing.assert_allclose(again.predicted, y.sum(axis=2), atol=1e-8)


def test_the_way_after_a_reversal_is_dahls_equation():
    """Against the differential equation dz/dq = (1 - z sign(dq)) / reach, integrated by scipy."""
    from scipy.integrate import solve_ivp

    t = np.linspace(0.0, 4.0, 4001)
    q = np.sin(2 * t)
    term = Dahl(reach=0.2, joints=(1,))
    ours = term.memory(Model(ROBOT), MotionSegment(t, np.column_stack([q, q, q]), *np.zeros((2, len(t), 3))))[:, 0]
    theirs = solve_ivp(lambda s, z: 2 * np.cos(2 * s) * (1 - z * np.sign(np.cos(2 * s))) / 0.2, (0.0, 4.0), [0.0],
                       t_eval=t, rtol=1e-9, atol=1e-9, max_step=1e-3).y[0]
    np.testing.assert_allclose(ours, theirs, atol=2e-4)


def test_simulated_dahl_friction_is_recovered():
    model = Model(ROBOT, (RigidBodies(), RotorInertia(), Dahl(reach=0.05)))
    theta = np.array([{"Ia": 0.3, "Fd": 1.5}.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    t = np.arange(8000) / 1000.0
    reference = Reference(*_sines(t), 1000.0)
    motion = simulate(model, theta, PD(np.full(3, 400.0), np.full(3, 40.0)), reference)
    noise = 0.05 * np.random.default_rng(0).normal(size=motion.tau.shape)
    samples = replace(motion.samples(), tau=motion.tau + noise)
    estimate = identify(Problem.from_model(model, samples), method="wls")
    places = [estimate.names.index(f"Fd{j + 1}") for j in range(3)]
    assert np.all(np.abs(estimate.values[places] - 1.5) <= 2.5 * estimate.std[places])
    coulomb = Model(ROBOT, make_terms(ROBOT, rotor=True, friction=["coulomb"]))
    plain = identify(Problem.from_model(coulomb, samples), method="wls")
    assert estimate.diagnostics.relative_error < 0.5 * plain.diagnostics.relative_error


def test_the_reach_of_simulated_presliding_is_found():
    """A machine like EMPS with LuGre friction: the way over which it turns is found, the error is that of the noise."""
    emps = Robot.builtin("emps")
    plain = Model(emps, make_terms(emps, friction=["viscous"]))
    theta = np.array([{"Fv": 200.0, "M": 95.0}.get(p.symbol, p.nominal or 0.0) for p in plain.parameters])
    t = np.arange(6000) / 1000.0
    w = 2 * np.pi * 0.7
    q, dq, ddq = 0.01 * np.sin(w * t), 0.01 * w * np.cos(w * t), -0.01 * w * w * np.sin(w * t)
    reference = Reference(q[:, None], dq[:, None], ddq[:, None], 1000.0)
    machine = LuGre(Fc=20.0, Fs=20.0, sigma0=20.0 / 5e-4, sigma1=0.0)
    motion = simulate(plain, theta, PD(np.array([2e5]), np.array([4e3])), reference, lugre=machine, step=2.5e-4)
    tau = motion.tau + 0.1 * np.random.default_rng(0).normal(size=motion.tau.shape)
    samples = replace(motion.samples(), tau=tau)
    model = Model(emps, (*plain.terms, Dahl(reach=2e-3, free=("reach",))))
    found = identify(Problem.from_model(model, samples), method="sls")
    reach = found.diagnostics["shape"]["reach1"]
    assert abs(reach["value"] - 5e-4) <= max(3.0 * reach["std"], 5e-6)
    plain = Model(emps, make_terms(emps, friction=["viscous", "coulomb"]))
    coulomb = identify(Problem.from_model(plain, samples), method="wls")
    assert found.diagnostics.relative_error < 1.0 < 3.0 < coulomb.diagnostics.relative_error


def _emps(friction, lugre, seed=0):
    """A noisy log of a machine like EMPS with LuGre friction, fast and slow reversals, and its plain model."""
    emps = Robot.builtin("emps")
    plain = Model(emps, make_terms(emps, friction=["viscous"]))
    theta = np.array([{"Fv": 200.0, "M": 95.0}.get(p.symbol, p.nominal or 0.0) for p in plain.parameters])
    t = np.arange(8000) / 1000.0
    q, dq, ddq = np.zeros((3, len(t)))
    for rate, size in ((0.5, 0.012), (1.3, 0.004), (2.1, 0.002)):
        w = 2 * np.pi * rate
        q, dq, ddq = q + size * np.sin(w * t), dq + size * w * np.cos(w * t), ddq - size * w * w * np.sin(w * t)
    reference = Reference(q[:, None], dq[:, None], ddq[:, None], 1000.0)
    motion = simulate(plain, theta, PD(np.array([2e5]), np.array([4e3])), reference, lugre=lugre, step=1.25e-4)
    noise = 0.1 * np.random.default_rng(seed).normal(size=motion.tau.shape)
    return Model(emps, (*plain.terms, *friction)), replace(motion.samples(), tau=motion.tau + noise)


def test_lugre_friction_is_found_by_separable_least_squares():
    """Reach, fall and force of a simulated LuGre machine; its micro-damping within its deviation."""
    machine = LuGre(Fc=20.0, Fs=26.0, vs=0.01, sigma0=20.0 / 5e-4, sigma1=100.0)
    term = LuGreFriction(reach=1e-3, ratio=1.1, vs=0.01, free=("reach", "ratio"))
    model, samples = _emps((term,), machine)
    found = identify(Problem.from_model(model, samples), method="sls")
    shape = found.diagnostics["shape"]
    assert shape["reach1"]["value"] == pytest.approx(5e-4, rel=0.03)
    assert shape["ratio1"]["value"] == pytest.approx(1.3, rel=0.05)
    values, std = dict(zip(found.names, found.values, strict=True)), dict(zip(found.names, found.std, strict=True))
    assert values["Fz1"] == pytest.approx(20.0, rel=0.02)
    assert abs(values["Fz1_1"] - 100.0 * 5e-4) <= 4.0 * std["Fz1_1"] + 0.02
    coulomb = Model(model.robot, make_terms(model.robot, friction=["viscous", "coulomb"]))
    assert found.diagnostics.relative_error < 1.0
    assert identify(Problem.from_model(coulomb, samples), method="wls").diagnostics.relative_error > 5.0


def test_a_simulated_lugre_model_is_the_machine():
    """Elements of the term against the effect of the same name that machines have."""
    machine = LuGre(Fc=20.0, Fs=26.0, vs=0.01, sigma0=20.0 / 5e-4, sigma1=100.0)
    _, theirs = _emps((), machine)
    emps = Robot.builtin("emps")
    model = Model(emps, (*make_terms(emps, friction=["viscous"]), LuGreFriction(reach=5e-4, ratio=1.3, vs=0.01)))
    theta = np.array([{"Fv": 200.0, "M": 95.0, "Fz": 20.0, "Fz1_": 100.0 * 5e-4}.get(p.symbol, p.nominal or 0.0)
                      for p in model.parameters])
    t = np.arange(8000) / 1000.0
    q, dq, ddq = np.zeros((3, len(t)))
    for rate, size in ((0.5, 0.012), (1.3, 0.004), (2.1, 0.002)):
        w = 2 * np.pi * rate
        q, dq, ddq = q + size * np.sin(w * t), dq + size * w * np.cos(w * t), ddq - size * w * w * np.sin(w * t)
    reference = Reference(q[:, None], dq[:, None], ddq[:, None], 1000.0)
    ours = simulate(model, theta, PD(np.array([2e5]), np.array([4e3])), reference, step=1.25e-4)
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-9)


def _play(q, radius):
    """State of a play operator over its radius along q (samples,), a loop over the samples: the mean of both states in
    which it may be at the start."""
    found = [[-radius, radius]]
    for before, now in pairwise(q):
        found.append([max(-radius, min(radius, state + (now - before))) for state in found[-1]])
    return np.mean(found, axis=1) / radius


def _columns(term, q):
    """Columns (samples, parameters) of a term of one joint of the arm along positions q (samples, 3)."""
    still = np.zeros_like(q)
    states = term.memory(Model(ROBOT), MotionSegment(np.arange(len(q)) / 100.0, q, still, still))
    return np.column_stack([values for _, _, values in term.remembered(ROBOT, q, still, still, states)])


def test_columns_of_hysteresis_are_play_operators_along_each_segment():
    """Default radii are shares of the range of motion in the data; after a gap the states are unknown again."""
    t = np.arange(3000) / 200.0
    q, dq, ddq = _sines(t)
    samples = replace(Samples.from_arrays(q, dq, ddq, np.zeros_like(q), t=t, rate=200.0),
                      segments=np.array([[0, 1700], [1800, 3000]]))
    unbound = Model(ROBOT, (RigidBodies(), Hysteresis(joints=(1, 3))))
    model = bind_to_data(unbound, DataFacts.from_samples([samples])).model
    states = memory_states(model, samples, slice(None))
    y = model.regressor(q, dq, ddq, memory=states)
    for start, stop in samples.segments:
        rows = slice(start, stop)
        for j in (0, 2):
            for k, share in enumerate((0.003, 0.01, 0.03, 0.1)):
                range_ = np.ptp(q[np.r_[0:1700, 1800:3000], j])
                column = y[rows, j, model.parameters.index(f"Fh{k + 1}_{j + 1}")]
                np.testing.assert_allclose(column, _play(q[rows, j], share * range_), atol=1e-12)
    again = model.with_learned(model.learned)
    np.testing.assert_array_equal(again.terms[1].reaches(ROBOT), model.terms[1].reaches(ROBOT))
    absolute = _columns(Hysteresis(radii=(0.02, 0.3), unit="rad", joints=(2,)), q)
    np.testing.assert_allclose(absolute, np.column_stack([_play(q[:, 1], r) for r in (0.02, 0.3)]), atol=1e-12)


@pytest.mark.parametrize("step", [None, 2.5e-4, "adaptive"])
def test_simulated_hysteresis_is_the_equation_of_motion_in_fine_steps(step):
    """A mass that slides and turns back, against a semi-implicit integration with steps of 10 us."""
    emps = Robot.builtin("emps")
    model = Model(emps, (*make_terms(emps, friction=["viscous"]), Hysteresis(radii=(0.002, 0.02), unit="rad")))
    theta = np.array([{"Fv": 200.0, "M": 95.0, "Fh1_": 15.0, "Fh2_": 30.0}.get(p.symbol, 0.0)
                      for p in model.parameters])
    t = np.arange(1000) / 1000.0
    force = (300.0 * np.sin(2 * np.pi * 2.0 * t) * np.exp(-2.0 * t))[:, None]
    found = simulate(model, theta, TorqueDriven(force), Reference(*np.zeros((3, len(t), 1)), 1000.0), step=step)
    q, dq, expected = 0.0, 0.0, []
    slips = [(0.5 * force / r, r, start * r) for force, r in ((15.0, 0.002), (30.0, 0.02)) for start in (-1.0, 1.0)]
    stiffness, radius, states = np.array(slips).T.tolist()
    for tau in force[:, 0].tolist():
        expected.append(q)
        for _ in range(100):
            friction = 200.0 * dq + sum(k * s for k, s in zip(stiffness, states, strict=True))
            dq += 1e-5 * (tau - friction) / 95.0
            q += 1e-5 * dq
            states = [max(-r, min(r, s + 1e-5 * dq)) for s, r in zip(states, radius, strict=True)]
    assert np.ptp(expected) > 0.04
    np.testing.assert_allclose(found.q[:, 0], expected, atol=2e-4 * np.ptp(expected))


def _simulated_hysteresis(noise=0.05, seed=0):
    """A simulated arm with hysteresis at every joint, its log and its parameters by name."""
    model = Model(ROBOT, (*make_terms(ROBOT, rotor=True, friction=["viscous"]),
                          Hysteresis(radii=(0.03, 0.3), unit="rad", ridge=0.0)))
    truth = {"Ia": 0.3, "Fv": 0.4, "Fh1_": 0.8, "Fh2_": 1.5}
    theta = np.array([truth.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    t = np.arange(8000) / 1000.0
    motion = simulate(model, theta, PD(np.full(3, 400.0), np.full(3, 40.0)), Reference(*_sines(t), 1000.0))
    disturbance = noise * np.random.default_rng(seed).normal(size=motion.tau.shape)
    return model, replace(motion.samples(), tau=motion.tau + disturbance), truth


@pytest.mark.parametrize("method", ["wls", "pc-wls"])
def test_simulated_hysteresis_is_recovered_within_its_intervals(method):
    model, samples, truth = _simulated_hysteresis()
    estimate = identify(Problem.from_model(model, samples), method=method)
    places = [k for k, name in enumerate(estimate.names) if name.startswith("Fh")]
    wanted = np.array([truth[estimate.names[k][:-1]] for k in places])
    assert len(places) == 6
    assert np.all(np.abs(estimate.values[places] - wanted) <= 3.0 * estimate.std[places])
    assert np.all(estimate.std[places] < 0.05)
    coulomb = Model(ROBOT, make_terms(ROBOT, rotor=True, friction=["viscous", "coulomb"]))
    plain = identify(Problem.from_model(coulomb, samples), method=method)
    assert estimate.diagnostics.relative_error < 0.5 * plain.diagnostics.relative_error


@pytest.mark.parametrize("method", ["wls", "pc-wls"])
def test_coefficients_of_hysteresis_are_never_negative(method):
    """Torques with hysteresis of the wrong sign, which would add energy."""
    model, samples, _ = _simulated_hysteresis()
    slow = np.column_stack([_play(q, 0.3) for q in samples.q.T])
    pushed = replace(samples, tau=samples.tau - 4.0 * slow)
    estimate = identify(Problem.from_model(model, pushed), method=method)
    values = dict(zip(model.parameters.names, estimate.full, strict=True))
    assert all(value >= 0.0 for name, value in values.items() if name.startswith("Fh"))
    assert max(values[f"Fh2_{j}"] for j in (1, 2, 3)) < 0.1


def test_hysteresis_dissipates_over_closed_paths():
    rng = np.random.default_rng(0)
    term = Hysteresis(radii=(0.01, 0.2, 3.0), unit="rad", joints=(1,))
    for _ in range(20):
        corners = np.append(0.0, rng.normal(size=rng.integers(2, 8)))
        once = np.interp(np.linspace(0.0, len(corners), 4001), np.arange(len(corners) + 1), np.append(corners, 0.0))
        q = np.tile(once[:-1], 4)[:, None] * np.ones(3)  # the first cycles bring the states onto a closed path
        torque = _columns(term, q) @ rng.uniform(0.0, 2.0, 3)
        last = slice(3 * 4000, None)
        work = np.sum(0.5 * (torque[last][1:] + torque[last][:-1]) * np.diff(q[last, 0]))
        assert work >= -1e-9
        # From rest the energy that has come in is never below zero: what is stored comes back at most.
        assert np.cumsum(0.5 * (torque[1:] + torque[:-1]) * np.diff(q[:, 0])).min() >= -1e-9


def test_what_cannot_be_is_refused():
    with refused(ModelError, "unknown-shape", "delta"):
        LuGreFriction(free=("delta",))
    with refused(ModelError, "wrong-count", "reach"):
        Model(ROBOT, (Dahl(reach=(0.1, 0.2)),))
    for radii in ((), (0.1, 0.1), (0.1, -0.2), (0.1, np.nan), "wide", 0.1):
        with refused(ModelError, "bad-radii", "ascending"):
            Hysteresis(radii=radii)
    with refused(ModelError, "unknown-unit", "degrees"):
        Hysteresis(unit="degrees")
    with refused(ModelError, "wrong-count", "ranges", "3"):
        Model(ROBOT, (Hysteresis(ranges=(1.0, 2.0)),))


def test_windows_of_a_log_start_with_its_hysteresis():
    """Torques of a simulated log drive the robot again from rows in the middle: the motion is that of the log."""
    model, samples, truth = _simulated_hysteresis(noise=0.0)
    theta = np.array([truth.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    windows = []
    for first in (1500, 4100):
        rows = slice(first, first + 300)
        reference = Reference(samples.q[rows], samples.dq[rows], samples.ddq[rows], samples.rate)
        windows.append((TorqueDriven(samples.tau[rows]), reference, samples.q[:first]))
    for (_, reference, _), found in zip(windows, simulate_windows(model, theta, windows), strict=True):
        np.testing.assert_allclose(found.q, reference.q, atol=1e-9)
    unknown = [(law, reference, past[-1:]) for law, reference, past in windows]
    for (_, reference, _), found in zip(windows, simulate_windows(model, theta, unknown), strict=True):
        assert np.abs(found.q - reference.q).max() > 1e-3


def test_steps_of_stiff_hysteresis_are_short_enough():
    """A light slide with a stiff operator, simulated with the default step of 5 ms, against steps of 50 us."""
    emps = Robot.builtin("emps")
    model = Model(emps, (*make_terms(emps, friction=["viscous"]), Hysteresis(radii=(0.0005,), unit="rad")))
    theta = np.array([{"Fv": 2.0, "M": 0.05, "Fh1_": 15.0}.get(p.symbol, 0.0) for p in model.parameters])
    t = np.arange(200) / 200.0
    force = TorqueDriven((20.0 * np.sin(2 * np.pi * 2.0 * t))[:, None])
    reference = Reference(*np.zeros((3, len(t), 1)), 200.0)
    fine, default = (simulate(model, theta, force, reference, step=step) for step in (5e-5, None))
    np.testing.assert_allclose(default.q, fine.q, atol=0.01 * np.ptp(fine.q))


def test_a_prediction_along_samples_has_the_memory_of_the_log():
    model, samples, _ = _simulated_hysteresis()
    estimate = identify(Problem.from_model(model, samples), method="wls")
    fit = reconstruct(estimate, samples)
    rows = estimate.residuals(samples)[0]
    np.testing.assert_allclose(estimate.predict(samples), rows.predicted, atol=1e-9)
    assert fit.moving.total.low_passed == pytest.approx(fit.relative_error, rel=0.05)


@pytest.mark.parametrize("term", [Hysteresis(), Dahl(), Delay()], ids=lambda term: term.kind)
def test_motions_are_designed_for_what_has_no_order_in_time(term):
    """Beside Coulomb friction, friction with memory has the same column along a motion without times."""
    model = Model(ROBOT, (*make_terms(ROBOT, friction=["viscous", "coulomb"]), term))
    base = base_parameters(model, ordered=False)
    plain = base_parameters(Model(ROBOT, model.terms[:-1]))
    assert len(base) == len(plain) < len(base_parameters(model))
    q, dq, ddq = _sines(np.arange(400) / 40.0)
    y = model.regressor(q, dq, ddq)[:, :, base.independent].reshape(-1, len(base))
    assert np.linalg.matrix_rank(y) == len(base)

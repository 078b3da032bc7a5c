"""Friction that moves: with time, with a logged temperature; known truths, and the simulated machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Drift, Model, RigidBodies, TemperatureFriction, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.log_reading import read
from dynid.recording.sample_preparation import prepare
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Robot
from dynid.simulation.plant import DIRECTION, FCP, make_plant

ROBOT = Robot.builtin("arm3r")
RATE, SECONDS = 100.0, 40.0
T = np.arange(int(SECONDS * RATE)) / RATE


def _motion(seed):
    rng = np.random.default_rng(seed)
    q, dq, ddq = np.zeros((3, len(T), 3))
    for j in range(3):
        for k in range(1, 7):
            w, phase, size = 2 * np.pi * k / 10.0, rng.uniform(0, 2 * np.pi), 1.5 * rng.normal() / k
            q[:, j] += size * np.sin(w * T + phase)
            dq[:, j] += size * w * np.cos(w * T + phase)
            ddq[:, j] -= size * w * w * np.sin(w * T + phase)
    return q, dq, ddq


def _torques(motion, dry, viscous, seed, noise=0.02):
    """Torques of the arm with friction whose coefficients (samples, 3) change from row to row."""
    bodies = Model(ROBOT)
    q, dq, ddq = motion
    tau = bodies.inverse_dynamics([p.nominal for p in bodies.parameters], q, dq, ddq)
    return tau + dry * np.sign(dq) + viscous * dq + noise * np.random.default_rng(seed).normal(size=q.shape)


def _errors(estimate, truth):
    at = [list(estimate.names).index(name) for name in truth]
    return (estimate.values[at] - list(truth.values())) / estimate.std[at]


def test_a_straight_drift_of_dry_and_viscous_friction_is_recovered_within_two_deviations():
    """Dry friction of joint 2 falls by 0.3 N m and viscous friction of joint 1 rises by 0.2 over the log."""
    place, off = T / T[-1], []
    terms = (*make_terms(ROBOT, friction=["viscous", "coulomb"]), Drift(joints=(2,)), Drift(joints=(1,), viscous=True))
    for seed in range(6):
        motion, dry, viscous = _motion(seed), np.full((len(T), 3), 0.6), np.full((len(T), 3), 0.8)
        dry[:, 1] -= 0.3 * (place - 0.5)
        viscous[:, 0] += 0.2 * (place - 0.5)
        samples = Samples.from_arrays(*motion, _torques(motion, dry, viscous, seed), rate=RATE)
        estimate = identify(Problem.from_model(Model(ROBOT, terms), samples), method="wls")
        truth = {"Fc2": 0.6, "Fw1_2": -0.3, "Fv1": 0.8, "Fy1_1": 0.2}
        off += list(_errors(estimate, truth))
    assert np.mean(np.abs(off) <= 2.0) >= 0.85


def test_a_random_walk_is_followed():
    """Dry friction of joint 2 steps between eight levels; knots follow it to a third of its size, a line does not."""
    rng = np.random.default_rng(0)
    levels = 0.6 + np.cumsum(0.15 * rng.normal(size=9))
    course = np.interp(T, np.linspace(0.0, T[-1], 9), levels)
    motion, dry = _motion(1), np.full((len(T), 3), 0.6)
    dry[:, 1] = course
    samples = Samples.from_arrays(*motion, _torques(motion, dry, np.full((len(T), 3), 0.8), 1), rate=RATE)
    left = {}
    for knots in (1, 8):
        term = Drift(knots=knots, joints=(2,))
        model = Model(ROBOT, (*make_terms(ROBOT, friction=["viscous", "coulomb"]), term))
        estimate = identify(Problem.from_model(model, samples), method="wls")
        values = dict(zip(estimate.names, estimate.values, strict=True))
        ramps = replace(term, span=(0.0, T[-1])).ramps(T)
        found = values["Fc2"] + ramps @ [values[f"Fw{k + 1}_2"] for k in range(knots)]
        left[knots] = float(np.std(found - course))
    assert left[8] < 0.03 < 0.5 * left[1]


def test_a_saved_drift_keeps_its_times_and_the_machine_is_at_the_last_one(tmp_path):
    motion, dry = _motion(2), np.full((len(T), 3), 0.6)
    dry += (T / T[-1] - 0.5)[:, None] * [0.0, 0.4, 0.0]
    samples = Samples.from_arrays(*motion, _torques(motion, dry, np.full((len(T), 3), 0.8), 2), rate=RATE)
    model = Model(ROBOT, (*make_terms(ROBOT, friction=["viscous", "coulomb"]), Drift()))
    estimate = identify(Problem.from_model(model, samples), method="wls")
    estimate.save(tmp_path / "estimate.npz")
    again = Estimate.load(tmp_path / "estimate.npz", model)
    assert again.score(samples) == pytest.approx(estimate.score(samples), rel=1e-12)
    # Without times friction is that of the end: 0.6 + 0.2.
    still = np.zeros((2, 3))
    push = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    ahead, back = estimate.model.inverse_dynamics(estimate.full, still, push, still)[:, 1]
    assert 0.5 * (ahead - back) - 0.8 == pytest.approx(0.8, abs=0.01)
    plant = make_plant(estimate.model, estimate.full)
    own = plant.dry[plant.dry[:, DIRECTION + 1] == 1.0]
    assert own[:, FCP].sum() == pytest.approx(0.8, abs=0.01)


def test_friction_follows_a_logged_temperature_within_two_deviations():
    """Warm oil: viscous friction falls by 0.02 a degree from 20 to 45 degrees, dry friction by 0.005."""
    warm, off = 20.0 + 25.0 * (1.0 - np.exp(-T / 12.0)), []
    model = Model(ROBOT, (*make_terms(ROBOT, friction=["viscous", "coulomb"]), TemperatureFriction()))
    for seed in range(6):
        motion, above = _motion(seed), (warm - warm.mean())[:, None]
        tau = _torques(motion, 0.6 - 0.005 * above + np.zeros((1, 3)), 0.8 - 0.02 * above + np.zeros((1, 3)), seed)
        samples = replace(Samples.from_arrays(*motion, tau, rate=RATE), temperature=np.repeat(warm[:, None], 3, axis=1))
        estimate = identify(Problem.from_model(model, samples), method="wls")
        off += list(_errors(estimate, {f"{symbol}{j}": value for j in (1, 2, 3) for symbol, value in (
            ("Fc", 0.6), ("Fct", -0.005), ("Fv", 0.8), ("Fvt", -0.02))}))
    assert np.mean(np.abs(off) <= 2.0) >= 0.85
    # At 50 degrees, by the machine: 0.8 - 0.02 (50 - mean).
    cold = replace(estimate.model, terms=(*estimate.model.terms[:-1],
                                          replace(estimate.model.terms[-1], at=50.0)))
    plant = make_plant(cold, estimate.full)
    np.testing.assert_allclose(np.diag(plant.viscous), 0.8 - 0.02 * (50.0 - warm.mean()), atol=0.02)


def test_a_log_without_temperature_is_refused():
    motion = _motion(0)
    samples = Samples.from_arrays(*motion, _torques(motion, 0.6, 0.8, 0), rate=RATE)
    with refused(ModelError, "no-temperature"):
        Problem.from_model(Model(ROBOT, (RigidBodies(), TemperatureFriction())), samples)


def test_temperatures_are_read_written_and_prepared(tmp_path):
    motion, warm = _motion(0), 20.0 + T[:, None] * [0.1, 0.2, 0.3]
    log = Recording(T, motion[0], _torques(motion, 0.6, 0.8, 0), temperature=warm, joints=ROBOT.joint_names)
    for again in (read(write_csv(log, tmp_path / "log.csv"), robot=ROBOT),
                  read(write_npz(log, tmp_path / "log.npz"), robot=ROBOT),
                  read(tmp_path / "log.csv", robot=ROBOT, at_once=700)):
        np.testing.assert_array_equal(again.temperature, warm)
    one = read(tmp_path / "log.csv", robot=ROBOT, time="time", position="position_{joint}", torque="torque_{joint}",
               temperature=f"temperature_{ROBOT.joint_names[1]}")
    np.testing.assert_array_equal(one.temperature, np.repeat(warm[:, 1:2], 3, axis=1))
    np.testing.assert_array_equal(one.between(1.0, 2.0).temperature, one.temperature[100:200])
    samples = prepare(log, cutoff=10.0)
    np.testing.assert_allclose(samples.temperature, 20.0 + samples.t[:, None] * [0.1, 0.2, 0.3], atol=1e-9)
    assert prepare(log, cutoff=10.0, thin=4).temperature.shape == prepare(log, cutoff=10.0, thin=4).q.shape

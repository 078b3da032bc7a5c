"""Breakaway: a machine that holds more at rest than in motion, simulated and found again from its starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.model import BreakawayFriction, Model, RigidBodies, Viscous
from dynid.recording.sample_preparation import prepare
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.runs.identification import run
from dynid.runs.results import facts, save
from dynid.runs.settings import RunSettings
from dynid.simulation import PD, Reference, TorqueDriven, VirtualRobot
from dynid.validate import breakaway

ROBOT = Robot.builtin("emps")
MASS, DRY, MORE, VISCOUS = 90.0, 20.0, 8.0, 150.0
RATE = 1000.0


def _machine(more, **options):
    model = Model(ROBOT, (RigidBodies(), Viscous(), BreakawayFriction()))
    values = {"M1": MASS, "Fv1": VISCOUS, "Fc1": DRY, "Fb1": more}
    theta = np.array([values.get(item.name, 0.0) for item in model.parameters])
    return VirtualRobot(model, theta, PD(kp=2e4, kd=2e3), smooth="stick", **options)


def _moves(seconds=24.0):
    """From rest to rest, again and again: a second of motion, a second of rest."""
    t = np.arange(int(seconds * RATE)) / RATE
    x = np.clip((t % 2.0) / 1.0, 0.0, 1.0)
    s = x ** 3 * (10.0 - 15.0 * x + 6.0 * x ** 2)
    way = np.where((t // 2.0).astype(int) % 2 == 0, s, 1.0 - s)
    q = (0.15 * way)[:, None]
    return Reference(q, np.gradient(q, 1 / RATE, axis=0), np.gradient(np.gradient(q, 1 / RATE, axis=0), 1 / RATE,
                                                                       axis=0), RATE)


def test_a_machine_at_rest_holds_its_static_friction_and_no_more():
    """A force that rises by 2 N/s: without the excess the carriage starts at 20 N, with it at 28 N."""
    t = np.arange(20000) / RATE
    zero = np.zeros((len(t), 1))
    for more in (0.0, MORE):
        pushed = replace(_machine(more), controller=TorqueDriven((2.0 * t)[:, None]))
        moved = pushed.run(Reference(zero, zero, zero, RATE))
        start = int(np.argmax(np.abs(moved.q[:, 0]) > 1e-9))
        assert moved.tau[start, 0] == pytest.approx(DRY + more, abs=0.1)


def test_static_friction_is_found_from_starts_within_two_deviations():
    for seed in range(3):
        log = _machine(MORE, position_noise=1e-7, torque_noise=0.3).record(_moves(), seed=seed)
        samples = prepare(log, cutoff=40.0)
        model = Model(ROBOT, (RigidBodies(), Viscous(), BreakawayFriction()))
        estimate = identify(Problem.from_model(model, samples), method="wls")
        (found,) = breakaway(estimate, samples, log)
        assert found.starts >= 10
        assert found.static == pytest.approx(DRY + MORE, abs=2.0 * found.std)
        assert found.above == pytest.approx(MORE, rel=0.1)


def test_without_an_excess_none_is_found():
    log = _machine(0.0, position_noise=1e-7, torque_noise=0.3).record(_moves(), seed=3)
    samples = prepare(log, cutoff=40.0)
    model = Model(ROBOT, (RigidBodies(), Viscous(), BreakawayFriction()))
    estimate = identify(Problem.from_model(model, samples), method="wls")
    (found,) = breakaway(estimate, samples, log)
    assert found.above < 0.05 * DRY


def test_a_run_says_what_joints_hold_at_rest(tmp_path):
    """In JSON and in the report, from the log alone; friction of the model without the excess."""
    log = _machine(MORE, position_noise=1e-7, torque_noise=0.3).record(_moves(), seed=0)
    path = str(write_npz(log, tmp_path / "log.npz"))
    settings = RunSettings(robot="emps", logs=[path], method="wls", prepare={"cutoff": 40.0},
                           model={"friction": ["viscous", "coulomb"]})
    found = run(settings)
    (said,) = facts(found)["breakaway"]
    assert said["static"] == pytest.approx(DRY + MORE, abs=3.0 * said["std"]) and said["starts"] >= 10
    assert said["above"] == pytest.approx(MORE, rel=0.2)
    save(found, tmp_path / "out")
    assert "Static (breakaway) friction" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")

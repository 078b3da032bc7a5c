"""Mistakes in writing a log that the log itself shows: each has a finding of its own, and a healthy log has none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run

RATE = 200.0


@cache
def healthy() -> Recording:
    """Fifteen seconds of arm3r with measured velocities, counts of an encoder, friction and noise."""
    robot = Robot.builtin("arm3r")
    model, rng = Model(robot, make_terms(robot, friction=("viscous",))), np.random.default_rng(5)
    theta = np.array([0.3 if one.nominal is None else one.nominal for one in model.parameters])
    t, w = np.arange(3000) / RATE, np.array([1.1, 1.7, 2.3])
    q = np.sin(w * t[:, None]) * [0.6, 0.5, 0.6]
    dq, ddq = w * np.cos(w * t[:, None]) * [0.6, 0.5, 0.6], -w ** 2 * q
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    return Recording(t, np.round(q / 2e-5) * 2e-5, tau, dq=dq + 2e-3 * rng.normal(size=dq.shape),
                     joints=robot.joint_names)


def twice(log: Recording) -> Recording:
    rows = np.repeat(np.arange(len(log)), 2)
    assert log.dq is not None
    return replace(log, t=np.arange(2 * len(log)) / (2.0 * RATE), q=log.q[rows], tau=log.tau[rows], dq=log.dq[rows])


def again(log: Recording) -> Recording:
    rows = np.concatenate([np.arange(len(log)), np.arange(len(log))])
    assert log.dq is not None
    return replace(log, t=np.arange(2 * len(log)) / RATE, q=log.q[rows], tau=log.tau[rows], dq=log.dq[rows])


MISTAKES = {
    "rows-repeated": twice, "log-repeated": again,
    "positions-rounded": lambda log: replace(log, q=np.round(log.q, 2)),
    "time-scale": lambda log: replace(log, t=1.1 * log.t),
}


def codes(log: Recording, folder: Path) -> set[str]:
    """The codes of the problems of a run."""
    write_npz(log, folder / "log.npz")
    found = run(RunSettings(robot="arm3r", logs=(str(folder / "log.npz"),), method="wls",
                            model=ModelSettings(friction=("viscous",)), simulation={"run": False}))
    return {one.code for one in found.verdict.of_kind("problem")}


def test_a_healthy_log_shows_none_of_them(tmp_path):
    assert not codes(healthy(), tmp_path) & set(MISTAKES)


@pytest.mark.parametrize("code", MISTAKES)
def test_each_mistake_is_found_and_no_other(tmp_path, code):
    assert codes(MISTAKES[code](healthy()), tmp_path) & set(MISTAKES) == {code}


@pytest.mark.parametrize("factor", [0.9, 1.0 / 1.1])
def test_a_clock_that_is_fast_contradicts_measured_velocities(tmp_path, factor):
    log = healthy()
    assert "time-scale" in codes(replace(log, t=factor * log.t), tmp_path)


def test_stamps_that_jitter_are_no_wrong_clock(tmp_path):
    """Each stamp errs by up to 0.3 of a period: differences of neighbours are then 8 % too large on average."""
    log = healthy()
    late = np.random.default_rng(1).uniform(-0.3, 0.3, len(log)) / RATE
    assert np.mean(1.0 / (RATE * np.diff(log.t + late))) > 1.05
    assert "time-scale" not in codes(replace(log, t=log.t + late), tmp_path)


def test_currents_taken_for_torques_joint_by_joint(tmp_path):
    log = healthy()
    assert "drive-gain" in codes(replace(log, tau=log.tau / [1.0, 2.0, 3.0]), tmp_path)

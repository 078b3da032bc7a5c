"""Validation by simulation: true parameters follow the log, wrong ones do not, and what breaks off says why."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid.errors import ModelError, RecordingError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Coulomb, Model, RigidBodies, Sign, Viscous
from dynid.recording import Recording
from dynid.recording.prepare import prepare
from dynid.robot import Robot
from dynid.simulate import PD, Reference, VirtualRobot
from dynid.validate.simulation import closed_loop, torque_driven

ROBOT = Robot.builtin("scara2")
MODEL = Model(ROBOT, (RigidBodies(), Viscous(), Coulomb(sign=Sign("tanh", 0.05))))
THETA = np.array([p.nominal for p in MODEL.parameters], dtype=float)
LAW = PD([300.0, 8.0], [60.0, 1.0])


@cache
def log() -> Recording:
    t = np.arange(6000) / 1000.0
    path = Reference.of(np.column_stack([np.sin(1.5 * t) ** 2, 0.8 * np.sin(2.2 * t) ** 2]), rate=1000.0)
    return VirtualRobot(MODEL, THETA, LAW).record(path)


def estimate(scale: float = 1.0) -> Estimate:
    found = identify(Problem.of(MODEL, prepare(log(), cutoff=50)), "wls")
    return replace(found, values=scale * found.base.reduce(THETA))


def test_true_parameters_follow_the_log() -> None:
    check = closed_loop(estimate(), log(), LAW, step=2.5e-4)
    assert check.position_deviation.max() < 1e-9
    assert check.torque_error < 3.0  # the log holds means over two ticks
    driven = torque_driven(estimate(), prepare(log(), cutoff=50), horizon=0.5)
    assert driven.reached == 1.0
    assert driven.position_error.max() < 1.0
    assert len(driven.windows) == 12


def test_wrong_parameters_do_not() -> None:
    good, bad = (closed_loop(estimate(scale), log(), LAW) for scale in (1.0, 1.3))
    assert np.all(bad.position_error > 10.0 * good.position_error)
    samples = prepare(log(), cutoff=50)
    true, wrong = (torque_driven(estimate(scale), samples).position_error.max() for scale in (1.0, 1.3))
    assert wrong > 5.0 * true


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(RecordingError, match="the log has no reference"):
        closed_loop(estimate(), replace(log(), reference=None), LAW)
    with pytest.raises(ModelError, match="shorter than two samples"):
        torque_driven(estimate(), prepare(log(), cutoff=50), horizon=1e-4)

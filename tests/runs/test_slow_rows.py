"""Rows in slow motion: dropped by default, kept for the joints whose terms describe them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from motions import fourier

from dynid.model import Model, RigidBodies, Stribeck, Viscous, complete
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import RunSettings, run
from dynid.runs.settings import ModelSettings

ROBOT = Robot.builtin("arm3r")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    model = Model(ROBOT, (RigidBodies(), Stribeck()))
    theta = np.array([0.5 if one.nominal is None else one.nominal for one in model.parameters])
    q, dq, ddq = fourier(3, seconds=10.0)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    recording = Recording(np.arange(len(q)) / 200.0, q, tau, joints=ROBOT.joint_names)
    path = tmp_path_factory.mktemp("log") / "log.csv"
    write_csv(recording, path)
    return path, recording


@pytest.mark.parametrize(("terms", "slow"), [
    ([{"kind": "viscous"}], (False, False, False)),
    ([{"kind": "stribeck"}], (True, True, True)),
    ([{"kind": "stribeck", "joints": [2]}, {"kind": "viscous", "joints": [1, 3]}], (False, True, False)),
])
def test_terms_decide(log, terms, slow):
    path, _ = log
    found = run(RunSettings(robot="arm3r", logs=(str(path),), prepare={"cutoff": 15.0}, method="wls",
                            simulation={"run": False}, model=ModelSettings(terms=tuple(terms))))
    [samples] = found.samples
    for j, kept in enumerate(slow):
        speed, limit = np.abs(samples.dq[:, j]), samples.settings["slow"][j]
        inner = slice(100, -100)  # borders go in any case
        if kept:
            assert limit == 0.0 and samples.keep[inner, j].all()
        else:
            assert limit == pytest.approx(0.01 * speed[samples.keep[:, j]].max(), rel=1e-3)
            np.testing.assert_array_equal(samples.keep[inner, j], speed[inner] >= limit)


def test_what_is_given_goes_before_what_terms_ask_for(log):
    path, _ = log
    found = run(RunSettings(robot="arm3r", logs=(str(path),), prepare={"cutoff": 15.0, "slow": 0.05}, method="wls",
                            simulation={"run": False}, model=ModelSettings(terms=({"kind": "stribeck"},))))
    assert found.samples[0].settings["slow"] == [0.05] * 3


def test_one_joint_of_several_may_be_left_to_choice(log):
    _, recording = log
    samples = prepare(recording, cutoff=15.0, slow=(None, 0.0, 0.2))
    speed = np.abs(samples.dq[samples.keep[:, 0], 0])
    assert samples.settings["slow"][1:] == [0.0, 0.2]
    assert samples.settings["slow"][0] == pytest.approx(0.01 * speed.max(), rel=1e-3)


@dataclass(frozen=True)
class Creep:
    """A user's own term for slow motion of joint 3, which inherits nothing."""

    def parameters(self, robot):
        return Viscous(joints=(3,)).parameters(robot)

    def entries(self, robot, q, dq, ddq):
        yield 2, 0, np.exp(-np.abs(dq[:, 2])) * np.sign(dq[:, 2])

    def slow_joints(self, robot):
        return (2,)


def test_a_term_says_it_of_itself():
    assert Model(ROBOT, (RigidBodies(), Viscous())).slow_joints == ()
    assert Model(ROBOT, (RigidBodies(), Creep(), Stribeck(joints=(1,)))).slow_joints == (0, 2)

    class Own:
        dof, parameters, regressor, slow_joints = 3, None, None, (1,)

    assert complete(Own()).slow_joints == (1,)

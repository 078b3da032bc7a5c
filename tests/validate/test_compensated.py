"""Gravity taken out of the torques is named; a robot mounted otherwise, or with a rough file, is not blamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.validate import reconstruct, verdict
from dynid.validate.hypotheses.gravity import with_gravity
from dynid.validate.verdict_checks.compensated import gravity_shares


def codes(log) -> list[str]:
    problem, estimate = log.fitted()
    return [one.code for one in verdict(estimate, problem,
                                        reconstruction=reconstruct(estimate, log.samples)).of_kind("problem")]


def weight(log) -> np.ndarray:
    """Torques of gravity alone, by the parameters behind the log."""
    still = np.zeros_like(log.samples.q)
    model = log.model
    return (model.regressor(log.samples.q, still, still)
            - with_gravity(model, np.zeros(3)).regressor(log.samples.q, still, still)) @ log.theta


@pytest.mark.parametrize("robot", ["arm3r", "ur10", pytest.param("kuka-lwr4", marks=pytest.mark.slow)])
def test_gravity_taken_out_is_named(simulate, robot):
    log = simulate(robot)
    without = log.with_torque(log.samples.tau - weight(log))
    assert codes(without) == ["gravity-removed"]
    assert max(one.share for one in gravity_shares(without.problem()) if one.size > 0.2) < 0.2


def test_a_machine_on_which_nothing_weighs_says_nothing(simulate):
    assert not [one for one in gravity_shares(simulate("scara2").problem()) if one.size > 0.2]


@pytest.mark.parametrize("robot", [
    "arm3r", *(pytest.param(name, marks=pytest.mark.slow) for name in ("kuka-lwr4", "ur10"))])
def test_whole_torques_are_not_blamed(simulate, robot):
    log = simulate(robot)
    shares = [one.share for one in gravity_shares(log.problem()) if one.size > 0.2]
    assert max(shares) == pytest.approx(1.0, abs=0.05)  # joints whose axis stands upright have none
    assert "gravity-removed" not in codes(log)
    sideways = replace(log, model=with_gravity(log.model, np.array([9.81, 0.0, 0.0])))
    turned = log.with_torque(log.samples.tau - weight(log) + weight(sideways))
    assert "gravity-removed" not in codes(turned)
    for scale in (0.4, 0.05):  # a rough file, currents taken for torques
        assert "gravity-removed" not in codes(log.with_torque(scale * log.samples.tau))


def test_a_robot_without_nominal_bodies_says_nothing(simulate):
    log = simulate("arm3r")
    bare = replace(log.model, robot=replace(log.model.robot, bodies=tuple(
        replace(body, inertia=None) for body in log.model.robot.bodies)))
    assert gravity_shares(log.problem(bare)) == ()


def test_slow_errors_of_the_model_widen_the_share_of_gravity(simulate):
    """The same power of errors as white noise and as a slow wave: the standard error of the second is the larger."""
    log = simulate("arm3r", noise=0.0)
    s = log.samples
    size = 0.3 * np.sqrt(np.mean(s.tau ** 2, axis=0))
    white = size * np.random.default_rng(3).normal(size=s.tau.shape)
    slow = size * np.sqrt(2.0) * np.sin(2.0 * np.pi * 0.05 * s.t[:, None] + [0.3, 1.1, 2.0])
    by_white, by_slow = ([one.std for one in gravity_shares(log.with_torque(s.tau + error).problem())
                          if one.size > 0.2] for error in (white, slow))
    assert all(b > 3.0 * a for a, b in zip(by_white, by_slow, strict=True))

"""Gravity taken out of the torques is named; a robot mounted otherwise, or with a rough file, is not blamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.recording.sample_preparation import prepare
from dynid.validate import reconstruct, verdict
from dynid.validate.hypotheses.gravity import with_gravity
from dynid.validate.verdict_checks.compensated import gravity_shares
from reproductions._faulty_machines import machine


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


def without_bodies(model):
    """The same model of a robot file that states no inertias."""
    return replace(model, robot=replace(model.robot, bodies=tuple(
        replace(body, inertia=None) for body in model.robot.bodies)))


def test_another_direction_of_gravity_is_not_called_removed_gravity(simulate):
    """Under the given direction only joint 1 carries a material gravity torque, and its torque contains none."""
    log = simulate("puma560", seed=16)
    found = codes(replace(log, model=with_gravity(log.model, np.array([0.0, 9.81, 0.0]))))
    assert "gravity-direction" in found and "gravity-removed" not in found


def test_torques_of_noise_are_unrelated_to_the_motion(simulate):
    log = simulate("ur10")
    noise = np.random.default_rng(5).normal(size=log.samples.tau.shape)
    assert codes(log.with_torque(noise))[0] == "torques-unrelated"
    assert "gravity-removed" not in codes(log.with_torque(noise))


def test_gravity_taken_out_is_named_without_a_nominal_model(simulate):
    log = simulate("arm3r")
    without = log.with_torque(log.samples.tau - weight(log))
    assert codes(replace(without, model=without_bodies(log.model)))[0] == "gravity-removed"


@pytest.mark.slow
def test_arm_with_parallel_axes_that_lies_on_its_side_is_one_of_two_causes():
    """Gravity along the axes causes no torque, like gravity that was removed."""
    made = machine("planar4", 7001)
    samples = prepare(made.record(gravity=np.array([0.0, 0.0, -9.81])))
    for model in (made.model, without_bodies(made.model)):
        problem = Problem.from_model(model, samples)
        [finding] = verdict(identify(problem, method="wls"), problem).of_kind("problem")
        assert finding.code == "gravity-removed" and "One of" in finding.text
        assert "gravity acts along (0.00, 0.00, -9.81)" in finding.text or "another direction" in finding.text


def test_a_robot_without_nominal_bodies_says_nothing(simulate):
    log = simulate("arm3r")
    assert gravity_shares(log.problem(without_bodies(log.model))) == ()


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

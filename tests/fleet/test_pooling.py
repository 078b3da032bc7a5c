"""Partial pooling: little data lean on the fleet, much data stand alone."""

from __future__ import annotations

import numpy as np
from fleets import Fleet, pool

from dynid.fleet.pooling import RobotInformation, parameter_groups, pool_known


def test_spreads_are_found_and_links_are_equal() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(1)
    truths = [fleet.own(rng, 0.2) for _ in range(40)]
    robots = fleet.robots([[fleet.log(theta, 10.0, 31 * k)] for k, theta in enumerate(truths)])
    found = pool(robots)
    names = list(fleet.base.names)
    true = np.array([fleet.base.reduce(theta) for theta in truths])
    for name in ("Fc1", "Fc2", "Fc3", "Fv2"):
        k = names.index(name)
        assert 0.6 * true[:, k].std() < found.spread[k] < 1.5 * true[:, k].std()
    k = names.index("MX2R")
    assert found.spread[k] < 0.01 * abs(true[0, k])


def test_two_seconds_lean_on_the_fleet_and_a_minute_stands_alone() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(2)
    truths = [fleet.own(rng) for _ in range(36)]
    seconds = [0.4 if k % 2 else 12.0 for k in range(36)]
    robots = fleet.robots([[fleet.log(theta, s, 100 * k + i) for i in range(5)]
                           for k, (theta, s) in enumerate(zip(truths, seconds, strict=True))])
    known = [RobotInformation.from_fold(robot) for robot in robots]
    found = pool(robots)
    alone = np.array([fleet.new_errors(robot.solution.beta, theta)
                      for robot, theta in zip(robots, truths, strict=True)])
    pooled = np.array([fleet.new_errors(found.member(one).values, theta)
                       for one, theta in zip(known, truths, strict=True)])
    short = np.array(seconds) < 1.0
    rms = [np.sqrt(np.mean(x[part] ** 2)) for part in (short, ~short) for x in (alone, pooled)]
    assert rms[1] <= 0.5 * rms[0]
    assert rms[3] <= 1.02 * rms[2]


def test_stated_deviations_of_pooled_robots_cover_the_truth() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(3)
    truths = [fleet.own(rng) for _ in range(40)]
    robots = fleet.robots([[fleet.log(theta, 4.0, 100 * k + i) for i in range(2)] for k, theta in enumerate(truths)])
    known = [RobotInformation.from_fold(robot) for robot in robots]
    found = pool(robots)
    errors = []
    for one, theta in zip(known, truths, strict=True):
        member = found.member(one)
        errors.append((member.values - fleet.base.reduce(theta)) / member.std)
    assert 0.75 < float(np.sqrt(np.mean(np.array(errors) ** 2))) < 1.3


def test_the_evidence_is_that_of_the_joint_normal() -> None:
    """Against scipy's density of all data at once, with a wide prior on the mean, up to a constant."""
    from scipy.stats import multivariate_normal
    fleet = Fleet.of_arms()
    rng, base = np.random.default_rng(5), fleet.base
    data = [RobotInformation(rng.normal(size=(len(base), 30)), rng.normal(size=30)) for _ in range(4)]
    from dynid.fleet.pooling import _evidence
    values = []
    for variances in (rng.uniform(0.1, 1.0, len(base)) for _ in range(3)):
        wide = 1e6
        roots = np.hstack([one.root for one in data])
        block = np.zeros((120, 120))
        for k, one in enumerate(data):
            block[30 * k:30 * k + 30, 30 * k:30 * k + 30] = (one.root.T * variances) @ one.root
        covariance = np.eye(120) + block + wide * roots.T @ roots
        dense = multivariate_normal(np.zeros(120), covariance).logpdf(np.concatenate([one.seen for one in data]))
        values.append(_evidence(data, variances)[0] - dense)
    assert np.ptp(values) < 1e-2


def test_small_fleets_share_spreads_among_parameters_of_a_kind() -> None:
    base = Fleet.of_arms().base
    assert len(set(parameter_groups(base, 3))) < len(base) == len(set(parameter_groups(base, 50)))
    data = [RobotInformation(np.eye(len(base)) * 1e3, 1e3 * np.ones(len(base))) for _ in range(3)]
    assert np.allclose(pool_known(base, data, parameter_groups(base, 3)).mean, 1.0)

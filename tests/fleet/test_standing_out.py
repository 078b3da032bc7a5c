"""Robots that stand out, what differs between robots and between motions, and changes over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fleets import Fleet, pool

from dynid.arrays import Array
from dynid.fleet.change_detection import LogEstimates, Series, changes
from dynid.fleet.outliers import fleet_parts, standing_out
from dynid.fleet.pooling import RobotInformation
from dynid.fleet.prediction_errors import CrossPrediction, cross_prediction, outlying_robots
from dynid.fleet.robot_fold import RobotFold
from dynid.fleet.robot_scatter import discoveries, scatter


def test_benjamini_and_hochberg() -> None:
    from scipy.stats import false_discovery_control
    p = np.random.default_rng(0).uniform(size=200) ** 3
    assert np.array_equal(discoveries(p, 0.05), false_discovery_control(p) <= 0.05)
    assert not discoveries([np.nan, 0.9], 0.05).any()


def test_robots_with_a_changed_link_or_drive_are_found_and_named() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(6)
    truths = [fleet.own(rng) for _ in range(34)]
    names = fleet.model.parameters
    truths[3][names.index("Fc2")] *= 2.5
    truths[17][names.bodies["link3"]] *= 1.15
    truths[30][names.index("Fv3")] *= 3.0
    logs = [[fleet.log(theta, 2.0, 100 * k + i) for i in range(5)] for k, theta in enumerate(truths)]
    robots = fleet.robots(logs)
    found = standing_out(robots, [RobotInformation.from_fold(robot) for robot in robots])
    assert set(found.robots) == {"robot 3", "robot 17", "robot 30"}
    parts = {one.robot: one.part for one in reversed(found.differences)}
    assert parts["robot 3"].startswith("drive of joint 2") and parts["robot 30"].startswith("drive of joint 3")
    assert parts["robot 17"].startswith("link 3")


@pytest.mark.slow
def test_probabilities_are_honest_where_nothing_differs() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(7)
    truths = [fleet.own(rng) for _ in range(80)]
    robots = fleet.robots([[fleet.log(theta, 2.0, 100 * k + i) for i in range(3)] for k, theta in enumerate(truths)])
    p = standing_out(robots, [RobotInformation.from_fold(robot) for robot in robots]).probability
    assert 0.02 < np.mean(p < 0.05) < 0.09
    assert np.min(p) > 1e-5


def test_friction_differs_between_robots_and_links_do_not() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(8)
    logs = [[fleet.log(fleet_robot, 6.0, 100 * k + i) for i in range(4)]
            for k, fleet_robot in enumerate(fleet.own(rng, 0.3) for _ in range(12))]
    robots = fleet.robots(logs)
    found = scatter(robots, [LogEstimates.from_folds(robot, folds) for robot, folds in zip(robots, logs, strict=True)])
    differs = dict(zip(fleet.base.names, found.differs, strict=True))
    assert all(differs[name] == "robots" for name in ("Fc1", "Fc2", "Fc3", "Fv2"))
    bodies = [name for name, c in zip(fleet.base.names, fleet.base.independent, strict=True)
              if fleet.base.parameters.items[c].body is not None]
    assert sum(differs[name] == "robots" for name in bodies) <= 1
    assert 0.9 < found.inflation < 1.2


def _series(fleet: Fleet, truths: list[Array], seed: int) -> tuple[Series, dict[str, Array]]:
    rng = np.random.default_rng(99)
    others = fleet.robots([[fleet.log(fleet.own(rng), 6.0, 50 + k)] for k in range(10)])
    found = pool(others)
    dates = tuple(f"2026-01-{k + 1:02d}" for k in range(len(truths)))
    folds = [fleet.log(theta, 4.0, seed + k) for k, theta in enumerate(truths)]
    weights = others[0].weights
    logs = tuple(RobotInformation.from_fold(RobotFold.from_folds("a", [fold], weights)) for fold in folds)
    return (Series("a", dates, logs, found.mean, found.prior, fleet.base.names),
            fleet_parts(fleet.base, others[0].regression.joints))


def test_a_step_is_dated_and_named() -> None:
    fleet = Fleet.of_arms()
    before = fleet.own(np.random.default_rng(10))
    after = before.copy()
    after[fleet.model.parameters.index("Fc3")] *= 1.5
    found = changes(*_series(fleet, [before] * 9 + [after] * 7, 500))
    assert [(one.kind, one.date, one.part.split(" (")[0]) for one in found] == [
        ("step", "2026-01-10", "drive of joint 3")]
    name, low, high, _ = found[0].parameters[0]
    assert name == "Fc3" and abs(high / low - 1.5) < 0.1


def test_a_drift_is_no_step() -> None:
    fleet = Fleet.of_arms()
    theta = fleet.own(np.random.default_rng(11))
    place = fleet.model.parameters.index("Fv2")
    drifting = []
    for k in range(16):
        one = theta.copy()
        one[place] *= 1.0 + 0.06 * k
        drifting.append(one)
    found = changes(*_series(fleet, drifting, 700))
    assert [(one.kind, one.part.split(" (")[0]) for one in found] == [("drift", "drive of joint 2")]


def test_nothing_changes_where_nothing_does() -> None:
    fleet = Fleet.of_arms()
    theta = fleet.own(np.random.default_rng(12))
    assert [changes(*_series(fleet, [theta] * 14, 900 + 20 * k)) for k in range(4)] == [()] * 4


def test_one_of_three_robots_with_another_geometry_stands_out_by_its_prediction_error() -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(12)
    robot = fleet.model.robot
    joints = tuple(replace(joint, after=joint.after + longer(joint.after))
                   for joint in robot.joints)
    other = replace(fleet.model, robot=replace(robot, joints=joints))
    for odd in (None, 2):
        logs = [[fleet.log(theta, 6.0, 10 * k + i, machine=other if k == odd else None) for i in range(3)]
                for k, theta in enumerate(fleet.own(rng, 0.1) for _ in range(3))]
        found = outlying_robots(cross_prediction(fleet.robots(logs), logs))
        assert [one.robot for one in found] == ([] if odd is None else ["robot 2"])
    assert found[0].error > 2.0 * found[0].usual
    assert "geometry" in found[0].sentence


@pytest.mark.parametrize("count", [3, 4])
def test_few_robots_that_differ_at_random_do_not_stand_out(count: int) -> None:
    """Of a thousand fleets whose models differ in three directions, about ten."""
    rng, apart = np.random.default_rng(31), 0
    names, every = tuple(map(str, range(count))), tuple(range(count))
    for _ in range(1000):
        x = rng.normal(size=(count, 3))
        errors = np.linalg.norm(x[:, None] - x[None], axis=2)[:, :, None]
        apart += bool(outlying_robots(CrossPrediction(names, ("joint",), errors, every)))
    assert apart < 20


def longer(pose: Array) -> Array:
    """What is added to a pose (4, 4) whose distance grows by eight tenths."""
    more = np.zeros((4, 4))
    more[:3, 3] = 0.8 * pose[:3, 3]
    return more

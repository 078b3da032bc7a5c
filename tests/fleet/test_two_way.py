"""Robots by motions: what differs is put down to the right one, and nothing is where neither differs."""

from __future__ import annotations

import numpy as np
import pytest
from fleets import RATE, Fleet
from motions import fourier, low_passed
from scipy.stats import f as fisher

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.fleet.change_detection import LogEstimates
from dynid.fleet.robot_fold import log_noise
from dynid.fleet.robot_scatter import Scatter, scatter, two_way
from dynid.recording import Samples
from dynid.regression import fold, prepared_equations


def one_log(fleet: Fleet, theta: Array, motion: int, seed: int, robot: str, unmodelled: float) -> LogFold:
    """The fold of one log; motion 0 is four times as slow. unmodelled: N m, friction that rises at low speed."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = fourier(fleet.model.dof, seconds=10.0, seed=1000 + motion, rate=RATE, period=10.0)
    if motion == 0:
        dq, ddq = dq / 4.0, ddq / 16.0
    tau = fleet.model.inverse_dynamics(theta, q, dq, ddq) + unmodelled * np.sign(dq) * np.exp(-(dq / 0.05) ** 2)
    samples = Samples.from_arrays(q, dq, ddq, tau + low_passed(rng, tau.shape, fleet.noise, 10.0, RATE), rate=RATE)
    equations = prepared_equations(fleet.model, samples, fleet.base)
    found = fold(equations, blocks=1, threads=1)
    name = f"{robot}-{motion}-{seed}"
    entry = ManifestEntry(name, name, len(samples), 0.0, 10.0, robot, "", f"motion {motion}")
    return LogFold(entry, found, log_noise(equations, found))


def scattered(fleet: Fleet, seed: int, spread: float = 0.0, unmodelled: float = 0.0, robots: int = 4) -> Scatter:
    """The scatter of some robots that made the same three motions."""
    rng = np.random.default_rng(seed)
    logs = []
    for r in range(robots):
        theta = fleet.own(rng, spread)
        logs.append([one_log(fleet, theta, motion, int(rng.integers(1 << 31)), f"robot {r}", unmodelled)
                     for motion in range(3)])
    folds = fleet.robots(logs)
    return scatter(folds, [LogEstimates.from_folds(one, own) for one, own in zip(folds, logs, strict=True)])


def test_friction_of_robots_is_robots() -> None:
    fleet = Fleet.of_arms()
    found = scattered(fleet, 1, spread=0.15)
    assert "Fc1" in found.named("robots", fleet.base.names) and not found.named("motions", fleet.base.names)


def test_friction_that_only_slow_motions_show_is_motions() -> None:
    fleet = Fleet.of_arms()
    found = scattered(fleet, 2, unmodelled=0.15)
    assert {"Fc1", "Fc2", "Fc3"} <= set(found.named("motions", fleet.base.names))
    assert not found.named("robots", fleet.base.names)


@pytest.mark.slow
def test_where_neither_differs_few_are_called() -> None:
    """At a rate of 5 %, of 20 fleets at most 3 have any parameter called (probability 1.6 % if it were exactly so)."""
    fleet = Fleet.of_arms()
    called = [found.named("robots", fleet.base.names) + found.named("motions", fleet.base.names)
              for found in (scattered(fleet, seed) for seed in range(50, 70))]
    assert sum(bool(one) for one in called) <= 3


def test_the_probabilities_are_those_of_the_analysis_of_variance() -> None:
    """Balanced and with one deviation, the squares are those of the textbook."""
    rng = np.random.default_rng(0)
    table = 10.0 * rng.normal(size=(4, 3)) + np.array([0.0, 30.0, 0.0, 0.0])[:, None]
    logs = [LogEstimates(f"R{r}", tuple(ManifestEntry(f"{r}{m}", "", 1, 0.0, 1.0, f"R{r}", "", f"M{m}")
                                        for m in range(3)), table[r][:, None], np.ones((3, 1)), np.ones((3, 1)))
            for r in range(4)]
    found = two_way(logs)
    assert found is not None and found.motions == ("M0", "M1", "M2") and found.robots == 4
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    left = table - rows[:, None] - columns + table.mean()
    error = np.sum(left ** 2) / 6
    assert np.isclose(found.p_robots[0], fisher.sf(3 * np.sum((rows - table.mean()) ** 2) / 3 / error, 3, 6))
    assert np.isclose(found.p_motions[0], fisher.sf(4 * np.sum((columns - table.mean()) ** 2) / 2 / error, 2, 6))


def test_motions_of_one_robot_each_tell_nothing_apart() -> None:
    logs = [LogEstimates(f"R{r}", (ManifestEntry(f"{r}", "", 1, 0.0, 1.0, f"R{r}", "", f"M{r}"),), np.ones((1, 1)),
                         np.ones((1, 1)), np.ones((1, 1))) for r in range(3)]
    assert two_way(logs) is None

"""Torques that depend on the position of a joint, where data contradict every physically consistent robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks._random_machines import CONDITIONS, RandomMachine, random_machine
from dynid.datasets import Dataset
from dynid.estimate import Problem, identify
from dynid.estimate.cable_choice import is_contradicted, revisiting_joints
from dynid.estimate.linear import joint_weights
from dynid.recording import Samples
from dynid.recording.sample_preparation import prepare
from dynid.runs.choices import choose
from dynid.runs.estimation import estimate_of_run
from dynid.runs.loading import LoadedProblem, loaded_problem
from dynid.runs.settings import RunSettings

SPRUNG = 1006  # seed of a machine of two joints, whose springs no physically consistent robot explains


def loaded_log(machine: RandomMachine) -> LoadedProblem:
    settings = RunSettings(robot=machine.robot.name, logs=(str(machine.fitted.source),))
    return loaded_problem(choose(settings, machine.robot, Dataset.from_recordings((machine.fitted,))))


def samples_of(q: np.ndarray) -> Samples:
    return Samples.from_arrays(q, np.gradient(q, 0.01, axis=0), np.zeros_like(q), np.zeros_like(q), rate=100.0)


def test_a_joint_revisits_its_positions_if_several_blocks_of_time_see_each() -> None:
    t = np.arange(0.0, 20.0, 0.01)
    q = np.column_stack([np.sin(2.0 * np.pi * t / 4.0), 0.1 * t, np.sin(2.0 * np.pi * t / 20.0), np.zeros_like(t)])
    assert revisiting_joints((samples_of(q),), 10) == (0,)  # not a ramp, not one slow period, not one at rest
    assert revisiting_joints((samples_of(q), samples_of(q), samples_of(q)), 30) == (0, 1, 2)
    assert revisiting_joints((), 10) == ()


@pytest.fixture(scope="module")
def sprung() -> tuple[RandomMachine, LoadedProblem]:
    machine = random_machine(SPRUNG, 60.0, "spring")
    return machine, loaded_log(machine)


def error_of(estimate: object, machine: RandomMachine, like: Problem) -> float:
    """Relative error on the other motion, percent."""
    samples = prepare(machine.tested, like.data[0].preparation)
    (found,) = estimate.residuals(samples)  # type: ignore[attr-defined]
    return 100.0 * float(np.linalg.norm(found.measured - found.predicted) / np.linalg.norm(found.measured))


def test_springs_that_consistent_robots_contradict_are_found_and_predict_another_motion(sprung) -> None:
    machine, loaded = sprung
    assert is_contradicted(identify(loaded.problem, method="pc-wls"))
    richer, estimate = estimate_of_run(loaded)
    table = richer.settings.model.terms[-1]
    assert table["kind"] == "cable" and richer.friction is not None and richer.friction.tables[-1] == table
    assert "cable" in richer.friction.text and any("cable" in note for note in richer.chosen_notes)
    assert estimate.method == "pc-wls" and not is_contradicted(estimate)
    assert estimate.diagnostics["choice"]["method"] == "pc-wls" and estimate.left_out is not None
    assert len(estimate.values) == len(richer.problem.base)
    without = error_of(identify(loaded.problem, method="auto"), machine, loaded.problem)
    assert error_of(estimate, machine, loaded.problem) < 0.6 * without


def test_a_named_method_and_named_friction_are_kept(sprung) -> None:
    _, loaded = sprung
    for other in (replace(loaded, settings=loaded.settings.model_copy(update={"method": "pc-wls"})),
                  replace(loaded, friction=None)):
        same, estimate = estimate_of_run(other)
        assert same is other and "cable" not in str(estimate.model.terms)  # type: ignore[attr-defined]


def test_a_machine_without_such_torques_has_the_estimate_of_auto() -> None:
    loaded = loaded_log(random_machine(SPRUNG, 20.0))
    same, estimate = estimate_of_run(loaded)
    expected = identify(loaded.problem, method="auto")
    assert same is loaded and estimate.method == expected.method
    np.testing.assert_allclose(estimate.values, expected.values, rtol=1e-9)
    assert estimate.diagnostics["choice"] == expected.diagnostics["choice"]
    assert estimate.provenance == expected.provenance


def test_excess_over_noise_is_that_of_the_misfits_and_the_covariance(sprung) -> None:
    _, loaded = sprung
    regression = loaded.problem.regression
    free, inside = (identify(loaded.problem, method=name) for name in ("wls", "pc-wls"))
    weights = joint_weights(regression)

    def misfit(values: np.ndarray) -> float:
        return float(weights ** 2 @ regression.misfits(values))

    rows = regression.stack(weights)
    noise = float(np.trace(rows.r @ free.covariance @ rows.r.T))
    expected = (misfit(inside.values) - misfit(free.values)) / noise
    assert inside.diagnostics["excess_over_noise"] == pytest.approx(expected, rel=0.1)  # values inside are filled in


def explained(q: np.ndarray, torque: np.ndarray, functions: list) -> float:
    """Share of a torque's variance that functions of one position explain, by numpy."""
    matrix = np.column_stack([np.ones_like(q), *(function(q) for function in functions)])
    left = torque - matrix @ np.linalg.lstsq(matrix, torque, rcond=None)[0]
    return 1.0 - float(np.var(left) / np.var(torque))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_of_simulated_machines(condition: str) -> None:
    plain, other = random_machine(3, 5.0).fitted, random_machine(3, 5.0, condition).fitted
    if condition == "low-rate":
        assert other.rate == pytest.approx(40.0)
        np.testing.assert_array_equal(other.tau, plain.tau[::5])
    elif condition == "quantised":
        assert all(len(np.unique(column)) <= 61 for column in other.tau.T)
    elif condition == "resting":
        assert np.ptp(other.q[:, -1]) == 0.0
    elif condition == "one-way":
        assert np.all(np.diff(other.q[:, -1]) >= 0.0)
    elif condition == "slow":
        np.testing.assert_allclose(other.q[::6], plain.q[:len(other.q[::6])], atol=1e-4)
    else:
        np.testing.assert_array_equal(other.q, plain.q)
        added, first = other.tau - plain.tau, (np.cos, np.sin)
        assert np.linalg.norm(added) > 0.005 * np.linalg.norm(plain.tau)
        for j, q in enumerate(plain.q.T):
            if condition == "spring":
                assert explained(q, added[:, j], [lambda x: x]) > 0.98
            elif condition == "cable":
                assert explained(q, added[:, j], [*first, *(lambda x, one=one: one(2.0 * x) for one in first)]) > 0.98

"""Instrumental variables on an arm of unequal joints: where they start from, and what is tried when that fails."""

from __future__ import annotations

import numpy as np
import pytest
from four_joint_arm import RAW, machine
from refusals import refused

from dynid.errors import NotPossibleError
from dynid.estimate import identify
from dynid.estimate.closed_loop import start
from dynid.estimate.closed_loop.loop import make_loop
from dynid.simulation import joint_inertia


@pytest.fixture(scope="module")
def arm():
    return machine()


def test_the_arm_has_the_inertias_that_were_hard(arm) -> None:
    found = np.atleast_2d(joint_inertia(arm.model, arm.theta, arm.reference.q)).max(axis=0)
    assert found[0] > 7.0 and found[3] == pytest.approx(0.064, rel=0.02)


def test_a_light_joint_in_a_stiff_loop_shows_at_least_what_the_loop_can_hold(arm) -> None:
    problem = arm.problem(arm.log(position_noise=2e-4, seed=1))
    shown = make_loop(problem, "iv").apparent_inertia
    assert shown is not None and np.all(shown >= np.asarray(arm.law.kd) / 1000.0)


@pytest.mark.parametrize("method", ["iv", "pc-iv"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_machines_own_law_serves_an_arm_of_unequal_joints(arm, method: str, seed: int) -> None:
    problem = arm.problem(arm.log(position_noise=2e-4, seed=seed))
    found = identify(problem, method=method)
    z = (found.values - problem.base.reduce(arm.theta))[found.identified] / found.std[found.identified]
    assert np.sqrt(np.mean(z ** 2)) < 1.5
    assert found.diagnostics["start"] == "from unit inertias" and found.diagnostics["failed_starts"] == {}


def test_without_a_filter_the_inertias_are_those_of_the_machine(arm) -> None:
    problem = arm.problem(arm.log(position_noise=2e-5, seed=1), **RAW)
    truth = problem.base.reduce(arm.theta)
    found = identify(problem, method="iv")
    large = np.abs(truth) > 0.1
    assert np.median(np.abs(found.values / truth - 1.0)[large]) < 0.02


def test_another_start_is_tried_and_named(arm, monkeypatch) -> None:
    problem = arm.problem(arm.log(position_noise=2e-4, seed=1))
    direct = identify(problem, method="iv", start="filtered")

    def refuse(loop: object) -> None:
        raise NotPossibleError("the simulation diverged", "try a smaller step", "diverged")

    monkeypatch.setattr(start, "run_unit_inertias", refuse)
    found = identify(problem, method="iv")
    np.testing.assert_array_equal(found.values, direct.values)
    assert found.diagnostics["start"] == "from least squares on filtered data"
    assert list(found.diagnostics["failed_starts"]) == ["from unit inertias"]
    [note] = [note for note in found.diagnostics["notes"] if note.code == "other-start"]
    assert "the simulation diverged" in note.text
    with refused(NotPossibleError, "diverged"):
        identify(problem, method="iv", start="regular")


def test_when_nothing_leads_on_every_reason_is_given(arm) -> None:
    problem = arm.problem(arm.log(position_noise=2e-4, seed=1))
    with pytest.raises(NotPossibleError) as refused:
        identify(problem, method="iv", transient=1e3)
    assert refused.value.code == "no-instruments"
    assert refused.value.reason.count("no equation remains") == 5
    assert "smaller step" not in str(refused.value)

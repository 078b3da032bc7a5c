"""An offset above the dry friction is named where the data say so, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.findings import Finding
from dynid.model import Model, make_terms
from dynid.validate import reconstruct, verdict

VISCOUS, DRY, OFFSET = 0.1154, 0.0388, 0.4584  # table C.1 of Ardiani, joint 4


def driving(log, model: Model | None = None) -> list[Finding]:
    problem, estimate = log.fitted(model=model)
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples))
    return [one for one in found.findings if one.code == "driving-friction"]


def changes(offset: float, dry: float = DRY) -> dict[str, float]:
    return {"Fv2": VISCOUS, "Fc2": dry, "Fo2": offset}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_offset_above_dry_friction_is_named_with_its_numbers(simulate, sign):
    [one] = driving(simulate("arm3r", noise=0.002, changes=changes(sign * OFFSET)))
    assert one.joints == ("joint2",) and one.parameters == ("Fo2",)
    # Dry friction and that of a hundredth of the top speed; it drives up to (offset - dry) / viscous, or the top speed.
    assert one.evidence["offset"] == pytest.approx([OFFSET], abs=0.03)
    assert one.evidence["friction"] == pytest.approx([DRY], abs=0.03)
    assert 0.0 < one.evidence["std"][0] < 0.05
    assert 0.5 < one.evidence["speed"][0] <= (OFFSET - DRY) / VISCOUS + 0.5


@pytest.mark.parametrize("offset", [0.0, 0.9 * OFFSET])
def test_an_offset_below_is_not(simulate, offset):
    assert driving(simulate("arm3r", noise=0.002, changes=changes(offset, OFFSET))) == []


@pytest.mark.slow
def test_one_as_large_is_hardly_ever_named(simulate):
    named = [driving(simulate("arm3r", noise=0.02, seed=seed, changes=changes(OFFSET, OFFSET))) for seed in range(12)]
    assert sum(map(len, named)) <= 1


def test_one_that_noise_hides_is_not(simulate):
    assert driving(simulate("arm3r", noise=0.3, changes=changes(DRY + 0.05))) == []


def test_without_dry_friction_in_the_model_there_is_nothing_to_compare(simulate):
    log = simulate("arm3r", noise=0.002, changes=changes(OFFSET))
    robot = log.model.robot
    assert driving(log, Model(robot, make_terms(robot, friction=("viscous", "offset")))) == []


def test_the_log_of_a_joint_that_goes_one_way_does_not_tell(simulate):
    log = simulate("arm3r", noise=0.002, changes=changes(OFFSET))
    way = log.samples.dq[:, 1] > 0.0
    keep = np.array(log.samples.keep) & np.column_stack([np.ones_like(way), way, np.ones_like(way)])
    assert driving(replace(log, samples=replace(log.samples, keep=keep))) == []

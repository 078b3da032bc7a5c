"""How often validation evaluates the regressor over the data."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from motions import arm, motion
from passes import counted_passes

from dynid.estimate import Estimate, Problem, identify
from dynid.recording import Decimation
from dynid.regression import TorqueEquations, fold
from dynid.regression.derived import CachedEquations
from dynid.validate import reconstruct, residual_tests, verdict

ROWS = 4000


def fitted() -> tuple[Problem, Estimate]:
    """A problem of one log of a three-joint arm, and its estimate."""
    model, theta = arm()
    samples = motion(model, theta, 0.01 * np.random.default_rng(0).normal(size=(ROWS, 3)), seconds=20.0, seed=1)
    problem = Problem.from_model(model, samples)
    return problem, identify(problem, method="wls")


def test_one_pass_serves_reconstruction_and_residual_tests() -> None:
    problem, estimate = fitted()
    with counted_passes() as passes:
        shared = reconstruct(estimate, problem.data, for_tests=True)
        found = residual_tests(shared)
    assert passes.total == ROWS
    with counted_passes() as passes:
        again = residual_tests(reconstruct(estimate, problem.data))
    assert passes.total == 2 * ROWS
    for field in fields(found.rows):
        one, other = getattr(found.rows, field.name), getattr(again.rows, field.name)
        for x, y in zip(one, other, strict=True) if field.name == "columns" else ((one, other),):
            np.testing.assert_array_equal(x, y)


def test_a_verdict_on_good_data_takes_less_than_a_pass() -> None:
    """Beside the reconstruction: the nominal model at some rows, and no hypothesis where joints agree."""
    problem, estimate = fitted()
    own = reconstruct(estimate, problem.data, for_tests=True)
    with counted_passes() as passes:
        said = verdict(estimate, problem, reconstruction=own)
    assert not said.of_kind("problem")
    assert passes.total < ROWS, passes.table(ROWS)


@pytest.mark.parametrize("decimation", [None, Decimation(5)])
def test_gathered_equations_are_the_same_and_evaluate_every_row_once(decimation: Decimation | None) -> None:
    problem, _ = fitted()
    samples = replace(problem.data[0], decimation=decimation, segments=np.array([[0, 1500], [1503, ROWS]]))
    plain = TorqueEquations.from_model(problem.model, samples, problem.base)
    gathered = CachedEquations(plain)
    with counted_passes() as passes:
        found = fold(gathered, blocks=8)
    assert passes.total == ROWS - 3
    assert [factor.rows for factor in found.factors] == [factor.rows for factor in fold(plain, blocks=8).factors]
    for piece in plain.pieces(8):
        one, other = gathered.rows(piece), plain.rows(piece)
        np.testing.assert_allclose(one.entries, other.entries, rtol=0, atol=1e-12 * np.abs(other.entries).max())
        np.testing.assert_array_equal(one.keep, other.keep)


def test_callers_are_named() -> None:
    problem, estimate = fitted()
    with counted_passes() as passes:
        reconstruct(estimate, problem.data)
    assert passes.by("validate.reconstruction.reconstruct") == passes.total == ROWS
    assert passes.table(ROWS) == [(1.0, "validate.reconstruction.reconstruct")]

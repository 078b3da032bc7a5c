"""Traced numbers: which thresholds could change a decision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reproductions._traced import Key, Traced

HALF, TWICE = ("LIMIT", 0.5), ("LIMIT", 2.0)


@pytest.fixture
def decided() -> set[Key]:
    return set()


@pytest.fixture
def limit(decided) -> Traced:
    """A threshold of 4 that is tried at 2 and 8."""
    return Traced(4.0, {HALF: 2.0, TWICE: 8.0}, decided)


@pytest.mark.parametrize(("decide", "found"), [
    (lambda limit: 1.0 < limit, set()), (lambda limit: 3.0 < limit, {HALF}), (lambda limit: limit < 5.0, {TWICE}),
    (lambda limit: 2.0 * limit ** 2 - 1.0 > 40.0, {TWICE}), (lambda limit: max(limit, 5.0), {TWICE}),
    (lambda limit: bool(np.any(np.array([1.0, 5.0]) > limit)), {TWICE}),
    (lambda limit: ((np.array([1.0, 5.0]) > np.maximum(limit, 1.0)) & np.array([True, False])).any(), set()),
    (lambda limit: np.flatnonzero(np.array([1.0, 3.0]) > limit), {HALF}),
    (lambda limit: math.log(limit) > 0.0, {HALF, TWICE}),  # what follows a conversion is not traced
    (lambda limit: f"{limit:.1f}", {HALF, TWICE})])
def test_comparisons_that_another_value_changes_are_recorded(limit, decided, decide, found) -> None:
    assert np.array_equal(decide(limit), decide(4.0))
    assert decided == found


def test_a_value_that_does_not_depend_on_the_threshold_any_more_decides_nothing(limit, decided) -> None:
    assert float(np.minimum(limit, 1.0)) == 1.0
    assert not decided


def test_two_thresholds_are_varied_one_at_a_time(limit, decided) -> None:
    other = Traced(1.0, {("OTHER", 2.0): 2.0}, decided)
    assert limit * other < 7.0
    assert decided == {TWICE, ("OTHER", 2.0)}

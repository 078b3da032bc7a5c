"""Medians, quantiles and distinct values agree with numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.order_statistics import distinct, median, quantile


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (100,), (6, 3), (5, 1)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_medians(shape: tuple[int, ...], axis: int | None) -> None:
    x = np.random.default_rng(len(shape)).standard_normal(shape)
    np.testing.assert_array_equal(median(x, axis), np.median(x, axis))
    np.testing.assert_array_equal(median(np.arange(np.prod(shape)).reshape(shape), axis),
                                  np.median(np.arange(np.prod(shape)).reshape(shape), axis))


def test_a_median_of_nan_or_of_nothing_is_nan() -> None:
    table = np.array([[1.0, np.nan], [3.0, 2.0]])
    np.testing.assert_array_equal(median(table, axis=0), [2.0, np.nan])
    assert np.isnan(median(table)) and np.isnan(median([]))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.25, 0.5, 0.9, 0.995, 1.0])
def test_quantiles(count: int, share: float) -> None:
    x = np.random.default_rng(count).standard_normal(count)
    assert quantile(x, share) == pytest.approx(np.quantile(x, share), rel=1e-15, abs=1e-15)
    assert np.isnan(quantile(np.append(x, np.nan), share))


def test_distinct_values() -> None:
    x = np.random.default_rng(0).integers(0, 9, (4, 5))
    for one in (x, x.astype(float), x.astype(str), x[:0], x[:1, :1]):
        np.testing.assert_array_equal(distinct(one), np.unique(one))

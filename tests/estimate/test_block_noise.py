"""Covariance from the variation between blocks of time, against its definition on whole rows and against the truth."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import sqrtm

from dynid.arrays import Array
from dynid.estimate.covariance import ScoreNoise, block_noise
from dynid.estimate.linear import Solution
from dynid.regression import Factor

BLOCKS, ROWS, COLUMNS = 5, 12, 6  # of which each block has a large share of what is known


def design(rng: np.random.Generator) -> Array:
    """Columns (blocks, rows, columns) that differ from block to block, as those of a robot do."""
    return rng.normal(size=(BLOCKS, ROWS, COLUMNS)) * np.exp(0.4 * rng.normal(size=(BLOCKS, 1, COLUMNS)))


def found_by_blocks(x: Array, y: Array) -> tuple[Array, ScoreNoise]:
    """Variances (columns,) of the least-squares estimate by `block_noise`, and the noise."""
    rows, every = x.reshape(-1, COLUMNS), np.ones(COLUMNS, dtype=bool)
    inverse = np.linalg.inv(rows.T @ rows)
    solution = Solution(inverse @ rows.T @ y.ravel(), inverse, every, every, {}, np.eye(COLUMNS))
    blocks = [SimpleNamespace(rows=ROWS, factors=(Factor(np.arange(COLUMNS), np.column_stack([a, b]), ROWS, 1.0),))
              for a, b in zip(x, y, strict=True)]
    found = block_noise(SimpleNamespace(blocks=blocks), solution, np.ones(1))  # type: ignore[arg-type]
    return np.diag(found.covariance(solution)), found


def test_it_is_the_estimator_of_bell_and_mccaffrey() -> None:
    """Computed from whole projection matrices, with the symmetric root of (I - H_bb)^-1."""
    rng = np.random.default_rng(11)
    x, y = design(rng), rng.normal(size=(BLOCKS, ROWS))
    rows = x.reshape(-1, COLUMNS)
    inverse = np.linalg.inv(rows.T @ rows)
    rest = np.eye(len(rows)) - rows @ inverse @ rows.T
    residuals = (rest @ y.ravel()).reshape(BLOCKS, ROWS)
    parts = [slice(b * ROWS, (b + 1) * ROWS) for b in range(BLOCKS)]
    roots = [np.real(sqrtm(np.linalg.inv(rest[part, part]))) for part in parts]
    moves = np.array([inverse @ x[b].T @ roots[b] @ residuals[b] for b in range(BLOCKS)])
    variances, found = found_by_blocks(x, y)
    np.testing.assert_allclose(variances, np.sum(moves ** 2, axis=0), rtol=1e-8)
    assert found.parameter_freedoms is not None
    for k in range(COLUMNS):
        g = np.column_stack([rest[:, parts[b]] @ roots[b] @ x[b] @ inverse[:, k] for b in range(BLOCKS)])
        values = np.linalg.eigvalsh(g.T @ g)
        assert found.parameter_freedoms[k] == pytest.approx(values.sum() ** 2 / np.sum(values ** 2), rel=1e-8)
    assert found.degrees_of_freedom == pytest.approx(np.median(found.parameter_freedoms))


def test_variances_are_unbiased_and_intervals_hold_with_few_blocks() -> None:
    """Known truth: white noise of standard deviation one. A jackknife over five such blocks is too large by a half."""
    from scipy.stats import t

    rng = np.random.default_rng(12)
    x = design(rng)
    rows = x.reshape(-1, COLUMNS)
    true = np.diag(np.linalg.inv(rows.T @ rows))
    ratios, held = [], []
    for _ in range(600):
        y = rng.normal(size=(BLOCKS, ROWS))
        variances, found = found_by_blocks(x, y)
        ratios.append(variances / true)
        errors = np.linalg.lstsq(rows, y.ravel(), rcond=None)[0]
        held.append(np.abs(errors) <= t.ppf(0.975, found.parameter_freedoms) * np.sqrt(variances))
    mean, error = np.mean(ratios, axis=0), np.std(ratios, axis=0) / np.sqrt(len(ratios))
    assert np.all(np.abs(mean - 1.0) < 4.0 * error)
    assert 0.93 < np.mean(held) < 0.975

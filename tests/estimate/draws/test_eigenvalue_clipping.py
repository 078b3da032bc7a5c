"""Clipped eigenvalues of many 4 x 4 matrices, against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.consistency.blocks import smat, svec
from dynid.estimate.draws.body_scaling import clip_eigenvalues


def nearest(vectors: Array, floor: float) -> Array:
    values, axes = np.linalg.eigh(smat(vectors))
    return svec((axes * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(axes, -1, -2))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_matrices_become_the_nearest_ones_with_large_enough_eigenvalues(scale: float) -> None:
    rng = np.random.default_rng(1)
    vectors = scale * rng.normal(size=(3000, 10))
    expected = nearest(vectors, 1e-5)
    clip_eigenvalues(vectors, 1e-5)
    np.testing.assert_allclose(vectors, expected, rtol=0.0, atol=1e-13 * max(scale, 1.0))


def test_matrices_without_a_general_form() -> None:
    """Zero, diagonal, of rank one, with equal eigenvalues, and one that is inside and must stay bit for bit."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    inside = turn @ np.diag([1.0, 2.0, 3.0, 1e-4]) @ turn.T
    matrices = np.array([np.zeros((4, 4)), np.diag([1.0, -1.0, 0.0, 2.0]), np.outer(turn[0], turn[0]),
                         turn @ np.diag([-1.0, -1.0, 2.0, 2.0]) @ turn.T, 0.5 * (inside + inside.T)])
    vectors = svec(matrices)
    before, expected = vectors.copy(), nearest(vectors, 1e-5)
    clip_eigenvalues(vectors, 1e-5)
    np.testing.assert_allclose(vectors, expected, rtol=0.0, atol=1e-14)
    assert np.array_equal(vectors[-1], before[-1])

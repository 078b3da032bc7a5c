"""LAPACK without `scipy.linalg`: the same results as `scipy.linalg`, and both in one process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

from dynid import lapack


@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_triangular(trans, lower, order, shape):
    rng = np.random.default_rng(1)
    a, b = np.asarray(rng.normal(size=(5, 5)) + 4.0 * np.eye(5), order=order), rng.normal(size=shape)  # both triangles
    np.testing.assert_allclose(lapack.solve_triangular(a, b, lower=lower, trans=trans),
                               scipy.linalg.solve_triangular(a, b, lower=lower, trans=trans), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(np.zeros((2, 2)), np.ones(2)), (np.eye(2), np.array([1.0, np.nan]))])
def test_triangular_without_a_solution(a, b):
    with pytest.raises(np.linalg.LinAlgError):
        lapack.solve_triangular(a, b)


def test_tridiagonal():
    rng = np.random.default_rng(2)
    band, b = np.array([[0.0], [4.0], [0.0]]) + rng.normal(size=(3, 7)), rng.normal(size=(7, 2))
    np.testing.assert_allclose(lapack.solve_tridiagonal(band, b), scipy.linalg.solve_banded((1, 1), band, b),
                               rtol=1e-13, atol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        lapack.solve_tridiagonal(np.zeros((3, 4)), np.ones(4))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8, 1e12])
def test_full_rank_is_certain(condition):
    """Never stated where the ratio of singular values is beyond the share, and stated where it is far within."""
    rng = np.random.default_rng(4)
    for size in (1, 2, 7, 40):
        left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
        r = np.linalg.qr(left * np.geomspace(1.0, 1.0 / condition, size) @ right, mode="r")
        values = scipy.linalg.svdvals(r)
        for share in (1e-2, 1e-6, 1e-10):
            found = lapack.is_full_rank(r, share)
            assert not found or values[-1] > share * values[0]
            assert found or values[-1] < 1e2 * share * values[0]
    assert not lapack.is_full_rank(np.diag([1.0, 0.0]), 1e-9)
    assert not lapack.is_full_rank(np.diag([1.0, np.nan]), 1e-9)
    assert lapack.is_full_rank(np.zeros((0, 0)), 1e-9)


@pytest.mark.parametrize(("rows", "columns", "rank"), [(9, 4, 4), (4, 4, 4), (9, 4, 2), (3, 5, 3), (6, 1, 1)])
def test_least_squares(rows, columns, rank):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns)), rng.normal(size=rows)
    np.testing.assert_allclose(lapack.least_squares(a, b, 1e-9), scipy.linalg.lstsq(a, b, cond=1e-9)[0], rtol=1e-11,
                               atol=1e-12)


def test_least_squares_leaves_out_weak_directions():
    a, b = np.diag([1.0, 1e-5, 0.5]), np.ones(3)
    np.testing.assert_allclose(lapack.least_squares(a, b, 1e-4), [1.0, 0.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(lapack.least_squares(a, b, 1e-6), [1.0, 1e5, 2.0])


@pytest.mark.parametrize(("rows", "rank"), [(3, 3), (6, 2), (4, 0), (5, 5)])
def test_null_space(rows, rank):
    rng = np.random.default_rng(3)
    a = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, 5))
    mine, theirs = lapack.null_space(a), scipy.linalg.null_space(a)
    assert mine.shape == theirs.shape == (5, 5 - rank)
    np.testing.assert_allclose(mine @ mine.T, theirs @ theirs.T, atol=1e-12)  # the same space


@pytest.mark.parametrize("first", ["dynid.lapack", "scipy.linalg"])
def test_both_in_one_process(first):
    """Whichever is loaded first, `scipy.linalg` is whole, and dynid's alone does not load it."""
    code = f"""
import sys, {first}
print("scipy.linalg" in sys.modules)
import dynid.lapack, scipy.linalg, scipy.linalg.lapack
import numpy as np
print(scipy.linalg.lapack.dgeqrf(np.eye(2))[0][0, 0] == dynid.lapack.dgeqrf(np.eye(2))[0][0, 0],
      scipy.linalg.qr(np.eye(2), pivoting=True)[2].tolist())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert out[:2] == [str(first == "scipy.linalg"), "True [0, 1]"]


def test_positive_definite():
    rng = np.random.default_rng(3)
    root, b = rng.normal(size=(6, 6)), rng.normal(size=6)
    a = root @ root.T + np.eye(6)
    np.testing.assert_allclose(lapack.solve_positive(a, b), np.linalg.solve(a, b), rtol=1e-11)
    with pytest.raises(np.linalg.LinAlgError):
        lapack.solve_positive(-a, b)


def test_cone_programs_do_without_scipy_linalg():
    """Clarabel finds its BLAS in the modules that are loaded for it, and `scipy.linalg` can be loaded after that."""
    code = """
import sys
import numpy as np
import dynid
from dynid.consistency import Consistency
from dynid.consistency.program import solve_program
model = dynid.Model(dynid.Robot.load("arm3r"))
theta = model.parameters.nominal
found = solve_program(Consistency(model.parameters).blocks, np.eye(len(theta)), theta, np.ones(len(theta)))
print(bool(np.allclose(found.theta, theta, atol=1e-4)), "scipy.linalg" in sys.modules)
from scipy.linalg import cython_blas, cython_lapack, svd
print(svd(np.eye(2))[1].tolist(), cython_blas is sys.modules["scipy.linalg.cython_blas"])
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["True False", "[1.0, 1.0] True"]


def test_the_column_space_leaves_out_rounding_and_dependent_columns() -> None:
    rng = np.random.default_rng(5)
    known = np.linalg.qr(rng.normal(size=(60, 4)))[0]
    independent = known * [1.0, 1e-6, 1e3, 10.0]  # columns have different units
    columns = np.column_stack([independent, 1e-14 * rng.normal(size=60), independent @ [1.0, 1.0, 0.0, 2.0],
                               np.zeros(60)])
    basis = lapack.column_space(columns, 1e-9)
    assert basis.shape == (60, 4)
    assert np.allclose(basis @ basis.T, known @ known.T, atol=1e-9)
    assert lapack.column_space(np.zeros((5, 2)), 1e-9).shape == (5, 0)

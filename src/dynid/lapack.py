"""LAPACK routines and solvers based on them, without the rest of `scipy.linalg`.

Importing `scipy.linalg` takes 0.15 s, mostly for array libraries and Fortran tools that are not used here. The
extension modules of `scipy.linalg` do not need those and are loaded alone; a later import of `scipy.linalg` uses them.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array


def _load(name: str) -> ModuleType:
    """Return an extension module of `scipy.linalg`, loaded from its file; if the package is already loaded, or its
    files are elsewhere, the module is imported as usual."""
    whole = f"scipy.linalg.{name}"
    package = importlib.util.find_spec("scipy")
    if whole in sys.modules or "scipy.linalg" in sys.modules or package is None:
        return importlib.import_module(whole)
    for folder in package.submodule_search_locations or ():
        for suffix in EXTENSION_SUFFIXES:
            file = Path(folder, "linalg", f"{name}{suffix}")
            if file.is_file():
                spec = importlib.util.spec_from_file_location(whole, file)
                assert spec is not None and spec.loader is not None
                module = importlib.util.module_from_spec(spec)
                sys.modules[whole] = module
                spec.loader.exec_module(module)
                return module
    return importlib.import_module(whole)


_lapack = _load("_flapack")
dgeqrf, dpotrf, dpotrs = _lapack.dgeqrf, _lapack.dpotrf, _lapack.dpotrs


# Share of the largest singular value above which a triangular factor gives x to ten digits.
TRIANGULAR_SHARE = 1e-6
ROUNDING_SHARE = 1e-12  # of the largest column: units differ by less, sums that cancel are smaller
_cone_lock = threading.Lock()  # cone programs are solved on several threads


def load_for_cones() -> None:
    """Load the modules of `scipy.linalg` whose BLAS Clarabel uses; Clarabel itself would import the whole package."""
    with _cone_lock:
        for name in ("cython_blas", "cython_lapack"):
            _load(name)


def solve_triangular(a: ArrayLike, b: ArrayLike, *, lower: bool = False, trans: int = 0) -> Array:
    """Return x of a x = b, or of a' x = b with trans=1, for a triangular a (n, n) and b (n,) or (n, columns).

    Raises:
        LinAlgError: a is singular, or a number is not finite.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.size == 0 or b.size == 0:
        return np.zeros(b.shape)
    if a.flags.f_contiguous:
        x, status = _lapack.dtrtrs(a, b, lower=lower, trans=trans)
    else:  # LAPACK reads the transpose in place
        x, status = _lapack.dtrtrs(a.T, b, lower=not lower, trans=1 - trans)
    if status != 0 or not np.isfinite(x).all():
        raise np.linalg.LinAlgError("a triangular matrix of the computation is singular, or contains a number that is "
                                    "not finite")
    return np.asarray(x)


def is_full_rank(r: Array, share: float) -> bool:
    """Return whether all singular values of an upper triangular r (n, n) certainly exceed a share of the largest one.

    The norms of r and its inverse bound their ratio, in a tenth of the time of computing singular values.
    """
    if not r.size:
        return True
    inverse, status = _lapack.dtrtri(r)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(status == 0 and np.linalg.norm(r) * np.linalg.norm(inverse) * share < 1.0)


def least_squares(a: Array, b: Array, share: float) -> Array:
    """Return x (k,) that minimises |a x - b| for a (rows, k); the shortest if there are several.

    Directions count as undetermined if their singular value is below a share of the largest. Singular values are
    computed only if a triangular factor, which may be `a` itself, does not already prove full rank.
    """
    rows, width = a.shape
    if rows >= width > 0:
        r, along = a, b
        if rows > width or a[-1, :-1].any() or np.tril(a, -1).any():
            packed = dgeqrf(np.column_stack([a, b]), lwork=64 * (width + 1))[0]
            r, along = np.triu(packed[:width, :width]), packed[:width, width]
        if is_full_rank(r, max(share, TRIANGULAR_SHARE)):
            return solve_triangular(r, along)
    return np.asarray(np.linalg.lstsq(a, b, rcond=share)[0])


def solve_positive(a: Array, b: Array) -> Array:
    """Return x of a x = b for a symmetric positive definite a (n, n).

    Raises:
        LinAlgError: a is not positive definite.
    """
    if not len(a):
        return np.zeros_like(b)
    factor, status = dpotrf(a)
    if status != 0:
        raise np.linalg.LinAlgError("a matrix of the computation is not positive definite")
    return np.asarray(dpotrs(factor, b)[0])


def solve_tridiagonal(band: Array, b: Array) -> Array:
    """Return x of a x = b for a tridiagonal a, given by its diagonals in the form of `scipy.linalg.solve_banded`."""
    _, _, _, x, status = _lapack.dgtsv(band[2, :-1], band[1], band[0, 1:], b)
    if status != 0:
        raise np.linalg.LinAlgError("a tridiagonal matrix is singular")
    return np.asarray(x)


def column_space(columns: Array, share: float) -> Array:
    """Return an orthonormal basis (rows, dimensions) of the span of columns (rows, k), each scaled to unit length.

    Columns at rounding level compared with the largest one are ignored. Directions with a singular value below a share
    of the largest are ignored, too.
    """
    size = np.linalg.norm(columns, axis=0)
    used = size > ROUNDING_SHARE * np.max(size, initial=0.0)
    basis, r = np.linalg.qr(columns[:, used] / size[used])
    if is_full_rank(r, max(share, TRIANGULAR_SHARE)):
        return np.asarray(basis)
    u, sizes, _ = np.linalg.svd(r)
    return np.asarray(basis @ u[:, sizes > share * sizes[0]])


def null_space(a: Array, share: float = 0.0) -> Array:
    """Return an orthonormal basis (columns, dimensions) of the vectors that a (rows, columns) maps to zero.

    Singular values below a share of the largest one, or at rounding level, count as zero.
    """
    _, sizes, rows = np.linalg.svd(a, full_matrices=True)
    tolerance = max(share, np.finfo(float).eps * max(a.shape)) * np.max(sizes, initial=0.0)
    return np.asarray(rows[int(np.sum(sizes > tolerance)):].T)

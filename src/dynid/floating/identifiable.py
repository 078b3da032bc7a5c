"""Identifiable base parameters and noise of each kind of equations of a robot with a free base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.floating.contacts import Contact, contact_bias, null_rows, standing_jacobian
from dynid.floating.preparation import FloatingEquations
from dynid.model import Model
from dynid.regression import BaseParameters, Equations, base_parameters
from dynid.regression.base import reduce_columns
from dynid.robot import FREE_COORDINATES as SIX

_POSTURE_SPREAD = 1.0  # rad or m of random joint positions
_SAMPLES_PER_PARAMETER = 4  # random motions for each parameter, so that no rank is missed
_MIN_NOISE = 1e-3  # lower bound of a coordinate's noise, as a share of the largest, for coordinates with few rows
_SPREAD_OF_VARIANCES = 1.0  # relative standard deviation of the variances of coordinates of one kind
_VARIANCE_FITS = 3  # number of fits of the variances; each fit is weighted by the variances of the previous fit


def floating_base_parameters(model: Model, equations: FloatingEquations, *, contacts: Sequence[Contact] = (),
                             schedules: Sequence[Sequence[bool]] = (), seed: int = 0) -> BaseParameters:
    """Return the base parameters that a kind of equations can identify with sufficient excitation.

    Args:
        model: model of a robot with a free base.
        equations: "wrenches", "base", "projected" or "flight", see `prepare_floating`. "flight" here means the rows of
            the joints alone, as without a force sensor. "base" rows have the base parameters of the whole robot
            (Ayusawa, Venture and Nakamura 2014), except friction and rotor inertias, which do not affect these rows.
        contacts: contacts of "projected" equations.
        schedules: combinations of standing contacts that occur, one bool for each contact; default: all stand.
        seed: seed of the random motions.
    """
    robot = model.robot
    if not robot.has_free_base:
        raise ModelError(f"robot '{robot.name}' has a fixed base", "use dynid.base_parameters", code="fixed-base")
    if equations == "base":
        return base_parameters(model, seed=seed, unmeasured=range(SIX, robot.dof))
    if equations == "flight":
        return base_parameters(model, seed=seed, unmeasured=range(SIX))
    if equations != "projected":
        return base_parameters(model, seed=seed)
    if not contacts:
        raise ModelError("projected equations need contacts", code="no-contacts")
    rng = np.random.default_rng(seed)
    states = [list(map(bool, one)) for one in schedules] or [[True] * len(contacts)]
    count = max(24, _SAMPLES_PER_PARAMETER * len(model.parameters) // len(states))
    blocks = []
    for state in states:
        # A round foot gives the same base parameters as a point foot.
        active = [replace(contact, radius=0.0) for contact, stands in zip(contacts, state, strict=True) if stands]
        q = np.hstack([np.zeros((count, SIX)), rng.normal(size=(count, robot.dof - SIX)) * _POSTURE_SPREAD])
        dq, ddq = rng.normal(size=(2, count, robot.dof)) * 2.0
        down = rng.normal(size=(count, 3))
        down /= np.linalg.norm(down, axis=1, keepdims=True)
        jacobian, owners = standing_jacobian(robot, active, q, down)
        if jacobian.shape[1]:
            inverse = np.linalg.pinv(jacobian, rcond=1e-9)
            dq -= np.einsum("sij,sj->si", inverse, np.einsum("sij,sj->si", jacobian, dq))
            bias = np.hstack([contact_bias(robot, contact, q, dq) for contact in active])
            ddq -= np.einsum("sij,sj->si", inverse, np.einsum("sij,sj->si", jacobian, ddq) + bias)
        ddq[:, :3] -= down * np.linalg.norm(robot.gravity)  # the proper acceleration
        mixing, keep = null_rows(jacobian, owners, np.ones((count, len(active)), dtype=bool), np.ones(robot.dof))
        blocks.append((mixing @ model.regressor(q, dq, ddq))[keep])
    tall = np.vstack(blocks)
    if not len(tall):
        raise NotPossibleError(f"with all contacts standing, no equation of robot '{robot.name}' is free of contact "
                               "forces", "use measured forces, or motions with fewer standing contacts",
                               code="no-free-equation")
    size = np.linalg.norm(tall, axis=1, keepdims=True)
    factor = np.asarray(np.linalg.qr(tall / np.where(size > 0, size, 1.0), mode="r"))
    return reduce_columns(factor, model.parameters, range(len(model.parameters)))


def equation_noise(equations: Equations, beta: Array) -> Array:
    """Return the standard deviation of each coordinate's equation (6 + n,) from residuals of projected rows.

    A row that combines equations with independent noise of standard deviations s_j by factors m_j has the variance v =
    sum of m_j^2 s_j^2; its squared residual has the variance 2 v^2. The non-negative s_j^2 are fitted to the squares of
    all residuals. Rows of a standing leg contain several coordinates in similar shares, so that single s_j^2 are poorly
    determined: first one variance is fitted for forces on the base, one for moments and one for joints, and the s_j^2
    are regularised toward the three variances.
    """
    from scipy.optimize import nnls

    n = len(equations.joints)
    squares, residuals = _squares(equations, beta, n)
    kinds = np.zeros((n, 3))
    for kind, coordinates in enumerate((slice(0, 3), slice(3, SIX), slice(SIX, n))):
        kinds[coordinates, kind] = 1.0
    size = np.maximum(squares.sum(axis=1), 1e-300) * residuals.mean() / max(float(squares.sum(axis=1).mean()), 1e-300)

    def fitted(columns: Array, prior: Array | None) -> Array:
        variance, found = size, np.zeros(columns.shape[1])
        for _ in range(_VARIANCE_FITS):
            weight = 1.0 / (np.sqrt(2.0) * np.maximum(variance, 1e-12 * variance.max()))
            weighted, right = columns * weight[:, None], residuals * weight
            normal, product = weighted.T @ weighted, weighted.T @ right
            if prior is not None:
                strength = (_SPREAD_OF_VARIANCES * np.maximum(prior, _MIN_NOISE ** 2 * prior.max())) ** -2
                normal[np.diag_indices(len(normal))] += strength
                product += strength * prior
            scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
            found = nnls(normal / np.outer(scale, scale), product / scale, maxiter=50 * n)[0] / scale
            variance = columns @ found
        return found

    common = kinds @ fitted(squares @ kinds, None)
    deviations = np.sqrt(fitted(squares, common))
    return np.asarray(np.maximum(deviations, _MIN_NOISE * deviations.max()))


def _squares(equations: Equations, beta: Array, n: int) -> tuple[Array, Array]:
    """Return, for all used rows, the squared factors by which a row combines equations of coordinates (rows, 6 + n),
    and the squared residuals (rows,)."""
    squares, residuals = list[Array](), list[Array]()
    for piece in equations.pieces():
        if not len(piece.rows):
            continue
        found, samples = equations.rows(piece), equations.logs[piece.log]
        mixing = np.broadcast_to(np.eye(n), (len(piece.rows), n, n)) if samples.mixing is None else samples.mixing[
            piece.rows.start:piece.rows.stop:piece.rows.step]
        for j in range(n):
            rows, kept = found.joint(j), found.keep[:, j]
            residual = rows[-1] - beta[found.layout.columns[j]] @ rows[:-1]
            squares.append(mixing[kept, j] ** 2)
            residuals.append(residual[kept] ** 2)
    return np.vstack(squares), np.concatenate(residuals)

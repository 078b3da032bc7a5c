"""Instrumented equations, their fold and projection, against the same sums over dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import NotPossibleError
from dynid.estimate.instruments.equations import Instrumented, Measured, hann, smooth, smoothed_velocity
from dynid.estimate.instruments.projection import at_low_rate, low_rate, low_rate_scale, project
from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.recording import Decimation, Samples
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.regression import base_parameters, fold
from dynid.robot import Robot

ROBOT = Robot.builtin("scara2")
MODEL = Model(ROBOT, (RigidBodies(), Viscous(), Coulomb()))
THETA = np.array([p.nominal for p in MODEL.parameters], dtype=float)
BASE = base_parameters(MODEL)
RATE, ROWS = 500.0, 3000
SEGMENTS = np.array([[0, 1301], [1301, ROWS]])


def motion(shift: float = 0.0, noise: float = 0.0, decimation: Decimation | None = None) -> Samples:
    """The same smooth motion, somewhat other for another shift, with noise of the second differences of an encoder."""
    t, rng = np.arange(ROWS) / RATE, np.random.default_rng(3)
    w = np.array([2.1, 3.4])
    q, dq, ddq = (np.column_stack([f(w[0] * t + shift), f(w[1] * t + 2.0 * shift)]) * w ** k
                  for k, f in enumerate((np.sin, np.cos, lambda x: -np.sin(x))))
    tau = MODEL.regressor(q, dq, ddq) @ THETA
    q, dq, ddq = (x + noise * RATE ** k * rng.normal(size=x.shape) for k, x in enumerate((q, dq, ddq)))
    return replace(Samples.from_arrays(q, dq, ddq, tau, rate=RATE), segments=SEGMENTS, decimation=decimation)


def equations(decimation: Decimation | None, noise: float = 1e-6) -> tuple[Instrumented, list[np.ndarray]]:
    """Equations in pieces, and [Z_j Y_j tau_j] of each joint made of whole matrices."""
    data, clean = motion(noise=noise, decimation=decimation), motion(0.01)
    taper = np.random.default_rng(0).uniform(size=(ROWS, 2))
    found = Instrumented(Measured(MODEL, BASE, [data]), (clean,), (taper,))
    z, y, steady = (MODEL.regressor(part.q, dq, part.ddq)[:, :, BASE.independent]
                    for part, dq in ((clean, clean.dq), (data, data.dq), (data, smoothed_velocity(data))))
    dry = [k for k, name in enumerate(BASE.names) if name.startswith("Fc")]
    y[:, :, dry] = steady[:, :, dry]
    for start, stop in SEGMENTS:
        for j in range(2):
            for k in dry:
                z[start:stop, j, k] = smooth(z[start:stop, j, k], hann(RATE))
    z *= taper[:, :, None]
    dense = [np.hstack([z[:, j], y[:, j], data.tau[:, [j]]]) for j in range(2)]
    return found, dense if decimation is None else [decimate_columns(x, decimation, SEGMENTS) for x in dense]


@pytest.mark.parametrize("decimation", [None, Decimation(5)])
def test_the_fold_holds_all_sums_of_the_dense_matrices(decimation: Decimation | None) -> None:
    found, dense = equations(decimation)
    for factor, whole in zip(fold(found, blocks=1).factors, dense, strict=True):
        own = whole[:, np.append(factor.columns, 2 * len(BASE))]
        assert np.allclose(factor.r.T @ factor.r, own.T @ own, rtol=1e-10, atol=1e-8)
        assert factor.rows == len(whole)


def test_the_projection_solves_the_weighted_instrumental_equations() -> None:
    found, dense = equations(None)
    weights, b = np.array([2.0, 30.0]), len(BASE)
    projected = project(fold(found, blocks=1), weights, 2 * ROWS)
    z, y, tau = (np.vstack([w * x[:, part] for w, x in zip(weights, dense, strict=True)])
                 for part in (slice(0, b), slice(b, 2 * b), slice(2 * b, None)))
    beta = np.linalg.solve(z.T @ y, z.T @ tau)[:, 0]
    assert np.allclose(projected.solution(), beta, rtol=1e-8)
    assert np.allclose(projected.cross, z.T @ y, rtol=1e-9, atol=1e-8)
    q, _ = np.linalg.qr(z)
    assert projected.rest == pytest.approx(float(np.sum(tau ** 2) - np.sum((q.T @ tau) ** 2)), rel=1e-9)
    stacked = projected.stacked()
    assert stacked.misfit(beta) == pytest.approx(projected.rest, rel=1e-9)
    # The true values differ by what noise in the second differences does, a hundredth: no bias, as Z is without it.
    assert np.allclose(beta, BASE.reduce(THETA), atol=0.02 * np.abs(BASE.reduce(THETA)).max())
    assert projected.change(beta, beta) == 0.0 and projected.change(2.0 * beta, beta) == pytest.approx(0.5)


def test_residuals_at_the_low_rate() -> None:
    found, dense = equations(None)
    low = found.logs[0]
    again = Instrumented(Measured(MODEL, BASE, at_low_rate([low])), found.motions, found.tapers)
    left = low_rate(again, BASE.reduce(THETA), low_rate_scale([low]))
    thin = Decimation(5)
    at = decimated_rows(SEGMENTS, thin)
    for j, whole in enumerate(dense):
        rows = decimate_columns(whole, thin, SEGMENTS)
        residual = rows[:, -1] - rows[:, len(BASE):-1] @ BASE.reduce(THETA)
        assert np.allclose(left.residual[:, j], residual, atol=1e-10)
        assert np.allclose(left.z[j].T, rows[:, left.columns[j]], atol=1e-10)
        assert np.array_equal(left.kept[:, j], found.tapers[0][at, j])
    assert left.scale == 5.0
    assert np.allclose(left.weights() * left.residual_std, 1.0)


def test_known_parameters_are_taken_off_the_torque() -> None:
    """Exactly known friction leaves the other values where they were, and makes no column of its own."""
    base, *_ = BASE.given({"Fv1": float(THETA[MODEL.parameters.index("Fv1")])})
    data = motion()
    found = Instrumented(Measured(MODEL, base, [data]), (data,), (np.ones((ROWS, 2)),))
    projected = project(fold(found, blocks=1), np.ones(2), 2 * ROWS)
    assert len(projected.kept) == len(BASE) - 1
    assert np.allclose(projected.solution(), base.reduce(THETA), atol=2e-3 * np.abs(THETA).max())


def test_instruments_that_are_all_zero_are_refused() -> None:
    found, _ = equations(None)
    nothing = replace(found, tapers=(np.zeros((ROWS, 2)),))
    with pytest.raises(NotPossibleError) as error:
        project(fold(nothing, blocks=1), np.ones(2), 2 * ROWS)
    assert error.value.code == "no-rows-left"

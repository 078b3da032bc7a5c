"""Trajectories: exact derivatives, and the formulas they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.excitation import FourierPlusQuintic, FourierSeries, Joined, Slowed, Splines, Trajectory, quintics
from dynid.excitation.trajectories.trajectory import quintic_between

RNG = np.random.default_rng(1)


def series() -> FourierSeries:
    return FourierSeries(RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3), 8.0)


def spline() -> Trajectory:
    return Splines(8.0, knots=np.sort(RNG.uniform(0.5, 7.5, 9))).trajectory(RNG.normal(size=(3, 15)))


SMOOTH: dict[str, Trajectory] = {
    "fourier": series(),
    "fourier+quintic": FourierPlusQuintic(8.0, 5).trajectory(RNG.normal(size=(3, 16))),
    "bspline": spline(),
    "quintics": quintics(RNG.normal(size=(5, 3)), np.array([0.0, 1.0, 2.5, 3.0, 5.0])),
    "slowed": Slowed(series(), 1.7),
    "joined": Joined((quintic_between(RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3)), 2.0), series())),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_the_position(name: str) -> None:
    trajectory = SMOOTH[name]
    t, h = np.linspace(0.013, trajectory.duration - 0.017, 61), 1e-4
    motion = trajectory.at(t)
    for k in range(3):
        # Fourth-order central differences of each derivative give the next.
        f = [trajectory.at(t + m * h)[k] for m in (-2, -1, 1, 2)]
        slope = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
        np.testing.assert_allclose(motion[k + 1], slope, atol=2e-6 * (1 + np.abs(slope).max()))


def test_fourier_is_the_formula_of_the_document() -> None:
    a, b, q0 = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4)), RNG.normal(size=2)
    motion = FourierSeries(a, b, q0, 5.0).at([0.7])
    w = 2 * np.pi / 5.0
    for j in range(2):  # Ardiani, eq. 1.39, term by term
        q = q0[j] + sum(a[j, k] / (w * (k + 1)) * np.sin(w * (k + 1) * 0.7)
                        - b[j, k] / (w * (k + 1)) * np.cos(w * (k + 1) * 0.7) for k in range(4))
        dq = sum(a[j, k] * np.cos(w * (k + 1) * 0.7) + b[j, k] * np.sin(w * (k + 1) * 0.7) for k in range(4))
        assert motion.q[0, j] == pytest.approx(q, abs=1e-12)
        assert motion.dq[0, j] == pytest.approx(dq, abs=1e-12)


def test_wrong_input_is_named() -> None:
    with refused(DynidError, "bad-coefficients"):
        FourierSeries(np.zeros((2, 3)), np.zeros((2, 4)), np.zeros(2), 1.0)
    with refused(DynidError, "bad-parts"):
        Joined(())

"""Families: what every member keeps, functions against their trajectories, and options that make no sense."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.interpolate import BSpline as ScipySpline

from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import Family, Fourier, FourierPlusQuintic, Splines
from dynid.excitation.trajectories.families import ConstrainedFamily, family_named

RNG = np.random.default_rng(1)
FAMILIES: tuple[Family, ...] = (
    Fourier(7.0, 3), Fourier(7.0, 3, period=3.5), FourierPlusQuintic(7.0, 2), FourierPlusQuintic(7.0, 2, period=3.5),
    Splines(7.0, pieces=4), Splines(7.0, knots=np.array([1.0, 2.5, 6.0])))


@pytest.mark.parametrize(("kind", "moves"), [("fourier", False), ("fourier+quintic", True), ("bspline", True)])
def test_every_member_of_a_family_keeps_rest_and_postures(kind: str, moves: bool) -> None:
    start = np.array([0.3, -0.5, 1.0])
    end = np.array([-0.2, 0.4, 0.9]) if moves else start
    motions = ConstrainedFamily.from_family(family_named(kind, 10.0, 4), 3, start, end)
    z = RNG.normal(size=(3, motions.size))
    ends = motions.trajectory(z).at([0.0, 10.0])
    np.testing.assert_allclose(ends.q, [start, end], atol=1e-9)
    np.testing.assert_allclose(ends.dq, 0.0, atol=1e-9)
    np.testing.assert_allclose(ends.ddq, 0.0, atol=1e-9)
    np.testing.assert_allclose(motions.free(motions.coefficients(z)), z, atol=1e-8)
    # Without free numbers it is the calm quintic between the postures.
    u = np.linspace(0, 1, 11)
    way = 10 * u ** 3 - 15 * u ** 4 + 6 * u ** 5
    calm = motions.trajectory(np.zeros_like(z)).at(10.0 * u)
    np.testing.assert_allclose(calm.q, start + np.outer(way, end - start), atol=1e-7)


def test_a_series_cannot_end_elsewhere() -> None:
    with refused(NotPossibleError, "motion-is-periodic"):
        ConstrainedFamily.from_family(Fourier(10.0), 2, np.zeros(2), np.ones(2))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_functions_are_those_of_the_trajectories(family: Family) -> None:
    t = np.linspace(0.0, 7.0, 41)
    c = RNG.normal(size=(2, len(family.constant)))
    for ours, theirs in zip(family.functions(t) @ c.T, family.trajectory(c).at(t), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10 * (1 + np.abs(theirs).max()))
    still = family.trajectory(np.outer([0.3, -1.2], family.constant)).at(t)
    np.testing.assert_allclose(still.q, np.tile([0.3, -1.2], (41, 1)), atol=1e-12)
    np.testing.assert_allclose(still.dq, 0.0, atol=1e-10)
    assert family.trajectory(c).duration == pytest.approx(7.0)


def test_frequencies_and_waves_are_counted_by_zero_crossings() -> None:
    family = Fourier(6.0, 4, period=3.0)
    t = (np.arange(6000) + 0.5) / 1000.0
    crossings = np.count_nonzero(np.diff(np.sign(family.functions(t)[1]), axis=0), axis=0)  # of the velocities
    np.testing.assert_allclose(crossings[:8], 4 * family.frequencies[:8], atol=1)  # two periods, two crossings a wave
    assert family.waves == 8.0


def test_splines_are_scipys_on_the_knots_given() -> None:
    inner = np.array([1.0, 2.5, 6.0])
    family = Splines(7.0, knots=inner)
    c = RNG.normal(size=(1, 9))
    theirs = ScipySpline(np.concatenate([np.zeros(6), inner, np.full(6, 7.0)]), c[0], 5)
    t = np.linspace(0.0, 7.0, 30)
    np.testing.assert_allclose(family.trajectory(c).at(t).ddq[:, 0], theirs(t, nu=2), atol=1e-10)
    np.testing.assert_allclose(Splines(6.0, pieces=3).inner_knots, [2.0, 4.0])


def test_random_knots_stay_in_order_and_near() -> None:
    family = Splines(8.0, pieces=8, knots="free")
    moved = family.with_random_knots(np.random.default_rng(0), 0.15)
    steps = np.diff(np.concatenate([[0.0], moved.inner_knots, [8.0]]))
    assert family.free_knots and not moved.free_knots and moved.duration == 8.0
    assert steps.sum() == pytest.approx(8.0) and np.ptp(steps) > 0.01
    assert (steps > 1.0 / 1.15 ** 2).all() and (steps < 1.15 ** 2).all()


def test_bandwidth_takes_harmonics_away() -> None:
    assert Fourier(10.0, 8).below(0.35).harmonics == 3
    assert Fourier(10.0, 8, period=5.0).below(0.6).harmonics == 3  # 0.2, 0.4, 0.6 Hz
    assert Fourier(10.0, 2).below(0.35).harmonics == 2 and Fourier(10.0, 8).below(np.inf).harmonics == 8
    with refused(DynidError, "bandwidth-not-supported", "'fourier'", "'bspline'"):
        Splines(10.0).below(0.35)


def test_without_conditions_everything_is_free() -> None:
    motions = ConstrainedFamily.from_family(Fourier(5.0, 2, rest=False), 2)
    z = RNG.normal(size=(2, 5))
    np.testing.assert_array_equal(motions.coefficients(z), z)
    np.testing.assert_allclose(motions.trajectory(motions.constant_motion(np.array([0.4, 0.1]))).at([1.7]).q,
                               [[0.4, 0.1]], atol=1e-12)
    with refused(NotPossibleError, "no-free-coefficient"):
        ConstrainedFamily.from_family(Fourier(5.0, 1), 1, np.zeros(1))


def test_wrong_options_are_named() -> None:
    with refused(DynidError, "unknown-motion-family", "'sine'"):
        family_named("sine", 1.0, 2)
    with refused(DynidError, "out-of-range", "duration", "1e+06 s"):
        Fourier(0.0)
    with refused(DynidError, "no-harmonic"):
        FourierPlusQuintic(5.0, 0)
    with refused(DynidError, "bad-knots"):
        Splines(5.0, knots="loose")
    with refused(DynidError, "bad-knots"):
        Splines(5.0, knots=np.array([1.0, 6.0]))

"""Trajectories: exact derivatives, what they promise at their ends, and the motions made for one purpose."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import (
    BSpline,
    FourierQuintic,
    FourierSeries,
    Limits,
    Path,
    Slowed,
    Trajectory,
    approach,
    check,
    friction_sweep,
    gravity_sweep,
    payload_pair,
    quintics,
    quintics_within,
    trapezoids,
)
from dynid.excitation.family import family
from dynid.excitation.trajectory import quintic_between

RNG = np.random.default_rng(1)


def limits(dof: int = 3, **given: object) -> Limits:
    own: dict = {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 4.0, "jerk": np.inf, "torque": np.inf,
                 "names": tuple(f"j{k + 1}" for k in range(dof))}
    return Limits(**(own | given))


def series() -> FourierSeries:
    return FourierSeries(RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3), 8.0)


def spline() -> BSpline:
    inner = np.sort(RNG.uniform(0.5, 7.5, 9))
    return BSpline(np.concatenate([np.zeros(6), inner, np.full(6, 8.0)]), RNG.normal(size=(3, 15)))


SMOOTH: dict[str, Trajectory] = {
    "fourier": series(),
    "fourier+quintic": FourierQuintic(series(), RNG.normal(size=(3, 6))),
    "bspline": spline(),
    "quintics": quintics(RNG.normal(size=(5, 3)), np.array([0.0, 1.0, 2.5, 3.0, 5.0])),
    "slowed": Slowed(series(), 1.7),
    "path": Path((quintic_between(RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3)), 2.0), series())),
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


@pytest.mark.parametrize(("kind", "moves"), [("fourier", False), ("fourier+quintic", True), ("bspline", True)])
def test_every_member_of_a_family_keeps_rest_and_postures(kind: str, moves: bool) -> None:
    start = np.array([0.3, -0.5, 1.0])
    end = np.array([-0.2, 0.4, 0.9]) if moves else start
    motions = family(kind, 3, 10.0, harmonics=4, start=start, end=end)
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
    with pytest.raises(NotPossibleError, match="comes back to where it began"):
        family("fourier", 2, 10.0, start=np.zeros(2), end=np.ones(2))


def test_trapezoids_reach_points_as_fast_as_the_slowest_joint_may() -> None:
    bounds = limits(velocity=np.array([1.0, 2.0, 0.5]), acceleration=np.array([2.0, 3.0, 1.0]))
    points = np.array([[0, 0, 0], [1, 0.5, -0.2], [-1, 0.1, 0.3]], dtype=float)
    motion = trapezoids(points, bounds)
    report = check(motion, bounds)
    assert report.ok
    used = {(u.kind, u.where): u.value / u.bound for u in report.usages}
    assert used["velocity", "j1"] == pytest.approx(1.0, abs=1e-6)
    # First leg: joint 1 goes 1 rad at 1 rad/s and 2 rad/s^2: 1 + 1/2 s; joint 3 needs 0.2/0.5 + 0.5 = 0.9 s.
    np.testing.assert_allclose(motion.at([1.5, motion.duration]).q, points[1:], atol=1e-9)
    assert motion.duration == pytest.approx(1.5 + 2.5, abs=1e-9)
    assert motion.jumps
    assert not check(motion, limits(jerk=50.0, velocity=2.0)).ok


def test_quintics_follow_the_cubic_spline_and_stop_inside_limits() -> None:
    points, t = RNG.normal(size=(6, 3)), np.array([0, 1, 2, 3.5, 4, 6.0])
    motion = quintics(points, t)
    np.testing.assert_allclose(motion.at(t).q, points, atol=1e-12)
    np.testing.assert_allclose(motion.at(t[1:-1]).dq, CubicSpline(t, points, bc_type="clamped")(t[1:-1], 1), atol=1e-9)
    np.testing.assert_allclose(motion.at(t - 1e-10).dq[1:], motion.at(t).dq[1:], atol=1e-6)
    assert not motion.jumps
    bounds = limits(jerk=20.0)
    inside = quintics_within(np.clip(points, -1.5, 1.5), bounds)
    report = check(inside, bounds)
    assert report.ok and report.excess > -0.01  # as fast as allowed


def test_friction_sweep_moves_one_joint_at_constant_speeds() -> None:
    bounds = limits(jerk=60.0)
    sweep = friction_sweep(bounds, speeds=4, longest=5.0)
    assert check(sweep, bounds).ok
    t = np.arange(0.0, sweep.duration, 0.01)
    motion = sweep.at(t)
    assert (np.count_nonzero(np.abs(motion.dq) > 1e-9, axis=1) <= 1).all()
    for j in range(3):
        steady = np.abs(motion.dq[(np.abs(motion.ddq[:, j]) < 1e-12) & (np.abs(motion.dq[:, j]) > 1e-6), j])
        speeds = np.unique(np.round(steady, 9))
        np.testing.assert_allclose(speeds, 1.5 * np.geomspace(0.02, 0.9, 4), rtol=1e-6)
        assert motion.dq[:, j].min() < -1.3 and motion.dq[:, j].max() > 1.3
    np.testing.assert_allclose(np.diff(motion.q, axis=0) / 0.01, 0.5 * (motion.dq[1:] + motion.dq[:-1]), atol=0.02)


def test_gravity_sweep_is_slow_and_reaches_far() -> None:
    bounds = limits()
    sweep = gravity_sweep(bounds, postures=8, pause=0.5)
    motion = sweep.at(np.linspace(0, sweep.duration, 4000))
    assert np.abs(motion.dq).max() <= 0.15 + 1e-9 and np.abs(motion.ddq).max() <= 0.4 + 1e-9
    assert (np.ptp(motion.q, axis=0) > 2.5).all() and check(sweep, bounds).ok


def test_payload_pair_is_one_way_twice() -> None:
    motion = quintics_within(np.array([[0, 0, 0], [1, -1, 0.5], [0, 0, 0]], dtype=float), limits())
    pair = payload_pair(motion, limits())
    assert pair.loaded is pair.without is motion
    slower = payload_pair(motion, limits(velocity=1.0)).loaded
    assert slower.duration > motion.duration and check(slower, limits(velocity=1.0)).ok
    np.testing.assert_allclose(slower.at([0.5 * slower.duration]).q, motion.at([0.5 * motion.duration]).q, atol=1e-12)


def test_approach_meets_a_motion_that_does_not_rest() -> None:
    bounds = limits(velocity=4.0, acceleration=20.0, lower=-9.0, upper=9.0)
    core = FourierSeries(0.3 * RNG.normal(size=(3, 3)), 0.3 * RNG.normal(size=(3, 3)), np.zeros(3), 6.0)
    whole = approach(core, [0.5, -0.5, 0.1], bounds)
    assert check(whole, bounds).ok
    for moment in whole.starts[1:]:
        before, after = whole.at([moment - 1e-9]), whole.at([moment])
        for k in range(3):
            np.testing.assert_allclose(before[k], after[k], atol=1e-6)
    ends = whole.at([0.0, whole.duration])
    np.testing.assert_allclose(ends.q, [[0.5, -0.5, 0.1]] * 2, atol=1e-9)
    np.testing.assert_allclose(ends.dq, 0.0, atol=1e-9)


def test_wrong_input_is_named() -> None:
    with pytest.raises(DynidError, match="a and b of one shape"):
        FourierSeries(np.zeros((2, 3)), np.zeros((2, 4)), np.zeros(2), 1.0)
    with pytest.raises(DynidError, match="need 12 knots"):
        BSpline(np.zeros(4), np.zeros((2, 6)))
    with pytest.raises(DynidError, match="point 2 puts joint 'j1' at 3"):
        trapezoids([[0, 0, 0], [3, 0, 0]], limits())
    with pytest.raises(DynidError, match="no family of motions 'sine'"):
        family("sine", 2, 1.0)

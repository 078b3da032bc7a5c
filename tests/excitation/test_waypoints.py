"""Motions through way-points: as fast as limits allow, and through every point."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.interpolate import CubicSpline

from dynid.errors import DynidError
from dynid.excitation import Limits, check_limits, quintics, quintics_within, trapezoids

RNG = np.random.default_rng(1)


def limits(dof: int = 3, **given: object) -> Limits:
    own: dict = {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 4.0, "jerk": np.inf, "torque": np.inf,
                 "names": tuple(f"j{k + 1}" for k in range(dof))}
    return Limits(**(own | given))


def test_trapezoids_reach_points_as_fast_as_the_slowest_joint_may() -> None:
    bounds = limits(velocity=np.array([1.0, 2.0, 0.5]), acceleration=np.array([2.0, 3.0, 1.0]))
    points = np.array([[0, 0, 0], [1, 0.5, -0.2], [-1, 0.1, 0.3]], dtype=float)
    motion = trapezoids(points, bounds)
    report = check_limits(motion, bounds)
    assert report.ok
    used = {(u.kind, u.where): u.value / u.bound for u in report.usages}
    assert used["velocity", "j1"] == pytest.approx(1.0, abs=1e-6)
    # First leg: joint 1 goes 1 rad at 1 rad/s and 2 rad/s^2: 1 + 1/2 s; joint 3 needs 0.2/0.5 + 0.5 = 0.9 s.
    np.testing.assert_allclose(motion.at([1.5, motion.duration]).q, points[1:], atol=1e-9)
    assert motion.duration == pytest.approx(1.5 + 2.5, abs=1e-9)
    assert motion.jumps
    assert not check_limits(motion, limits(jerk=50.0, velocity=2.0)).ok


def test_quintics_follow_the_cubic_spline_and_stop_inside_limits() -> None:
    points, t = RNG.normal(size=(6, 3)), np.array([0, 1, 2, 3.5, 4, 6.0])
    motion = quintics(points, t)
    np.testing.assert_allclose(motion.at(t).q, points, atol=1e-12)
    np.testing.assert_allclose(motion.at(t[1:-1]).dq, CubicSpline(t, points, bc_type="clamped")(t[1:-1], 1), atol=1e-9)
    np.testing.assert_allclose(motion.at(t - 1e-10).dq[1:], motion.at(t).dq[1:], atol=1e-6)
    assert not motion.jumps
    bounds = limits(jerk=20.0)
    inside = quintics_within(np.clip(points, -1.5, 1.5), bounds)
    report = check_limits(inside, bounds)
    assert report.ok and report.excess > -0.01  # as fast as allowed


def test_wrong_input_is_named() -> None:
    with refused(DynidError, "point-beyond-limits", "2", "'j1'", "3"):
        trapezoids([[0, 0, 0], [3, 0, 0]], limits())

"""Motions that show one thing at a time: friction, gravity, payload."""

from __future__ import annotations

import numpy as np

from dynid.excitation import Limits, check_limits, friction_sweep, gravity_sweep, payload_pair, quintics_within


def limits(dof: int = 3, **given: object) -> Limits:
    own: dict = {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 4.0, "jerk": np.inf, "torque": np.inf,
                 "names": tuple(f"j{k + 1}" for k in range(dof))}
    return Limits(**(own | given))


def test_friction_sweep_moves_one_joint_at_constant_speeds() -> None:
    bounds = limits(jerk=60.0)
    sweep = friction_sweep(bounds, speeds=4, longest=5.0)
    assert check_limits(sweep, bounds).ok
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
    assert (np.ptp(motion.q, axis=0) > 2.5).all() and check_limits(sweep, bounds).ok


def test_payload_pair_is_one_way_twice() -> None:
    motion = quintics_within(np.array([[0, 0, 0], [1, -1, 0.5], [0, 0, 0]], dtype=float), limits())
    pair = payload_pair(motion, limits())
    assert pair.loaded is pair.without is motion
    slower = payload_pair(motion, limits(velocity=1.0)).loaded
    assert slower.duration > motion.duration and check_limits(slower, limits(velocity=1.0)).ok
    np.testing.assert_allclose(slower.at([0.5 * slower.duration]).q, motion.at([0.5 * motion.duration]).q, atol=1e-12)

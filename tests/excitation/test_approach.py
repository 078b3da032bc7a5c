"""The way from a home posture into a motion and back."""

from __future__ import annotations

import numpy as np

from dynid.excitation import FourierSeries, Limits, approach, check_limits

RNG = np.random.default_rng(1)


def limits(dof: int = 3, **given: object) -> Limits:
    own: dict = {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 4.0, "jerk": np.inf, "torque": np.inf,
                 "names": tuple(f"j{k + 1}" for k in range(dof))}
    return Limits(**(own | given))


def test_approach_meets_a_motion_that_does_not_rest() -> None:
    bounds = limits(velocity=4.0, acceleration=20.0, lower=-9.0, upper=9.0)
    core = FourierSeries(0.3 * RNG.normal(size=(3, 3)), 0.3 * RNG.normal(size=(3, 3)), np.zeros(3), 6.0)
    whole = approach(core, [0.5, -0.5, 0.1], bounds)
    assert check_limits(whole, bounds).ok
    for moment in whole.starts[1:]:
        before, after = whole.at([moment - 1e-9]), whole.at([moment])
        for k in range(3):
            np.testing.assert_allclose(before[k], after[k], atol=1e-6)
    ends = whole.at([0.0, whole.duration])
    np.testing.assert_allclose(ends.q, [[0.5, -0.5, 0.1]] * 2, atol=1e-9)
    np.testing.assert_allclose(ends.dq, 0.0, atol=1e-9)

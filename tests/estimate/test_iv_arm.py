"""Closed-loop methods on a virtual arm of six joints with encoder steps, dry friction and no filter."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.study import Study, run_study

STUDY: dict[str, Any] = {
    "robot": "staubli-tx40", "duration": 8.0, "rate": 1000.0, "seed": 1, "repetitions": 3,
    "model": {"rotor": True, "friction": ["viscous", "coulomb"]},
    "noise": {"encoder": 5e-5, "position": 2.5e-5, "torque": [0.5, 0.5, 0.3, 0.1, 0.1, 0.05]},
    "prepare": {"method": "none", "torque_cutoff": "none", "slow": 0.0}, "methods": ["iv"],
}


def test_a_wrist_that_sticks_does_not_keep_instruments_from_settling() -> None:
    # The last joint's dry friction is thirty times what moves its inertia: it sticks at each reversal.
    result = run_study(Study.of(STUDY), workers=1)
    score = result.score("iv")
    assert score.converged == 1.0
    errors = ((score.values - result.truth) / score.std)[:, result.inertial]
    assert np.sqrt(np.mean(errors ** 2)) < 1.5

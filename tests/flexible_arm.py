"""An arm with flexible joints for tests: its model, values, control law and motions."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.model import FlexibleModel, Model, make_terms
from dynid.robot import Robot
from dynid.simulation import PD, Reference

ROBOT = Robot.builtin("arm3r")
VALUES = {"K": 1000.0, "D": 2.0, "Jm": 0.2, "Fvm": 0.5, "Fcm": 0.4, "Fv": 0.2}
LAW = PD(np.full(3, 400.0), np.full(3, 30.0))


def flexible_arm(skew: bool = False, **values: float) -> tuple[FlexibleModel, Array]:
    """Model and true parameters; values: by symbol, over those above."""
    model = FlexibleModel(Model(ROBOT, make_terms(ROBOT, friction=["viscous"])), skew=skew)
    every = {**VALUES, "Ko": 0.0, "Ks": 0.0, **values}
    return model, np.array([every.get(p.symbol, p.nominal or 0.0) for p in model.parameters])


def motion(seed: int = 0, seconds: float = 10.0, rate: float = 1000.0, size: float = 0.5) -> Reference:
    """Return a motion of five sines per joint, which depend on the seed."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, seconds, 1.0 / rate)
    q, dq, ddq = np.zeros((3, len(t), 3))
    for j in range(3):
        for k in range(1, 6):
            w, a, phase = 2.0 * np.pi * 0.2 * k, size * rng.normal() / np.sqrt(k), rng.uniform(0.0, 6.28)
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w * w * np.sin(w * t + phase)
    return Reference(q, dq, ddq, rate)

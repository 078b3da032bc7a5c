"""The virtual arm of `loads`, pushed: a result, a log of free motion and logs under wrenches, for tests of contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from loads import Arm, arm

from dynid import dynamics
from dynid.contacts import ExternalWrench
from dynid.dynamics import Wrench
from dynid.estimate import Estimate, Problem, identify
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare

RATE, SECONDS = 250.0, 16.0


def recording(seed: int, wrenches: Sequence[Wrench] = (), *, noise: float = 1.0, theta: np.ndarray | None = None,
              motion: int | None = None) -> Recording:
    """A log of the arm in motion, with torque noise and whatever acts from outside."""
    log = arm().recording(seed, theta, noise=noise, seconds=SECONDS, rate=RATE, motion=motion)
    return replace(log, tau=log.tau - dynamics.wrench_torques(arm().model.robot, wrenches, log.q, log.t))


def push(frame: str, force: Sequence[float], start: float, stop: float, moment: Sequence[float] = (0, 0, 0)) -> Wrench:
    values = np.array([*force, *moment], dtype=float)
    return Wrench(frame, lambda t: values * (start <= t < stop))


@cache
def estimate() -> Estimate:
    return identify(Problem.from_model(arm().model, prepare(recording(1), cutoff=8.0)), method="wls")


@cache
def outside(way: str = "momentum", frame: str = "tool") -> ExternalWrench:
    return ExternalWrench(estimate(), frame, free=[recording(2), recording(3)], method=way)


__all__ = ["RATE", "SECONDS", "Arm", "arm", "estimate", "outside", "push", "recording"]

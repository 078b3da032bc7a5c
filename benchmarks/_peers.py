"""Shared parts of the benchmarks: time measurement, the arms, and the same arms in Pinocchio."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dynid.robot import Robot


def _beside(folder: str, name: str) -> Any:
    """Return a file of another folder of the source as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


robots = _beside("tests", "robots")


def best(work: Callable[[], Any], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the shortest of several run times, s, which other load on the machine affects least."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def serial_arm(dof: int) -> Robot:
    """Return a serial arm of revolute joints with random geometry and physically consistent bodies."""
    return robots.random_robot(np.random.default_rng(dof), dof, prismatic=0.0, branch=0.0)


def pinocchio_of(robot: Robot) -> Any:
    """The same robot as a pin.Model."""
    return robots.to_pinocchio(robot)


def motion(samples: int, dof: int, count: int = 3) -> tuple[np.ndarray, ...]:
    """Random q, dq, ddq, .. (samples, dof) each."""
    return tuple(np.random.default_rng(0).normal(size=(count, samples, dof)))

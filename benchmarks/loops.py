"""Rows without accelerations beside plain ones, 7 joints, 69 base parameters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.prepare import prepare
from dynid.regression import equations_of
from dynid.robot import Robot

SAMPLES, RATE, CUTOFF, REPEATS = 40_000, 1000.0, 8.0, 7


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb", "offset")))
    progress("preparing")
    kernel = prepare(_log(robot), cutoff=CUTOFF, equations="kernel")
    plain = replace(kernel, filtered=None)
    every = {"kernel": kernel, "plain": plain, "full_rate": replace(plain, decimation=None)}
    progress("rows of a kernel, decimated rows and rows at full rate, one thread")
    times = _times(model, every)
    return {"samples": SAMPLES, "joints": robot.dof, "window_s": kernel.settings["kernel_window"],
            "us_kernel_rows": times["kernel"], "us_plain_rows": times["plain"],
            "us_rows_at_full_rate": times["full_rate"], "kernel_rows_ratio": times["kernel"] / times["plain"],
            "kernel_rows_ratio_full_rate": times["kernel"] / times["full_rate"]}


def _log(robot: Robot) -> Recording:
    """Five sines a joint, and torques that need not be a robot's: rows take as long for any."""
    rng, t = np.random.default_rng(0), np.arange(SAMPLES) / RATE
    q = sum(rng.normal(size=robot.dof) / k * np.sin(0.2 * np.pi * k * t[:, None] + rng.uniform(0.0, 6.0, robot.dof))
            for k in range(1, 6))
    return Recording(t=t, q=np.asarray(q), tau=10.0 * rng.normal(size=(SAMPLES, robot.dof)), joints=robot.joint_names)


def _times(model: Model, samples: dict[str, Samples]) -> dict[str, float]:
    """CPU time a sample at full rate (us) of making rows, best of several, in turn."""
    equations = {name: equations_of(model, one) for name, one in samples.items()}
    best = dict.fromkeys(equations, np.inf)
    for _ in range(REPEATS):
        for name, one in equations.items():
            start = time.process_time()
            for piece in one.pieces():
                one.rows(piece)
            best[name] = min(best[name], 1e6 * (time.process_time() - start) / SAMPLES)
    return {name: float(value) for name, value in best.items()}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("rows, a sample", "time", "ratio"),
            ("plain, decimated", f"{result['us_plain_rows']:.2f} us", "1"),
            ("of a kernel", f"{result['us_kernel_rows']:.2f} us", f"{result['kernel_rows_ratio']:.2f}"),
            ("plain, at full rate", f"{result['us_rows_at_full_rate']:.2f} us",
             f"{result['us_rows_at_full_rate'] / result['us_plain_rows']:.2f}")]

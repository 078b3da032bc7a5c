"""Closed chains compared with trees and MuJoCo, and equations without accelerations compared with torque equations."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._mujoco_loop import loop_regressor, loop_torques
from dynid.dynamics.following import tree_motion
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.regression import prepared_equations
from dynid.regression.compression import CHUNK
from dynid.robot import Robot

SAMPLES, RATE, CUTOFF, REPEATS = 40_000, 1000.0, 8.0, 7
CLOSED, LOOPED = 16_384, 200  # samples of the closed chain, and of the loop over MuJoCo


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb", "offset")))
    progress("preparing")
    kernel = prepare(_log(robot), cutoff=CUTOFF, equations="kernel")
    plain = replace(kernel, filtered=None)
    every = {"kernel": kernel, "plain": plain, "full_rate": replace(plain, decimation=None)}
    progress("rows of a kernel, decimated rows and rows at full rate, one thread")
    times = _times(model, every)
    return {**_closed(progress), "samples": SAMPLES, "joints": robot.dof, "window_s": kernel.settings["kernel_window"],
            "us_kernel_rows": times["kernel"], "us_plain_rows": times["plain"],
            "us_rows_at_full_rate": times["full_rate"], "kernel_rows_ratio": times["kernel"] / times["plain"],
            "kernel_rows_ratio_full_rate": times["kernel"] / times["full_rate"]}


def _closed(progress: Callable[[str], None]) -> dict[str, Any]:
    """Return times per sample of the regressor of the delta robot in one thread, from the motion of its independent
    joints. They are compared with those of its tree with as many bodies and all joints free, and with Python loops over
    MuJoCo with all joint positions given. The loops compute the regressor (`us_mujoco_loop`) or torques alone
    (`us_mujoco_torques`)."""
    robot = Robot.builtin("delta")
    followers = robot.followers
    assert followers is not None
    t = np.arange(CLOSED) / RATE
    speed = np.array([3.0, 4.0, 5.0])
    q, dq = 0.4 * np.sin(np.outer(t, speed)), 0.4 * speed * np.cos(np.outer(t, speed))
    ddq = -speed ** 2 * q
    chain, tree = Model(robot), Model(followers.tree)
    motion = tree_motion(robot, q, dq, ddq)
    progress("regressor of the delta robot and of its tree, one thread")
    times = {"delta": np.inf, "tree": np.inf}
    for _ in range(3 * REPEATS):
        for name, one, moved in (("delta", chain, (q, dq, ddq)), ("tree", tree, motion[:3])):
            times[name] = min(times[name], _filled(one, moved))
    progress("Python loops over MuJoCo")
    loop, torques = loop_regressor(robot, motion, LOOPED), loop_torques(robot, motion, LOOPED)
    return {"us_delta": times["delta"], "us_tree": times["tree"], "us_mujoco_loop": loop.us,
            "us_mujoco_torques": torques.us, "ratio_to_tree": times["delta"] / times["tree"],
            "speedup_vs_mujoco_loop": loop.us / times["delta"],
            "speedup_vs_mujoco_torques": torques.us / times["delta"],
            "difference": max(loop.difference, torques.difference)}


def _filled(model: Model, motion: tuple[Any, ...]) -> float:
    """Return the CPU time per sample (us) of all entries of a regressor, each contiguous over the samples, as the
    compression requires."""
    joints, columns = np.nonzero(model.structure)
    place = np.full(model.structure.shape, -1, dtype=np.int64)
    place[joints, columns] = np.arange(len(joints))
    out, start = np.zeros((len(joints), CHUNK)), time.process_time()
    for k in range(0, CLOSED, CHUNK):
        rows = [np.ascontiguousarray(x[k:k + CHUNK]) for x in motion]
        model.fill(*rows, place, out[:, :len(rows[0])])
    return 1e6 * (time.process_time() - start) / CLOSED


def _log(robot: Robot) -> Recording:
    """Return five sines per joint, and arbitrary torques, because the computing time does not depend on them."""
    rng, t = np.random.default_rng(0), np.arange(SAMPLES) / RATE
    q = sum(rng.normal(size=robot.dof) / k * np.sin(0.2 * np.pi * k * t[:, None] + rng.uniform(0.0, 6.0, robot.dof))
            for k in range(1, 6))
    return Recording(t=t, q=np.asarray(q), tau=10.0 * rng.normal(size=(SAMPLES, robot.dof)), joints=robot.joint_names)


def _times(model: Model, samples: dict[str, Samples]) -> dict[str, float]:
    """Return the CPU time per sample at full rate (us) of computing rows, the best of several alternating runs."""
    equations = {name: prepared_equations(model, one) for name, one in samples.items()}
    best = dict.fromkeys(equations, np.inf)
    for _ in range(REPEATS):
        for name, one in equations.items():
            start = time.process_time()
            for piece in one.pieces():
                one.rows(piece)
            best[name] = min(best[name], 1e6 * (time.process_time() - start) / SAMPLES)
    return {name: float(value) for name, value in best.items()}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("regressor of a delta robot, a sample", "time", "ratio"),
            ("tree of as many bodies", f"{result['us_tree']:.2f} us", "1"),
            ("closed chain", f"{result['us_delta']:.2f} us", f"{result['ratio_to_tree']:.2f}"),
            ("Python loop over MuJoCo", f"{result['us_mujoco_loop']:.0f} us",
             f"{result['us_mujoco_loop'] / result['us_tree']:.0f}"),
            ("the same, torques alone", f"{result['us_mujoco_torques']:.0f} us",
             f"{result['us_mujoco_torques'] / result['us_tree']:.0f}"),
            ("rows, a sample", "", ""),
            ("plain, decimated", f"{result['us_plain_rows']:.2f} us", "1"),
            ("of a kernel", f"{result['us_kernel_rows']:.2f} us", f"{result['kernel_rows_ratio']:.2f}"),
            ("plain, at full rate", f"{result['us_rows_at_full_rate']:.2f} us",
             f"{result['us_rows_at_full_rate'] / result['us_plain_rows']:.2f}")]

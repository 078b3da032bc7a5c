"""The regressor of a 7-joint arm, compared with Pinocchio called from Python and with writing an array of that size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks._peers import best, motion, pinocchio_of
from dynid import dynamics
from dynid.model import Coulomb, Model, Offset, RigidBodies, Viscous
from dynid.robot import Robot
from dynid.threads import over_samples, thread_count

SAMPLES, CALLS = 100_000, 300  # calls of one sample are timed in bursts shorter than a slice of the scheduler


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("kuka-lwr4")
    q, dq, ddq = motion(SAMPLES, robot.dof)
    out = np.zeros((SAMPLES, robot.dof, 10 * robot.dof))
    result: dict[str, Any] = {"samples": SAMPLES, "joints": robot.dof, "threads": thread_count()}

    progress("Pinocchio in a loop")
    model = pinocchio_of(robot)
    data = model.createData()

    def peer() -> None:
        for s in range(CALLS):
            pin.computeJointTorqueRegressor(model, data, q[s], dq[s], ddq[s])

    result["us_pinocchio"] = 1e6 * best(peer, 40) / CALLS
    progress("dynid and plain writing")
    for threads, name in ((1, "one_thread"), (None, "all_threads")):
        def write(threads: int | None = threads) -> None:
            over_samples(lambda a, b: out[a:b].fill(1.0), SAMPLES, threads)

        def ours(threads: int | None = threads) -> None:
            dynamics.regressor(robot, q, dq, ddq, out=out, threads=threads)

        ours()
        result[f"us_write_{name}"] = 1e6 * best(write, 9) / SAMPLES
        result[f"us_dynid_{name}"] = 1e6 * best(ours, 9) / SAMPLES
    result["speedup_vs_pinocchio"] = result["us_pinocchio"] / result["us_dynid_all_threads"]
    result["speedup_vs_pinocchio_one_thread"] = result["us_pinocchio"] / result["us_dynid_one_thread"]
    result["ratio_to_write_limit"] = result["us_dynid_all_threads"] / result["us_write_all_threads"]
    result["ratio_to_write_limit_one_thread"] = result["us_dynid_one_thread"] / result["us_write_one_thread"]
    result["speedup_of_threads"] = result["us_dynid_one_thread"] / result["us_dynid_all_threads"]

    def calls() -> None:
        for s in range(CALLS):
            dynamics.regressor(robot, q[s], dq[s], ddq[s])

    result["us_single_call"] = 1e6 * best(calls, 40) / CALLS
    whole = Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset()))

    def model_calls() -> None:
        for s in range(CALLS):
            whole.regressor(q[s], dq[s], ddq[s])

    result["us_single_model_call"] = 1e6 * best(model_calls, 40) / CALLS
    return result


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    us = "us_{}_{}"
    rows = [("way", "us a sample", "against Pinocchio", "against writing")]
    rows.append(("Pinocchio called from Python", f"{result['us_pinocchio']:.2f}", "1.0", ""))
    for name in ("one_thread", "all_threads"):
        ours, write = result[us.format("dynid", name)], result[us.format("write", name)]
        rows.append((f"dynid, {name.replace('_', ' ')}", f"{ours:.3f}",
                     f"{result['us_pinocchio'] / ours:.1f} times faster", f"{ours / write:.2f}"))
        rows.append((f"writing the array, {name.replace('_', ' ')}", f"{write:.3f}", "", "1.00"))
    rows.append(("dynid, one sample a call", f"{result['us_single_call']:.2f}",
                 f"{result['us_pinocchio'] / result['us_single_call']:.2f}", ""))
    rows.append(("dynid, one sample a call, with friction", f"{result['us_single_model_call']:.2f}", "", ""))
    return rows

"""Inverse and forward dynamics and the inertia matrix, compared with Pinocchio called from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pinocchio as pin

from benchmarks._peers import best, motion, pinocchio_of, serial_arm
from dynid import dynamics
from dynid.robot import Robot

SAMPLES, PEER_SAMPLES = 50_000, 3_000
LENGTHS = (3, 5, 7, 10, 20, 50)


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    result: dict[str, Any] = {"samples": SAMPLES}
    progress("a 7-joint arm")
    times = _times(Robot.builtin("kuka-lwr4"), SAMPLES, PEER_SAMPLES)
    for work, (ours, alone, theirs) in times.items():
        result |= {f"us_{work}": ours, f"us_{work}_one_thread": alone, f"us_{work}_pinocchio": theirs,
                   f"speedup_{work}": theirs / ours, f"speedup_{work}_one_thread": theirs / alone}
    result["by_joints"] = {}
    for dof in LENGTHS:
        progress(f"{dof} joints")
        times = _times(serial_arm(dof), 200_000 // dof ** 2 + 2000, 300, regressor=True)
        result["by_joints"][str(dof)] = {work: {"us": ours, "us_one_thread": alone, "us_pinocchio": theirs}
                                         for work, (ours, alone, theirs) in times.items()}
    return result


def _times(robot: Robot, samples: int, peer_samples: int,
           regressor: bool = False) -> dict[str, tuple[float, float, float]]:
    """Return microseconds per sample: dynid with all threads and with one, and Pinocchio."""
    q, dq, ddq, tau = motion(samples, robot.dof, 4)
    model = pinocchio_of(robot)
    data = model.createData()
    works: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
        "inverse_dynamics": (lambda **k: dynamics.inverse_dynamics(robot, None, q, dq, ddq, **k),
                             lambda s: pin.rnea(model, data, q[s], dq[s], ddq[s])),
        "forward_dynamics": (lambda **k: dynamics.forward_dynamics(robot, None, q, dq, tau, **k),
                             lambda s: pin.aba(model, data, q[s], dq[s], tau[s])),
        "inertia_matrix": (lambda **k: dynamics.inertia_matrix(robot, None, q, **k),
                           lambda s: pin.crba(model, data, q[s])),
    }
    if regressor:
        works["regressor"] = (lambda **k: dynamics.regressor(robot, q, dq, ddq, **k),
                              lambda s: pin.computeJointTorqueRegressor(model, data, q[s], dq[s], ddq[s]))
    times = {}
    for work, (ours, theirs) in works.items():
        ours()
        loop = best(lambda theirs=theirs: [theirs(s) for s in range(peer_samples)], 3)
        times[work] = (1e6 * best(ours) / samples, 1e6 * best(lambda ours=ours: ours(threads=1)) / samples,
                       1e6 * loop / peer_samples)
    return times


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("work", "dynid, us", "one thread, us", "Pinocchio, us", "times faster")]
    for work in ("inverse_dynamics", "forward_dynamics", "inertia_matrix"):
        rows.append((work.replace("_", " "), f"{result[f'us_{work}']:.3f}", f"{result[f'us_{work}_one_thread']:.3f}",
                     f"{result[f'us_{work}_pinocchio']:.2f}", f"{result[f'speedup_{work}']:.1f}"))
    for dof, works in result["by_joints"].items():
        for work, t in works.items():
            rows.append((f"{work.replace('_', ' ')}, {dof} joints", f"{t['us']:.3f}", f"{t['us_one_thread']:.3f}",
                         f"{t['us_pinocchio']:.2f}", f"{t['us_pinocchio'] / t['us']:.1f}"))
    return rows

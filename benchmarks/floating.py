"""The whole-body regressor of robots with a free base: a quadruped and a humanoid, against Pinocchio from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from dynid import dynamics
from dynid.model import Model
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.threads import over_samples, thread_count

sys.path.append(str(Path(__file__).resolve().parents[1] / "reproductions"))
from _peers import best
from _walkers import humanoid, quadruped

SAMPLES, CALLS = 10_000, 200
CHUNK = 64  # samples of the entries that the compressed regression takes at a time: they stay in cache


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    result: dict[str, Any] = {"samples": SAMPLES, "threads": thread_count(), "robots": {}}
    for name, text in (("quadruped", quadruped()), ("humanoid", humanoid())):
        progress(name)
        robot, rng = Robot.load(text), np.random.default_rng(0)
        q = rng.normal(size=(SAMPLES, robot.dof + 1))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        v, a = rng.normal(size=(2, SAMPLES, robot.dof))
        reduced = dynamics.root_motion(robot, q, v, a)
        out = np.zeros((SAMPLES, robot.dof, 10 * robot.dof))
        model = pinocchio_of_free(robot)
        data = model.createData()

        def peer(model: Any = model, data: Any = data, q: Any = q, v: Any = v, a: Any = a) -> None:
            for s in range(CALLS):
                pin.computeJointTorqueRegressor(model, data, q[s], v[s], a[s])

        def ours(threads: int | None, robot: Robot = robot, motion: Any = reduced, out: Any = out) -> None:
            dynamics.regressor(robot, *motion, out=out, threads=threads)

        def world(robot: Robot = robot, q: Any = q, v: Any = v, a: Any = a, out: Any = out) -> None:
            dynamics.regressor(robot, q, v, a, out=out)

        whole = Model(robot)
        joints, columns = np.nonzero(whole.structure)
        place = np.full(whole.structure.shape, -1, dtype=np.int64)
        place[joints, columns] = np.arange(len(joints))

        def entries(threads: int | None, motion: Any = reduced, whole: Model = whole, place: Any = place,
                    rows: int = len(joints)) -> None:
            def piece(start: int, stop: int) -> None:
                room = np.empty((rows, CHUNK))
                for lo in range(start, stop, CHUNK):
                    part = slice(lo, min(lo + CHUNK, stop))
                    whole.fill(*(one[part] for one in motion), place, room[:, :part.stop - lo])

            over_samples(piece, SAMPLES, threads)

        ours(None)
        entries(None)
        found = {"joints": robot.dof - 6, "us_pinocchio": 1e6 * best(peer, 20) / CALLS,
                 "us_dynid_one_thread": 1e6 * best(lambda: ours(1), 7) / SAMPLES,
                 "us_dynid_all_threads": 1e6 * best(lambda: ours(None), 7) / SAMPLES,
                 "us_dynid_with_quaternions": 1e6 * best(world, 7) / SAMPLES}
        found["us_entries_one_thread"] = 1e6 * best(lambda: entries(1), 7) / SAMPLES
        found["us_entries_all_threads"] = 1e6 * best(lambda: entries(None), 7) / SAMPLES
        found["speedup_of_entries"] = found["us_pinocchio"] / found["us_entries_all_threads"]
        found["speedup_vs_pinocchio"] = found["us_pinocchio"] / found["us_dynid_all_threads"]
        found["speedup_vs_pinocchio_one_thread"] = found["us_pinocchio"] / found["us_dynid_one_thread"]
        found["speedup_with_quaternions"] = found["us_pinocchio"] / found["us_dynid_with_quaternions"]
        found["error"] = _difference(robot, model, data, q[0], v[0], a[0])
        result["robots"][name] = found
    result["smallest_speedup"] = min(one["speedup_vs_pinocchio"] for one in result["robots"].values())
    return result


def pinocchio_of_free(robot: Robot) -> Any:
    """The pin.Model of a robot with a free base."""
    model = pin.Model()
    root = robot.free_coordinates - 1
    ids = {root: model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")}
    for i in range(root, robot.dof):
        joint = robot.joints[i]
        after = np.eye(4) if i == root else joint.after
        if i > root:
            carried = np.eye(4) if joint.parent == root else robot.joints[joint.parent].after
            ids[i] = model.addJoint(ids[joint.parent], pin.JointModelRZ(), pin.SE3(carried @ joint.before), joint.name)
        moved = ten.to_pinocchio(ten.change_frame(after) @ robot.inertias[i])
        model.appendBodyToJoint(ids[i], pin.Inertia.FromDynamicParameters(moved), pin.SE3.Identity())
    return model


def _difference(robot: Robot, model: Any, data: Any, q: Any, v: Any, a: Any) -> float:
    """Largest difference of the torques of both regressors, relative to the largest torque."""
    theirs = pin.rnea(model, data, q, v, a)
    mine = dynamics.regressor(robot, q, v, a) @ robot.inertias.ravel()
    return float(np.abs(mine - theirs).max() / np.abs(theirs).max())


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("robot", "joints", "Pinocchio", "dynid", "one thread", "ratio", "ratio, quaternions",
             "ratio, entries")]
    for name, one in result["robots"].items():
        rows.append((name, str(one["joints"]), f"{one['us_pinocchio']:.2f} us", f"{one['us_dynid_all_threads']:.2f} us",
                     f"{one['us_dynid_one_thread']:.2f} us", f"{one['speedup_vs_pinocchio']:.1f}",
                     f"{one['speedup_with_quaternions']:.1f}", f"{one['speedup_of_entries']:.1f}"))
    return rows

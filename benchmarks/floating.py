"""The regressor of a quadruped and a humanoid with a free base, compared with Pinocchio called from Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks._peers import best
from dynid import dynamics
from dynid.model import Model
from dynid.robot import Robot
from dynid.robot import inertia as ten
from reproductions._walkers import humanoid, quadruped

SAMPLES, CALLS = 4_096, 100
ROUNDS, REPEATS = 10, 4  # in CPU time, which others on the machine disturb least; the fastest of all counts
FREED_NUMBERS = 3_000_000  # 24 MB; glibc adapts its thresholds to freed blocks of up to 32 MB
KEPT = 512  # samples whose regressors are all kept in memory, up to 50 MB
CHUNK = 64  # samples of the entries that the compressed regression takes at a time: they stay in cache


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    """Microseconds per sample of the dense regressor, one thread.

    Both take the same configurations with quaternions, velocities and accelerations: `speedup_dynid` is the ratio.
    `us_root_axes` is the time for a motion that is in the axes of the root already, as a run has it.

    Both results are dense and are overwritten by the next ones: Pinocchio's sample by sample, ours block by block.
    Pinocchio writes the entries that are zero in every posture again for each sample, ours are written once per motion.
    `us_kept` is the time of filling one large array, with all of its zeros.
    """
    result: dict[str, Any] = {"samples": SAMPLES, "threads": 1, "robots": {}}
    # Once a large array was freed, malloc keeps the memory of smaller ones. Otherwise each result of Pinocchio, a new
    # array, would be in fresh pages of the system, which takes longer than computing it.
    np.ones(FREED_NUMBERS)
    for name, text in (("quadruped", quadruped()), ("humanoid", humanoid())):
        progress(name)
        robot, rng = Robot.load(text), np.random.default_rng(0)
        q = rng.normal(size=(SAMPLES, robot.dof + 1))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        v, a = rng.normal(size=(2, SAMPLES, robot.dof))
        reduced = dynamics.root_motion(robot, q, v, a)
        kept = np.zeros((KEPT, robot.dof, 10 * robot.dof))
        model = pinocchio_of_free(robot)
        data, rows = model.createData(), list(zip(q[:CALLS], v[:CALLS], a[:CALLS], strict=True))

        def peer(model: Any = model, data: Any = data, rows: Any = rows) -> None:
            for one in rows:
                pin.computeJointTorqueRegressor(model, data, *one)

        def blocks(*motion: Any, robot: Robot = robot) -> None:
            for _ in dynamics.regressor_blocks(robot, *motion):
                pass

        def whole(motion: Any = reduced, robot: Robot = robot, out: Any = kept) -> None:
            dynamics.regressor(robot, *(signal[:KEPT] for signal in motion), out=out, threads=1)

        works = {"pinocchio": (peer, CALLS), "dynid": (lambda motion=(q, v, a): blocks(*motion), SAMPLES),
                 "root_axes": (lambda motion=reduced: blocks(*motion), SAMPLES),
                 "entries": (_entries(Model(robot), reduced), SAMPLES), "kept": (whole, KEPT)}
        times: dict[str, list[float]] = {key: [] for key in works}
        for _ in range(ROUNDS):  # in turn, so that all see the machine equally busy
            for key, (work, samples) in works.items():
                times[key].append(1e6 * best(work, REPEATS, time.thread_time) / samples)
        found = {"joints": robot.dof - 6, **{f"us_{key}": min(found) for key, found in times.items()}}
        for key in ("dynid", "root_axes", "entries", "kept"):
            found[f"speedup_{key}"] = found["us_pinocchio"] / found[f"us_{key}"]
        found["error"] = _difference(robot, model, data, q[0], v[0], a[0])
        result["robots"][name] = found
    result["smallest_speedup"] = min(one["speedup_dynid"] for one in result["robots"].values())
    return result


def _entries(model: Model, motion: tuple[Any, ...]) -> Callable[[], None]:
    """Entries that are not zero in every posture, as the compressed regression takes them, in one thread."""
    joints, columns = np.nonzero(model.structure)
    place = np.full(model.structure.shape, -1, dtype=np.int64)
    place[joints, columns] = np.arange(len(joints))
    room = np.empty((len(joints), CHUNK))

    def fill() -> None:
        for start in range(0, SAMPLES, CHUNK):
            part = slice(start, min(start + CHUNK, SAMPLES))
            model.fill(*(one[part] for one in motion), place, room[:, :part.stop - start])

    return fill


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
    rows = [("robot", "joints", "Pinocchio", "dynid", "ratio", "ratio, root axes", "ratio, entries", "ratio, kept")]
    for name, one in result["robots"].items():
        rows.append((name, str(one["joints"]), f"{one['us_pinocchio']:.2f} us", f"{one['us_dynid']:.2f} us",
                     *(f"{one['speedup_' + key]:.1f}"
                       for key in ("dynid", "root_axes", "entries", "kept"))))
    return rows

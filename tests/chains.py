"""Closed chains for tests: those built in, and spatial ones drawn at random."""

from __future__ import annotations

import numpy as np
from robots import random_inertia

from dynid import dynamics
from dynid.dynamics.following import closed_chain, tree_motion
from dynid.robot import Body, Frame, Joint, Robot
from dynid.robot.loops import Closure, ClosureKind, closed
from dynid.robot.pose import from_xyz_rpy, translation

CHAINS = ("delta", "four-bar", "palletiser", "random 1", "random 2", "random 3")


def random_loop(seed: int) -> Robot:
    """A spatial chain of seven random joints from the base to the end of an eighth body, held there in a random way."""
    for attempt in range(100):
        robot = _random_loop(np.random.default_rng([seed, attempt]), ("point", "rod", "rigid")[seed % 3], seed % 2 == 0)
        chain = closed_chain(robot)
        still = np.zeros((1, robot.dof))
        if np.abs(tree_motion(robot, chain.begin[None, :robot.dof], still, still).rates).max() < 3.0:
            return robot
    raise AssertionError("no chain far from singular postures")


def _random_loop(rng: np.random.Generator, kind: ClosureKind, sliding: bool) -> Robot:
    joints, bodies = [], []
    for i in range(8):
        joints.append(Joint(f"j{i + 1}", "prismatic" if sliding and i in (2, 5) else "revolute",
                            -1 if i in (0, 7) else i - 1,
                            from_xyz_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-2.0, 2.0, 3)),
                            from_xyz_rpy(rng.uniform(-0.1, 0.1, 3), rng.uniform(-1.0, 1.0, 3))))
        bodies.append(Body(f"b{i + 1}", random_inertia(rng)))
    tree = Robot("random", tuple(joints), tuple(bodies))
    posture = rng.uniform(-0.5, 0.5, 8)
    poses = dynamics.forward_kinematics(tree, posture)
    first = Frame("end", 6, from_xyz_rpy(rng.uniform(-0.2, 0.2, 3), rng.uniform(-1.0, 1.0, 3)))
    second, length = np.linalg.inv(poses[7]) @ poses[6] @ first.pose, 0.0
    if kind == "rod":
        second, length = second @ translation(0.1, 0.3, -0.2), float(np.linalg.norm([0.1, 0.3, 0.2]))
    closure = Closure("loop", kind, first, Frame("hold", 7, second), length)
    following = [f"j{i}" for i in (2, 3, 4, 5, 6, 7)[:closure.equations]]
    return closed(tree, [closure], following, {f"j{i + 1}": x for i, x in enumerate(posture)})


def chain(name: str) -> Robot:
    return random_loop(int(name.split()[1])) if name.startswith("random") else Robot.builtin(name)

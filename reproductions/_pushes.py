"""Pushes on the virtual iiwa: temporary wrenches at points of links, and logs of the pushed robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics import Wrench
from dynid.excitation import Limits
from dynid.excitation.waypoints import quintics_within
from dynid.model import Model
from dynid.recording import Recording
from dynid.robot import Frame, Robot
from dynid.simulation import ComputedTorque, Reference, VirtualRobot
from reproductions.online_iiwa import ENCODER, NOISE, RATE, Machine


@dataclass(frozen=True, eq=False)
class Push:
    """A force (3,), N, in axes of the base, on a link at a point (3,), m, of its frame, from start to stop, s."""

    link: str
    point: Array
    force: Array
    start: float
    stop: float

    def wrench(self, frame: str) -> Wrench:
        """From nothing to all of it and back within a microsecond."""
        full, times = np.append(self.force, np.zeros(3)), np.array([0.0, 1e-6, -1e-6, 0.0])
        return Wrench(frame, np.outer([0.0, 1.0, 1.0, 0.0], full),
                      times + np.array([self.start, self.start, self.stop, self.stop]))

    def at_link(self, robot: Robot, q: Array) -> Array:
        """The same as wrenches (m, 6) at the origin of the link's frame, for postures q (m, dof)."""
        arm = dynamics.frame_pose(robot, self.link, q)[:, :3, :3] @ self.point
        return np.hstack([np.broadcast_to(self.force, arm.shape), np.cross(arm, self.force)])


def motion(made: Machine, points: Array, share: float = 0.6) -> Reference:
    """Return the motion through points (rows, dof) with a stop at each, at a share of the top speeds."""
    robot = made.model.robot
    limits = Limits.from_robot(robot, acceleration=np.full(robot.dof, 6.0), velocity=share * robot.limit("velocity"))
    path = quintics_within(points, limits)
    along = path.at(np.arange(int(path.duration * RATE)) / RATE)
    return Reference.from_arrays(along.q, along.dq, along.ddq, rate=RATE)


def pushed(made: Machine, reference: Reference, pushes: Sequence[Push], seed: int,
           theta: Array | None = None) -> Recording:
    """Return a log of the machine that follows a reference and is pushed."""
    robot = made.model.robot
    places = []
    for k, push in enumerate(pushes):
        pose = np.eye(4)
        pose[:3, 3] = push.point
        places.append(Frame(f"push{k}", robot.body_names.index(push.link), pose))
    model = Model(replace(robot, frames=(*robot.frames, *places)), made.model.terms)
    law = ComputedTorque(model, made.believed, kp=np.full(7, 1e4), kd=np.full(7, 200.0))
    wrenches = [push.wrench(f"push{k}") for k, push in enumerate(pushes)]
    virtual = VirtualRobot(model, made.theta if theta is None else theta, law, encoder=ENCODER, torque_noise=NOISE,
                           smooth="stick", wrenches=wrenches)
    return virtual.record(reference, seed=seed)


def random_pushes(robot: Robot, seconds: float, force: float, seed: int, links: Sequence[str]) -> list[Push]:
    """Return random pushes of half a second, about every two seconds, on random links, points and directions."""
    rng = np.random.default_rng(seed)
    found = []
    for start in np.arange(1.0, seconds - 1.5, 1.6):
        along, point = rng.normal(size=(2, 3))
        begin = float(start + 0.5 * rng.random())
        found.append(Push(str(rng.choice(list(links))), 0.08 * point / np.linalg.norm(point),
                          force * along / np.linalg.norm(along), begin, begin + 0.5))
    return found

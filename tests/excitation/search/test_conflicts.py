"""Limits that exclude each other: a sentence that names them."""

from __future__ import annotations

import numpy as np
from refusals import refused

from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import HalfSpace, Limits, Search, Workspace, excite, inside_box
from dynid.excitation.trajectories.families import family_named
from dynid.model import Model
from dynid.robot import Robot

ARM = "arm3r"


def contradiction(*names: str, kind: str = "fourier", error: type[DynidError] = NotPossibleError,
                  code: str = "", duration: float = 20.0, **given: object) -> None:
    robot = Robot.builtin(ARM)
    with refused(error, code or error.code, *names):
        excite(Model(robot), Limits.from_robot(robot, **given), family=family_named(kind, duration, 5),
               search=Search(budget=None, rounds=1))


def test_too_short_for_the_way() -> None:
    contradiction("'joint1'", "-2.5", "2 s", "velocity limit 2.175", code="limits-conflict", kind="bspline",
                  start=[-2.5, 0, 0], end=[2.5, 0, 0], duration=2.0)


def test_bandwidth_below_the_period() -> None:
    contradiction("harmonic", "4 s", bandwidth=0.1, duration=4.0)


def test_first_posture_in_the_wall() -> None:
    robot = Robot.builtin(ARM)
    wall = Workspace.from_robot(robot, radius=0.02, planes=[HalfSpace((-1.0, 0, 0), -0.1, "wall")])
    contradiction("first posture", "half-space 'wall'", start=[0.0, 0.0, 0.0], space=wall)


def test_nowhere_to_be() -> None:
    robot = Robot.builtin(ARM)
    planes = inside_box((-0.02, -0.02, -5.0), (0.02, 0.02, 5.0), "chimney")
    tight = Workspace.from_robot(robot, radius=0.03, planes=planes)
    contradiction("no posture", "'chimney", space=tight)


def test_gravity_alone_is_too_much() -> None:
    contradiction("no posture", "torque limit 1e-06 of joint", torque=1e-6, lower=[-0.1, 0.2, 0.2],
                  upper=[0.1, 0.3, 0.3])


def test_nothing_bounds_a_joint() -> None:
    contradiction("'joint1'", error=DynidError, lower=-np.inf, upper=np.inf,
                  velocity=np.inf, acceleration=np.inf)

"""Measured, driven and dependent joints of a closed chain, or of a robot with mimic joints.

A robot's own joints are the independent ones, for which its equations are written. Usually each of them has a motor and
an encoder. Encoders may be on other joints, such as the rocker of a four-bar linkage, or there may be more encoders
than degrees of freedom. Positions in logs are then those of `Robot.measured`; the solution of the loops converts them
to the robot's own joints. Motors may be on other joints too: torques in logs are then those of `Robot.driven`, and G'
of these joints converts them to the robot's own. An own joint without a motor has the torque zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import RobotError
from dynid.robot.robot import BASE, Body, Joint, Robot


def with_roles(robot: Robot, measured: Sequence[str], driven: Sequence[str]) -> Robot:
    """Return the robot with these joints measured and driven; default its own."""
    tree = robot if robot.followers is None else robot.followers.tree
    for what, names in (("measured", measured), ("driven", driven)):
        for name in names:
            if name not in tree.joint_names:
                raise RobotError(f"robot '{robot.name}' has no joint '{name}', which is listed as {what}; its joints "
                                 f"are {', '.join(tree.joint_names)}", code="no-joint")
            if list(names).count(name) > 1:
                raise RobotError(f"joint '{name}' of robot '{robot.name}' is listed twice as {what}")
    if measured and not _tell_all(robot, measured):
        raise RobotError(f"the measured joints {', '.join(measured)} of "
                         f"robot '{robot.name}' do not determine the "
                         "positions of its independent joints "
                         f"{', '.join(robot.joint_names)}", "measure as many joints that move with them",
                         code="joints-undetermined")
    apart = [() if set(names) == set(robot.joint_names) else tuple(names) for names in (measured, driven)]
    return replace(robot, measured=apart[0], driven=apart[1])


def _tell_all(robot: Robot, measured: Sequence[str]) -> bool:
    """Return whether the measured joints can determine all independent joints, by a bipartite matching."""
    followers = robot.followers
    if followers is None:
        return set(measured) == set(robot.joint_names)
    if followers.loops is None:
        rows = followers.coupling[[followers.tree.joint_index(name) for name in measured]]
        return int(np.linalg.matrix_rank(rows)) == robot.dof
    moves = followers.moves[[followers.tree.joint_index(name) for name in measured]]
    taken: dict[int, int] = {}

    def placed(own: int, seen: set[int]) -> bool:
        for k in np.flatnonzero(moves[:, own]).tolist():
            if k not in seen:
                seen.add(k)
                if k not in taken or placed(taken[k], seen):
                    taken[k] = own
                    return True
        return False

    return all(placed(own, set()) for own in range(robot.dof))


def as_logged(robot: Robot) -> Robot:
    """Return the joints that logs of a robot may hold, measured and driven ones, as a robot of unconnected bodies."""
    tree = robot if robot.followers is None else robot.followers.tree
    names = {*robot.joint_names, *robot.measured, *robot.driven}
    chosen = [joint for joint in tree.joints if joint.name in names]
    return Robot(robot.name, tuple(Joint(one.name, one.kind, BASE, lower=one.lower, upper=one.upper,
                                         reduction=one.reduction) for one in chosen),
                 tuple(Body(one.name) for one in chosen), source_joints=robot.source_joints or robot.joint_names,
                 measured=robot.measured or robot.joint_names, driven=robot.driven or robot.joint_names)


def held_bodies(robot: Robot) -> tuple[str, ...]:
    """Return names of the bodies whose inertia is known and not identified, including dependent ones."""
    bodies = robot.bodies if robot.followers is None else robot.followers.tree.bodies
    return tuple(body.name for body in bodies if body.held)


def with_held(robot: Robot, links: Sequence[str]) -> Robot:
    """Return the robot with the inertia of these bodies fixed, in addition to those of its file."""
    followers = robot.followers
    whole = robot.bodies if followers is None else followers.tree.bodies
    for name in links:
        body = next((one for one in whole if one.name == name), None)
        if body is None:
            raise RobotError(f"robot '{robot.name}' has no body '{name}' whose inertia could be fixed; its bodies are "
                             f"{', '.join(one.name for one in whole)}", code="unknown-body")
        if body.inertia is None:
            raise RobotError(f"the inertia of body '{name}' of robot '{robot.name}' cannot be fixed: the robot file "
                             "gives no inertia for it")

    def marked(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
        return tuple(replace(body, held=body.held or body.name in links) for body in bodies)

    if followers is not None:
        followers = replace(followers, tree=replace(followers.tree, bodies=marked(followers.tree.bodies)))
    return replace(robot, bodies=marked(robot.bodies), followers=followers)

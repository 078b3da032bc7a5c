"""Robots with locked joints, which become fixed; the bodies on locked joints are merged into their parents."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot.pose import rotation_z, translation
from dynid.robot.robot import BASE, Body, Frame, Joint, Part, Robot, merged_inertia

_NUMBERED = re.compile(r"(.*?)(\d+)")


def locked(robot: Robot, positions: Mapping[str, float]) -> Robot:
    """Return the robot with the named joints fixed at positions, rad or m.

    A body on a locked joint is merged into its parent with its inertia, and its name remains as a frame. `Robot.locked`
    lists the locked joints.
    """
    if robot.followers is not None and positions:
        from dynid.robot.followers import lock_followed
        return lock_followed(robot, robot.followers, positions)
    for name, position in positions.items():
        if robot.joint_index(name) < robot.free_coordinates:
            raise RobotError(f"'{name}' of robot '{robot.name}' is a coordinate of its free base and cannot be locked",
                             "add --fixed-base to fix the whole base", code="locked-free-base")
        if not math.isfinite(position):
            raise RobotError(f"joint '{name}' of robot '{robot.name}' cannot be locked at {position}",
                             "give a finite position, rad or m", code="bad-lock")
    if not positions:
        return robot
    kept = [i for i, name in enumerate(robot.joint_names) if name not in positions]
    if len(kept) == robot.free_coordinates:
        raise RobotError(f"every joint of robot '{robot.name}' is locked, so there is nothing to identify",
                         code="no-moving-joint")
    # For each body, the body that it is merged into (old number, BASE for the base), and its pose there.
    homes: dict[int, tuple[int, Array]] = {BASE: (BASE, np.eye(4))}
    for i, joint in enumerate(robot.joints):
        home, pose = homes[joint.parent]
        homes[i] = (home, pose @ pose_at(joint, positions[joint.name])) if joint.name in positions else (i, np.eye(4))
    number = {BASE: BASE, **{old: new for new, old in enumerate(kept)}}
    joints = tuple(replace(robot.joints[i], parent=number[homes[robot.joints[i].parent][0]],
                           before=homes[robot.joints[i].parent][1] @ robot.joints[i].before) for i in kept)
    bodies = tuple(_merged(robot, i, {j: pose for j, (home, pose) in homes.items() if home == i}) for i in kept)
    links = [*robot.frames, *(Frame(body.name, i, np.eye(4)) for i, body in enumerate(robot.bodies)
                              if body.name not in {frame.name for frame in robot.frames})]
    frames = tuple(Frame(frame.name, number[homes[frame.body][0]], homes[frame.body][1] @ frame.pose)
                   for frame in links)
    renamed = {str(old + 1): str(new + 1) for new, old in enumerate(kept)}
    return replace(robot, joints=joints, bodies=bodies, frames=frames, values=renumbered(robot.values, renamed),
                   terms=tuple(_terms(robot, positions)), locked={**robot.locked, **positions},
                   source_joints=robot.source_joints or robot.joint_names)


def only(robot: Robot, names: Sequence[str], positions: Mapping[str, float] | None = None) -> Robot:
    """Return the robot with only the named joints.

    The other joints are locked at `positions`, rad or m, by default at zero or at the limit nearest to zero.
    """
    for name in names:
        robot.joint_index(name)
    rest = {joint.name: min(max(0.0, joint.lower), joint.upper)
            for joint in robot.joints[robot.free_coordinates:] if joint.name not in names}
    return locked(robot, {**rest, **(positions or {})})


def pose_at(joint: Joint, position: float) -> Array:
    """Return the pose (4, 4) of a joint's body in the parent body at a joint position, rad or m."""
    motion = translation(0.0, 0.0, position) if joint.prismatic else rotation_z(position)
    return np.asarray(joint.before @ motion @ joint.after)


def _merged(robot: Robot, home: int, members: Mapping[int, Array]) -> Body:
    """Return body number `home` after other bodies were merged into it. members: poses (4, 4) of `home` itself and of
    these bodies in the frame of `home`, by number of the body."""
    body = robot.bodies[home]
    if len(members) == 1:
        return body
    parts, shapes, meshes = [], [], []
    for i, pose in members.items():
        member = robot.bodies[i]
        own = member.parts or (Part(member.name, np.eye(4), member.inertia),)
        parts += [replace(part, pose=pose @ part.pose) for part in own]
        shapes += [replace(shape, pose=pose @ shape.pose) for shape in member.shapes]
        meshes += [replace(mesh, pose=pose @ mesh.pose) for mesh in member.meshes]
    return Body(body.name, merged_inertia(parts), tuple(shapes), tuple(parts), meshes=tuple(meshes))


def renumbered(values: Mapping[str, float], renamed: Mapping[str, str]) -> dict[str, float]:
    """Return parameter values by name with new joint numbers in the names.

    renamed: new number of each old joint number, as text. Values of joints that are not listed are left out.
    """
    kept = {}
    for name, value in values.items():
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None:
            kept[name] = value
        elif numbered[2] in renamed:
            kept[numbered[1] + renamed[numbered[2]]] = value
    return kept


def _terms(robot: Robot, positions: Mapping[str, float]) -> Sequence[Mapping[str, Any]]:
    """Return the terms of the robot file without the locked joints; raise an error for a term that couples a locked
    joint to another joint."""
    reduced = []
    for term in robot.terms:
        joints = [robot.joint_names[robot.joint_index(joint)] for joint in term.get("joints", ())]
        if "coupling" in term or (term["kind"] == "coupled-wrist" and set(joints) & set(positions)):
            raise RobotError(f"robot '{robot.name}' has motors that drive several joints at once (term "
                             f"'{term['kind']}'), so {', '.join(positions)} cannot be locked alone",
                             code="motors-coupled")
        kept = [name for name in joints if name not in positions]
        if kept or not joints:
            reduced.append({**term, **({"joints": kept} if joints else {})})
    return reduced

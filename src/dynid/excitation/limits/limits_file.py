"""TOML file with the limits of a motion, which override the robot's own limits.

All entries are optional. Lengths are in m, angles in rad (m for prismatic joints); `inf` removes a limit of the robot.

    first = [0.0, 0.5, 0.0]        # first and last posture, one number per joint
    last = [0.0, 0.5, 0.0]
    margin = 0.02                  # share of the robot's own ranges, velocities and torques that is kept free;
                                   # limits of this file are used without a margin
    bandwidth = 1.0                # highest frequency of a Fourier motion, Hz

    [all]                          # every joint
    velocity = 1.5                 # also position = [lower, upper], acceleration, jerk, torque

    [joint.elbow]                  # one joint by its name, or by its number from 1: [joint.2]
    position = [-1.5, 1.5]
    torque = 40.0

    [space]
    margin = 0.02                  # smallest distance between bodies
    self_collision = true          # whether to check the robot's own links, as capsules around their collision shapes
    radius = 0.05                  # radius of links without collision shapes; default 5 % of the longest chain of links
    table = 0.0                    # height of a table against gravity from the base, below which no link may go
    inside = {lower = [-0.8, -0.8, 0.0], upper = [0.8, 0.8, inf]}    # box that contains all links

    [[space.wall]]                 # points p with normal . p >= offset are free
    name = "wall"
    normal = [-1, 0, 0]
    offset = -0.7

    [[space.obstacle]]             # a box: lower, upper; a ball: centre, radius; a capsule: a, b, radius
    name = "post"
    a = [0.5, 0.4, 0.0]
    b = [0.5, 0.4, 1.0]
    radius = 0.05

    [[space.sphere]]               # balls on a link instead of its collision shapes
    link = "link3"
    centre = [0.0, 0.0, 0.1]
    radius = 0.08
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dynid.errors import DynidError
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.workspace import (
    LINK_RADIUS_SHARE,
    Capsule,
    HalfSpace,
    LinkCheck,
    Workspace,
    box,
    inside_box,
    sphere,
    upward,
)
from dynid.files import toml_file
from dynid.robot import BASE, Robot

Vector3 = tuple[float, float, float]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid")


class JointTable(_Table):
    """Limits of one joint or of all joints; None for the robot's own limit."""

    position: tuple[float, float] | None = None
    velocity: float | None = None
    acceleration: float | None = None
    jerk: float | None = None
    torque: float | None = None


class BoxTable(_Table):
    lower: Vector3
    upper: Vector3


class WallTable(_Table):
    normal: Vector3
    offset: float = 0.0
    name: str = "wall"


class ObstacleTable(_Table):
    name: str = "obstacle"
    lower: Vector3 | None = None
    upper: Vector3 | None = None
    centre: Vector3 | None = None
    a: Vector3 | None = None
    b: Vector3 | None = None
    radius: float | None = None

    def capsule(self) -> Capsule:
        given = {name for name in ("lower", "upper", "centre", "a", "b", "radius") if getattr(self, name) is not None}
        if given == {"lower", "upper"}:
            assert self.lower is not None and self.upper is not None
            if not np.all(np.less(self.lower, self.upper)):
                raise DynidError(f"obstacle '{self.name}' needs three lower bounds below its three upper bounds",
                                 code="wrong-setting")
            return box(self.lower, self.upper, self.name)
        if given == {"centre", "radius"}:
            assert self.centre is not None and self.radius is not None
            return sphere(BASE, self.centre, self.radius, self.name)
        if given == {"a", "b", "radius"}:
            assert self.radius is not None
            return Capsule(BASE, np.array(self.a), np.array(self.b), self.radius, self.name)
        raise DynidError(f"obstacle '{self.name}' must be a box (lower, upper), a ball (centre, radius) or a capsule "
                         f"(a, b, radius), got {', '.join(sorted(given)) or 'none of these'}", code="wrong-setting")


class SphereTable(_Table):
    link: str
    centre: Vector3 = (0.0, 0.0, 0.0)
    radius: float


class SpaceTable(_Table):
    margin: float = Field(default=0.0, ge=0.0)
    self_collision: bool = True
    radius: float | None = Field(default=None, ge=0.0)
    table: float | None = None
    inside: BoxTable | None = None
    wall: tuple[WallTable, ...] = ()
    obstacle: tuple[ObstacleTable, ...] = ()
    sphere: tuple[SphereTable, ...] = ()

    def planes(self, robot: Robot) -> Iterator[HalfSpace]:
        if self.table is not None:
            yield HalfSpace(upward(robot), self.table, "table")
        if self.inside is not None:
            yield from inside_box(self.inside.lower, self.inside.upper)
        for wall in self.wall:
            yield HalfSpace(np.array(wall.normal), wall.offset, wall.name)


class LimitsTable(_Table):
    """Content of a TOML file with limits of a motion."""

    first: tuple[float, ...] | None = None
    last: tuple[float, ...] | None = None
    margin: float | None = Field(default=None, ge=0.0, lt=0.5)
    bandwidth: float | None = None
    all: JointTable = Field(default_factory=JointTable)
    joint: dict[str, JointTable] = Field(default_factory=dict)
    space: SpaceTable | None = None


def read_limits(path: str | Path, robot: Robot, margin: float | None = None, usual: float = 0.0) -> Limits:
    """Return the robot's limits, of which some are replaced by the limits in a TOML file; errors name the file and the
    entry.

    margin: share of the robot's limits that is kept free, in place of the margin in the file. usual: margin if neither
        the call nor the file gives one.
    """
    values = toml_file(Path(path), "limits")
    try:
        return table_limits(LimitsTable.model_validate(values), robot, margin, usual)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise DynidError(f"{path}: '{name}' is not an entry of a limits file", code="unknown-setting") from None
        raise DynidError(f"{path}: '{name}' is wrong: {first['msg'].lower()}", code="wrong-setting") from None
    except DynidError as problem:
        raise type(problem)(f"{path}: {problem}", code=problem.code) from None


def table_limits(table: LimitsTable, robot: Robot, margin: float | None = None, usual: float = 0.0) -> Limits:
    """Return the robot's limits, of which some are replaced by the limits in a table. margin, usual: see
    `read_limits`."""
    postures = {name: posture for name, posture in (("start", table.first), ("end", table.last))
                if posture is not None and len(posture) == robot.dof}
    chosen = next(share for share in (margin, table.margin, usual) if share is not None)
    own = Limits.from_robot(robot, margin=chosen, **postures)
    outermost = None if own.outermost is None else (own.outermost[0].copy(), own.outermost[1].copy())
    arrays = {name: getattr(own, name).copy() for name in ("lower", "upper", "velocity", "acceleration", "jerk",
                                                           "torque")}
    places: list[tuple[Any, JointTable]] = [(slice(None), table.all)]
    places += [(_place(name, robot), joint) for name, joint in table.joint.items()]
    for place, joint in places:
        for name in ("velocity", "acceleration", "jerk", "torque"):
            if getattr(joint, name) is not None:
                arrays[name][place] = getattr(joint, name)
        if joint.position is not None:
            arrays["lower"][place], arrays["upper"][place] = joint.position
            if outermost is not None:
                outermost[0][place], outermost[1][place] = joint.position
    given = {} if table.bandwidth is None else {"bandwidth": table.bandwidth}
    limits = Limits.from_robot(robot, **arrays, start=table.first, end=table.last,
                               space=table_workspace(table.space, robot), outermost=outermost, **given)
    return replace(limits, margin=own.margin)


def _place(name: str, robot: Robot) -> int:
    if name in robot.joint_names:
        return robot.joint_names.index(name)
    if name.isdigit() and 1 <= int(name) <= robot.dof:
        return int(name) - 1
    raise DynidError(f"there is no joint '{name}'; the joints are {', '.join(robot.joint_names)}", code="unknown-joint")


def table_workspace(table: SpaceTable | None, robot: Robot) -> Workspace:
    """Return the workspace limits of a [space] table; without a table, the robot must only not collide with itself."""
    if table is None:
        return Workspace.from_robot(robot)
    names = (*robot.body_names, *(robot.followers.names if robot.followers is not None else ()))
    spheres = []
    for ball in table.sphere:
        if ball.link not in names:
            raise DynidError(f"there is no link '{ball.link}'; the links are {', '.join(names)}", code="unknown-link")
        spheres.append(sphere(names.index(ball.link), ball.centre, ball.radius, ball.link))
    return Workspace.from_robot(robot, planes=tuple(table.planes(robot)),
                                obstacles=[one.capsule() for one in table.obstacle], spheres=spheres,
                                radius=table.radius, margin=table.margin, self_collision=table.self_collision)


def space_notes(space: Workspace | None) -> tuple[str, ...]:
    """Return sentences on how the links are represented in the check of collisions, and on what is not checked."""
    if space is None:
        return ()
    groups: dict[str, list[str]] = {}
    for link in space.links:
        groups.setdefault(link_words(link), []).append(link.link)
    notes = [f"collisions of {', '.join(links)} are checked with {words}" for words, links in groups.items()]
    if space.is_radius_assumed:
        notes[-1] += (f"; the radius is {100 * LINK_RADIUS_SHARE:g} % of the longest chain of links, give that of this "
                      "robot with --radius, or radius under [space]")
    reasons = list(dict.fromkeys(link.reason for link in space.links if link.is_unread))
    if reasons:
        notes.append(reasons[0] + (f", and so for {len(reasons) - 1} more links" if len(reasons) > 1 else ""))
    if space.skipped:
        more = f" and {len(space.skipped) - 4} more" if len(space.skipped) > 4 else ""
        notes.append("contacts that exist in every posture are not checked: "
                     f"{'; '.join(space.skipped[:4])}{more}")
    return tuple(notes)


def link_words(link: LinkCheck) -> str:
    """Return how a link is represented in the check of collisions, as text."""
    words = {"shapes": "collision shapes of the robot file", "hull": "the convex hulls of meshes",
             "spheres": "the spheres of the limits file",
             "capsule": "" if link.radius is None else f"a capsule of radius {link.radius:.3g} m between the joints"}
    return " and ".join(words[kind] for kind in link.checked) or "nothing"

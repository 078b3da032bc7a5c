"""A kinematic tree of joints and bodies, with gravity and limits, without friction or data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError, required
from dynid.quantities import GRAVITY, check_quantity
from dynid.robot import inertia as ten

if TYPE_CHECKING:
    from dynid.robot.followers import DependentJoints

JointKind = Literal["revolute", "continuous", "prismatic"]
ShapeKind = Literal["box", "cylinder", "capsule", "sphere"]
BASE = -1  # parent of the joints that are attached to the base
FREE_COORDINATES = 6  # in front of the joints of a robot with a free base

Limit = Literal["lower", "upper", "velocity", "acceleration", "effort"]

_LONGEST_NAME = 200  # characters
_LARGEST_INERTIA = 1e9  # kg, kg m, kg m^2
_BY_FILE = required("Robot takes a name, joints and bodies", "call dynid.Robot.load('robot.urdf') to read a robot file")


def numbered_joints(dof: int) -> tuple[str, ...]:
    """Return default names of joints: joint1, joint2 and so on."""
    return tuple(f"joint{j + 1}" for j in range(dof))


JointFields = Mapping[str, tuple[int, str]]  # joint (from 0) and file attribute of parameters, by name


def joint_fields(dof: int, attributes: Mapping[str, str]) -> JointFields:
    """Return joint index and file attribute of each parameter, by name; attributes: file attribute of each symbol."""
    return {f"{symbol}{j + 1}": (j, attribute) for j in range(dof) for symbol, attribute in attributes.items()}


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint with one degree of freedom about or along the z axis of its own frame.

    The pose of its body in the parent body is ``before @ motion(q) @ after`` (4 x 4 each), where motion(q) rotates
    about z by q (rad) or translates along z by q (m). URDF and modified DH place the body's frame at the joint;
    standard DH places it at the far end of the link, which `after` describes.
    """

    name: str
    kind: JointKind
    parent: int  # index of the body it is attached to, BASE for the base
    before: Array = field(default_factory=lambda: np.eye(4))
    after: Array = field(default_factory=lambda: np.eye(4))
    lower: float = -np.inf  # rad or m
    upper: float = np.inf
    velocity: float = np.inf  # rad/s or m/s
    acceleration: float = np.inf  # rad/s^2 or m/s^2
    effort: float = np.inf  # N m or N
    reduction: float | None = None  # motor turns per joint turn, if the file has a transmission

    @property
    def prismatic(self) -> bool:
        return self.kind == "prismatic"


@dataclass(frozen=True, eq=False)
class Shape:
    """A primitive shape of the collision geometry, with its pose (4 x 4) in the body frame.

    size, m: edge lengths (x, y, z) of a box, radius and length along z of a cylinder or a capsule (without the caps of
    the capsule), or radius of a sphere. link: name of the link in the source file.
    """

    kind: ShapeKind
    size: tuple[float, ...]
    pose: Array
    link: str = ""


@dataclass(frozen=True, eq=False)
class MeshShape:
    """A mesh of the collision geometry, which is read only if it is needed (`dynid.robot.visual_shapes.mesh_hull`).

    Attributes:
        name: name of the mesh in the robot file.
        scale: scale factors (3,), or None if the file does not give three numbers.
        pose: pose (4 x 4) in the body frame.
        link: name of the link in the source file.
        folder: folder of the robot file, or None for a robot from text.
    """

    name: str
    scale: tuple[float, ...] | None
    pose: Array
    link: str = ""
    folder: Path | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """A link of the source file, its pose (4 x 4) in its body, and its inertia (10,) in its own frame or None."""

    link: str
    pose: Array
    inertia: Array | None = None


@dataclass(frozen=True, eq=False)
class Body:
    """A body that a joint moves: one link with all links that are fixed to it.

    inertia: ten inertial parameters in the body frame, or None if unknown. virtual: whether the body is massless and
    has no parameters. fixed_inertia: whether the inertia is known and not identified. shapes, meshes: its collision
    geometry.
    """

    name: str
    inertia: Array | None = None
    shapes: tuple[Shape, ...] = ()
    parts: tuple[Part, ...] = ()
    virtual: bool = False
    fixed_inertia: bool = False
    meshes: tuple[MeshShape, ...] = ()


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame on body number `body`, or on the base (BASE), with its pose (4 x 4) in the body frame. Dependent
    bodies (`Robot.followers`) are numbered after the robot's own bodies."""

    name: str
    body: int
    pose: Array


@dataclass(frozen=True)
class Symmetry:
    """Left and right links that are mirror images at the plane y = 0 of the root.

    Attributes:
        pairs: bodies {left: right}, or None to determine the pairs by names and positions.
        std: relative standard deviation of the difference of a pair.
    """

    pairs: Mapping[str, str] | None = None
    std: float = 0.01


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as a kinematic tree: joint i moves body i, and parents come before children.

    Attributes:
        gravity: acceleration of free fall in the base frame (3,), m/s^2.
        terms: terms of the robot file in addition to rigid bodies, in the form that `dynid.model.make_terms` reads.
        values: published values of the parameters of these terms, by name.
        source: file or publication that the description comes from.
        text: unchanged text of the URDF file of the robot, or None. Identified values are written into this text.
        locked: joints of the source that were made fixed, with their positions, rad or m.
        source_joints: all moving joints of the source in its order, if some are locked or dependent. A log may have
            columns of these joints too.
        followers: dependent joints (mimic joints, joints of closed loops) and the bodies they move.
        payload: largest mass that the robot may carry, kg, or None.
        measured: names of the joints whose positions a log contains, if these are not the robot's own joints.
        driven: names of the joints whose torques a log contains, if not the robot's own joints
            (`dynid.robot.followers`).
        root: the link that carries all joints, if the source describes this link. A fixed root has no effect.
        has_free_base: whether the root link moves freely, by the first six joints. See `dynid.robot.free_base`.
        symmetry: left and right links that are mirror images, for robots with a free base, or None.

    >>> dynid.Robot.load("arm3r").joint_names
    ('joint1', 'joint2', 'joint3')
    """

    name: str = field(default_factory=_BY_FILE)
    joints: tuple[Joint, ...] = field(default_factory=_BY_FILE)
    bodies: tuple[Body, ...] = field(default_factory=_BY_FILE)
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    frames: tuple[Frame, ...] = ()
    base: str = "base"
    terms: tuple[Mapping[str, Any], ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    warnings: tuple[str, ...] = ()
    text: str | bytes | None = field(default=None, repr=False)
    locked: Mapping[str, float] = field(default_factory=dict)
    source_joints: tuple[str, ...] = ()
    followers: DependentJoints | None = field(default=None, repr=False)
    payload: float | None = None
    measured: tuple[str, ...] = ()
    driven: tuple[str, ...] = ()
    root: Body | None = field(default=None, repr=False)
    has_free_base: bool = False
    symmetry: Symmetry | None = None

    def __post_init__(self) -> None:
        if not self.joints:
            raise RobotError(f"robot '{self.name}' has no moving joint, so there is nothing to identify",
                             code="no-moving-joint")
        if len(self.joints) != len(self.bodies):
            raise RobotError(f"robot '{self.name}' has {len(self.joints)} joints but {len(self.bodies)} bodies",
                             code="joints-without-bodies")
        for what, names in (("joint", self.joint_names), ("body", self.body_names)):
            for name in names:
                if names.count(name) > 1:
                    raise RobotError(f"robot '{self.name}' has two {what} entries with the name '{name}'",
                                     code="duplicate-name")
        for i, joint in enumerate(self.joints):
            if not BASE <= joint.parent < i:
                raise RobotError(f"joint '{joint.name}' of robot '{self.name}' is listed before its parent; list "
                                 "parents first")
            if joint.lower > joint.upper:
                raise RobotError(f"joint '{joint.name}' of robot '{self.name}' has lower limit {joint.lower} "
                                 f"above its upper limit {joint.upper}")
        if np.shape(self.gravity) != (3,) or not np.all(np.isfinite(self.gravity)):
            raise RobotError(f"gravity of robot '{self.name}' must be three finite numbers, got {self.gravity}",
                             code="bad-gravity")
        check_quantity(GRAVITY, float(np.abs(self.gravity).max()), f"gravity of robot '{self.name}'", RobotError)

    @staticmethod
    def load(source: str | Path, *, fixed_base: bool | None = None) -> Robot:
        """Return a robot from a built-in name, a URDF, MJCF or xacro file, or a .toml file.

        fixed_base: True fixes the root link to the ground, False lets it move freely. By default the file decides.
        """
        from dynid.robot.robot_files import load
        return load(source, fixed_base)

    @staticmethod
    def from_urdf(source: str | Path, *, gravity: Sequence[float] | None = None, fixed_base: bool = False) -> Robot:
        """Return a robot from a URDF file or text; fixed_base: treat a floating joint as fixed. See `robot.urdf`."""
        from dynid.robot.urdf import read_urdf
        return read_urdf(source, gravity=gravity, fixed_base=fixed_base)

    @staticmethod
    def from_mjcf(source: str | Path, *, gravity: Sequence[float] | None = None, fixed_base: bool = False) -> Robot:
        """Return a robot from an MJCF file or text; fixed_base: treat a free joint as fixed. See `robot.mjcf`."""
        from dynid.robot.mjcf import read_mjcf
        return read_mjcf(source, gravity=gravity, fixed_base=fixed_base)

    @staticmethod
    def from_dh(rows: Sequence[Any], **options: Any) -> Robot:
        """Return a robot from a standard DH table; see `dynid.robot.dh.from_dh`."""
        from dynid.robot.dh import from_dh
        return from_dh(rows, **options)

    @staticmethod
    def from_mdh(rows: Sequence[Any], **options: Any) -> Robot:
        """Return a robot from a modified DH table (Khalil-Kleinfinger); see `dynid.robot.dh.from_mdh`."""
        from dynid.robot.dh import from_mdh
        return from_mdh(rows, **options)

    @staticmethod
    def builtin(name: str) -> Robot:
        """Return one of the robots that come with dynid; `dynid robots` lists them."""
        from dynid.robot.robot_files import builtin
        return builtin(name)

    @property
    def dof(self) -> int:
        return len(self.joints)

    @property
    def free_coordinates(self) -> int:
        """Number of coordinates of a free base among the first joints: 0 or 6."""
        return FREE_COORDINATES if self.has_free_base else 0

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        return tuple(body.name for body in self.bodies)

    @cached_property
    def parents(self) -> Array:
        """Index (dof,) of the parent body of each joint, BASE for the base."""
        return np.array([joint.parent for joint in self.joints])

    @cached_property
    def supports(self) -> Array:
        """Mask (dof, dof) whose entry [j, i] is True if joint j carries body i."""
        carries = np.eye(self.dof, dtype=bool)
        for i, joint in enumerate(self.joints):
            if joint.parent != BASE:
                carries[:, i] |= carries[:, joint.parent]
        return carries

    @property
    def tree(self) -> Robot:
        """The robot with all joints independent; the robot itself if it has no dependent joints."""
        return self if self.followers is None else self.followers.tree

    @property
    def serial(self) -> bool:
        """Whether the robot is one chain without branches."""
        return all(joint.parent == i - 1 for i, joint in enumerate(self.joints))

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.dof} joints>"

    def _repr_html_(self) -> str:
        from dynid.robot.card import robot_card
        return robot_card(self)

    def limit(self, which: Limit) -> Array:
        """Return a limit of every joint (dof,): lower, upper, velocity, acceleration or effort, infinite if unknown."""
        return np.array([getattr(joint, which) for joint in self.joints], dtype=float)

    @property
    def bodies_without_inertia(self) -> tuple[str, ...]:
        return tuple(body.name for body in self.bodies if body.inertia is None)

    @cached_property
    def inertias(self) -> Array:
        """Ten inertial parameters of every body (dof, 10), as the source gives them."""
        missing = self.bodies_without_inertia
        if missing:
            raise RobotError(f"robot '{self.name}' gives no inertia for link '{missing[0]}' (missing for "
                             f"{len(missing)} of {self.dof} links); the robot can be identified but not simulated",
                             code="no-inertia")
        return np.array([body.inertia for body in self.bodies])

    def joint_index(self, name: str | int) -> int:
        """Return the index of a joint, by name or by number counted from 1 as in parameter names."""
        if isinstance(name, int):
            if 1 <= name <= self.dof:
                return name - 1
            raise RobotError(f"robot '{self.name}' has joints 1 to {self.dof}, but not joint {name}", code="no-joint")
        if name in self.joint_names:
            return self.joint_names.index(name)
        raise RobotError(f"robot '{self.name}' has no joint '{name}'; it has {', '.join(self.joint_names)}",
                         code="unknown-joint")

    def frame(self, name: str) -> Frame:
        """Return a frame by name: any link of the source, a body, or the base."""
        for frame in self.frames:
            if frame.name == name:
                return frame
        bodies = (*self.body_names, *(self.followers.names if self.followers is not None else ()))
        if name in bodies:
            return Frame(name, bodies.index(name), np.eye(4))
        if name == self.base:
            return Frame(name, BASE, np.eye(4))
        from dynid.robot.free_base import frame_names
        known = ", ".join(frame_names(self, name))
        raise RobotError(f"robot '{self.name}' has no frame '{name}'; it has {known}", code="unknown-frame")

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """Return the robot with another mounting: gravity (3,) in its base frame, m/s^2."""
        down = np.array(gravity, dtype=float)
        following = self.followers and replace(self.followers, tree=replace(self.followers.tree, gravity=down))
        return replace(self, gravity=down, followers=following)

    def lock(self, positions: Mapping[str, float]) -> Robot:
        """Return the robot with the named joints fixed at positions, rad or m; their bodies merge into the parents."""
        from dynid.robot.locked_joints import locked
        return locked(self, positions)

    def only(self, joints: Sequence[str], positions: Mapping[str, float] | None = None) -> Robot:
        """Return the robot with only the named joints; the others are locked at `positions`, by default at zero."""
        from dynid.robot.locked_joints import only
        return only(self, joints, positions)

    def measuring(self, measured: Sequence[str] = (), driven: Sequence[str] = ()) -> Robot:
        """Return the robot with encoders on the joints `measured` and motors on the joints `driven`, by name.

        Without names, encoders and motors are on the independent joints.
        """
        from dynid.robot.followers import with_roles
        return with_roles(self, measured, driven)

    def with_fixed_inertias(self, links: Sequence[str]) -> Robot:
        """Return the robot in which the inertias of the named bodies are known and not identified."""
        from dynid.robot.followers import with_fixed_inertias
        return with_fixed_inertias(self, links)

    def with_free_base(self) -> Robot:
        """Return the robot with a root link that moves freely; see `dynid.robot.free_base`."""
        from dynid.robot.free_base import freed
        return freed(self)

    def with_fixed_base(self) -> Robot:
        """Return the robot with its root link fixed to the ground."""
        from dynid.robot.free_base import fixed
        return fixed(self)

    def without_inertias(self) -> Robot:
        """Return the robot without the inertial parameters of its file."""
        def bare(body: Body) -> Body:
            return body if body.virtual else replace(
                body, inertia=None, parts=tuple(replace(part, inertia=None) for part in body.parts))

        followers = self.followers
        if followers is not None:
            tree = followers.tree
            followers = replace(followers, tree=replace(tree, bodies=tuple(map(bare, tree.bodies))))
        return replace(self, bodies=tuple(map(bare, self.bodies)), followers=followers)

    def with_inertias(self, inertias: Array) -> Robot:
        """Return the robot with other inertial parameters of its bodies (dof, 10)."""
        inertias = np.asarray(inertias, dtype=float).reshape(-1, 10)
        if len(inertias) != self.dof:
            raise RobotError(f"robot '{self.name}' has {self.dof} bodies, got inertias for {len(inertias)}",
                             code="bad-inertias")
        bodies = tuple(replace(body, inertia=row, parts=()) for body, row in zip(self.bodies, inertias, strict=True))
        return replace(self, bodies=bodies)


def merged_inertia(parts: Sequence[Part]) -> Array | None:
    """Return the ten inertial parameters of a body, in its frame, from those of its links; None if all are unknown."""
    known = [ten.change_frame(part.pose) @ part.inertia for part in parts if part.inertia is not None]
    return np.sum(known, axis=0) if known else None


def checked_sizes(robot: Robot) -> Robot:
    """Return the robot unchanged; raise an error for names that are too long and for inertias that could overflow."""
    for name in (robot.name, *robot.joint_names, *robot.body_names):
        if len(name) > _LONGEST_NAME:
            raise RobotError(f"the name '{name[:40]}...' of a robot, joint or link is {len(name)} characters long",
                             f"use a name of at most {_LONGEST_NAME} characters", code="name-too-long")
    for body in robot.bodies:
        if body.inertia is not None and not np.all(np.abs(body.inertia) <= _LARGEST_INERTIA):
            raise RobotError(f"link '{body.name}' of robot '{robot.name}' has a mass, first moment or inertia of "
                             f"{np.max(np.abs(body.inertia)):.3g}", "give finite numbers in kg, kg m and kg m^2")
    return robot

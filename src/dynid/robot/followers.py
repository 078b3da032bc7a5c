"""Dependent joints: mimic joints, q = multiplier q_other + offset, and joints of closed loops.

A robot's own joints are the independent joints, for which its equations are written. Usually each own joint has a motor
and an encoder. Encoders may be on other joints, such as the rocker of a four-bar linkage, or there may be more encoders
than degrees of freedom. Logs then contain positions of the joints `Robot.measured`, and the solution of the loops
converts these positions to the robot's own joints. Motors may be on other joints too. Logs then contain torques of the
joints `Robot.driven`, which are multiplied by the transposed derivatives of these joints by the own joints. An own
joint without a motor has zero torque.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools
from dynid.errors import RobotError
from dynid.robot.locked_joints import locked, pose_at, renumbered
from dynid.robot.robot import BASE, Body, Joint, Robot

if TYPE_CHECKING:
    from dynid.robot.loops import Loops


class Mimic(NamedTuple):
    """Joint that a mimic joint depends on: q = multiplier q_joint + offset (rad or m)."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class DependentJoints:
    """Dependent joints of a robot, which are mimic joints or joints of closed loops, and the bodies that they move.

    The joint positions of the tree are q_tree = coupling z + offset. The coordinates z are the positions of the robot's
    own joints, followed by those of the joints that the loops determine. Without loops, the torques of the robot are
    coupling' times those of the tree.

    Attributes:
        tree: the robot with every joint independent.
        free: indices of the robot's own joints in the tree, in order.
        coupling: matrix (tree.dof, dof + number of joints that loops determine).
        offset: positions (tree.dof,) at z = 0, rad or m.
        bodies: indices of the dependent bodies in the tree.
        mimics: mimic joints by name.
        loops: closures of the loops, or None.
    """

    tree: Robot
    free: tuple[int, ...]
    coupling: Array
    offset: Array
    bodies: tuple[int, ...]
    mimics: Mapping[str, Mimic]
    loops: Loops | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dependent bodies."""
        return tuple(self.tree.body_names[i] for i in self.bodies)

    @cached_property
    def following(self) -> tuple[str, ...]:
        """Names of the joints that the loops determine, in the order of their columns of the coupling."""
        taken = (*self.free, *map(self.tree.joint_index, self.mimics))
        return tuple(next(self.tree.joint_names[i] for i in np.flatnonzero(column) if i not in taken)
                     for column in self.coupling[:, len(self.free):].T)

    @cached_property
    def moves(self) -> Bools:
        """Mask (tree.dof, dof): entry [j, a] is True if joint j of the tree can move with joint a of the robot."""
        from dynid.robot.loops import moves_with
        return moves_with(self)

    @cached_property
    def shows(self) -> Bools:
        """Mask (dof, tree.dof): entry [a, i] is True if body i of the tree affects the torque of joint a."""
        return (self.moves.T.astype(int) @ self.tree.supports.astype(int)) > 0

    @property
    def owners(self) -> tuple[int, ...]:
        """For each dependent body, the index of the robot's first joint that moves this body."""
        return tuple(int(np.argmax(self.shows[:, i])) for i in self.bodies)

    @cached_property
    def carrying(self) -> bool:
        """Whether a dependent joint carries one of the robot's own joints."""
        return any(self.tree.supports[j, i] for i in self.free for j in range(self.tree.dof) if j not in self.free)

    def place(self, body: int) -> int:
        """Return the index in the tree of body number `body` of the robot, which counts dependent bodies last."""
        return BASE if body == BASE else (*self.free, *self.bodies)[body]


def followed(tree: Robot, mimics: Mapping[str, Mimic]) -> Robot:
    """Return the robot whose joints are the independent joints of a tree. A joint that mimics a locked joint is locked
    too."""
    direct = {name: resolved(name, mimics, tree) for name in mimics if name in tree.joint_names}
    still = {name: mimic.multiplier * tree.locked.get(mimic.joint, 0.0) + mimic.offset
             for name, mimic in direct.items() if mimic.joint not in tree.joint_names or mimic.multiplier == 0.0}
    if still:
        return followed(locked(tree, still), {name: mimic for name, mimic in direct.items() if name not in still})
    return coupled(tree, direct, ()) if direct else tree


def coupled(tree: Robot, mimics: Mapping[str, Mimic], following: tuple[str, ...], loops: Loops | None = None) -> Robot:
    """Return the robot whose joints are all joints of a tree except mimic joints and dependent joints of loops."""
    free = [i for i, name in enumerate(tree.joint_names) if name not in mimics and name not in following]
    if not free:
        raise RobotError(f"every joint of robot '{tree.name}' is a dependent joint; at least one must be independent")
    dependent = [tree.joint_index(name) for name in following]
    coupling, offset = np.zeros((tree.dof, len(free) + len(dependent))), np.zeros(tree.dof)
    coupling[[*free, *dependent], np.arange(len(free) + len(dependent))] = 1.0
    for name, mimic in mimics.items():
        i = tree.joint_index(name)
        coupling[i] = mimic.multiplier * coupling[tree.joint_index(mimic.joint)]
        offset[i] = mimic.offset
    bodies = tuple(i for i in range(tree.dof) if i not in free)
    followers = DependentJoints(tree, tuple(free), coupling, offset, bodies, mimics, loops)
    bodies = tuple(sorted(bodies, key=lambda i: (int(np.argmax(followers.shows[:, i])), i)))
    number = {BASE: BASE, **{old: new for new, old in enumerate((*free, *bodies))}}
    return replace(
        tree, joints=tuple(_own_joint(tree, i, free, loops) for i in free),
        bodies=tuple(tree.bodies[i] for i in free),
        frames=tuple(replace(frame, body=number[frame.body]) for frame in tree.frames),
        values=renumbered(tree.values, {str(old + 1): str(new + 1) for new, old in enumerate(free)}),
        source_joints=tree.source_joints or tree.joint_names, followers=replace(followers, bodies=bodies))


def _own_joint(tree: Robot, i: int, free: Sequence[int], loops: Loops | None) -> Joint:
    """Return joint i of the tree as a joint of the robot. Its parent is the last of the robot's bodies that carries the
    joint; dependent joints between parent and joint are in their initial posture."""
    joint, before = tree.joints[i], tree.joints[i].before
    parent = joint.parent
    while parent not in (BASE, *free):
        between = tree.joints[parent]
        before = pose_at(between, 0.0 if loops is None else float(loops.posture[parent])) @ before
        parent = between.parent
    return replace(joint, parent=BASE if parent == BASE else free.index(parent), before=before)


def lock_followed(robot: Robot, followers: DependentJoints, positions: Mapping[str, float]) -> Robot:
    """Return a robot that has dependent joints with some joints locked at positions, rad or m; mimic joints can be
    locked too."""
    tree = replace(followers.tree, warnings=robot.warnings, gravity=robot.gravity, text=robot.text, terms=robot.terms,
                   locked=robot.locked)
    # Logs contain the same joints as before, except those that are locked now.
    measured, driven = (tuple(name for name in names if name not in positions)
                        for names in (robot.measured, robot.driven))
    if followers.loops is None:
        return followed(locked(tree, positions), followers.mimics).measuring(measured, driven)
    following = followers.following
    for name in positions:
        tree.joint_index(name)
        if name in following:
            raise RobotError(f"joint '{name}' of robot '{robot.name}' is a dependent joint of the loops "
                             f"{followers.loops.names}, so it cannot be locked; lock an independent joint",
                             code="joint-is-dependent")
    # In a loop, a locked joint remains a joint, at a constant position.
    still = {name: Mimic(robot.joint_names[0], 0.0, float(position)) for name, position in positions.items()}
    posture = followers.loops.posture.copy()
    posture[[tree.joint_index(name) for name in positions]] = list(positions.values())
    tree = replace(tree, locked={**tree.locked, **positions})
    reduced = coupled(tree, {**followers.mimics, **still}, following, replace(followers.loops, posture=posture))
    return reduced.measuring(measured, driven)


def whole_tree(robot: Robot, inertias: ArrayLike) -> tuple[Robot, Array]:
    """Return the robot with every joint independent, and the ten inertial parameters of all its bodies (bodies, 10).

    inertias: ten parameters of each independent body, optionally followed by those of each dependent body. By default,
    dependent bodies have the inertias of the robot file.
    """
    numbers, following = np.asarray(inertias, dtype=float), robot.followers
    if following is None:
        return robot, numbers
    numbers = numbers.reshape(-1, 10)
    if len(numbers) not in (robot.dof, following.tree.dof):
        raise RobotError(f"robot '{robot.name}' has {robot.dof} bodies and {len(following.bodies)} dependent bodies, "
                         f"got {len(numbers)} inertias")
    order = [*following.free, *following.bodies]
    every = np.empty((following.tree.dof, 10))
    every[order[:len(numbers)]] = numbers
    for i in order[len(numbers):]:
        own = following.tree.bodies[i].inertia
        every[i] = 0.0 if own is None else own
    return following.tree, every


def resolved(name: str, mimics: Mapping[str, Mimic], tree: Robot) -> Mimic:
    """Return the independent joint that a mimic joint depends on, through other mimic joints if necessary."""
    mimic, seen = mimics[name], {name}
    while mimic.joint in mimics and mimic.joint in tree.joint_names:
        if mimic.joint in seen:
            raise RobotError(f"joint '{name}' mimics '{mimics[name].joint}', which mimics '{name}' in turn; one of "
                             "them must be independent")
        seen.add(mimic.joint)
        then = mimics[mimic.joint]
        mimic = Mimic(then.joint, mimic.multiplier * then.multiplier, mimic.multiplier * then.offset + mimic.offset)
    return mimic


def with_roles(robot: Robot, measured: Sequence[str], driven: Sequence[str]) -> Robot:
    """Return the robot with encoders on the joints `measured` and motors on the joints `driven`, by name; by default
    both are on its independent joints."""
    tree = robot.tree
    for what, names in (("measured", measured), ("driven", driven)):
        for name in names:
            if name not in tree.joint_names:
                raise RobotError(f"robot '{robot.name}' has no joint '{name}', which is listed as {what}; its joints "
                                 f"are {', '.join(tree.joint_names)}", code="no-joint")
            if list(names).count(name) > 1:
                raise RobotError(f"joint '{name}' of robot '{robot.name}' is listed twice as {what}")
    if measured and not _determines_all(robot, measured):
        raise RobotError(f"the measured joints {', '.join(measured)} of robot '{robot.name}' do not determine the "
                         f"positions of its independent joints {', '.join(robot.joint_names)}",
                         "measure as many joints as there are independent joints, and choose joints that move with the "
                         "independent ones", code="joints-undetermined")
    subsets = [() if set(names) == set(robot.joint_names) else tuple(names) for names in (measured, driven)]
    return replace(robot, measured=subsets[0], driven=subsets[1])


def _determines_all(robot: Robot, measured: Sequence[str]) -> bool:
    """Return whether the measured joints can determine the positions of all independent joints.

    In closed loops this requires a bipartite matching of independent joints with measured joints that move with them.
    """
    followers = robot.followers
    if followers is None:
        return set(measured) == set(robot.joint_names)
    if followers.loops is None:
        rows = followers.coupling[[followers.tree.joint_index(name) for name in measured]]
        return int(np.linalg.matrix_rank(rows)) == robot.dof
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import structural_rank

    moves = followers.moves[[followers.tree.joint_index(name) for name in measured]]
    return int(structural_rank(csr_matrix(moves))) == robot.dof


def as_logged(robot: Robot) -> Robot:
    """Return the joints that logs of a robot may contain, measured or driven, as a robot of unconnected bodies."""
    names = {*robot.joint_names, *robot.measured, *robot.driven}
    joints = tuple(Joint(joint.name, joint.kind, BASE, lower=joint.lower, upper=joint.upper, reduction=joint.reduction)
                   for joint in robot.tree.joints if joint.name in names)
    return Robot(robot.name, joints, tuple(Body(joint.name) for joint in joints),
                 source_joints=robot.source_joints or robot.joint_names,
                 measured=robot.measured or robot.joint_names, driven=robot.driven or robot.joint_names)


def links_with_fixed_inertia(robot: Robot) -> tuple[str, ...]:
    """Return the names of all bodies, dependent bodies included, whose inertia is known and not identified."""
    return tuple(body.name for body in robot.tree.bodies if body.fixed_inertia)


def with_fixed_inertias(robot: Robot, links: Sequence[str]) -> Robot:
    """Return the robot in which the inertias of the named bodies are fixed, in addition to inertias that its file
    fixes."""
    followers, bodies = robot.followers, {body.name: body for body in robot.tree.bodies}
    for name in links:
        if name not in bodies:
            raise RobotError(f"robot '{robot.name}' has no body '{name}' whose inertia could be fixed; its bodies are "
                             f"{', '.join(bodies)}", code="unknown-body")
        if bodies[name].inertia is None:
            raise RobotError(f"the inertia of body '{name}' of robot '{robot.name}' cannot be fixed: the robot file "
                             "gives no inertia for it")

    def marked(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
        return tuple(replace(body, fixed_inertia=body.fixed_inertia or body.name in links) for body in bodies)

    if followers is not None:
        followers = replace(followers, tree=replace(followers.tree, bodies=marked(followers.tree.bodies)))
    return replace(robot, bodies=marked(robot.bodies), followers=followers)

"""Mimic joints: joints that follow another one, q = multiplier q_other + offset, and are no freedom of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot.locked import locked, renumbered
from dynid.robot.robot import BASE, Robot


class Mimic(NamedTuple):
    """Which joint a joint follows, and how: q = multiplier q_joint + offset (rad or m)."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Followers:
    """The bodies that mimic joints move.

    tree: the robot with every joint, all free. coupling (tree.dof, dof) and offset (tree.dof,): q_tree = coupling q +
    offset, so the torques of the robot are coupling' times those of the tree. bodies: which of the tree's follow, in
    the order of whom they follow. mimics: whom each of their joints follows, by name.
    """

    tree: Robot
    coupling: Array
    offset: Array
    bodies: tuple[int, ...]
    mimics: Mapping[str, Mimic]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the bodies that follow."""
        return tuple(self.tree.body_names[i] for i in self.bodies)

    @property
    def owners(self) -> tuple[int, ...]:
        """For each body that follows, the robot's joint that it follows."""
        return tuple(int(np.argmax(np.abs(self.coupling[i]))) for i in self.bodies)


def followed(tree: Robot, mimics: Mapping[str, Mimic]) -> Robot:
    """The robot whose joints are those of a tree that follow no other.

    A joint that follows a locked one is locked where that puts it. One that carries a joint of its own freedom is
    locked at its offset, and a warning says so.
    """
    direct = {name: _resolved(name, mimics, tree) for name in mimics if name in tree.joint_names}
    still = {name: mimic.multiplier * tree.locked.get(mimic.joint, 0.0) + mimic.offset
             for name, mimic in direct.items() if mimic.joint not in tree.joint_names or mimic.multiplier == 0.0}
    carriers = [name for name in direct if name not in still and any(
        tree.supports[tree.joint_index(name), i] for i, one in enumerate(tree.joint_names) if one not in direct)]
    still |= {name: direct[name].offset for name in carriers}
    if still:
        said = tuple(f"joint '{name}' mimics '{mimics[name].joint}' and carries joints of their own, so it is taken as "
                     f"fixed at {still[name]:g}" for name in carriers)
        whole = locked(tree, still)
        return followed(replace(whole, warnings=(*whole.warnings, *said)),
                        {name: mimic for name, mimic in direct.items() if name not in still})
    if not direct:
        return tree
    free = [i for i, name in enumerate(tree.joint_names) if name not in direct]
    number = {BASE: BASE, **{old: new for new, old in enumerate(free)}}
    coupling, offset = np.zeros((tree.dof, len(free))), np.zeros(tree.dof)
    coupling[free, np.arange(len(free))] = 1.0
    for name, mimic in direct.items():
        i = tree.joint_index(name)
        coupling[i, number[tree.joint_index(mimic.joint)]], offset[i] = mimic.multiplier, mimic.offset
    bodies = tuple(sorted(map(tree.joint_index, direct), key=lambda i: (int(np.argmax(np.abs(coupling[i]))), i)))
    return replace(
        tree, joints=tuple(replace(tree.joints[i], parent=number[tree.joints[i].parent]) for i in free),
        bodies=tuple(tree.bodies[i] for i in free),
        frames=tuple(replace(one, body=number[one.body]) for one in tree.frames if one.body in number),
        values=renumbered(tree.values, {str(old + 1): str(new + 1) for new, old in enumerate(free)}),
        source_joints=tree.source_joints or tree.joint_names,
        followers=Followers(tree, coupling, offset, bodies, direct))


def lock_followed(robot: Robot, followers: Followers, positions: Mapping[str, float]) -> Robot:
    """A robot with mimic joints with some joints locked, mimic ones among them."""
    tree = replace(followers.tree, warnings=robot.warnings, gravity=robot.gravity, text=robot.text, terms=robot.terms,
                   locked=robot.locked)
    return followed(locked(tree, positions), followers.mimics)


def whole_tree(robot: Robot, inertias: ArrayLike) -> tuple[Robot, Array]:
    """The robot with every joint free, mimic ones too, and the ten numbers of all its bodies (bodies, 10).

    inertias: of the robot's own bodies, or of these and then of those that follow; where the latter are left out, they
    are as the source has them.
    """
    numbers, following = np.asarray(inertias, dtype=float), robot.followers
    if following is None:
        return robot, numbers
    numbers = numbers.reshape(-1, 10)
    if len(numbers) not in (robot.dof, following.tree.dof):
        raise RobotError(f"robot '{robot.name}' has {robot.dof} bodies and {len(following.bodies)} on mimic joints, "
                         f"got inertias of {len(numbers)}")
    free = [i for i in range(following.tree.dof) if i not in following.bodies]
    order = [*free, *following.bodies]
    whole = np.empty((following.tree.dof, 10))
    whole[order[:len(numbers)]] = numbers
    for i in order[len(numbers):]:
        own = following.tree.bodies[i].inertia
        whole[i] = 0.0 if own is None else own
    return following.tree, whole


def _resolved(name: str, mimics: Mapping[str, Mimic], tree: Robot) -> Mimic:
    """Whom a joint follows in the end, over others that follow themselves."""
    found, seen = mimics[name], {name}
    while found.joint in mimics and found.joint in tree.joint_names:
        if found.joint in seen:
            raise RobotError(f"joint '{name}' mimics '{mimics[name].joint}', which follows it in turn; one of them "
                             "must move by itself")
        seen.add(found.joint)
        then = mimics[found.joint]
        found = Mimic(then.joint, found.multiplier * then.multiplier, found.multiplier * then.offset + found.offset)
    return found

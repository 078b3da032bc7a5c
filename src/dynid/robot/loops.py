"""Loop closures, which connect two bodies of a kinematic tree, so that some joints depend on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import RobotError
from dynid.robot.followers import DependentJoints, Mimic, coupled, resolved
from dynid.robot.robot import BASE, Frame, Robot

ClosureKind = Literal["point", "axis", "rigid", "rod"]
EQUATIONS: Mapping[str, int] = {"point": 3, "axis": 5, "rigid": 6, "rod": 1}


@dataclass(frozen=True, eq=False)
class Closure:
    """A constraint between two frames on different bodies of a kinematic tree.

    Attributes:
        kind: "point" (a ball joint: the origins coincide), "axis" (a hinge: the z axes coincide too), "rigid" (no
            relative motion), "rod" (the origins have the distance `length`, m).
        first, second: attachment frames on bodies of the tree, or on its base.
        length: length of a rod, m.
    """

    name: str
    kind: ClosureKind
    first: Frame
    second: Frame
    length: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in tuple(EQUATIONS):  # a file may contain any type, also a list
            raise RobotError(f"closure '{self.name}' has kind {self.kind!r}; it must be one of {', '.join(EQUATIONS)}")
        if self.kind == "rod" and not (np.isfinite(self.length) and self.length > 0.0):
            raise RobotError(f"closure '{self.name}' is a rod of length {self.length}; give a length above zero, in m")
        if self.first.body == self.second.body:
            raise RobotError(f"closure '{self.name}' connects two points of the same body, '{self.first.name}' and "
                             f"'{self.second.name}'; give points on two different bodies")

    @property
    def equations(self) -> int:
        """Number of constraint equations of the closure."""
        return EQUATIONS[self.kind]

    def joints(self, tree: Robot) -> Bools:
        """Return the mask (tree.dof,) of the joints in the loop: joints on the path to only one end of the closure."""
        first, second = (np.zeros(tree.dof, dtype=bool) if end.body == BASE else tree.supports[:, end.body]
                         for end in (self.first, self.second))
        return np.asarray(first != second)


@dataclass(frozen=True, eq=False)
class Loops:
    """Closures of a tree, and a posture (tree.dof,) in which the loops are nearly closed. The posture selects the
    assembly branch."""

    closures: tuple[Closure, ...]
    posture: Array

    @property
    def names(self) -> str:
        """Names of the closures, as text for messages."""
        return ", ".join(f"'{closure.name}'" for closure in self.closures)


def closed(tree: Robot, closures: Sequence[Closure], following: Sequence[str],
           posture: Mapping[str, float] | None = None, mimics: Mapping[str, Mimic] | None = None) -> Robot:
    """Return the robot whose joints are the independent joints of a tree with closed loops.

    Args:
        tree: kinematic tree with every joint independent.
        closures: loop closures of the tree.
        following: names of the joints that depend on others through the closures.
        posture: positions of joints (rad or m) near which the loops are closed; zero for joints that are not named.
        mimics: mimic joints, which depend linearly on one other joint.
    """
    if tree.has_free_base:
        raise RobotError(f"robot '{tree.name}' has closed loops, which are not supported together with a free base",
                         "add --fixed-base, or fixed_base=True in Python", code="free-base-loops")
    mimics = {name: resolved(name, mimics, tree) for name in mimics} if mimics else {}
    for name in (*following, *(posture or {})):
        tree.joint_index(name)
    if not closures or not following:
        raise RobotError(f"a closed chain needs closures and dependent joints; robot '{tree.name}' has "
                         f"{len(closures)} closures and {len(following)} dependent joints",
                         code="loop-without-closures")
    for name in following:
        if name in mimics:
            raise RobotError(f"joint '{name}' of robot '{tree.name}' both mimics '{mimics[name].joint}' and depends "
                             "on closures; remove one of the two")
    start = np.array([float((posture or {}).get(name, 0.0)) for name in tree.joint_names])
    return coupled(tree, mimics, tuple(following), Loops(tuple(closures), start))


def moves_with(followers: DependentJoints) -> Bools:
    """Return the mask (tree.dof, dof) whose entry [j, a] is True if joint j of the tree can move with joint a."""
    own = followers.coupling != 0.0
    dof = len(followers.free)
    if followers.loops is None:
        return own
    # Joints of one loop move with each other. Each set contains the coordinates of one closure.
    touched = [np.any(own[closure.joints(followers.tree)], axis=0) for closure in followers.loops.closures]
    moves = own[:, :dof].copy()
    for group in _merged(touched):
        for coordinate in np.flatnonzero(group[dof:]) + dof:
            moves[np.ix_(own[:, coordinate], group[:dof])] = True
    return moves


def _merged(sets: Sequence[Bools]) -> list[Bools]:
    """Return sets of coordinates, given as masks, merged until no two sets share a coordinate."""
    merged: list[Bools] = []
    for new in sets:
        disjoint = [group for group in merged if not np.any(group & new)]
        joined = np.any([new, *(group for group in merged if np.any(group & new))], axis=0)
        merged = [*disjoint, joined]
    return merged


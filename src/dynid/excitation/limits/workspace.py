"""Workspace limits: collision avoidance and half-spaces for the bodies of a robot, which are modelled as capsules.

A capsule contains all points within `radius` of a segment; a sphere is a capsule whose segment is a point. Every body
of the robot is represented, each by its own data: by capsules around its collision shapes and around the convex hulls
of its meshes, and by capsules between its joints where shapes are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.compiled import OPTIONS
from dynid.dynamics.following import closes
from dynid.dynamics.kinematics import body_places
from dynid.dynamics.motion_case import MotionCase
from dynid.errors import DynidError, RobotError
from dynid.kernel_store import njit
from dynid.robot import BASE, Robot, Shape
from dynid.robot.pose import inverse
from dynid.robot.visual_shapes import mesh_hull

_PROBED_POSTURES = 200  # random postures for the detection of permanent contacts
_CONSTANT_DISTANCE = 1e-3  # m: distances that change less over all postures do not depend on the motion
LINK_RADIUS_SHARE = 0.05  # radius of a link without shapes, relative to the length of the longest chain of links
_SAME_POINT = 1e-6  # m: distance below which two points of a link are one
_LEVEL = 0.99  # cosine of the largest slope (8 degrees) of a half-space that is a floor
NOT_CLOSED = 0.2  # m: assumed overlap of bodies in postures in which the closed loops of a robot are not closed
_ARC_LENGTH = 1.001  # length of an arc between two samples relative to its chord


@dataclass(frozen=True)
class LinkCheck:
    """How a link is represented in the check of collisions.

    Attributes:
        link: name of the body, which includes the links that are fixed to it.
        checked: representations in use, of "shapes" (collision shapes of the robot file), "hull" (convex hulls of its
            mesh files), "spheres" (of a limits file) and "capsule" (between the joints).
        radius: radius of the capsules between the joints, m, or None.
        reason: why there are capsules between the joints; may be empty.
        is_unread: whether a mesh of the link cannot be read.
    """

    link: str
    checked: tuple[str, ...]
    radius: float | None = None
    reason: str = ""
    is_unread: bool = False


@dataclass(frozen=True, eq=False)
class Workspace:
    """Capsules of a robot, pairs that must not collide, and half-spaces.

    Attributes:
        robot, capsules, planes: the robot, the capsules of its links and of obstacles, and half-spaces.
        pairs: indices of capsules that must not touch (P, 2).
        sides: indices of half-spaces, of capsules, and of ends of the capsules that must be inside (S, 3).
        margin: distance kept free, m.
        links: representation of every body.
        self_collision: whether the robot's own links must not collide.
        obstacles: capsules of obstacles, the last of `capsules`.
        is_radius_assumed: whether links without shapes have the default radius.
        skipped: contacts that no motion can change, which are ignored, as text.
    """

    robot: Robot
    capsules: tuple[Capsule, ...]
    planes: tuple[HalfSpace, ...]
    pairs: Ints
    sides: Ints
    margin: float = 0.0
    links: tuple[LinkCheck, ...] = ()
    self_collision: bool = True
    obstacles: tuple[Capsule, ...] = ()
    is_radius_assumed: bool = False
    skipped: tuple[str, ...] = ()

    @staticmethod
    def from_robot(robot: Robot, *, planes: Iterable[HalfSpace] = (), obstacles: Sequence[Capsule] = (),
                   spheres: Sequence[Capsule] = (), radius: float | None = None, self_collision: bool = True,
                   margin: float = 0.0) -> Workspace:
        """Return the workspace limits of a robot, in which every link is represented (see `represent_links`).

        Contacts between neighbours are ignored. Pairs of links that overlap in all of 200 random postures are ignored
        and listed in `skipped`, and so are violations of half-spaces and obstacles that no motion changes, such as
        those of a link at the mounting of the robot.

        Args:
            robot: the robot.
            planes: half-spaces in which all links must stay.
            obstacles: capsules fixed to the base.
            spheres: capsules on links, in place of the collision geometry of these links.
            radius: radius of links without collision geometry, m. Default: `LINK_RADIUS_SHARE` of the longest chain.
            self_collision: whether the robot's own links must not collide.
            margin: distance kept free, m.
        """
        bodies = robot.tree.dof
        for capsule in (*spheres, *obstacles):
            if not BASE <= capsule.body < bodies:
                raise DynidError(f"capsule '{capsule.name}' is on body {capsule.body}, robot '{robot.name}' has bodies "
                                 f"0 to {bodies - 1} and the base, {BASE}")
        own, links = represent_links(robot, radius, spheres)
        capsules, walls = (*own, *obstacles), tuple(planes)
        adjacent, pairs = _adjacent_bodies(robot), []
        for p, q in combinations(range(len(capsules)), 2):
            a, b = capsules[p].body, capsules[q].body
            is_obstacle = q >= len(own)  # which has no neighbours
            if a != b and (is_obstacle or (self_collision and (a, b) not in adjacent)):
                pairs.append((p, q))
        sides = [(w, p, end) for w in range(len(walls)) for p, capsule in enumerate(own) if capsule.body != BASE
                 for end in range(1 if np.array_equal(capsule.a, capsule.b) else 2)]
        every = Workspace(robot, capsules, walls, np.array(pairs, dtype=np.int64).reshape(-1, 2),
                          np.array(sides, dtype=np.int64).reshape(-1, 3), margin, links, self_collision,
                          tuple(obstacles), radius is None and any("capsule" in link.checked for link in links))
        return every._without_constant_distances()

    def _without_constant_distances(self) -> Workspace:
        """Return the workspace without distances that no motion can change, and without pairs of links that overlap in
        every posture."""
        rng = np.random.default_rng(0)
        low = np.where(np.isfinite(self.robot.limit("lower")), self.robot.limit("lower"), -np.pi)
        high = np.where(np.isfinite(self.robot.limit("upper")), self.robot.limit("upper"), np.pi)
        q = rng.uniform(low, high, (_PROBED_POSTURES, self.robot.dof))
        slack = self.slack(q[self._closed(q)])
        if not slack.size:
            return self
        count, own = len(self.pairs), len(self.capsules) - len(self.obstacles)
        is_link = np.concatenate([self.pairs[:, 1] < own, np.zeros(len(self.sides), dtype=bool)])
        # The capsules of two links may overlap because they are wider than the links. A half-space or an obstacle that
        # a motion can violate more or less must be respected, even if every random posture violates it.
        constant = np.ptp(slack, axis=0) <= _CONSTANT_DISTANCE
        touch = (slack < 0).all(axis=0)
        omitted = constant | (touch & is_link)
        names = dict.fromkeys(np.array(self.names, dtype=object)[omitted & touch].tolist())
        return replace(self, pairs=self.pairs[~omitted[:count]], sides=self.sides[~omitted[count:]],
                       skipped=tuple(names))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Description of each pair of bodies or half-space, in the order of the columns of `slack`."""
        return (*(f"{self.capsules[p].name} against {self.capsules[q].name}" for p, q in self.pairs),
                *(f"{self.capsules[p].name} in half-space '{self.planes[w].name}'" for w, p, _ in self.sides))

    @property
    def floors(self) -> tuple[HalfSpace, ...]:
        """Half-spaces that bound the links from below."""
        up = upward(self.robot)
        return tuple(plane for plane in self.planes if float(plane.normal @ up) > _LEVEL)

    @property
    def has_floor(self) -> bool:
        """Whether a half-space bounds the links from below."""
        return len(self.floors) > 0

    @cached_property
    def _arrays(self) -> tuple[Array, Ints, Array]:
        """Ends of the capsules (C, 2, 3) in their bodies, their bodies in the tree (C,), and their radii (C,), m."""
        ends, following = np.array([[c.a, c.b] for c in self.capsules]).reshape(-1, 2, 3), self.robot.followers
        bodies = [c.body if following is None else following.place(c.body) for c in self.capsules]
        return ends, np.array(bodies, dtype=np.int64), np.array([c.radius for c in self.capsules], dtype=float)

    def _places(self, q: Array) -> tuple[Array, Array, Array | None]:
        """Return ends of all capsules (m, C, 2, 3) and axes of the joints of the tree (m, tree.dof, 6) in the base
        frame at q (m, dof), and derivatives (m, tree.dof, dof) of the joints of the tree, None without dependent
        joints. The closed loops must be closed."""
        local, body, _ = self._arrays
        case = MotionCase(self.robot, None, (np.ascontiguousarray(q),), threads=1)
        poses, axes = body_places(case.robot, np.ascontiguousarray(case.motion[0]), threads=1)
        out = np.empty((len(q), len(local), 2, 3))
        moving = body != BASE
        frames = poses[:, body[moving]]
        out[:, moving] = np.einsum("mcij,ckj->mcki", frames[..., :3], local[moving]) + frames[:, :, None, :, 3]
        out[:, ~moving] = local[~moving]
        return out, np.ascontiguousarray(axes), case.rates

    def _closed(self, q: Array) -> Bools:
        """Return the mask (m,) of the postures q (m, dof) in which the closed loops of the robot can be closed."""
        following = self.robot.followers
        if following is None or following.loops is None or not len(q):
            return np.ones(len(q), dtype=bool)
        return closes(self.robot, np.ascontiguousarray(q))

    def ends(self, q: Array) -> Array:
        """Return ends of all capsules (m, C, 2, 3) in the base frame at q (m, dof); nan if the loops are not closed."""
        is_closed = self._closed(q)
        out = np.full((len(q), len(self.capsules), 2, 3), np.nan)
        if is_closed.any():
            out[is_closed] = self._places(q[is_closed])[0]
        return out

    def slack(self, q: Array) -> Array:
        """Return clearances (m, pairs + sides), in metres, at postures q (m, dof); negative values are violations.
        All clearances are violated by `NOT_CLOSED` in postures in which the robot's loops are not closed."""
        return self.slack_of_ends(self.ends(q))[0]

    def slack_of_ends(self, ends: Array) -> tuple[Array, Array]:
        """Return clearances (m, pairs + sides), in metres, for ends of capsules (m, C, 2, 3), and the positions of the
        closest points on the segments of both capsules (m, pairs, 2), from 0 to 1."""
        radii = self._arrays[2]
        gap, where = np.empty((len(ends), len(self.pairs))), np.empty((len(ends), len(self.pairs), 2))
        distances_kernel(ends, self.pairs, radii, gap, where)
        normals = np.array([self.planes[w].normal for w, _, _ in self.sides]).reshape(-1, 3)
        offsets = np.array([self.planes[w].offset for w, _, _ in self.sides])
        chosen, end = self.sides[:, 1], self.sides[:, 2]
        height = np.einsum("mcx,cx->mc", ends[:, chosen, end], normals) - offsets - radii[chosen]
        slack = np.hstack([gap, height]) - self.margin
        return np.where(np.isnan(slack), -NOT_CLOSED, slack), where

    def paths(self, ends: Array) -> Array:
        """Return how far each distance (m - 1, pairs + sides) can change between successive rows of ends of capsules
        (m, C, 2, 3), m: the lengths of the paths of both bodies."""
        path = np.linalg.norm(np.diff(ends, axis=0), axis=-1) * _ARC_LENGTH
        whole = path.max(axis=2)
        return np.nan_to_num(np.hstack([whole[:, self.pairs[:, 0]] + whole[:, self.pairs[:, 1]],
                                        path[:, self.sides[:, 1], self.sides[:, 2]]]))

    def gradient(self, q: Array, columns: Ints) -> Array:
        """Return the derivative (m, dof) by q (m, dof) of one column of `slack` in each row."""
        is_closed = self._closed(q)
        if not is_closed.all():
            out = np.zeros_like(q)
            if is_closed.any():
                out[is_closed] = self.gradient(q[is_closed], columns[is_closed])
            return out
        ends, axes, rates = self._places(q)
        _, where = self.slack_of_ends(ends)
        _, body, _ = self._arrays
        rows, count = np.arange(len(q)), len(self.pairs)
        touching = columns < count
        p, r = np.zeros(len(q), dtype=np.int64), np.zeros(len(q), dtype=np.int64)
        x, y, normal = np.zeros((3, len(q), 3))
        if touching.any():
            k, pair = rows[touching], self.pairs[columns[touching]]
            p[k], r[k] = pair[:, 0], pair[:, 1]
            share = where[k, columns[touching]]
            one, two = ends[k, p[k]], ends[k, r[k]]
            x[k] = one[:, 0] + share[:, :1] * (one[:, 1] - one[:, 0])
            y[k] = two[:, 0] + share[:, 1:] * (two[:, 1] - two[:, 0])
            difference = x[k] - y[k]
            size = np.linalg.norm(difference, axis=1, keepdims=True)
            # For crossing segments the direction is the line between their midpoints.
            difference = np.where(size < 1e-9, one.mean(axis=1) - two.mean(axis=1), difference)
            normal[k] = difference / np.maximum(np.linalg.norm(difference, axis=1, keepdims=True), 1e-9)
        if not touching.all():
            k, side = rows[~touching], self.sides[columns[~touching] - count]
            normal[k] = np.array([self.planes[w].normal for w in side[:, 0]])
            p[k] = side[:, 1]
            x[k] = ends[k, p[k], side[:, 2]]
        out = self._speeds(axes, x, normal, body[p])
        out[touching] -= self._speeds(axes[touching], y[touching], normal[touching], body[r[touching]])
        return out if rates is None else np.einsum("mj,mja->ma", out, rates)

    def _speeds(self, axes: Array, points: Array, normals: Array, bodies: Ints) -> Array:
        """Return the velocity (m, tree.dof) of one point per row along a normal, for unit velocity of each joint of the
        tree; bodies (m,): bodies of the points in the tree."""
        speed = axes[:, :, 3:] + np.cross(axes[:, :, :3], points[:, None])
        carried = self.robot.tree.supports[:, bodies].T & (bodies != BASE)[:, None]
        return np.where(carried, np.einsum("mjx,mx->mj", speed, normals), 0.0)


def _adjacent_bodies(robot: Robot) -> set[tuple[int, int]]:
    """Return pairs of bodies, both ways round, that a joint or a loop closure connects; dependent bodies are last."""
    following = robot.followers
    order = list(range(robot.dof)) if following is None else [*following.free, *following.bodies]
    number = {BASE: BASE, **{old: new for new, old in enumerate(order)}}
    joined = [(number[joint.parent], number[i]) for i, joint in enumerate(robot.tree.joints)]
    if following is not None and following.loops is not None:
        joined += [(number[one.first.body], number[one.second.body]) for one in following.loops.closures]
    return {*joined, *((b, a) for a, b in joined)}


def upward(robot: Robot) -> Array:
    """Return the direction (3,) against gravity in the base frame; the z axis for a free base or without gravity."""
    size = float(np.linalg.norm(robot.gravity))
    return np.array([0.0, 0.0, 1.0]) if robot.has_free_base or size == 0.0 else -np.asarray(robot.gravity) / size


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Allowed points p with normal . p >= offset in the base frame: above a table, in front of a wall, inside a box."""

    normal: Array
    offset: float
    name: str

    def __post_init__(self) -> None:
        normal = np.array(self.normal, dtype=float)
        size = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not 0 < size < np.inf or not np.isfinite(self.offset):
            raise DynidError(f"half-space '{self.name}' needs a normal of three numbers, not all zero, and an offset")
        object.__setattr__(self, "normal", normal / size)
        object.__setattr__(self, "offset", float(self.offset) / size)


def inside_box(lower: ArrayLike, upper: ArrayLike, name: str = "workspace") -> tuple[HalfSpace, ...]:
    """Return the sides of a box that bodies must stay in, without infinite sides."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if low.shape != (3,) or high.shape != (3,) or not (low < high).all():
        raise DynidError(f"box '{name}' needs three lower bounds below its three upper bounds, got {low} and {high}")
    sides = []
    for k, axis in enumerate("xyz"):
        unit = np.eye(3)[k]
        sides += [HalfSpace(unit, low[k], f"{name} {axis} >= {low[k]:g}")] if np.isfinite(low[k]) else []
        sides += [HalfSpace(-unit, -high[k], f"{name} {axis} <= {high[k]:g}")] if np.isfinite(high[k]) else []
    return tuple(sides)


@dataclass(frozen=True, eq=False)
class Capsule:
    """A capsule on a body of the robot: all points within a radius of a segment.

    Attributes:
        body: index of the body; BASE for a capsule fixed to the base.
        a, b: ends of the segment in the body's frame (3,), m.
        radius: radius, m.
        name: name in messages.
    """

    body: int
    a: Array
    b: Array
    radius: float
    name: str

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            end = np.array(getattr(self, name), dtype=float)
            if end.shape != (3,) or not np.isfinite(end).all():
                raise DynidError(f"capsule '{self.name}' needs ends of three finite numbers, got {end}")
            object.__setattr__(self, name, end)
        if not 0 <= self.radius < np.inf:
            raise DynidError(f"capsule '{self.name}' needs a radius of zero or more, got {self.radius}")


def sphere(body: int, centre: ArrayLike, radius: float, name: str) -> Capsule:
    """Return a capsule that is a sphere, on a body of the robot or fixed to the base (BASE)."""
    return Capsule(body, np.asarray(centre, dtype=float), np.asarray(centre, dtype=float), radius, name)


def box(lower: ArrayLike, upper: ArrayLike, name: str) -> Capsule:
    """Return the capsule around a box obstacle that is fixed to the base; a table or a wall is a `HalfSpace`."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    pose = np.eye(4)
    pose[:3, 3] = 0.5 * (low + high)
    return capsule_around(Shape("box", tuple(map(float, high - low)), pose, name), BASE)


def capsule_around(shape: Shape, body: int) -> Capsule:
    """Return the capsule around a primitive shape: along a cylinder's axis or a box's longest edge."""
    half, radius, axis = 0.0, float(shape.size[0]), 2
    if shape.kind in ("cylinder", "capsule"):
        half = 0.5 * float(shape.size[1])
    elif shape.kind == "box":
        axis = int(np.argmax(shape.size))
        half = 0.5 * float(shape.size[axis])
        radius = 0.5 * float(np.linalg.norm([edge for k, edge in enumerate(shape.size) if k != axis]))
    along = shape.pose[:3, axis] * half
    return Capsule(body, shape.pose[:3, 3] - along, shape.pose[:3, 3] + along, radius, shape.link or f"body {body + 1}")


def capsule_of_points(points: Array, body: int, name: str) -> Capsule:
    """Return the smallest capsule along a principal axis of points (k, 3) that contains these points."""
    middle = points.mean(axis=0)
    axes = np.linalg.svd(points - middle, full_matrices=True)[2]
    best, least = None, np.inf
    for k in range(3):
        along, across = (points - middle) @ axes[k], (points - middle) @ np.delete(axes, k, axis=0).T
        centre = 0.5 * (across.min(axis=0) + across.max(axis=0))
        off = np.linalg.norm(across - centre, axis=1)
        radius = float(off.max())
        cap = np.sqrt(np.maximum(radius ** 2 - off ** 2, 0.0))  # of the half sphere at each end
        low, high = float((along + cap).min()), float((along - cap).max())
        if low > high:
            low = high = 0.5 * (low + high)
        volume = radius ** 2 * (high - low + 4.0 / 3.0 * radius)
        if volume < least:
            at = middle + centre @ np.delete(axes, k, axis=0)
            best, least = Capsule(body, at + low * axes[k], at + high * axes[k], radius, name), volume
    assert best is not None
    return best


# -- the links of a robot --------------------------------------------------------------------------
@dataclass(eq=False)
class _Link:
    """Data of a body from which its capsules are chosen.

    Attributes:
        points: points (k, 3) of the body that a capsule without shapes connects, in its frame; the first is its joint.
        shapes: capsules around collision shapes and hulls of meshes.
        kinds: kinds of these capsules, in the order of their use.
        unknown: links of the body that have a mass or a mesh, but no shape that can be read.
        faults: reasons why meshes could not be read.
    """

    name: str
    points: list[Array]
    shapes: list[Capsule] = field(default_factory=list)
    kinds: dict[str, None] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


def represent_links(robot: Robot, radius: float | None = None, spheres: Sequence[Capsule] = ()
                    ) -> tuple[tuple[Capsule, ...], tuple[LinkCheck, ...]]:
    """Return the capsules of all bodies of a robot and of its base, and how every moving body is represented.

    Each body is represented by the given spheres, or else by capsules around its collision shapes and the convex hulls
    of its meshes. A capsule of `radius` (m) connects the joints of a body if one of its links has no shape that can be
    read, and bridges gaps between the joints that are wider than a link. The default radius is `LINK_RADIUS_SHARE` of
    the longest chain.
    """
    tree, following = robot.tree, robot.followers
    order = list(range(robot.dof)) if following is None else [*following.free, *following.bodies]
    number = {BASE: BASE, **{old: new for new, old in enumerate(order)}}
    found = {i: _read_link(robot, i, number[i]) for i in (*(() if robot.has_free_base else (BASE,)), *order)}
    thickness = LINK_RADIUS_SHARE * _longest_chain(tree, found) if radius is None else radius
    capsules, checks = list[Capsule](), list[LinkCheck]()
    for i, link in found.items():
        balls = [ball for ball in spheres if ball.body == number[i]]
        between = [] if balls else list(_uncovered(link, thickness, number[i]))
        if (i == BASE or tree.bodies[i].virtual) and not (balls or link.shapes) and len(link.points) == 1:
            continue  # a base of unknown size, or a massless body between two joints at one point
        capsules += [*(balls or link.shapes), *between]
        if i != BASE:
            kinds = ("spheres",) if balls else (*link.kinds, *(("capsule",) if between else ()))
            reason = "; ".join(link.faults) or (
                f"{', '.join(sorted(link.unknown))}: no collision shape" if link.unknown and link.shapes else
                "its shapes leave a gap between the joints" if link.shapes else "no collision shape")
            checks.append(LinkCheck(link.name, kinds, thickness if between else None, reason if between else "",
                                    bool(link.faults)))
    return tuple(capsules), tuple(checks)


def _read_link(robot: Robot, i: int, body: int) -> _Link:
    """Return the data of body i of the tree (BASE for the base), which has the number `body` among the robot's own and
    dependent bodies."""
    tree = robot.tree
    own = tree.root if i == BASE else tree.bodies[i]
    here = np.zeros(3) if i == BASE else inverse(np.asarray(tree.joints[i].after))[:3, 3]
    link = _Link(tree.base if own is None else own.name, [here])
    children = [np.asarray(joint.before)[:3, 3] for joint in tree.joints if joint.parent == i]
    if own is not None:
        for shape in own.shapes:
            link.shapes.append(capsule_around(shape, body))
            link.kinds["shapes"] = None
        for mesh in own.meshes:
            try:
                link.shapes.append(capsule_of_points(mesh_hull(mesh), body, mesh.link or own.name))
                link.kinds["hull"] = None
            except RobotError as problem:
                link.faults.append(str(problem))
                link.unknown.add(mesh.link)
        shaped = {shape.link for shape in own.shapes} | {mesh.link for mesh in own.meshes}
        link.unknown |= {part.link for part in own.parts
                         if part.link not in shaped and part.inertia is not None and part.inertia[9] > 0}
        link.points += [part.pose[:3, 3] for part in own.parts if part.link in link.unknown]
    link.points += [point for point in children if np.linalg.norm(point - here) > _SAME_POINT]
    if not children and i != BASE and (link.unknown or not link.shapes):  # the last body: to its flange, tools and tips
        link.points += [np.zeros(3), *(frame.pose[:3, 3] for frame in tree.frames if frame.body == i)]
        span = max(float(np.linalg.norm(point - here)) for point in link.points)
        if span <= _SAME_POINT and own is not None and own.inertia is not None and own.inertia[9] > 0:
            link.points.append(_tip(own.inertia, here))
    return link


def _tip(inertia: Array, joint: Array) -> Array:
    """Return the far end (3,) of a rod from a joint (3,) that has the given ten inertial parameters (10,)."""
    from dynid.robot import inertia as ten

    mass, centre, central = ten.to_central(inertia)
    arm = centre - joint
    length = float(np.linalg.norm(arm))
    if length <= _SAME_POINT:
        return joint
    half = np.sqrt(3.0 * max(float(np.linalg.eigvalsh(central)[-1]), 0.0) / mass)
    return np.asarray(centre + arm / length * half)


def _longest_chain(tree: Robot, links: Mapping[int, _Link]) -> float:
    """Return the length (m) of the longest chain of links from the first joint to the end of the last link, with the
    strokes of its prismatic joints."""
    start = np.zeros(tree.dof)
    longest = 0.0
    for i, joint in enumerate(tree.joints):  # parents come first
        if joint.parent != BASE:
            here = links[joint.parent].points[0]
            start[i] = start[joint.parent] + float(np.linalg.norm(np.asarray(joint.before)[:3, 3] - here))
        if joint.prismatic and np.isfinite(joint.upper - joint.lower):
            start[i] += joint.upper - joint.lower
        points = links[i].points
        longest = max(longest, start[i] + max(float(np.linalg.norm(point - points[0])) for point in points))
    return longest


def _uncovered(link: _Link, radius: float, body: int) -> Iterable[Capsule]:
    """Yield capsules along the shortest tree of lines between the points of a link. If the shapes of all its links are
    known, only the gaps of these lines beside which there is no shape need capsules, if wider than a link."""
    shapes = [] if link.unknown else link.shapes
    joined, left = [link.points[0]], [p for p in link.points[1:] if np.linalg.norm(p - link.points[0]) > _SAME_POINT]
    if not left and not shapes:
        yield Capsule(body, joined[0], joined[0], radius, link.name)
    while left:
        lengths = np.linalg.norm(np.array(left)[:, None] - np.array(joined)[None], axis=2)
        new, old = np.unravel_index(int(np.argmin(lengths)), lengths.shape)
        a, b = joined[old], left.pop(int(new))
        joined.append(b)
        length = float(lengths[new, old])
        if length <= _SAME_POINT:
            continue
        along = (b - a) / length
        for low, high in _gaps(shapes, a, along, length):
            if not shapes or high - low > 2.0 * radius:
                yield Capsule(body, a + low * along, a + high * along, radius, link.name)


def _gaps(shapes: Sequence[Capsule], start: Array, along: Array, length: float) -> list[tuple[float, float]]:
    """Return the intervals (m) of a line of given start (3,), direction (3,) and length beside which there is no
    shape."""
    spans = sorted((min(float((c.a - start) @ along), float((c.b - start) @ along)) - c.radius,
                    max(float((c.a - start) @ along), float((c.b - start) @ along)) + c.radius) for c in shapes)
    gaps, reached = [], 0.0
    for low, high in spans:
        if low > reached:
            gaps.append((reached, min(low, length)))
        reached = max(reached, high)
        if reached >= length:
            break
    if reached < length:
        gaps.append((reached, length))
    return [(low, high) for low, high in gaps if high > low]


@njit(**OPTIONS)
def distances_kernel(ends: Array, pairs: Ints, radii: Array, gap: Array, where: Array) -> None:
    """Compute distances between pairs (P, 2) of capsules with segments `ends` (m, C, 2, 3) and `radii` (C,). Outputs
    are the distances `gap` (m, P), m, and in `where` (m, P, 2) the closest points of both segments, 0 at end a to 1 at
    end b (Ericson, Real-Time Collision Detection, s. 5.1.9)."""
    for i in range(len(ends)):
        for p in range(len(pairs)):
            one, two = ends[i, pairs[p, 0]], ends[i, pairs[p, 1]]
            a = e = f = c = b = 0.0
            for k in range(3):
                d1, d2, r = one[1, k] - one[0, k], two[1, k] - two[0, k], one[0, k] - two[0, k]
                a += d1 * d1
                e += d2 * d2
                f += d2 * r
                c += d1 * r
                b += d1 * d2
            s = t = 0.0
            if a > 1e-18 and e > 1e-18:
                determinant = a * e - b * b
                if determinant > 1e-12 * a * e:
                    s = min(max((b * f - c * e) / determinant, 0.0), 1.0)
                t = (b * s + f) / e
                if t < 0.0:
                    t, s = 0.0, min(max(-c / a, 0.0), 1.0)
                elif t > 1.0:
                    t, s = 1.0, min(max((b - c) / a, 0.0), 1.0)
            elif a > 1e-18:
                s = min(max(-c / a, 0.0), 1.0)
            elif e > 1e-18:
                t = min(max(f / e, 0.0), 1.0)
            square = 0.0
            for k in range(3):
                x = one[0, k] + s * (one[1, k] - one[0, k]) - two[0, k] - t * (two[1, k] - two[0, k])
                square += x * x
            gap[i, p] = np.sqrt(square) - radii[pairs[p, 0]] - radii[pairs[p, 1]]
            where[i, p, 0], where[i, p, 1] = s, t

"""Motion of all joints of a robot with dependent joints: mimic joints or closed loops."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics import closures, loop_kernels
from dynid.dynamics.closures import LANES
from dynid.dynamics.elimination import Elimination, planned
from dynid.dynamics.loop_kernels import CLOSED
from dynid.dynamics.tree import robot_tree
from dynid.errors import NotPossibleError, RobotError
from dynid.robot import BASE, Robot
from dynid.robot.followers import DependentJoints
from dynid.robot.loops import Closure, Loops
from dynid.threads import over_samples

_CLOSURE_KINDS = {"point": closures.POINT, "axis": closures.AXIS_CLOSURE, "rigid": closures.RIGID, "rod": closures.ROD}
_RANK_TOLERANCE = 1e-7  # of the largest singular value: smaller ones count as zero
_MIN_RANGE_SHARE = 1e-3  # of the joints' ranges about the initial posture: smallest range of random postures
_NEAR_POSTURES = 0.1  # rad or m of the independent joints
_ALWAYS_ZERO = 1e-10  # derivatives of closures below it in several postures are zero everywhere
_WORTH_LANES = 8  # samples per lane; with fewer, computing the start of the lanes takes most of the time
_CLOSED_TO = 1e-6  # m: with a larger error after Newton's method, a posture is not closed


class TreeMotion(NamedTuple):
    """Motion of all joints of the tree.

    Attributes:
        q, dq, ddq: positions, velocities and accelerations (samples, joints of the tree).
        rates: derivatives (samples, joints of the tree, dof) of all joint positions by those of the independent joints.
            Torques of the robot are rates' times torques of the tree.
    """

    q: Array
    dq: Array
    ddq: Array
    rates: Array


class Closures(NamedTuple):
    """Loop closures of a robot as arrays for the kernels.

    Attributes:
        kinds, lengths: kind and rod length, m, of each closure (k,).
        bodies, places: connected bodies (k, 2) and attachment frames on them (k, 2, 12).
        source, ratio, offset: index of the coordinate z of each joint, -1 for none, with the joint position
            q = ratio z + offset (joints of the tree,).
        chosen: indices of the equations that determine the dependent joints, ascending; other equations are redundant.
        begin: coordinates of a closed posture (coordinates,).
        branch: determinant of the closure derivatives in this posture; its sign identifies the branch.
    """

    kinds: Ints
    bodies: Ints
    places: Array
    lengths: Array
    source: Ints
    ratio: Array
    offset: Array
    chosen: Ints
    begin: Array
    branch: float

    @property
    def start(self) -> Array:
        """Coordinates of the closed posture, and the determinant of its closure derivatives (coordinates + 1,)."""
        return np.append(self.begin, self.branch)


class ClosedChain(NamedTuple):
    """A robot's closures, the elimination of its dependent joints, and the number of redundant equations by closure."""

    closures: Closures
    elimination: Elimination
    repeated: dict[str, int]

    @property
    def begin(self) -> Array:
        """Coordinates of a closed posture (coordinates,), the independent joints first."""
        return self.closures.begin


def tree_motion(robot: Robot, q: Array, dq: Array | None = None, ddq: Array | None = None, *,
                threads: int | None = None) -> TreeMotion:
    """Return the motion of all joints of the tree from the motion of the independent joints (samples, dof).

    dq and ddq are zero by default. An error is raised for a sample in which the loops cannot be closed.
    """
    followers = robot.followers
    assert followers is not None
    still = np.zeros_like(q)
    dq, ddq = still if dq is None else dq, still if ddq is None else ddq
    if followers.loops is None:
        couples = followers.coupling.T
        return TreeMotion(np.ascontiguousarray(q @ couples + followers.offset), np.ascontiguousarray(dq @ couples),
                          np.ascontiguousarray(ddq @ couples), np.broadcast_to(couples.T, (len(q), *couples.T.shape)))
    motion, status = _solved(robot, followers, q, dq, ddq, threads)
    open_ = np.flatnonzero(status != CLOSED)
    if len(open_):
        from dynid.dynamics.loop_faults import not_closed

        raise NotPossibleError(not_closed(robot, int(status[open_[0]]), f"in sample {open_[0]}", q[open_[0]]),
                               "use only positions in which the loops close, and set the joint limits accordingly",
                               code="loop-not-solvable")
    return motion


def closes(robot: Robot, q: Array) -> Bools:
    """Return whether the loops can be closed (samples,) at positions q (samples, dof) of the independent joints."""
    followers = robot.followers
    if followers is None or followers.loops is None:
        return np.ones(len(q), dtype=bool)
    still = np.zeros_like(q)
    return np.asarray(_solved(robot, followers, q, still, still, 1)[1] == CLOSED)


def closure_conditions(robot: Robot, q: Array) -> Array:
    """Return the condition numbers (samples,) of the closure derivatives by the dependent joints at q (samples, dof);
    infinite if the loops cannot be closed, 1 without loops."""
    followers = robot.followers
    if followers is None or followers.loops is None:
        return np.ones(len(q))
    still, chain = np.zeros_like(q), closed_chain(robot).closures
    motion, status = _solved(robot, followers, np.ascontiguousarray(q), still, still, 1)
    conditions = np.full(len(q), np.inf)
    for t in np.flatnonzero(status == CLOSED):
        rates = _closure_state(followers.tree, chain, motion.q[t])[1]
        conditions[t] = np.linalg.cond(rates[chain.chosen, robot.dof:])
    return conditions


def random_postures(robot: Robot, count: int, rng: np.random.Generator) -> Array:
    """Return random positions (count, dof) of the independent joints at which the loops close. The positions are within
    joint limits or one turn, and closer to the initial posture if the loops close at few positions."""
    low, high = (np.clip(robot.limit(which), -np.pi, np.pi) for which in ("lower", "upper"))
    followers = robot.followers
    if followers is None or followers.loops is None:
        return rng.uniform(low, high, (count, robot.dof))
    middle, reach, postures = closed_chain(robot).begin[:robot.dof], 1.0, np.empty((0, robot.dof))
    while len(postures) < count:
        trial = middle + reach * (rng.uniform(low, high, (max(count, 16), robot.dof)) - middle)
        good = trial[closes(robot, trial)]
        if 4 * len(good) < len(trial):
            reach *= 0.7
        if reach < _MIN_RANGE_SHARE:
            raise NotPossibleError(f"the loops {followers.loops.names} of robot '{robot.name}' close only in their "
                                   "given posture", "give another posture, farther from a singularity")
        postures = np.vstack([postures, good])
    return postures[:count]


def closed_columns(robot: Robot, motion: TreeMotion, place: Ints, out: Array) -> None:
    """Compute selected entries of the regressor of all bodies, dependent bodies included, in one thread. Each entry is
    contiguous over the samples. place (dof, 10 bodies of the tree): row of each entry in out (rows, samples), -1 for an
    entry that is not computed."""
    followers = robot.followers
    assert followers is not None
    shown = np.any(place.reshape(robot.dof, -1, 10) >= 0, axis=2)
    loop_kernels.closed_columns_kernel(*robot_tree(followers.tree), motion.q, motion.dq, motion.ddq,
                                       np.ascontiguousarray(motion.rates), followers.moves, shown, place, out, 0,
                                       len(motion.q))


def closure_wrenches(robot: Robot, q: Array, torques: Array) -> Array:
    """Return the wrenches (samples, joints of the tree, 6), force and moment, that closure forces cause in each joint,
    in the joint's frame.

    Closure forces are such that dependent joints have no torque. q, torques (samples, joints of the tree): positions,
    and torques of the tree without its closures.
    """
    followers = robot.followers
    assert followers is not None
    out = np.zeros((*q.shape, 6))
    if followers.loops is None:
        return out
    tree, chain, n = followers.tree, closed_chain(robot).closures, robot.dof
    owner = owners(followers.loops.closures)
    for t in range(len(q)):
        equations, rates, bodies = _closure_state(tree, chain, q[t])
        # Virtual work of the dependent coordinates: C_d' torques = Phi_d' forces.
        forces = np.linalg.solve(rates[chain.chosen][:, n:].T, followers.coupling[:, n:].T @ torques[t])
        carried = np.zeros((tree.dof, 6))
        for e, force in zip(chain.chosen, forces, strict=True):
            for body, sign in zip(chain.bodies[owner[e]], (1.0, -1.0), strict=True):
                if body != BASE:
                    carried[tree.supports[:, body]] += sign * force * equations[e, 1:]
        out[t] = _in_joints(tree, carried, bodies)
    return out


def _in_joints(tree: Robot, wrenches: Array, bodies: Array) -> Array:
    """Return force and moment (joints, 6) in each joint's frame.

    wrenches (joints, 6): moment about the base origin and force, in the base frame. bodies: rows of the bodies, see
    `closures`.
    """
    out = np.empty_like(wrenches)
    for j, joint in enumerate(tree.joints):
        turn = bodies[j, :9].reshape(3, 3) @ joint.after[:3, :3].T
        origin = bodies[j, 9:12] - turn @ joint.after[:3, 3]
        moment, force = wrenches[j, :3], wrenches[j, 3:]
        out[j, :3], out[j, 3:] = turn.T @ force, turn.T @ (moment - np.cross(origin, force))
    return out


def _solved(robot: Robot, followers: DependentJoints, q: Array, dq: Array, ddq: Array,
            threads: int | None) -> tuple[TreeMotion, Ints]:
    tree, chain = robot_tree(followers.tree), closed_chain(robot)
    joints = followers.tree.dof
    motion, status = np.empty((3, len(q), joints)), np.empty(len(q), dtype=np.int64)
    rates = np.empty((len(q), joints, robot.dof))

    def one_by_one(samples: Ints) -> None:
        start = chain.closures.start
        loop_kernels.close_kernel(tree, chain.closures, start, q, dq, ddq, samples, motion, rates, status, start.copy())

    def piece(start: int, stop: int) -> None:
        if stop - start < _WORTH_LANES * LANES:
            one_by_one(np.arange(start, stop))
            return
        cuts = start + (stop - start) * np.arange(LANES + 1) // LANES
        middle = int(cuts[LANES // 2])
        one_by_one(cuts[LANES // 2:LANES // 2 + 1])
        done = cuts[:-1]
        if status[middle] == CLOSED:
            from dynid.dynamics.loop_lanes import solve_closures_batch  # open chains do not need these kernels
            done = solve_closures_batch(tree, chain.closures, chain.elimination, middle, cuts, q, dq, ddq, motion,
                                        rates, status)
        left = [np.arange(a, b) for a, b in zip(done, cuts[1:], strict=True) if a < b]
        if left:
            one_by_one(np.concatenate(left))

    over_samples(piece, len(q), threads)
    return TreeMotion(motion[0], motion[1], motion[2], rates), status


def owners(closures: tuple[Closure, ...]) -> Ints:
    """Return the index of the loop closure to which each equation belongs."""
    return np.repeat(np.arange(len(closures)), [one.equations for one in closures])


def joint_coordinates(followers: DependentJoints) -> tuple[Ints, Array, Array]:
    """Return the fields source, ratio and offset of `Closures` (joints of the tree,)."""
    ratio = followers.coupling.sum(axis=1)  # each row has at most one nonzero entry
    source = np.where(ratio != 0.0, np.argmax(np.abs(followers.coupling), axis=1), -1)
    return source, ratio, followers.offset


@lru_cache(maxsize=64)
def closed_chain(robot: Robot) -> ClosedChain:
    """Return the closures of a robot, checked in their initial posture for undetermined and overconstrained joints."""
    followers = robot.followers
    assert followers is not None and followers.loops is not None
    loops, tree, dof = followers.loops, followers.tree, robot.dof
    kinds = np.array([_CLOSURE_KINDS[one.kind] for one in loops.closures], dtype=np.int64)
    bodies = np.array([[one.first.body, one.second.body] for one in loops.closures], dtype=np.int64)
    places = np.array([[one.first.pose[:3].ravel(), one.second.pose[:3].ravel()] for one in loops.closures])
    lengths = np.array([one.length if one.kind == "rod" else 1.0 for one in loops.closures])
    arrays = Closures(kinds, bodies, places, lengths, *joint_coordinates(followers), np.zeros(0, dtype=np.int64),
                      np.zeros(followers.coupling.shape[1]), 1.0)
    near = np.asarray(np.linalg.lstsq(followers.coupling, loops.posture - followers.offset, rcond=None)[0])
    begin = _closed_posture(robot, loops, tree, dof, near, arrays)
    _, jacobian = linearised(tree, begin, arrays)
    chosen = _independent_rows(robot, jacobian, dof)
    branch = float(np.linalg.det(jacobian[chosen, dof:]))
    owner = owners(loops.closures)
    left = np.setdiff1d(np.arange(len(owner)), chosen)
    repeated = {loops.closures[k].name: int(count) for k, count in zip(*np.unique(owner[left], return_counts=True),
                                                                       strict=True)}
    arrays = arrays._replace(chosen=chosen, begin=begin, branch=branch)
    return ClosedChain(arrays, _elimination(tree, arrays, jacobian, dof, owner), repeated)


def _elimination(tree: Robot, chain: Closures, jacobian: Array, dof: int, owner: Ints) -> Elimination:
    """Return the elimination plan of the chosen equations. Derivatives that are zero in random closed postures are
    treated as structural zeros. jacobian (m, coordinates): derivatives in the initial posture. owner (m,): index of the
    closure of each equation."""
    n = len(chain.begin)
    reach = np.linspace(0.0, _NEAR_POSTURES, 9)[:, None]
    q = chain.begin[:dof] + reach * np.random.default_rng(0).uniform(-1.0, 1.0, (len(reach), dof))
    motion, status = np.empty((3, len(q), tree.dof)), np.empty(len(q), dtype=np.int64)
    loop_kernels.close_kernel(robot_tree(tree), chain, chain.start, q, q, q, np.arange(len(q)), motion,
                              np.empty((len(q), tree.dof, dof)), status, chain.start)
    size = np.abs(jacobian) if np.sum(status == CLOSED) > 4 else np.ones_like(jacobian)
    for posture in motion[0, status == CLOSED]:
        size = np.maximum(size, np.abs(_closure_state(tree, chain, posture)[1]))
    supports = np.column_stack([tree.supports, np.zeros(tree.dof, dtype=bool)])  # the base is last
    contributions = []
    for e, equation in enumerate(chain.chosen):
        sides = supports[:, chain.bodies[owner[equation]]].astype(float)
        joints = np.flatnonzero((sides[:, 0] != sides[:, 1]) & (chain.source >= 0))
        contributions += [(e, int(equation), int(j), int(chain.source[j]),
                           float((sides[j, 0] - sides[j, 1]) * chain.ratio[j])) for j in joints]
    pattern = np.zeros((len(chain.chosen), n), dtype=bool)
    for e, _, _, c, _ in contributions:
        pattern[e, c] = size[chain.chosen[e], c] > _ALWAYS_ZERO
    return planned(pattern, jacobian[chain.chosen], contributions, dof)


def _closure_state(tree: Robot, chain: Closures, q: Array) -> tuple[Array, ...]:
    """Return the result of `closures.closure_state` at joint positions q (joints of the tree,)."""
    return closures.closure_state(robot_tree(tree), chain, len(chain.begin), q)


def linearised(tree: Robot, z: Array, chain: Closures) -> tuple[Array, Array]:
    """Return the values (m,) of all closure equations at coordinates z, and their derivatives (m, coordinates)."""
    q = chain.offset + np.where(chain.source >= 0, chain.ratio * z[chain.source], 0.0)
    equations, jacobian, _ = _closure_state(tree, chain, q)
    return equations[:, 0], jacobian


def _closed_posture(robot: Robot, loops: Loops, tree: Robot, dof: int, z: Array, chain: Closures) -> Array:
    """Return coordinates near z at which the loops are closed; positions of independent joints change only if
    needed."""
    for free in (slice(dof, None), slice(None)):
        trial = z.copy()
        for _ in range(100):
            phi, jacobian = linearised(tree, trial, chain)
            if not np.isfinite(jacobian).all():
                break  # the numbers overflow; the loop stays open
            step = np.linalg.lstsq(jacobian[:, free], phi, rcond=1e-9)[0]
            trial[free] -= step / max(1.0, 4.0 * np.abs(step).max(initial=0.0))
            if np.abs(step).max(initial=0.0) < 1e-13:
                break
        phi, _ = linearised(tree, trial, chain)
        if np.abs(phi).max() < _CLOSED_TO:
            return trial
    worst = int(np.argmax(np.nan_to_num(np.abs(phi), nan=np.inf)))
    name = loops.closures[owners(loops.closures)[worst]].name
    raise RobotError(f"loop '{name}' of robot '{robot.name}' cannot be closed near its posture: "
                     f"{abs(phi[worst]):.3g} m remain open; check its attachment points, lengths and posture",
                     code="loop-not-closed")


def _independent_rows(robot: Robot, jacobian: Array, dof: int) -> Ints:
    """Return the indices of equations that determine the dependent joints, as many as there are such joints.

    jacobian (m, coordinates): derivatives of all equations in the initial posture.
    """
    from scipy.linalg import qr

    from dynid.dynamics.loop_faults import holding_loop, loose_loop

    following = jacobian[:, dof:]
    count = following.shape[1]
    values = np.linalg.svd(following, compute_uv=False)
    rank = int(np.sum(values > _RANK_TOLERANCE * max(values.max(initial=0.0), 1e-300)))
    assert robot.followers is not None
    names = robot.followers.following
    if rank < count:
        null = np.linalg.svd(following)[2][rank:]
        loose = tuple(name for name, share in zip(names, np.abs(null).max(axis=0), strict=True) if share > 0.1)
        raise RobotError(f"loop '{loose_loop(robot.followers, loose)}' of robot '{robot.name}' leaves {count - rank} "
                         f"of the dependent joints undetermined: {', '.join(loose)}",
                         "give another posture, make one of them independent, or add a closure",
                         code="loop-undetermined")
    whole = np.linalg.svd(jacobian, compute_uv=False)
    if int(np.sum(whole > _RANK_TOLERANCE * whole.max())) > count:
        loop = holding_loop(robot.followers, jacobian, dof, _RANK_TOLERANCE)
        raise RobotError(f"loop '{loop}' of robot '{robot.name}' leaves no degree of freedom to its joints "
                         f"{', '.join(robot.joint_names)}", f"make more joints dependent than {', '.join(names)}, or "
                         "remove a closure", code="loop-without-freedom")
    return np.sort(qr(following.T, pivoting=True, mode="economic")[2][:count]).astype(np.int64)


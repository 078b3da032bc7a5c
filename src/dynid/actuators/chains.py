"""Independent joint chains of a robot, such as its legs: a joint on the base and all joints that it carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dynid.actuators.columns import JOINT_COLUMNS
from dynid.actuators.rollout_kernel import WORK_ROWS, limit_speed, rollout
from dynid.arrays import Array, Ints
from dynid.dynamics.state import pack
from dynid.dynamics.tree import Tree, robot_tree
from dynid.errors import ModelError
from dynid.recording import Recording
from dynid.robot import Body, Joint, Robot

# s: largest integration step of a final simulation; half the step changes positions by less than a count of a 12-bit
# encoder
LARGEST_STEP = 2.5e-3
# thickness relative to the length: simulators refuse a body without extent; the inertia changes by 1e-6
PENDULUM_THICKNESS = 1e-3
SIMULATION_STEPS = (1e-2, 5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4)  # s; the longest step that is accurate enough is used


@dataclass(frozen=True, eq=False)
class Chain:
    """Joints of a robot that are dynamically independent of its other joints, such as the joints of one leg.

    Attributes:
        joints: indices of the joints in the robot (n,).
        tree: kinematic tree of these joints alone.
        bodies: ten inertial parameters of each link (n, 10).
    """

    joints: Ints
    tree: Tree
    bodies: Array

    def packed(self, scale: Array | None = None) -> Array:
        """Return the work array of the compiled dynamics; scale (n,): factors on the links' inertial parameters."""
        return pack(self.tree, self.bodies if scale is None else self.bodies * scale[:, None])


def robot_chains(robot: Robot) -> list[Chain]:
    """Return the independent chains of a robot with a fixed base and known links."""
    if robot.followers is not None:
        raise ModelError(f"robot '{robot.name}' has dependent joints, which actuator identification does not support",
                         "give a robot file without closed loops and mimic joints", "dependent-joints")
    missing = robot.bodies_without_inertia
    tree = robot_tree(robot)
    if missing:
        raise ModelError(f"robot '{robot.name}' states no inertia of {', '.join(missing)}",
                         "add inertias to the robot file: without torques, only these set the scale of all estimates",
                         "links-not-known")
    bodies = robot.inertias
    root = np.arange(robot.dof)
    for j, parent in enumerate(tree.parent):
        root[j] = j if parent < 0 else root[parent]
    chains = []
    for top in np.unique(root):
        own = np.flatnonzero(root == top)
        place = {int(j): k for k, j in enumerate(own)}
        parent = np.array([place.get(int(tree.parent[j]), -1) for j in own], dtype=np.int64)
        chains.append(Chain(own, Tree(parent, tree.pose[own], tree.axis[own], tree.gravity), bodies[own].copy()))
    return chains


@dataclass(frozen=True, eq=False)
class LogSignals:
    """Signals of one log for the simulation of a chain of n joints.

    Attributes:
        t: time stamps (rows,), s.
        q: measured positions (rows, n).
        command, total: commanded positions at each row and their integrals over time (rows, n).
        ramp: slopes of the commands after each row, rad/s, and their duration, s (2, rows, n); zero for constant
            commands.
        rate: commanded velocities (rows, n).
        feed, supply: feed-forward and supply of the drives (rows, n), see `DriveLaw.signals`.
        starts: rows (segments,) at which the simulation restarts, because the rows before a restart are missing.
        first: positions and velocities at the rows `starts` (segments, 2, n).
    """

    t: Array
    q: Array
    command: Array
    total: Array
    ramp: Array
    rate: Array
    feed: Array
    supply: Array
    starts: Ints
    first: Array

    @staticmethod
    def from_log(log: Recording, joints: Ints, signals: Mapping[str, Array], gap: float, restart: float | None = None) \
            -> LogSignals:
        """Return the signals of the given joints from a log.

        Args:
            log: the log.
            joints: indices of the joints.
            signals: feed and supply (rows, dof), if the drive law uses them.
            gap: time between two rows beyond which the simulation restarts, s.
            restart: time after which the simulation restarts in any case, s; None for no such limit.
        """
        assert log.reference is not None
        t, q = np.ascontiguousarray(log.t), np.ascontiguousarray(log.q[:, joints])
        command = np.ascontiguousarray(log.reference[:, joints])
        rate = np.gradient(command, t, axis=0) if log.reference_velocity is None else log.reference_velocity[:, joints]
        starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(t) > gap)])
        if restart is not None:
            length, pieces = max(int(restart / np.median(np.diff(t))), 2), []
            for a, b in pairwise([*starts, len(t)]):
                piece = np.arange(a, b, length)
                pieces.append(piece if len(piece) < 2 or b - piece[-1] > 10 else piece[:-1])
            starts = np.concatenate(pieces)
        first = np.array([_state(t, q, int(a), int(b)) for a, b in pairwise([*starts, len(t)])])
        ramp = np.zeros((2, *command.shape))
        feed, supply = (np.ascontiguousarray(signals[name][:, joints]) if name in signals else np.full_like(q, default)
                        for name, default in (("feed", 0.0), ("supply", 1.0)))
        return LogSignals(t, q, command, _integral(t, command, ramp), ramp, np.ascontiguousarray(rate), feed, supply,
                          starts.astype(np.int64), first)

    def at_speeds(self, limits: Array) -> LogSignals:
        """Return the signals with commands whose speed is limited by the drives to `limits` (n,), rad/s."""
        if not np.isfinite(limits).any():
            return self
        target, ramp = np.empty_like(self.command), np.zeros_like(self.ramp)
        limit_speed(self.t, self.command, self.starts, limits, target, ramp)
        return replace(self, command=target, total=_integral(self.t, target, ramp), ramp=ramp)


def _integral(t: Array, values: Array, ramp: Array) -> Array:
    """Return the integral over time (rows, n) of commands (rows, n) from the first row to each row; ramp (2, rows, n):
    see `LogSignals`."""
    slope, length = ramp[:, :-1]
    span = np.diff(t)[:, None]
    parts = values[:-1] * span + slope * length * (span - 0.5 * length)
    return np.vstack([np.zeros((1, values.shape[1])), np.cumsum(parts, axis=0)])


_STATE_WINDOW = 0.05  # s of positions to which a parabola is fitted for the state at the start of a simulation
_MIN_STATE_ROWS = 5  # smallest number of rows to which the parabola is fitted


def _state(t: Array, q: Array, start: int, stop: int) -> Array:
    """Return position and velocity (2, n) at row `start`, from a parabola fitted to the rows that follow it."""
    count = min(max(int(np.searchsorted(t[start:stop], t[start] + _STATE_WINDOW)), _MIN_STATE_ROWS), stop - start)
    if count < 3:
        return np.vstack([q[start], np.zeros_like(q[start])])
    since = t[start:start + count] - t[start]
    powers = np.column_stack([np.ones_like(since), since, since ** 2])
    return np.linalg.lstsq(powers, q[start:start + count], rcond=None)[0][:2]


def simulate_chain(chain: Chain, log: LogSignals, numbers: Array, *, rows: Array | None = None,
                   step: float = LARGEST_STEP) -> Array | None:
    """Return encoder positions and velocities (2, rows, n) of a chain in closed loop; None if the simulation diverges.

    Args:
        chain, log: the chain and the signals of a log.
        numbers: parameters of each joint (n, JOINT_COLUMNS), see `columns`.
        rows: work array of `Chain.packed`; by default the work array of the known links.
        step: largest integration step, s.
    """
    n = len(chain.joints)
    assert numbers.shape == (n, JOINT_COLUMNS)
    out = np.zeros((2, *log.q.shape))
    done = rollout(chain.tree.parent, chain.tree.gravity, chain.packed() if rows is None else rows, log.t, log.command,
                   log.total, log.ramp, log.rate, log.feed, log.supply, log.starts, log.first, numbers, step,
                   np.zeros((WORK_ROWS, n)), np.zeros((n, n)), np.zeros((n, n)), out)
    return out if done and np.isfinite(out[0]).all() else None


def pendulum(mass: float, length: float, arm_mass: float = 0.0, *, joint: str = "joint") -> Robot:
    """Return a pendulum of one joint that hangs down at position 0: a point mass at the end of a thin rod.

    Args:
        mass: point mass, kg.
        length: distance from the axis to the point mass, m.
        arm_mass: mass of the rod, kg.
        joint: name of the joint.
    """
    if not (mass >= 0 and length > 0 and arm_mass >= 0 and mass + arm_mass > 0):
        raise ModelError(f"a pendulum needs a length above zero and a mass, got mass {mass:g} kg, arm mass "
                         f"{arm_mass:g} kg and length {length:g} m", code="wrong-pendulum")
    turned = np.array([[1.0, 0, 0, 0], [0, 0, -1.0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]])  # the joint axis is horizontal
    inertia = (mass + arm_mass / 3.0) * length ** 2
    moment = (mass + arm_mass / 2.0) * length
    solid = PENDULUM_THICKNESS ** 2 * inertia
    ten = np.array([inertia + solid, 0, 0, solid, 0, inertia + solid, 0, -moment, 0, mass + arm_mass])
    return Robot("pendulum", (Joint(joint, "revolute", -1, turned, np.eye(4)),), (Body("pendulum", ten),))

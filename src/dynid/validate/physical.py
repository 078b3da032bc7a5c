"""How parameters behave as a robot: inertia matrices over its postures, a free fall, the forces inside its links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.model import LinearModel, Model, least_inertia
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.simulation import Reference, TorqueDriven, dry_elements, simulate
from dynid.simulation.plant import can_compile, make_plant

SECONDS = 10.0
_CHUNK = 0.5  # s of a fall that are simulated at a time, so that what came before a divergence is kept
_RATE = 500.0  # Hz: rows of a fall
_STEPS = (1e-3, 2e-4, 5e-5)  # s: of the integrator, the next one when energy seems to grow
_GROWTH = 1e-3  # share of the energy in play by which integration may let it grow
_POSTURES = 200  # among which a fall begins where gravity pulls hardest
_FASTEST = 1e5  # rad/s or m/s: light links spin fast in a free fall, but not that fast


def random_postures(robot: Robot, samples: int, seed: int = 0) -> Array:
    """Postures (samples, dof) inside the joints' limits; half a turn or a metre either way where there are none."""
    low, high = robot.limit("lower"), robot.limit("upper")
    wide = np.array([1.0 if joint.prismatic else np.pi for joint in robot.joints])
    low, high = np.where(np.isfinite(low), low, -wide), np.where(np.isfinite(high), high, wide)
    return low + (high - low) * np.random.default_rng(seed).random((samples, robot.dof))


def positive_inertia_share(model: LinearModel, theta: ArrayLike, *, samples: int = 10000, seed: int = 0) -> float:
    """Share of random postures in which the inertia matrix is positive definite: 1 for every robot that can exist.

    theta (parameters,): any vector with the torques in question, a base vector expanded will do.
    """
    own = _made_from_a_robot(model, "inertia matrices over postures")
    matrices = own.inertia_matrix(own.parameters.vector(theta), random_postures(own.robot, samples, seed))
    return float(np.mean(least_inertia(matrices)[0] > 0.0))


def positive_inertia_line(model: LinearModel, first: ArrayLike, second: ArrayLike, *, shares: ArrayLike = (0.0, 1.0),
                          samples: int = 10000, seed: int = 0) -> Array:
    """The same along the line (1 - share) first + share second, for every share (Sousa, fig. 6.1)."""
    own = _made_from_a_robot(model, "inertia matrices over postures")
    postures = random_postures(own.robot, samples, seed)
    ends = [own.inertia_matrix(own.parameters.vector(theta), postures) for theta in (first, second)]  # linear in theta
    return np.array([np.mean(least_inertia((1.0 - x) * ends[0] + x * ends[1])[0] > 0.0)
                     for x in np.atleast_1d(np.asarray(shares, dtype=float))])


# -- free fall --------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FreeFall:
    """A robot let go without torques: t (rows,), q, dq (rows, dof), kinetic, potential (rows,), J.

    friction: whether it was on. step: s, of the integrator. seconds: how long it was to fall. diverged: why the
    simulation ended early, empty if it did not. Potential energy holds gravity, springs and constant torques.
    """

    t: Array
    q: Array
    dq: Array
    kinetic: Array
    potential: Array
    friction: bool
    step: float
    seconds: float
    diverged: str = ""

    @property
    def energy(self) -> Array:
        """Kinetic and potential together (rows,), J."""
        return self.kinetic + self.potential

    @property
    def growth(self) -> float:
        """The most by which the energy ever stood above an earlier value, J."""
        return float((self.energy - np.minimum.accumulate(self.energy)).max())

    @property
    def in_play(self) -> float:
        """How much energy takes part in the motion, J."""
        return float(max(np.ptp(self.potential), np.abs(self.kinetic).max(), 1e-9))

    @property
    def stable(self) -> bool:
        """It fell to the end, and its energy never grew by more than integration explains."""
        return not self.diverged and self.growth <= _GROWTH * self.in_play and float(self.kinetic.min()) >= 0.0

    @property
    def sentence(self) -> str:
        how = "with friction" if self.friction else "without friction"
        if self.diverged:
            return f"let go {how}, the model did not last {self.seconds:g} s: {self.diverged}"
        if float(self.kinetic.min()) < 0.0:
            return f"let go {how}, the model reached a kinetic energy of {self.kinetic.min():.3g} J, below zero"
        if not self.stable:
            return (f"let go {how}, the model gained {self.growth:.3g} J out of nothing within {self.seconds:g} s, "
                    f"{100.0 * self.growth / self.in_play:.3g} % of the energy in play")
        return (f"let go {how}, the model fell for {self.seconds:g} s and its energy never grew (at most "
                f"{self.growth:.2g} J of {self.in_play:.3g} J, by integration)")


def free_fall(model: LinearModel, theta: ArrayLike, *, seconds: float = SECONDS, friction: bool = True,
              start: ArrayLike | None = None, seed: int = 0) -> FreeFall:
    """Let a robot go without torques and watch its energy (Sousa, s. 5.1). Joint limits do not stop it.

    start (dof,): posture at rest; by default, of some random ones inside the limits, the one where gravity pulls
    hardest. friction: False leaves out all that is neither inertia nor spring, so that energy must stay what it is.
    """
    own = _made_from_a_robot(model, "a free fall")
    if not can_compile(own):
        raise ModelError("a free fall needs a model all of whose terms give their elements")
    values = own.parameters.vector(theta).copy()
    if not friction:
        values[own.parameters.of_group("friction", "offset", "other")] = 0.0
    bodies = own.body_numbers(values)
    if start is None:
        postures = random_postures(own.robot, _POSTURES, seed)
        pull = np.linalg.norm(dynamics.gravity(own.robot, postures, bodies), axis=1)
        posture = postures[int(np.argmax(pull))]
    else:
        posture = np.asarray(start, dtype=float)
        if posture.shape != (own.dof,) or not np.isfinite(posture).all():
            raise ModelError(f"a fall starts from {own.dof} finite positions, got shape {posture.shape}")
    found: FreeFall | None = None
    for step in _STEPS:
        found = _fall(own, values, bodies, posture, seconds, friction, step)
        if found.stable:
            break
    assert found is not None
    return found


def _fall(model: Model, theta: Array, bodies: Array, posture: Array, seconds: float, friction: bool,
          step: float) -> FreeFall:
    """One fall with one step of the integrator."""
    rows = max(2, round(_CHUNK * _RATE))
    still = np.zeros((rows + 1, model.dof))
    reference = Reference(np.tile(posture, (rows + 1, 1)), still, still, _RATE)
    unheeded = Reference(reference.q, np.full_like(still, 0.1 * _FASTEST), still, _RATE)  # its speed is the limit
    state, parts, diverged = np.array([posture, np.zeros(model.dof)]), [], ""
    try:
        widths = dry_elements(model, theta, reference, min(step, 1.0 / _RATE))[1]
        smooth: dict[str, Any] = {"smooth": widths} if len(widths) else {}
        for k in range(max(1, round(seconds / _CHUNK))):
            unheeded = replace(unheeded, start=k * _CHUNK)
            part = simulate(model, theta, TorqueDriven(still), unheeded, step=step, start=state, **smooth)
            parts.append(np.stack([part.q, part.dq])[:, :-1])
            state = np.stack([part.q[-1], part.dq[-1]])
    except NotPossibleError as error:
        diverged = str(error)
    motion = np.concatenate([*parts, state[:, None]], axis=1)
    q, dq = np.ascontiguousarray(motion[0]), np.ascontiguousarray(motion[1])
    plant = make_plant(model, theta)
    # What terms of other kinds than friction do is counted as stored: whether it comes back only they know.
    others = np.where(model.parameters.of_group("other"), theta, 0.0)
    power = np.sum(model.inverse_dynamics(others, q, dq, np.zeros_like(q)) * dq, axis=1)
    stored = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1])) / _RATE])
    kinetic = 0.5 * np.einsum("ti,tij,tj->t", dq, model.inertia_matrix(theta, q), dq)
    potential = (dynamics.potential_energy(model.robot, q, bodies) + q ** 2 @ (0.5 * plant.spring)
                 + q @ plant.constant + stored)
    return FreeFall(np.arange(len(q)) / _RATE, q, dq, kinetic, potential, friction, step, seconds, diverged)


# -- forces inside ----------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class WrenchComparison:
    """Norms of the force (N) and moment (N m) through every joint for several parameter sets along one motion.

    names: of the sets, joints: of the joints, t (rows,), forces, moments (sets, rows, joints).
    """

    names: tuple[str, ...]
    joints: tuple[str, ...]
    t: Array
    forces: Array
    moments: Array

    def apart(self, name: str, other: str) -> Array:
        """Largest difference of the forces' norms of two sets at each joint (joints,), N."""
        one, two = (self.forces[self.names.index(x)] for x in (name, other))
        return np.asarray(np.abs(one - two).max(axis=0))


def wrench_comparison(model: LinearModel, sets: Mapping[str, ArrayLike], motion: Samples) -> WrenchComparison:
    """Forces inside the links of several full parameter vectors along a motion (Simionato, fig. 5.6).

    Sets with the same torques may differ here: torques do not see them.
    """
    own = _made_from_a_robot(model, "forces inside links")
    if not sets:
        raise ModelError("there are no parameter sets to compare")
    wrenches = np.array([dynamics.link_wrenches(own.robot, motion.q, motion.dq, motion.ddq,
                                                own.body_numbers(theta))
                         for theta in sets.values()])
    forces, moments = (np.linalg.norm(part, axis=-1) for part in (wrenches[..., :3], wrenches[..., 3:]))
    return WrenchComparison(tuple(sets), own.robot.joint_names, motion.t, forces, moments)


def _made_from_a_robot(model: LinearModel, what: str) -> Model:
    if not isinstance(model, Model) or not set(model.robot.body_names) <= set(model.parameters.bodies):
        raise ModelError(f"{what} need a model made from a robot with its bodies")
    return model


"""Physical properties of identified parameters: consistency of links, inertia matrices, free fall, internal forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate
from dynid.findings import VIOLATION
from dynid.model import LinearModel, Model, least_inertia, required_robot_model, robot_model
from dynid.model.completion import can_compile
from dynid.order_statistics import distinct
from dynid.output_fields import array_of, output_fields, record
from dynid.plain import plain
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.robot.inertia import pseudo_inertia, to_central

if TYPE_CHECKING:
    from dynid.consistency import Violation

SECONDS = 10.0
_FALL_PIECE = 0.5  # s: interval of a fall simulated at a time, so that rows before a divergence are kept
_FALL_RATE = 500.0  # Hz: output rate of a fall
_INTEGRATOR_STEPS = (1e-3, 2e-4, 5e-5)  # s: integration steps, the next smaller one if energy seems to grow
_MAX_ENERGY_GROWTH = 1e-3  # growth of energy by integration errors that is allowed, relative to `FreeFall.in_play`
_FALL_POSTURES = 200  # random postures, of which a fall starts at the one with the largest gravity torques
_MAX_FREE_FALL_SPEED = 1e5  # rad/s or m/s: faster than any light link spins in free fall
POSTURES = 2000  # postures at which the inertia matrix of an estimate is tested
_FORCE_ROWS = 1500  # rows of a log along which internal forces are compared
_IDENTIFIED, _FILE = "identified", "robot's file"


def random_postures(robot: Robot, samples: int, seed: int = 0) -> Array:
    """Return random postures (samples, dof) inside the joint limits; without limits within half a turn or one metre."""
    low, high = robot.limit("lower"), robot.limit("upper")
    wide = np.array([1.0 if joint.prismatic else np.pi for joint in robot.joints])
    low, high = np.where(np.isfinite(low), low, -wide), np.where(np.isfinite(high), high, wide)
    return low + (high - low) * np.random.default_rng(seed).random((samples, robot.dof))


def positive_inertia_share(model: LinearModel, theta: ArrayLike, *, samples: int = 10000, seed: int = 0) -> float:
    """Return the share of random postures with a positive definite inertia matrix: 1 for a physically consistent robot.

    theta (parameters,): any parameter vector with the robot's torques, such as an expanded base vector.
    """
    own = _made_from_a_robot(model, "the test of inertia matrices")
    matrices = own.inertia_matrix(own.parameters.vector(theta), random_postures(own.robot, samples, seed))
    return float(np.mean(least_inertia(matrices)[0] > 0.0))


def positive_inertia_line(model: LinearModel, first: ArrayLike, second: ArrayLike, *, shares: ArrayLike = (0.0, 1.0),
                          samples: int = 10000, seed: int = 0) -> Array:
    """Return the share of random postures with a positive definite inertia matrix for the parameter vectors (1 - share)
    first + share second, one result per share (Sousa, fig. 6.1)."""
    own = _made_from_a_robot(model, "the test of inertia matrices")
    postures = random_postures(own.robot, samples, seed)
    ends = [own.inertia_matrix(own.parameters.vector(theta), postures) for theta in (first, second)]  # linear in theta
    return np.array([np.mean(least_inertia((1.0 - x) * ends[0] + x * ends[1])[0] > 0.0)
                     for x in np.atleast_1d(np.asarray(shares, dtype=float))])


# -- free fall --------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FreeFall:
    """Free fall of a robot without torques: t (rows,), s, q, dq (rows, dof), kinetic, potential (rows,), J.

    Attributes:
        potential: energy of gravity, springs and constant torques.
        friction: whether friction was included.
        step: integration step, s.
        seconds: requested duration, s.
        diverged: reason why the simulation ended early; empty if it reached the end.
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
        """Kinetic plus potential energy (rows,), J."""
        return self.kinetic + self.potential

    @property
    def growth(self) -> float:
        """Largest increase of the energy over an earlier value, J."""
        return float((self.energy - np.minimum.accumulate(self.energy)).max())

    @property
    def in_play(self) -> float:
        """Energy of the motion, J: the range of the potential or the maximum of the kinetic energy."""
        return float(max(np.ptp(self.potential), np.abs(self.kinetic).max(), 1e-9))

    @property
    def stable(self) -> bool:
        """Whether the model fell to the end without an increase of energy beyond integration errors."""
        grows = self.growth > _MAX_ENERGY_GROWTH * self.in_play
        return not self.diverged and not grows and float(self.kinetic.min()) >= 0.0

    def until(self, row: int) -> FreeFall:
        """Return the fall up to a row, at least the first row."""
        rows = slice(0, max(row, 1))
        return replace(self, t=self.t[rows], q=self.q[rows], dq=self.dq[rows], kinetic=self.kinetic[rows],
                       potential=self.potential[rows], diverged="")

    @property
    def sentence(self) -> str:
        how = "with friction" if self.friction else "without friction"
        if self.diverged:
            return f"released {how}, the model diverged within {self.seconds:g} s: {self.diverged}"
        if float(self.kinetic.min()) < 0.0:
            return f"released {how}, the model reached a negative kinetic energy of {self.kinetic.min():.3g} J"
        if not self.stable:
            return (f"released {how}, the model gained {self.growth:.3g} J of energy within {self.seconds:g} s, "
                    f"{100.0 * self.growth / self.in_play:.3g} % of the total energy")
        return (f"released {how}, the model moved for {self.seconds:g} s and its energy did not increase (by more "
                f"than {self.growth:.2g} J of {self.in_play:.3g} J, an error of the integration)")


def free_fall(model: LinearModel, theta: ArrayLike, *, seconds: float = SECONDS, friction: bool = True,
              start: ArrayLike | None = None, seed: int = 0) -> FreeFall:
    """Simulate a robot without torques and record its energy (Sousa, s. 5.1). Joint limits are ignored.

    Args:
        model, theta: model, and its parameters (parameters,).
        seconds: duration of the fall, s.
        friction: False includes only inertias and springs, so that energy must be constant.
        start: (dof,), initial posture; default: the one with the largest gravity torques among random postures.
        seed: seed of the random postures.
    """
    own = _made_from_a_robot(model, "a free fall")
    if not can_compile(own):
        raise ModelError("a free fall needs a model all of whose terms define their elements")
    values = own.parameters.vector(theta).copy()
    if not friction:
        values[own.parameters.of_group("friction", "offset", "other")] = 0.0
    bodies = own.body_numbers(values)
    if start is None:
        postures = random_postures(own.robot, _FALL_POSTURES, seed)
        gravity_torque = np.linalg.norm(dynamics.gravity(own.robot, bodies, postures), axis=1)
        posture = postures[int(np.argmax(gravity_torque))]
    else:
        posture = np.asarray(start, dtype=float)
        if posture.shape != (own.dof,) or not np.isfinite(posture).all():
            raise ModelError(f"a free fall needs {own.dof} finite initial positions, got shape {posture.shape}",
                             code="bad-shape")
    falls = [_fall(own, values, bodies, posture, seconds, friction, _INTEGRATOR_STEPS[0])]
    for step in _INTEGRATOR_STEPS[1:]:
        if not falls[-1].stable:
            falls.append(_fall(own, values, bodies, posture, seconds, friction, step))
    return falls[-1]


def _fall(model: Model, theta: Array, bodies: Array, posture: Array, seconds: float, friction: bool,
          step: float) -> FreeFall:
    """Simulate one free fall with a given integration step."""
    from dynid.simulation import Reference, TorqueDriven, dry_elements, simulate
    from dynid.simulation.plant import make_plant

    rows = max(2, round(_FALL_PIECE * _FALL_RATE))
    still = np.zeros((rows + 1, model.dof))
    reference = Reference(np.tile(posture, (rows + 1, 1)), still, still, _FALL_RATE)
    # The plant stops the fall at its speed limit.
    unheeded = Reference(reference.q, np.full_like(still, 0.1 * _MAX_FREE_FALL_SPEED), still, _FALL_RATE)
    state, parts, diverged = np.array([posture, np.zeros(model.dof)]), [], ""
    try:
        widths = dry_elements(model, theta, reference, min(step, 1.0 / _FALL_RATE))[1]
        smooth: dict[str, Any] = {"smooth": widths} if len(widths) else {}
        for k in range(max(1, round(seconds / _FALL_PIECE))):
            unheeded = replace(unheeded, start=k * _FALL_PIECE)
            part = simulate(model, theta, TorqueDriven(still), unheeded, step=step, start=state, **smooth)
            parts.append(np.stack([part.q, part.dq])[:, :-1])
            state = np.stack([part.q[-1], part.dq[-1]])
    except NotPossibleError as error:
        diverged = str(error)
    motion = np.concatenate([*parts, state[:, None]], axis=1)
    q, dq = np.ascontiguousarray(motion[0]), np.ascontiguousarray(motion[1])
    plant = make_plant(model, theta)
    # Torques of terms other than friction count as stored energy, because only the terms know whether it is returned.
    others = np.where(model.parameters.of_group("other"), theta, 0.0)
    power = np.sum(model.inverse_dynamics(others, q, dq, np.zeros_like(q)) * dq, axis=1)
    stored = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1])) / _FALL_RATE])
    kinetic = 0.5 * np.einsum("ti,tij,tj->t", dq, model.inertia_matrix(theta, q), dq)
    potential = (dynamics.potential_energy(model.robot, bodies, q) + q ** 2 @ (0.5 * plant.spring)
                 + q @ plant.constant + stored)
    return FreeFall(np.arange(len(q)) / _FALL_RATE, q, dq, kinetic, potential, friction, step, seconds, diverged)


# -- internal forces ---------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class WrenchComparison:
    """Norms of the internal force (N) and moment (N m) at every joint for several parameter sets along one motion.

    Attributes:
        names, joints: names of the parameter sets and of the joints.
        t: (rows,), times, s.
        forces, moments: (sets, rows, joints), norms of the forces, N, and moments, N m.
    """

    names: tuple[str, ...]
    joints: tuple[str, ...]
    t: Array
    forces: Array
    moments: Array

    def difference(self, name: str, other: str) -> Array:
        """Return the largest difference of the force norms of two sets at each joint (joints,), N."""
        one, two = (self.forces[self.names.index(x)] for x in (name, other))
        return np.asarray(np.abs(one - two).max(axis=0))


def wrench_comparison(model: LinearModel, sets: Mapping[str, ArrayLike], motion: Samples) -> WrenchComparison:
    """Return internal forces of several full parameter vectors along a motion (Simionato, fig. 5.6).

    Sets with equal joint torques may differ in internal forces, which joint torques do not determine.
    """
    own = _made_from_a_robot(model, "a comparison of reaction forces")
    if not sets:
        raise ModelError("there are no parameter sets to compare", code="no-parameter-sets")
    wrenches = np.array([dynamics.link_wrenches(own.robot, own.body_numbers(theta), motion.q, motion.dq, motion.ddq)
                         for theta in sets.values()])
    forces, moments = (np.linalg.norm(part, axis=-1) for part in (wrenches[..., :3], wrenches[..., 3:]))
    return WrenchComparison(tuple(sets), own.robot.joint_names, motion.t, forces, moments)


def _made_from_a_robot(model: LinearModel, what: str) -> Model:
    own = required_robot_model(model, what)
    if not set(own.robot.body_names) <= set(own.parameters.bodies):
        raise ModelError(f"{what} needs a model with all bodies of robot '{own.robot.name}'",
                         code="model-without-robot")
    return own


# -- physical properties of an estimate --------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class LinkPhysics:
    """One link as a rigid body.

    Attributes:
        name: name of the link.
        mass, file_mass: identified mass, and that of the nominal model or None, kg.
        centre: (3,), m, None without a positive mass.
        moments: (3,), principal moments about the centre, kg m^2, None without a positive mass.
        thickness: see `thickness`, nan without a positive mass.
        violations: violated conditions of physical consistency.
    """

    name: str
    mass: float
    file_mass: float | None
    centre: Array | None
    moments: Array | None
    thickness: float
    violations: tuple[Violation, ...]

    @output_fields(name=str, mass=float, file_mass=float | None, centre=list[float] | None,
                   moments=list[float] | None, thickness=float | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the rigid-body properties of the link as plain data for JSON."""
        return plain({name: value for name, value in vars(self).items() if name != "violations"})


_FREE_FALL = record("FreeFall", stable=bool, seconds=float, energy_growth=float | None, energy_in_play=float | None,
                    sentence=str)
_LARGEST_FORCES = record("LargestForces", joint=str, file=float | None, identified=float | None,
                         difference=float | None)


@dataclass(frozen=True, eq=False)
class Physics:
    """Physical properties of the identified parameters.

    Attributes:
        links: properties of each link, in the robot's order.
        violations: violated conditions of physical consistency, of links, friction and rotors.
        positive_share: share of `postures` random postures with a positive definite inertia matrix.
        fall: free fall of the robot, None if a term cannot be simulated.
        forces: internal forces of the nominal and the identified model along the log, None without nominal inertias.
    """

    links: tuple[LinkPhysics, ...]
    violations: tuple[Violation, ...]
    positive_share: float
    postures: int
    fall: FreeFall | None
    forces: WrenchComparison | None

    @property
    def possible(self) -> bool:
        """Whether the robot is physically consistent."""
        return not self.violations

    @property
    def joint_violations(self) -> tuple[Violation, ...]:
        """Violated conditions of friction and rotors, which belong to no link."""
        names = {link.name for link in self.links}
        return tuple(one for one in self.violations if one.link not in names)

    @property
    def largest_forces(self) -> tuple[dict[str, Any], ...]:
        """Largest force of each joint with nominal and identified inertias, and largest difference, N."""
        if self.forces is None:
            return ()
        file, identified = (self.forces.forces[self.forces.names.index(x)].max(axis=0) for x in (_FILE, _IDENTIFIED))
        difference = self.forces.difference(_IDENTIFIED, _FILE)
        return tuple({"joint": name, "file": float(file[j]), "identified": float(identified[j]),
                      "difference": float(difference[j])} for j, name in enumerate(self.forces.joints))

    @output_fields(possible=bool, violations=array_of(VIOLATION), links=list[LinkPhysics],
                   positive_inertia_share=float | None, postures=int, free_fall=_FREE_FALL | None,
                   forces=array_of(_LARGEST_FORCES))
    def to_dict(self) -> dict[str, Any]:
        """Return the physical properties as plain data for JSON."""
        fall = self.fall
        return plain({"possible": self.possible, "violations": [vars(one) for one in self.violations],
                      "links": self.links, "positive_inertia_share": self.positive_share, "postures": self.postures,
                      "free_fall": None if fall is None else {
                          "stable": fall.stable, "seconds": fall.t[-1], "energy_growth": fall.growth,
                          "energy_in_play": fall.in_play, "sentence": fall.sentence},
                      "forces": self.largest_forces})


def physics(estimate: Estimate, motion: Samples) -> Physics | None:
    """Return the physical properties of an estimate along a motion, or None without inertias of every body.

    These properties show whether the parameters suit simulation and control; a small torque error alone does not.
    """
    model, theta = robot_model(estimate.model), estimate.theta
    if theta is None or model is None or not all(
            len(model.parameters.bodies.get(name, ())) == 10 for name in model.robot.body_names):
        return None
    from dynid.consistency import Consistency

    violations = Consistency(model.parameters, margin=0.0).violations(theta)
    file = None if model.robot.bodies_without_inertia else model.robot.inertias
    try:
        fall = free_fall(model, theta)
    except ModelError:  # a term without a simulation
        fall = None
    return Physics(_link_physics(model, theta, file, violations), violations,
                   positive_inertia_share(model, theta, samples=POSTURES), POSTURES, fall,
                   None if file is None else _forces_beside_file(model, theta, file, motion))


def _link_physics(model: Model, theta: Array, file: Array | None,
                  violations: tuple[Violation, ...]) -> tuple[LinkPhysics, ...]:
    links = []
    for k, name in enumerate(model.robot.body_names):
        numbers = theta[model.parameters.bodies[name]]
        centre = moments = None
        if numbers[9] > 0:
            _, centre, central = to_central(numbers)
            moments = np.asarray(np.linalg.eigvalsh(central), dtype=float)
        links.append(LinkPhysics(name, float(numbers[9]), None if file is None else float(file[k, 9]), centre, moments,
                                 thickness(numbers), tuple(one for one in violations if one.link == name)))
    return tuple(links)


def thickness(numbers: Array) -> float:
    """Return the smallest share of the second moment of a body in any direction, in percent of one third: 0 for a
    plate, 100 for a ball, nan without a positive mass. Physically consistent bodies have at least 0."""
    mass = numbers[9]
    if mass <= 0:
        return float("nan")
    pseudo = pseudo_inertia(numbers)
    spread = pseudo[:3, :3] - np.outer(pseudo[:3, 3], pseudo[:3, 3]) / mass
    total = float(np.trace(spread))
    return 300.0 * float(np.linalg.eigvalsh(spread)[0]) / total if total > 0 else float("nan")


def _forces_beside_file(model: Model, theta: Array, file: Array, motion: Samples) -> WrenchComparison:
    """Return internal forces along some rows of a motion, for nominal inertias (file) and for theta."""
    nominal = theta.copy()
    for k, name in enumerate(model.robot.body_names):
        nominal[model.parameters.bodies[name]] = file[k]
    rows = distinct(np.linspace(0, len(motion.t) - 1, _FORCE_ROWS).astype(np.int64))
    part = Samples.from_arrays(motion.q[rows], motion.dq[rows], motion.ddq[rows], motion.tau[rows], t=motion.t[rows],
                               rate=motion.rate)
    return wrench_comparison(model, {_FILE: nominal, _IDENTIFIED: theta}, part)

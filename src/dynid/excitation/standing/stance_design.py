"""Optimal design of a motion with standing feet, and its information on the identifiable base parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.information import NOISE_SHARE, Information, magnitudes
from dynid.excitation.limits.limit_check import LimitReport, check_limits
from dynid.excitation.limits.motion_limits import MARGIN, Limits
from dynid.excitation.search.criteria import Criterion
from dynid.excitation.search.experiment_design import (
    NOISE_DEPENDENT,
    ExperimentDesign,
    Measurement,
    PriorKnowledge,
    nominal_values,
    smooth_model,
    with_model,
)
from dynid.excitation.search.motion_problem import MotionProblem
from dynid.excitation.standing.options import Standing, StandingEquations
from dynid.excitation.standing.stance import Stance, check_leg_count, home_configuration
from dynid.excitation.standing.standing_limit import StandingLimit, differences
from dynid.excitation.standing.support import Support
from dynid.excitation.standing.whole_body_trajectory import WholeBodyTrajectory
from dynid.excitation.trajectories.families import ConstrainedFamily, Family
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.floating import Contact
from dynid.floating.contacts import find_feet
from dynid.model import LinearModel, complete
from dynid.quantities import check_samples
from dynid.regression import BaseParameters
from dynid.regression.base import reduce_columns
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

# samples per period of the highest frequency, smallest and largest number of samples for the criterion
_SAMPLES_A_WAVE, _MIN_SAMPLES, _MAX_SAMPLES = 20, 80, 240
_CHECKED_SAMPLES = 10  # number of samples in the final check of all limits, relative to that of the criterion
_MIN_CHECKED = 1000  # smallest number of samples in the final check
_TYPICAL_STATES = 200  # random states for typical forces
_TYPICAL_RATE = 1.0  # rad/s and rad/s^2 (or m): standard deviation of velocities and accelerations of these states
_DRAWN_REACH = 0.5  # share of the ranges from which states for base parameters are drawn
_FREE_JOINT_REACH = 1.0  # rad: assumed half range of joints without a range


@dataclass(frozen=True, eq=False)
class StandingDesign(ExperimentDesign):
    """Experiment design of a motion with standing feet, whose trajectories have the driving coordinates alone. limit:
    limits of the standing feet and of all 6 + n coordinates."""

    limit: StandingLimit

    @property
    def all_limits(self) -> Limits:
        return self.limit.limits

    def whole(self, trajectory: Trajectory) -> WholeBodyTrajectory:
        return WholeBodyTrajectory(trajectory, self.limit)

    def nonlinear_excess(self, report: LimitReport) -> float:
        own = set(self.problem.limits.names)
        return max((u.excess for u in report.usages if u.where not in own or u.kind == "torque"), default=0.0)

    def check(self, trajectory: Trajectory) -> LimitReport:
        points = max(_CHECKED_SAMPLES * len(self.problem.t), _MIN_CHECKED)
        linear = check_limits(trajectory, self.problem.limits, None, points=points, unchecked=self.unchecked)
        t = np.linspace(0.0, trajectory.duration, points)
        motion = trajectory.at(t)
        nonlinear = self.limit.usages(t, *(np.ascontiguousarray(x) for x in motion[:3]))
        inside = (usage for usage in linear.usages if not usage.kind.endswith("posture"))  # the home posture is exact
        return replace(linear, usages=(*inside, *nonlinear))


def standing_design(model: LinearModel, standing: Standing, limits: Limits | None, family: Family,
                    criterion: str | Criterion, measurement: Measurement, prior: PriorKnowledge, seed: int
                    ) -> tuple[StandingDesign, tuple[str, ...]]:
    """Return the design of a motion that starts and ends at rest in the home posture while the feet stand, and remarks.

    The arguments are those of `excite`; limits are those of all 6 + n coordinates.
    """
    if prior.regression is not None:
        raise DynidError("a motion with standing feet cannot be designed to improve an earlier result",
                         "omit --improve", code="free-base-unsupported")
    limit, notes = home_limit(model, standing, limits, prior.nominal, seed)
    limits, stance = limit.limits, limit.support.stance
    criterion = Criterion(criterion) if isinstance(criterion, str) else criterion
    own = _driving_limits(limits, stance)
    reach = _DRAWN_REACH * np.where(np.isfinite(own.upper - own.lower), 0.5 * (own.upper - own.lower),
                                    _FREE_JOINT_REACH)
    base = standing_base_parameters(stance, model, standing.equations, reach, family.waves / family.duration)
    expected = _typical_forces(limit, reach) * NOISE_SHARE
    if measurement.noise is not None:
        expected = _with_given_noise(expected, measurement.noise)
    scale = prior.scale
    if isinstance(scale, str) or (scale is None and criterion.name in NOISE_DEPENDENT):
        scale = magnitudes(base, stance.robot)
    noisy = criterion.name in NOISE_DEPENDENT
    weights = 1.0 / expected if measurement.noise is not None or noisy else np.ones(model.dof)
    information = StandingInformation(Layout.from_model(model, base), weights,
                                      np.ones(len(base)) if scale is None else scale,
                                      stance=stance, equations=standing.equations, prior=1.0 if noisy else 0.0)
    count = int(np.clip(_SAMPLES_A_WAVE * family.waves, _MIN_SAMPLES, _MAX_SAMPLES))
    smooth = smooth_model(model, limits)
    motions = ConstrainedFamily.from_family(family.below(limits.bandwidth), stance.size, own.start, own.end)
    # The criterion uses fewer samples than the log, so the prior is reduced by the same factor.
    thinner = replace(information, prior=information.prior * count / max(family.duration * measurement.rate, 1.0))
    problem = MotionProblem(motions, with_model(thinner, smooth), criterion, own,
                            (replace(limit, model=smooth),), np.linspace(0.0, family.duration, count))
    check_samples(family.duration, measurement.rate)
    return StandingDesign(problem, information, None, (), measurement.rate, expected, limit), notes


def home_limit(model: LinearModel, standing: Standing, limits: Limits | None, nominal: ArrayLike | None = None,
               seed: int = 0) -> tuple[StandingLimit, tuple[str, ...]]:
    """Return the limits of standing feet about a home posture, which is chosen if none is given, and remarks. Arguments
    are those of `excite`; nominal: parameters (parameters,), by default those of the model."""
    robot = complete(model).robot
    if robot is None:
        raise DynidError("a motion with standing feet needs a model of a robot, but the given model has no robot",
                         code="no-robot")
    contacts = standing.contacts(robot)
    check_leg_count(robot, contacts)
    theta = nominal_values(model, nominal)
    if theta is None:
        raise DynidError(f"robot '{robot.name}' has no inertias, so its balance cannot be computed",
                         "give its masses and inertias in the robot file", code="no-inertias")
    ranges = limits_with_base(Limits.from_robot(robot, margin=MARGIN) if limits is None else limits, standing)
    weight, lifted = _weight(robot), _lifted_feet(robot, contacts)

    def limit_at(configuration: Array) -> StandingLimit:
        stance = Stance.from_robot(robot, contacts, configuration)
        gain = float(stance.postures(stance.home_coordinates[None]).gain[0])
        return StandingLimit(Support.from_stance(stance, standing, weight), standing, ranges, complete(model), theta,
                             lifted, gain)

    def excess(configuration: Array) -> float:
        """Return the largest violation of a limit in a configuration at rest."""
        try:
            limit = limit_at(configuration)
        except NotPossibleError:  # singular legs, or an empty support polygon
            return np.inf
        x = limit.support.stance.home_coordinates[None]
        return float(limit.values(x, np.zeros_like(x), np.zeros_like(x)).max())

    configuration, notes = home_configuration(robot, contacts, ranges, standing.home, excess, seed)
    return limit_at(configuration), notes


def _with_given_noise(assumed: Array, given: ArrayLike) -> Array:
    """Return the noise of the equations (6 + n,) from given noise of all equations, or of the joints as one number or
    (n,); the noise of the base is then `assumed`."""
    values = np.atleast_1d(np.asarray(given, dtype=float))
    joints = len(assumed) - SIX
    if values.size not in (1, joints, len(assumed)) or not np.isfinite(values).all() or not (values > 0).all():
        raise DynidError(f"the torque noise must be one number above zero, or {joints} numbers, one per joint, got "
                         f"{', '.join(f'{x:g}' for x in values)}", code="wrong-noise")
    if values.size == len(assumed):
        return values
    return np.concatenate([assumed[:SIX], np.broadcast_to(values, (joints,))])


def _weight(robot: Robot) -> float:
    """Return the weight of a robot, N; raise an error if gravity is not along -z of the world."""
    gravity = np.asarray(robot.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0 or abs(gravity[2] / size + 1.0) > 1e-6:
        raise DynidError(f"robot '{robot.name}' stands on level ground only if gravity is along -z, but its gravity is "
                         f"{', '.join(f'{x:g}' for x in gravity)}", code="gravity-not-down")
    return float(robot.inertias[:, 9].sum()) * size


def _lifted_feet(robot: Robot, contacts: tuple[Contact, ...]) -> tuple[str, ...]:
    """Return the names of frames that look like feet by their names, on links without a standing contact."""
    standing = {robot.frame(contact.frame).body for contact in contacts}
    return tuple(name for name in find_feet(robot) if robot.frame(name).body not in standing)


def limits_with_base(limits: Limits, standing: Standing) -> Limits:
    """Return the limits of all 6 + n coordinates, with sway and tilt as limits of the base."""
    reach = np.repeat([standing.sway, standing.tilt], 3)
    lower, upper = limits.lower.copy(), limits.upper.copy()
    lower[:SIX], upper[:SIX] = np.maximum(lower[:SIX], -reach), np.minimum(upper[:SIX], reach)
    return replace(limits, lower=lower, upper=upper, start=None, end=None, outermost=None)


def _driving_limits(limits: Limits, stance: Stance) -> Limits:
    """Return the limits of the driving coordinates, which start and end in the home posture."""
    own, home = stance.driving, stance.home_coordinates
    chosen = replace(limits, lower=limits.lower[own], upper=limits.upper[own], velocity=limits.velocity[own],
                     acceleration=limits.acceleration[own], jerk=limits.jerk[own], torque=limits.torque[own],
                     names=tuple(limits.names[k] for k in own), space=None, loops=None, outermost=None)
    chosen.refuse_unbounded("unbounded-joint")
    chosen.refuse_outside(home, "home")
    return replace(chosen, start=home, end=home)


def _typical_forces(limit: StandingLimit, reach: Array) -> Array:
    """Return typical forces of the equations (6 + n,), N and N m: the RMS over random states of contact forces for the
    base and of torques for the joints, and at least a thousandth of the largest."""
    rng, stance = np.random.default_rng(0), limit.support.stance
    x = stance.drawn(0.5 * reach, _TYPICAL_STATES, rng)
    dx, ddx = rng.normal(size=(2, *x.shape)) * _TYPICAL_RATE
    states = stance.states(x, dx, ddx)
    motion = dynamics.root_motion(stance.robot, states.q, states.v, states.a)
    force = limit.model.inverse_dynamics(limit.theta, *motion)
    force[:, SIX:] = limit.contact_forces(states).torques
    size = np.sqrt(np.mean(force ** 2, axis=0))
    return np.asarray(np.maximum(size, 1e-3 * size.max()))


_DRAWN_STATES = 6  # random states for each parameter, from which base parameters are computed
_STANDING_RANK = 1e-3  # share of a column that must be independent of other columns; less is lost in the noise of logs
_SILENT_COLUMN = 1e-6  # norm relative to the largest column, below which a column contains only rounding errors


def equation_rows(stance: Stance, model: LinearModel, equations: StandingEquations, weights: Array, x: Array, dx: Array,
                  ddx: Array) -> Array:
    """Return the rows of the equations for all parameters (samples, rows, parameters), divided by their noise.

    The tangent T of the driving coordinates spans the null space of the standing contacts' Jacobian, so rows T' Y
    contain no contact forces. With the noise s of the equations and T' s^2 T = L L', rows L^-1 T' Y have unit noise.

    Args:
        stance: the standing feet.
        model: the model.
        equations: kind of the equations.
        weights: 1 / noise of the equations (6 + n,).
        x, dx, ddx: driving coordinates and their two derivatives (samples, m).
    """
    states = stance.states(x, dx, ddx)
    y = complete(model).regressor(*dynamics.root_motion(stance.robot, states.q, states.v, states.a))
    if equations == "wrenches":
        return np.asarray(weights[:, None] * y)
    if equations == "base":
        return np.asarray(weights[:SIX, None] * y[:, :SIX])
    tangent = states.postures.tangent
    turned = tangent.transpose(0, 2, 1)
    lower = np.linalg.cholesky(turned @ (tangent / weights[:, None] ** 2))
    return np.asarray(np.linalg.solve(lower, turned @ y))


def standing_base_parameters(stance: Stance, model: LinearModel, equations: StandingEquations, reach: Array,
                             frequency: float, seed: int = 0) -> BaseParameters:
    """Return the base parameters that a motion with given standing feet can identify.

    A foot that never moves, or a link that hardly rotates, excites fewer parameters than lifted feet and fast motions.

    Args:
        stance: the standing feet.
        model: the model.
        equations: kind of the equations.
        reach: range of the driving coordinates (m,) about home from which random states are drawn.
        frequency: highest frequency of the motion, Hz, for the velocities and accelerations of the random states.
        seed: seed of the random states.
    """
    rng = np.random.default_rng(seed)
    x = stance.drawn(reach, _DRAWN_STATES * len(model.parameters), rng)
    fast = 2.0 * np.pi * frequency
    dx, ddx = (0.5 * reach * fast ** order * rng.normal(size=x.shape) for order in (1, 2))
    rows = equation_rows(stance, model, equations, np.ones(model.dof), x, dx, ddx)
    factor = triangular(rows.reshape(-1, rows.shape[2]))
    size = np.linalg.norm(factor, axis=0)
    factor[:, size < _SILENT_COLUMN * size.max()] = 0.0
    return reduce_columns(factor, model.parameters, range(len(model.parameters)), _STANDING_RANK)


@dataclass(frozen=True, eq=False, kw_only=True)
class StandingInformation(Information):
    """Information matrix of a motion with standing feet.

    Attributes:
        stance: the standing feet.
        equations: kind of the equations.
        prior: prior information on every scaled parameter; 1 is a standard deviation equal to its prior magnitude. The
            prior prevents that parameters with little excitation dominate the choice of the motion.
    """

    stance: Stance
    equations: StandingEquations
    prior: float

    def entries(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the rows of the equations on the base columns (samples, rows, base), for driving coordinates and their
        two derivatives (samples, m)."""
        rows = equation_rows(self.stance, self.layout.model, self.equations, self.weights, q, dq, ddq)
        return np.ascontiguousarray(rows[:, :, self.layout.base.independent])

    def matrix(self, entries: Array) -> Array:
        tall = entries.reshape(-1, entries.shape[2])
        return np.asarray(self.scale[:, None] * (tall.T @ tall) * self.scale + self.prior * np.eye(len(self.scale)))

    def slope(self, q: Array, dq: Array, ddq: Array, entries: Array, by_matrix: Array) -> Array:
        """Return derivatives (3, samples, m) by q, dq, ddq of a function of the matrix A, by finite differences."""
        full = self.scale[:, None] * by_matrix * self.scale
        weights = 2.0 * entries @ full
        return differences(lambda *signals: np.einsum(
            "srb,dsrb->ds", weights, self.entries(*signals).reshape(-1, *entries.shape)), q, dq, ddq)

    def factor(self, q: Array, dq: Array, ddq: Array) -> Array:
        entries = self.entries(q, dq, ddq)
        return triangular(entries.reshape(-1, entries.shape[2]) * self.scale)

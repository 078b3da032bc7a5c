"""Options and initial models of the closed-loop methods: unit inertias, nominal parameters, or least squares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.closed_loop.loop import Loop, SimulatedRun, at_samples
from dynid.estimate.consistent import consistent_weighted
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.problem import Problem
from dynid.model import LinearModel, Model, Parameter, Parameters, RigidBodies, RotorInertia, complete
from dynid.model.parameters import ROTOR
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot, numbered_joints
from dynid.simulation import Controller, joint_inertia, simulate


def first_run(problem: Problem, loop: Loop, start: str) -> SimulatedRun:
    """Return the simulated closed loops of the initial model, from which the first iteration starts."""
    if start == "regular":
        return run_unit_inertias(loop)
    if start == "regular-links":
        return run_unit_links(loop)
    if start == "nominal":
        return loop.run(problem.need_nominal("closed loop"))
    if start == "wls":
        return loop.run(weighted_least_squares(problem).full)
    if start == "filtered":
        return loop.run(_filtered(problem))
    raise ModelError("a closed-loop method can start from 'regular', 'regular-links', 'filtered', 'nominal' or 'wls', "
                     f"not '{start}'", code="unknown-start")


def _filtered(problem: Problem) -> Array:
    """Return parameters (parameters,) of weighted least squares on filtered logs, physically consistent if the model
    has bodies. They are slightly biased, but the robot can always be simulated with them."""
    data = tuple(prepare(log) for log in problem.recordings) or problem.data
    smooth = Problem.from_model(problem.model, data, base=problem.base, blocks=1, threads=problem.threads)
    return (consistent_weighted(smooth) if problem.model.parameters.bodies else weighted_least_squares(smooth)).full


def run_unit_inertias(loop: Loop) -> SimulatedRun:
    """Simulate joints of unit inertia with the robot's closed-loop poles: the regular start.

    See Janot, Vandanjon, Gautier, eq. 48-50.
    """
    robot, ones = complete(loop.model).robot, np.ones(loop.model.dof)
    unit: LinearModel = UnitInertias(loop.model.dof) if robot is None else Model(robot, (RotorInertia(),))
    return _run_with_poles(loop, unit, ones, ones)


def run_unit_links(loop: Loop) -> SimulatedRun:
    """Simulate links of unit inertia about their own joint axis, or unit mass for prismatic joints, with the robot's
    poles: the second regular start (Janot, Vandanjon, Gautier, eq. 51). Their inertia matrix is always regular."""
    robot = complete(loop.model).robot
    if robot is None or robot.followers is not None or any(body.virtual for body in robot.bodies):
        raise ModelError("start 'regular-links' needs a robot with one link per joint", "use 'regular'", "no-links")
    links, theta = Model(robot, (RigidBodies(),)), unit_links(robot)
    inertia = np.max([joint_inertia(links, theta, log.reference.q) for log in loop.logs], axis=0)
    return _run_with_poles(loop, links, theta, inertia)


def _run_with_poles(loop: Loop, model: LinearModel, theta: Array, inertia: Array) -> SimulatedRun:
    """Simulate a model of given joint inertias (dof,) with the robot's closed-loop poles."""
    law = loop.controller.with_poles(inertia, loop.apparent_inertia)
    motions = tuple(at_samples(log.samples, simulate(model, theta, law, log.reference, step=loop.step))
                    for log in loop.logs)
    return SimulatedRun(motions, lambda theta: law)


def unit_links(robot: Robot) -> Array:
    """Return ten inertial parameters per body (10 bodies,): inertia 1 about a revolute joint, mass 1 if prismatic."""
    numbers = np.zeros((robot.dof, 10))
    for j, joint in enumerate(robot.joints):
        x, y, z = joint.after[2, :3]  # the joint's axis in the body's frame
        numbers[j] = [0.0] * 9 + [1.0] if joint.prismatic else [x * x, x * y, x * z, y * y, y * z, z * z, 0, 0, 0, 0]
    return numbers.ravel()


def regular_parameters(model: LinearModel) -> Array | None:
    """Return parameters (parameters,) with unit rotor inertias and zeros otherwise, the start named "regular". It is
    None for a model in which a joint has no rotor inertia."""
    rotors = [(item.owner, item.kind == ROTOR) for item in model.parameters]
    if {joint for joint, is_rotor in rotors if is_rotor} != set(range(model.dof)):
        return None
    return np.array([1.0 if is_rotor else 0.0 for _, is_rotor in rotors])


@dataclass(frozen=True)
class UnitInertias:
    """Model of uncoupled joints with unit inertia: the regular start for a model that has no robot."""

    dof: int

    @property
    def parameters(self) -> Parameters:
        return Parameters(tuple(Parameter(f"Ia{j + 1}", "kg m^2", j, name, kind=ROTOR)
                                for j, name in enumerate(numbered_joints(self.dof))))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return np.einsum("sj,jk->sjk", ddq, np.eye(self.dof))

    def forward_dynamics(self, theta: Array, q: Array, dq: Array, tau: Array) -> Array:
        return tau / theta


Start = Literal["regular", "regular-links", "filtered", "nominal", "wls"]
# "auto": tried in this order until one converges
AnyStart = Literal["auto", "regular", "regular-links", "filtered", "nominal", "wls"]


@dataclass(frozen=True, eq=False)
class LoopOptions:
    """Options of the iterated closed-loop methods.

    Attributes:
        start: name of the initial model.
        tolerance: relative change of the torques between two iterations below which they stop.
        max_iterations: largest number of iterations.
        step: integration step of the simulation, s; by default one step per control tick.
        controller: the control law; by default that of the problem.
        transient: time dropped at the start of each log, s; by default the settling time of the loop.
    """

    start: str
    tolerance: float
    max_iterations: int
    step: float | None = field(default=None, kw_only=True)
    controller: Controller | None = field(default=None, kw_only=True)
    transient: float | None = field(default=None, kw_only=True)

    def dropped(self, settling: float) -> float:
        """Return the time (s) to drop at the start of each log, for a loop with the given settling time (s)."""
        return settling if self.transient is None else self.transient

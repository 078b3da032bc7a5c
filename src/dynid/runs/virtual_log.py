"""Simulation of the log of a virtual robot that follows a motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import read_trajectory
from dynid.excitation.search.experiment_design import nominal_values
from dynid.model import FlexibleModel, Model, flexible_joint_model, robot_model
from dynid.output_fields import map_of, output_fields, record
from dynid.payloads.frames import mounting_frame
from dynid.quantities import BANDWIDTH, DAMPING, RATE, check_quantity, check_samples
from dynid.recording import Recording
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Robot
from dynid.runs.motion_design import terms_model
from dynid.runs.results import load
from dynid.simulation import (
    PD,
    CompensatedPD,
    ComputedTorque,
    Controller,
    Flexible,
    Impedance,
    Poles,
    TaskSpace,
    VirtualRobot,
    joint_inertia,
)

CONTROLLERS = ("computed-torque", "compensated-pd", "pd", "poles", "task-space", "impedance")
_RIGID_CONTROLLER_NOTE = "the controller assumes rigid joints, although they are flexible"
WRITERS = {".csv": write_csv, ".npz": write_npz}


@dataclass(frozen=True)
class VirtualLoopOptions:
    """Options of the control loop of a virtual robot.

    Attributes:
        controller: one of `CONTROLLERS`. The controller's model is the robot file, if the file states all inertias.
        bandwidth, damping: closed-loop poles, rad/s, of the joints or, for controllers in task space, of the flange.
        rate: sampling rate of controller and log, Hz.
    """

    controller: str = "computed-torque"
    bandwidth: float = 60.0
    damping: float = 1.0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        check_quantity(RATE, self.rate, "the rate of a simulation")
        check_quantity(BANDWIDTH, self.bandwidth, "the bandwidth of a closed loop")
        check_quantity(DAMPING, self.damping, "the damping of a closed loop")


@dataclass(frozen=True, eq=False)
class VirtualLog:
    """A log of a virtual robot.

    Attributes:
        robot, model: the simulated robot and its model.
        theta: true parameters of the model (parameters,).
        recording: the log.
        controller: name of the control law.
        seed: seed of the noise.
        notes: sentences on assumptions of the simulation.
    """

    robot: Robot
    model: Model | FlexibleModel
    theta: Array
    recording: Recording
    controller: str
    seed: int
    notes: tuple[str, ...]

    @property
    def tracking(self) -> Array:
        """Root mean square tracking error (dof,), rad or m, of each joint, or of its motor if the joint is flexible."""
        log = self.recording
        assert log.reference is not None
        followed = log.q if log.motor_position is None else log.motor_position
        return np.sqrt(np.mean((followed - log.reference) ** 2, axis=0))


def simulate_log(robot: Robot, trajectory: str | Path, loop: VirtualLoopOptions, *, friction: tuple[str, ...] = (),
                 rotor: bool = False, truth: str | Path | None = None, seed: int = 0, trust: bool = False,
                 **sensors: Any) -> VirtualLog:
    """Simulate a virtual robot that follows a motion written by `dynid excite`.

    Args:
        robot, trajectory, loop: the robot, the motion, and the control loop.
        friction, rotor: terms of the machine at every joint.
        truth: folder of an earlier result with the machine's parameters. Default: those of the robot file, with zero
            for unknown friction.
        seed: seed of the noise.
        trust: see `load`.
        sensors: encoder, position_noise, torque_noise, flexible and other options of `VirtualRobot`.
    """
    model, theta, believed, notes = _machine(robot, friction, rotor, truth, trust)
    motion = read_trajectory(trajectory, robot.joint_names)
    check_samples(motion.duration, loop.rate)
    reference = motion.at(loop.rate)
    law = _controller(loop, *believed, reference.q)
    machine = VirtualRobot(model, theta, law, smooth="stick", **sensors)
    return VirtualLog(robot, model, theta, machine.record(reference, seed=seed), loop.controller, seed, notes)


def flexible_joints(stiffness: Sequence[float] | None, damping: Sequence[float] | None,
                    rotor: Sequence[float] | None) -> Flexible:
    """Return flexible joints; each value is one number or one per joint, None for the default."""
    if stiffness is None:
        raise DynidError("flexible joints need --stiffness")
    return Flexible(stiffness, 0.0 if damping is None else damping, rotor)


def _machine(robot: Robot, friction: tuple[str, ...], rotor: bool, truth: str | Path | None, trust: bool
             ) -> tuple[Model | FlexibleModel, Array, tuple[Model, Array], tuple[str, ...]]:
    """Return the robot's model and true parameters, model and parameters of its controller, and notes."""
    if truth is not None:
        if friction or rotor:
            raise DynidError("--truth takes the terms of the earlier result, so remove --friction and --rotor",
                             code="conflicting-options")
        estimate, _ = load(truth, trust=trust)
        flexible = flexible_joint_model(estimate.model)
        links = robot_model(estimate.model) if flexible is None else flexible.links
        if links is None or links.robot.joint_names != robot.joint_names:
            raise DynidError(f"{truth} is the result of another robot than '{robot.name}': their joints differ",
                             "give a result of this robot with --truth",
                             code="another-robot")
        if flexible is not None:
            believed = flexible.rigid, flexible.rigid_values(estimate.full)
            return flexible, estimate.full, believed, (_RIGID_CONTROLLER_NOTE,)
        belief = nominal_values(links)
        return links, estimate.full, (links, estimate.full if belief is None else belief), ()
    model = terms_model(robot, friction, rotor)
    theta = nominal_values(model)
    if theta is None:
        bare = robot.bodies_without_inertia
        who = "any link" if len(bare) == robot.dof else ", ".join(bare)
        raise NotPossibleError(f"robot '{robot.name}' cannot be simulated: its file gives no inertia for {who}; add "
                               "inertias, or give an earlier result with --truth", code="no-inertia")
    missing = [p.name for p in model.parameters if p.nominal is None]
    notes: tuple[str, ...] = ()
    if missing:
        more = f" and {len(missing) - 6} more" if len(missing) > 6 else ""
        notes = (f"the robot file gives no value for {', '.join(missing[:6])}{more}; zero is used",)
    return model, theta, (model, theta), notes


def _controller(loop: VirtualLoopOptions, model: Model, belief: Array, q: Array) -> Controller:
    """Return the requested control law for a motion q (ticks, dof); belief: the controller's parameters."""
    kind, bandwidth, damping, limit = loop.controller, loop.bandwidth, loop.damping, model.robot.limit("effort")
    if kind == "computed-torque":
        return ComputedTorque(model, belief, bandwidth ** 2, 2.0 * damping * bandwidth, limit=limit)
    if kind in ("task-space", "impedance"):
        return _tool_law(loop, model, belief, q[0])
    inertia = joint_inertia(model, belief, q)
    if kind == "compensated-pd":
        return CompensatedPD(model, belief, inertia * bandwidth ** 2, 2.0 * damping * bandwidth * inertia, limit=limit)
    if kind == "pd":
        return PD(inertia * bandwidth ** 2, 2.0 * damping * bandwidth * inertia, limit=limit)
    if kind == "poles":
        return Poles(bandwidth, damping, limit=limit)
    raise DynidError(f"there is no controller '{kind}'; there are {', '.join(CONTROLLERS)}")


def _tool_law(loop: VirtualLoopOptions, model: Model, belief: Array, q: Array) -> Controller:
    """Return a control law of the tool's pose, or of its position if the robot has fewer than six joints.

    Impedance control uses the tool's inertia in the first posture (dof,), and the closed-loop poles of `loop`.
    """
    frame, task = mounting_frame(model.robot), "pose" if model.dof >= 6 else "position"
    kp, kd, limit = loop.bandwidth ** 2, 2.0 * loop.damping * loop.bandwidth, model.robot.limit("effort")
    law = TaskSpace(model, belief, frame, kp, kd, task=task, limit=limit)
    if loop.controller == "task-space":
        return law
    inertia = np.diag(law.tool_inertia(q))
    return Impedance(model, belief, frame, kp * inertia, kd * inertia, task=task, limit=limit)


def save_log(found: VirtualLog, path: str | Path) -> Path:
    """Write the log as .csv or .npz, by the extension of the path."""
    return log_writer(path)(found.recording, path)


def log_writer(path: str | Path) -> Any:
    """Return the function that writes a log in the format that the extension of the path requires."""
    writer = WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        raise DynidError(f"{path} should end in {' or '.join(WRITERS)}", code="unknown-extension")
    return writer


_SIMULATED_JOINT = record("SimulatedJoint", tracking_rms=float, torque_rms=float, torque_peak=float)


@output_fields(robot=str, controller=str, seed=int, rows=int, rate=float, duration=float,
               joints=map_of(_SIMULATED_JOINT), truth=dict[str, float], notes=list[str])
def log_facts(found: VirtualLog) -> dict[str, Any]:
    """Return the log as the object that `dynid simulate --json` prints."""
    log = found.recording
    return {"robot": found.robot.name, "controller": found.controller, "seed": found.seed, "rows": len(log),
            "rate": log.rate, "duration": log.duration,
            "joints": {name: {"tracking_rms": float(off), "torque_rms": float(rms), "torque_peak": float(peak)}
                       for name, off, rms, peak in zip(
                           found.robot.joint_names, found.tracking, np.sqrt(np.mean(log.tau ** 2, axis=0)),
                           np.abs(log.tau).max(axis=0), strict=True)},
            "truth": {name: float(value) for name, value in zip(found.model.parameters.names, found.theta,
                                                                strict=True)},
            "notes": list(found.notes)}

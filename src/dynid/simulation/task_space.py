"""Task-space control laws: model-based acceleration control of a tool, and impedance control.

The tool reference is the forward kinematics of the joint reference. These laws run in the Python loop, since the
compiled loop has no Jacobians.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics import frame_pose, inertia_matrix, inverse_dynamics, jacobian
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model
from dynid.simulation.controllers import ControlLaw
from dynid.simulation.plant import make_plant, per_joint

_DIFFERENCE_TIME = 1e-5  # s: step for the numerical derivative of the Jacobian along the motion
_MIN_MOBILITY_RATIO = 1e-8  # ratio of smallest to largest mobility of the tool, below which the posture is singular
AXES = {"position": 3, "pose": 6}  # rows of the Jacobian that are controlled


class Tool(NamedTuple):
    """Motion of a tool, in axes of the base.

    Attributes:
        pose: pose of the tool (4, 4).
        jacobian, velocity: Jacobian J (axes, dof), and velocity of the tool (axes,).
        drift: acceleration of the tool at zero joint acceleration, dJ/dt dq (axes,).
    """

    pose: Array
    jacobian: Array
    velocity: Array
    drift: Array


@dataclass(frozen=True, eq=False)
class ToolLaw(ControlLaw):
    """Base class of control laws for a frame of the robot.

    Attributes:
        model, theta: the controller's model and its parameters; friction is not compensated.
        frame, kp, kd: controlled frame, and feedback gains.
        task: "position" of the frame's origin, or "pose" with its orientation.
        posture, damping: gains, 1/s^2 and 1/s, of redundant joints.
        rotors: whether rotor inertias are included.
    """

    needs_inertia: ClassVar[bool] = False
    model: Model
    theta: ArrayLike
    frame: str
    kp: ArrayLike
    kd: ArrayLike
    task: str = "pose"
    posture: float = 25.0
    damping: float = 10.0
    rotors: bool = True

    def __post_init__(self) -> None:
        if self.task not in AXES:
            raise ModelError(f"the task of a task-space controller is {' or '.join(AXES)}, got "
                             f"'{self.task}'", code="unknown-task")
        if AXES[self.task] > self.model.dof:
            raise ModelError(f"{self.model.dof} joints cannot control the {self.task} of a tool, which needs "
                             f"{AXES[self.task]}; give task = 'position' or a robot with more joints",
                             code="too-few-joints")
        self.model.robot.frame(self.frame)
        if self.delay or self.speed_lag:
            raise ModelError("task-space controllers do not support delay and speed lag; set them to zero")

    @cached_property
    def bodies(self) -> Array:
        return self.model.body_numbers(self.theta)

    @cached_property
    def rotor_inertia(self) -> Array:
        extra = make_plant(self.model, self.model.parameters.vector(self.theta)).extra
        return extra if self.rotors and len(extra) else np.zeros((self.model.dof, self.model.dof))

    def tool(self, q: Array, dq: Array) -> Tool:
        """Return pose, Jacobian and velocity of the tool at joint positions and velocities (dof,)."""
        robot, rows = self.model.robot, AXES[self.task]
        step = _DIFFERENCE_TIME * dq
        before, here, after = jacobian(robot, self.frame, np.array([q - step, q, q + step]))[:, :rows]
        return Tool(frame_pose(robot, self.frame, q), here, here @ dq, (after - before) @ dq / (2.0 * _DIFFERENCE_TIME))

    def tool_inertia(self, q: Array) -> Array:
        """Return the inertia of the tool (axes, axes) at a posture (dof,): A of Sousa, eq. 2.29, kg and kg m^2."""
        matrix = inertia_matrix(self.model.robot, self.bodies, q) + self.rotor_inertia
        inverse = self.split(matrix, self.tool(q, np.zeros(self.model.dof)))
        return np.asarray(inverse.T @ matrix @ inverse)

    def error(self, wanted: Array, found: Array) -> Array:
        """Return the error (axes,) of a pose `found` (4, 4): position, m, and rotation vector, rad, in base axes."""
        from scipy.spatial.transform import Rotation

        off = wanted[:3, 3] - found[:3, 3]
        if self.task == "position":
            return np.asarray(off)
        return np.concatenate([off, Rotation.from_matrix(wanted[:3, :3] @ found[:3, :3].T).as_rotvec()])

    def limited(self, tau: Array) -> Array:
        most = np.broadcast_to(np.asarray(self.limit, dtype=float), tau.shape)
        return np.clip(tau, -most, most)

    def split(self, matrix: Array, tool: Tool) -> Array:
        """Return the generalised inverse (dof, axes) of the Jacobian with the least kinetic energy (Sousa, eq. 2.30).

        matrix (dof, dof): inertia matrix.
        """
        mobile = np.linalg.solve(matrix, tool.jacobian.T)
        share = tool.jacobian @ mobile  # (axes, axes), the inverse of A of eq. 2.29
        values = np.linalg.eigvalsh(share)
        if not values[0] > _MIN_MOBILITY_RATIO * values[-1]:
            raise NotPossibleError(f"the posture is singular for the {self.task} of '{self.frame}': its joints cannot "
                                   "move it in all directions", "keep the reference away from such postures, or give "
                                   "task = 'position'", "singular-posture")
        return np.asarray(mobile @ np.linalg.inv(share))


@dataclass(frozen=True, eq=False)
class TaskSpace(ToolLaw):
    """Task-space acceleration control, which makes the tool a double integrator (Sousa, eq. 2.28-2.34).

    tau = M (J+ (a - dJ/dt dq) + (1 - J+ J) b) + c + g with a = ddxr + kp (xr - x) + kd (dxr - dx); b keeps redundant
    joints at their reference. kp, kd: 1/s^2 and 1/s, one number or one per axis.
    """

    def __call__(self, t: float, q: Array, dq: Array, qr: Array, dqr: Array, ddqr: Array) -> Array:
        robot, dof = self.model.robot, self.model.dof
        matrix = inertia_matrix(robot, self.bodies, q) + self.rotor_inertia
        here, wanted = self.tool(q, dq), self.tool(qr, dqr)
        inverse = self.split(matrix, here)
        ahead = wanted.jacobian @ ddqr + wanted.drift
        feedback = np.multiply(self.kp, self.error(wanted.pose, here.pose)) + np.multiply(
            self.kd, wanted.velocity - here.velocity)
        free = ddqr + self.posture * (qr - q) + self.damping * (dqr - dq)
        ddq = inverse @ (ahead + feedback - here.drift) + (np.eye(dof) - inverse @ here.jacobian) @ free
        return self.limited(matrix @ ddq + inverse_dynamics(robot, self.bodies, q, dq, np.zeros(dof)))


@dataclass(frozen=True, eq=False)
class Impedance(ToolLaw):
    """Impedance control tau = J' (A (ddxr - dJ/dt dq) + kd (dxr - dx) + kp (xr - x)) + c + g.

    The tool responds to a force as its own inertia A with a spring and a damper (Sousa, eq. 2.35-2.38): at rest it
    deflects by kp^-1 times the force. Redundant joints follow their reference without a force on the tool. kp, kd: N/m
    and N s/m, then N m/rad and N m s/rad; one number, one per axis, or a matrix (axes, axes).
    """

    def __call__(self, t: float, q: Array, dq: Array, qr: Array, dqr: Array, ddqr: Array) -> Array:
        robot, dof = self.model.robot, self.model.dof
        matrix = inertia_matrix(robot, self.bodies, q) + self.rotor_inertia
        here, wanted = self.tool(q, dq), self.tool(qr, dqr)
        inverse = self.split(matrix, here)
        ahead = matrix @ inverse @ (wanted.jacobian @ ddqr + wanted.drift - here.drift)
        force = _gain(self.kp, AXES[self.task], "kp") @ self.error(wanted.pose, here.pose) + _gain(
            self.kd, AXES[self.task], "kd") @ (wanted.velocity - here.velocity)
        free = matrix @ (ddqr + self.posture * (qr - q) + self.damping * (dqr - dq))
        nowhere = (np.eye(dof) - here.jacobian.T @ inverse.T) @ free
        bias = inverse_dynamics(robot, self.bodies, q, dq, np.zeros(dof))
        return self.limited(ahead + here.jacobian.T @ force + nowhere + bias)


def _gain(given: ArrayLike, axes: int, name: str) -> Array:
    """Return a controller gain as a matrix (axes, axes)."""
    value = np.asarray(given, dtype=float)
    return value if value.shape == (axes, axes) else np.diag(per_joint(value, axes, f"{name} of the tool"))

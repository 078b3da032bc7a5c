"""Logs of a quadruped and a humanoid in MuJoCo: PD controllers follow a motion over standing feet, contacts and their
forces are MuJoCo's, and encoders, torques, foot sensors, IMU and the pose of the base have noise."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from dynid.floating import Contact
from dynid.floating.virtual_walker import standing_motion
from dynid.robot import Robot
from reproductions._walkers import quadruped, small_humanoid

CROUCH = np.tile([0.0, 0.8, -1.6], 4)
SUBSTEPS = 4  # of the simulation in each millisecond of the controller: errors of integration stay below the noise
SUSPENDED = {"swing": 0.5, "sway": 0.05, "tilt": 0.3}  # motion of a base that a crane moves: rad, m, rad
LEGS = ("FL", "FR", "RL", "RR")


@dataclass(frozen=True)
class Walker:
    """A machine: its MJCF, feet, posture (n,), gains of its PD controllers, and the motion it follows."""

    name: str
    text: str
    feet: tuple[Contact, ...]
    posture: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    motion: Mapping[str, Any]
    armature: float
    damping: float

    @property
    def robot(self) -> Robot:
        return _robot(self.text)


@cache
def _robot(text: str) -> Robot:
    return Robot.load(text)


@dataclass(frozen=True)
class Sensors:
    """Standard deviations of noise, and constant errors of the IMU: joint positions rad, joint torques N m, forces N,
    moments N m, base position m, orientation rad, angular rate rad/s, specific force m/s^2."""

    position: float = 3e-5
    torque: float = 0.05
    force: float = 1.0
    moment: float = 0.05
    base_position: float = 1e-4
    orientation: float = 3e-4
    angular_rate: float = 2e-3
    specific_force: float = 0.03
    gyro_bias: tuple[float, float, float] = (0.004, -0.003, 0.002)
    accelerometer_bias: tuple[float, float, float] = (0.03, -0.02, 0.04)


@dataclass(frozen=True, eq=False)
class WorldLog:
    """Columns (samples, k) by name: t, q, tau, wrench of each foot in its axes, contact, position, orientation x y z w,
    gyro, accelerometer."""

    walker: Walker
    t: np.ndarray
    signals: Mapping[str, np.ndarray] = field(repr=False)

    def columns(self, *leave_out: str) -> dict[str, np.ndarray]:
        """Columns by names that recorders commonly use. leave_out: wrench, contact, torque, pose, imu."""
        names, found = self.walker.robot.joint_names[6:], {"time": self.t}
        found |= {f"q_{name}": column for name, column in zip(names, self.signals["q"].T, strict=True)}
        if "torque" not in leave_out:
            found |= {f"tau_{name}": column for name, column in zip(names, self.signals["tau"].T, strict=True)}
        feet = [contact.frame.rsplit("_", 1)[0] for contact in self.walker.feet]
        width = 3 if self.walker.feet[0].kind == "point" else 6
        axes = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")[:width]
        if "wrench" not in leave_out:
            found |= {f"{foot}_foot_{'ft_' * (width == 6)}{axis}": self.signals["wrench"][:, k, i]
                      for k, foot in enumerate(feet) for i, axis in enumerate(axes)}
        if "contact" not in leave_out:
            found |= {f"{foot}_contact": self.signals["contact"][:, k].astype(float) for k, foot in enumerate(feet)}
        if "pose" not in leave_out:
            found |= {f"base_pos_{axis}": self.signals["position"][:, i] for i, axis in enumerate("xyz")}
        if "orientation" not in leave_out:
            found |= {f"base_quat_{axis}": self.signals["orientation"][:, i] for i, axis in enumerate("xyzw")}
        if "imu" not in leave_out:
            found |= {f"imu_gyro_{axis}": self.signals["gyro"][:, i] for i, axis in enumerate("xyz")}
            found |= {f"imu_acc_{axis}": self.signals["accelerometer"][:, i] for i, axis in enumerate("xyz")}
        return found

    def write(self, path: Path, *leave_out: str) -> Path:
        """Write a CSV file, see `columns`."""
        columns = self.columns(*leave_out)
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(np.column_stack(list(columns.values())).round(9).tolist())
        return path


@cache
def quadruped_walker() -> Walker:
    """Twelve joints on four point feet; one foot after the other is lifted."""
    return Walker("quadruped", quadruped(), tuple(Contact(f"{leg}_toe", radius=0.022) for leg in LEGS), CROUCH,
                  np.full(12, 250.0), np.full(12, 4.0),
                  {"sway": 0.015, "tilt": 0.12, "lift": 0.05, "shift": 0.075, "top_frequency": 1.2}, 0.01, 0.2)


@cache
def humanoid_walker() -> Walker:
    """Seventeen joints on two soles that stay on the ground."""
    robot = Robot.load(small_humanoid())
    posture = dict.fromkeys(robot.joint_names[6:], 0.0)
    for side in ("left", "right"):
        posture |= {f"{side}_hip_pitch": -0.4, f"{side}_knee": 0.8, f"{side}_ankle_pitch": -0.4,
                    f"{side}_elbow": -0.6}
    swing = np.array([0.3 if "waist" in name else 0.7 for name in robot.joint_names[6:]])
    stiff = np.array([120.0 if "shoulder" in name or "elbow" in name else 1500.0 for name in robot.joint_names[6:]])
    return Walker("humanoid", small_humanoid(), (Contact("left_sole", "sole"), Contact("right_sole", "sole")),
                  np.array(list(posture.values())), stiff, np.where(stiff > 500, 30.0, 3.0),
                  {"sway": 0.02, "tilt": 0.1, "swing": swing, "top_frequency": 1.2}, 0.02, 0.4)


@cache
def _compiled(description: str, damping: float, armature: float) -> Any:
    sensors = ('<sensor><accelerometer site="imu"/><gyro site="imu"/></sensor>')
    joint = f'<default><joint damping="{damping}" armature="{armature}"/>'
    text = description.replace("</mujoco>", sensors + "</mujoco>")
    text = text.replace('condim="6"', 'condim="3"').replace('timestep="0.001"', f'timestep="{1e-3 / SUBSTEPS}"')
    text = text.replace("<default>", joint, 1)
    return mujoco.MjModel.from_xml_string(text)


def world_log(walker: Walker, seed: int, *, duration: float = 12.0, rate: int = 250, sensors: Sensors | None = None,
              push: Any = None, settle: float = 1.0, suspended: bool = False, **motion: Any) -> WorldLog:
    """Simulate a motion over the feet in MuJoCo, and return what sensors measure.

    Args:
        walker: the machine.
        seed: of motion and noise.
        duration: s, after a time to settle.
        rate: Hz of the log; the controller has 1 kHz.
        sensors: their noise.
        push: function of model, data and time, called before every step, for faults such as a slippery floor.
        settle: s before the log starts.
        suspended: whether the base hangs on a crane with a force sensor, away from the ground, and is moved by it.
            Links then do not collide with each other: the motion is not planned around the robot's own feet.
        motion: options of `standing_motion` instead of the walker's own.
    """
    model, noise = _compiled(walker.text, walker.damping, walker.armature), sensors or Sensors()
    data = mujoco.MjData(model)
    wanted = standing_motion(walker.robot, () if suspended else walker.feet, walker.posture, duration=duration + settle,
                             rate=1000.0, seed=seed, **{**walker.motion, **(SUSPENDED if suspended else {}), **motion})
    q, dq = wanted.q[:, 7:], wanted.v[:, 6:]
    data.qpos[7:] = q[0]
    data.qpos[3:7] = wanted.q[0, [6, 3, 4, 5]]
    mujoco.mj_kinematics(model, data)
    sites = [model.site(contact.frame).id for contact in walker.feet]
    below = 0.022 if walker.feet[0].kind == "point" else 0.0
    data.qpos[2] -= min(data.site_xpos[site, 2] for site in sites) - below
    mass = float(model.body_subtreemass[1])
    if suspended:
        data.qpos[2] += 2.0
        model = copy(model)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    height = float(data.qpos[2])
    owners = {int(model.site_bodyid[site]): k for k, site in enumerate(sites)}
    rows: dict[str, list[Any]] = {name: [] for name in ("q", "tau", "wrench", "position", "orientation", "gyro",
                                                        "accelerometer", "crane")}
    every, first = 1000 // rate, round(1000 * settle)
    for i in range(len(q)):
        before = data.ctrl.copy()
        data.ctrl[:] = walker.kp * (q[i] - data.qpos[7:]) + walker.kd * (dq[i] - data.qvel[6:])
        if suspended:
            _hold(data, wanted.q[i], height, mass)
        if push is not None:
            push(model, data, i / 1000.0 - settle)
        if i >= first and (i - first) % every == 0:
            mujoco.mj_forward(model, data)
            rows["q"].append(data.qpos[7:].copy())
            rows["tau"].append(0.5 * (data.ctrl + before))  # constant in each period: the mean about the instant
            rows["wrench"].append(_wrenches(model, data, sites, owners))
            rows["crane"].append(_in_root(data))
            rows["position"].append(data.qpos[:3].copy())
            rows["orientation"].append(data.qpos[[4, 5, 6, 3]])
            rows["accelerometer"].append(data.sensordata[:3].copy())
            rows["gyro"].append(data.sensordata[3:6].copy())
        mujoco.mj_step(model, data, nstep=SUBSTEPS)
    clean = {name: np.array(values) for name, values in rows.items()}
    rng = np.random.default_rng([seed, 7])
    clean["contact"] = np.abs(clean["wrench"][:, :, 2]) + np.abs(clean["wrench"]).sum(axis=2) > 1e-9
    spread = {"q": noise.position, "tau": noise.torque, "position": noise.base_position, "gyro": noise.angular_rate,
              "accelerometer": noise.specific_force}
    found = {name: values + rng.normal(size=values.shape) * spread[name] for name, values in clean.items()
             if name in spread}
    found["gyro"] += noise.gyro_bias
    found["accelerometer"] += noise.accelerometer_bias
    found["contact"] = clean["contact"]
    size = np.repeat([noise.force, noise.moment], 3)
    found["wrench"] = clean["wrench"] + rng.normal(size=clean["wrench"].shape) * size
    if suspended:
        found["crane"] = clean["crane"] + rng.normal(size=clean["crane"].shape) * size
    turned = clean["orientation"]
    small = rng.normal(size=(len(turned), 3)) * noise.orientation
    x, y, z, w = turned.T
    a, b, c = 0.5 * small.T  # multiplied by a small rotation from the right
    turned = turned + np.column_stack([w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a,
                                       -(x * a + y * b + z * c)])
    found["orientation"] = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    return WorldLog(walker, np.arange(len(turned)) / rate, found)


def _hold(data: Any, wanted: np.ndarray, height: float, mass: float) -> None:
    """A crane that holds the base: a spring and damper toward a moving pose, and the weight."""
    away = wanted[:3] - data.qpos[:3] + np.array([0.0, 0.0, height])
    data.qfrc_applied[:3] = mass * (400.0 * away - 40.0 * data.qvel[:3])
    data.qfrc_applied[2] += 9.81 * mass
    x, y, z, w = wanted[3:7]
    error = np.zeros(3)
    inverse = np.zeros(4)
    mujoco.mju_negQuat(inverse, data.qpos[3:7])
    between = np.zeros(4)
    mujoco.mju_mulQuat(between, inverse, np.array([w, x, y, z]))
    mujoco.mju_quat2Vel(error, between, 1.0)
    data.qfrc_applied[3:6] = 0.05 * mass * (400.0 * error - 40.0 * data.qvel[3:6])


def _in_root(data: Any) -> np.ndarray:
    """The wrench of the crane (6,) at the root's origin, in the axes of the root."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, data.qpos[3:7])
    return np.concatenate([turn.reshape(3, 3).T @ data.qfrc_applied[:3], data.qfrc_applied[3:6]])


def _wrenches(model: Any, data: Any, sites: list[int], owners: Mapping[int, int]) -> np.ndarray:
    """Force and moment (feet, 6) of all contacts on each foot, about its site and in the site's axes."""
    out = np.zeros((len(sites), 6))
    local, moment = np.zeros(6), np.zeros(3)
    for number in range(data.ncon):
        contact = data.contact[number]
        bodies = [int(model.geom_bodyid[geom]) for geom in (contact.geom1, contact.geom2)]
        k = owners.get(bodies[1], owners.get(bodies[0], -1))
        if k < 0:
            continue
        mujoco.mj_contactForce(model, data, number, local)
        turn = contact.frame.reshape(3, 3).T * (1.0 if bodies[1] in owners else -1.0)
        force = turn @ local[:3]
        mujoco.mju_cross(moment, contact.pos - data.site_xpos[sites[k]], force)
        axes = data.site_xmat[sites[k]].reshape(3, 3)
        out[k, :3] += axes.T @ force
        out[k, 3:] += axes.T @ (turn @ local[3:] + moment)
    return out

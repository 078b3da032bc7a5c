"""Closed-loop simulation of a 7-joint arm, 10 s at 1 kHz: dynid, Pinocchio in a Python loop, and MuJoCo."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import pinocchio as pin

from dynid.dynamics import forward_kinematics
from dynid.model import Model, make_terms
from dynid.robot import Robot
from dynid.robot.inertia import to_central
from dynid.simulation import PD, Reference, simulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from robots import to_pinocchio

RATE, SECONDS = 1000.0, 10.0
KP = np.array([1500.0, 1500.0, 800.0, 600.0, 200.0, 150.0, 50.0])
KD = np.array([150.0, 150.0, 60.0, 50.0, 20.0, 15.0, 5.0])
ROTORS = np.array([0.8, 0.8, 0.5, 0.5, 0.2, 0.2, 0.1])  # kg m^2 at the joints


def reference(robot: Robot) -> Reference:
    """A slow sum of two sines on every joint, at rest in the beginning."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    rng = np.random.default_rng(1)
    q = np.zeros((len(t), robot.dof))
    for j in range(robot.dof):
        for k in (1, 2):
            q[:, j] += rng.uniform(0.1, 0.3) * (1.0 - np.cos(2.0 * np.pi * 0.15 * k * (1 + 0.1 * j) * t))
    return Reference.from_arrays(q, rate=RATE)


def race(rounds: int, **runners: Callable[[], Any]) -> dict[str, tuple[float, Any]]:
    """Return the shortest time and last result of each simulator, run in turn so that other load affects all
    equally."""
    results = {name: (np.inf, runner()) for name, runner in runners.items()}
    for _ in range(rounds):
        for name, runner in runners.items():
            start = time.perf_counter()
            result = runner()
            results[name] = min(results[name][0], time.perf_counter() - start), result
    return results


def pinocchio_loop(robot: Robot, path: Reference) -> np.ndarray:
    """Simulate by RK4 with the articulated-body algorithm and a constant torque in each control period, as in
    textbooks."""
    model = to_pinocchio(robot)
    model.armature = ROTORS.copy()
    data, h, n = model.createData(), 1.0 / path.rate, robot.dof
    y, out = np.concatenate([path.q[0], path.dq[0]]), np.empty(path.q.shape)

    def rate(y: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], pin.aba(model, data, y[:n], y[n:], tau)])

    for k in range(len(path)):
        out[k] = y[:n]
        tau = KP * (path.q[k] - y[:n]) + KD * (path.dq[k] - y[n:])
        k1 = rate(y, tau)
        k2 = rate(y + 0.5 * h * k1, tau)
        k3 = rate(y + 0.5 * h * k2, tau)
        k4 = rate(y + h * k3, tau)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return out


def mujoco_model(robot: Robot) -> mujoco.MjModel:
    """The same chain in MuJoCo, RK4, with a position and a velocity actuator on every joint as the PD law."""
    zero = forward_kinematics(robot, np.zeros(robot.dof))
    parts, close = [], ""
    for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        above = np.eye(4) if joint.parent < 0 else zero[joint.parent]
        pose = np.linalg.inv(above) @ zero[i]
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, pose[:3, :3].ravel().copy())
        axis, origin = joint.after[:3, :3].T[:, 2], -joint.after[:3, :3].T @ joint.after[:3, 3]
        mass, centre, central = to_central(body.inertia)
        full = [central[0, 0], central[1, 1], central[2, 2], central[0, 1], central[0, 2], central[1, 2]]
        parts.append(f'<body pos="{_text(pose[:3, 3])}" quat="{_text(quaternion)}"><joint name="j{i}" type="hinge" '
                     f'armature="{ROTORS[i]}" '
                     f'axis="{_text(axis)}" pos="{_text(origin)}"/><inertial mass="{mass:.17g}" pos="{_text(centre)}" '
                     f'fullinertia="{_text(full)}"/>')
        close += "</body>"
    drives = "".join(f'<position joint="j{i}" kp="{KP[i]}"/><velocity joint="j{i}" kv="{KD[i]}"/>'
                     for i in range(robot.dof))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler balanceinertia="false" boundmass="0" boundinertia="0" inertiafromgeom="false"/>'
        f'<option timestep="{1.0 / RATE}" integrator="RK4" gravity="{_text(robot.gravity)}"><flag contact="disable" '
        f'constraint="disable"/></option><worldbody>{"".join(parts)}{close}</worldbody><actuator>{drives}</actuator></mujoco>')


def _text(numbers: Any) -> str:
    return " ".join(f"{x:.17g}" for x in np.asarray(numbers).ravel())


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("franka-panda")
    model = Model(robot, make_terms(robot, rotor=True))
    theta = np.zeros(len(model.parameters))
    for k, parameter in enumerate(model.parameters):
        theta[k] = ROTORS[parameter.owner] if parameter.name.startswith("Ia") else parameter.nominal
    path = reference(robot)
    world = mujoco_model(robot)
    data = mujoco.MjData(world)
    data.qpos[:], data.qvel[:] = path.q[0], path.dq[0]
    state = np.zeros(mujoco.mj_stateSize(world, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(world, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.empty((1, len(path), 2 * robot.dof))
    control[0, :, 0::2], control[0, :, 1::2] = path.q, path.dq
    progress("dynid, Pinocchio and MuJoCo in turns")
    found = race(9, dynid=lambda: simulate(model, theta, PD(KP, KD), path),
                 pinocchio=lambda: pinocchio_loop(robot, path),
                 mujoco=lambda: mujoco.rollout.rollout(world, data, state[None], control)[0])
    (ours, motion), (theirs, positions), (rolled, states) = found["dynid"], found["pinocchio"], found["mujoco"]
    scale = np.abs(path.q).max()
    return {
        "seconds": ours, "seconds_pinocchio": theirs, "seconds_mujoco": rolled,
        "speedup_vs_pinocchio": theirs / ours, "speedup_vs_mujoco": rolled / ours,
        "difference_pinocchio": float(np.abs(motion.q - positions).max() / scale),
        "difference_mujoco": float(np.abs(motion.q[1:] - states[0, :-1, 1:1 + robot.dof]).max() / scale),
        "steps": len(path), "joints": robot.dof,
    }


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("closed loop, 10 s, 7 joints", "time", "ratio", "difference"),
            ("dynid", f"{1e3 * result['seconds']:.1f} ms", "1", ""),
            ("Pinocchio, Python loop", f"{1e3 * result['seconds_pinocchio']:.0f} ms",
             f"{result['speedup_vs_pinocchio']:.1f}", f"{result['difference_pinocchio']:.1e}"),
            ("MuJoCo rollout", f"{1e3 * result['seconds_mujoco']:.0f} ms", f"{result['speedup_vs_mujoco']:.1f}",
             f"{result['difference_mujoco']:.1e} (its loop closes four times a step)")]

"""Logs of a hanging leg and of an arm with a PD servo at each joint, simulated by MuJoCo with a short time step.

Every seed gives another machine with random masses, lengths, armatures, friction, gains, rate and delay. A servo
measures the position of its joint with an encoder. It receives each command after a delay and holds the command until
the next one.

A time step of MuJoCo is of first order: velocities are those of half a step earlier, and damping that MuJoCo integrates
acts half a step later. Half of all damping is therefore MuJoCo's own and half is part of the motor command, which is
the mean over the step around the present time. The positions then have second-order accuracy.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid import Recording, Robot
from reproductions._servos import motions

Array = NDArray[np.float64]
AXES = {"leg": ("1 0 0", "0 1 0", "0 1 0"), "arm": ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")}
# s, of MuJoCo, whose centrifugal and Coriolis torques are those of the start of a step: with steps eight times longer,
# armatures of an arm change by up to three standard errors.
STEP = 1.5625e-5
SECONDS = 8.0  # of a log
RATES, MAX_DELAY = (50.0, 100.0, 200.0), 3  # Hz, and samples
COUNT = 2 * np.pi / 4096  # rad, of an encoder of 12 bits
REACH = 0.7  # rad, of the commands


@dataclass(frozen=True, eq=False)
class Machine:
    """A chain of joints with a PD servo each.

    Attributes:
        xml: its MJCF.
        gains: kp and kd of all servos, N m/rad and N m s/rad.
        rate: of commands and log, Hz.
        delay: of the commands, s.
        truth: armature, viscous and Coulomb friction, offset and delay of each joint.
    """

    xml: str
    gains: dict[str, float]
    rate: float
    delay: float
    truth: dict[str, dict[str, float]]

    @staticmethod
    def from_kind(kind: str, seed: int) -> Machine:
        """Return a machine of the kind "leg" or "arm"."""
        rng = np.random.default_rng([seed, len(AXES[kind])])
        rate, kd = float(rng.choice(RATES)), float(rng.uniform(0.2, 0.4))
        delay, truth, body = float(rng.integers(0, MAX_DELAY + 1)) / rate, dict[str, dict[str, float]](), ""
        for j, axis in enumerate(AXES[kind]):
            armature, damping, loss = rng.uniform(0.01, 0.03), rng.uniform(0.05, 0.15), rng.uniform(0.05, 0.15)
            mass, length = rng.uniform(0.2, 0.5), rng.uniform(0.08, 0.16)
            truth[f"j{j}"] = {"armature": armature, "viscous": damping, "coulomb": loss, "offset": 0.0, "delay": delay}
            body += (f'<body pos="0 0 {0.0 if j == 0 else -length}"><joint name="j{j}" type="hinge" axis="{axis}" '
                     f'armature="{armature}" damping="{0.5 * (damping + kd)}" frictionloss="{loss}" '
                     f'solreffriction="{2 * STEP} 1" solimpfriction="0.9999 0.9999 0.001 0.5 2"/>'
                     f'<inertial pos="0.01 0.02 {-0.5 * length}" mass="{mass}" diaginertia="6e-4 6e-4 2e-4"/>')
        motors = "".join(f'<motor joint="{name}"/>' for name in truth)
        xml = (f'<mujoco><option timestep="{STEP}" integrator="implicitfast"/><worldbody>{body}'
               f'{"</body>" * len(truth)}</worldbody><actuator>{motors}</actuator></mujoco>')
        return Machine(xml, {"kp": float(rng.uniform(10.0, 20.0)), "kd": kd}, rate, delay, truth)

    def robot(self) -> Robot:
        """Return the robot as dynid reads it from the MJCF."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "machine.xml"
            path.write_text(self.xml)
            return Robot.load(path)

    def log(self, seed: int) -> Recording:
        """Return the encoder positions of the machine that follows commands of its own, simulated by MuJoCo."""
        import mujoco

        model = mujoco.MjModel.from_xml_string(self.xml)
        data, rows = mujoco.MjData(model), int(SECONDS * self.rate)
        command: Array = motions(len(self.truth), rows, self.rate, [seed, len(self.truth)], reach=REACH).T
        kp = self.gains["kp"]
        every, late = round(1.0 / (self.rate * STEP)), round(self.delay / STEP)
        q, damping = np.zeros_like(command), model.dof_damping.copy()
        data.qpos[:] = command[0]
        for row in range(rows):
            q[row] = np.round(data.qpos / COUNT) * COUNT
            for s in range(every):
                now = row * every + s - late
                sent = 0.5 * (command[max(now // every, 0)] + command[max((now - 1) // every, 0)])
                data.ctrl[:] = kp * (sent - np.round(data.qpos / COUNT) * COUNT) - damping * data.qvel
                mujoco.mj_step(model, data)
        return Recording.from_commands(np.arange(rows) / self.rate, q, command, joints=tuple(self.truth))

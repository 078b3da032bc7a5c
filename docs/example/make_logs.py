"""Write monday.csv and tuesday.csv, two logs of a simulated arm that takes the place of the tutorial's machine.

The parameters of the simulated arm differ from those of arm.urdf, so that the identification has something to find.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from dynid import Model, Recording, Reference, Robot, VirtualRobot, make_terms
from dynid.robot.inertia import from_central, symmetric
from dynid.simulation import Cascade
from dynid.trajectories import FourierSeries

RATE = 500.0  # Hz
TRUE_LINKS = [  # mass, centre of mass, inertia about it: ixx ixy ixz iyy iyz izz
    (4.6, (0.01, 0.0, 0.06), (0.03, 0.0, 0.0, 0.028, 0.0, 0.021)),
    (3.7, (0.0, 0.02, 0.13), (0.041, 0.0, 0.001, 0.04, 0.0, 0.0062)),
    (1.9, (0.015, 0.0, 0.12), (0.014, 0.0, 0.0006, 0.0133, 0.0, 0.0025)),
]
TRUE_JOINTS = {"Ia1": 0.11, "Fv1": 1.4, "Fc1": 2.1, "Fo1": 0.1, "Ia2": 0.13, "Fv2": 2.0, "Fc2": 2.6, "Fo2": -0.2,
               "Ia3": 0.05, "Fv3": 0.7, "Fc3": 1.1, "Fo3": 0.05}


def true_arm(urdf: str | Path = "arm.urdf") -> tuple[Model, np.ndarray]:
    """Return the model of the simulated arm and its true parameters."""
    inertias = [from_central(mass, com, symmetric(about)) for mass, com, about in TRUE_LINKS]
    robot = Robot.from_urdf(urdf).with_inertias(np.array(inertias))
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=True))
    known = {one.name: one.nominal for one in model.parameters if one.nominal is not None}
    return model, model.parameters.vector({**known, **TRUE_JOINTS})


def record(seed: int, urdf: str | Path = "arm.urdf", duration: float = 24.0, period: float = 8.0) -> Recording:
    """One log: a Fourier motion followed by a cascade controller, encoder counts, noisy torques."""
    model, theta = true_arm(urdf)
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1.0 / RATE)
    series = FourierSeries(*rng.uniform(-1.0, 1.0, (2, 3, 5)), np.zeros(3), period)
    wide = np.abs(series.at(t).q).max(axis=0) / model.robot.limit("upper")
    fast = np.abs(series.at(t).dq).max(axis=0) / model.robot.limit("velocity")
    share = 0.8 / np.maximum(wide, fast)[:, None]  # four fifths of the tighter limit
    motion = FourierSeries(share * series.a, share * series.b, series.q0, period).at(t)
    machine = VirtualRobot(model, theta, Cascade(kp=30.0, kv=(60.0, 80.0, 25.0), feedforward=True),
                           encoder=2 * np.pi / 2 ** 17, torque_noise=(0.15, 0.2, 0.08), jitter=5e-5)
    return machine.record(Reference.from_arrays(motion.q, motion.dq, motion.ddq, rate=RATE), seed=seed)


def write(recording: Recording, path: str | Path) -> None:
    """Write a log as the controller of the arm would: in milliseconds and degrees."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["time_ms", *(f"angle_{i}" for i in (1, 2, 3)), *(f"torque_{i}" for i in (1, 2, 3))])
        for t, q, tau in zip(recording.t, np.degrees(recording.q), recording.tau, strict=True):
            rows.writerow([f"{1e3 * t:.2f}", *(f"{x:.5f}" for x in q), *(f"{x:.4f}" for x in tau)])


def main() -> None:
    """Write both logs beside the URDF."""
    for seed, name in enumerate(("monday", "tuesday")):
        write(record(seed), f"{name}.csv")


if __name__ == "__main__":
    main()

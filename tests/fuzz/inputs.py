"""Valid inputs of every command, small: a robot, its logs in several formats, a result, and files of every kind that an
option takes."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

import numpy as np
from studio_client import urdf

from dynid.cli.main import main
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import save

RATE, ROWS = 100.0, 600
LOOP = """convention = "tree"
gravity = [0, -9.81, 0]
[[joint]]
name = "crank"
link = "a"
inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0.001, 0, 0, 0.01, 0, 0.01]}
[[joint]]
name = "pin"
link = "b"
parent = "a"
xyz = [0.2, 0, 0]
follows = true
at = -0.5
[[joint]]
name = "rocker"
link = "c"
xyz = [0.5, 0, 0]
follows = true
at = 1.4
[[closure]]
name = "loop"
kind = "axis"
first = {link = "b", xyz = [0.5, 0, 0]}
second = {link = "c", xyz = [0.4, 0, 0]}
"""
DH = """name = "two"
convention = "dh"
angles = "degrees"
[[joint]]
alpha = 90
a = 0.0
d = 0.3
theta = 0
lower = -90
upper = 90
velocity = 100
effort = 50
inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0.01, 0, 0, 0.01, 0, 0.01]}
[[joint]]
alpha = 0.0
a = 0.4
d = 0.0
theta = 90
inertia = {mass = 2.0, com = [-0.1, 0, 0], about_com = [0.01, 0, 0, 0.01, 0, 0.01]}
"""
MJCF = """<mujoco model="two"><compiler angle="radian"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" range="-2 2"/>
<inertial pos="0.1 0 0" mass="2" diaginertia="0.01 0.03 0.03"/>
<body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 1 0"/>
<inertial pos="0.15 0 0" mass="1" diaginertia="0.004 0.02 0.02"/></body></body></worldbody></mujoco>
"""
XACRO = """<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="m" value="2"/>
<link name="base"/><link name="arm"><inertial><mass value="${m}"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>
"""
BOUNDS = """width = "normal"
mass = [2.0, 4.0]
[links.upper]
mass = [0, 5]
centre = {low = [-0.4, -0.3, -0.4], high = [0.4, 0.3, 0.4]}
inertia = {diagonal = [0, 0.5], product = [-0.5, 0.5]}
[links.lower]
contour = {centre = [0, 0, 0.05], radius = 0.8}
[parameters]
Fv = [0, 50]
"""
LIMITS = """first = [0.0, 0.5]
margin = 0.02
bandwidth = 1.0
[all]
velocity = 1.5
[joint.elbow]
position = [-1.5, 1.5]
acceleration = 10.0
torque = 40.0
[space]
margin = 0.02
radius = 0.05
table = -1.0
inside = {lower = [-0.8, -0.8, -0.9], upper = [0.8, 0.8, inf]}
[[space.wall]]
normal = [-1, 0, 0]
offset = -0.7
"""
RUN = """robot = "arm.urdf"
logs = [{file = "log.csv", name = "one", start = 0.0, stop = 5.5}]
method = "wls"
gravity = [0.0, 0.0, -9.81]
blocks = 3
[model]
friction = ["viscous"]
rotor = true
[log]
time_unit = "s"
bad_rows = "drop"
[prepare]
cutoff = 8.0
slow = 0.01
gap = 0.1
[known]
Ia1 = [0.1, 0.01]
[simulation]
run = false
horizon = 0.5
[lock]
"""
FLEET = """robot = "arm.urdf"
own = ["friction"]
[model]
friction = ["viscous"]
[prepare]
cutoff = 8.0
[[robots]]
name = "A"
logs = ["log.csv"]
[[robots]]
name = "B"
logs = ["other.csv"]
[[robots]]
name = "C"
logs = ["third.csv"]
"""
TARGETS = """[log]
time = "time"
position = "position_{joint}"
current = "current_{joint}"
drive_gain = "from-log"
target_torque = "torque_{joint}"
target_current = "current_{joint}"
start = 0.0
"""
MAPPING = """[log]
time = "time"
time_unit = "s"
position = "position_{joint}"
torque = "torque_{joint}"
unit = "rad"
sign = [1, 1]
offset = [0.0, 0.0]
torque_scale = 1.0
start = 0.0
stop = 5.9
bad_rows = "drop"
"""
TABLE = "ZZ2, 0.1\nMX2, 0.15\nMY1, 0.0\n"


def recording(robot: Robot, seed: int = 0) -> Recording:
    """A log of six seconds with viscous and dry friction and noise."""
    rng = np.random.default_rng(seed)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([0.3 if one.nominal is None else one.nominal for one in model.parameters])
    t, w = np.arange(ROWS) / RATE, 2.0 * np.pi * np.array([0.5, 0.7]) * (1.0 + 0.1 * seed)
    q, dq = 0.8 * np.sin(w * t[:, None]), 0.8 * w * np.cos(w * t[:, None])
    tau = model.inverse_dynamics(theta, q, dq, -w ** 2 * q)
    return Recording(t, q, tau + 0.02 * rng.normal(size=tau.shape), dq=dq, joints=robot.joint_names)


def written(folder: Path) -> None:
    """All inputs in a folder."""
    texts = {"loop.toml": LOOP, "dh.toml": DH, "two.xml": MJCF, "two.xacro": XACRO, "bounds.toml": BOUNDS,
             "limits.toml": LIMITS, "run.toml": RUN, "fleet.toml": FLEET, "targets.toml": TARGETS,
             "mapping.toml": MAPPING, "table.csv": TABLE, "arm.urdf": urdf()}
    for name, text in texts.items():
        (folder / name).write_text(text)
    robot = Robot.load(folder / "arm.urdf")
    for seed, name in enumerate(("log", "other", "third")):
        write_csv(recording(robot, seed), folder / f"{name}.csv")
    log = recording(robot)
    (folder / "stream.csv").write_text("".join(
        ",".join(map(repr, row)) + "\n" for row in np.column_stack([log.t, log.q, log.tau]).round(6).tolist()))
    _preset_logs(log, folder)
    settings = RunSettings(robot=str(folder / "arm.urdf"), logs=(str(folder / "log.csv"),), method="wls",
                           model=ModelSettings(friction=("viscous", "coulomb")), simulation={"run": False},
                           prepare={"cutoff": 8.0})
    save(run(settings), folder / "result", report=False)
    np.savetxt(folder / "postures.csv", log.q[::100], delimiter=",", header="shoulder,elbow", comments="")
    shutil.copytree(folder / "result", folder / "kept")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(["motion", str(folder / "arm.urdf"), "sines", "-o", str(folder / "motion.csv"), "--duration", "1"])


def _preset_logs(log: Recording, folder: Path) -> None:
    """The log as recorders with a preset of their own write it, and with target currents."""
    assert log.dq is not None
    numbers = np.column_stack([log.t, log.q, log.dq, log.tau])

    def table(name: str, head: list[str], first: float = 1.0) -> None:
        rows = numbers * np.array([first, 1, 1, 1, 1, 1, 1])
        np.savetxt(folder / name, rows, delimiter=",", header=",".join(head), comments="", fmt="%.9g")

    each = [0, 1]
    table("rtde.csv", ["timestamp", *(f"actual_q_{i}" for i in each), *(f"actual_qd_{i}" for i in each),
                       *(f"actual_current_as_torque_{i}" for i in each)])
    table("franka.csv", ["time", *(f"state.q[{i}]" for i in each), *(f"state.dq[{i}]" for i in each),
                         *(f"state.tau_J[{i}]" for i in each)], 1e3)
    np.savez(folder / "panda.npz", time=1e3 * log.t, q=log.q, dq=log.dq, tau_J=log.tau,
             tau_ext_hat_filtered=0 * log.tau)
    head = ["time", *(f"position_{n}" for n in log.joints), *(f"torque_{n}" for n in log.joints),
            *(f"current_{n}" for n in log.joints)]
    np.savetxt(folder / "targets.csv", np.column_stack([log.t, log.q, log.tau, log.tau / [2.0, 3.0]]), delimiter=",",
               header=",".join(head), comments="", fmt="%.9g")

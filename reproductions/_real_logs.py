"""Real logs of the machines in the data folder, each with a second log of the same machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dynid.arrays import Array
from dynid.recording import Recording
from dynid.robot import Robot
from reproductions._data import data, log

_HALF_TURN = np.pi / 2.0
_PLC_TORQUE = np.array([3.442383e-4] * 3 + [1.342773e-4] * 3) * 101.0  # N m per drive count
_PLC_SIGNS = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
_HELD_ROWS = 3  # rows for which the logger of this machine repeats a value
_MILLI = 1e-3


@dataclass(frozen=True, eq=False)
class OpenMachine:
    """A real machine: its robot, a log to identify from, and another log of the same machine."""

    robot: Robot
    log: Recording
    other: Recording


def halves(whole: Recording) -> tuple[Recording, Recording]:
    """Return the first and the second half of a log."""
    middle = len(whole.t) // 2

    def part(rows: slice, name: str) -> Recording:
        return replace(whole, t=whole.t[rows], q=whole.q[rows], tau=whole.tau[rows],
                       dq=None if whole.dq is None else whole.dq[rows], source=f"{whole.source}, {name} half",
                       **{name: value[rows] for name in ("reference", "reference_velocity", "wrench", "temperature",
                                                         "motor_position", "sensed_torque", "target_torque",
                                                         "target_current", "external_torque", "current",
                                                         "voltage", "duty")
                          if (value := getattr(whole, name)) is not None})

    return part(slice(0, middle), "first"), part(slice(middle, None), "second")


def _recording(name: str, t: Array, q: Array, tau: Array) -> Recording:
    return Recording(t=np.asarray(t, dtype=float), q=np.ascontiguousarray(q, dtype=float),
                     tau=np.ascontiguousarray(tau, dtype=float), source=name)


def _dvrk() -> OpenMachine:
    h = _HALF_TURN
    robot = Robot.from_mdh([(h, 0, h, 0), (-h, 0, -h, 0), (h, 0, 0, -0.4318, "prismatic")], name="dvrk-psm",
                           gravity=(0.0, 0.0, -9.81))

    def read(name: str) -> Recording:
        found = np.load(data("machines", "dvrk_psm", name))
        return _recording(name, found["t"], found["q"], found["tau"])

    return OpenMachine(robot, read("one.npz"), read("two.npz"))


def _plc() -> OpenMachine:
    alpha = (0, _HALF_TURN, 0, 0, _HALF_TURN, -_HALF_TURN)
    d, r = (0, 0, -.416, -.4208, 0, 0), (.1181, 0, 0, .1301, .1021, .0568)
    robot = Robot.from_mdh([(a, b, 0, c) for a, b, c in zip(alpha, d, r, strict=True)], name="six-axis-plc",
                           gravity=(0.0, 0.0, -9.81))

    def read(name: str) -> Recording:
        found = np.load(data("machines", "six_axis_plc", name))
        rows = slice(None, None, _HELD_ROWS)
        q, tau = found["q"][rows], found["tau"][rows] * _PLC_TORQUE * _PLC_SIGNS
        return _recording(name, np.arange(len(q)) * 0.002 * _HELD_ROWS, q, tau)

    return OpenMachine(robot, read("traj2.npz"), read("traj3.npz"))


def _ethercat() -> OpenMachine:
    h = _HALF_TURN
    alpha, d = (0, -h, 0, -h, h, -h), (0, .04, .275, .025, 0, 0)
    r, offset = (0, 0, 0, .28, 0, 0), (0, -h, 0, 0, 0, 0)
    robot = Robot.from_mdh([*zip(alpha, d, offset, r, strict=True)], name="six-axis-ethercat",
                           gravity=(0.0, 0.0, -9.81))

    def read(name: str) -> Recording:
        found = np.load(data("machines", "six_axis_ethercat", name))
        moves = np.flatnonzero(np.any(np.abs(np.diff(found["q"], axis=0)) > 1e-6, axis=1))
        rows = slice(int(moves[0]), int(moves[-1]) + 1)
        return _recording(name, found["t"][rows], found["q"][rows], _MILLI * found["tau"][rows])

    return OpenMachine(robot, read("run2.npz"), read("run1.npz"))


def _ur3() -> OpenMachine:
    from scipy.io import loadmat

    h = _HALF_TURN
    a, alpha = (0, -.24365, -.21325, 0, 0, 0), (h, 0, 0, h, -h, 0)
    d = (.1519, 0, 0, .11235, .08535, .0819)
    robot = Robot.from_dh([(x, y, z, 0) for x, y, z in zip(alpha, a, d, strict=True)], name="ur3",
                          gravity=(0.0, 0.0, -9.81))

    def read(name: str) -> Recording:
        found = loadmat(data("machines", "ur3", name))
        t = np.asarray(found["mt"], dtype=float).ravel()
        q, tau = (np.asarray(found[key], dtype=float) for key in ("mq", "mtorque"))
        if q.shape[0] != len(t):
            q, tau = q.T, tau.T
        return _recording(name, t, q, -tau)

    return OpenMachine(robot, read("id1.mat"), read("id2.mat"))


def _iiwa() -> OpenMachine:
    robot = Robot.from_urdf(data("machines", "iiwa14", "iiwa14.urdf"))
    found = np.loadtxt(data("machines", "iiwa14", "gprProcessedActualData.csv"), delimiter=",")
    whole = _recording("iiwa14", np.arange(len(found)) / 25.0, found[:, :7], -found[:, 21:28])
    return OpenMachine(robot, *halves(whole))


def _pendulum(machine: str, length: float, first: str, second: str) -> OpenMachine:
    robot = Robot.from_mdh([(_HALF_TURN, 0, -_HALF_TURN, 0), (0, length, 0, 0)], name=f"double-pendulum-{machine}",
                           gravity=(0.0, 0.0, -9.81))

    def read(name: str) -> Recording:
        found = np.load(data("machines", "double_pendulum", f"{machine}_{name}.npz"), allow_pickle=False)
        names, values = [str(one) for one in found["names"]], found["data"]

        def columns(stem: str) -> Array:
            return np.column_stack([values[:, names.index(f"{stem}{j}")] for j in (1, 2)])

        return _recording(name, values[:, names.index("time")], columns("pos_meas"), columns("tau_meas"))

    return OpenMachine(robot, read(first), read(second))


def _lwr4() -> OpenMachine:
    robot = Robot.from_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
    return OpenMachine(robot, *(log("kuka_lwr4", robot, f"measurements_{k}.npz") for k in (1, 2)))


def _halved(name: str, make: Callable[[], Robot], *parts: str) -> OpenMachine:
    robot = make()
    return OpenMachine(robot, *halves(log(name, robot, *parts)))


OPEN: Mapping[str, Callable[[], OpenMachine]] = {
    "panda": lambda: _halved("panda", lambda: Robot.from_urdf(data("panda", "panda_arm.urdf"))),
    "tx40": lambda: _halved("tx40", lambda: Robot.builtin("staubli-tx40")),
    "emps": lambda: _halved("emps", lambda: Robot.builtin("emps"), "DATA_EMPS.mat"),
    "kuka_lwr4": _lwr4, "dvrk_psm": _dvrk, "six_axis_plc": _plc, "six_axis_ethercat": _ethercat,
    "ur3": _ur3, "iiwa14-log": _iiwa,
    "pendulum_a0": lambda: _pendulum("A0", 0.3, "00", "02"),
    "pendulum_c1": lambda: _pendulum("C1", 0.2, "143339", "143601")}


@cache
def open_machine(name: str) -> OpenMachine:
    """Return a machine of the data folder by its name in OPEN."""
    return OPEN[name]()

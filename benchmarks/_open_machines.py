"""Real machines in the data folder: robot, logs, and which part of them is fitted and which is predicted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.robot import Robot

SOURCE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DYNID_DATA", SOURCE.parent / "shared" / "data"))
SHORT = 8.0  # s of motion that is fitted in a short split
MOVES = 0.02  # share of a joint's range, over 0.1 s, by which motion is detected
PARTS = 8  # stretches of a log that are ranked by speed
FIRST_HALF = "first half"  # name of what is fitted where a machine has one log
TIAGO_ROWS = (921, 6791)  # the part of the log that its authors use
FASTER = 1.3  # ratio of the mean speeds of the fast and the slow half, above which a log has both


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a machine's data to fit, and another to predict.

    Attributes:
        machine: its name in the data folder.
        name: what is fitted and what is predicted.
        robot: of the machine.
        fitted, tested: logs.
        cutoff: Hz, of the plain fit and of the rows that are predicted.
        is_short: whether only the first seconds of the motion are fitted.
    """

    machine: str
    name: str
    robot: Robot
    fitted: tuple[Recording, ...]
    tested: tuple[Recording, ...]
    cutoff: float
    is_short: bool = False


def splits(wanted: Sequence[str] = ()) -> Iterator[Split]:
    """Yield the splits of the machines whose names are wanted, of all machines by default."""
    unknown = [name for name in wanted if name not in MACHINES]
    if unknown:
        raise NotPossibleError(f"There is no machine '{unknown[0]}'. Machines: {', '.join(MACHINES)}")
    if not DATA.is_dir():
        raise NotPossibleError("The data folder was not found. Set DYNID_DATA to its path.")
    for name in wanted or MACHINES:
        for split in MACHINES[name](name):
            yield split
            first = _first_seconds(split.fitted)
            if first is not None and "slow" not in split.name:
                yield Split(name, f"{split.name}, first {SHORT:g} s", split.robot, first, split.tested, split.cutoff,
                            True)


def _first_seconds(logs: Sequence[Recording]) -> tuple[Recording] | None:
    """Return the first seconds of motion of the first log; None where it has not twice as much."""
    log = in_motion(logs[0])
    if sum(one.duration for one in logs) < 2.0 * SHORT or log.duration < SHORT:
        return None
    return (log.between(float(log.t[0]), float(log.t[0]) + SHORT),)


def in_motion(log: Recording) -> Recording:
    """Return a log from the start to the end of its motion."""
    step = max(1, round(0.1 * log.rate))
    shift = np.abs(log.q[step:] - log.q[:-step])
    moving = np.flatnonzero(np.any(shift > MOVES * np.ptp(log.q, axis=0), axis=1))
    return log.between(float(log.t[moving[0]]), float(log.t[moving[-1] + step]))


def _halves(machine: str, robot: Robot, log: Recording, cutoff: float) -> Iterator[Split]:
    middle = float(log.t[0]) + 0.5 * log.duration
    first, second = log.between(float(log.t[0]), middle), log.between(middle, float(log.t[-1]) + 1.0)
    yield Split(machine, f"{FIRST_HALF} -> second", robot, (first,), (second,), cutoff)
    yield Split(machine, "second half -> first", robot, (second,), (first,), cutoff)


def _by_speed(machine: str, robot: Robot, log: Recording, cutoff: float) -> Iterator[Split]:
    """Return the slow intervals of a log for the fit and the fast intervals for the test, if it has both."""
    log = in_motion(log)
    edges = float(log.t[0]) + log.duration * np.arange(PARTS + 1) / PARTS
    parts = [log.between(a, b - 1e-9) for a, b in pairwise(edges)]
    spans = np.maximum(np.ptp(log.q, axis=0), 1e-9)
    speed = [float(np.mean(np.abs(one.q[5:] - one.q[:-5]) / spans) * one.rate) for one in parts]
    order = np.argsort(speed)
    slow, fast = np.sort(order[:PARTS // 2]), np.sort(order[PARTS // 2:])
    if np.mean([speed[k] for k in fast]) > FASTER * np.mean([speed[k] for k in slow]):
        yield Split(machine, "slow -> fast", robot, tuple(parts[k] for k in slow), tuple(parts[k] for k in fast),
                    cutoff)


def _from_each(machine: str, robot: Robot, logs: dict[str, Recording], pairs: Sequence[tuple[str, str]],
               cutoff: float) -> Iterator[Split]:
    for a, b in pairs:
        yield Split(machine, f"{a} -> {b}", robot, (logs[a],), (logs[b],), cutoff)
    yield from _by_speed(machine, robot, logs[pairs[0][0]], cutoff)


def _mapped(machine: str, robot: Robot, *parts: str) -> Recording:
    """Read a log, without velocities that it has: both fits and the rows that are predicted use positions alone."""
    log = read(DATA.joinpath(machine, *parts), SOURCE / "reproductions" / "mappings" / f"{machine}.toml", robot)
    return replace(log, dq=None)


def _one_log(robot_of: Callable[[], Robot], cutoff: float, *parts: str) -> Callable[[str], Iterator[Split]]:
    def found(machine: str) -> Iterator[Split]:
        robot = robot_of()
        log = _mapped(machine, robot, *parts)
        yield from _halves(machine, robot, log, cutoff)
        yield from _by_speed(machine, robot, log, cutoff)
    return found


def _lwr4(machine: str) -> Iterator[Split]:
    robot = Robot.from_urdf(DATA / machine / "kuka_lwr4.urdf")
    logs = {str(k): _mapped(machine, robot, f"measurements_{k}.npz") for k in (1, 2)}
    yield from _from_each(machine, robot, logs, [("1", "2"), ("2", "1")], 8.0)


def _arrays(machine: str, file: str) -> dict[str, Array]:
    with np.load(DATA / "machines" / machine / file) as found:
        return {name: found[name] for name in found.files}


def _dvrk(machine: str) -> Iterator[Split]:
    quarter = 0.5 * np.pi
    robot = Robot.from_mdh([(quarter, 0.0, quarter, 0.0), (-quarter, 0.0, -quarter, 0.0),
                            (quarter, 0.0, 0.0, -0.4318, "prismatic")], name=machine)
    logs = {name: Recording(z["t"], z["q"], z["tau"], joints=robot.joint_names, source=name)
            for name in ("one", "two") for z in (_arrays(machine, f"{name}.npz"),)}
    yield from _from_each(machine, robot, logs, [("one", "two"), ("two", "one")], 5.0)


def _plc(machine: str) -> Iterator[Split]:
    quarter = 0.5 * np.pi
    alpha, d = (0.0, quarter, 0.0, 0.0, quarter, -quarter), (0.0, 0.0, -0.416, -0.4208, 0.0, 0.0)
    r = (0.1181, 0.0, 0.0, 0.1301, 0.1021, 0.0568)
    robot = Robot.from_mdh([(a, b, 0.0, c) for a, b, c in zip(alpha, d, r, strict=True)], name=machine)
    gain = 101.0 * np.array([3.442383e-4] * 3 + [1.342773e-4] * 3) * np.array([1, 1, -1, 1, 1, 1])
    logs = {str(k): Recording(0.002 * np.arange(len(z["q"])), z["q"], gain * z["tau"], joints=robot.joint_names,
                              source=f"traj{k}") for k in (1, 2, 3) for z in (_arrays(machine, f"traj{k}.npz"),)}
    yield from _from_each(machine, robot, logs, [("2", "1"), ("2", "3"), ("3", "1"), ("3", "2")], 5.0)


def _ethercat(machine: str) -> Iterator[Split]:
    quarter = 0.5 * np.pi
    alpha, d = (0.0, -quarter, 0.0, -quarter, quarter, -quarter), (0.0, 0.04, 0.275, 0.025, 0.0, 0.0)
    robot = Robot.from_mdh([(a, b, -quarter if j == 1 else 0.0, 0.28 if j == 3 else 0.0)
                            for j, (a, b) in enumerate(zip(alpha, d, strict=True))], name=machine)
    logs = {str(k): Recording(z["t"], z["q"], 1e-3 * z["tau"], joints=robot.joint_names, source=f"run{k}")
            for k in (1, 2, 4) for z in (_arrays(machine, f"run{k}.npz"),)}
    yield from _from_each(machine, robot, logs, [("1", "2"), ("1", "4"), ("2", "1"), ("2", "4")], 8.0)


def _ur3(machine: str) -> Iterator[Split]:
    from scipy.io import loadmat

    quarter = 0.5 * np.pi
    d, a = (0.1519, 0.0, 0.0, 0.11235, 0.08535, 0.0819), (0.0, -0.24365, -0.21325, 0.0, 0.0, 0.0)
    alpha = (quarter, 0.0, 0.0, quarter, -quarter, 0.0)
    robot = Robot.from_dh([(x, y, z, 0.0) for x, y, z in zip(alpha, a, d, strict=True)], name=machine)
    logs = {name: Recording(z["mt"].ravel(), z["mq"], -z["mtorque"], joints=robot.joint_names, source=name)
            for name in ("id1", "id2") for z in (loadmat(DATA / "machines" / machine / f"{name}.mat"),)}
    yield from _from_each(machine, robot, logs, [("id1", "id2"), ("id2", "id1")], 5.0)


def _iiwa14(machine: str) -> Iterator[Split]:
    folder = DATA / "machines" / machine
    robot = Robot.from_urdf(folder / "iiwa14.urdf")
    table = np.loadtxt(folder / "gprProcessedActualData.csv", delimiter=",")
    log = Recording(np.arange(len(table)) / 25.0, table[:, :7], -table[:, 21:28], joints=robot.joint_names,
                    source=machine)
    yield from _halves(machine, robot, log, 5.0)


def _double_pendulum(machine: str) -> Iterator[Split]:
    quarter = 0.5 * np.pi
    # One of the two machines each: its first arm's length (m), the logs to fit and those to predict.
    for arm, length, fitted, tested in (("A0", 0.3, ("00", "02", "04", "05"), ("01", "11")),
                                        ("C1", 0.2, ("143339", "143601", "144115", "154220"), ("143524", "154548"))):
        robot = Robot.from_mdh([(quarter, 0.0, -quarter, 0.0), (0.0, length, 0.0, 0.0)], name=f"{machine} {arm}")
        logs = {}
        for name in (*fitted, *tested):
            z = _arrays(machine, f"{arm}_{name}.npz")
            column = {str(title): z["data"][:, k] for k, title in enumerate(z["names"])}
            logs[name] = Recording(column["time"], *(np.column_stack([column[f"{signal}_meas{j}"] for j in (1, 2)])
                                                     for signal in ("pos", "tau")), joints=robot.joint_names,
                                   source=f"{arm}_{name}")
        for name in tested:
            yield Split(machine, f"{arm} four -> {name}", robot, tuple(logs[one] for one in fitted), (logs[name],),
                        8.0)


def _tiago(machine: str) -> Iterator[Split]:
    folder = DATA / "machines" / machine
    joints = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
    robot = Robot.from_urdf(folder / "tiago_48_schunk.urdf").only(joints)
    position, effort = (np.loadtxt(folder / f"tiago_{signal}.csv", delimiter=",", skiprows=1)
                        for signal in ("position", "effort"))
    gain = np.array([1.0, 13.6, 13.6, -8.7, -8.7, 0.0, 0.0, 0.0])  # N m/A; the wrist gives no torque
    rows = slice(*TIAGO_ROWS)
    log = Recording(position[rows, 0], position[rows, 1:], gain * effort[rows, 1:], joints=robot.joint_names,
                    source=machine, unmeasured=joints[5:])
    yield from _halves(machine, robot, log, 3.0)


def _baxter(machine: str) -> Iterator[Split]:
    folder = DATA / "machines" / machine
    robot = Robot.from_urdf(folder / "baxter_left_arm.urdf")

    def log(name: str) -> Recording:
        table = np.loadtxt(folder / f"{name}.csv", skiprows=1)
        return Recording(np.arange(len(table)) / 100.0, table[:, :7], table[:, 14:21], joints=robot.joint_names,
                         source=name)

    fitted = tuple(log(name) for name in ("Random", "sin_XYZ_10s_T2_5_Tz_4T_r15", "sin_XYZ_8s_T2_Tz_4T_r10"))
    for name in ("circle_XZ_T2_5_r10", "square", "circle_XY_T2_r10", "sin_XYZ_12_5s_T2_5_Tz_5T_r18"):
        yield Split(machine, f"three -> {name}", robot, fitted, (log(name),), 4.0)


MACHINES: dict[str, Callable[[str], Iterator[Split]]] = {
    "emps": _one_log(lambda: Robot.builtin("emps"), 20.0, "DATA_EMPS.mat"),
    "tx40": _one_log(lambda: Robot.from_urdf(DATA / "tx40" / "tx40_mdh_modified.urdf"), 20.0),
    "kuka_lwr4": _lwr4,
    "panda": _one_log(lambda: Robot.from_urdf(DATA / "panda" / "panda_arm.urdf"), 5.0),
    "dvrk_psm": _dvrk, "six_axis_plc": _plc, "six_axis_ethercat": _ethercat, "ur3": _ur3, "iiwa14": _iiwa14,
    "double_pendulum": _double_pendulum, "tiago_arm": _tiago, "baxter_left": _baxter,
}

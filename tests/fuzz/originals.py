"""Valid files of every kind that dynid reads, small, and how each is read."""

from __future__ import annotations

import gzip
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore
from scipy.io import savemat

from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.recording.write import write_npz
from dynid.regression import Regression
from dynid.robot import Robot
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.result_folder import MANIFEST, write_manifest
from dynid.runs.results import load, save

ROWS = 60
T = np.arange(ROWS) * 0.01
ARRAYS: dict[str, Any] = {"time": T, "q": np.column_stack([np.sin(3 * T), np.cos(2 * T)]),
                          "dq": np.column_stack([3 * np.cos(3 * T), -2 * np.sin(2 * T)]),
                          "tau": np.column_stack([3 * np.cos(T), 2 * np.sin(3 * T)])}
URDF = """<?xml version="1.0"?>
<robot name="two"><!-- é -->
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0" rpy="0 0.5 0"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial>
    <collision><geometry><cylinder radius="0.05" length="0.3"/></geometry></collision></link>
  <link name="fore"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial></link>
  <link name="tool"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" velocity="3" effort="50"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="b" type="prismatic"><origin xyz="0 0 0.3"/><parent link="upper"/><child link="fore"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.5" velocity="1" effort="90"/></joint>
  <joint name="c" type="fixed"><parent link="fore"/><child link="tool"/></joint>
</robot>
"""
RUN = """# a run
robot = "scara2"
logs = ["one.csv", ["two.csv", "three.csv"], {file = "four.npz", name = "slow", start = 1.0, stop = 9.5, axis = 0}]
method = "irls"
gravity = [0.0, 0.0, -9.81]
blocks = 8
[options]
loss = "huber"
[model]
friction = ["viscous", "coulomb"]
rotor = true
[log]
time = "t"
position = ["q1", "q2"]
unit = "deg"
start = 0.5
stop = 20.0
bad_rows = "drop"
[prepare]
cutoff = 8.0
velocity = ["auto", "differentiate"]
[known]
Ia1 = [0.1, 0.01]
[simulation]
horizon = 0.5
[[validate_on]]
file = ["five.mat", "six.mat"]
inherit = false
array = "log.data"
side = "motor"
ratio = "gear"
current = {file = "{stem}_i.csv", columns = "2-3"}
drive_gain = "k"
rate = 500.0
position = "1-2"
"""


def text_log(delimiter: str = ",") -> str:
    table = np.column_stack([ARRAYS["time"], ARRAYS["q"], ARRAYS["tau"]]).tolist()
    return "\n".join(delimiter.join(map(str, row)) for row in [["time", "q1", "q2", "tau1", "tau2"], *table]) + "\n"


def array_file(kind: str, arrays: dict[str, Any], folder: Path) -> bytes:
    """Arrays by name in one of the binary formats; raises what the format cannot hold."""
    to, path = io.BytesIO(), folder / f"made.{kind}"
    if kind in ("npz", "packed.npz"):
        (np.savez if kind == "npz" else np.savez_compressed)(to, allow_pickle=True, **arrays)
    elif kind == "npy":
        np.save(to, np.column_stack([np.asarray(one) for one in arrays.values()]))
    elif kind == "mat":
        savemat(to, {**arrays, "log": {"drive": np.ones(2)}}, do_compression=True)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(f"log/{name}", data=array, compression="gzip" if np.ndim(array) else None)
        return path.read_bytes()
    else:
        columns = {name: list(array) if np.ndim(array) == 2 else array for name, array in arrays.items()}
        pq.write_table(pa.table(columns), path)
        return path.read_bytes()
    return to.getvalue()


def bag(path: Path, kind: str) -> bytes:
    """JointState messages of two joints."""
    store = get_typestore(Stores.ROS1_NOETIC if kind == "bag" else Stores.ROS2_HUMBLE)
    state, header, moment = (store.types[name] for name in (
        "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    plugin = rosbag2.StoragePlugin.MCAP if kind == "mcap" else rosbag2.StoragePlugin.SQLITE3
    with rosbag1.Writer(path) if kind == "bag" else rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
        for row, stamp in enumerate(np.round(T * 1e9).astype(int).tolist()):
            head = [moment(5 + stamp // 10**9, stamp % 10**9), ""]
            message = state(header(*([0] if kind == "bag" else []), *head), ["a", "b"],
                            *(ARRAYS[name][row] for name in ("q", "dq", "tau")))
            write = store.serialize_ros1 if kind == "bag" else store.serialize_cdr
            writer.write(connection, 5 * 10**9 + stamp, write(message, state.__msgtype__))
    return path.read_bytes() if kind == "bag" else next(path.glob(f"*.{kind}")).read_bytes()


def result(folder: Path) -> Path:
    """A folder with a result of a small robot."""
    t = np.arange(600) / 100
    q, dq, ddq = (np.column_stack([f, 0.5 * f[::-1]]) for f in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    model = Model(Robot.builtin("scara2"))
    torque = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    write_npz(Recording(t, q, torque), folder / "log.npz")
    settings = RunSettings(robot="scara2", logs=(str(folder / "log.npz"),), method="ols", prepare={"cutoff": 20.0},
                           model=ModelSettings(friction=("viscous",)), simulation={"run": False})
    save(run(settings), folder / "out", report=False)
    return folder / "out"


def originals(folder: Path) -> dict[str, bytes]:
    """Content of a valid file of every kind; the kind is how its name ends, or of a result the name of the file."""
    found = {"csv": text_log().encode(), "tsv": text_log("\t").encode(), "csv.gz": gzip.compress(text_log().encode()),
             "urdf": URDF.encode(), "robot.toml": _builtin("scara2"), "run.toml": RUN.encode()}
    for kind in ("npz", "packed.npz", "npy", "mat", "h5", "parquet"):
        found[kind] = array_file(kind, ARRAYS, folder)
    for kind in ("bag", "db3", "mcap"):
        found[kind] = bag(folder / f"made.{kind}", kind)
    out = result(folder)
    return found | {f"result/{path.name}": path.read_bytes() for path in out.iterdir()}


def _builtin(name: str) -> bytes:
    import dynid.robot
    return (Path(dynid.robot.__file__).parent / "builtin" / f"{name}.toml").read_bytes()


def try_to_read(kind: str, content: bytes, folder: Path, honest: bool) -> None:
    """Read a file of some kind as a user would; raises what dynid raises, and AssertionError for numbers not finite.

    honest: of a damaged result, the manifest says what lies there.
    """
    if kind.startswith("result/"):
        name, out = kind.removeprefix("result/"), folder / "mutated"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "out", out)
        (out / name).write_bytes(content)
        if honest and name != MANIFEST:
            (out / MANIFEST).unlink()
            write_manifest(out)
        _finite_estimate(*load(out))
        _finite_regression(out)
        return
    path = folder / f"mutated.{kind}"
    path.write_bytes(content)
    READERS.get(kind, _recording)(path)


def _finite_estimate(estimate: Estimate, settings: RunSettings) -> None:
    assert np.all(np.isfinite(estimate.values)) and not np.any(np.isnan(estimate.covariance))
    assert estimate.theta is None or np.all(np.isfinite(estimate.theta))


def _finite_regression(out: Path) -> None:
    estimate, _ = load(out)
    found = Regression.load(out / "regression.npz", estimate.model)
    assert all(np.all(np.isfinite(factor.r)) for factor in found.factors)


def _recording(path: Path) -> None:
    rules = {"time": 1, "position": "2-3", "torque": "6-7"} if path.suffix == ".npy" else {}
    try:
        found = [read(path, rules)]
    except DynidError:
        found = []
    for more in ({"start": 0.1, "stop": 0.4}, {"axis": 1}, {"array": "q", "position": "1-2", "torque": 1}):
        try:
            found.append(read(path, {**rules, **more, "bad_rows": "drop"}))
        except DynidError:
            pass
    found.append(read(path, {**rules, "bad_rows": "drop"}))
    for one in found:
        for array in (one.t, one.q, one.tau, *([one.dq] if one.dq is not None else [])):
            assert np.all(np.isfinite(array))


def _robot(path: Path) -> None:
    robot = Robot.load(path)
    if not robot.bodies_without_inertia:
        assert np.all(np.isfinite(robot.inertias))
    if robot.dof <= 3:
        q = np.full((2, robot.dof), 0.3)
        assert not np.any(np.isnan(Model(robot).regressor(q, q, q)))


READERS: dict[str, Callable[[Path], object]] = {"urdf": _robot, "robot.toml": _robot, "run.toml": RunSettings.load}

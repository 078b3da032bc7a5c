"""Motions with a floor stay above it, as judged by Pinocchio and by shapes that are read here, not by dynid's check."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from robots import to_pinocchio

from dynid.arrays import Array
from dynid.cli.main import main
from dynid.dynamics.following import tree_motion
from dynid.excitation import read_trajectory
from dynid.robot import Robot, builtin_names
from dynid.robot.pose import from_xyz_rpy

pin = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.usefixtures("one_start")

QUICK = ("--rounds", "1", "--duration", "8", "--harmonics", "3")
RATE = 1000.0  # Hz: rows of the motion that are judged
FIXED_END = 1e-3  # m: a height that changes less over random postures does not depend on the motion
URDFS = {  # URDFs below DYNID_DATA, and the joints that are moved of those with more than one arm
    "models/ur10_robot.urdf": "", "models/ur5_robot.urdf": "", "models/xarm7.urdf": "", "models/kinova_jaco.urdf": "",
    "machines/iiwa14/iiwa14.urdf": "", "machines/baxter_left/baxter_left_arm.urdf": "",
    "machines/baxter_left/baxter.urdf": ",".join(f"left_{name}" for name in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")),
    "machines/tiago_arm/tiago_48_schunk.urdf": ",".join(f"arm_{k}_joint" for k in range(1, 8)),
    "kuka_lwr4/kuka_lwr4.urdf": "", "kuka_lwr4/kuka_lwr4_cogimon.urdf": "", "kuka_lwr4/kuka_lwr4_gaz.urdf": "",
    "kuka_lwr4/kuka_lwr4_centroepiaggio.urdf": "", "kuka_lwr4/kuka_lwr4_identified.urdf": "",
    "panda/panda_arm.urdf": "", "so101/so101_new_calib.urdf": "", "tx40/tx40_mdh_modified.urdf": ""}
WITHOUT_LIMITS = ("emps", "scara2")  # of which no motion can be designed without a limits file
BUILTIN = [name for name in builtin_names() if name not in WITHOUT_LIMITS]
BELOW = {"delta": -0.75, "four-bar": -0.3}  # height of the floor, m, of robots that hang from their base


class Judge:
    """Heights of the moving links of a robot, by Pinocchio.

    A link with primitive collision shapes has these. A link without shapes, or with meshes (there are no mesh files),
    is a capsule from its joint to the joints of its children, or to its frames if it has no children.
    """

    def __init__(self, model: Any, joints: Sequence[str], up: Sequence[float], urdf: Path | None = None) -> None:
        self.model, self.data, self.up = model, model.createData(), np.asarray(up) / np.linalg.norm(up)
        self.joints = [model.getJointId(name) for name in joints]
        moving = {k for k in range(1, model.njoints) if set(self.joints) & set(model.supports[k])}
        self.shapes, meshes = [], set()
        for joint, pose, shape in () if urdf is None else self.read_shapes(urdf):
            if joint in moving and shape.tag == "mesh":
                meshes.add(joint)
            elif joint in moving:
                sizes = {key: np.array(value.split(), dtype=float) for key, value in shape.attrib.items()}
                self.shapes.append((joint, pose, shape.tag, sizes))
        bare = moving - ({joint for joint, *_ in self.shapes} - meshes)
        self.points = [(joint, point) for joint in sorted(bare) for point in self.capsule_ends(joint)]

    def read_shapes(self, urdf: Path) -> Iterator[tuple[int, Array, ElementTree.Element]]:
        for link in ElementTree.parse(urdf).getroot().findall("link"):
            frame = self.model.frames[self.model.getFrameId(link.get("name"), pin.FrameType.BODY)]
            for collision in link.findall("collision"):
                origin, pose = collision.find("origin"), np.eye(4)
                if origin is not None:
                    pose = from_xyz_rpy(*(list(map(float, origin.get(key, "0 0 0").split())) for key in ("xyz", "rpy")))
                for shape in collision.find("geometry"):
                    yield frame.parentJoint, frame.placement.homogeneous @ pose, shape

    def capsule_ends(self, joint: int) -> Iterator[Array]:
        children = [self.model.jointPlacements[k].translation for k in range(1, self.model.njoints)
                    if self.model.parents[k] == joint]
        frames = [frame.placement.translation for frame in self.model.frames if frame.parentJoint == joint]
        yield np.zeros(3)
        yield from map(np.array, children or frames)

    def heights(self, q: Array, radius: float = 0.0) -> Array:
        """Return the lowest height (samples, ends + shapes), m, of every end of a capsule and every shape."""
        whole, rows = pin.neutral(self.model), []
        for row in q:
            for k, value in zip(self.joints, row, strict=True):
                joint = self.model.joints[k]
                whole[joint.idx_q:joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
            pin.forwardKinematics(self.model, self.data, whole)
            low = [float(self.up @ self.data.oMi[joint].act(point)) - radius for joint, point in self.points]
            for joint, pose, kind, sizes in self.shapes:
                placed = self.data.oMi[joint].homogeneous @ pose
                axis = placed[:3, :3].T @ self.up
                half = (sizes["radius"][0] if kind == "sphere" else 0.5 * np.abs(axis) @ sizes["size"] if kind == "box"
                        else 0.5 * sizes["length"][0] * abs(axis[2])
                        + sizes["radius"][0] * np.sqrt(max(1.0 - axis[2] ** 2, 0.0)))
                low.append(float(self.up @ placed[:3, 3] - half))
            rows.append(low)
        return np.array(rows)

    def lowest(self, q: Array, radius: float) -> float:
        """Return the lowest height of everything whose height depends on the posture, m."""
        random = np.random.default_rng(1).uniform(-3.0, 3.0, (60, q.shape[1]))
        moves = np.ptp(self.heights(random), axis=0) > FIXED_END
        return float(self.heights(q, radius)[:, moves].min(initial=np.inf))


def judged_motion(robot: str | Path, joints: str, gravity: Sequence[float], file: Path) -> tuple[Judge, Array]:
    """Return the judge of a robot and the positions (samples, joints) of all joints that it moves."""
    own = Robot.load(robot)
    names = tuple(joints.split(",")) if joints else own.joint_names
    q, up = read_trajectory(file, names).q, -np.asarray(gravity or own.gravity.tolist())
    if isinstance(robot, Path):  # some files have a negative friction, which Pinocchio refuses
        text = re.sub(r"<dynamics[^>]*/>", "", robot.read_text(encoding="utf-8"))
        return Judge(pin.buildModelFromXML(text), names, up, robot), q
    if own.followers is not None:  # the loops are closed by dynid
        zero = np.zeros_like(q)
        return Judge(to_pinocchio(own.tree), own.tree.joint_names, up), tree_motion(own, q, zero, zero).q
    return Judge(to_pinocchio(own), names, up), q


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


def height_of_motion(tmp_path: Path, capfd: pytest.CaptureFixture[str], robot: str | Path, floor: float, *,
                     joints: str = "", gravity: Sequence[float] = (), command: Sequence[str] = ("excite",),
                     options: Sequence[str] = QUICK) -> tuple[float, dict[str, Any]]:
    """Return the clearance above the floor of the motion that a command writes, m, and the command's JSON."""
    file = tmp_path / "motion.csv"
    code = run(command[0], robot, *command[1:], "--floor", floor, "--rate", RATE, "-o", file, "--json", *options,
               *(("--only", joints) if joints else ()),
               *(("--gravity", ",".join(map(str, gravity))) if gravity else ()))
    out, err = capfd.readouterr()
    assert code == 0, err
    facts = json.loads(out)
    judge, q = judged_motion(robot, joints, gravity, file)
    assert facts["checked"].startswith("checked against the floor")
    assert "floor" not in facts["unchecked"]
    assert all(link["checked"] for link in facts["links"])
    radius = max((link["radius"] for link in facts["links"] if link["radius"] is not None), default=0.0)
    return judge.lowest(q, radius) - floor, facts


@pytest.mark.parametrize("robot", ["models/ur5_robot.urdf", "kuka-lwr4"])
def test_motion_above_a_floor_stays_above_it_as_judged_by_pinocchio(robot: str, data: Callable[..., Path],
                                                                    tmp_path: Path, capfd: Any) -> None:
    source = data(robot) if robot in URDFS else robot
    clearance, facts = height_of_motion(tmp_path, capfd, source, 0.0)
    assert clearance >= 0.0
    kinds = {link["link"]: link["checked"] for link in facts["links"]}
    assert all("capsule" in checked for checked in kinds.values())
    if robot in URDFS:  # the box of the tool does not replace the link that carries it
        assert kinds["wrist_3_link"] == ["shapes", "capsule"] and "forearm_link" in kinds


@pytest.mark.parametrize("kind", ["sines", *(pytest.param(kind, marks=pytest.mark.slow) for kind in (
    "points", "spline", "gravity", "inertia", "coupling"))])
def test_motion_without_optimisation_stays_above_a_floor(kind: str, data: Callable[..., Path], tmp_path: Path,
                                                         capfd: Any) -> None:
    clearance, facts = height_of_motion(tmp_path, capfd, data("models/ur5_robot.urdf"), -0.2, command=("motion", kind),
                                        options=("--duration", "8", "--points", "5"))
    assert clearance >= 0.0
    assert kind == "points" or any("positions stay within" in note for note in facts["notes"])


def test_motion_that_would_need_space_below_the_floor_is_refused(data: Callable[..., Path], tmp_path: Path,
                                                                 capfd: Any) -> None:
    file = tmp_path / "motion.csv"  # at the top speed of the elbow, its range is too small above this floor
    assert run("motion", data("models/ur5_robot.urdf"), "friction", "--floor", "-0.2", "-o", file) == 1
    error = capfd.readouterr().err
    assert "no motion of kind 'friction' is free of collisions" in error and "--home" in error
    assert "Traceback" not in error and not file.exists()


def test_commands_of_an_actuator_experiment_stay_above_a_floor(tmp_path: Path, data: Callable[..., Path],
                                                               capfd: Any) -> None:
    robot = data("so101/so101_new_calib.urdf")
    options = ("--actuator", "pd", "--gain", "kp=20", "--gain", "kd=1", "--friction", "m1", "--duration", "12",
               "--part", "6", "--only", "shoulder_pan,shoulder_lift,elbow_flex", "--json")
    assert run("excite", robot, "-o", tmp_path / "low", "--floor", "0.3", *options) == 1
    assert "--home" in capfd.readouterr().err and not (tmp_path / "low").exists()
    assert run("excite", robot, "-o", tmp_path / "plan", "--floor", "0", *options) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["collisions"].startswith("checked against the floor and the robot itself")
    judged = 0
    for file in sorted((tmp_path / "plan").glob("*.csv")):
        rows = np.genfromtxt(file, delimiter=",", names=True)
        names = [name.removeprefix("q_") for name in rows.dtype.names[1:]]
        fine = np.arange(0.0, rows["t"][-1], 1.0 / RATE)
        q = np.column_stack([np.interp(fine, rows["t"], rows[f"q_{name}"]) for name in names])
        judge = Judge(pin.buildModelFromUrdf(str(robot)), names, (0.0, 0.0, 1.0), robot)
        assert judge.lowest(q, 0.0) >= 0.0
        judged += 1
    assert judged == 2


@pytest.mark.slow
@pytest.mark.parametrize("robot", [*URDFS, *BUILTIN])
def test_every_robot_stays_above_a_level_floor(robot: str, data: Callable[..., Path], tmp_path: Path,
                                               capfd: Any) -> None:
    source = data(robot) if robot in URDFS else robot
    clearance, facts = height_of_motion(tmp_path, capfd, source, BELOW.get(robot, 0.0), joints=URDFS.get(robot, ""))
    with capfd.disabled():
        print(f"\n| {robot} | {clearance:.4f} | {facts['condition'] or np.inf:.3g} | {facts['checked']} |")
    assert clearance >= 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "robot"), list(enumerate([*URDFS, *BUILTIN])))
def test_every_robot_stays_above_the_floor_below_a_tilted_base(seed: int, robot: str, data: Callable[..., Path],
                                                               tmp_path: Path, capfd: Any) -> None:
    rng = np.random.default_rng(seed)
    tilt, around, height = rng.uniform(0.05, 0.5), rng.uniform(-np.pi, np.pi), rng.uniform(0.2, 0.6)
    down = -9.81 * np.array([np.sin(tilt) * np.cos(around), np.sin(tilt) * np.sin(around), np.cos(tilt)])
    source = data(robot) if robot in URDFS else robot
    clearance, facts = height_of_motion(tmp_path, capfd, source, BELOW.get(robot, 0.0) - round(height, 3),
                                        joints=URDFS.get(robot, ""), gravity=np.round(down, 4).tolist(),
                                        options=(*QUICK, "--full-range"))
    with capfd.disabled():
        print(f"\n| {robot}, base {height:.2f} m high, tilted by {tilt:.2f} rad | {clearance:.4f} | "
              f"{facts['condition'] or np.inf:.3g} | {facts['checked']} |")
    assert clearance >= 0.0

"""Bags of a walker with IMU, pose and force topics, against the table of the same walk."""

from __future__ import annotations

import numpy as np
import pytest
from bags import new_bag
from refusals import refused
from typer.testing import CliRunner
from walking_runs import short_walk

from dynid.cli.main import app
from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.recording.topics import TopicSeries, vector_series
from dynid.recording.whole_body import of_topics
from dynid.robot import Robot
from reproductions._walking_world import LEGS

START = 1_700_000_000_000_000_000  # ns
SECOND_IMU = "/camera/imu"


def types(bag):
    return bag.types("sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu", "geometry_msgs/msg/WrenchStamped",
                     "geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/Vector3", "geometry_msgs/msg/Quaternion",
                     "geometry_msgs/msg/Wrench", "geometry_msgs/msg/Pose", "geometry_msgs/msg/Point")


def written(path, kind, *, pose=True, forces=True, second_imu=False, flips=False):
    """A bag of the walk: joints, an IMU without orientation, the pose of the base, and the force on each foot."""
    world, empty = short_walk(), np.zeros(9)
    s, names = world.signals, Robot.load(world.walker.text).joint_names[6:]
    with new_bag(path, kind, start=START) as bag:
        State, Imu, Stamped, Posed, Vector, Turn, Wrench, Pose, Point = types(bag)
        states = bag.topic("/joint_states", State)
        imus = [bag.topic("/trunk_sensor/data", Imu)] + ([bag.topic(SECOND_IMU, Imu)] if second_imu else [])
        poses = bag.topic("/mocap/trunk", Posed) if pose else None
        feet = [bag.topic(f"/{leg}_foot/wrench", Stamped) for leg in LEGS] if forces else []
        for k, t in enumerate(world.t):
            bag.write(states, State, t, lambda head, k=k: State(head, list(names), s["q"][k], np.zeros(0), s["tau"][k]))
            for topic in imus:
                bag.write(topic, Imu, t, lambda head, k=k: Imu(
                    head, Turn(0.0, 0.0, 0.0, 0.0), -np.eye(3).ravel(), Vector(*s["gyro"][k]), empty,
                    Vector(*s["accelerometer"][k]), empty))
            if poses is not None:
                sign = -1.0 if flips and k % 3 == 0 else 1.0
                bag.write(poses, Posed, t, lambda head, k=k, sign=sign: Posed(head, Pose(
                    Point(*s["position"][k]), Turn(*(sign * s["orientation"][k])))))
            for leg, topic in enumerate(feet):
                bag.write(topic, Stamped, t, lambda head, k=k, leg=leg: Stamped(head, Wrench(
                    Vector(*s["wrench"][k, leg, :3]), Vector(*s["wrench"][k, leg, 3:]))))
    return path


@pytest.mark.parametrize("kind", ["ros1", "mcap"])
def test_topics_of_a_walker_are_read_by_their_types(tmp_path, kind):
    world, robot = short_walk(), Robot.load(short_walk().walker.text)
    found = read(written(tmp_path / ("log.bag" if kind == "ros1" else "log"), kind, flips=True), None, robot)
    s = world.signals
    np.testing.assert_allclose(found.base_signals["imu_angular_rate"], s["gyro"], atol=1e-5)
    np.testing.assert_allclose(found.base_signals["imu_specific_force"], s["accelerometer"], atol=1e-3)
    np.testing.assert_allclose(found.base_signals["base_position"], s["position"], atol=1e-6)
    turned = found.base_signals["base_orientation"]
    assert np.abs(np.abs(np.sum(turned * s["orientation"], axis=1)) - 1.0).max() < 1e-6
    forces = found.base_signals["foot_force"].reshape(len(found), 4, 6)
    np.testing.assert_allclose(forces, s["wrench"], atol=1e-2 * np.abs(s["wrench"]).max())
    text = " ".join(found.notes)
    assert "imu_angular_rate = /trunk_sensor/data:angular_velocity" in text and "was interpolated" in text


def test_two_imus_are_not_chosen_between(tmp_path):
    robot = Robot.load(short_walk().walker.text)
    bag = written(tmp_path / "log", "mcap", pose=False, forces=False, second_imu=True)
    found = read(bag, {"contact": "always"}, robot)
    assert "imu_angular_rate" not in found.base_signals
    assert "--set log.imu_angular_rate=/trunk_sensor/data:angular_velocity" in " ".join(found.notes)
    chosen = read(bag, {"contact": "always", "imu_angular_rate": {"topic": SECOND_IMU},
                        "imu_specific_force": f"{SECOND_IMU}:linear_acceleration"}, robot)
    np.testing.assert_allclose(chosen.base_signals["imu_angular_rate"], short_walk().signals["gyro"], atol=1e-5)
    with refused(RecordingError, "log-lacks-signal", SECOND_IMU, "base_position"):
        read(bag, {"contact": "always", "base_position": {"topic": SECOND_IMU}}, robot)


def test_the_orientation_comes_with_the_position():
    fields = {"/imu:orientation": "base_orientation", "/odom:position": "base_position",
              "/odom:orientation": "base_orientation"}
    found = of_topics(fields)[0]
    assert found == {"base_orientation": ("/odom:orientation",), "base_position": ("/odom:position",)}


def test_quaternions_are_interpolated_without_jumps():
    """Halfway between two orientations about z, one of which is written with the other sign."""
    class Message:
        def __init__(self, sec, x, y, z, w):
            stamp = type("Stamp", (), {"sec": sec, "nanosec": 0})
            self.header = type("Header", (), {"stamp": stamp})
            turn = type("Turn", (), {"x": x, "y": y, "z": z, "w": w})
            self.pose = type("Pose", (), {"orientation": turn})

    half = 0.05  # rad, half of the angle
    series: TopicSeries = vector_series("/p", "geometry_msgs/msg/PoseStamped", [
        (0, Message(0, 0.0, 0.0, 0.0, 1.0)), (1, Message(1, 0.0, 0.0, -np.sin(half), -np.cos(half)))],
        ["orientation"], stamped=True)
    middle = series.at(np.array([500_000_000]), "orientation", "")[0]
    np.testing.assert_allclose(middle, [0.0, 0.0, np.sin(half / 2), np.cos(half / 2)], atol=1e-12)


def test_identify_reads_a_bag_of_a_walker(tmp_path):
    """Joints and an IMU alone, with contacts from the forces on the feet."""
    (tmp_path / "robot.xml").write_text(short_walk().walker.text)
    written(tmp_path / "log", "mcap", pose=False)
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "robot.xml"), str(tmp_path / "log"), "--method", "wls",
                                    "--friction", "viscous", "--set", "prepare.cutoff=14", "--set",
                                    "log.foot_radius=0.022", "-o", str(tmp_path / "result")])
    assert done.exit_code == 0, done.output
    assert "Good model" in done.output or "Usable" in done.output, done.output

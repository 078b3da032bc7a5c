"""The bridge to ROS 2 against a robot behind a fake rclpy: what is recorded, sent and refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from fake_ros2 import NewPayload, World

from dynid import Robot
from dynid.cli.schema import command_schema
from dynid.dynamics import inverse_dynamics
from dynid.excitation import read_trajectory
from dynid.recording.log_reading import read

ROBOT = "scara2"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    monkeypatch.chdir(tmp_path)
    robot = Robot.load(ROBOT)

    def torque(q, dq, ddq):
        return inverse_dynamics(robot, None, q[None], dq[None], ddq[None])[0] + 0.3 * dq

    return World(robot.joint_names, torque).install(monkeypatch)


@pytest.fixture
def motion(tmp_path: Path) -> Path:
    t = np.arange(0.0, 6.0, 0.01)
    head, rows = ["t"], [t]
    for what, f in (("q", np.sin), ("dq", np.cos), ("ddq", lambda x: -np.sin(x))):
        for j, (a, w) in enumerate(((0.7, 3.0), (0.9, 5.0))):
            head.append(f"{what}_joint{j + 1}")
            rows.append(a * w ** ("q", "dq", "ddq").index(what) * f(w * t + j))
    path = tmp_path / "motion.csv"
    np.savetxt(path, np.column_stack(rows), delimiter=",", comments="", header=",".join(head))
    return path


def test_a_motion_is_sent_and_recorded_and_identify_reads_the_log(dynid, world, motion):
    found = dynid("ros2", "run", ROBOT, "--motion", motion, "-o", "log.csv", "--json")
    assert found.code == 0, found.err
    facts = json.loads(found.out)
    jsonschema.validate(facts, command_schema("ros2"))
    assert facts["signals"] == ["time", "position", "velocity", "torque"]
    assert facts["duration"] == pytest.approx(6.0, abs=0.1)
    approach, sent = world.goals
    planned = read_trajectory(motion, world.joints)
    # No joint moves faster than 0.2 rad/s on the way to the first posture.
    (last,) = approach.trajectory.points
    assert last.time_from_start.sec + 1e-9 * last.time_from_start.nanosec == pytest.approx(0.9 * np.sin(1.0) / 0.2)
    assert last.positions == pytest.approx(planned.q[0]) and last.velocities == [0.0, 0.0]
    points = sent.trajectory.points
    assert len(points) == len(planned.q) - 1
    assert np.array([one.positions for one in points]) == pytest.approx(planned.q[1:])
    assert np.array([one.accelerations for one in points]) == pytest.approx(planned.ddq[1:])
    assert world.nodes == 0 and not world.is_up  # nothing is left running

    result = dynid("identify", ROBOT, "log.csv", "--method", "wls", "--friction", "viscous", "--no-simulation",
                   "--json")
    assert result.code == 0, result.err
    identified = json.loads(result.out)
    for name in ("Fv1", "Fv2"):
        assert identified["parameters"][name]["value"] == pytest.approx(0.3, rel=0.01)
    assert identified["relative_error"] < 1.0


def test_a_recording_has_the_robots_order_and_stops_in_time(dynid, world):
    world.q = np.array([0.2, -0.4])
    found = dynid("ros2", "record", ROBOT, "--duration", "2", "-o", "log.npz", "--json")
    assert found.code == 0, found.err
    log = read("log.npz", robot=Robot.load(ROBOT))
    assert log.q == pytest.approx(np.tile([0.2, -0.4], (len(log), 1)))  # messages have the reverse order
    assert log.duration == pytest.approx(2.0, abs=0.05) and log.rate == pytest.approx(100.0)


def test_efforts_of_another_topic_are_currents_at_the_stamps_of_the_states(dynid, world):
    world.effort_topic = "/currents"
    world.kinds["/currents"] = ["std_msgs/msg/Float64MultiArray"]
    world.torque = lambda q, dq, ddq: np.array([world.now - 1000.0, 2.0])
    found = dynid("ros2", "record", ROBOT, "--duration", "1", "--effort-topic", "/currents", "--effort", "current",
                  "-o", "log.csv")
    assert found.code == 0, found.err
    log = read("log.csv", robot=Robot.load(ROBOT), current="motor_current_{joint}", drive_gain=[3.0, 4.0])
    ramp = log.tau[:, 0] / 3.0
    assert log.tau[:, 1] == pytest.approx(8.0) and np.diff(ramp) == pytest.approx(0.01) and ramp[0] < 0.05


def test_late_and_repeated_messages_are_left_out(world):
    from dynid.runs.ros2_bridge import Ros2Names, record_joint_states

    tick, count = world.tick, [0]

    def stutter() -> None:
        count[0] += 1
        if count[0] % 5 == 0:
            world.now -= 2.0 / world.rate  # an old stamp
        tick()

    world.tick = stutter
    log = record_joint_states(Robot.load(ROBOT), Ros2Names(), 1.0, lambda sentence: None)
    assert (np.diff(log.t) > 0).all() and 40 < len(log) < 90


@pytest.mark.parametrize(("change", "code", "error", "name"), [
    ({"silent": True}, 1, "silent-topic", "/joint_states"),
    ({"servers": set()}, 1, "no-action-server", "--action"),
    ({"rejects": True}, 1, "motion-rejected", ""),
    ({"aborts": "joint1 path error 0.3"}, 1, "motion-aborted", "joint1 path error 0.3"),
    ({"order": ("joint1",)}, 2, "missing-joint", "'joint2'"),
    ({"effort_topic": "/elsewhere"}, 2, "missing-effort", "--effort-topic"),
])
def test_what_a_robot_lacks_is_a_sentence(dynid, world, motion, change, code, error, name):
    vars(world).update(change)
    found = dynid("ros2", "run", ROBOT, "--motion", motion, "-o", "log.csv", "--timeout", "1")
    assert (found.code, found.error) == (code, error) and name in found.err and found.err.count("\n") == 1, found.err
    assert not Path("log.csv").exists() and world.nodes == 0


def test_an_unknown_kind_of_message_is_a_sentence(dynid, world):
    world.kinds["/wrench"] = ["geometry_msgs/msg/WrenchStamped"]
    for topic, error in (("/wrench", "unknown-message"), ("/no", "silent-topic")):
        found = dynid("ros2", "record", ROBOT, "--effort-topic", topic, "-o", "log.csv")
        assert found.code == 1 and found.error == error


PAYLOAD = {"controllers": {"ur": {"values": {"m": 1.5, "cog": [0.01, 0.02, 0.03],
                                             "inertia": [0.1, 0.2, 0.3, 0.01, 0.02, 0.03]}}}}


def test_a_payload_is_set_by_the_old_service(dynid, world):
    Path("payload.json").write_text(json.dumps(PAYLOAD))
    found = dynid("ros2", "payload", ".", "--json")
    assert found.code == 0, found.err
    jsonschema.validate(json.loads(found.out), command_schema("ros2"))
    (sent,) = world.requests
    assert (sent.mass, sent.center_of_gravity.x, sent.center_of_gravity.z) == (1.5, 0.01, 0.03)


def test_a_payload_is_set_by_the_new_service_with_its_inertia(dynid, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    world = World(("joint1",), lambda q, dq, ddq: q)
    world.payload = NewPayload
    world.install(monkeypatch)
    Path("payload.json").write_text(json.dumps(PAYLOAD))
    assert dynid("ros2", "payload", "payload.json").code == 0
    body = world.requests[0].payload
    assert (body.m, body.com.y) == (1.5, 0.02)
    assert (body.ixx, body.iyy, body.izz, body.ixy, body.ixz, body.iyz) == (0.1, 0.2, 0.3, 0.01, 0.02, 0.03)


@pytest.mark.parametrize(("change", "error"), [({"refuses": True}, "payload-refused"),
                                               ({"services": set()}, "no-service")])
def test_a_payload_that_is_refused_is_a_sentence(dynid, world, change, error):
    Path("payload.json").write_text(json.dumps(PAYLOAD))
    vars(world).update(change)
    found = dynid("ros2", "payload", ".")
    assert found.code == 1 and found.error == error


@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"controllers": {"ur": {"values": {"m": 1, "cog": [1], '
                                  '"inertia": [1, 1, 1, 0, 0, 0]}}}}'])
def test_a_file_without_a_payload_is_a_sentence(dynid, world, text):
    Path("payload.json").write_text(text)
    found = dynid("ros2", "payload", ".")
    assert found.code == 2 and found.error == "no-payload"


@pytest.mark.parametrize("call", [("record", "arm3r", "-o", "log.csv"), ("payload", ".")])
def test_without_ros_a_sentence_says_what_to_do(dynid, monkeypatch, tmp_path, call):
    monkeypatch.chdir(tmp_path)
    Path("payload.json").write_text(json.dumps(PAYLOAD))
    monkeypatch.setitem(sys.modules, "rclpy", None)
    found = dynid("ros2", *call)
    assert found.code == 1 and found.error == "missing-ros2" and "setup.bash" in found.err


def test_a_missing_message_package_is_named(dynid, world, monkeypatch):
    monkeypatch.setitem(sys.modules, "ur_msgs.srv", None)
    Path("payload.json").write_text(json.dumps(PAYLOAD))
    found = dynid("ros2", "payload", ".")
    assert found.error == "missing-ros2" and "ros-$ROS_DISTRO-ur-msgs" in found.err


@pytest.mark.parametrize("call", [("run", "arm3r", "-o", "log.csv"), ("record", "arm3r"),
                                  ("record", "arm3r", "-o", "log.txt"),
                                  ("record", "scara2", "-o", "log.csv", "--duration", "0")])
def test_a_wrong_call_is_a_sentence(dynid, world, call):
    found = dynid("ros2", *call)
    assert found.code == 2 and found.err.count("\n") == 1

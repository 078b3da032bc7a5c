"""Bridge to ROS 2: record joint states, send a designed motion, and set the payload of a controller.

`rclpy` and the message packages come with a ROS 2 installation. They are imported when the bridge is used, so dynid
needs no ROS to be built, installed or tested.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError, RecordingError
from dynid.excitation import read_trajectory
from dynid.files import read_small
from dynid.output_fields import output_fields
from dynid.progress import ProgressCallback
from dynid.recording import Recording
from dynid.robot import Robot

_MIN_ROWS = 3  # a recording needs them for its rate
_SPIN_SECONDS = 0.1  # longest wait for one message, so that the end of a recording is noticed soon
_APPROACH_SPEED = 0.2  # rad/s or m/s: speed to the first posture, the slowest in manual mode of arms
_MIN_APPROACH = 2.0  # s
_STATUS_SUCCEEDED = 4  # action_msgs/msg/GoalStatus.STATUS_SUCCEEDED
_EFFORT_KINDS = ("torque", "current")


@dataclass(frozen=True)
class Ros2Names:
    """Names of topics, action and service, and the meaning of the effort of joint states.

    Attributes:
        joint_states: Topic of `sensor_msgs/msg/JointState`.
        effort: Another topic with the efforts: `sensor_msgs/msg/JointState` or `std_msgs/msg/Float64MultiArray` in the
            order of the robot's joints. Empty: the effort of `joint_states`.
        effort_is: "torque" (N m or N), or "current" (A).
        action: Action of `control_msgs/action/FollowJointTrajectory`.
        service: Service of `ur_msgs/srv/SetPayload`.
        timeout: Longest wait for a server or for the first message, s.
    """

    joint_states: str = "/joint_states"
    effort: str = ""
    effort_is: str = "torque"
    action: str = "/joint_trajectory_controller/follow_joint_trajectory"
    service: str = "/io_and_status_controller/set_payload"
    timeout: float = 10.0

    def __post_init__(self) -> None:
        if self.effort_is not in _EFFORT_KINDS:
            raise DynidError(f"efforts are {' or '.join(_EFFORT_KINDS)}, not '{self.effort_is}'", code="unknown-effort")
        if not self.timeout > 0:
            raise DynidError(f"the timeout must be positive, got {self.timeout:g}")


def record_joint_states(robot: Robot, names: Ros2Names, seconds: float, progress: ProgressCallback) -> Recording:
    """Record the joints of a robot for `seconds` seconds after the first message.

    Returns:
        Positions, velocities if they are published, and torques or motor currents, at the stamps of the messages.

    Raises:
        NotPossibleError: rclpy is missing, nothing is published, or messages lack joints or efforts.
    """
    if not seconds > 0:
        raise DynidError(f"the recording time must be positive, got {seconds:g}")
    with _node() as (rclpy, node):
        tape = _Tape.listening(rclpy, node, robot, names)
        tape.wait_for_first()
        progress(f"recording {names.joint_states}")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rclpy.spin_once(node, timeout_sec=_SPIN_SECONDS)
        return tape.recording()


def play_and_record(robot: Robot, motion: str | Path, names: Ros2Names, progress: ProgressCallback) -> Recording:
    """Move to the first posture of a motion, execute the motion and record it.

    The approach takes at least 2 s and moves no joint faster than 0.2 rad/s (or m/s). It is not recorded.

    Raises:
        NotPossibleError: as for `record_joint_states`; or the controller is missing, rejects the motion or aborts it.
    """
    planned = read_trajectory(motion, robot.joint_names)
    with _node() as (rclpy, node):
        tape = _Tape.listening(rclpy, node, robot, names)
        tape.wait_for_first()
        client = import_module("rclpy.action").ActionClient(node, _message("control_msgs.action",
                                                                           "FollowJointTrajectory"), names.action)
        if not client.wait_for_server(timeout_sec=names.timeout):
            raise NotPossibleError(f"no controller offers the action {names.action}",
                                   "start the controller, or name another with --action (see `ros2 action list`)",
                                   code="no-action-server")
        progress("approach to the first posture")
        distance = float(np.abs(planned.q[0] - tape.last_position()).max())
        approach = max(_MIN_APPROACH, distance / _APPROACH_SPEED)
        still = np.zeros((1, robot.dof))
        _send(rclpy, node, client, robot.joint_names, np.array([approach]), (planned.q[:1], still, still))
        tape.clear()
        progress("motion")
        # The robot is already at the first posture, and a controller may refuse a point at time zero.
        _send(rclpy, node, client, robot.joint_names, (planned.t - planned.t[0])[1:],
              (planned.q[1:], planned.dq[1:], planned.ddq[1:]))
        return tape.recording()


def set_payload(source: str | Path, names: Ros2Names) -> dict[str, Any]:
    """Send a payload to the controller of a Universal Robots arm by the service of its ROS 2 driver.

    Args:
        source: Folder of `dynid payload -o`, or its payload.json.
        names: The service and the timeout.

    Returns:
        Mass (kg), centre of mass in the flange (m) and, where the service takes it, inertia (kg m^2), as sent.
    """
    mass, centre, inertia = _read_payload(Path(source))
    with _node() as (rclpy, node):
        kind = _message("ur_msgs.srv", "SetPayload")
        client = node.create_client(kind, names.service)
        if not client.wait_for_service(timeout_sec=names.timeout):
            raise NotPossibleError(f"no driver offers the service {names.service}",
                                   "start the driver, or name another service with --service", code="no-service")
        request = kind.Request()
        sent: dict[str, Any] = {"mass": mass, "centre": centre}
        if hasattr(request, "payload"):  # ur_msgs from 2025 on takes geometry_msgs/msg/Inertia
            request.payload.m = mass
            _set_vector(request.payload.com, centre)
            sent["inertia"] = dict(zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), inertia, strict=True))
            for key, value in sent["inertia"].items():
                setattr(request.payload, key, value)
        else:
            request.mass = mass
            _set_vector(request.center_of_gravity, centre)
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=names.timeout)
        if not future.done() or not future.result().success:
            raise NotPossibleError(f"the controller did not accept the payload of {mass:g} kg",
                                   "look at the messages of the driver; the arm must be in remote control",
                                   code="payload-refused")
    return sent


@output_fields(rows=int, rate=float, duration=float, joints=list[str], signals=list[str], notes=list[str])
def recording_facts(log: Recording) -> dict[str, Any]:
    """Return the log as the object that `dynid ros2 record --json` and `dynid ros2 run --json` print."""
    return {"rows": len(log), "rate": log.rate, "duration": log.duration, "joints": list(log.joints),
            "signals": list(log.signals), "notes": list(log.notes)}


def _read_payload(path: Path) -> tuple[float, list[float], list[float]]:
    """Return mass, centre of mass (3,) and inertia (6,) of a stored payload, as Universal Robots takes them."""
    try:
        values = json.loads(read_small(path / "payload.json" if path.is_dir() else path))["controllers"]["ur"]["values"]
        mass, centre, inertia = float(values["m"]), [*map(float, values["cog"])], [*map(float, values["inertia"])]
        if not np.isfinite([mass, *centre, *inertia]).all() or (len(centre), len(inertia)) != (3, 6):
            raise ValueError("the file does not hold the values of a payload")
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        raise DynidError(f"{path} has no payload of a Universal Robots arm",
                         "give the folder that `dynid payload RESULT LOG -o FOLDER` wrote", code="no-payload") from None
    return mass, centre, inertia


@dataclass
class _Tape:
    """Received messages of joint states, and of efforts if they are on another topic."""

    rclpy: Any
    node: Any
    joints: tuple[str, ...]
    names: Ros2Names
    states: list[Any] = field(default_factory=list)
    efforts: list[tuple[float, Any]] = field(default_factory=list)  # time of arrival, message

    @classmethod
    def listening(cls, rclpy: Any, node: Any, robot: Robot, names: Ros2Names) -> _Tape:
        tape = cls(rclpy, node, robot.joint_names, names)
        quality = import_module("rclpy.qos").qos_profile_sensor_data
        state = _message("sensor_msgs.msg", "JointState")
        node.create_subscription(state, names.joint_states, tape.states.append, quality)
        if names.effort:
            kind = _effort_message(node, names.effort)
            node.create_subscription(kind, names.effort, tape.hear_effort, quality)
        return tape

    def hear_effort(self, message: Any) -> None:
        self.efforts.append((1e-9 * self.node.get_clock().now().nanoseconds, message))

    def wait_for_first(self) -> None:
        end = time.monotonic() + self.names.timeout
        while not self.states or (self.names.effort and not self.efforts):
            if time.monotonic() >= end:
                silent = self.names.joint_states if not self.states else self.names.effort
                raise NotPossibleError(f"no message was received on {silent} within {self.names.timeout:g} s",
                                       "start the driver, or name another topic (see `ros2 topic list`)",
                                       code="silent-topic")
            self.rclpy.spin_once(self.node, timeout_sec=_SPIN_SECONDS)

    def clear(self) -> None:
        self.states.clear()
        self.efforts.clear()

    def last_position(self) -> Array:
        return _signal(self.states[-1:], self.joints, "position", self.names.joint_states)[0]

    def recording(self) -> Recording:
        """Return the messages as a log; efforts of another topic are interpolated at the stamps of the joint states."""
        topic = self.names.joint_states
        stamps = np.array([_stamp(one) for one in self.states])
        # Messages that arrive late or twice are dropped: their stamps do not increase.
        kept = stamps > np.concatenate([[-np.inf], np.maximum.accumulate(stamps)[:-1]])
        states = [one for one, yes in zip(self.states, kept, strict=True) if yes]
        if len(states) < _MIN_ROWS:
            raise NotPossibleError(f"only {len(states)} messages with increasing stamps came on {topic}; at least "
                                   f"{_MIN_ROWS} are needed", "record for longer", code="few-messages")
        t = stamps[kept]
        q = _signal(states, self.joints, "position", topic)
        has_velocity = all(len(one.velocity) for one in states)
        dq = _signal(states, self.joints, "velocity", topic) if has_velocity else None
        effort = self._other_effort(t) if self.names.effort else _signal(states, self.joints, "effort", topic)
        notes = (f"recorded from {topic}" + (f" and {self.names.effort}" if self.names.effort else ""),)
        if self.names.effort_is == "current":
            return Recording(t - t[0], q, np.zeros_like(q), dq, current=effort, joints=self.joints, notes=notes,
                             unmeasured=self.joints)
        return Recording(t - t[0], q, effort, dq, joints=self.joints, notes=notes)

    def _other_effort(self, t: Array) -> Array:
        """Return efforts (samples, joints) from their own topic at times t (samples,), s, constant beyond both ends."""
        topic, messages = self.names.effort, [one for _, one in self.efforts]
        if hasattr(messages[0], "effort"):
            stamps = np.array([_stamp(one) for one in messages])
            values = _signal(messages, self.joints, "effort", topic)
        else:  # without a stamp, the time of arrival is used
            stamps = np.array([moment for moment, _ in self.efforts])
            short = next((len(one.data) for one in messages if len(one.data) != len(self.joints)), None)
            if short is not None:
                raise RecordingError(f"messages on {topic} have {short} numbers for {len(self.joints)} joints",
                                     "name a topic with one number per joint with --effort-topic")
            values = np.array([list(one.data) for one in messages], dtype=float)
        order = np.argsort(stamps, kind="stable")
        return np.column_stack([np.interp(t, stamps[order], values[order, j]) for j in range(len(self.joints))])


def _signal(messages: Sequence[Any], joints: Sequence[str], what: str, topic: str) -> Array:
    """Return one field of joint states (samples, joints) in the order of the robot's joints."""
    advice = "name a topic that has efforts with --effort-topic" if what == "effort" else ""
    code = "missing-effort" if what == "effort" else None
    rows = np.empty((len(messages), len(joints)))
    places: list[int] = []
    known: list[str] | None = None
    for k, one in enumerate(messages):
        if list(one.name) != known:
            known = list(one.name)
            missing = [name for name in joints if name not in known]
            if missing:
                raise RecordingError(f"messages on {topic} have no joint '{missing[0]}'; they have {', '.join(known)}",
                                     "give the robot file whose joints have these names", code="missing-joint")
            places = [known.index(name) for name in joints]
        values = getattr(one, what)
        if len(values) != len(one.name):
            raise RecordingError(f"messages on {topic} have {len(values)} values of {what} for {len(one.name)} joints",
                                 advice, code)
        rows[k] = [values[j] for j in places]
    wrong = np.argwhere(~np.isfinite(rows))
    if len(wrong):
        row, j = wrong[0]
        raise RecordingError(f"{what} of {joints[j]} is {rows[row, j]} in message {row + 1} on {topic}", advice, code)
    return rows


def _send(rclpy: Any, node: Any, client: Any, joints: Sequence[str], t: Array, rows: tuple[Array, Array, Array]
          ) -> None:
    """Send positions, velocities and accelerations (rows, joints) at times t (rows,), s, and wait for the motion's
    end."""
    goal = _message("control_msgs.action", "FollowJointTrajectory").Goal()
    point = _message("trajectory_msgs.msg", "JointTrajectoryPoint")
    duration = _message("builtin_interfaces.msg", "Duration")
    goal.trajectory.joint_names = list(joints)
    goal.trajectory.points = []
    for moment, q, dq, ddq in zip(t, *rows, strict=True):
        one = point()
        one.positions, one.velocities, one.accelerations = q.tolist(), dq.tolist(), ddq.tolist()
        seconds, rest = divmod(round(1e9 * float(moment)), 10**9)
        one.time_from_start = duration(sec=seconds, nanosec=rest)
        goal.trajectory.points.append(one)
    asked = client.send_goal_async(goal)
    rclpy.spin_until_future_complete(node, asked)
    handle = asked.result()
    if not handle.accepted:
        raise NotPossibleError("the controller rejected the motion", "see its messages; causes may be limits, joint "
                               "names or the state of the robot", code="motion-rejected")
    ended = handle.get_result_async()
    rclpy.spin_until_future_complete(node, ended)
    found = ended.result()
    if found.status != _STATUS_SUCCEEDED or found.result.error_code != 0:
        why = found.result.error_string or f"error code {found.result.error_code}"
        raise NotPossibleError(f"the controller stopped the motion: {why}",
                               "design a slower one, for example with `dynid excite --speed 0.4`",
                               code="motion-aborted")


def _effort_message(node: Any, topic: str) -> Any:
    """Return the class of the messages on a topic of efforts."""
    published: Mapping[str, list[str]] = dict(node.get_topic_names_and_types())
    kinds = {"sensor_msgs/msg/JointState": ("sensor_msgs.msg", "JointState"),
             "std_msgs/msg/Float64MultiArray": ("std_msgs.msg", "Float64MultiArray")}
    if topic not in published:
        raise NotPossibleError(f"nothing publishes {topic}", "see `ros2 topic list`", code="silent-topic")
    found = next((kinds[kind] for kind in published[topic] if kind in kinds), None)
    if found is None:
        raise NotPossibleError(f"{topic} has messages of {', '.join(published[topic])}; efforts are read from "
                               f"{' or '.join(kinds)}", code="unknown-message")
    return _message(*found)


def _stamp(message: Any) -> float:
    return float(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)


def _set_vector(vector: Any, values: Sequence[float]) -> None:
    vector.x, vector.y, vector.z = values


def _message(package: str, name: str) -> Any:
    """Return a message class of a ROS 2 package, such as JointState."""
    try:
        return getattr(import_module(package), name)
    except ImportError:
        raise NotPossibleError(f"the ROS 2 package {package.partition('.')[0]} is not installed",
                               f"run apt install ros-$ROS_DISTRO-{package.partition('.')[0].replace('_', '-')}",
                               code="missing-ros2") from None


@contextmanager
def _node() -> Iterator[tuple[Any, Any]]:
    """Yield rclpy and a new ROS 2 node, which is destroyed afterwards."""
    try:
        rclpy = import_module("rclpy")
    except ImportError:
        raise NotPossibleError("this needs rclpy, which comes with ROS 2 and is not found",
                               "run `source /opt/ros/DISTRO/setup.bash` in this shell, with dynid installed for the "
                               "same Python", code="missing-ros2") from None
    own = not rclpy.ok()
    if own:
        rclpy.init()
    node = rclpy.create_node("dynid")
    try:
        yield rclpy, node
    finally:
        node.destroy_node()
        if own:
            rclpy.shutdown()

"""A simulated ROS 2: the parts of rclpy and its messages that `dynid ros2` uses, with their real field names.

Messages refuse fields that their definitions lack, as the generated classes do. Definitions: sensor_msgs/JointState,
std_msgs/Float64MultiArray, trajectory_msgs/JointTrajectory(Point), builtin_interfaces/Duration and Time,
control_msgs/FollowJointTrajectory, ur_msgs/SetPayload in both forms, geometry_msgs/Inertia and Vector3.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

SUCCEEDED, ABORTED = 4, 6  # action_msgs/GoalStatus


def message(name: str, /, **defaults: Callable[[], Any]) -> type:
    """A class of messages with these fields and no others."""
    def start(self: Any, **given: Any) -> None:
        for field, default in defaults.items():
            object.__setattr__(self, field, given.pop(field) if field in given else default())
        assert not given, f"{name} has no {given}"

    def assign(self: Any, field: str, value: Any) -> None:
        if field not in defaults:
            raise AttributeError(f"{name} has no field {field}")
        object.__setattr__(self, field, value)

    return type(name, (), {"__init__": start, "__setattr__": assign})


Time = message("Time", sec=int, nanosec=int)
Duration = message("Duration", sec=int, nanosec=int)
Header = message("Header", stamp=Time, frame_id=str)
JointState = message("JointState", header=Header, name=list, position=list, velocity=list, effort=list)
Layout = message("MultiArrayLayout", dim=list, data_offset=int)
Float64MultiArray = message("Float64MultiArray", layout=Layout, data=list)
Point = message("JointTrajectoryPoint", positions=list, velocities=list, accelerations=list, effort=list,
                time_from_start=Duration)
JointTrajectory = message("JointTrajectory", header=Header, joint_names=list, points=list)
Goal = message("FollowJointTrajectory_Goal", trajectory=JointTrajectory, multi_dof_trajectory=object,
               path_tolerance=list, component_path_tolerance=list, goal_tolerance=list, component_goal_tolerance=list,
               goal_time_tolerance=Duration)
Result = message("FollowJointTrajectory_Result", error_code=int, error_string=str)
Vector3 = message("Vector3", x=float, y=float, z=float)
Inertia = message("Inertia", m=float, com=Vector3, ixx=float, ixy=float, ixz=float, iyy=float, iyz=float, izz=float)
FollowJointTrajectory = types.SimpleNamespace(Goal=Goal, Result=Result)
OldPayload = types.SimpleNamespace(Request=message("SetPayload_Request", mass=float, center_of_gravity=Vector3))
NewPayload = types.SimpleNamespace(Request=message("SetPayload_Request", payload=Inertia, transition_time=float))


class Future:
    def __init__(self, value: Any, wait: Callable[[], bool] = lambda: False) -> None:
        self.value, self.waits = value, wait

    def done(self) -> bool:
        return not self.waits()

    def result(self) -> Any:
        return self.value


class World:
    """A simulated robot: it publishes joint states at a rate while the clock runs, and follows trajectories exactly.

    Attributes:
        torque: Torques (dof,) of positions, velocities and accelerations (dof,).
        order: Joints in the order of the messages, which need not be the robot's.
        effort_topic: Publish efforts there as Float64MultiArray instead of in the joint states.
        rejects, aborts, refuses: What the controller does with motions and payloads.
    """

    def __init__(self, joints: tuple[str, ...], torque: Callable[..., np.ndarray], rate: float = 100.0) -> None:
        self.joints, self.torque, self.rate = joints, torque, rate
        self.order = tuple(reversed(joints))
        self.effort_topic = ""
        self.kinds = {"/joint_states": ["sensor_msgs/msg/JointState"]}
        self.silent = self.rejects = self.refuses = False
        self.aborts = ""
        self.payload: Any = OldPayload
        self.servers = {"/joint_trajectory_controller/follow_joint_trajectory"}
        self.services = {"/io_and_status_controller/set_payload"}
        self.now, self.wall = 1000.0, 0.0
        self.q = np.zeros(len(joints))
        self.goals: list[Any] = []
        self.requests: list[Any] = []
        self.callbacks: dict[str, Callable[[Any], None]] = {}
        self.nodes = 0
        self.is_up = False
        self.points: tuple[np.ndarray, ...] | None = None
        self.began = self.ends = 0.0

    def tick(self) -> None:
        """One period: publish what the robot does now."""
        self.now += 1.0 / self.rate
        dq = ddq = np.zeros(len(self.joints))
        if self.points is not None:
            t, *rows = self.points
            at = min(self.now - self.began, t[-1])
            self.q, dq, ddq = (np.array([np.interp(at, t, row[:, j]) for j in range(row.shape[1])]) for row in rows)
        effort = self.torque(self.q, dq, ddq)
        if self.silent:
            return
        places = [self.joints.index(name) for name in self.order]
        stamp = Time(sec=int(self.now), nanosec=round(1e9 * (self.now - int(self.now))))
        state = JointState(header=Header(stamp=stamp), name=list(self.order), position=self.q[places].tolist(),
                           velocity=dq[places].tolist(), effort=[] if self.effort_topic else effort[places].tolist())
        self.callbacks.get("/joint_states", lambda one: None)(state)
        if self.effort_topic in self.callbacks:
            self.callbacks[self.effort_topic](Float64MultiArray(data=effort.tolist()))

    def follow(self, goal: Any) -> None:
        assert tuple(goal.trajectory.joint_names) == self.joints
        points = goal.trajectory.points
        t = np.array([one.time_from_start.sec + 1e-9 * one.time_from_start.nanosec for one in points])
        assert (np.diff(t) > 0).all() and t[0] > 0 and all(isinstance(x, float) for x in points[0].positions)
        rows = [np.array([getattr(one, what) for one in points]) for what in ("positions", "velocities",
                                                                              "accelerations")]
        zero = np.zeros(len(self.joints))
        rows = [np.vstack([first, one]) for first, one in zip((self.q, zero, zero), rows, strict=True)]
        self.points = (np.concatenate([[0.0], t]), *rows)
        self.goals.append(goal)
        self.began, self.ends = self.now, self.now + t[-1]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> World:
        """Put the modules where imports find them, and let the clock of the bridge run with the world's."""
        world = self

        class Client:
            def __init__(self, node: Any, kind: Any, name: str) -> None:
                self.name = name

            def wait_for_server(self, timeout_sec: float) -> bool:
                return self.name in world.servers

            def send_goal_async(self, goal: Any) -> Future:
                if not world.rejects:
                    world.follow(goal)
                wrong = bool(world.aborts)
                outcome = types.SimpleNamespace(status=ABORTED if wrong else SUCCEEDED, result=Result(
                    error_code=-4 if wrong else 0, error_string=world.aborts))
                return Future(types.SimpleNamespace(
                    accepted=not world.rejects,
                    get_result_async=lambda: Future(outcome, lambda: world.now < world.ends)))

        class Service:
            def __init__(self, name: str) -> None:
                self.name = name

            def wait_for_service(self, timeout_sec: float) -> bool:
                return self.name in world.services

            def call_async(self, request: Any) -> Future:
                world.requests.append(request)
                return Future(types.SimpleNamespace(success=not world.refuses))

        class Node:
            def create_subscription(self, kind: Any, topic: str, callback: Callable[[Any], None], qos: Any) -> None:
                world.callbacks[topic] = callback

            def create_client(self, kind: Any, name: str) -> Service:
                return Service(name)

            def get_topic_names_and_types(self) -> list[tuple[str, list[str]]]:
                return list(world.kinds.items())

            def get_clock(self) -> Any:
                now = types.SimpleNamespace(nanoseconds=round(1e9 * world.now))
                return types.SimpleNamespace(now=lambda: now)

            def destroy_node(self) -> None:
                world.nodes -= 1

        def create_node(name: str) -> Node:
            world.nodes += 1
            return Node()

        def spin_until(node: Node, future: Future, timeout_sec: float | None = None) -> None:
            while not future.done():
                world.tick()

        def spin_once(node: Node, timeout_sec: float) -> None:
            world.tick()
            world.wall += max(1.0 / world.rate, timeout_sec if world.silent else 0.0)

        modules = {
            "rclpy": {"ok": lambda: world.is_up, "init": lambda: setattr(world, "is_up", True),
                      "shutdown": lambda: setattr(world, "is_up", False), "create_node": create_node,
                      "spin_once": spin_once, "spin_until_future_complete": spin_until},
            "rclpy.action": {"ActionClient": Client}, "rclpy.qos": {"qos_profile_sensor_data": object()},
            "sensor_msgs.msg": {"JointState": JointState}, "std_msgs.msg": {"Float64MultiArray": Float64MultiArray},
            "trajectory_msgs.msg": {"JointTrajectoryPoint": Point}, "builtin_interfaces.msg": {"Duration": Duration},
            "control_msgs.action": {"FollowJointTrajectory": FollowJointTrajectory},
            "ur_msgs.srv": {"SetPayload": world.payload}}
        for name, parts in modules.items():
            module = types.ModuleType(name)
            vars(module).update(parts)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr("dynid.runs.ros2_bridge.time", types.SimpleNamespace(monotonic=lambda: world.wall))
        return world

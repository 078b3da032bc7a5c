"""`dynid ros2`: recording of a robot, execution of a motion, or setting of its payload by ROS 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dynid.cli.options import ForceLog
from dynid.cli.output import Json, console, print_json, show_progress
from dynid.errors import DynidError
from dynid.files import refuse_to_replace
from dynid.output_fields import record

_SENT_PAYLOAD = record("SentPayload", optional=("inertia",), mass=float, centre=list[float], inertia=dict[str, float])
OUTPUT = record("SetPayload", payload=_SENT_PAYLOAD)

Task = Literal["record", "run", "payload"]
EffortKind = Literal["torque", "current"]


def command(
    task: Annotated[Task, typer.Argument(metavar="record|run|payload", show_default=False,
                                         help="record: record joint states; run: execute a motion and record it; "
                                              "payload: send a payload to a Universal Robots arm.")],
    source: Annotated[str, typer.Argument(metavar="ROBOT|PAYLOAD", show_default=False,
                                          help="A URDF, an MJCF, a robot TOML file (DH or MDH) or the name of a "
                                               "built-in robot, whose joints have the names that ROS uses; for payload "
                                               "the folder of `dynid payload -o`.")],
    motion: Annotated[Path | None, typer.Option(metavar="MOTION", show_default=False,
                                                help="Motion to execute, .csv or .npz of `dynid excite`.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Log to write, .csv or .npz; `dynid identify` reads it.")] = None,
    duration: Annotated[float, typer.Option(metavar="SECONDS", help="For record: how long, s.")] = 30.0,
    joint_states: Annotated[str, typer.Option(metavar="TOPIC",
                                              help="Topic of sensor_msgs/JointState.")] = "/joint_states",
    effort_topic: Annotated[str, typer.Option(metavar="TOPIC", show_default="the joint states",
                                              help="Topic with the efforts: sensor_msgs/JointState or "
                                                   "std_msgs/Float64MultiArray.")] = "",
    effort: Annotated[EffortKind, typer.Option(help="Whether efforts are torques (N m) or currents (A).")] = "torque",
    action: Annotated[str, typer.Option(metavar="ACTION", help="Action of the controller, "
                                                               "control_msgs/FollowJointTrajectory.")]
    = "/joint_trajectory_controller/follow_joint_trajectory",
    service: Annotated[str, typer.Option(metavar="SERVICE", help="Service for the payload, ur_msgs/SetPayload.")]
    = "/io_and_status_controller/set_payload",
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Longest wait for drivers, s.")] = 10.0,
    force: ForceLog = False,
    json: Json = False,
) -> None:
    """Record a robot, execute a designed motion, or set a payload by ROS 2; rclpy must be installed."""
    from dynid.robot import Robot
    from dynid.runs.ros2_bridge import Ros2Names, play_and_record, record_joint_states, recording_facts, set_payload
    from dynid.runs.virtual_log import log_writer

    names = Ros2Names(joint_states, effort_topic, effort, action, service, timeout)
    if task == "payload":
        with show_progress("ros2"):
            sent = set_payload(source, names)
        if json:
            print_json({"payload": sent})
        else:
            centre = ", ".join(f"{x:.4g}" for x in sent["centre"])
            console().print(f"Payload set: {sent['mass']:.4g} kg at {centre} m in the flange.", markup=False)
        return
    if output is None:
        raise DynidError(f"dynid ros2 {task} writes a log", "name it: -o log.csv")
    if task == "run" and motion is None:
        raise DynidError("dynid ros2 run executes a motion",
                         "name its file: --motion motion.csv; `dynid excite` designs one")
    write = log_writer(output)
    refuse_to_replace([output], force)
    robot = Robot.load(source)
    with show_progress("ros2") as progress:
        log = (record_joint_states(robot, names, duration, progress) if motion is None or task == "record"
               else play_and_record(robot, motion, names, progress))
        written = {"log": str(write(log, output))}
    facts = recording_facts(log)
    if json:
        print_json({**facts, "outputs": written})
    else:
        console().print(f"{facts['rows']} rows in {facts['duration']:.3g} s, {facts['rate']:.4g} Hz: {output}",
                        markup=False)

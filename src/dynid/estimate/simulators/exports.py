"""Export of an estimate as files for simulators, with one function per target."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, RobotError
from dynid.escape import xml_attribute
from dynid.estimate.estimate import Estimate
from dynid.estimate.export import WrittenFile, mjcf_of_joints, robot_inertias, urdf_of_joints
from dynid.estimate.simulators.friction_fit import (
    PASSIVE,
    SimulatedJoint,
    TorqueLoss,
    motion_for,
    simulated_joints,
    with_drives,
)
from dynid.estimate.simulators.python_configs import IsaacFriction, isaaclab_config, mjlab_config
from dynid.files import read_small, write_whole
from dynid.output_fields import map_of, output_fields, record
from dynid.plain import finite, plain
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.robot.pose import quaternion
from dynid.robot.write_mjcf import actuator_limits, mjcf_with_inertias, mjcf_with_joints
from dynid.robot.write_sdf import to_sdf
from dynid.robot.write_urdf import with_rotor_inertias
from dynid.version import __version__

MUJOCO_TIMESTEP = 0.002  # s, default of MJCF


_EXPORT_LOSS = record("ExportLoss", error=float | None, torque=float | None, percent=float | None,
                      approximated=list[str])


@dataclass(frozen=True, eq=False)
class Exported:
    """Files of an identified robot for a simulator.

    Attributes:
        target: name of the simulator or format.
        paths: the files, the main one first.
        joints: values of every joint as the target represents them.
        losses: for every joint the torque that the target cannot represent.
        notes: sentences on limitations of the files.
        is_logged: whether the losses are along the motion of a log; else along random states within the limits.
        written_file: torque errors of the file as it was read again, for URDF and MJCF files and readable logs.
    """

    target: str
    paths: tuple[Path, ...]
    joints: tuple[SimulatedJoint, ...]
    losses: tuple[TorqueLoss, ...]
    notes: tuple[str, ...]
    is_logged: bool
    written_file: WrittenFile | None = None

    @output_fields(target=str, files=list[str], joints=dict[str, dict[str, Any]], loss=map_of(_EXPORT_LOSS),
                   loss_along=str, notes=list[str], written_file=WrittenFile | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data for JSON; values that are not known are None."""
        names = [one for one in vars(self.joints[0]) if one != "name"]
        return {"target": self.target, "files": [str(path) for path in self.paths],
                "joints": {joint.name: {key: finite(getattr(joint, key)) for key in names} for joint in self.joints},
                "loss": {one.joint: {"error": one.error, "torque": one.torque, "percent": one.percent,
                                     "approximated": list(one.terms)} for one in self.losses},
                "loss_along": "log" if self.is_logged else "random states", "notes": list(self.notes),
                "written_file": plain(self.written_file)}


@dataclass(frozen=True, eq=False)
class _Request:
    """Arguments of an export: robot, inertias (bodies, 10), joints, options, and the paths written so far."""

    robot: Robot
    inertias: Array
    joints: tuple[SimulatedJoint, ...]
    path: Path
    source: str | Path | None
    unchecked: bool
    isaaclab_friction: IsaacFriction
    notes: list[str] = field(default_factory=list)
    has_identified_links: bool = True
    keeps_actuators: bool = False
    paths: list[Path] = field(default_factory=list)

    def values(self, names: Mapping[str, str]) -> dict[str, dict[str, float]]:
        """Return passive values of every joint that are written, by joint and attribute. names: attribute of each."""
        return {joint.name: {names[name]: value for name, value in joint.passive().items() if name in names}
                for joint in self.joints}

    def write(self, path: Path, made: str | bytes) -> None:
        """Write a file, and add its path in front of those that were written before."""
        with write_whole(path, "wb") as file:
            file.write(made.encode() if isinstance(made, str) else made)
        self.paths.insert(0, path)


def export(estimate: Estimate, path: str | Path, target: str, *, samples: Sequence[Samples] = (),
           drives: Mapping[str, Any] | None = None, source: str | Path | None = None, with_payload: bool = False,
           unchecked: bool = False, isaaclab_friction: IsaacFriction = "torque", keeps_actuators: bool = False
           ) -> Exported:
    """Write an estimate as files for a simulator; return these and the torques that it cannot represent.

    Args:
        estimate: an estimate with all standard parameters.
        path: output file; the robot file of a Python target is written to the same folder.
        target: one of `TARGETS`.
        samples: logs over whose motion friction is approximated that the target cannot represent.
        drives: identified drives by joint: mappings or objects with attributes of `SimulatedJoint`.
        source: URDF or MJCF of the robot to write into. Default: the one the robot was read from.
        with_payload: whether to add the payload to the link that carries it.
        unchecked: whether to write links that are not physically consistent.
        isaaclab_friction: "torque" (Isaac Sim 5.0 and later) or "coefficient" (before).
        keeps_actuators: whether an MJCF keeps its own actuators of joints with a drive. By default they are replaced.

    Raises:
        ModelError: if the target or a drive is not known.
        NotPossibleError: if the estimate has base parameters only.
        RobotError: if the target cannot describe the robot.
    """
    holds = _represented(target, isaaclab_friction)
    notes: list[str] = []
    model, inertias = robot_inertias(estimate, with_payload, notes.append)
    motion = motion_for(estimate, samples)
    assert estimate.theta is not None  # checked by robot_inertias
    joints, losses = simulated_joints(model, estimate.theta, motion, holds)
    joints = with_drives(with_effort_limits(joints, model.robot), drives or {})
    request = _Request(model.robot, inertias, joints, Path(path), source, unchecked, isaaclab_friction, notes,
                       keeps_actuators=keeps_actuators)
    return _written(request, target, losses, motion.is_logged)


def export_joints(robot: Robot, inertias: Array, joints: tuple[SimulatedJoint, ...], losses: tuple[TorqueLoss, ...],
                  path: str | Path, target: str, *, source: str | Path | None = None, notes: Sequence[str] = (),
                  has_identified_links: bool = False, isaaclab_friction: IsaacFriction = "torque",
                  keeps_actuators: bool = False) -> Exported:
    """Write a robot with known links and identified joints for a simulator.

    Args:
        robot: the robot.
        inertias: ten inertial parameters of each link (bodies, 10).
        joints: joints with passive values and drives. Torque that the target cannot represent is added to the losses.
        losses: torque that the joint values do not represent.
        path, target, source, isaaclab_friction, keeps_actuators: as for `export`.
        notes: sentences for the user.
        has_identified_links: whether to write the inertias into an MJCF `source`. By default its bodies are unchanged,
            and it may have more joints than the robot, such as a free base.
    """
    holds = _represented(target, isaaclab_friction)
    missing = [name for name in PASSIVE if name not in holds and any(joint.passive().get(name) for joint in joints)]
    more = [f"{target} has no {' and no '.join(missing)} of joints: set it in the simulator"] if missing else []
    request = _Request(robot, inertias, joints, Path(path), source, False, isaaclab_friction, [*notes, *more],
                       has_identified_links, keeps_actuators)
    return _written(request, target, losses, True)


def _represented(target: str, isaaclab_friction: str) -> tuple[str, ...]:
    """Return the names of the passive joint values that a target represents."""
    if target not in TARGETS:
        raise ModelError(f"there is no target '{target}'; there are {', '.join(TARGETS)}", code="unknown-target")
    if isaaclab_friction not in ("torque", "coefficient"):
        raise ModelError("friction of Isaac Lab is a 'torque' (Isaac Sim 5.0 and later) or a 'coefficient' (before), "
                         f"not '{isaaclab_friction}'", code="unknown-friction")
    if target == "isaaclab" and isaaclab_friction == "coefficient":
        return ("armature", "damping")
    return TARGETS[target][1]


def with_effort_limits(joints: Sequence[SimulatedJoint], robot: Robot) -> tuple[SimulatedJoint, ...]:
    """Return the joints with force limits that do not exceed the effort limits of the robot file."""
    return tuple(replace(joint, force_limit=min(joint.force_limit, limits.effort))
                 for joint, limits in zip(joints, robot.joints, strict=True))


def _written(request: _Request, target: str, losses: tuple[TorqueLoss, ...], is_logged: bool) -> Exported:
    request.write(request.path, TARGETS[target][0](request))
    return Exported(target, tuple(request.paths), request.joints, losses, tuple(request.notes), is_logged)


def _urdf(request: _Request) -> bytes:
    return urdf_of_joints(request.robot, request.inertias, [joint.passive() for joint in request.joints],
                          request.source, unchecked=request.unchecked, add_note=request.notes.append)


def _mjcf(request: _Request, *, with_actuators: bool = True) -> str:
    """Return MJCF text: the user's own file with new values, or a new file if the robot does not come from MJCF."""
    joints = request.joints[request.robot.free_coordinates:]  # a free joint has no values and no actuator
    source = request.source or _mjcf_file(request.robot)
    if source is not None:
        text, keeps = _mjcf_source(source), request.keeps_actuators or not with_actuators
        limits = {} if keeps else actuator_limits(text)  # a new drive is not stronger than the motor that it replaces
        made = [replace(joint, force_limit=min(joint.force_limit, limits.get(joint.name, np.inf))) for joint in joints]
        values, own = request.values({name: name for name in PASSIVE}), _actuators(made) if with_actuators else {}
        values = {joint.name: values[joint.name] for joint in joints}
        if not request.has_identified_links:
            return mjcf_with_joints(text, values, actuators=own, keeps_actuators=keeps, add_note=request.notes.append)
        try:
            return mjcf_with_inertias(text, request.robot, request.inertias, values, actuators=own,
                                      keeps_actuators=keeps, unchecked=request.unchecked,
                                      add_note=request.notes.append)
        except RobotError as problem:
            if request.source is not None:
                raise
            request.notes.append(f"the MJCF is a new file without shapes, because {problem.reason}")
    return mjcf_of_joints(request.robot, request.inertias, [joint.passive() for joint in request.joints],
                          actuators=_actuators(joints) if with_actuators else {}, unchecked=request.unchecked,
                          add_note=request.notes.append)


def _actuators(joints: Sequence[SimulatedJoint]) -> dict[str, str]:
    """Return the MJCF actuators of the joints with a known drive, by joint."""
    made = {joint.name: mujoco_actuator(joint) for joint in joints}
    return {name: element for name, element in made.items() if element is not None}


def _mjcf_file(robot: Robot) -> Path | None:
    """Return the path of the MJCF from which a robot was read; None if there is none or it no longer exists."""
    path = Path(robot.source) if robot.source.endswith((".xml", ".mjcf")) else None
    return path if path is not None and path.is_file() else None


def _mjcf_source(source: str | Path) -> str:
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return source
    try:
        return read_small(source).decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RobotError(f"{source} cannot be read as MJCF ({problem})") from None


def _mjlab(request: _Request) -> str:
    """Write the robot as MJCF, and return the text of the Python file with its actuators for mjlab."""
    model = request.path.with_suffix(".xml")
    request.write(model, _mjcf(request, with_actuators=False))
    if not any(joint.stiffness is not None for joint in request.joints):
        request.notes.append("no gains of a position controller are known, so the robot has no actuators in mjlab; "
                             "give them with --drives")
    return mjlab_config(request.robot.name, model.name, request.joints)


def _isaaclab(request: _Request) -> str:
    """Write the robot as URDF, or as MJCF if a URDF cannot describe it; return the text of its Python file."""
    try:
        model, made = request.path.with_suffix(".urdf"), _urdf(request)
    except RobotError:
        model, made = request.path.with_suffix(".xml"), _mjcf(request, with_actuators=False).encode()
    request.write(model, made)
    return isaaclab_config(request.robot.name, model.name, request.joints, request.isaaclab_friction)


def _drake(request: _Request) -> str:
    """Return a URDF with Drake's tags, or SDFormat for a robot that a URDF cannot describe."""
    armature = {joint.name: joint.armature for joint in request.joints if joint.armature is not None}
    still = replace(request, joints=tuple(joint if joint.frictionloss is None else replace(joint, frictionloss=0.0)
                                          for joint in request.joints))
    try:
        return with_rotor_inertias(_urdf(still).decode(), armature)
    except RobotError as problem:
        if request.robot.followers is not None or request.path.suffix == ".urdf":
            raise
        request.notes.append(f"written as SDFormat, because {problem.reason}")
        return _sdf(still, with_armature=True)


def _sdf(request: _Request, *, with_armature: bool = False) -> str:
    names = {"damping": "damping", "frictionloss": "friction", **({"armature": "armature"} if with_armature else {})}
    return to_sdf(request.robot, request.inertias, request.values(names), unchecked=request.unchecked)


Target = tuple[Callable[[_Request], str | bytes], tuple[str, ...]]
# By name: the function that returns the main file, and which passive values of a joint the target represents.
TARGETS: dict[str, Target] = {
    "urdf": (_urdf, ("damping", "frictionloss")), "mjcf": (_mjcf, PASSIVE), "mjlab": (_mjlab, PASSIVE),
    "isaaclab": (_isaaclab, PASSIVE), "drake": (_drake, ("armature", "damping")),
    "sdf": (_sdf, ("damping", "frictionloss")), "usd-json": (
        lambda request: usd_json(request.robot, request.inertias[:request.robot.dof], request.joints), PASSIVE)}
SUFFIXES = {"urdf": ".urdf", "mjcf": ".xml", "mjlab": ".py", "isaaclab": ".py", "drake": ".urdf", "sdf": ".sdf",
            "usd-json": ".json"}


def mujoco_actuator(joint: SimulatedJoint) -> str | None:
    """Return the actuator of a joint as MJCF, or None where no drive is known.

    A motor with known winding is a `dcmotor` that takes a voltage. A controller with an integral gain is a `pid`, one
    without it a `position`, with force = stiffness (command - q) - kd dq. With a bias it is a `general` that adds the
    bias after the limit of the drive. A delay is counted in MuJoCo's default time steps. Gear and control limits are
    written, because the default class of a file may have others.
    """
    if not joint.is_driven:
        return None
    name = xml_attribute(joint.name)
    shared = {"delay": joint.delay, "nsample": math.ceil(joint.delay / MUJOCO_TIMESTEP) + 1} if joint.delay > 0 else {}
    if joint.resistance is not None and joint.torque_constant is not None:
        saturation = {"saturation": joint.force_limit} if np.isfinite(joint.force_limit) else {}
        return _element("dcmotor", name, {"motorconst": joint.torque_constant, "resistance": joint.resistance,
                                          **saturation, **shared})
    stiffness, kd, limit = joint.stiffness or 0.0, joint.kd or 0.0, joint.force_limit
    gains: dict[str, _Value] = {"kp": stiffness, "kv": kd}
    tag = "pid" if joint.ki else "general" if joint.bias and joint.has_position_loop else "position"
    if joint.ki:  # MuJoCo's default input also takes a commanded velocity, which is a second control
        gains = {"input": "pos", "kp": stiffness, "ki": joint.ki, "kv": kd}
    elif tag == "general":
        gains = {"dyntype": "none", "gaintype": "fixed", "gainprm": (stiffness,), "biastype": "affine",
                 "biasprm": (joint.bias, -stiffness, -kd)}
    bias = joint.bias if tag == "general" else 0.0
    limits: dict[str, _Value] = {"forcelimited": "false"} if np.isinf(limit) else {
        "forcelimited": "true", "forcerange": (bias - limit, bias + limit)}
    return _element(tag, name, {**gains, "gear": 1, "ctrllimited": "false", **limits, **shared})


_Value = float | int | str | tuple[float, ...]


def _element(tag: str, name: str, values: Mapping[str, _Value]) -> str:
    attributes = " ".join(f'{key}="{_text(value)}"' for key, value in values.items())
    return f"<{tag} name={name} joint={name} {attributes}/>"


def _text(value: _Value) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return str(value) if isinstance(value, int | str) else repr(float(value) + 0.0)


_USD_NAMES = {"armature": "physxJoint:armature", "frictionloss": "dynid:frictionTorque",
              "damping": "dynid:viscousFriction"}
_RAD_PER_DEGREE = float(np.pi / 180.0)


def usd_json(robot: Robot, inertias: Array, joints: Sequence[SimulatedJoint]) -> str:
    """Return JSON with the attributes of every link and joint for which UsdPhysics and PhysX have a name.

    Lengths are metres, masses kilograms. USD states angles in degrees: limits, velocities, and gains of revolute joints
    per degree. A friction torque has no attribute of UsdPhysics; it is `dynid:frictionTorque`, N m.

    Args:
        robot: the robot.
        inertias: inertial parameters about the link frames (dof, 10).
        joints: joints with passive values and drives.
    """
    links: dict[str, dict[str, Any]] = {}
    for body, row in zip(robot.bodies, inertias, strict=True):
        if body.virtual:
            continue
        mass, com, inertia = ten.to_central(row)
        values, axes = np.linalg.eigh(inertia)
        axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
        links[body.name] = {"physics:mass": float(mass), "physics:centerOfMass": com.tolist(),
                            "physics:diagonalInertia": values.tolist(),
                            "physics:principalAxes": quaternion(axes).tolist()}
    return json.dumps({
        "dynid": __version__, "robot": robot.name, "metersPerUnit": 1.0, "kilogramsPerUnit": 1.0,
        "quaternions": "w x y z", "physics:gravity": np.asarray(robot.gravity, dtype=float).tolist(), "links": links,
        "joints": {one.name: _joint(one, joint.prismatic, joint.lower, joint.upper)
                   for one, joint in zip(joints, robot.joints, strict=True)}}, indent=1) + "\n"


def _joint(joint: SimulatedJoint, is_prismatic: bool, lower: float, upper: float) -> dict[str, Any]:
    """Return the USD attributes of one joint; angles are in degrees."""
    unit = 1.0 if is_prismatic else _RAD_PER_DEGREE
    drive = "linear" if is_prismatic else "angular"
    found: dict[str, Any] = {"type": "PhysicsPrismaticJoint" if is_prismatic else "PhysicsRevoluteJoint"}
    found |= {_USD_NAMES[name]: value for name, value in joint.passive().items()}
    given = {"physics:lowerLimit": lower / unit, "physics:upperLimit": upper / unit,
             "physxJoint:maxJointVelocity": joint.velocity_limit / unit,
             f"drive:{drive}:physics:maxForce": joint.force_limit}
    found |= {key: value for key, value in given.items() if np.isfinite(value)}
    for key, gain in (("stiffness", joint.stiffness), ("damping", joint.kd)):
        if gain is not None:
            found[f"drive:{drive}:physics:{key}"] = gain * unit
    return found

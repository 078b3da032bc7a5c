"""Write an estimate as a robot file: the user's URDF with the identified values, or MJCF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.estimate.estimate import Estimate
from dynid.files import write_whole
from dynid.model import Model, Payload, required_robot_model
from dynid.robot.robot import JointFields, Robot
from dynid.robot.urdf import read_urdf
from dynid.robot.write_urdf import plain_urdf, urdf_with_inertias, xml_encoding


def write_urdf(estimate: Estimate, path: str | Path, source: str | Path | None = None, *, with_payload: bool = False,
               unchecked: bool = False) -> tuple[str, ...]:
    """Write a copy of the robot's URDF with the estimate's inertias and friction; return notes.

    A robot from a table of modified Denavit-Hartenberg parameters gets a URDF of its links and joints. source:
    another URDF of the same robot, a file or its text. with_payload: add the payload to its link. unchecked: also
    write bodies that are not physically consistent.
    """
    notes: list[str] = []
    model, inertias = robot_inertias(estimate, with_payload, notes.append)
    fields = {item.name: (item.owner, item.kind.urdf) for item in model.parameters if item.kind.urdf}
    values = _values(estimate, model, fields, "a URDF", notes.append)
    made = urdf_bytes(model.robot, inertias, values, fields, source, unchecked=unchecked, add_note=notes.append)
    with write_whole(Path(path), "wb") as file:
        file.write(made)
    return tuple(notes)


def urdf_bytes(robot: Robot, inertias: Array, values: Mapping[str, float], fields: JointFields,
               source: str | Path | None = None, *, unchecked: bool = False,
               add_note: Callable[[str], object] = lambda note: None) -> bytes:
    """Return the robot's URDF, or another URDF of the same robot, with inertias (dof, 10) and joint values replaced.

    Raises:
        RobotError: if the robot has no URDF and cannot be described by one.
    """
    text = (robot.text or plain_urdf(robot)) if source is None else read_urdf(source).text
    if text is None and robot.followers is not None and robot.followers.loops is not None:
        raise RobotError(f"robot '{robot.name}' has a closed chain, which a URDF cannot describe",
                         "write MJCF with --for mjcf", code="closed-chain")
    if text is None:
        raise RobotError(f"robot '{robot.name}' does not come from a URDF ({robot.source}); give a URDF with the same "
                         "links and joints with --source FILE (source=... in Python), or write MJCF with --for "
                         "mjcf", code="no-urdf")
    if isinstance(text, bytes):  # separate calls, because the result has the type of the text
        return urdf_with_inertias(text, robot, inertias, values, fields=fields, unchecked=unchecked, add_note=add_note)
    made = urdf_with_inertias(text, robot, inertias, values, fields=fields, unchecked=unchecked, add_note=add_note)
    return made.encode(xml_encoding(made), "xmlcharrefreplace")


def write_mjcf(estimate: Estimate, path: str | Path, *, with_payload: bool = False,
               unchecked: bool = False) -> tuple[str, ...]:
    """Write the robot with the estimate's inertias, rotors and friction as MJCF; return notes."""
    from dynid.robot.write_mjcf import to_mjcf  # imported here, because most results are URDF files

    notes: list[str] = []
    model, inertias = robot_inertias(estimate, with_payload, notes.append)
    fields = {item.name: (item.owner, item.kind.mjcf) for item in model.parameters if item.kind.mjcf}
    values = _values(estimate, model, fields, "MJCF", notes.append)
    text = to_mjcf(model.robot, inertias, values, fields=fields, unchecked=unchecked, add_note=notes.append)
    with write_whole(Path(path)) as file:
        file.write(text)
    return tuple(notes)


def robot_inertias(estimate: Estimate, with_payload: bool, add_note: Callable[[str], object]) -> tuple[Model, Array]:
    """Return the model and the ten inertial parameters of every body (dof, 10); bodies on mimic joints are last."""
    model, theta = required_robot_model(estimate.model, "a robot file"), estimate.theta
    if theta is None:
        raise NotPossibleError(f"method '{estimate.method}' gives base parameters only, and a robot file needs all of "
                               "them; use a method that gives full parameters, such as pc-wls, pc-ridge or ridge",
                               code="base-parameters-only")
    inertias, following = body_inertias(model, theta, with_payload, add_note), model.robot.followers
    if following is not None:
        places, whole = model.parameters.bodies, model.body_numbers(theta)[model.robot.dof:]
        own = [theta[places[name]] if name in places else np.zeros(10) for name in following.names]
        inertias = np.vstack([inertias, *(whole if with_payload else own)])
    return model, inertias


def body_inertias(model: Model, theta: Array, with_payload: bool = False,
                  add_note: Callable[[str], object] = lambda note: None) -> Array:
    """Return the ten inertial parameters of every body (dof, 10) from parameters theta, optionally with payload."""
    robot, places, follows = model.robot, model.parameters.bodies, model.robot.followers
    missing = [body.name for body in robot.bodies if body.name not in places and not body.virtual]
    if missing:
        raise ModelError(f"the model has no inertial parameters of link '{missing[0]}'; add the rigid bodies' term",
                         code="no-inertial-parameters")
    inertias = np.array([theta[places[name]] if name in places else np.zeros(10) for name in robot.body_names])
    links = (*robot.body_names, *(follows.names if follows else ()))
    hung = {f"payload {term.label}": links[term.body(robot)] for term in model.terms if isinstance(term, Payload)}
    loads = {item.body: hung.get(item.body, robot.body_names[item.owner]) for item in model.parameters
             if item.body is not None and item.body not in links}
    for load, link in loads.items():
        add_note(f"{load} is part of link '{link}'" if with_payload
             else f"{load} on link '{link}' is not included; with_payload=True adds it to the link")
    if with_payload and loads:
        return model.body_numbers(theta)[:robot.dof]
    return inertias


def _values(estimate: Estimate, model: Model, fields: JointFields, file: str,
            add_note: Callable[[str], object]) -> dict[str, float]:
    """Return the parameters that a robot file can store, by name, and add a note on those that it cannot store."""
    theta = dict(zip(model.parameters.names, estimate.full, strict=True))
    left = [item.name for item in model.parameters
            if item.body is None and item.name not in fields and theta[item.name] != 0]
    if left:
        add_note(f"{file} cannot represent {', '.join(left)}: its torques lack these terms")
    return {name: float(theta[name]) for name in fields}

"""Write an estimate as a robot file: the user's URDF with the identified values, or MJCF."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.estimate.estimate import Estimate
from dynid.estimate.simulators.friction_fit import PASSIVE, motion_for, nearest_values, unrepresented
from dynid.files import write_whole
from dynid.model import Model, Payload, make_terms, required_robot_model
from dynid.model.parameters import DRY, VISCOUS, symbol_meaning
from dynid.output_fields import output_fields
from dynid.plain import PlainFields, finite, plain
from dynid.quantities import percent_text
from dynid.recording import Samples
from dynid.recording.excerpts import stretches
from dynid.regression.equations import log_pieces, piece_entries
from dynid.regression.residual_series import PIECE, Residuals, pieces_within, torque_sums
from dynid.robot.robot import JointFields, Robot
from dynid.robot.urdf import read_urdf
from dynid.robot.write_urdf import plain_urdf, urdf_with_inertias, xml_encoding

URDF_VALUES = {"damping": "damping", "frictionloss": "friction"}  # attributes of <dynamics> by name of a passive value
# Full-rate rows of all logs in which a written file is compared: the headline of nearly every run has no more, and
# inverse dynamics of so many take a small share of its time.
_MAX_COMPARED_ROWS = 131_072
_MAX_KINDS_NAMED = 3  # kinds of terms in a sentence, so that it has at most two lines; tables have all of them


def write_urdf(estimate: Estimate, path: str | Path, source: str | Path | None = None, *,
               samples: Sequence[Samples] = (), with_payload: bool = False, unchecked: bool = False) -> tuple[str, ...]:
    """Write a copy of the robot's URDF with the estimate's inertias and friction; return notes.

    A robot from a table of modified Denavit-Hartenberg parameters gets a URDF of its links and joints. source:
    another URDF of the same robot, a file or its text. samples: logs over whose motion other friction than viscous and
    Coulomb friction is approximated; random states by default. with_payload: add the payload to its link. unchecked:
    also write bodies that are not physically consistent.
    """
    notes: list[str] = []
    model, inertias = robot_inertias(estimate, with_payload, notes.append)
    joints = _joint_values(estimate, model, samples, URDF_VALUES, "a URDF", notes.append)
    made = urdf_of_joints(model.robot, inertias, joints, source, unchecked=unchecked, add_note=notes.append)
    with write_whole(Path(path), "wb") as file:
        file.write(made)
    return tuple(notes)


def urdf_of_joints(robot: Robot, inertias: Array, joints: Sequence[Mapping[str, float]],
                   source: str | Path | None = None, *, unchecked: bool = False,
                   add_note: Callable[[str], object] = lambda note: None) -> bytes:
    """Return the URDF of `urdf_bytes` with passive values by name of every joint; others stay those of the file."""
    fields = {f"{name} {j}": (j, URDF_VALUES[name]) for j, own in enumerate(joints) for name in own
              if name in URDF_VALUES}
    values = {f"{name} {j}": float(value) for j, own in enumerate(joints) for name, value in own.items()
              if name in URDF_VALUES}
    return urdf_bytes(robot, inertias, values, fields, source, unchecked=unchecked, add_note=add_note)


def mjcf_of_joints(robot: Robot, inertias: Array, joints: Sequence[Mapping[str, float]], *,
                   actuators: Mapping[str, str] | None = None, unchecked: bool = False,
                   add_note: Callable[[str], object] = lambda note: None) -> str:
    """Return a new MJCF file of a robot with passive values by name of every joint; see `to_mjcf`."""
    from dynid.robot.write_mjcf import to_mjcf  # imported here, because most results are URDF files

    fields = {f"{name} {j}": (j, name) for j, own in enumerate(joints) for name in own}
    values = {f"{name} {j}": float(value) for j, own in enumerate(joints) for name, value in own.items()}
    return to_mjcf(robot, inertias, values, fields=fields, actuators=actuators, unchecked=unchecked, add_note=add_note)


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


def write_mjcf(estimate: Estimate, path: str | Path, *, samples: Sequence[Samples] = (), with_payload: bool = False,
               unchecked: bool = False) -> tuple[str, ...]:
    """Write the robot with the estimate's inertias, rotors and friction as MJCF; return notes. samples: see
    `write_urdf`."""
    notes: list[str] = []
    model, inertias = robot_inertias(estimate, with_payload, notes.append)
    joints = _joint_values(estimate, model, samples, PASSIVE, "MJCF", notes.append)
    text = mjcf_of_joints(model.robot, inertias, joints, unchecked=unchecked, add_note=notes.append)
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


def _joint_values(estimate: Estimate, model: Model, samples: Sequence[Samples], holds: Collection[str], file: str,
                  add_note: Callable[[str], object]) -> list[dict[str, float]]:
    """Return the passive values of every joint by name, and add notes on what a file with these cannot represent."""
    nearest = nearest_values(model, estimate.full, lambda: motion_for(estimate, samples), holds)
    kinds = {item.name: item.kind.group for item in model.parameters}
    rest = tuple(dict.fromkeys(name for _, names in nearest for name in names))
    lost = [name for name in rest if kinds[name] != "friction"]
    if lost:
        add_note(f"{file} cannot represent {', '.join(lost)}: its torques lack these terms")
    replaced = [name for name in rest if kinds[name] == "friction"]
    if replaced:
        where = "the logged motion" if samples else "random states within the joint limits"
        add_note(f"{file} has viscous and Coulomb friction only; those nearest to {_meanings(model, replaced)} over "
                 f"{where} are written")
    return [values for values, _ in nearest]


def _meanings(model: Model, names: Collection[str]) -> str:
    """Return what some parameters are, such as 'torque offset, friction curve (5 joints) and 2 more kinds'."""
    joints: dict[tuple[str, str], dict[str, None]] = {}
    for name in names:
        item = model.parameters.items[model.parameters.index(name)]
        what, _, detail = symbol_meaning(item.symbol, item.kind).partition(", ")
        detail = "" if item.symbol.endswith("_") else detail  # the step or order of one of several parameters
        if detail or what not in (VISCOUS.words, DRY.words):  # the file has the nearest values of these
            joints.setdefault((what, detail), {})[item.part] = None
    every, kinds = model.robot.dof - model.robot.free_coordinates, list[str]()
    for (what, detail), of in sorted(joints.items(), key=lambda entry: -len(entry[1])):
        where = "" if len(of) == every else next(iter(of)) if len(of) == 1 else f"{len(of)} joints"
        inside = ", ".join(text for text in (detail, where) if text)
        kinds.append(f"{what} ({inside})" if inside else what)
    more = len(kinds) - _MAX_KINDS_NAMED
    return ", ".join(kinds[:_MAX_KINDS_NAMED]) + (f" and {more} more kind{'s' * (more > 1)}" if more > 0 else "")


# -- the written file ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class WrittenJoint(PlainFields):
    """Torque errors of one joint.

    Attributes:
        name: name of the joint.
        torque_error: relative torque error of the written file, percent; None without torque or rows.
        estimate_error: that of the estimate, percent.
        replaced_or_omitted: names of the estimate's parameters that the file replaces or omits.
    """

    name: str
    torque_error: float | None
    estimate_error: float | None
    replaced_or_omitted: tuple[str, ...]


@dataclass(frozen=True)
class WrittenFile:
    """A robot file as it was read again, compared with the logged torques and with the estimate.

    Attributes:
        file: name of the file.
        torque_error: relative error of the torques of its bodies, damping, friction and armature, percent.
        estimate_error: relative error of the estimate's torques in the same rows, percent.
        equations: number of these rows.
        joints: the same of each joint.
        cannot_hold: what the file replaces or omits, in words.
        is_nearest: whether its bodies are the nearest physically consistent ones, because the estimate has none.
    """

    file: str
    torque_error: float | None
    estimate_error: float | None
    equations: int
    joints: tuple[WrittenJoint, ...]
    cannot_hold: str
    is_nearest: bool = False

    @property
    def sentence(self) -> str:
        """Sentence such as 'robot.urdf: torque error 10.3 % (the estimate: 3.8 %); it cannot hold friction curve (5
        joints)'."""
        nearest = " (nearest physically consistent robot)" if self.is_nearest else ""
        if self.torque_error is None or self.estimate_error is None:
            text = f"{self.file}{nearest}: the logs have no torque to compare it with"
        else:
            text = (f"{self.file}{nearest}: torque error {percent_text(self.torque_error)} (the estimate: "
                    f"{percent_text(self.estimate_error)})")
        return f"{text}; it cannot hold {self.cannot_hold}" if self.cannot_hold else text

    @output_fields(own_fields=True, joints=list[WrittenJoint])
    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data for JSON."""
        return plain(vars(self))


def compare_file(path: Path, estimate: Estimate, logs: Sequence[Samples], series: Sequence[Residuals], *,
                 is_nearest: bool = False) -> WrittenFile | None:
    """Read a written URDF or MJCF file and compare its torques with the logged ones, in the rows of the regression.

    Args:
        path: the file.
        estimate: the estimate with all parameters that was written.
        logs: logs with torques; an excerpt of at most about `_MAX_COMPARED_ROWS` rows is compared.
        series: logged torques and those of the identified estimate, in the rows of the regression of each log.
        is_nearest: whether the identified estimate has no bodies, so that the nearest consistent ones were written.

    Returns:
        None if the torques of the file are not those of the logs: joints are different, or contacts act on a free base.
    """
    model = required_robot_model(estimate.model, "a robot file")
    is_urdf = path.suffix == ".urdf"
    robot = (Robot.from_urdf if is_urdf else Robot.from_mjcf)(path)
    if robot.joint_names != model.robot.joint_names or any(log.mixing is not None for log in logs):
        return None
    robot = replace(robot, gravity=model.robot.gravity)  # a URDF does not state it
    read = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb")))
    theta = np.array([item.nominal or 0.0 for item in read.parameters])
    parts = _file_residuals(read, theta, logs, series)
    sums = [np.sum([torque_sums(part) for part in pair], axis=0) for pair in zip(*parts, strict=True)]
    joints = tuple(WrittenJoint(name, _relative(file), _relative(own), rest) for name, file, own, rest in zip(
        model.joint_names, *sums, unrepresented(model, estimate.full, URDF_VALUES if is_urdf else PASSIVE),
        strict=True))
    names = dict.fromkeys(name for one in joints for name in one.replaced_or_omitted)
    whole = [of.sum(axis=0) for of in sums]
    return WrittenFile(path.name, _relative(whole[0]), _relative(whole[1]), int(whole[0][5]), joints,
                       _meanings(model, names), is_nearest)


def _file_residuals(read: Model, theta: Array, logs: Sequence[Samples], series: Sequence[Residuals]
                    ) -> list[tuple[Residuals, Residuals]]:
    """Return, for each log, the residuals of a file's model and of the estimate in an excerpt of the compared rows."""
    chosen, found = stretches(logs, _MAX_COMPARED_ROWS), list[tuple[Residuals, Residuals]]()
    for k, (samples, own) in enumerate(zip(logs, series, strict=True)):
        pieces = log_pieces(samples, k, unit=PIECE)
        pieces = pieces if chosen is None else pieces_within(pieces, chosen)
        if not any(len(piece.rows) for piece in pieces):
            continue

        def torques(rows: slice, samples: Samples = samples) -> Array:
            return read.inverse_dynamics(theta, samples.q[rows], samples.dq[rows], samples.ddq[rows]).T

        predicted = np.concatenate([piece_entries(samples, piece, torques).T for piece in pieces if len(piece.rows)])
        rows = np.searchsorted(own.t, samples.t[np.concatenate([np.array(piece.rows) for piece in pieces])])
        part = replace(own, t=own.t[rows], measured=own.measured[rows], predicted=own.predicted[rows],
                       keep=own.keep[rows])
        found.append((replace(part, predicted=predicted), part))
    return found


def _relative(sums: Array) -> float | None:
    """Return a relative error, percent, from sums of `torque_sums`; None without torque."""
    return finite(100.0 * np.sqrt(sums[2] / sums[0])) if sums[0] > 0.0 else None

"""Description of a robot, its identifiable parameters, and the faults of its inertias."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from dynid.datasets import LogFacts
from dynid.dynamics.following import chain_of
from dynid.model import Model, make_terms
from dynid.model.held import held_values
from dynid.output_fields import array_of, output_fields, record
from dynid.recording.log_reading import read
from dynid.regression import BaseParameters, base_parameters
from dynid.robot import Robot
from dynid.robot.check import inertia_problems
from dynid.robot.roles import held_bodies

OwnTerms = Literal["default", "own", "none"]
LIMITS = ("lower", "upper", "velocity", "acceleration", "effort")
_MASS_FIRST = ("M", "MX MY MZ", "XX XY XZ YY YZ ZZ")  # the order of Simionato's tables
_COUPLINGS = {"motor-side", "coupled-wrist"}  # kinds of terms without which the torques make no sense


_LIMIT_FIELDS: dict[str, Any] = dict.fromkeys(LIMITS, float | None)
_JOINT = record("RobotJoint", name=str, kind=str, link=str, parent=str, **_LIMIT_FIELDS)
_CLOSURE = record("RobotClosure", name=str, kind=str, first=str, second=str, equations=int, repeated=int)
_STANDARD = record("StandardParameter", name=str, unit=str, of=str, value=float | None, seen=str)
_BASE = record("Combination", name=str, expression=str)
INERTIA_PROBLEM = record("InertiaProblem", link=str, kind=str, message=str, violation=float | None)


@output_fields(robot=str, source=str, warnings=list[str], dof=int, gravity=list[float], base=str,
               joints=array_of(_JOINT), mimic_joints=list[dict[str, Any]], closures=array_of(_CLOSURE),
               following_joints=list[str], measured_joints=list[str], driven_joints=list[str], held_bodies=list[str],
               locked_joints=dict[str, float], parameters=array_of(_STANDARD), base_count=int,
               base_parameters=array_of(_BASE), inertia_problems=array_of(INERTIA_PROBLEM))
def inspect_robot(robot: Robot, friction: Sequence[str] = (), rotor: bool = False, *, own_terms: OwnTerms = "none",
                  mass_first: bool = False, by: Literal["qr", "svd"] = "qr") -> dict[str, Any]:
    """Return a description of a robot without data, the object of `dynid inspect --json`.

    friction, rotor: terms at every joint. own_terms: those of the robot file: "default", if its motors couple joints;
    "own", always; "none". mass_first: group parameters onto masses, then moments, then inertias, instead of body by
    body. by: method for base parameters, see `base_parameters`.
    """
    coupled = any(term["kind"] in _COUPLINGS for term in robot.terms)
    defaults = own_terms == "own" or (own_terms == "default" and coupled)
    model = Model(robot, make_terms(robot, friction=tuple(friction), rotor=rotor, defaults=defaults))
    base = base_parameters(model, priority=_MASS_FIRST if mass_first else None, by=by)
    base, *_ = base.given(held_values(model))
    return {
        "robot": robot.name,
        "source": robot.source,
        "warnings": list(robot.warnings),
        "dof": robot.dof,
        "gravity": [float(g) for g in robot.gravity],
        "base": robot.base,
        "joints": _joints(robot),
        "mimic_joints": [] if robot.followers is None else [
            {"name": name, **mimic._asdict()} for name, mimic in robot.followers.mimics.items()],
        "closures": _closures(robot),
        "following_joints": [] if robot.followers is None else list(robot.followers.following),
        "measured_joints": list(robot.measured or robot.joint_names),
        "driven_joints": list(robot.driven or robot.joint_names),
        "held_bodies": list(held_bodies(robot)),
        "locked_joints": dict(robot.locked),
        "parameters": [
            {"name": one.name, "unit": one.unit, "of": one.part, "value": one.nominal, "seen": seen}
            for one, seen in zip(model.parameters, how_seen(base), strict=True)
        ],
        "base_count": len(base),
        "base_parameters": [{"name": name, "expression": expression}
                            for name, expression in zip(base.names, base.expressions, strict=True)],
        "inertia_problems": [
            {"link": problem.link, "kind": problem.kind, "message": problem.message, "violation": problem.violation}
            for problem in inertia_problems(robot)
        ],
    }


Inspection = record("Inspection", inspect_robot, logs=list[LogFacts])


def inspect_logs(robot: Robot, logs: Sequence[Path], mapping: Path | None = None) -> list[dict[str, Any]]:
    """Return facts on each log of a robot; mapping: a TOML file with a [log] table."""
    return [LogFacts.from_recording(read(path, mapping, robot), "inspected").to_dict() for path in logs]


def _closures(robot: Robot) -> list[dict[str, Any]]:
    """Return name and kind of each closure, its links, and the number of redundant equations."""
    followers = robot.followers
    if followers is None or followers.loops is None:
        return []
    repeated, names = chain_of(robot).repeated, {-1: robot.base, **dict(enumerate(followers.tree.body_names))}
    return [{"name": one.name, "kind": one.kind, "first": names[one.first.body], "second": names[one.second.body],
             "equations": one.equations, "repeated": repeated.get(one.name, 0)} for one in followers.loops.closures]


def _joints(robot: Robot) -> list[dict[str, Any]]:
    """Return name, kind, place in the tree and limits of each joint; None for an unknown limit."""
    return [{"name": joint.name, "kind": joint.kind, "link": body.name,
             "parent": robot.base if joint.parent < 0 else robot.bodies[joint.parent].name,
             **{which: float(limit) if math.isfinite(limit := getattr(joint, which)) else None for which in LIMITS}}
            for joint, body in zip(robot.joints, robot.bodies, strict=True)]


def how_seen(base: BaseParameters) -> list[str]:
    """Return whether torques determine each parameter: "alone" (individually), "combined" with others, or "never"."""
    used = base.matrix != 0.0
    lone_rows = used.sum(axis=1) == 1
    seen = []
    for rows in used.T:
        alone = rows.sum() == 1 and (rows & lone_rows).any()
        seen.append("alone" if alone else "combined" if rows.any() else "never")
    return seen


def inertia_sentences(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences on the inertias in the robot file: one summary, then one for each problem."""
    problems = facts["inertia_problems"]
    missing = [problem["link"] for problem in problems if problem["kind"] == "missing"]
    wrong = [problem["message"] for problem in problems if problem["kind"] != "missing"]
    sentences = []
    if missing:
        who = "any link" if len(missing) == facts["dof"] else ", ".join(missing)
        sentences.append(f"Inertias: the robot file gives none for {who}.")
    if wrong:
        sentences.append(f"Inertias: {len(wrong)} problem{'s' if len(wrong) > 1 else ''}.")
        sentences += [f"  - {message}" for message in wrong]
    return sentences or ["Inertias: every body is physically consistent."]

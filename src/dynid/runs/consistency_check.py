"""Description of a robot and its identifiable parameters, and the check of its physical consistency."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.consistency import Consistency, Feasibility, Violation, limits_from_shapes, limits_from_tables, test
from dynid.datasets import LogFacts
from dynid.dynamics.following import closed_chain
from dynid.estimate import Estimate
from dynid.estimate.export import body_inertias
from dynid.model import Model, make_terms, required_robot_model
from dynid.output_fields import array_of, output_fields, record
from dynid.plain import finite
from dynid.recording.log_reading import read
from dynid.regression import BaseParameters, base_parameters
from dynid.regression.known import fixed_inertia_values
from dynid.robot import Robot, inertia_problems
from dynid.robot.followers import links_with_fixed_inertia
from dynid.runs.results import PARAMETERS, load
from dynid.runs.settings import RunSettings

OwnTerms = Literal["default", "own", "none"]
LIMITS = ("lower", "upper", "velocity", "acceleration", "effort")
_MASS_FIRST = ("M", "MX MY MZ", "XX XY XZ YY YZ ZZ")  # the order of Simionato's tables
_COUPLINGS = {"motor-side", "coupled-wrist"}  # kinds of terms that the torque equations need


_LIMIT_FIELDS: dict[str, Any] = dict.fromkeys(LIMITS, float | None)
_ROBOT_JOINT = record("RobotJoint", name=str, kind=str, link=str, parent=str, **_LIMIT_FIELDS)
_ROBOT_CLOSURE = record("RobotClosure", name=str, kind=str, first=str, second=str, equations=int, repeated=int)
_STANDARD = record("StandardParameter", name=str, unit=str, of=str, value=float | None, seen=str)
_COMBINATION = record("Combination", name=str, expression=str)
INERTIA_PROBLEM = record("InertiaProblem", link=str, kind=str, message=str, violation=float | None)
ROUNDING = 1e-9  # tolerance of numbers at a limit, in their own units
_CERTIFICATE = record("Certificate", verified=bool, gap=float | None, error=float | None, conditions=list[Any])


@output_fields(robot=str, source=str, warnings=list[str], dof=int, gravity=list[float], base=str,
               joints=array_of(_ROBOT_JOINT), mimic_joints=list[dict[str, Any]], closures=array_of(_ROBOT_CLOSURE),
               following_joints=list[str], measured_joints=list[str], driven_joints=list[str],
               links_with_fixed_inertia=list[str], locked_joints=dict[str, float], parameters=array_of(_STANDARD),
               base_count=int, base_parameters=array_of(_COMBINATION), inertia_problems=array_of(INERTIA_PROBLEM))
def inspect_robot(robot: Robot, friction: Sequence[str] = (), rotor: bool = False, *, own_terms: OwnTerms = "none",
                  mass_first: bool = False, by: Literal["qr", "svd"] = "qr") -> dict[str, Any]:
    """Return a description of a robot without data, the object of `dynid inspect --json`.

    Args:
        robot: the robot.
        friction, rotor: terms at every joint.
        own_terms: terms of the robot file: "default", if its motors couple joints; "own", always; "none".
        mass_first: group parameters onto masses, then moments, then inertias, instead of body by body.
        by: method for base parameters, see `base_parameters`.
    """
    coupled = any(term["kind"] in _COUPLINGS for term in robot.terms)
    defaults = own_terms == "own" or (own_terms == "default" and coupled)
    model = Model(robot, make_terms(robot, friction=tuple(friction), rotor=rotor, defaults=defaults))
    base = base_parameters(model, priority=_MASS_FIRST if mass_first else None, by=by)
    base, *_ = base.given(fixed_inertia_values(model))
    return {
        "robot": robot.name, "source": robot.source, "warnings": list(robot.warnings), "dof": robot.dof,
        "gravity": [float(g) for g in robot.gravity], "base": robot.base, "joints": _joints(robot),
        "mimic_joints": [] if robot.followers is None else [
            {"name": name, **mimic._asdict()} for name, mimic in robot.followers.mimics.items()],
        "closures": _closures(robot),
        "following_joints": [] if robot.followers is None else list(robot.followers.following),
        "measured_joints": list(robot.measured or robot.joint_names),
        "driven_joints": list(robot.driven or robot.joint_names),
        "links_with_fixed_inertia": list(links_with_fixed_inertia(robot)),
        "locked_joints": dict(robot.locked),
        "parameters": [{"name": one.name, "unit": one.unit, "of": one.part, "value": one.nominal, "seen": seen}
                       for one, seen in zip(model.parameters, how_seen(base), strict=True)],
        "base_count": len(base),
        "base_parameters": [{"name": name, "expression": expression}
                            for name, expression in zip(base.names, base.expressions, strict=True)],
        "inertia_problems": [dict(vars(problem)) for problem in inertia_problems(robot)]}


Inspection = record("Inspection", inspect_robot, logs=list[LogFacts])


def inspect_logs(robot: Robot, logs: Sequence[Path], mapping: Path | None = None,
                 changes: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return facts on each log of a robot; mapping: a TOML file with a [log] table; changes: settings on top of it."""
    return [LogFacts.from_recording(read(path, mapping, robot, **(changes or {})), "inspected").to_dict()
            for path in logs]


def _closures(robot: Robot) -> list[dict[str, Any]]:
    """Return name and kind of each loop closure, its links, and the number of redundant equations."""
    followers = robot.followers
    if followers is None or followers.loops is None:
        return []
    repeated, names = closed_chain(robot).repeated, {-1: robot.base, **dict(enumerate(followers.tree.body_names))}
    return [{"name": one.name, "kind": one.kind, "first": names[one.first.body], "second": names[one.second.body],
             "equations": one.equations, "repeated": repeated.get(one.name, 0)} for one in followers.loops.closures]


def _joints(robot: Robot) -> list[dict[str, Any]]:
    """Return name, kind, position in the tree and limits of each joint; None for an unknown limit."""
    return [{"name": joint.name, "kind": joint.kind, "link": body.name,
             "parent": robot.base if joint.parent < 0 else robot.bodies[joint.parent].name,
             **{which: float(limit) if math.isfinite(limit := getattr(joint, which)) else None for which in LIMITS}}
            for joint, body in zip(robot.joints, robot.bodies, strict=True)]


def how_seen(base: BaseParameters) -> list[str]:
    """Return whether torques determine each parameter individually ("alone"), "combined" with others, or "never"."""
    used = base.matrix != 0.0
    lone_rows = used.sum(axis=1) == 1
    return ["alone" if rows.sum() == 1 and (rows & lone_rows).any() else "combined" if rows.any() else "never"
            for rows in used.T]


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


@dataclass(frozen=True, eq=False)
class Check:
    """Result of a check of physical consistency.

    Attributes:
        source, name: checked file or folder, and name of the robot.
        consistent, reasons: whether the robot is physically consistent, and the violated conditions.
        remarks: observations that are not violations.
        full: whether all parameters are known.
        feasibility: test of the base parameters, if only they are known or the full ones are inconsistent.
    """

    source: str
    name: str
    consistent: bool
    reasons: tuple[Violation, ...]
    remarks: tuple[str, ...] = ()
    full: bool = True
    feasibility: Feasibility | None = None

    @output_fields(source=str, robot=str, consistent=bool, problems=array_of(INERTIA_PROBLEM), remarks=list[str],
                   base_possible=bool | None, base_distance=float | None, certificate=_CERTIFICATE | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the result of the consistency check as plain data for JSON."""
        found = self.feasibility
        proof = None if found is None or found.certificate is None else found.certificate
        return {
            "source": self.source, "robot": self.name, "consistent": self.consistent,
            "problems": [{"link": one.link, "kind": one.kind, "message": one.message,
                          "violation": finite(one.amount)} for one in self.reasons],
            "remarks": list(self.remarks),
            "base_possible": None if found is None else found.possible,
            "base_distance": None if found is None else finite(found.distance),
            "certificate": None if proof is None else {"verified": proof.verify(), "gap": finite(proof.gap),
                                                       "error": finite(proof.error()),
                                                       "conditions": list(proof.reasons)},
        }


def check(source: str | Path, *, shapes: bool | None = None, trust: bool = False) -> Check:
    """Check the folder of a result, or a robot: a URDF, a robot TOML or a built-in name.

    shapes: whether a centre of mass outside the link's collision shapes is a violation or only a remark; by default a
    violation in a robot file, and in a result whose run requested it. trust: see `load`.
    """
    path = Path(source)
    if os.path.isdir(path) or path.name == PARAMETERS:
        estimate, settings = load(path if path.is_dir() else path.parent, trust=trust)
        return check_result(estimate, settings, str(source), shapes=shapes)
    return check_robot(Robot.load(source), str(source), shapes=shapes is not False)


def check_robot(robot: Robot, source: str = "", *, shapes: bool = True) -> Check:
    """Check the inertias and the friction in a robot file."""
    reasons, remarks = _bodies(robot, shapes)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb"), rotor=True))
    reasons += [Violation(one.name, "positive",
                          f"{one.name} of '{one.part}' is negative: {one.nominal:.4g} {one.unit}", -one.nominal)
                for one in model.parameters if one.positive and one.nominal is not None and one.nominal < 0]
    return Check(source, robot.name, not reasons, tuple(reasons), tuple(remarks))


def check_result(estimate: Estimate, settings: RunSettings, source: str = "", *, shapes: bool | None = None) -> Check:
    """Check the full parameters of an estimate or, without them, whether a consistent robot has its base parameters."""
    model = required_robot_model(estimate.model, "a check")
    options = settings.options
    shapes = bool(options.get("shapes")) if shapes is None else shapes
    centres, masses = limits_from_tables(options.get("centres", {}), options.get("masses", ()))
    consistency = Consistency(model.parameters, centres={**(limits_from_shapes(model.robot) if shapes else {}),
                                                         **centres}, masses=masses)
    known = estimate.identified
    base = BaseParameters(model.parameters, estimate.base.independent[known], estimate.base.matrix[known])
    values = estimate.values[known]
    if estimate.theta is None:
        found = test(consistency, values, base)
        unseen = ", ".join(np.array(estimate.names)[~known])
        return Check(source, model.robot.name, found.possible, tuple(_why_not(consistency, found, base, values)),
                     (f"not included, because the data do not determine it: {unseen}",) if unseen else (), False, found)
    # `consistency` restricts centres of mass to shapes here, as in the estimate.
    robot = model.robot.with_inertias(body_inertias(model, estimate.theta))
    reasons, remarks = _bodies(robot, shapes=False)
    remarks = [] if shapes else remarks
    reasons += [v for v in consistency.violations(estimate.theta, ROUNDING)
                if v.link not in robot.body_names or v.kind in ("centre-of-mass", "mass-limit")]
    again = None
    if reasons:
        again = test(consistency, values, base)
        remarks.append("physically consistent links with the same torques exist: use --method pc-wls"
                       if again.possible else "no links with these torques satisfy these conditions")
    return Check(source, model.robot.name, not reasons, tuple(reasons), tuple(remarks), True, again)


def _bodies(robot: Robot, shapes: bool) -> tuple[list[Violation], list[str]]:
    """Return violated conditions of physical consistency of a robot's bodies, and remarks."""
    found = inertia_problems(robot)
    wrong = [p for p in found if shapes or p.kind != "centre-of-mass"]
    return ([Violation(p.link, p.kind, p.message, p.violation) for p in wrong],
            [p.message for p in found if p not in wrong])


def _why_not(consistency: Consistency, found: Feasibility, base: BaseParameters,
             values: np.ndarray) -> Iterator[Violation]:
    """Yield reasons why no consistent robot has some base parameters: the violations of the nearest links with the same
    torques. The certificate of the cone programme proves that no other links are consistent."""
    if found.possible:
        return
    back, *_ = np.linalg.lstsq(base.matrix, values - base.matrix @ found.theta, rcond=None)
    wrong = consistency.violations(found.theta + back)
    yield from wrong
    if not wrong and found.certificate is not None:
        blocks = {block.name: block for block in consistency.blocks}
        for name in found.certificate.reasons:
            yield Violation(blocks[name].body or name, blocks[name].kind, f"no robot with these torques has {name}",
                            found.distance)

"""Check of physical consistency of a robot file or an earlier result, with the reasons link by link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.consistency import Consistency, Feasibility, limits_from_shapes, limits_from_tables, test
from dynid.estimate import Estimate
from dynid.estimate.export import body_inertias
from dynid.model import Model, make_terms, required_robot_model
from dynid.output_fields import array_of, output_fields, record
from dynid.plain import finite
from dynid.regression import BaseParameters
from dynid.robot import Robot, inertia_problems
from dynid.runs.inspection import INERTIA_PROBLEM
from dynid.runs.results import PARAMETERS, load
from dynid.runs.settings import RunSettings

ROUNDING = 1e-9  # of numbers that stand on a limit, in their own units


@dataclass(frozen=True)
class Reason:
    """A violated condition of physical consistency.

    Attributes:
        link: the link, joint parameter or group.
        violation: its size, SI units.
    """

    link: str
    kind: str
    message: str
    violation: float


_CERTIFICATE = record("Certificate", verified=bool, gap=float | None, error=float | None, conditions=list[Any])


@dataclass(frozen=True, eq=False)
class Check:
    """Result of a check of physical consistency.

    Attributes:
        remarks: observations that are not violations.
        full: whether all parameters are known.
        feasibility: test of the base parameters, if only they are known or the full ones are inconsistent.
    """

    source: str
    name: str
    consistent: bool
    reasons: tuple[Reason, ...]
    remarks: tuple[str, ...] = ()
    full: bool = True
    feasibility: Feasibility | None = None

    @output_fields(source=str, robot=str, consistent=bool, problems=array_of(INERTIA_PROBLEM), remarks=list[str],
                   base_possible=bool | None, base_distance=float | None, certificate=_CERTIFICATE | None)
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        found = self.feasibility
        proof = None if found is None or found.certificate is None else found.certificate
        return {
            "source": self.source, "robot": self.name, "consistent": self.consistent,
            "problems": [{"link": one.link, "kind": one.kind, "message": one.message,
                          "violation": finite(one.violation)} for one in self.reasons],
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
    reasons += [Reason(one.name, "positive", f"{one.name} of '{one.part}' is negative: {one.nominal:.4g} {one.unit}",
                       -one.nominal)
                for one in model.parameters if one.positive and one.nominal is not None and one.nominal < 0]
    return Check(source, robot.name, not reasons, tuple(reasons), tuple(remarks))


def check_result(estimate: Estimate, settings: RunSettings, source: str = "", *, shapes: bool | None = None) -> Check:
    """Check an estimate: its full parameters or, if there are none, whether any consistent robot has its base
    parameters."""
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
    # Shapes limit centres through `consistency` here, as they did in the estimate.
    robot = model.robot.with_inertias(body_inertias(model, estimate.theta))
    reasons, remarks = _bodies(robot, shapes=False)
    remarks = [] if shapes else remarks
    reasons += [Reason(v.link, v.kind, v.message, v.amount) for v in consistency.violations(estimate.theta, ROUNDING)
                if v.link not in robot.body_names or v.kind in ("centre-of-mass", "mass-limit")]
    again = None
    if reasons:
        again = test(consistency, values, base)
        remarks.append("physically consistent links with the same torques exist: use --method "
                       "pc-wls" if again.possible else
                       "no links with these torques satisfy these conditions")
    return Check(source, model.robot.name, not reasons, tuple(reasons), tuple(remarks), True, again)


def _bodies(robot: Robot, shapes: bool) -> tuple[list[Reason], list[str]]:
    """Return the violations of the bodies of a robot, and remarks."""
    found = inertia_problems(robot)
    wrong = [p for p in found if shapes or p.kind != "centre-of-mass"]
    return [Reason(p.link, p.kind, p.message, p.violation) for p in wrong], [p.message for p in found if p not in wrong]


def _why_not(consistency: Consistency, found: Feasibility, base: BaseParameters,
             values: np.ndarray) -> Iterator[Reason]:
    """Yield reasons for base parameters that no consistent robot has: violations of the nearest links with these
    torques. The certificate proves that no other choice is consistent."""
    if found.possible:
        return
    back, *_ = np.linalg.lstsq(base.matrix, values - base.matrix @ found.theta, rcond=None)
    wrong = consistency.violations(found.theta + back)
    for v in wrong:
        yield Reason(v.link, v.kind, v.message, v.amount)
    if not wrong and found.certificate is not None:
        blocks = {block.name: block for block in consistency.blocks}
        for name in found.certificate.reasons:
            yield Reason(blocks[name].body or name, blocks[name].kind, f"no robot with these torques has {name}",
                         found.distance)

"""Friction terms chosen for each joint of a robot, with the error reduction by each term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynid.estimate.columns_left_out import Worth
from dynid.model import Model
from dynid.output_fields import map_of, output_fields, record


@dataclass(frozen=True)
class JointChoice:
    """Friction terms that were chosen and rejected for one joint.

    Attributes:
        joint: name of the joint.
        taken: chosen terms, with the error reduction by each.
        left: rejected terms, with the error reduction that each would add.
        usual: names of the standard friction terms.
    """

    joint: str
    taken: tuple[Worth, ...]
    left: tuple[Worth, ...]
    usual: str = "viscous and Coulomb"

    def __str__(self) -> str:
        taken = ", ".join(map(str, self.taken)) or f"{self.usual} friction only"
        left = ", ".join(map(str, self.left))
        return f"{self.joint}: {taken}" + (f"; not used: {left}" if left else "")


_FRICTION_WORTH = record("FrictionWorth", gain_percent=float, standard_error=float)
_JOINT_CHOICE = record("JointFrictionChoice", taken=map_of(_FRICTION_WORTH), left=map_of(_FRICTION_WORTH))


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """The friction terms that were chosen for every joint of a robot.

    Attributes:
        joints: chosen and rejected terms of each joint.
        tables: the terms in the format of run files, with rotor inertia.
        model: model with these terms.
        blocks: number of cross-validation blocks.
        ridges: ridge penalty of each chosen kind of term.
    """

    joints: tuple[JointChoice, ...]
    tables: tuple[dict[str, Any], ...]
    model: Model
    blocks: int
    ridges: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Clause that lists the chosen friction terms, with joints that have the same terms grouped."""
        groups: dict[str, list[str]] = {}
        for one in self.joints:
            groups.setdefault(", ".join(worth.term for worth in one.taken) or f"{one.usual} only", []).append(one.joint)
        return "; ".join(f"{terms} on {', '.join(joints)}" for terms, joints in groups.items())

    @output_fields(blocks=int, ridges=dict[str, float], terms=list[dict[str, Any]], joints=map_of(_JOINT_CHOICE))
    def to_dict(self) -> dict[str, Any]:
        def worths(some: Sequence[Worth]) -> dict[str, dict[str, float]]:
            return {one.term: {"gain_percent": one.gain, "standard_error": one.error} for one in some}

        return {"blocks": self.blocks, "ridges": dict(self.ridges), "terms": [dict(table) for table in self.tables],
                "joints": {one.joint: {"taken": worths(one.taken), "left": worths(one.left)} for one in self.joints}}

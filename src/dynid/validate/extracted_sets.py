"""Comparison of extracted sets: equal torques on a new motion, different internal forces (Simionato, fig. 5.4 to
5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import required_robot_model
from dynid.output_fields import map_of, output_fields, record
from dynid.recording import Samples
from dynid.validate.physical import WrenchComparison, wrench_comparison

if TYPE_CHECKING:
    from dynid.extraction import Extraction
    from dynid.extraction.extraction import Reason


_COMPARED_SET = record("ComparedSet", reason=str, torque_error=float | None, forces_apart=list[float])
_REASON = record("ComparedReason", sets=list[str], largest_force_apart=float)


@dataclass(frozen=True, eq=False)
class SetComparison:
    """Torques (rows, dof) of every set along a motion by name, the internal forces, and the reference set."""

    sets: tuple[Extraction, ...]
    reference: str
    motion: Samples
    torques: Mapping[str, Array]
    wrenches: WrenchComparison

    def torque_error(self, name: str) -> float:
        """Return the relative error of a set's torques against the reference, percent."""
        true = self.torques[self.reference]
        return float(100.0 * np.linalg.norm(self.torques[name] - true) / max(float(np.linalg.norm(true)), 1e-300))

    def forces_apart(self, name: str) -> Array:
        """Return the largest difference of the force at each joint from that of the reference (joints,), N."""
        return self.wrenches.apart(name, self.reference)

    @property
    def by_reason(self) -> dict[Reason, list[str]]:
        """Names of the parameter sets by reason of inconsistency: inertia, centres or both; "feasible" lists consistent
        sets."""
        found: dict[Reason, list[str]] = {}
        for one in self.sets:
            found.setdefault(one.reason, []).append(one.name)
        return found

    @output_fields(reference=str, sets=map_of(_COMPARED_SET), by_reason=map_of(_REASON))
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"reference": self.reference,
                "sets": {one.name: {"reason": one.reason, "torque_error": self.torque_error(one.name),
                                    "forces_apart": self.forces_apart(one.name).tolist()} for one in self.sets},
                "by_reason": {reason: {"sets": names, "largest_force_apart": max(
                    float(self.forces_apart(name).max()) for name in names)} for reason, names in
                    self.by_reason.items()}}


def compare_sets(sets: Sequence[Extraction], motion: Samples, references: Mapping[str, Array]) -> SetComparison:
    """Compare extracted sets of parameters along a motion.

    references: further full vectors by name, the first of which is the reference. By default the first set is the
    reference.
    """
    if not sets:
        raise ModelError("there are no extracted sets to compare")
    model = required_robot_model(sets[0].given.model, "a comparison of extracted sets")
    every = {**references, **{one.name: one.theta for one in sets}}
    if len(every) < len(references) + len(sets):
        raise ModelError("two extracted sets have the same name; give each its own")
    torques = {name: model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq) for name, theta in every.items()}
    return SetComparison(tuple(sets), next(iter(every)), motion, torques, wrench_comparison(model, every, motion))

"""Full parameter vector with given base values, and its violations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Violation
from dynid.extraction.base_values import BaseValues
from dynid.extraction.bounds import BODY, BODY_UNITS, Bounds
from dynid.extraction.conditions import Conditions
from dynid.findings import VIOLATION
from dynid.output_fields import array_of, output_fields

Reason = Literal["feasible", "inertia", "centres", "both", "other"]
_INERTIA = {"mass", "not-positive-definite", "triangle"}
_CENTRES = {"centre-of-mass"}
INTERVAL_TOLERANCE = 1e-9  # share of an interval by which a value may be out of it


@dataclass(frozen=True, eq=False)
class ConeAnswer:
    """Result of the cone programme for the same base values under the convex conditions: inertias, masses, boxes of
    centres.

    Attributes:
        possible: whether any robot has them.
        distance: Euclidean, of the nearest consistent base values.
        theta: (parameters,), that robot.
        seconds: computing time.
        sentence: why there is none; empty if there is one.
    """

    possible: bool
    distance: float
    theta: Array | None
    seconds: float
    sentence: str = ""

    @output_fields(possible=bool, distance=float | None, milliseconds=float, sentence=str)
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"possible": self.possible, "distance": self.distance if np.isfinite(self.distance) else None,
                "milliseconds": 1e3 * self.seconds, "sentence": self.sentence}


@dataclass(frozen=True, eq=False)
class Extraction:
    """Result of the extraction of standard parameters from base parameters.

    Attributes:
        theta: standard parameters found (parameters,).
        given: base values that were required.
        distance, relative_distance: distance of the base values of theta from them.
        violations: violations of physical consistency and of contours.
        outside: violated bounds, as sentences.
        search: name of the search.
        run: number of the best run.
        evaluations: number of candidates tried.
        seconds: computing time.
        cones: result of the cone programme.
        name: name in tables.
        moved: how far the base values were moved to the nearest consistent ones.
    """

    name: str
    theta: Array
    given: BaseValues
    bounds: Bounds
    loss: str
    form: str
    search: str
    violations: tuple[Violation, ...]
    outside: tuple[str, ...]
    run: int
    runs: int
    evaluations: int
    seconds: float
    cones: ConeAnswer | None = None
    moved: float = 0.0

    @property
    def distance(self) -> float:
        """Euclidean distance from the given base values."""
        return self.given.distance(self.theta)

    @property
    def relative_distance(self) -> float:
        """Distance relative to the size of the base values."""
        return self.distance / max(float(np.linalg.norm(self.given.values)), 1e-300)

    @property
    def feasible(self) -> bool:
        """Whether the robot is physically consistent, with centres of mass inside their links."""
        return not self.violations

    @property
    def reason(self) -> Reason:
        """Why a set is not physically consistent: inertia, centres of mass outside their links, or both (s. 5.1)."""
        return reason_of(self.violations)

    def parameters(self) -> dict[str, float]:
        """Standard parameters by name."""
        return {name: float(value) for name, value in zip(self.given.model.parameters.names, self.theta, strict=True)}

    @output_fields(name=str, bounds=str, loss=str, form=str, search=str, feasible=bool, reason=str,
                   violations=array_of(VIOLATION), outside_bounds=list[str], base_distance=float | None,
                   base_moved=float | None, base_relative_distance=float | None, run=int, runs=int, evaluations=int,
                   elapsed_s=float, cones=ConeAnswer | None, parameters=dict[str, float])
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"name": self.name, "bounds": self.bounds.name, "loss": self.loss, "form": self.form,
                "search": self.search, "feasible": self.feasible, "reason": self.reason,
                "violations": [{"link": one.link, "kind": one.kind, "message": one.message, "amount": one.amount}
                               for one in self.violations],
                "outside_bounds": list(self.outside), "base_distance": self.distance,
                "base_moved": self.moved,
                "base_relative_distance": self.relative_distance, "run": self.run, "runs": self.runs,
                "evaluations": self.evaluations, "elapsed_s": self.seconds,
                "cones": None if self.cones is None else self.cones.to_dict(), "parameters": self.parameters()}


def reason_of(violations: tuple[Violation, ...]) -> Reason:
    """Return why a set of parameters is not physically consistent, from the kinds of its violations."""
    kinds = {one.kind for one in violations}
    if not kinds:
        return "feasible"
    if kinds & _INERTIA:
        return "both" if kinds & _CENTRES else "inertia"
    return "centres" if kinds & _CENTRES else "other"


def outside_bounds(conditions: Conditions, theta: Array) -> tuple[str, ...]:
    """Return a sentence for each bound that a full vector (parameters,) violates."""
    central, _ = conditions.central(theta)
    low, high, room = conditions.bounds.low, conditions.bounds.high, INTERVAL_TOLERANCE * conditions.scale
    found = []
    for b, k in np.argwhere((central < low - room) | (central > high + room)):
        body = list(conditions.consistency.bodies)[b]
        found.append(f"{BODY[k]} of link '{body}' is {central[b, k]:.4g} {BODY_UNITS[k]}, outside {low[b, k]:g} to "
                     f"{high[b, k]:g}")
    least, most, width = conditions.rest_box
    for k in np.flatnonzero((theta[conditions.rest] < least - INTERVAL_TOLERANCE * width)
                            | (theta[conditions.rest] > most + INTERVAL_TOLERANCE * width)):
        item = conditions.consistency.parameters.items[conditions.rest[k]]
        found.append(f"{item.name} is {theta[conditions.rest[k]]:.4g} {item.unit}, outside {least[k]:g} to {most[k]:g}")
    return tuple(found)

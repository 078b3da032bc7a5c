"""Quantities from logs and from the last estimate that terms of a model depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dynid.arrays import Array
from dynid.model.term import Term

_OF_ESTIMATE = ("bodies", "estimate")  # entries that each new estimate replaces


@dataclass(frozen=True, eq=False)
class DataContext:
    """Quantities from logs and from the last estimate that terms of a model depend on; None if unknown.

    Attributes:
        speeds: largest speed of each joint (dof,), rad/s or m/s.
        ranges: range of motion of each joint (dof,), rad or m.
        times: first and last time, s.
        temperatures: mean temperature of each joint (dof,), in the unit of the logs.
        bodies: ten inertial parameters of each body (bodies, 10), from the last estimate.
        estimate: parameters of the whole model (parameters,), from the last estimate.
    """

    speeds: Array | None = None
    ranges: Array | None = None
    times: tuple[float, float] | None = None
    temperatures: Array | None = None
    bodies: Array | None = None
    estimate: Array | None = None


def learned_fields(term: Term) -> Mapping[str, str]:
    """Return the fields of a term that are set from data, each with its entry of `DataContext`."""
    found: Mapping[str, str] = getattr(term, "learned", {})
    return found


def depends_on_estimate(term: Term) -> bool:
    """Return whether the columns of a term depend on the last estimate."""
    return any(entry in _OF_ESTIMATE for entry in learned_fields(term).values())


def bind(term: Any, context: DataContext) -> Any:
    """Return the term with the fields of `learned_fields` taken from a context.

    A field that is set keeps its value. A field that depends on an estimate is replaced by each new estimate.
    """
    values = {}
    for name, entry in learned_fields(term).items():
        value = getattr(context, entry)
        if value is not None and (entry in _OF_ESTIMATE or getattr(term, name) is None):
            values[name] = value
    return replace(term, **values) if values else term

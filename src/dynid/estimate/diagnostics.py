"""Diagnostics: the numbers of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.findings import Note
from dynid.regression import Regression


@dataclass(frozen=True, eq=False)
class Diagnostics(Mapping[str, Any]):
    """Numbers of a fit common to all methods, and `more` facts of one method; also readable as a mapping.

    Attributes:
        relative_error: 100 |tau - tau_hat| / |tau| over all joints, percent.
        relative_error_per_joint: (dof,), percent.
        residual_deviation_per_joint: (dof,), standard deviation of the residuals, N m or N.
        rank: number of excited parameters.
        rows_per_joint: (dof,), number of equations.
        joints: their names.
        condition: condition number of the weighted and scaled regressor.
        weights: (dof,), of the joints, or None.
        confounded: for each parameter that is not excited, those it cannot be distinguished from.
        notes: on the fit; those on standard errors are in `Uncertainty`.
    """

    relative_error: float
    relative_error_per_joint: list[float]
    residual_deviation_per_joint: list[float]
    rank: int
    rows_per_joint: list[int]
    joints: list[str]
    condition: float | None = None
    weights: list[float] | None = None
    confounded: dict[str, list[str]] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of_fit(regression: Regression, beta: Array, *, rank: int, **facts: Any) -> Diagnostics:
        """Return the diagnostics of base values beta (base,) on compressed data, with further facts by name."""
        rows = np.maximum(np.array(regression.rows, dtype=float), 1.0)
        return Diagnostics.of({
            "relative_error": regression.relative_error(beta),
            "relative_error_per_joint": regression.relative_errors(beta).tolist(),
            "residual_deviation_per_joint": np.sqrt(regression.misfits(beta) / rows).tolist(), "rank": rank,
            "rows_per_joint": list(regression.rows), "joints": list(regression.joints), **facts})

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Diagnostics:
        """Return diagnostics from a mapping, such as one that was read from a file."""
        core = {name: value for name, value in facts.items() if name in _CORE}
        core["notes"] = tuple(note if isinstance(note, Note) else Note.of(note) for note in facts.get("notes", ()))
        return Diagnostics(**core, more={name: value for name, value in facts.items() if name not in _CORE})

    def with_facts(self, facts: Mapping[str, Any]) -> Diagnostics:
        """Return the diagnostics with further or changed facts."""
        return Diagnostics.of({**self, **facts})

    # -- as a mapping: what is there, by name ------------------------------------------------------
    def __getitem__(self, name: str) -> Any:
        if name in self.more:
            return self.more[name]
        if name in _CORE and getattr(self, name) is not None:
            return getattr(self, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in _CORE if getattr(self, name) is not None and name not in self.more)
        yield from self.more

    def __len__(self) -> int:
        return sum(1 for _ in self)


_CORE = tuple(one.name for one in fields(Diagnostics) if one.name != "more")

"""Identifiability status of each parameter in an online estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.estimate.linear import solve
from dynid.estimate.recursive.result import DEPENDENT, IDENTIFIED
from dynid.estimate.recursive.stream import INSTRUMENTAL, Stream

Status = Literal["identified", "not-excited", "dependent"]


@dataclass(frozen=True)
class ParameterVerdict:
    """Statement on whether the motion so far identifies a base parameter.

    Attributes:
        name: name of the base parameter.
        status: "identified", "not-excited", or "dependent" on other parameters.
        added: share of the parameter's regressor column that is independent of the preceding columns, 0 to 1.
        others: names of the base parameters with which a dependent parameter is confounded.
    """

    name: str
    status: Status
    added: float
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.status == "dependent":
            return f"{self.name}: depends on {', '.join(self.others) or 'others'}"
        return f"{self.name}: {self.status.replace('-', ' ')}"


def verdicts(stream: Stream) -> tuple[ParameterVerdict, ...]:
    """Return one verdict for each base parameter, from the triangular factor of the current estimate."""
    recursion, names = stream.recursion, stream.base.names
    b = len(names)
    columns = recursion.r[:, b:2 * b] if stream.method in INSTRUMENTAL else recursion.r[:, :b]
    norms = np.linalg.norm(columns, axis=0)
    if not norms.any():
        return tuple(ParameterVerdict(name, "not-excited", 0.0) for name in names)
    if stream.method == "mrls":
        assessed = stream.assessment()
        share = np.sqrt(assessed.added / np.where(assessed.norms > 0.0, assessed.norms, 1.0))
        status: list[Status] = ["identified" if s == IDENTIFIED else "dependent" if s == DEPENDENT else "not-excited"
                                for s in assessed.status]
        return tuple(ParameterVerdict(name, s, x) for name, s, x in zip(names, status, share.tolist(), strict=True))
    solution = solve(recursion.regression(), recursion.live())
    diagonal = np.abs(np.diag(recursion.r)[:b]) / np.where(norms > 0.0, norms, 1.0)
    found = []
    for k, name in enumerate(names):
        if solution.identified[k]:
            found.append(ParameterVerdict(name, "identified", float(diagonal[k])))
        elif norms[k] <= 1e-12 * norms.max():
            found.append(ParameterVerdict(name, "not-excited", 0.0))
        else:
            found.append(ParameterVerdict(name, "dependent", float(diagonal[k]), solution.confounded.get(name, ())))
    return tuple(found)

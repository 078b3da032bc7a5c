"""Explanation of a change: the parameters, or a contact, that explain the data after a restart best.

A change is a load on the last body, friction of one joint or of all (temperature), the gain of one joint's drive, or a
contact. For each joint j, the residuals of the n_j rows since the change with the estimate before the change, in units
of the earlier noise, have a mean square rho_j of one if nothing changed. A change of parameters fits these residuals by
a few columns; its evidence is half the explained sum of squares. A contact on a body adds torques to the joints that
carry it; its evidence is n_j (rho_j - 1 - log rho_j) / 2 for each of these joints. The evidence of both kinds of change
is in units of the low-frequency noise, minus half the logarithm of the number of independent rows for each unknown
(Schwarz).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.estimate.recursive.recursion import Recursion, RestartSegment
from dynid.estimate.recursive.watchers import InnovationTest, low_power
from dynid.regression import BaseParameters, Factor

# shares of the new error that parameters must explain: after a transient change, and after a lasting one
_NEARLY_ALL_OF_MISFIT, _MOST_OF_MISFIT = 0.98, 0.7
_RANK_TOLERANCE = 1e-8  # singular values of a candidate below this share of the largest are zero


@dataclass(frozen=True)
class Explanation:
    """One candidate explanation of a change of the robot in a stream.

    Attributes:
        kind: "load", "friction", "drive-gain" or "contact".
        of: what changed: "all", "all joints", the name of a joint, or the outermost joint that a contact loads.
        evidence: log evidence of the explanation, relative to no change.
        explained: share of the new error that the explanation accounts for.
    """

    kind: str
    of: str
    evidence: float
    explained: float

    def __str__(self) -> str:
        names = {"load": "the load", "friction": "friction of", "drive-gain": "the drive gain of",
                 "contact": "a contact, or torques that no parameters explain, up to"}
        return names[self.kind] if self.kind == "load" else f"{names[self.kind]} {self.of}"


@dataclass(frozen=True)
class Change:
    """A change of the robot in a stream, at which earlier data were discarded.

    Attributes:
        sample, samples: number of samples before the change, and from the change to the next one.
        explanations: candidate explanations of the change, the best first.
        ended: whether another change followed.
    """

    sample: int
    samples: int
    explanations: tuple[Explanation, ...]
    ended: bool

    @property
    def cause(self) -> str:
        """The best explanation as text. The explanation is a contact if parameters do not explain enough: nearly all of
        a transient change, or most of a lasting one.
        """
        contact = [one for one in self.explanations if one.kind == "contact"]
        enough = _NEARLY_ALL_OF_MISFIT if self.ended else _MOST_OF_MISFIT
        if not self.explanations or self.explanations[0].explained < enough:
            return str(contact[0]) if contact else "something else"
        return str(self.explanations[0])


def changes(recursion: Recursion) -> tuple[Change, ...]:
    """Return the changes of a stream in temporal order."""
    stretches = recursion.since_restarts()
    return tuple(_change(stretch, recursion, stretch is not stretches[-1]) for stretch in stretches)


def _change(stretch: RestartSegment, recursion: Recursion, ended: bool) -> Change:
    """Return the change at the start of an interval of data, explained; ended: whether another change followed."""
    usual = recursion.watcher.usual if isinstance(recursion.watcher, InnovationTest) else np.ones(len(recursion.scale))
    weights = recursion.scale / np.sqrt(np.where(usual > 0.0, usual, 1.0))
    parts = [weight * factor.r for weight, factor in zip(weights, stretch.regression.factors, strict=True)]
    own = [part[:, -1] - part[:, :-1] @ stretch.before[factor.columns]
           for part, factor in zip(parts, stretch.regression.factors, strict=True)]
    residual, rows = np.concatenate(own), np.array(stretch.regression.rows, dtype=float)
    slow = _slowness(recursion.innovations())
    unknown = 0.5 * float(np.log(max(rows.sum() / slow, 2.0)))
    # The part of the squared residuals that the earlier noise does not explain.
    excess = max(float(residual @ residual) - rows.sum(), 1e-300)
    explanations = []
    for kind, of, design in _candidates(recursion.layout.base, recursion.joints, parts, stretch):
        fitted, unknowns = _explained(design, residual)
        explanations.append(Explanation(kind, of, 0.5 * fitted / slow - unknown * unknowns, min(fitted / excess, 1.0)))
    explanations += _contact(own, rows, slow, unknown, recursion.joints)
    explanations.sort(key=lambda one: -one.evidence)
    return Change(stretch.start, stretch.stop - stretch.start, tuple(explanations), ended)


def _contact(own: Sequence[Array], rows: Array, slow: float, unknown: float, joints: Sequence[str]
             ) -> list[Explanation]:
    """Return a list with the explanation by a contact at the most probable link; empty if no joint has larger residuals
    than before.

    The contact torques on the joints that carry the link are assumed as large as the residuals of these joints. own:
    residuals of each joint, in units of its earlier noise. rows: number of equation rows of each joint (dof,). slow:
    low-frequency power of the noise over its variance. unknown: log evidence that each unknown costs.
    """
    rho = np.array([max(float(x @ x) / max(n, 1.0), 1e-12) for x, n in zip(own, rows, strict=True)])
    gains = np.where(rho > 1.0, 0.5 * rows * (rho - 1.0 - np.log(rho)) / slow, 0.0) - unknown
    total = np.cumsum(gains)
    last, more = int(np.argmax(total)), np.maximum(rows * (rho - 1.0), 0.0)
    if not more.any():
        return []
    return [Explanation("contact", joints[last], float(total[last]), float(more[:last + 1].sum() / more.sum()))]


def _slowness(innovations: Array) -> float:
    """Return the low-frequency power of innovations (samples, dof) over their variance, at least one."""
    used = innovations[innovations != 0.0]
    return max(low_power(innovations) / float(np.mean(used ** 2)), 1.0) if len(used) else 1.0


def _candidates(base: BaseParameters, joints: Sequence[str], parts: Sequence[Array], stretch: RestartSegment
                ) -> Iterator[tuple[str, str, Array]]:
    """Yield kind, changed part, and design matrix (rows, unknowns) of every candidate change of parameters."""
    parameters, factors = base.parameters, stretch.regression.factors
    bodies = list(parameters.bodies.values())
    if bodies:
        last = base.matrix[:, bodies[-1]]
        yield "load", "all", np.vstack(_spread(last, parts, factors))
    owner = np.array([parameters.items[c].owner for c in base.independent])
    friction = np.array([parameters.items[c].kind.group == "friction" for c in base.independent])
    if friction.any():
        yield "friction", "all joints", np.vstack(_spread(np.eye(len(base))[:, friction], parts, factors))
    for j, name in enumerate(joints):
        own = friction & (owner == j)
        if own.any():
            yield "friction", name, np.vstack(_spread(np.eye(len(base))[:, own], parts, factors))
        column = [np.zeros((len(part), 1)) for part in parts]
        column[j] = (parts[j][:, :-1] @ stretch.before[factors[j].columns])[:, None]
        yield "drive-gain", name, np.vstack(column)


def _spread(matrix: Array, parts: Sequence[Array], factors: Sequence[Factor]) -> list[Array]:
    """Return the design matrix (rows, unknowns) of each joint for a change of base parameters by matrix @ unknowns."""
    return [part[:, :-1] @ matrix[factor.columns] for part, factor in zip(parts, factors, strict=True)]


def _explained(design: Array, residual: Array) -> tuple[float, int]:
    """Return the sum of squares of the residual that a design explains, and the number of its independent columns."""
    size = np.linalg.norm(design, axis=0)
    used = design[:, size > 0.0]
    if not used.shape[1]:
        return 0.0, 0
    left, singular, _ = np.linalg.svd(used / size[size > 0.0], full_matrices=False)
    kept = singular > _RANK_TOLERANCE * singular[0]
    projected = left[:, kept].T @ residual
    return float(projected @ projected), int(kept.sum())

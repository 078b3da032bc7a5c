"""Two estimates side by side: how far apart they are in units of their deviations, and how each predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.recording import Samples
from dynid.validate.reconstruct import Reconstruction, reconstruct
from dynid.validate.words import finite, plain

_APART = 3.0  # combined deviations beyond which two values differ


@dataclass(frozen=True, eq=False)
class EstimateComparison:
    """Estimate a beside estimate b, on the base parameters both know (k of them).

    values_a, values_b, std_a, std_b (k,); difference (k,): b - a; apart (k,): difference over the combined deviation,
    nan where that is zero. Estimates from the same data share their noise, so their combined deviation is an upper
    bound. only_a, only_b: base parameters the other one does not know. predictions: both on each log given.
    agreement: for each log 100 |tau_b - tau_a| / |tau|, percent.
    """

    method_a: str
    method_b: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    values_a: Array
    values_b: Array
    std_a: Array
    std_b: Array
    difference: Array
    apart: Array
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    predictions: tuple[tuple[Reconstruction, Reconstruction], ...]
    agreement: tuple[float | None, ...]

    @property
    def different(self) -> tuple[str, ...]:
        """Parameters more than three combined deviations apart, the furthest first."""
        order = np.argsort(-np.abs(np.nan_to_num(self.apart)))
        return tuple(self.names[i] for i in order if abs(np.nan_to_num(self.apart[i])) > _APART)

    @property
    def rms_apart(self) -> float | None:
        """Root mean square of `apart`: about 1 where two independent estimates differ by noise alone."""
        known = self.apart[np.isfinite(self.apart)]
        return float(np.sqrt(np.mean(known ** 2))) if len(known) else None

    def table(self) -> str:
        """As plain text."""
        a, b = self.method_a, self.method_b
        b = b if a != b else f"{b} (b)"
        width = max([len(name) for name in self.names] + [9])
        lines = [f"{'':{width}}  {a:>12}  {'deviation':>10}  {b:>12}  {'deviation':>10}  {'difference':>11}  apart"]
        for i, name in enumerate(self.names):
            far = f"{self.apart[i]:+.1f}" if np.isfinite(self.apart[i]) else "-"
            mark = " *" if abs(np.nan_to_num(self.apart[i])) > _APART else ""
            lines.append(f"{name:{width}}  {self.values_a[i]:>12.5g}  {self.std_a[i]:>10.2g}  "
                         f"{self.values_b[i]:>12.5g}  {self.std_b[i]:>10.2g}  {self.difference[i]:>+11.3g}  "
                         f"{far:>5}{mark}")
        for who, names in ((a, self.only_a), (b, self.only_b)):
            if names:
                lines.append(f"only by {who}: {', '.join(names)}")
        for (first, second), agreement in zip(self.predictions, self.agreement, strict=True):
            lines.append(f"{first.source}: relative error {first.relative_error:.2f} % by {a}, "
                         f"{second.relative_error:.2f} % by {b}"
                         + ("" if agreement is None else f"; their torques differ by {agreement:.2g} %"))
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        kept = {key: value for key, value in vars(self).items() if key != "predictions"}
        return plain(kept | {"predictions": [{"a": a.to_dict(), "b": b.to_dict()} for a, b in self.predictions],
                             "different": self.different, "rms_apart": self.rms_apart})


def compare(estimate_a: Estimate, estimate_b: Estimate, samples: Samples | Sequence[Samples] = ()
            ) -> EstimateComparison:
    """Estimate a against estimate b, and both on some samples, each log by itself.

    Of the same parameters grouped otherwise, b's values are carried over to a's base parameters. Of different
    models, what both call by the same name and the same expression is compared.
    """
    parts = (samples,) if isinstance(samples, Samples) else tuple(samples)
    if estimate_a.model.dof != estimate_b.model.dof:
        raise ModelError(f"the estimates are of robots with {estimate_a.model.dof} and {estimate_b.model.dof} joints "
                         "and cannot be compared")
    common = _common(estimate_a, estimate_b)
    known = estimate_a.identified[common.place] & common.known
    i = common.place[known]
    values_b, std_b = common.values[known], np.sqrt(np.maximum(common.variance[known], 0.0))
    std_a, difference = estimate_a.std[i], values_b - estimate_a.values[i]
    combined = np.sqrt(std_a ** 2 + std_b ** 2)
    apart = np.where(combined > 0, difference / np.where(combined > 0, combined, 1.0), np.nan)
    names = tuple(estimate_a.names[k] for k in i)
    only_a = tuple(name for name, good in zip(estimate_a.names, estimate_a.identified, strict=True)
                   if good and name not in names)
    only_b = tuple(name for name, good in zip(estimate_b.names, estimate_b.identified, strict=True)
                   if good and name not in names and name not in common.carried)
    pairs = tuple((reconstruct(estimate_a, part), reconstruct(estimate_b, part)) for part in parts)
    return EstimateComparison(estimate_a.method, estimate_b.method, names, tuple(estimate_a.base.units[k] for k in i),
                      estimate_a.values[i], values_b, std_a, std_b, difference, apart, only_a, only_b, pairs,
                      tuple(_agreement(*pair) for pair in pairs))


@dataclass(frozen=True, eq=False)
class _Common:
    """b in a's base parameters: their places in a, b's values, variances and whether known; carried: base parameters
    of b whose values went into others of a."""

    place: Ints
    values: Array
    variance: Array
    known: Bools
    carried: tuple[str, ...] = ()


def _common(a: Estimate, b: Estimate) -> _Common:
    if a.base.expressions != b.base.expressions and a.base.parameters.names == b.base.parameters.names:
        # beta_a = K_a theta for every theta with b's torques, b's expanded base values among them.
        carry = a.base.matrix[:, b.base.independent]
        known = ~(carry[:, ~b.identified] != 0).any(axis=1)
        return _Common(np.arange(len(a.base)), a.base.matrix @ b.full, np.diag(carry @ b.covariance @ carry.T), known,
                       b.names)
    where = {key: k for k, key in enumerate(zip(b.names, b.base.expressions, strict=True))}
    pairs = [(k, where[key]) for k, key in enumerate(zip(a.names, a.base.expressions, strict=True)) if key in where]
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    return _Common(first, b.values[second], np.diag(b.covariance)[second], b.identified[second])


def _agreement(a: Reconstruction, b: Reconstruction) -> float | None:
    apart = sum(float(np.sum(np.where(x.keep, y.predicted - x.predicted, 0.0) ** 2))
                for x, y in zip(a.series, b.series, strict=True))
    power = sum(float(np.sum(np.where(x.keep, x.measured, 0.0) ** 2)) for x in a.series)
    return finite(100.0 * np.sqrt(apart / power)) if power > 0 else None

"""Comparison of two estimates, and of extracted sets: torques and internal forces (Simionato, fig. 5.4 to 5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, require_type
from dynid.estimate import Estimate
from dynid.model import required_robot_model, robot_model
from dynid.output_fields import map_of, output_fields, record
from dynid.plain import PlainFields, finite, plain
from dynid.quantities import percent_text
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression
from dynid.validate.physical import WrenchComparison, wrench_comparison
from dynid.validate.reconstruction import Reconstruction, reconstruct

if TYPE_CHECKING:
    from dynid.extraction import Extraction
    from dynid.extraction.extraction import Reason


_SAME_GEOMETRY = 1e-6  # m, and rotation matrix entries: largest difference between joint poses of the same robot
_SIGNIFICANT_STD = 3.0  # combined standard errors above which two values differ significantly
_COMPARED_SET = record("ComparedSet", reason=str, torque_error=float | None, force_differences=list[float])
_REASON = record("ComparedReason", sets=list[str], largest_force_difference=float)


@dataclass(frozen=True, eq=False)
class TorqueDifference(PlainFields):
    """Difference between the torques that two estimates predict along a motion.

    Attributes:
        source: name of the log, or text that describes the motion.
        joints: names of the joints.
        rms: (dof,), root mean square of the difference, N m or N.
        torque_rms: (dof,), root mean square of the measured torque, N m or N.
    """

    source: str
    joints: tuple[str, ...]
    rms: Array
    torque_rms: Array


@dataclass(frozen=True, eq=False)
class EstimateComparison:
    """Comparison of two estimates a and b in their k common base parameters.

    Attributes:
        values_a, values_b, std_a, std_b: (k,), values and standard errors in `units`.
        difference: (k,), b - a.
        z_scores: (k,), difference in combined standard errors, nan if these are zero. Estimates from the same data have
            common noise, so the combined standard error is an upper bound.
        only_a, only_b: base parameters that the other estimate does not have.
        predictions: torque predictions of both estimates on each given log.
        agreement: for each log 100 |tau_b - tau_a| / |tau|, percent.
        torques: the difference in torque, on the motion of the identification if it is available, and on each log.
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
    z_scores: Array
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    predictions: tuple[tuple[Reconstruction, Reconstruction], ...]
    agreement: tuple[float | None, ...]
    torques: tuple[TorqueDifference, ...] = ()

    @property
    def different(self) -> tuple[str, ...]:
        """Parameters that differ by more than three combined standard errors, the largest difference first."""
        order = np.argsort(-np.abs(np.nan_to_num(self.z_scores)))
        return tuple(self.names[i] for i in order if abs(np.nan_to_num(self.z_scores[i])) > _SIGNIFICANT_STD)

    @property
    def rms_z_score(self) -> float | None:
        """Root mean square of `z_scores`: about 1 for independent estimates that differ only by noise."""
        known = self.z_scores[np.isfinite(self.z_scores)]
        return float(np.sqrt(np.mean(known ** 2))) if len(known) else None

    def table(self) -> str:
        """Return the comparison of two estimates as a plain text table."""
        a, b = self.method_a, self.method_b
        b = b if a != b else f"{b} (b)"
        width = max([len(name) for name in self.names] + [9])
        lines = [f"{'':{width}}  {a:>12}  {'std error':>10}  {b:>12}  {'std error':>10}  {'difference':>11}  z score"]
        for i, name in enumerate(self.names):
            far = f"{self.z_scores[i]:+.1f}" if np.isfinite(self.z_scores[i]) else "-"
            mark = " *" if abs(np.nan_to_num(self.z_scores[i])) > _SIGNIFICANT_STD else ""
            lines.append(f"{name:{width}}  {self.values_a[i]:>12.5g}  {self.std_a[i]:>10.2g}  "
                         f"{self.values_b[i]:>12.5g}  {self.std_b[i]:>10.2g}  {self.difference[i]:>+11.3g}  "
                         f"{far:>5}{mark}")
        for who, names in ((a, self.only_a), (b, self.only_b)):
            if names:
                lines.append(f"only in {who}: {', '.join(names)}")
        for (first, second), agreement in zip(self.predictions, self.agreement, strict=True):
            lines.append(f"{first.source}: relative error {first.relative_error:.2f} % for {a}, "
                         f"{second.relative_error:.2f} % for {b}"
                         + ("" if agreement is None else f"; their torques differ by {percent_text(agreement)}"))
        lines += [f"torque on {one.source}, RMS of the difference:  " + ", ".join(
            f"{name} {rms:.3g}" for name, rms in zip(one.joints, one.rms, strict=True)) for one in self.torques]
        return "\n".join(lines)

    @output_fields(own_fields=True, torques=list[TorqueDifference], predictions=list[dict[str, Reconstruction]],
                   different=list[str], rms_z_score=float | None)
    def to_dict(self) -> dict[str, Any]:
        return plain(vars(self) | {"predictions": [{"a": a, "b": b} for a, b in self.predictions],
                                   "different": self.different, "rms_z_score": self.rms_z_score})


def compare(estimate_a: Estimate, estimate_b: Estimate, samples: Samples | Sequence[Samples] = (),
            training: tuple[Regression | None, Regression | None] = (None, None)) -> EstimateComparison:
    """Compare two estimates with each other, and both on samples, log by log.

    If the model of one estimate has all parameters of the other, both are expressed in the base parameters of the
    larger model, and parameters that the smaller model lacks are zero. Otherwise base parameters with the same name and
    expression are compared. `training` are the compressed regressions of the identifications, if available.
    """
    require_type((estimate_a, estimate_b), Estimate, "compare", "compare(dynid.load('a'), dynid.load('b'))")
    parts = (samples,) if isinstance(samples, Samples) else tuple(samples)
    _check_robots(estimate_a, estimate_b)
    first, second = (set(one.base.parameters.names) for one in (estimate_a, estimate_b))
    ground = estimate_b.base if first < second else estimate_a.base
    a, b = _on(ground, estimate_a), _on(ground, estimate_b)
    both = a.known & b.known
    std_a, std_b = (np.sqrt(np.maximum(one.variance[both], 0.0)) for one in (a, b))
    difference, combined = b.values[both] - a.values[both], np.sqrt(std_a ** 2 + std_b ** 2)
    z_scores = np.where(combined > 0, difference / np.where(combined > 0, combined, 1.0), np.nan)
    names, units = (tuple(np.array(texts)[both].tolist()) for texts in (ground.names, ground.units))
    pairs = tuple((reconstruct(estimate_a, part), reconstruct(estimate_b, part)) for part in parts)
    differences = [_on_log(*pair) for pair in pairs]
    return EstimateComparison(
        estimate_a.method, estimate_b.method, names, units, a.values[both], b.values[both], std_a, std_b, difference,
        z_scores, a.only(b, names), b.only(a, names), pairs, tuple(share for _, share in differences),
        (*_in_training(ground, a, b, training), *(one for one, _ in differences)))


@dataclass(frozen=True, eq=False)
class _Values:
    """An estimate expressed in base parameters `names`: values, variances, and a mask of the determined ones.

    own: names of determined base parameters of the estimate's own model, if that cannot be expressed in `names`.
    """

    names: tuple[str, ...]
    values: Array
    variance: Array
    known: Bools
    own: tuple[str, ...] = ()

    def only(self, other: _Values, shared: tuple[str, ...]) -> tuple[str, ...]:
        """Return the base parameters that this estimate determines and `other` does not, or that are not `shared`."""
        mine = [name for name, good in zip(self.names, self.known & ~other.known, strict=True) if good]
        return (*mine, *(name for name in self.own if name not in shared))


def _check_robots(a: Estimate, b: Estimate) -> None:
    """Raise an error if two estimates belong to robots with different joints."""
    if a.model.dof != b.model.dof:
        raise ModelError(f"the estimates belong to robots with {a.model.dof} and {b.model.dof} joints and cannot be "
                         "compared")
    one, other = robot_model(a.model), robot_model(b.model)
    if one is None or other is None:
        return
    for mine, theirs in zip(one.robot.joints, other.robot.joints, strict=True):
        if (mine.kind, mine.parent) != (theirs.kind, theirs.parent) or not all(
                np.allclose(x, y, atol=_SAME_GEOMETRY)
                for x, y in ((mine.before, theirs.before), (mine.after, theirs.after))):
            raise ModelError(f"the estimates belong to different robots, '{one.robot.name}' and '{other.robot.name}', "
                             f"which differ in the pose of joint '{mine.name}', and cannot be compared")


def _on(ground: BaseParameters, estimate: Estimate) -> _Values:
    """Return an estimate expressed in the base parameters `ground`."""
    base, names = estimate.base, ground.names
    if base.names == names and base.expressions == ground.expressions:
        return _Values(names, estimate.values, np.diag(estimate.covariance), estimate.identified)
    if set(base.parameters.names) <= set(ground.parameters.names):
        # beta = K theta holds for every theta with the same torques, so also for the expanded base values.
        place = np.array([ground.parameters.index(name) for name in base.parameters.names])
        matrix = ground.matrix[:, place]
        carry = matrix[:, base.independent]
        known = (matrix != 0).any(axis=1) & ~(carry[:, ~estimate.identified] != 0).any(axis=1)
        return _Values(names, matrix @ estimate.full, np.diag(carry @ estimate.covariance @ carry.T), known)
    where = {key: k for k, key in enumerate(zip(base.names, base.expressions, strict=True))}
    found = [where.get(key, -1) for key in zip(names, ground.expressions, strict=True)]
    common = np.array(found) >= 0
    own = tuple(name for name, good in zip(base.names, estimate.identified, strict=True) if good)
    return _Values(names, np.where(common, estimate.values[found], 0.0),
                   np.where(common, np.diag(estimate.covariance)[found], 0.0), common & estimate.identified[found], own)


def _in_training(ground: BaseParameters, a: _Values, b: _Values, training: Sequence[Regression | None]
                 ) -> list[TorqueDifference]:
    """Return the difference in torque along the motion of a compressed regression, R_j (beta_b - beta_a) with its
    factors R_j; empty if an estimate has other base parameters."""
    fold = next((one for one in training if one is not None and np.array_equal(
        one.base.independent, ground.independent) and one.base.parameters.names == ground.parameters.names), None)
    if fold is None or a.own or b.own:
        return []
    change = b.values - a.values
    rows = np.maximum(np.array(fold.rows, dtype=float), 1.0)
    squares = np.array([float(np.sum((one.r[:, :-1] @ change[one.columns]) ** 2)) for one in fold.factors])
    power = np.array([one.power for one in fold.factors])
    return [TorqueDifference("the motion of the identification", fold.joints, np.sqrt(squares / rows),
                             np.sqrt(power / rows))]


def _on_log(a: Reconstruction, b: Reconstruction) -> tuple[TorqueDifference, float | None]:
    """Return the difference in torque of two predictions of a log, of each joint and over all joints in percent."""
    pairs = list(zip(a.series, b.series, strict=True))
    rows = np.maximum(sum(x.keep.sum(axis=0) for x, _ in pairs), 1.0)
    squares = np.sum([np.sum(np.where(x.keep, y.predicted - x.predicted, 0.0) ** 2, axis=0) for x, y in pairs], axis=0)
    power = np.sum([np.sum(np.where(x.keep, x.measured, 0.0) ** 2, axis=0) for x, _ in pairs], axis=0)
    share = finite(100.0 * np.sqrt(squares.sum() / power.sum())) if power.any() else None
    return TorqueDifference(a.source, a.names, np.sqrt(squares / rows), np.sqrt(power / rows)), share


@dataclass(frozen=True, eq=False)
class SetComparison:
    """Comparison of extracted full parameter sets along a motion.

    Attributes:
        sets: the extracted sets by name.
        reference: name of the reference set.
        motion: samples of the motion.
        torques: (rows, dof) of every set by name, N m or N.
        wrenches: internal forces and moments of every set.
    """

    sets: tuple[Extraction, ...]
    reference: str
    motion: Samples
    torques: Mapping[str, Array]
    wrenches: WrenchComparison

    def torque_error(self, name: str) -> float:
        """Return the relative error of a set's torques against the reference, percent."""
        true = self.torques[self.reference]
        return float(100.0 * np.linalg.norm(self.torques[name] - true) / max(float(np.linalg.norm(true)), 1e-300))

    def force_differences(self, name: str) -> Array:
        """Return the largest difference of the force at each joint from that of the reference (joints,), N."""
        return self.wrenches.difference(name, self.reference)

    @property
    def by_reason(self) -> dict[Reason, list[str]]:
        """Names of the parameter sets by inconsistency: inertia, centres, both, or "feasible" for none."""
        found: dict[Reason, list[str]] = {}
        for one in self.sets:
            found.setdefault(one.reason, []).append(one.name)
        return found

    @output_fields(reference=str, sets=map_of(_COMPARED_SET), by_reason=map_of(_REASON))
    def to_dict(self) -> dict[str, Any]:
        """Return the comparison of parameter sets as plain data for JSON."""
        return {"reference": self.reference,
                "sets": {one.name: {"reason": one.reason, "torque_error": self.torque_error(one.name),
                                    "force_differences": self.force_differences(one.name).tolist()}
                         for one in self.sets},
                "by_reason": {reason: {"sets": names, "largest_force_difference": max(
                    float(self.force_differences(name).max()) for name in names)} for reason, names in
                    self.by_reason.items()}}


def compare_sets(sets: Sequence[Extraction], motion: Samples, references: Mapping[str, Array]) -> SetComparison:
    """Compare extracted sets of parameters along a motion.

    references: further full vectors by name. The first of them, by default the first set, is the reference.
    """
    if not sets:
        raise ModelError("there are no extracted sets to compare")
    model = required_robot_model(sets[0].given.model, "a comparison of extracted sets")
    every = {**references, **{one.name: one.theta for one in sets}}
    if len(every) < len(references) + len(sets):
        raise ModelError("two extracted sets have the same name; give each set its own name")
    torques = {name: model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq) for name, theta in every.items()}
    return SetComparison(tuple(sets), next(iter(every)), motion, torques, wrench_comparison(model, every, motion))

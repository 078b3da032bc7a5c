"""PayloadEstimate: what hangs on a robot, with its uncertainty and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError
from dynid.findings import Finding
from dynid.plain import finite
from dynid.robot import inertia as ten

Source = Literal["noise", "robot", "gains", "friction", "scale", "mounting"]
_KNOWN = 3.0  # deviations of the mass from zero, below which a centre of mass means nothing


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """A body on a frame: ten numbers (10,) in that frame, XX XY XZ YY YZ ZZ MX MY MZ M, about its origin.

    free (10,): the same without asking whether such a body can exist. covariance (10, 10): of free, all that is known
    to be uncertain counted; parts: by where it comes from: "noise" of the loaded logs, the "robot" without load, drive
    "gains", "friction" that changes with the load, the "scale" a mass was weighed with. identified (10,): which of the
    ten the data determine. consistent: whether the numbers were asked to be those of a body that can exist.
    relative_error: of the loaded torques with the load, and unloaded_error without it, percent. gain_deviation (dof,):
    relative, one sigma, as it was counted. freedom: degrees of Student's t that intervals use, infinite for a normal.
    """

    frame: str
    way: str
    numbers: Array
    free: Array
    covariance: Array
    parts: Mapping[Source, Array]
    identified: Bools
    consistent: bool
    relative_error: float
    unloaded_error: float
    gain_deviation: Array
    logs: tuple[str, ...] = ()
    label: str = "payload"
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    freedom: float = np.inf

    @property
    def mass(self) -> float:
        """kg."""
        return float(self.numbers[9])

    @property
    def mass_std(self) -> float:
        """One-sigma deviation of the mass, kg."""
        return float(self.std[9])

    @property
    def std(self) -> Array:
        """One-sigma deviations of the ten numbers (10,); infinite where not identified."""
        return np.where(self.identified, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    def mass_std_from(self, source: Source) -> float:
        """The part of the mass's deviation that comes from one source, kg."""
        return float(np.sqrt(max(self.parts[source][9, 9], 0.0)))

    @property
    def seen(self) -> bool:
        """Whether the mass differs from zero by more than its uncertainty allows."""
        return self.mass > _KNOWN * self.mass_std

    @property
    def centre(self) -> Array:
        """Centre of mass in the frame (3,), m; nan without mass."""
        return self.numbers[6:9] / self.mass if self.mass > 0 else np.full(3, np.nan)

    @property
    def centre_covariance(self) -> Array:
        """Covariance of the centre of mass (3, 3), m^2: dc = (dh - c dm) / m; infinite where no mass is seen."""
        if not self.seen or not self.identified[6:].all():
            return np.full((3, 3), np.inf)
        slope = np.hstack([np.eye(3), -self.centre[:, None]]) / self.mass
        return np.asarray(slope @ self.covariance[6:, 6:] @ slope.T)

    @property
    def centre_std(self) -> Array:
        """One-sigma deviations of the centre of mass (3,), m."""
        return np.sqrt(np.maximum(np.diag(self.centre_covariance), 0.0))

    @property
    def central_inertia(self) -> Array:
        """Inertia about the centre of mass, axes of the frame (3, 3), kg m^2."""
        return ten.to_central(self.numbers)[2]

    def conf_int(self, level: float = 0.95) -> Array:
        """Intervals of mass and centre of mass (4, 2), kg and m, that hold the truth with this probability."""
        from scipy.special import ndtri, stdtrit
        if not 0.0 < level < 1.0:
            raise ModelError(f"the level of an interval is between 0 and 1, got {level}")
        values, std = np.append(self.mass, self.centre), np.append(self.mass_std, self.centre_std)
        share = 0.5 * (1.0 + level)
        reach = float(ndtri(share) if np.isinf(self.freedom) else stdtrit(self.freedom, share)) * std
        return np.column_stack([values - reach, values + reach])

    def __repr__(self) -> str:
        return (f"<PayloadEstimate on {self.frame} by {self.way}: {self.mass:.4g} +- {self.mass_std:.2g} kg, relative "
                f"error {self.unloaded_error:.3g} % without it, {self.relative_error:.3g} % with it>")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; None for a number that is not finite."""
        low, high = self.conf_int().T
        number = finite
        return {
            "frame": self.frame, "way": self.way, "label": self.label, "logs": list(self.logs),
            "mass": {"value": self.mass, "std": number(self.mass_std), "low": number(low[0]), "high": number(high[0]),
                     "std_from": {source: self.mass_std_from(source) for source in self.parts}},
            "centre": [{"value": number(c), "std": number(s), "low": number(a), "high": number(b)} for c, s, a, b in
                       zip(self.centre, self.centre_std, low[1:], high[1:], strict=True)],
            "inertia_about_centre": [[number(x) for x in row] for row in self.central_inertia]
            if self.mass > 0 else None,
            "numbers": {name: {"value": float(value), "std": number(std), "free": float(free), "unit": unit,
                               "identified": bool(known)}
                        for name, value, std, free, unit, known in zip(
                            ten.NAMES, self.numbers, self.std, self.free, ten.UNITS, self.identified, strict=True)},
            "consistent": self.consistent, "seen": self.seen, "relative_error": self.relative_error,
            "unloaded_relative_error": self.unloaded_error,
            "gain_deviation": [float(x) for x in self.gain_deviation],
            "findings": [finding.to_dict() for finding in self.findings], **self.facts}

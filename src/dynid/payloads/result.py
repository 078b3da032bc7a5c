"""Estimated payload with its uncertainty and the sources of the uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError
from dynid.estimate.covariance import correlated_noise_matrix
from dynid.findings import Finding
from dynid.output_fields import array_of, map_of, output_fields, record
from dynid.payloads.payload_methods import LinearPayloadFit, LoadedEquations, Nuisance, Unloaded
from dynid.plain import finite, plain
from dynid.regression.autocorrelation import correlation
from dynid.robot import inertia as ten

Source = Literal["noise", "robot", "gains", "friction", "scale", "mounting"]
MASS_STANDARD_ERRORS = 3.0  # standard errors of the mass from zero, below which no centre of mass is computed
# Significance level of the ten parameters. It is below the usual 0.3 % of three standard errors, since model errors
# that repeat in every log are in no covariance.
SEEN_PROBABILITY = 1e-4
DETERMINED_SHARE = 1e-10  # eigenvalues of the scaled covariance below this share of the largest are rounding errors
_INTERVAL = record("Interval", value=float | None, std=float | None, low=float | None, high=float | None)
_PAYLOAD_MASS = record("PayloadMass", _INTERVAL, determined=bool, at_least=float | None, at_most=float | None,
                       std_from=dict[str, float | None])
_PAYLOAD_NUMBER = record("PayloadNumber", value=float | None, std=float | None, free=float | None, unit=str,
                         identified=bool)
FRICTION_STD = 0.2  # relative standard deviation of changes of friction with temperature and load
LEAST_FRICTION = 0.02  # share of a joint's RMS torque: smallest standard deviation of changes of friction and offset
_UNLIKELY_STD = 3.0  # standard deviations of the drive gains, above which another cause is likely
MIN_DEGREES_OF_FREEDOM = 3.0  # degrees of freedom below which a standard deviation is not informative
LOAD_FRICTION_STD = 0.05  # prior standard deviation of load-dependent friction, as a share of the transmitted torque


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """Estimated payload: a body on a frame, with ten inertial parameters XX XY XZ YY YZ ZZ MX MY MZ M about its origin.

    Attributes:
        frame, method, logs, label: mounting frame, method, names of the logs, and name of the load.
        numbers: inertial parameters (10,) in that frame, SI units.
        free: inertial parameters (10,) without the constraint of physical consistency.
        covariance: covariance (10, 10) of `free`.
        parts: covariance by source: "noise" of the loaded logs, the "robot" without load, drive "gains", "friction"
            changes, the "scale" of a weighed mass.
        identified: mask (10,) of the parameters that the data determine.
        consistent: whether physical consistency was enforced.
        relative_error, unloaded_error: error of the loaded torques with and without the load, percent.
        gain_std: relative standard deviations (dof,) of the drive gains.
        findings, facts: problems and remarks, and further results as plain data for JSON.
        degrees_of_freedom: degrees of freedom of Student's t distribution, for confidence intervals.
        lever: assumed largest distance of the centre of mass from the frame, m, for a bound on the mass.
    """

    frame: str
    method: str
    numbers: Array
    free: Array
    covariance: Array
    parts: Mapping[Source, Array]
    identified: Bools
    consistent: bool
    relative_error: float
    unloaded_error: float
    gain_std: Array
    logs: tuple[str, ...] = ()
    label: str = "payload"
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    degrees_of_freedom: float = np.inf
    lever: float = np.inf

    @property
    def mass(self) -> float:
        """Mass of the payload, kg."""
        return float(self.numbers[9])

    @property
    def mass_std(self) -> float:
        """Standard error of the payload's mass, kg."""
        return float(self.std[9])

    @property
    def std(self) -> Array:
        """Standard deviations of the ten parameters (10,); infinite if not identified."""
        return np.where(self.identified, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    def mass_std_from(self, source: Source) -> float:
        """Return the part of the mass's standard deviation from one source, kg."""
        return float(np.sqrt(max(self.parts[source][9, 9], 0.0)))

    @property
    def chance(self) -> float:
        """P-value of the hypothesis that there is no payload, from all ten parameters together.

        The squared distance from zero, in units of the covariance and per determined direction, follows Fisher's F.
        """
        from scipy.special import fdtrc
        size = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        values, vectors = np.linalg.eigh(self.covariance / np.outer(size, size))
        kept = values > DETERMINED_SHARE * max(float(values[-1]), 1e-300)
        if not kept.any():
            return float(not np.any(self.free))
        along = (vectors.T @ (self.free / size))[kept] / np.sqrt(values[kept])
        # Above 1e6 degrees of freedom, F equals the chi-square distribution to six digits.
        return float(fdtrc(kept.sum(), min(self.degrees_of_freedom, 1e6), float(along @ along) / kept.sum()))

    @property
    def seen(self) -> bool:
        """Whether a payload is detected: the ten parameters together differ significantly from zero."""
        return self.chance < SEEN_PROBABILITY

    @property
    def has_mass(self) -> bool:
        """Whether the mass is determined: it differs significantly from zero."""
        return self.mass > MASS_STANDARD_ERRORS * self.mass_std

    @property
    def moment(self) -> Array:
        """First moment, mass times centre of mass, in the frame (3,), kg m."""
        return self.free[6:9] if not self.has_mass else self.numbers[6:9]

    def moment_int(self, level: float = 0.95) -> Array:
        """Confidence intervals of the first moment (3, 2), kg m; infinite for an unidentified component."""
        reach = self._quantile(level) * self.std[6:9]
        return np.column_stack([self.moment - reach, self.moment + reach])

    def mass_bounds(self, level: float = 0.95) -> tuple[float, float]:
        """Return the smallest and largest mass, kg, that agree with the data. If the data do not determine the mass,
        the centre of mass is assumed within `lever` of the frame."""
        low, high = np.array([-1.0, 1.0]) * self._quantile(level) * self.mass_std + self.free[9]
        if self.has_mass:
            return max(float(low), 0.0), float(high)
        moment = self.moment_int(level)
        apart = np.where(np.prod(moment, axis=1) > 0.0, np.abs(moment).min(axis=1), 0.0)
        least = float(np.linalg.norm(apart)) / self.lever if np.isfinite(self.lever) else 0.0
        return max(float(low) if np.isfinite(low) else 0.0, least, 0.0), max(float(high), least, 0.0)

    @property
    def centre(self) -> Array:
        """Centre of mass in the frame (3,), m; nan if the mass is not positive."""
        return self.numbers[6:9] / self.mass if self.mass > 0 else np.full(3, np.nan)

    @property
    def centre_covariance(self) -> Array:
        """Covariance of the centre of mass (3, 3), m^2, from dc = (dh - c dm) / m; infinite if not determined."""
        if not self.has_mass or not self.identified[6:].all():
            return np.full((3, 3), np.inf)
        slope = np.hstack([np.eye(3), -self.centre[:, None]]) / self.mass
        return np.asarray(slope @ self.covariance[6:, 6:] @ slope.T)

    @property
    def centre_std(self) -> Array:
        """Standard errors of the centre of mass (3,), m."""
        return np.sqrt(np.maximum(np.diag(self.centre_covariance), 0.0))

    @property
    def central_inertia(self) -> Array:
        """Inertia about the centre of mass, axes of the frame (3, 3), kg m^2."""
        return ten.to_central(self.numbers)[2]

    def conf_int(self, level: float = 0.95) -> Array:
        """Return confidence intervals of mass and centre of mass (4, 2), kg and m."""
        values, std = np.append(self.mass, self.centre), np.append(self.mass_std, self.centre_std)
        reach = self._quantile(level) * std
        return np.column_stack([values - reach, values + reach])

    def _quantile(self, level: float) -> float:
        """Return the quantile of Student's t: half the width of a confidence interval in standard errors."""
        from scipy.special import ndtri, stdtrit
        if not 0.0 < level < 1.0:
            raise ModelError(f"the level of an interval must be between 0 and 1, got {level}")
        share = 0.5 * (1.0 + level)
        return float(ndtri(share) if np.isinf(self.degrees_of_freedom) else stdtrit(self.degrees_of_freedom, share))

    def rows(self) -> list[tuple[str, str, float, float, float, float]]:
        """Return the rows of a table: name, unit, value, standard error and 95 % interval.

        The rows are mass and centre of mass. If the mass is not determined, the rows are the bounds of the mass, with
        value and standard error nan, and the first moment.
        """
        intervals, nan = self.conf_int(), float("nan")
        if not self.seen or self.has_mass:
            mass = [("mass", "kg", self.mass, self.mass_std, *intervals[0])]
            return mass if not self.seen else mass + [
                (f"centre of mass {axis}", "m", float(self.centre[k]), float(self.centre_std[k]), *intervals[1 + k])
                for k, axis in enumerate("xyz")]
        return [("mass", "kg", nan, nan, *self.mass_bounds()), *(
            (f"first moment {axis}", "kg m", float(self.moment[k]), float(self.std[6 + k]), *self.moment_int()[k])
            for k, axis in enumerate("xyz") if self.identified[6 + k])]

    @property
    def mass_text(self) -> str:
        """The mass with its standard error as text, or its bounds if it is not determined."""
        if self.has_mass or (not self.seen and np.isfinite(self.mass_std)):
            return f"{self.mass:.4g} kg with a standard error of {self.mass_std:.2g} kg"
        low, high = self.mass_bounds()
        least = f"at least {low:.2g} kg" if low > 0.0 else ""
        most = f"at most {high:.2g} kg" if np.isfinite(high) else ""
        return " and ".join(part for part in (least, most) if part) or "not determined"

    def __repr__(self) -> str:
        return (f"<PayloadEstimate on {self.frame} by {self.method}: mass {self.mass_text}, relative error "
                f"{self.unloaded_error:.3g} % without it, {self.relative_error:.3g} % with it>")

    @output_fields(optional=("samples", "restarts"), frame=str, method=str, label=str, logs=list[str],
                   mass=_PAYLOAD_MASS, moment=array_of(_INTERVAL), centre=array_of(_INTERVAL),
                   inertia_about_centre=list[list[float | None]] | None, numbers=map_of(_PAYLOAD_NUMBER),
                   consistent=bool, seen=bool, chance=float, relative_error=float | None,
                   unloaded_relative_error=float | None, gain_std=list[float], findings=list[Finding], samples=int,
                   restarts=list[Any])
    def to_dict(self) -> dict[str, Any]:
        """Return the payload as plain data for JSON; None for a number that is not finite."""
        mass, *centre = self.conf_int()
        least, most = self.mass_bounds()
        return {
            "frame": self.frame, "method": self.method, "label": self.label, "logs": list(self.logs),
            "mass": {**_interval(self.mass, self.mass_std, mass), "determined": self.has_mass, "at_least": least,
                     "at_most": finite(most),
                     "std_from": {source: self.mass_std_from(source) for source in self.parts}},
            "moment": list(map(_interval, self.moment, self.std[6:9], self.moment_int())),
            "centre": list(map(_interval, self.centre, self.centre_std, centre)),
            "inertia_about_centre": plain(self.central_inertia) if self.has_mass else None,
            "numbers": {name: {"value": float(value) if known else None, "std": finite(std),
                               "free": float(free) if known else None, "unit": unit, "identified": bool(known)}
                        for name, value, std, free, unit, known in zip(
                            ten.NAMES, self.numbers, self.std, self.free, ten.UNITS, self.identified, strict=True)},
            "consistent": self.consistent, "seen": self.seen, "chance": self.chance,
            "relative_error": self.relative_error, "unloaded_relative_error": self.unloaded_error,
            "gain_std": self.gain_std.tolist(), "findings": [finding.to_dict() for finding in self.findings],
            **self.facts}


def _interval(value: float, std: float, limits: Array) -> dict[str, float | None]:
    """Return a value, its standard error and its confidence limits (2,) for JSON; no value without a standard error."""
    return {"value": finite(value) if np.isfinite(std) else None, "std": finite(std), "low": finite(limits[0]),
            "high": finite(limits[1])}


def changing_friction(loaded: LoadedEquations, unloaded: Unloaded) -> Nuisance:
    """Return the friction and the offsets that may differ under load, with their standard deviations."""
    base, regression = loaded.regression.base, loaded.regression
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    group = [base.parameters.items[c].kind.group for c in base.independent]
    # A curve of many small parts changes as a whole, because its ridge prior couples the parts.
    places = [int(k) for k in loaded.robot if alone[k] and group[k] in ("friction", "offset") and base.ridge[k] == 0]
    std: dict[int, float] = {}
    for k in places:
        size = max((math.sqrt(f.power) / max(float(np.linalg.norm(f.r[:, list(f.columns).index(k)])), 1e-300)
                    for f in regression.factors if k in f.columns and f.rows), default=0.0)
        change = max(FRICTION_STD * abs(float(unloaded.values[k])), LEAST_FRICTION * min(size, 1e6))
        if change > 0:
            std[k] = change
    return Nuisance(np.array([*std, *loaded.friction], dtype=np.int64),
                    np.array([*std.values(), *np.full(len(loaded.friction), LOAD_FRICTION_STD)]))


def likely_gain_errors(loaded: LoadedEquations, fit: LinearPayloadFit, gains: Array) -> Array:
    """Return the relative errors of the drive gains (dof,) that explain most of the residuals.

    The gain errors are limited by their covariance (dof, dof), and all other unknowns are adapted.
    """
    values, vectors = np.linalg.eigh(gains)
    half = vectors * np.sqrt(np.maximum(values, 0.0))  # errors = half @ z with standard normal z
    matrix, right, joint = loaded.rows
    torque = matrix @ (fit.columns @ fit.x)
    left = right - torque
    # y = (1 + error) W x + noise: gains scale the model and not the noise; otherwise zero gains would fit best.
    slope = -matrix @ (fit.columns @ fit.by_gain)
    slope[np.arange(len(joint)), joint] += torque
    rows = slope @ half
    z = np.linalg.solve(rows.T @ rows + np.eye(len(gains)), rows.T @ left)
    wrong = np.asarray(half @ z)
    # The unknowns of a physically consistent estimate do not change exactly in proportion to the gains, so a correction
    # of the gains is used only if it reduces the residual.
    after = right / (1.0 + wrong[joint]) - matrix @ (fit.columns @ (fit.x - fit.by_gain @ wrong))
    likely = np.abs(z).max(initial=0.0) < _UNLIKELY_STD and float(after @ after) < float(left @ left)
    return wrong if likely else np.zeros(len(gains))


def covariances(loaded: LoadedEquations, unloaded: Unloaded, fit: LinearPayloadFit, gains: Array,
                threads: int | None = None) -> tuple[dict[Source, Array], float]:
    """Return covariances (10, 10) of a load's parameters by source, and degrees of freedom of Student's t.

    The degrees of freedom are the number of independent rows of the joint that has the fewest. Autocorrelation of the
    noise is included: standard errors for independent rows would be ten times too small. Residuals due to contradictory
    gains are attributed to the gains, not to noise. gains: covariance (dof, dof) of relative drive gains.
    """
    wrong = likely_gain_errors(loaded, fit, gains)
    logs = tuple(replace(log, tau=log.tau / (1.0 + wrong)) for log in loaded.equations.logs)
    seen = correlation(replace(loaded.equations, logs=logs), fit.columns @ (fit.x - fit.by_gain @ wrong),
                       inverse=fit.columns @ fit.inverse @ fit.columns.T, weights=loaded.weights, threads=threads)
    middle = fit.columns.T @ correlated_noise_matrix(loaded.regression, seen, loaded.weights) @ fit.columns
    own = fit.inverse[fit.load]
    robot, by_gain = fit.by_robot[fit.load], fit.by_gain[fit.load]
    found: dict[Source, Array] = {
        "noise": own @ middle @ own.T, "robot": robot @ unloaded.covariance @ robot.T,
        "gains": by_gain @ gains @ by_gain.T, "friction": (own * fit.prior) @ own.T}
    independent = seen.effective[seen.rows > 0]
    is_mixed = any(log.mixing is not None for log in logs)  # rows are then not joints
    fewest = independent.max(initial=0.0) if is_mixed else independent.min(initial=np.inf)
    return found, max(float(fewest), MIN_DEGREES_OF_FREEDOM)

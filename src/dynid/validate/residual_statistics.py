"""Tests of the residuals: whiteness, normality, independence of the motion (Ardiani, s. 1.3.6).

Torques are filtered before the fit, so neighbouring rows have correlated noise, and no residual is white from row to
row. The filter is known: dependence beyond its memory is due to the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.fft import irfft, rfft

from dynid.arrays import Array
from dynid.estimate.motion_errors import noise_torques
from dynid.findings import Note
from dynid.model import complete
from dynid.order_statistics import distinct, median
from dynid.output_fields import output_fields
from dynid.plain import PlainFields, plain
from dynid.quantities import percent_text
from dynid.recording import Samples
from dynid.recording.preparation.selection import AT_REST
from dynid.regression.autocorrelation import autocovariance
from dynid.regression.residual_series import Residuals
from dynid.signals import fast_length
from dynid.threads import side_by_side
from dynid.validate import thresholds
from dynid.validate.candidates import REPORTED_CANDIDATES, CandidateFit, fit_candidates, refit_candidates
from dynid.validate.hypotheses.motions import held_for, worth_of_delay
from dynid.validate.joint_motion import in_motion
from dynid.validate.reconstruction import Reconstruction
from dynid.validate.sampled_rows import RowChoice, SampledRows, take_rows
from dynid.validate.words import joint_label, sentence

Shape = Literal["normal", "outliers", "two-humps"]

_PORTMANTEAU_LAGS = 20  # lags of the portmanteau statistic
_AUTOREGRESSION_ORDER = 10  # order of the autoregression that predicts a residual from its past
MAX_LAGS_KEPT = 200  # lags kept for plots


@dataclass(frozen=True, eq=False)
class Whiteness(PlainFields, without=("lags", "autocorrelation")):
    """Dependence of the residual on its past.

    Attributes:
        lags, autocorrelation: for plots; lags in s.
        bound: contains 95 % of the autocorrelations of filtered white noise.
        step: number of rows that the filter correlates.
        independent, effective: rows / step, and the effective number of independent rows.
        statistic: Ljung-Box statistic over `degrees` lags that are multiples of step.
        p_value: probability of a larger statistic for white noise.
        predictable: share of the residual that its own past predicts.
        autocorrelated: whether the residual is autocorrelated: the p-value is below `FALSE_ALARM`, and `predictable` is
            above `AUTOCORRELATED_SHARE`.
    """

    lags: Array
    autocorrelation: Array
    bound: float
    step: int
    independent: float
    effective: float
    statistic: float
    degrees: int
    p_value: float
    predictable: float
    autocorrelated: bool


@dataclass(frozen=True)
class Normality(PlainFields, also=("hint",)):
    """Distribution of the residual.

    Attributes:
        skewness, kurtosis: skewness, and excess kurtosis.
        beyond: share of rows beyond four robust standard deviations (0.006 % for a normal distribution).
        shape: kind of the distribution.
    """

    skewness: float
    kurtosis: float
    beyond: float
    shape: Shape

    @property
    def title(self) -> str:
        """Description of the distribution's problem in one or two words."""
        return {"normal": "normal", "outliers": "outliers", "two-humps": "two humps"}[self.shape]

    @property
    def hint(self) -> str:
        """Probable cause of the residual's distribution in words."""
        if self.shape == "outliers":
            return f"outliers ({percent_text(100 * self.beyond)} of the rows beyond four standard deviations)"
        return "two peaks, consistent with missing Coulomb friction" if self.shape == "two-humps" else "normal"


@dataclass(frozen=True, eq=False)
class JointTests:
    """Tests of the residual of one joint. Tests are None for too few rows or a residual of pure rounding errors.

    Attributes:
        joint: name of the joint.
        unit: unit of the torque, if known.
        whiteness, normality: dependence on the past, and distribution.
        follows: candidate causes of the residual's structure, the most probable first.
        explained_by: the first candidate if it is significant.
        noise: share of the residual's power due to position noise; None if it was not needed.
    """

    joint: str
    unit: str
    whiteness: Whiteness | None
    normality: Normality | None
    follows: tuple[CandidateFit, ...]
    explained_by: CandidateFit | None
    noise: float | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        """Sentences on the residual, starting with its probable cause."""
        who, remarks = joint_label(self.joint), []
        cause = self.explained_by
        if cause is not None:
            remarks.append(Note(f"residual-follows-{cause.candidate}", sentence(
                f"{who}'s residual {cause.seen}: {cause.hint} ({100 * cause.share:.0f} % of the residual, RMS "
                f"{cause.torque:.2g}{' ' * bool(self.unit)}{self.unit})")))
        if self.whiteness is not None and self.whiteness.autocorrelated:
            remarks.append(Note("residual-autocorrelated", sentence(
                f"{who}'s residual is autocorrelated: {100 * self.whiteness.predictable:.0f} % of it can be "
                "predicted from its past")))
        if self.normality is not None and self.normality.shape != "normal":
            remarks.append(Note(f"residual-{self.normality.shape}",
                             sentence(f"{who}'s residual has {self.normality.hint}")))
        return tuple(remarks)

    @output_fields(own_fields=True, follows=list[CandidateFit], notes=list[Note])
    def to_dict(self) -> dict[str, Any]:
        return plain({**vars(self), "follows": self.follows[:REPORTED_CANDIDATES], "notes": self.notes})


@dataclass(frozen=True, eq=False)
class ResidualTests(PlainFields, without=("rows",)):
    """Tests of the residuals of all joints. rows: the rows in which structure of the residuals was searched."""

    joints: tuple[JointTests, ...]
    rows: SampledRows = field(repr=False)

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(note for joint in self.joints for note in joint.notes)


def residual_tests(reconstruction: Reconstruction, *, only: Collection[str] | None = None,
                   earlier: tuple[Reconstruction, ResidualTests] | None = None) -> ResidualTests:
    """Test the residuals for whiteness, normality and known causes.

    Args:
        reconstruction: predictions with residuals.
        only: joints whose residuals are tested; default: all.
        earlier: tests of another estimate; if it has the same model and samples, results that do not depend on the
            estimate are reused.
    """
    estimate, names = reconstruction.estimate, reconstruction.names
    # Only rows in which the joint moves are tested.
    series = [replace(part, keep=part.keep & in_motion(log)[np.searchsorted(log.t, part.t)])
              for part, log in zip(reconstruction.series, reconstruction.samples, strict=True)]
    rows = take_rows(RowChoice.from_logs(estimate, reconstruction.samples), series, reconstruction.entries)
    before = {} if earlier is None or not _is_alike(earlier[0], reconstruction) else {
        one.joint: (earlier[1].rows, one.follows) for one in earlier[1].joints if one.follows}
    if earlier is not None and before:
        vars(rows)["spans"] = earlier[1].rows.spans
    robot = complete(estimate.model).robot
    step = max(filter_memory(part) for part in reconstruction.samples)
    held = max(held_for(part) for part in reconstruction.samples)
    ends = np.array([(part.q.min(axis=0), part.q.max(axis=0)) for part in reconstruction.samples])  # (logs, 2, dof)
    moves = np.ptp(ends, axis=(0, 1)) > AT_REST
    moves[:0 if robot is None else robot.free_coordinates] = True  # coordinates of a free base

    def test(j: int) -> JointTests:
        fit = reconstruction.joints[j]
        unit = "" if robot is None else "N" if robot.joints[j].prismatic else "N m"
        # Static friction of a joint that never moved takes up the torque that its neighbours cause.
        enough = moves[j] and fit.rows >= 30 and (fit.rms or 0.0) > 1e-9 * (fit.torque_rms or 0.0)
        if not enough or (only is not None and fit.name not in only):
            return JointTests(fit.name, unit, None, None, (), None)
        turning = robot is not None and not robot.joints[j].prismatic
        follows = (refit_candidates(rows, j, names, turning, *before[fit.name]) if fit.name in before
                   else fit_candidates(rows, j, names, turning))
        strong = bool(follows) and _strong(follows[0], fit.torque_rms or 0.0, held)
        return JointTests(fit.name, unit, whiteness(series, j, step), normality(series, j), follows,
                          follows[0] if strong else None)

    return ResidualTests(_less_noise(tuple(side_by_side(test, range(len(names)), threads=1)), reconstruction), rows)


def _is_alike(one: Reconstruction, other: Reconstruction) -> bool:
    """Whether two reconstructions have the same model, base parameters and samples."""
    a, b = one.estimate, other.estimate
    return (a.model is b.model and a.base is b.base and len(one.samples) == len(other.samples)
            and all(x is y for x, y in zip(one.samples, other.samples, strict=True)))


def _less_noise(joints: tuple[JointTests, ...], reconstruction: Reconstruction) -> tuple[JointTests, ...]:
    """Return the tests with the share of position noise in the residuals, if there is a significant candidate cause. A
    cause that explains less than this share is not named, because the motion contains the same noise."""
    if not any(one.explained_by is not None or (one.whiteness is not None and one.whiteness.autocorrelated)
               for one in joints):
        return joints
    found = []
    for one, fit, size in zip(joints, reconstruction.joints, noise_torques(reconstruction.estimate,
                                                                           reconstruction.samples), strict=True):
        cause = one.explained_by if one.explained_by is not None and one.explained_by.torque > size else None
        found.append(replace(one, explained_by=cause, noise=min(float(size / fit.rms) ** 2, 1.0) if fit.rms else None))
    return tuple(found)


def _strong(fit: CandidateFit, torque: float, held: float) -> bool:
    """Whether a candidate cause is strong enough to be named: it explains enough of a joint's torque (RMS), and enough
    of its residual or nearly all of that of its own equations. A delay up to `held` s has to explain more."""
    certain = fit.strength > thresholds.CERTAIN_STRENGTH
    relevant = thresholds.RELEVANT_TORQUE * (0.5 if certain else 1.0)
    if fit.candidate == "delay":
        relevant *= worth_of_delay(fit.coefficient or 0.0, held)
    followed = fit.left_out > thresholds.PATTERN_SHARE or (certain and fit.of_own > thresholds.PATTERN_OF_OWN)
    is_strong = fit.strength > thresholds.PATTERN_STRENGTH and fit.blocks >= thresholds.PATTERN_BLOCKS
    return followed and is_strong and fit.torque > relevant * torque


def filter_memory(samples: Samples) -> int:
    """Return the number of rows that the torque filter correlates: about the rate over twice the cut-off."""
    if samples.decimation is not None:
        return max(1, round(1.0 / samples.decimation.share))
    wanted = samples.settings.get("torque_cutoff", "none")
    cutoff = samples.settings.get("cutoff") if wanted == "same" else wanted
    if isinstance(cutoff, str) or cutoff is None or not cutoff > 0:
        return 1
    # A Butterworth filter applied forward and backward passes noise like an ideal filter with 0.8 of its cut-off.
    return max(1, int(np.ceil(samples.rate / (1.6 * float(cutoff)))))


def _chi_square_tail(degrees: int, statistic: float) -> float:
    """Return the upper tail of the chi-square distribution by recurrence, faster than importing scipy.special."""
    half = 0.5 * statistic
    if half <= 0.0:
        return 1.0
    chance = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    for less in range(2 - degrees % 2, degrees, 2):
        chance += math.exp(0.5 * less * math.log(half) - half - math.lgamma(0.5 * less + 1.0))
    return min(chance, 1.0)


def whiteness(series: Sequence[Residuals], j: int, step: int) -> Whiteness | None:
    """Return the whiteness of joint j's residuals; unused rows are gaps. step: see `filter_memory`."""
    longest = max(len(part.t) for part in series)
    rows = int(sum(part.keep[:, j].sum() for part in series))
    degrees = min(_PORTMANTEAU_LAGS, longest // step - 1, rows // (3 * step))
    if degrees < 2:
        return None
    reach = min(longest - 1, max(degrees, _AUTOREGRESSION_ORDER, _PORTMANTEAU_LAGS) * step)
    rho = autocorrelation(series, j, reach)
    if rho is None:
        return None
    independent = rows / step
    at = np.arange(1, degrees + 1)
    statistic = independent * (independent + 2.0) * float(np.sum(rho[at * step] ** 2 / (independent - at)))
    p_value = _chi_square_tail(degrees, statistic)
    order = min(_AUTOREGRESSION_ORDER, degrees)
    past = rho[np.arange(order + 1) * step]
    # Yule-Walker; a small addition at lag zero keeps the system solvable for a nearly constant residual.
    diagonal = past[:order].copy()
    diagonal[0] += 1e-6
    lag = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
    predictable = float(np.clip(np.linalg.solve(diagonal[lag], past[1:]) @ past[1:], 0.0, 1.0))
    part = max(series, key=lambda p: int(p.keep[:, j].sum()))
    own = _residual(part, j)
    c = autocovariance(own - own[part.keep[:, j]].mean(), part.keep[:, j])
    effective = rows * c[0] / (2.0 * c.sum() - c[0]) if c[0] > 0 else float(rows)
    shown = distinct(np.linspace(0, reach, min(reach + 1, MAX_LAGS_KEPT)).round().astype(int))
    return Whiteness(shown / part.rate, rho[shown], 1.96 / float(np.sqrt(independent)), step, independent,
                     float(min(effective, rows)), statistic, degrees, p_value, predictable,
                     p_value < thresholds.FALSE_ALARM and predictable > thresholds.AUTOCORRELATED_SHARE)


def autocorrelation(series: Sequence[Residuals], j: int, reach: int) -> Array | None:
    """Return autocorrelations rho(k) (reach + 1,) of joint j's residuals about their mean, over pairs of used rows."""
    product, pairs = np.zeros(reach + 1), np.zeros(reach + 1)
    rows = sum(part.keep[:, j].sum() for part in series)
    mean = sum(_residual(part, j)[part.keep[:, j]].sum() for part in series) / max(rows, 1)
    for part in series:
        keep = part.keep[:, j].astype(float)
        x = (_residual(part, j) - mean) * keep
        size = fast_length(len(x) + reach + 1)
        count = min(reach + 1, len(x))
        product[:count] += irfft(np.abs(rfft(x, size)) ** 2, size)[:count]
        pairs[:count] += irfft(np.abs(rfft(keep, size)) ** 2, size)[:count]
    if product[0] <= 0:
        return None
    rho = (product / np.maximum(pairs, 1.0)) / (product[0] / pairs[0])
    return np.where(pairs > 0.5, np.clip(rho, -1.0, 1.0), 0.0)


def normality(series: Sequence[Residuals], j: int) -> Normality | None:
    """Return skewness, kurtosis and outliers of joint j's residuals."""
    x = np.concatenate([_residual(part, j)[part.keep[:, j]] for part in series])
    x = x - x.mean()
    deviation = float(x.std())
    if len(x) < 30 or deviation <= 0:
        return None
    skewness, kurtosis = float(np.mean(x ** 3) / deviation ** 3), float(np.mean(x ** 4) / deviation ** 4 - 3.0)
    robust = float(median(np.abs(x - median(x)))) / 0.6745
    beyond = float(np.mean(np.abs(x - median(x)) > 4.0 * robust)) if robust > 0 else 0.0
    shape: Shape = ("outliers" if kurtosis > 6.0 and beyond > 1e-3 else "two-humps" if kurtosis < -1.2 else "normal")
    return Normality(skewness, kurtosis, beyond, shape)


def _residual(part: Residuals, j: int) -> Array:
    """Return the residual of one joint (m,), without computing those of all joints."""
    return part.measured[:, j] - part.predicted[:, j]

"""Candidate causes of structure in one joint's residual: a missing or too simple term, a delayed torque, drifting
friction or backlash. Each is assessed by cross-validation over blocks of time."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Ints
from dynid.order_statistics import quantile
from dynid.plain import PlainFields
from dynid.regression.autocorrelation import autocovariances, lag_products, noise_matrix
from dynid.validate.sampled_rows import SampledRows
from dynid.validate.thresholds import INDISTINGUISHABLE_RATIO, SAME_EXPLANATION
from dynid.validate.words import joint_label, listed

_IN_THE_MODEL = 1e-3  # a candidate belongs to the model if a smaller share of it is orthogonal to the joint's columns


@dataclass(frozen=True)
class Candidate:
    """Texts of a candidate cause.

    Attributes:
        one: structure of one joint's residual, such as "follows the velocity".
        hint: probable cause.
        name: the cause in two or three words.
    """

    one: str
    hint: str
    name: str

    @property
    def many(self) -> str:
        """Structure of the residuals of several joints: `one` with its verb and the word joint in the plural."""
        verb, rest = self.one.split(" ", 1)
        return f"{'are' if verb == 'is' else verb.removesuffix('s')} {rest.replace('of the joint', 'of the joints')}"


BACKLASH = "backlash"  # backlash of the joint itself or of another joint
NEIGHBOUR = "neighbour-motion"  # motion of another joint

# Ordered from simple to complex.
CANDIDATES = {
    "offset": Candidate("is shifted by a constant", "an offset is missing", "an offset"),
    "velocity-sign": Candidate("follows the sign of velocity",
                               "the friction model is too simple: Coulomb friction is missing", "Coulomb friction"),
    "velocity": Candidate("follows the velocity", "the friction model is too simple: viscous friction is missing",
                          "viscous friction"),
    "acceleration": Candidate("follows the acceleration", "inertia or rotor inertia is missing", "rotor inertia"),
    "position": Candidate("follows the position", "a cable, a spring or gravity is missing: "
                          "try --friction viscous,coulomb,offset,cable", "a spring or cable"),
    "asymmetry": Candidate("depends on the direction of motion", "friction differs between the two directions: "
                           "try --friction asymmetric-coulomb", "asymmetric friction"),
    "speed-squared": Candidate("depends nonlinearly on speed", "the friction model is too simple, friction is not "
                               "proportional to speed: try --friction stribeck", "friction that is nonlinear in speed"),
    "low-speed": Candidate("rises at low speed", "the friction model is too simple: try --friction stribeck",
                           "Stribeck friction"),
    "load": Candidate("follows the sign of velocity times the load", "friction increases with the load: "
                      "try --friction viscous,coulomb,load", "load-dependent friction"),
    "delay": Candidate("follows the rate of change of the torque", "torque and motion are not synchronised", "a delay"),
    "drift": Candidate("is consistent with friction that changes over time",
                       "friction drifts, as when the drive warms up, or the load changes: warm up the drive before "
                       "recording, or identify from shorter logs", "drifting friction"),
    "reversal": Candidate("peaks at reversals of the joint", "consistent with presliding, friction that changes "
                          "gradually at a reversal: drop slow rows, or add --friction dahl", "presliding friction"),
    BACKLASH: Candidate("jumps at reversals of the joint", "consistent with backlash: the encoder moves through a gap "
                        "before the link follows", "backlash"),
    NEIGHBOUR: Candidate("follows the motion of {}", "possible causes are coupled drives, exchanged columns, and a "
                         "geometry that differs from the robot file", "coupled drives"),
}
REPORTED_CANDIDATES = 3  # candidates of a joint whose strength and standard error, which take longest, are computed
_OF_PREDICTIONS = ("load", "delay")  # candidates whose columns are computed from predicted torques


@dataclass(frozen=True)
class CandidateFit(PlainFields, also=("seen", "hint")):
    """Fit of one candidate to the residual of a joint, after projecting out what the model can explain.

    Attributes:
        candidate: a key of CANDIDATES.
        share: explained share of the residual's power.
        torque: RMS of the explained part, N m or N.
        strength: F statistic with the effective number of rows, zero if `left_out` is not positive. The strength and
            `std` are computed for the first `REPORTED_CANDIDATES` and for a delay; otherwise the strength is NaN.
        left_out: explained share in cross-validation.
        blocks: share of the blocks of time that the candidate predicts better than a residual of zero.
        coefficient, std: residual per unit of a candidate with one column, and its standard error; else None.
        neighbour: name of the other joint, if the candidate is the motion or backlash of another joint.
        of_own: like `left_out`, for the residual of the joint's own equations, which is smaller if joints contradict
            each other.
        rivals: other candidates that explain about as much, so that the data do not distinguish them.
    """

    candidate: str
    share: float
    torque: float
    strength: float
    coefficient: float | None
    neighbour: str | None = None
    left_out: float = 0.0
    blocks: float = 0.0
    of_own: float = 0.0
    rivals: tuple[str, ...] = ()
    std: float | None = None

    @property
    def title(self) -> str:
        """Name of the candidate cause in two or three words, used in headlines."""
        if self.neighbour is not None and self.candidate == NEIGHBOUR:
            return f"motion of {joint_label(self.neighbour)}"
        return self.candidate.replace("-", " ")

    @property
    def seen(self) -> str:
        """Description of the residual's structure in words."""
        return CANDIDATES[self.candidate].one.format(joint_label(self.neighbour or ""))

    @property
    def seen_by_several(self) -> str:
        """Description of the same structure in several joints' residuals."""
        return CANDIDATES[self.candidate].many.format(joint_label(self.neighbour or ""))

    @property
    def hint(self) -> str:
        """Probable cause, and the other causes that the data do not distinguish from it."""
        words = CANDIDATES[self.candidate].hint
        if self.candidate == "delay" and self.coefficient is not None:
            # tau(t) = tau_hat(t - lag) is about tau_hat - lag times its rate of change.
            later = "later" if self.coefficient < 0 else "earlier"
            error = "" if self.std is None else f" +- {1.96e3 * self.std:.2g} ms (95 %)"
            words = f"the torque comes {1e3 * abs(self.coefficient):.3g} ms{error} {later} than the motion"
        return words + self.doubt

    @property
    def doubt(self) -> str:
        """Other causes that the data do not distinguish from this candidate, as text; empty if there are none."""
        others = [CANDIDATES[name].name for name in self.rivals]
        own = CANDIDATES[self.candidate].name
        return f" (the data do not distinguish {own} from {listed(others)})" if others else ""


def refit_candidates(rows: SampledRows, j: int, names: Sequence[str], turning: bool, before: SampledRows,
                     earlier: Sequence[CandidateFit]) -> tuple[CandidateFit, ...]:
    """Return `fit_candidates` for another estimate with the same columns, from the rows and fits of a first estimate.

    The projected residual does not depend on the estimate, so only candidates computed from predicted torques are
    fitted again. Explained shares are recomputed, because the total residual depends on the estimate.
    """
    use = np.flatnonzero(rows.keep[:, j])
    power, first = (float(np.sum(one.residual[use, j] ** 2)) for one in (rows, before))
    if power <= 0:
        return ()
    ratio = first / power

    def merged(again: Collection[str]) -> tuple[CandidateFit, ...]:
        return _ranked([*(replace(one, rivals=()) for one in fit_candidates(rows, j, names, turning, again)),
                        *(replace(one, share=ratio * one.share, left_out=ratio * one.left_out, rivals=())
                          for one in earlier if one.candidate not in again)])

    found = merged(_OF_PREDICTIONS)
    lacking = {one.candidate for one in found[:REPORTED_CANDIDATES] if math.isnan(one.strength)}
    return merged({*_OF_PREDICTIONS, *lacking}) if lacking else found


def fit_candidates(rows: SampledRows, j: int, names: Sequence[str], turning: bool,
                   among: Collection[str] | None = None) -> tuple[CandidateFit, ...]:
    """Return the fits of all candidate causes of joint j's residual, the most probable first. The first one is the
    simplest of those that explain as much as the best, and lists them as its rivals.

    Residual and candidate are projected on the complement of the joint's own columns, so that the fit shows the benefit
    of adding the candidate to the model (added-variable test). Candidates are ranked by their cross-validation error,
    so that many columns are no advantage. among: names of the candidates to fit, by default all; every candidate that
    is named here gets a strength and a standard error.
    """
    use = np.flatnonzero(rows.keep[:, j])
    residual = rows.residual[use, j]
    power, basis = float(residual @ residual), rows.spans[j]
    if basis is None or power <= 0:
        return ()
    rest = residual - basis @ (basis.T @ residual)
    own = max(float(rest @ rest), 1e-300)
    blocks, torque_size = rows.blocks()[use], float(np.std(rows.measured[use, j]))
    columns = _columns(rows, j, use, names, turning, among)
    every = np.concatenate([np.zeros((len(use), 0)), *columns.values()], axis=1)
    every /= np.maximum(np.linalg.norm(every, axis=0), 1e-300)
    rests = every - basis @ (basis.T @ every)
    new = np.linalg.norm(rests, axis=0) > _IN_THE_MODEL
    ends = np.cumsum([one.shape[1] for one in columns.values()])
    places = {key: end - one.shape[1] + np.flatnonzero(new[end - one.shape[1]:end])
              for (key, one), end in zip(columns.items(), ends, strict=True)}
    found, fits = dict[tuple[str, str | None], CandidateFit](), dict[tuple[str, str | None], _Projected]()
    for width in {len(own_places) for own_places in places.values()} - {0}:  # all candidates of a width at once
        keys = [key for key in columns if len(places[key]) == width]
        wide, left = (np.stack([x[:, places[key]] for key in keys]) for x in (every, rests))
        directions, upper = np.linalg.qr(left)
        alongs = rest @ directions
        values = np.linalg.pinv(upper, rcond=width * float(np.finfo(float).eps)) @ alongs[:, :, None]
        # A candidate that has more power than the torque is already contained in the model.
        fitting = np.flatnonzero(~(np.std(wide @ values, axis=1)[:, 0] > torque_size))
        results = zip(fitting, *_left_out(directions[fitting], rest, blocks), strict=True)
        for k, gained, better, spread in results:
            key, along, single, size = keys[k], alongs[k], None, None
            if columns[key].shape[1] == 1:
                length = float(np.linalg.norm(left[k, :, 0]))
                size = float(np.linalg.norm(columns[key][:, 0]) * length)
                single = float(left[k, :, 0] @ rest / length / size)
            share = float(along @ along) / power
            fits[key] = _Projected(directions[k], along, gained, size, spread)
            found[key] = CandidateFit(key[0], share, float(np.sqrt(share * power / len(use))), math.nan, single, key[1],
                                      gained / power, better, gained / own)
    ranked = _ranked([found[key] for key in columns if key in found])
    few = [k for k, one in enumerate(ranked) if among or k < REPORTED_CANDIDATES or one.candidate == "delay"]
    some = [fits[ranked[k].candidate, ranked[k].neighbour] for k in few]
    errors = dict(zip(few, _errors(some, rest, power, basis), strict=True))
    return tuple(replace(one, strength=errors[k][0], std=errors[k][1]) if k in errors else one
                 for k, one in enumerate(ranked))


@dataclass(frozen=True, eq=False)
class _Projected:
    """A candidate after projection on the complement of the joint's own columns.

    Attributes:
        direction: orthonormal columns (m, k).
        along: (k,), coefficients of the projected residual along `direction`.
        gained: sum of squares that the candidate explains in cross-validation.
        size: product of the norms of a single column before and after projection; None for several columns.
        spread: standard error of the coefficients over blocks of time.
    """

    direction: Array
    along: Array
    gained: float
    size: float | None
    spread: float


def _errors(some: Sequence[_Projected], rest: Array, power: float, basis: Array) -> list[tuple[float, float | None]]:
    """Return the strength (F statistic) of candidates, and the standard error of the coefficient of a single column.

    Args:
        some: the candidates.
        rest: projected residual (m,).
        power: sum of the squared residuals.
        basis: orthonormal columns (m, k) of the joint's equations.
    """
    every, remainders = np.ones(len(rest), dtype=bool), [rest - one.direction @ one.along for one in some]
    plain = autocovariances(remainders, [every] * len(some), [None] * len(some))
    single = [k for k, one in enumerate(some) if one.size is not None]
    noises = _coefficient_variances([some[k].direction[:, 0] for k in single], [remainders[k] for k in single],
                                    lag_products(basis.T) if single else np.zeros(0))
    std = {k: max(float(np.sqrt(noise)), some[k].spread) / (some[k].size or 1.0)
           for k, noise in zip(single, noises, strict=True)}
    return [(float(one.along @ one.along) / len(one.along) / max(_variance_of_mean(remainder, c), 1e-12 * power)
             if one.gained > 0 else 0.0, std.get(k))
            for k, (one, remainder, c) in enumerate(zip(some, remainders, plain, strict=True))]


def _coefficient_variances(directions: Sequence[Array], remainders: Sequence[Array], absorbed: Array) -> list[float]:
    """Return the variance of the coefficient of each unit column (m,) under noise with the autocorrelation of its
    remainder (m,), the residual without that candidate.

    absorbed (m,): `lag_products` of the model's columns, which remove a part of the noise from the remainders.
    """
    every = [np.ones(len(absorbed), dtype=bool)] * len(directions)
    shapes = autocovariances(remainders, every, [absorbed + lag_products(one[None]) for one in directions])
    return [max(float(noise_matrix(one[None], keep, shape)[0, 0]), 0.0)
            for one, keep, shape in zip(directions, every, shapes, strict=True)]


def _variance_of_mean(remainder: Array, c: Array) -> float:
    """Return the sum of squares of a residual (m,) over its effective number of rows; c: autocovariances."""
    rows = len(remainder)
    effective = rows * c[0] / (2.0 * c.sum() - c[0]) if c[0] > 0 and 2.0 * c.sum() > c[0] else float(rows)
    return float(remainder @ remainder) / float(min(effective, rows))


def _left_out(directions: Array, rest: Array, blocks: Ints) -> tuple[list[float], list[float], list[float]]:
    """Return the cross-validation results of candidates with orthonormal columns (candidates, m, k) for the residual
    `rest`: explained sum of squares, share of blocks in which it is positive, and jackknife standard errors of the
    coefficients over the blocks."""
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    gram = np.add.reduceat(directions[..., :, None] * directions[..., None, :], starts, axis=1)
    along = np.add.reduceat(directions * rest[:, None], starts, axis=1)
    ridge = (1.0 + 1e-6) * np.eye(directions.shape[2])
    coefficients = np.linalg.solve(ridge - gram, (along.sum(axis=1, keepdims=True) - along)[..., None])[..., 0]
    gains = np.sum(2.0 * coefficients * along, axis=2) - np.einsum("nbi,nbij,nbj->nb", coefficients, gram, coefficients)
    spread = np.sqrt((len(starts) - 1) * np.sum(np.var(coefficients, axis=1), axis=1))
    return gains.sum(axis=1).tolist(), np.mean(gains > 0.0, axis=1).tolist(), spread.tolist()


def _ranked(found: list[CandidateFit]) -> tuple[CandidateFit, ...]:
    """Return the candidates: first the most probable one, which lists its rivals, the others by explained share."""
    if not found:
        return ()
    found = sorted(found, key=lambda f: -f.of_own)
    order, least = [*CANDIDATES], 1.0 - found[0].of_own
    equivalent = [f for f in found
             if f.of_own > 0.5 * found[0].of_own and least >= INDISTINGUISHABLE_RATIO * (1.0 - f.of_own)]
    best = min((f for f in equivalent if least >= SAME_EXPLANATION * (1.0 - f.of_own)), default=found[0],
               key=lambda f: order.index(f.candidate))
    rivals = tuple(dict.fromkeys(f.candidate for f in equivalent if f.candidate != best.candidate))
    return (replace(best, rivals=rivals), *(f for f in found if f is not best))


def _load(predicted: Array, dq: Array, sign: Array) -> Array:
    """Return the magnitude of a joint's load times the sign of its velocity (m,).

    The load is the torque without friction, because the jump of friction at a reversal would sharpen the filtered sign.
    """
    own = np.column_stack([np.ones_like(dq), dq, sign])
    value = np.linalg.lstsq(own, predicted, rcond=1e-9)[0]
    return np.asarray(np.abs(predicted - own[:, 1:] @ value[1:]) * sign)


def _columns(rows: SampledRows, j: int, use: Ints, names: Sequence[str], turning: bool,
             among: Collection[str] | None = None) -> dict[tuple[str, str | None], Array]:
    """Return the candidate columns (m, columns) of joint j by name and neighbour; among: names, default all."""
    q, dq, ddq, sign = (x[use, j] for x in (rows.q, rows.dq, rows.ddq, rows.signs))
    top = quantile(np.abs(dq), 0.95) if len(dq) else 0.0
    course = rows.course[use]
    places = [q, np.sin(q), np.cos(q)] if turning else [q]
    own = {
        "offset": [np.ones(len(use))], "velocity-sign": [sign], "velocity": [dq], "acceleration": [ddq],
        "position": places, "speed-squared": [np.abs(dq) * dq], "asymmetry": [np.abs(dq)],
        "low-speed": [sign * np.exp(-np.abs(dq) / (0.1 * top))] if top > 0 else [],
        "load": [_load(rows.predicted[use, j], dq, sign)], "delay": [rows.rate[use, j]],
        "drift": [sign * course, dq * course], "reversal": [rows.turns[use, j]], BACKLASH: [rows.jerks[use, j]],
    }
    shapes: dict[tuple[str, str | None], list[Array]] = {(name, None): columns for name, columns in own.items()}
    for k in range(len(names)):
        if k != j:
            shapes[BACKLASH, names[k]] = [rows.jerks[use, k]]
            # Friction of a motor that is coupled to both joints has the sign of the sum or difference of their
            # velocities.
            both = [np.sign(dq + side * rows.dq[use, k]) for side in (1.0, -1.0)]
            shapes[NEIGHBOUR, names[k]] = [rows.dq[use, k], rows.ddq[use, k], rows.signs[use, k], *both]
    return {key: np.stack(columns, axis=1) for key, columns in shapes.items()
            if columns and (among is None or key[0] in among) and any(np.any(column) for column in columns)}

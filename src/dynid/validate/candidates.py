"""Candidates for structure in residuals: motions and torques that a missing or too simple term would leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate
from dynid.recording import Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.regression.correlation import autocovariance
from dynid.regression.equations import Piece, TorqueEquations
from dynid.regression.residuals import PIECE, Residuals
from dynid.validate.words import joint_label, plain

ROWS = 4096  # of one joint that are looked at; more would only cost time
_IN_THE_MODEL = 1e-3  # share of a candidate that the joint's own columns leave over, below which the model has it
_SIMPLER = 0.9  # a simpler candidate is preferred when it explains this much of what the best one does


@dataclass(frozen=True)
class Candidate:
    """A candidate in words: what one residual does, what several do, and the cause it hints at."""

    one: str
    many: str
    hint: str


NEIGHBOUR = "neighbour-motion"  # the only candidate that names another joint

# Simplest first.
CANDIDATES = {
    "offset": Candidate("is shifted by a constant", "are shifted by a constant", "an offset is missing"),
    "velocity-sign": Candidate("follows the sign of velocity", "follow the sign of velocity",
                               "friction model too simple, Coulomb friction is missing"),
    "velocity": Candidate("follows the velocity", "follow the velocity",
                          "friction model too simple, viscous friction is missing"),
    "acceleration": Candidate("follows the acceleration", "follow the acceleration",
                              "inertia or rotor inertia is missing"),
    "position": Candidate("follows the position", "follow the position", "gravity, a spring or a cable is missing"),
    "speed-squared": Candidate("bends with speed", "bend with speed",
                               "friction model too simple, it does not grow in proportion to speed: try Stribeck"),
    "low-speed": Candidate("rises at low speed", "rise at low speed", "friction model too simple, try Stribeck"),
    "load": Candidate("follows the sign of velocity times the load", "follow the sign of velocity times the load",
                      "friction grows with the load"),
    "delay": Candidate("follows the rate of change of the torque", "follow the rate of change of the torque",
                       "torque and motion are out of step in time"),
    NEIGHBOUR: Candidate("follows the motion of {}", "follow the motion of {}",
                         "the two drives are coupled or their columns mixed up"),
}


@dataclass(frozen=True)
class CandidateFit:
    """Fit of one candidate to the residual of a joint, once all that the model can explain is taken out of both.

    candidate: a key of CANDIDATES. share: of the residual's power that it explains. torque: RMS of that, N m or N.
    strength: F statistic with the residual's effective number of rows. coefficient: where the candidate is one column,
    residual per unit of it. neighbour: the other joint, where the candidate is its motion.
    """

    candidate: str
    share: float
    torque: float
    strength: float
    coefficient: float | None
    neighbour: str | None = None

    @property
    def title(self) -> str:
        """Two or three words for a headline."""
        if self.neighbour is not None:
            return f"motion of {joint_label(self.neighbour)}"
        return self.candidate.replace("-", " ")

    @property
    def seen(self) -> str:
        """Words for what the residual does."""
        return CANDIDATES[self.candidate].one.format(joint_label(self.neighbour or ""))

    @property
    def seen_by_several(self) -> str:
        """Words for what several residuals do."""
        return CANDIDATES[self.candidate].many.format(joint_label(self.neighbour or ""))

    @property
    def hint(self) -> str:
        """Words for the cause it hints at."""
        if self.candidate == "delay" and self.coefficient is not None:
            # tau(t) = tau_hat(t - lag) is about tau_hat - lag times its rate of change.
            later = "later" if self.coefficient < 0 else "earlier"
            return f"the torque comes {1e3 * abs(self.coefficient):.3g} ms {later} than the motion says"
        return CANDIDATES[self.candidate].hint

    def to_dict(self) -> dict[str, Any]:
        return plain({**vars(self), "seen": self.seen, "hint": self.hint})


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of some samples, thinned: motion (m, dof), columns of each joint (m, k_j), residuals, predictions, keep."""

    q: Array
    dq: Array
    ddq: Array
    signs: Array  # of velocity, through the same decimation as the torques
    rate: Array  # of the predicted torque, N m/s
    columns: tuple[Array, ...]
    residual: Array
    predicted: Array
    keep: Bools


def take_rows(estimate: Estimate, samples: Samples, series: Residuals, most: int = ROWS) -> Rows:
    """At most about `most` rows, evenly spread over the rows that regression uses."""
    equations = TorqueEquations.of(estimate.model, samples, estimate.base)
    count = len(series.t)
    step = max(1, count // most)
    motions, entries, done = [], [], 0
    for piece in equations.pieces(unit=PIECE):
        own = np.arange(-done % step, len(piece.rows), step)  # every `step`-th row of the whole log
        done += len(piece.rows)
        if len(own):
            motions.append(_motion(samples, piece)[own])
            entries.append(equations.rows(piece).entries[:, own])
    q, dq, ddq, signs = (np.ascontiguousarray(x) for x in np.split(np.concatenate(motions), 4, axis=1))
    columns = tuple(np.ascontiguousarray(np.concatenate([part[equations.layout.joint(j)][:-1] for part in entries],
                                                        axis=1).T) for j in range(samples.dof))
    rows = np.arange(0, count, step)
    before, after = np.maximum(rows - 1, 0), np.minimum(rows + 1, count - 1)
    rate = (series.predicted[after] - series.predicted[before]) / np.maximum(after - before, 1)[:, None] * series.rate
    predicted = series.predicted[rows]
    return Rows(q, dq, ddq, signs, rate, columns, series.measured[rows] - predicted, predicted, series.keep[rows])


def _motion(samples: Samples, piece: Piece) -> Array:
    """q, dq, ddq and the signs of dq (rows, 4 dof) of a piece, through the same decimation as its equations."""
    margin = 0 if samples.decimation is None else reach(samples.decimation)
    low, high = max(piece.rows[0] - margin, piece.segment[0]), min(piece.rows[-1] + margin + 1, piece.segment[1])
    part = slice(low, high)
    motion = np.concatenate([samples.q[part], samples.dq[part], samples.ddq[part], np.sign(samples.dq[part])], axis=1)
    if samples.decimation is None:
        return motion
    return decimate_piece(motion, samples.decimation, np.array(piece.rows), low, piece.segment)


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of several logs one after the other."""
    if len(parts) == 1:
        return parts[0]

    def stack(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    columns = tuple(np.concatenate([part.columns[j] for part in parts]) for j in range(parts[0].q.shape[1]))
    return Rows(stack("q"), stack("dq"), stack("ddq"), stack("signs"), stack("rate"), columns, stack("residual"),
                stack("predicted"), stack("keep"))


def fit_candidates(rows: Rows, j: int, names: Sequence[str], turning: bool) -> tuple[CandidateFit, ...]:
    """All candidates for joint j, the best first, the simplest of those about as good as the best before it.

    Both the residual and the candidate lose what the joint's own columns can explain: what is left of the candidate
    is what adding it to the model would bring (the added-variable test).
    """
    use = np.flatnonzero(rows.keep[:, j])
    residual = rows.residual[use, j]
    power = float(residual @ residual)
    own = rows.columns[j][use]
    if len(use) < 3 * own.shape[1] + 10 or power <= 0:
        return ()
    size = np.linalg.norm(own, axis=0)
    basis, _ = np.linalg.qr(own[:, size > 0] / size[size > 0])
    rest = residual - basis @ (basis.T @ residual)
    found = []
    for (name, neighbour), columns in _columns(rows, j, use, names, turning).items():
        wide = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        left = wide - basis @ (basis.T @ wide)
        new = np.linalg.norm(left, axis=0) > _IN_THE_MODEL
        if not new.any():
            continue
        direction, _ = np.linalg.qr(left[:, new])
        along = direction.T @ rest
        share = float(along @ along) / power
        remainder = rest - direction @ along
        c = autocovariance(remainder, np.ones(len(remainder), dtype=bool))
        effective = len(use) * c[0] / (2.0 * c.sum() - c[0]) if c[0] > 0 and 2.0 * c.sum() > c[0] else float(len(use))
        strength = share / len(along) / max(float(remainder @ remainder) / power, 1e-12) * min(effective, len(use))
        single = None
        if columns.shape[1] == 1:
            single = float(left[:, 0] @ rest / (left[:, 0] @ left[:, 0]) / np.linalg.norm(columns[:, 0]))
        torque = float(np.sqrt(share * power / len(use)))
        found.append(CandidateFit(name, share, torque, float(strength), single, neighbour))
    found.sort(key=lambda f: -f.share)
    if not found:
        return ()
    order = [*CANDIDATES]
    best = min((f for f in found if f.share >= _SIMPLER * found[0].share), key=lambda f: order.index(f.candidate))
    return (best, *(f for f in found if f is not best))


def _columns(rows: Rows, j: int, use: Ints, names: Sequence[str], turning: bool
             ) -> dict[tuple[str, str | None], Array]:
    """The candidates for joint j, by name and neighbour, each (m, columns)."""
    q, dq, ddq, sign = (x[use, j] for x in (rows.q, rows.dq, rows.ddq, rows.signs))
    top = float(np.percentile(np.abs(dq), 95)) if len(dq) else 0.0
    places = [q, np.sin(q), np.cos(q)] if turning else [q]
    own = {
        "offset": [np.ones(len(use))], "velocity-sign": [sign], "velocity": [dq], "acceleration": [ddq],
        "position": places, "speed-squared": [np.abs(dq) * dq],
        "low-speed": [sign * np.exp(-np.abs(dq) / (0.1 * top))] if top > 0 else [],
        "load": [np.abs(rows.predicted[use, j]) * sign], "delay": [rows.rate[use, j]],
    }
    shapes: dict[tuple[str, str | None], list[Array]] = {(name, None): columns for name, columns in own.items()}
    for k in (j - 1, j + 1):
        if 0 <= k < len(names):
            shapes[NEIGHBOUR, names[k]] = [rows.dq[use, k], rows.ddq[use, k], rows.signs[use, k]]
    return {key: np.stack(columns, axis=1) for key, columns in shapes.items()
            if columns and any(np.any(column) for column in columns)}

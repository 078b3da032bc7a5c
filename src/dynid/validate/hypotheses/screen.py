"""Fast screening of hypotheses with the normal equations of a few rows.

A QR factor keeps all digits, which screening does not need: it only selects hypotheses for a full test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Problem
from dynid.lapack import solve_positive
from dynid.model import LinearModel, complete
from dynid.recording import Samples
from dynid.recording.decimate import decimated
from dynid.regression import BaseParameters, TorqueEquations
from dynid.regression.equations import Layout, Rows
from dynid.validate.hypotheses.hypothesis import Hypothesis
from dynid.validate.thresholds import NOISE_FLOOR

ROWS = 100  # rows of all logs: with one equation per joint, some ten equations for each parameter of an arm
# Ridge penalty relative to the trace of the scaled normal equations, which keeps poorly determined values small.
_RIDGE_SHARE = 1e-8


def solved(normal: Array) -> tuple[Array, float]:
    """Return values (k,) and the sum of squared residuals from [X y]'[X y] (k + 1, k + 1)."""
    size = np.sqrt(np.maximum(normal.diagonal()[:-1], 0.0))  # rounding may give negative squares
    scale = np.where(size > 0, size, 1.0)
    # The product of two small scales may be zero.
    inner = np.asarray(normal[:-1, :-1] / scale[:, None] / scale, dtype=float)
    inner.ravel()[::len(inner) + 1] += _RIDGE_SHARE * max(len(inner), 1)
    along = normal[:-1, -1] / scale
    try:
        value = solve_positive(inner, along)
    except np.linalg.LinAlgError:  # all columns are rounding errors under this motion
        value = np.linalg.lstsq(inner, along, rcond=None)[0]
    return value / scale, max(float(normal[-1, -1] - along @ value), 0.0)


@dataclass(frozen=True, eq=False)
class HypothesisScreen:
    """A few rows of logs for a fast comparison of hypotheses. whole: the complete logs, of which every step-th row is
    used; noise: (dof,), standard deviations of the torques."""

    model: LinearModel
    base: BaseParameters
    whole: tuple[Samples, ...]
    step: int
    noise: Array
    # Equations of each joint in each piece, kept for the first and the last motion.
    seen: dict[bytes, list[list[_JointRows]]] = field(default_factory=dict, repr=False)
    own_misfits: dict[tuple[int, bytes], float] = field(default_factory=dict, repr=False)  # by joint and its equations

    @staticmethod
    def from_problem(problem: Problem, logs: tuple[Samples, ...], noise: Array, rows: int = ROWS) -> HypothesisScreen:
        every = sum(len(log) // log.decimated_by for log in logs)
        return HypothesisScreen(problem.model, problem.base, logs, max(1, round(every / rows)), noise)

    @cached_property
    def logs(self) -> tuple[Samples, ...]:
        return self._few(self.whole)

    def _few(self, logs: tuple[Samples, ...]) -> tuple[Samples, ...]:
        # Torques that a hypothesis does not change are not filtered again.
        few = tuple(decimated(log).every(self.step) if log is one or log.tau is not one.tau else
                    replace(log.every(log.decimated_by * self.step), tau=known.tau, raw_tau=known.raw_tau)
                    for log, one, known in zip(logs, self.whole, self.logs if logs is not self.whole else logs,
                                               strict=True))
        if complete(self.model).channels:
            return few
        # Columns that depend on one sample alone need no borders: one piece per log is faster than many.
        return tuple(replace(log, segments=np.array([[0, len(log)]])) for log in few)

    @cached_property
    def before(self) -> float:
        """Mean squared residual of the fit to the unchanged data."""
        return self.left(Hypothesis(""))

    def left(self, hypothesis: Hypothesis) -> float:
        """Return the mean squared residual of a fit under a hypothesis, in units of the noise."""
        weights = 1.0 / (self.noise if hypothesis.torque is None else self.noise * np.abs(hypothesis.torque))
        width, total = len(self.base) + 1, 0
        whole = np.zeros(width * width)
        for j, normal, rows in self._normal_equations(hypothesis):
            whole[self._places[j]] += (weights[j] ** 2 * normal).ravel()
            total += rows
        return solved(whole.reshape(width, width))[1] / max(total, 1)

    def share(self, hypothesis: Hypothesis) -> float:
        """Return the mean squared residual under a hypothesis, relative to that of the unchanged data."""
        before = self.before  # computed first, because many hypotheses have the motion of the data
        return self.left(hypothesis) / max(before, 1e-300)

    def relative_left(self, hypothesis: Hypothesis) -> float:
        """Return the mean logarithm of the joints' relative residuals in a noise-weighted fit under a hypothesis."""
        width, own = len(self.base) + 1, self._own_equations(hypothesis)
        power = np.array([max(float(normal[-1, -1]), 1e-300) for normal in own])
        noise = np.sqrt(np.array([self._own_misfit(j, normal) for j, normal in enumerate(own)])
                        + NOISE_FLOOR ** 2 * power)
        whole = np.zeros(width * width)
        for j, normal in enumerate(own):
            whole[self._places[j]] += (normal / noise[j] ** 2).ravel()
        beta = solved(whole.reshape(width, width))[0]
        left = [np.append(-beta[one], 1.0) for one in self._layout.columns]
        misfit = np.array([max(float(x @ own[j] @ x), 0.0) for j, x in enumerate(left)])
        return float(np.mean(np.log(misfit / power + NOISE_FLOOR ** 2)))

    def own_left(self, hypothesis: Hypothesis) -> float:
        """Return the sum over the joints of the logarithm of the relative residual of each joint's own equations."""
        return float(sum(np.log(self._own_misfit(j, normal) / max(float(normal[-1, -1]), 1e-300) + NOISE_FLOOR ** 2)
                         for j, normal in enumerate(self._own_equations(hypothesis))))

    def _own_equations(self, hypothesis: Hypothesis) -> list[Array]:
        """Return the normal equations (k + 1, k + 1) of each joint, summed over all pieces of the logs."""
        own = [np.zeros((len(one) + 1,) * 2) for one in self._layout.columns]
        for j, normal, _ in self._normal_equations(hypothesis):
            own[j] += normal
        return own

    def _own_misfit(self, j: int, normal: Array) -> float:
        """Return the squared residual of joint j's own equations. It is stored, because exchanging two torques changes
        the equations of two joints only."""
        key = j, normal.tobytes()
        if key not in self.own_misfits:
            self.own_misfits[key] = solved(normal)[1]
        return self.own_misfits[key]

    @cached_property
    def _layout(self) -> Layout:
        """Regressor columns of each joint, the same for all hypotheses: these change the data and not the model."""
        return Layout.from_model(self.model, self.base)

    @cached_property
    def _places(self) -> list[Ints]:
        """Indices of each joint's normal equations among those of all joints, in memory order."""
        width = len(self.base) + 1
        columns = (np.append(one, width - 1) for one in self._layout.columns)
        return [(width * one[:, None] + one).ravel() for one in columns]

    def _normal_equations(self, hypothesis: Hypothesis) -> Iterator[tuple[int, Array, int]]:
        """Return the joint, [Y_j tau_j]'[Y_j tau_j] (k + 1, k + 1) and number of rows for each joint in each piece.
        Hypotheses about torques alone reuse the columns of the same motion and their products."""
        equations = self._changed(hypothesis)
        motion = b"".join(x.tobytes() for log in equations.logs for x in (log.t, log.q, log.dq, log.ddq))
        pieces, found = equations.pieces(), self.seen.get(motion)
        is_new = found is None
        if found is None:
            for last in list(self.seen)[1:]:
                del self.seen[last]
            found = self.seen[motion] = [_JointRows.from_rows(equations.rows(piece)) for piece in pieces]
        for piece, joints in zip(pieces, found, strict=True):
            tau = equations.logs[piece.log].tau[piece.rows.start:piece.rows.stop:piece.rows.step]
            for j, one in enumerate(joints):
                # Products with the torque are computed here too, so that results do not depend on the order of
                # hypotheses.
                yield j, one.normal_equations(None if is_new else tau[:, j]), one.entries.shape[1]

    def _changed(self, hypothesis: Hypothesis) -> TorqueEquations:
        if hypothesis.between_rows:
            model, logs = hypothesis.change(self.model, self.whole)
            logs = self._few(logs)
        else:
            model, logs = hypothesis.change(self.model, self.logs)
        assert model is self.model
        return TorqueEquations.from_layout(self._layout, model, logs)


@dataclass(frozen=True, eq=False)
class _JointRows:
    """Equations of one joint.

    Attributes:
        entries: columns and torque of the kept rows (k + 1, kept).
        products: entries entries' (k + 1, k + 1).
        keep: (rows,), mask of the kept rows, None if all are kept.
        known: torque of known parameters (rows,), or zero.
    """

    entries: Array
    products: Array
    keep: Bools | None
    known: Array | float

    @staticmethod
    def from_rows(rows: Rows) -> list[_JointRows]:
        """Return the equations of each joint."""
        all_kept = bool(rows.keep.all())
        found = []
        for j in range(len(rows.layout.columns)):
            own = rows.joint(j) if all_kept else rows.joint(j)[:, rows.keep[:, j]]
            found.append(_JointRows(own, own @ own.T, None if all_kept else rows.keep[:, j],
                                    0.0 if rows.known is None else rows.known[j]))
        return found

    def normal_equations(self, tau: Array | None) -> Array:
        """Return the normal equations for a torque (rows,); default: the torque in `entries`."""
        if tau is not None:
            torque = tau - self.known
            self.entries[-1] = torque if self.keep is None else torque[self.keep]
        self.products[-1] = self.products[:, -1] = self.entries @ self.entries[-1]
        return self.products

"""Compressed data of the same recordings at several cut-off frequencies, from an excerpt if possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.identifiable import BoundModel, DataFacts, bind_to_data
from dynid.errors import NotPossibleError
from dynid.estimate.problem import Problem
from dynid.model import LinearModel, robot_model
from dynid.recording import Recording, Samples
from dynid.recording.excerpts import moving_excerpt
from dynid.recording.preparation import Preparation
from dynid.recording.preparation.cutoff import Spectrum
from dynid.recording.preparation.resample import means
from dynid.recording.preparation.row_filter import EquationsKind
from dynid.recording.preparation.selection import moving_joints
from dynid.recording.recording import SIGNAL_ATTRIBUTES
from dynid.recording.sample_preparation import Gridded, on_grid, prepare, prepare_gridded
from dynid.regression import BaseParameters, Regression, fold, prepared_equations
from dynid.regression.derived import CachedEquations, Derived
from dynid.regression.equations import UNIT, Piece, Rows, inner_cuts
from dynid.regression.known import KnownValues, Prior

_CUTOFF_BLOCKS = 8  # blocks of time in all logs together
_SUFFICIENT_RATE = 1000.0  # Hz: sufficient rate, far above the cut-offs that are tried
_CUTOFF_ROWS = 60_000  # rows of all logs together, a minute at that rate; of more data an excerpt is used
_ROWS_A_PERIOD = 12  # rows per period of a cut-off, needed for the motion and the instants of reversals
_UNIFORM_TOLERANCE = 0.01  # largest relative variation of sampling intervals of a log whose rows are averaged


@dataclass(frozen=True, eq=False)
class CutoffFolds:
    """Compressed data of recordings by cut-off (Hz), computed on demand.

    The window of filtered equations follows from the cut-off. `torques` returns torque equations of the same logs.

    Attributes:
        model, base, prior: model, its base parameters, and prior rows.
        moving: recordings with motion.
        logs: the parts of these recordings that are used.
        whole: whether all data are used.
        settings: options of the preparation, except the cut-off.
        made: compressed data that were already computed.
        starts: start times of the intervals of each log, s, from the first compression.
    """

    model: LinearModel
    base: BaseParameters
    prior: Prior | None
    moving: tuple[Recording, ...]
    logs: tuple[Gridded, ...]
    settings: Preparation
    whole: bool
    made: dict[tuple[float, EquationsKind, int], Regression | None] = field(default_factory=dict)
    starts: list[Array] = field(default_factory=list)

    @staticmethod
    def from_recordings(model: LinearModel, recordings: Sequence[Recording], settings: Preparation, *,
                        known: KnownValues | None = None) -> CutoffFolds:
        """Return the compressed data of recordings for a model; known: known parameter values."""
        return _folds(bind_to_data(model, DataFacts.from_recordings(recordings), known), recordings, settings)

    @staticmethod
    def like(problem: Problem) -> CutoffFolds:
        """Return the compressed data of a problem's recordings, prepared as its data were.

        The cut-off and settings that depend on it are not fixed.
        """
        settings = _following(Preparation.from_settings(dict(problem.data[0].settings)), problem.data[0].rate)
        if len({round(log.rate, 6) for log in problem.data}) > 1:  # the logs have different rates
            settings = settings.elsewhere()
        return _folds(BoundModel(problem.model, problem.base, problem.regression.prior), problem.recordings, settings)

    def of_problem(self, problem: Problem) -> CutoffFolds:
        """Return the compressed data of the same recordings for a problem's model and base parameters.

        Factors that were already computed are reused if the model is the same.
        """
        one, other = robot_model(self.model), robot_model(problem.model)
        same = self.model is problem.model or (one is not None and other is not None and one.robot is other.robot
                                               and one.terms == other.terms)
        if same and np.array_equal(self.base.independent, problem.base.independent) and np.array_equal(
                self.base.matrix, problem.base.matrix):
            return self
        return replace(self, model=problem.model, base=problem.base, prior=problem.regression.prior, made={})

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """Spectra of the positions, one per sufficiently long log."""
        return tuple(log.spectrum for log in self.logs if log.spectrum is not None)

    def at(self, cutoff: float, finest: float | None = None) -> Regression | None:
        """Return the compressed data at a cut-off (Hz); None if the recordings are too short or too slow for it.

        finest: highest cut-off (Hz) to be compared, which sets the number of rows; by default `cutoff`.
        """
        return self._at(cutoff, self.settings.equations, finest or cutoff)

    def torques(self, cutoff: float) -> Regression | None:
        """Return the compressed torque equations at a cut-off (Hz), whatever the settings; None if impossible."""
        return self._at(cutoff, "torque", cutoff)

    def averaged_by(self, finest: float) -> int:
        """Return the number of neighbouring rows to average for cut-offs up to `finest` Hz."""
        plain = Preparation()
        free = all(getattr(self.settings, name) == getattr(plain, name)
                   for name in ("method", "equations", "window", "torque_cutoff", "thin", "decimate", "border"))
        return max(1, int(min(log.grid.rate for log in self.logs) / (_ROWS_A_PERIOD * finest))) if free else 1

    def _at(self, cutoff: float, equations: EquationsKind, finest: float) -> Regression | None:
        key = cutoff, equations, self.averaged_by(finest)
        if key not in self.made:
            try:
                self.made[key] = self._fold(*key)
            except NotPossibleError:
                self.made[key] = None
        return self.made[key]

    def samples(self, cutoff: float, equations: EquationsKind | None = None, times: int = 1) -> tuple[Samples, ...]:
        """Return the samples of each log at a cut-off (Hz).

        Args:
            cutoff: Hz.
            equations: kind of equations, default that of the settings.
            times: number of neighbouring rows to average.
        """
        chosen = self.settings.with_changes(cutoff=cutoff, equations=equations or self.settings.equations)
        found: list[Samples] = []
        for log in self.logs:
            found.append(prepare_gridded(log.averaged(times), chosen))
            chosen = found[-1].preparation
        return tuple(found)

    def _fold(self, cutoff: float, equations: EquationsKind, times: int) -> Regression:
        # Each log by itself: blocks of the same index are the same interval of time at every cut-off.
        count = -(-_CUTOFF_BLOCKS // len(self.logs))
        logs = self.samples(cutoff, equations, times)
        if not self.starts:
            self.starts.extend(log.t[inner_cuts(log, count)] for log in logs)
        parts = [fold(CachedEquations(CutAtTimes(prepared_equations(self.model, log, self.base), starts)), blocks=count)
                 for log, starts in zip(logs, self.starts, strict=True)]
        return replace(reduce(add, parts), prior=self.prior)


@dataclass(frozen=True, eq=False)
class CutAtTimes(Derived):
    """Equations of a log that are divided at given times (stretches - 1,), s, independent of its preparation."""

    times: Array

    def rows(self, piece: Piece) -> Rows:
        return self.equations.rows(piece)

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        found = []
        for piece in self.equations.pieces(1, unit):
            t = self.logs[piece.log].t[piece.rows.start:piece.rows.stop:piece.rows.step]
            at = [0, *np.searchsorted(t, self.times if stretches > 1 else []).tolist(), len(t)]
            found += [replace(piece, rows=piece.rows[a:b], stretch=k) for k, (a, b) in enumerate(pairwise(at)) if b > a]
        return found


def _folds(whole: BoundModel, recordings: Sequence[Recording], settings: Preparation) -> CutoffFolds:
    moving = tuple(log for log in recordings if np.any(moving_joints(log.q)))
    if not moving:
        prepare(recordings[0])  # raises an error with the reason
    less = moving_excerpt([_averaged(log) for log in moving], _CUTOFF_ROWS)
    return CutoffFolds(whole.model, whole.base, whole.prior, moving, tuple(on_grid(log, settings) for log in less),
                       settings, sum(map(len, less)) == sum(map(len, moving)))


def _following(settings: Preparation, rate: float) -> Preparation:
    """Return the resolved settings of a log at `rate` Hz without those that depend on the cut-off."""
    free: dict[str, Any] = {"window": None}
    cutoff, factor = settings.cutoff or 0.0, settings.decimate or 1
    if factor > 1 and abs(settings.decimate_share - 2.0 * cutoff * factor / rate) < 1e-9:
        free |= {"decimate": None, "torque_cutoff": None, "decimate_share": Preparation().decimate_share}
    elif factor == 1 and settings.torque_cutoff == "same" and settings.thin == 1:
        free |= {"decimate": None, "torque_cutoff": None}
    if settings.filtered is not None and settings.kernel_window is not None and cutoff and abs(
            settings.kernel_window * cutoff / settings.kernel_options.cutoff(settings.filtered, 1.0) - 1.0) < 1e-4:
        free["kernel_window"] = None
    if settings.border is not None and settings.border >= 1.0 / max(cutoff, 1e-9):
        free["border"] = None
    return settings.with_changes(**free)


def _averaged(recording: Recording) -> Recording:
    """Return a log of high rate with neighbouring rows averaged, which filters motion and torques equally."""
    # A log at twice the rate may have a slightly lower measured rate.
    times = int(recording.rate / _SUFFICIENT_RATE + _UNIFORM_TOLERANCE)
    intervals = np.diff(recording.t)
    if times < 2 or np.ptp(intervals) > _UNIFORM_TOLERANCE * float(intervals.mean()):
        return recording
    whole = np.array([[0, len(recording)]])
    names = ("t", *SIGNAL_ATTRIBUTES.values(), "measured_position")
    averaged: dict[str, Any] = {name: means(signal, times, whole) for name in names
                                if (signal := getattr(recording, name)) is not None}
    return replace(recording, **averaged)

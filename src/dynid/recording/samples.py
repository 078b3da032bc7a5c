"""Samples: positions, velocities, accelerations and torques for regression, and how they were prepared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid import html_tables
from dynid.arrays import Array, Bools, Ints, first_not_finite
from dynid.errors import RecordingError
from dynid.recording.preparation import Preparation
from dynid.recording.preparation.row_filter import FilteredSignals


@dataclass(frozen=True, eq=False)
class Decimation:
    """Parallel decimation (Janot, Vandanjon, Gautier, s. 2).

    The same zero-phase low-pass is applied to torques and every column of the regressor, then one sample in `factor` is
    kept; this is repeated `stages` times. See `dynid.recording.decimate`.

    Attributes:
        factor: rows per kept row of one stage.
        stages: number of repetitions.
        order: order of the Butterworth low-pass in one direction.
        share: cut-off of the low-pass times `factor`, as a share of the Nyquist frequency.
    """

    factor: int
    stages: int = 1
    order: int = 4
    share: float = 0.8

    def __post_init__(self) -> None:
        if self.factor < 1 or self.stages < 1 or self.order < 1 or not 0.0 < self.share <= 1.0:
            raise RecordingError(f"decimation needs factor, stages and order of at least 1 and a share of the Nyquist "
                                 f"frequency between 0 and 1, got {self.factor}, {self.stages}, {self.order} and "
                                 f"{self.share:g}", code="bad-decimation")

    @property
    def total(self) -> int:
        return self.factor ** self.stages


@dataclass(frozen=True, eq=False)
class Samples:
    """Data of a regression at one rate: t (samples,), s, and q, dq, ddq, tau (samples, joints).

    `samples[start:stop]`, `select` and `every` return parts of the samples with all signals below.

    Attributes:
        segments: half-open row ranges (k, 2) without a gap in time. Filters and decimation never cross their borders.
        keep: equations to use (samples, joints), bool, applied after filtering. A decimated row is used if the row it
            is taken from (`decimated_rows`) is kept.
        unmeasured: joints whose torque is not known. No row of theirs is kept.
        steps: the processing steps in order, one sentence each.
        settings: options that repeat the preparation.
        spectrum: spectra from which the cut-off was chosen, for the report.
        raw_tau: measured torques (samples, joints) if `tau` is filtered, else None.
        filtered: filtered signals at the same samples, for equations other than torques.
        temperature: temperature of the joints (samples, joints) in the unit of the log, or None.
        gain_covariance: relative covariance (joints, joints) of the drive gains, if they were estimated.
        wrench: force and moment of a sensor (samples, 6), filtered like the torques, or None.
        mixing: matrices (samples, joints, joints) that multiply the equations of the joints, or None. See
            `dynid.floating`, which uses them to remove unknown contact forces.
        base_pose: position (m, nan where it is not logged) and quaternion x y z w of a free base in the world
            (samples, 7), for drawings, or None.

    >>> dynid.Samples.from_arrays(*np.zeros((4, 50, 2)), rate=100.0).tau.shape
    (50, 2)
    >>> len(dynid.Samples.from_arrays(*np.zeros((4, 50, 2)), rate=100.0)[10:30])
    20
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    keep: Bools
    segments: Ints
    rate: float
    decimation: Decimation | None = None
    joints: tuple[str, ...] = ()
    source: str = "memory"
    steps: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    spectrum: Mapping[str, Any] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    raw_tau: Array | None = None
    filtered: FilteredSignals | None = None
    temperature: Array | None = None
    wrench: Array | None = None
    gain_covariance: Array | None = None
    mixing: Array | None = None
    base_pose: Array | None = None

    def __post_init__(self) -> None:
        shape = self.q.shape
        if len(shape) != 2:
            raise RecordingError(f"{self.source}: samples must be (samples, joints), got shape {shape}")
        for name, array in self._signals().items():
            expected = {"wrench": (shape[0], 6), "t": shape[:1], "mixing": (*shape, shape[1]),
                        "base_pose": (shape[0], 7)}.get(name, shape)
            if array.shape != expected:
                raise RecordingError(f"{self.source}: {name} has shape {array.shape}, expected {expected} as the "
                                     f"positions have {shape[0]} rows and {shape[1]} joints")
        for name in ("q", "dq", "ddq", "tau"):
            wrong = first_not_finite(getattr(self, name))
            if wrong is not None:
                who = self.joints[wrong[1]] if self.joints else wrong[1] + 1
                raise RecordingError(f"{self.source}: {name} of joint {who} is not finite in row {wrong[0]}")
        if self.keep.shape != shape or self.keep.dtype != np.bool_:
            raise RecordingError(f"{self.source}: keep must be True or False for each of the {shape[0]} rows and "
                                 f"{shape[1]} joints, got {self.keep.dtype} of shape {self.keep.shape}")
        check_ranges(self.segments, shape[0], "segments", self.source)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def dof(self) -> int:
        return self.q.shape[1]

    def __getitem__(self, rows: slice) -> Samples:
        """Return consecutive rows as views, e.g. `samples[100:200]`. Segments are clipped to them."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise RecordingError(f"{self.source}: a slice must have a step of 1, got {step}; use "
                                 f"`samples.every({step})`", code="bad-slice")
        stop = max(start, stop)
        return self._rows(slice(start, stop), self._segments_within(start, stop) - start)

    def select(self, stretches: Sequence[tuple[int, int]] | Ints) -> Samples:
        """Return the rows of some intervals of time, one interval after the other, as copies.

        Args:
            stretches: half-open row ranges (k, 2). The border between two of them is a border of segments.
        """
        ranges = np.asarray(stretches, dtype=np.int64).reshape(-1, 2)
        check_ranges(ranges, len(self), "stretches", self.source)
        moved = np.cumsum(ranges[:, 1] - ranges[:, 0]) - ranges[:, 1]  # new index of a row minus its old one
        segments = [self._segments_within(int(a), int(b)) + by for (a, b), by in zip(ranges, moved, strict=True)]
        rows = [np.arange(a, b) for a, b in ranges]
        empty = np.zeros(0, dtype=np.int64)
        return self._rows(np.concatenate([empty, *rows]), np.concatenate([empty.reshape(0, 2), *segments]))

    def every(self, step: int) -> Samples:
        """Return one row in `step` of every segment, at `rate` / `step`, without a low-pass filter.

        Decimation and filtered signals are removed, as they belong to the full rate.
        """
        picked = [np.arange(start, stop, step) for start, stop in self.segments if start < stop]
        ends = np.cumsum([0, *map(len, picked)], dtype=np.int64)
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *picked])
        return self._rows(rows, np.column_stack([ends[:-1], ends[1:]]), rate=self.rate / step, decimation=None,
                          filtered=None)

    def _signals(self) -> dict[str, Array]:
        """Return arrays with one entry per row, by name, without `keep` and without signals that were not logged."""
        found: dict[str, Array | None] = {name: getattr(self, name) for name in (
            "t", "q", "dq", "ddq", "tau", "raw_tau", "temperature", "wrench", "mixing", "base_pose")}
        if self.filtered is not None:
            found |= {f"filtered.{name}": getattr(self.filtered, name) for name in ("q", "dq", "tau", "whole")}
        return {name: array for name, array in found.items() if array is not None}

    def _segments_within(self, start: int, stop: int) -> Ints:
        """Return segments (k, 2) clipped to the rows from start to stop, without those outside."""
        clipped = np.clip(self.segments, start, stop)
        return np.asarray(clipped[clipped[:, 0] < clipped[:, 1]])

    def _rows(self, rows: slice | Ints, segments: Ints, **changes: Any) -> Samples:
        """Return samples with some rows of every signal, the given segments and other changed fields."""
        cut: dict[str, Any] = {name: array[rows] for name, array in self._signals().items() if "." not in name}
        if self.filtered is not None:
            cut["filtered"] = self.filtered[rows]
        return replace(self, **{**cut, "keep": self.keep[rows], "segments": segments, **changes})

    @property
    def decimated_by(self) -> int:
        """Number of rows at full rate per row of the regression."""
        return 1 if self.decimation is None else self.decimation.total

    @property
    def preparation(self) -> Preparation:
        """The options that apply the same filter and selection of rows to other logs."""
        return Preparation.from_settings(dict(self.settings)).elsewhere()

    @property
    def measured_tau(self) -> Array:
        """Torques as measured (samples, joints), without any filter."""
        return self.tau if self.raw_tau is None else self.raw_tau

    @property
    def torque_cutoff(self) -> float | None:
        """Lowest cut-off of the low-pass filters on the torques, Hz, or None."""
        cutoff = self.settings.get("torque_cutoff")
        cutoff = self.settings.get("cutoff") if cutoff == "same" else cutoff
        found = [float(cutoff)] if isinstance(cutoff, int | float) else []
        if self.decimation is not None and self.decimation.factor > 1:
            found.append(self.decimation.share * self.rate / (2.0 * self.decimation.total))
        return min(found, default=None)

    @staticmethod
    def from_arrays(q: Array, dq: Array, ddq: Array, tau: Array, *, t: Array | None = None, rate: float = 1.0,
                    source: str = "memory") -> Samples:
        """Return samples from arrays (samples, joints) without filtering; every row is kept."""
        q, dq, ddq, tau = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, ddq, tau))
        n = len(q)
        time = np.arange(n) / rate if t is None else np.ascontiguousarray(t, dtype=float)
        return Samples(time, q, dq, ddq, tau, np.ones(q.shape, dtype=bool), np.array([[0, n]]), rate, source=source,
                       steps=("used as given",))

    def __repr__(self) -> str:
        return f"<Samples of {self.source}: {len(self):,} rows, {self.dof} joints>"

    def _repr_html_(self) -> str:
        names = self.joints or tuple(str(j + 1) for j in range(self.dof))
        rows = [(name, *(f"{float(np.abs(signal[:, j]).max(initial=0.0)):.3g}" for signal in
                         (self.q, self.dq, self.ddq, self.tau)), str(int(self.keep[:, j].sum())))
                for j, name in enumerate(names)]
        head = ("joint", "|q| max", "|dq| max", "|ddq| max", "|tau| max", "rows used")
        return html_tables.card(repr(self)[1:-1], html_tables.table(head, rows),
                                *map(html_tables.paragraph, self.steps))

    def to_frame(self) -> Any:
        """Return a pandas table with one row per sample, see `dynid.recording.write`."""
        from dynid.recording.write import to_frame
        return to_frame(self)


def check_ranges(ranges: Ints, rows: int, name: str, source: str) -> None:
    """Raise unless `ranges` are half-open row ranges (k, 2) within `rows` rows."""
    if np.ndim(ranges) != 2 or np.shape(ranges)[1] != 2:
        raise RecordingError(f"{source}: {name} must be row ranges (k, 2), got shape {np.shape(ranges)}")
    wrong = np.flatnonzero((ranges[:, 0] < 0) | (ranges[:, 0] > ranges[:, 1]) | (ranges[:, 1] > rows))
    if len(wrong):
        start, stop = ranges[wrong[0]]
        raise RecordingError(f"{source}: {name} has a range from row {start} to {stop}, which is not within the {rows} "
                             "rows")
